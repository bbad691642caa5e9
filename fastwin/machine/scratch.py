"""A folder for the files of one process, which goes with it, however the process ends."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
import time
import weakref
from contextlib import suppress
from pathlib import Path

__all__ = ["Scratch"]

_LOCK = "in-use"
_HIDDEN = f"{_LOCK}.new"
_UNLOCKED_S = 3600.0


class Scratch:
    """A folder ``fastwin-KIND-...`` in the temporary directory, removed by ``drop``, with this object, or at exit.

    kind: what it is for. A process that is killed leaves its folder behind: the next one of this user and kind, in
    whatever process, removes it. It knows by a lock, which goes with the process that holds it, and those forked from
    it. What was left before it could be locked goes after an hour. Raises OSError where no folder can be made.
    """

    def __init__(self, kind: str) -> None:
        prefix = f"fastwin-{kind}-"
        _sweep(Path(tempfile.gettempdir()), prefix)
        self.path = Path(tempfile.mkdtemp(prefix=prefix))
        """Where it is."""
        try:
            lock = _locked(self.path)
        except BaseException:
            _remove(self.path)
            raise
        self.drop = weakref.finalize(self, _drop, self.path, lock, os.getpid())
        """Removes the folder and all that is in it. It may be called again. In a forked process it lets go alone."""


def _drop(folder: Path, lock: int, owner: int) -> None:
    if os.getpid() == owner:
        _remove(folder)
    os.close(lock)


def _remove(folder: Path) -> None:
    """Removes a folder. Its lock goes last: what cannot be removed now is found by it later."""
    with suppress(OSError):
        for path in [path for path in folder.iterdir() if path.name != _LOCK]:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                with suppress(OSError):
                    path.unlink()
        if not set(os.listdir(folder)) - {_LOCK}:
            shutil.rmtree(folder, ignore_errors=True)


def _locked(folder: Path) -> int:
    """Returns a lock on a folder, held from before others can see it."""
    hidden = folder / _HIDDEN
    lock = os.open(hidden, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.replace(hidden, folder / _LOCK)
    except BaseException:
        os.close(lock)
        raise
    return lock


def _sweep(parent: Path, prefix: str) -> None:
    """Removes folders whose process is gone. What cannot be read or removed, such as another user's, stays."""
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith(prefix):
                with suppress(OSError):
                    _remove_left(Path(entry.path))


def _remove_left(folder: Path) -> None:
    told = folder.lstat()
    if told.st_uid != os.geteuid() or not stat.S_ISDIR(told.st_mode):
        return
    if set(os.listdir(folder)) <= {_HIDDEN}:  # it was killed, or is about to lock it
        if time.time() - told.st_mtime > _UNLOCKED_S:
            _remove(folder)
        return
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while its process lives
        _remove(folder)
    finally:
        os.close(lock)
