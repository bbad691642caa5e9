"""What commands share: a fresh folder for what they leave, and Spark's messages kept off the terminal."""

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from fastwin.errors import SpecError

__all__ = ["fresh_folder", "kept_folder", "stderr_to"]


def fresh_folder(path: Path, command: str) -> Path:
    """Empties the folder of an earlier run of a command, and no other; returns it as an absolute path."""
    _check_own(path, command)
    shutil.rmtree(path, ignore_errors=True)
    return kept_folder(path, command)


def kept_folder(path: Path, command: str) -> Path:
    """Returns the folder of a command as an absolute path, with what an earlier run has left there."""
    _check_own(path, command)
    path.mkdir(parents=True, exist_ok=True)
    (path / _mark(command)).touch()
    return path.resolve()


def _mark(command: str) -> str:
    return f".fastwin-{command}"


def _check_own(path: Path, command: str) -> None:
    if path.exists() and any(path.iterdir()) and not (path / _mark(command)).exists():
        raise SpecError(f"--out: {path} is not empty, and was not made by {command}; name a new folder")


@contextlib.contextmanager
def stderr_to(log: Path) -> Iterator[None]:
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
