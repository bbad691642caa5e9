"""What commands share: a fresh folder for what they leave, and Spark's messages kept off the terminal."""

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from fastwin.errors import SpecError

__all__ = ["fresh_folder", "stderr_to"]


def fresh_folder(path: Path, command: str) -> Path:
    """Empties the folder of an earlier run of a command, and no other; returns it as an absolute path."""
    mark = f".fastwin-{command}"
    if path.exists() and any(path.iterdir()) and not (path / mark).exists():
        raise SpecError(f"--out: {path} is not empty, and was not made by {command}; name a new folder")
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    (path / mark).touch()
    return path.resolve()


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
