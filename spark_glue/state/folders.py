"""The folder in which the workers of a machine share what they keep: where it is, whose it is, and when parts of it go.

It has a folder for each run of a query. A worker that uses one holds a lock on it, which goes with the process. What
nobody has used for ten minutes is swept; who is told to end removes what nobody else holds.
"""

import contextlib
import fcntl
import logging
import os
import shutil
import stat
import tempfile
import time
from pathlib import Path

from fastwin.machine.memory import LEAST_FREE, SHARED

__all__ = [
    "ROOT_VARIABLE",
    "TAKEN_FILE",
    "cache_root",
    "forget_run",
    "hold",
    "is_private",
    "leave",
    "limit_of",
    "lock",
    "say_once",
    "sweep",
]

ROOT_VARIABLE = "FASTWIN_CACHE_DIR"
TAKEN_FILE = ".bytes"
"""In the folder of all runs: how many bytes the copies of all runs take."""

_LOG = logging.getLogger(__name__)
_MEMORY = SHARED
_LEAST_FREE = LEAST_FREE  # below that, the folder in memory is left alone, unless ours is there already
_IDLE_S = 600.0
_SWEEP_S = 60.0
_LOCK_S = 1.0
_ALIVE = ".alive"
_said: set[str] = set()


def say_once(text: str, topic: str = "") -> None:
    """Writes a warning to the log, the first time in this process that it is about ``topic``; by itself, the text."""
    if (topic or text) not in _said:
        _said.add(topic or text)
        _LOG.warning("%s", text)


def limit_of(variable: str, otherwise: int) -> int:
    """Returns the bytes that a variable of the environment names; else ``otherwise``. The log has what is no number."""
    named = os.environ.get(variable)
    if not named:
        return otherwise
    try:
        return int(named)
    except ValueError:
        say_once(f"{variable}: must be a number of bytes, got {named!r}; it is {otherwise} instead")
        return otherwise


def cache_root() -> Path:
    """Returns the folder of all runs of this user, in which nothing else may lie: what is old in it is removed.

    It is in the folder named by FASTWIN_CACHE_DIR, or in /dev/shm where that has room, else in the temporary folder.
    """
    return _cache_base() / _name()


def _name() -> str:
    return f"fastwin-{os.getuid()}"


def _cache_base() -> Path:
    named = os.environ.get(ROOT_VARIABLE)
    if named:
        return Path(named)
    other = Path(tempfile.gettempdir())
    try:
        if (_MEMORY / _name()).is_dir() and os.access(_MEMORY, os.W_OK):
            return _MEMORY  # so that nothing is left behind there when it fills up
        if not os.access(_MEMORY, os.W_OK):
            say_once(f"copies of state: {_MEMORY} is not there, or may not be written to; they lie in {other}")
        elif (free := shutil.disk_usage(_MEMORY).free) < _LEAST_FREE:
            say_once(
                f"copies of state: {_MEMORY} has {free >> 20} MB free, fewer than {_LEAST_FREE >> 20}; they lie in "
                f"{other}",
                topic=f"no room in {_MEMORY}",
            )
        else:
            return _MEMORY
    except OSError as problem:
        say_once(f"copies of state: {_MEMORY} cannot be looked at ({problem}); they lie in {other}")
    return other


def _roots() -> list[Path]:
    """Returns where copies may lie: also where they lay before the environment or the room there changed."""
    others = () if os.environ.get(ROOT_VARIABLE) else (_MEMORY / _name(), Path(tempfile.gettempdir()) / _name())
    return list(dict.fromkeys([cache_root(), *others]))


def is_private(root: Path) -> bool:
    """Returns whether this folder, made if need be, is this user's own, and nobody else may write to it.

    If it is not, the log says so. Raises OSError if it cannot be made.
    """
    with contextlib.suppress(FileExistsError):
        root.mkdir(mode=0o700, parents=True)
    told = root.lstat()
    private = (
        stat.S_ISDIR(told.st_mode) and told.st_uid == os.getuid() and not told.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    )
    if not private:
        say_once(
            f"copies of state: {root} is not a folder of this user that nobody else may write to, so it is left "
            f"alone; state is read from the state store"
        )
    return private


def lock(handle: int) -> None:
    """Locks a file for this process alone. Raises BlockingIOError if another one has held it for a second."""
    until = time.monotonic() + _LOCK_S
    while True:
        try:
            return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # its owner is about to let go, or stands still
            if time.monotonic() > until:
                raise
        time.sleep(0.001)


# The folders that this process holds, each by a shared lock that goes with the process, however it ends.
_held: dict[Path, int] = {}
_swept = -_SWEEP_S


def hold(folder: Path) -> None:
    """Makes the folder of a run if need be, marks it as used, and keeps others from sweeping it; sweeps now and then.

    It is marked first: the workers of a run may all have ended since they used it last. Raises OSError if it cannot be
    made, or is being swept.
    """
    if folder in _held and _is_removed(folder):
        _let_go(folder)
    if folder not in _held:
        _LOG.debug("copies of state: this worker uses %s", folder)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(folder / _ALIVE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            raise
        _held[folder] = handle
    os.utime(_held[folder])
    if time.monotonic() - _swept >= _SWEEP_S:
        sweep(folder.parent)


def _is_removed(folder: Path) -> bool:
    """Whether a folder that this process holds is gone, though another of its name may have come."""
    return os.fstat(_held[folder]).st_nlink == 0 or not folder.is_dir()


def _let_go(folder: Path) -> None:
    os.close(_held.pop(folder))


def leave() -> None:
    """Lets go of all that this process holds, at its end; folders that nobody else holds are removed."""
    for folder in list(_held):
        _let_go(folder)
        with contextlib.suppress(OSError):
            _remove_unheld(folder)
            _tidy(folder.parent)


def _remove_unheld(folder: Path) -> None:
    handle = os.open(folder / _ALIVE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while anybody holds it
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(handle)


def sweep(root: Path | None = None) -> None:
    """Removes the folders of queries that have ended, or whose executor has crashed.

    They are those that nobody has used for ten minutes: the worker that holds one may stand idle, or work for others.
    That nobody holds one says little: Spark ends workers that have nothing to do for a minute, also between two
    micro-batches. If their query goes on after all, it finds its state in the state store.
    """
    global _swept
    _swept = time.monotonic()
    for base in _roots() if root is None else [root]:
        for folder in [folder for folder in _held if folder.parent == base and _is_removed(folder)]:
            _let_go(folder)
        with contextlib.suppress(OSError):
            if base.lstat().st_uid != os.getuid():
                continue
            for folder in list(base.iterdir()):
                if folder.is_dir():
                    with contextlib.suppress(OSError):
                        _sweep(folder)
            _tidy(base)


def _sweep(folder: Path) -> None:
    handle = os.open(folder / _ALIVE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if time.time() - os.fstat(handle).st_mtime < _IDLE_S:
            return
        with contextlib.suppress(BlockingIOError):  # who begins to use it now leaves it alone
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
        _LOG.info("copies of state: %s was removed, as no worker uses it", folder)
    finally:
        os.close(handle)


def forget_run(run: str, root: Path | None = None) -> None:
    """Removes the folder of a run that has ended, whoever holds it."""
    for base in _roots() if root is None else [root]:
        if base / run in _held:
            _let_go(base / run)
        shutil.rmtree(base / run, ignore_errors=True)
        with contextlib.suppress(OSError):
            _tidy(base)


def _tidy(base: Path) -> None:
    """Leaves nothing behind where there is no run any more."""
    if not any(path.is_dir() for path in base.iterdir()):
        (base / TAKEN_FILE).unlink(missing_ok=True)
