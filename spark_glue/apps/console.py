"""What commands share: a folder for what they leave, Spark with its messages in a file, and an end by SIGTERM."""

import contextlib
import fcntl
import os
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import spark_glue
from fastwin.errors import FastwinError, SpecError

__all__ = ["check_apart", "check_folder", "ended_as_by_ctrl_c", "fresh_folder", "kept_folder", "start_spark"]

_LAST_LINES = 20
_TAKEN: dict[Path, int] = {}
"""The files by which other processes are kept out of folders."""


def fresh_folder(path: Path, command: str) -> Path:
    """Empties the folder of an earlier run of a command, and no other; returns it as an absolute path.

    Raises SpecError where something in it cannot be deleted: it would be taken for a part of this run.
    """
    folder = kept_folder(path, command)
    try:
        for entry in list(folder.iterdir()):
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            elif entry.name != _mark(command):  # without it, what is left would be another's
                entry.unlink()
    except OSError as problem:
        raise SpecError(f"--out: {path} cannot be emptied: {problem}") from None
    return folder


def kept_folder(path: Path, command: str) -> Path:
    """Returns the folder of a command as an absolute path, with what an earlier run has left there.

    A new one is readable by its owner alone; one that is there keeps its rights.
    No other process gets it until this one ends, where the file system has locks. Raises SpecError where another one
    has it.
    """
    check_folder(path, command)
    folder = path.resolve()
    try:
        folder.mkdir(0o700, parents=True, exist_ok=True)
        mark = os.open(folder / _mark(command), os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as problem:
        raise SpecError(f"--out: {path} cannot be written: {problem}") from None
    if (before := _TAKEN.pop(folder, None)) is not None:  # a run of this process, which has ended
        os.close(before)
    try:
        fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(mark)
        raise SpecError(f"--out: another {command} runs in {path}; end that one, or name another folder") from None
    except OSError:  # a file system that has no locks
        os.close(mark)
        return folder
    _TAKEN[folder] = mark
    return folder


def _mark(command: str) -> str:
    return f".fastwin-{command}"


def check_folder(path: Path, command: str) -> None:
    """Raises SpecError for a folder that is neither new nor empty, and was not made by the command."""
    if path.exists() and not path.is_dir():
        raise SpecError(f"--out: {path} is no folder; name a new one")
    if path.exists() and any(path.iterdir()) and not (path / _mark(command)).exists():
        raise SpecError(f"--out: {path} is not empty, and was not made by {command}; name a new folder")


def check_apart(path: Path, given: Path) -> None:
    """Raises SpecError where what a command reads, a file or a folder, lies in the folder that it empties."""
    folder = path.resolve()
    if any(place.is_relative_to(folder) for place in (given.resolve(), given.parent.resolve())):
        raise SpecError(f"--out: {given} lies in {path}, which is emptied; name another folder")


def start_spark(app_name: str, master: str, settings: dict[str, Any], log: Path) -> SparkSession:
    """Starts Spark, whose messages go to a file instead of the terminal.

    Raises SpecError where it does not start, with the last of them.
    """
    try:
        with _stderr_to(log):
            return spark_glue.session(app_name, master, settings)
    except FastwinError:
        raise
    except Exception as problem:
        last = log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LAST_LINES:]
        raise SpecError("\n  ".join([f"--master: Spark does not start at {master!r}: {problem}", *last])) from problem


@contextlib.contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """Lets a process started meanwhile, Spark's, write its messages to a file instead of the terminal."""
    sys.stderr.flush()
    terminal = os.dup(2)
    try:
        with log.open("ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(terminal, 2)
        os.close(terminal)


@contextlib.contextmanager
def ended_as_by_ctrl_c() -> Iterator[None]:
    """Lets SIGTERM, which ``kill`` and service managers send, do what Ctrl-C does: what is open is closed first."""
    if threading.current_thread() is not threading.main_thread():  # others cannot set handlers
        yield
        return

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
