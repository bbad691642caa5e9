"""A folder for the files of one process, which goes with it, however the process ends."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path

__all__ = ["Scratch"]

_LOCK = "in-use"


class Scratch:
    """A folder ``fastwin-KIND-...`` in the temporary directory, removed by ``drop``, with this object, or at exit.

    kind: what it is for. A process that is killed leaves its folder behind: the next one of this user and kind, in
    whatever process, removes it. It knows by a lock, which goes with the process that holds it. Raises OSError where no
    folder can be made.
    """

    def __init__(self, kind: str) -> None:
        prefix = f"fastwin-{kind}-"
        _sweep(Path(tempfile.gettempdir()), prefix)
        self.path = Path(tempfile.mkdtemp(prefix=prefix))
        """Where it is."""
        try:
            lock = _locked(self.path)
        except BaseException:
            shutil.rmtree(self.path, ignore_errors=True)
            raise
        self.drop = weakref.finalize(self, _remove, self.path, lock)
        """Removes the folder and all that is in it. It may be called again."""


def _remove(folder: Path, lock: int) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    os.close(lock)


def _locked(folder: Path) -> int:
    """Returns a lock on a folder, held from before others can see it."""
    hidden = folder / f"{_LOCK}.new"
    lock = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.replace(hidden, folder / _LOCK)
    except BaseException:
        os.close(lock)
        raise
    return lock


def _sweep(parent: Path, prefix: str) -> None:
    """Removes folders whose process is gone. What cannot be read or removed, such as another user's, stays."""
    with suppress(OSError):
        for entry in os.scandir(parent):
            if entry.name.startswith(prefix):
                with suppress(OSError):
                    _remove_left(Path(entry.path))


def _remove_left(folder: Path) -> None:
    if folder.lstat().st_uid != os.getuid():
        return
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while its process lives
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)
