"""Copies of state on an executor, so that a micro-batch reads what has changed and not the whole.

Two of them. ``LIVE``: the streams that this Python worker has left standing. ``Shelf``: a folder, in memory where the
machine has such a place, in which the executor's workers leave the deltas that they write; a worker that gets a key
group which another one had before takes the missing deltas from there, and asks the state store only for what it lacks.

Neither is believed: the state store says by token which state is the right one. A token is a digest of the delta that
leads to the state, which names the one before it. So what a failed or forgotten attempt leaves behind is either what
the committed one wrote, byte for byte, or has a token that nobody asks for. A file is written aside, then renamed, and
never changed; a stream is taken out of ``LIVE`` before it is touched, and put back after all has been stored.

The module is imported by the workers, not pickled to them: what it holds outlives the micro-batch.
"""

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["LIVE", "Live", "LiveStreams", "Shelf", "cache_root", "forget_run", "sweep"]

ROOT_VARIABLE = "FASTWIN_CACHE_DIR"
BYTES_VARIABLE = "FASTWIN_CACHE_BYTES"
LIVE_VARIABLE = "FASTWIN_LIVE_BYTES"

_MEMORY = Path("/dev/shm")
_LEAST_FREE = 64 << 20  # below that, the folder in memory is left alone
_DEFAULT_LIVE_BYTES = 2 << 30
_IDLE_S = 600.0
_SWEEP_S = 60.0
_ALIVE = ".alive"


def cache_root() -> Path:
    """Returns the folder of all shelves of this user, in which nothing else may lie: what is old in it is removed.

    It is in the folder named by FASTWIN_CACHE_DIR, or in /dev/shm where that has room, else in the temporary folder.
    """
    return _cache_base() / f"fastwin-{os.getuid()}"


def _cache_base() -> Path:
    named = os.environ.get(ROOT_VARIABLE)
    if named:
        return Path(named)
    with contextlib.suppress(OSError):
        if os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free >= _LEAST_FREE:
            return _MEMORY
    return Path(tempfile.gettempdir())


def _limit(variable: str, otherwise: int) -> int:
    try:
        return int(os.environ[variable])
    except (KeyError, ValueError):
        return otherwise


@dataclass
class Live:
    """A stream as a task has left it. metrics: as they stood then. nbytes: what it takes, about."""

    token: str
    stream: Any
    metrics: Any
    nbytes: int
    used: float = 0.0


class LiveStreams:
    """The streams of one Python worker, by run and place; the least recently used go when there are too many bytes.

    limit: bytes; None: FASTWIN_LIVE_BYTES, or 2 GiB.
    """

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit
        self._held: OrderedDict[tuple, Live] = OrderedDict()

    def __len__(self) -> int:
        return len(self._held)

    @property
    def nbytes(self) -> int:
        """Bytes that the streams take, about."""
        return sum(live.nbytes for live in self._held.values())

    def take(self, place: tuple) -> Live | None:
        """Returns the stream left at a place, which is then no longer there."""
        return self._held.pop(place, None)

    def put(self, place: tuple, live: Live) -> None:
        """Leaves a stream at a place (run, ...), and lets go of others that are too many or long unused."""
        live.used = time.monotonic()
        self._held[place] = live
        limit = _limit(LIVE_VARIABLE, _DEFAULT_LIVE_BYTES) if self._limit is None else self._limit
        total = self.nbytes
        for other in list(self._held):
            if total <= limit and (other[0] == place[0] or live.used - self._held[other].used < _IDLE_S):
                continue
            total -= self._held.pop(other).nbytes

    def forget(self, run: str) -> None:
        """Lets go of the streams of a run."""
        for place in [place for place in self._held if place[0] == run]:
            del self._held[place]

    def clear(self) -> None:
        """Lets go of all."""
        self._held.clear()


LIVE = LiveStreams()


class Shelf:
    """The deltas of one run of a query, a file each, named by their tokens.

    run: the id of the run. root: the folder of all shelves; None: cache_root(). limit: bytes that all shelves may take
    together; None: FASTWIN_CACHE_BYTES, or a quarter of what is free and taken.

    Nothing here raises OSError: what cannot be written or read is not there, and the state store has it. A root that
    somebody else owns or may write to is left alone: deltas may hold pickles, which only our own user shall make.
    """

    def __init__(self, run: str, root: Path | None = None, limit: int | None = None) -> None:
        self._root = cache_root() if root is None else root
        self._folder = self._root / run
        self._limit = limit

    def put(self, token: str, data: bytes) -> bool:
        """Leaves a delta; returns False if there was no room, or no such folder could be made."""
        try:
            return (
                _is_private(self._root)
                and _hold(self._folder)
                and self._make_room(len(data))
                and self._write(token, data)
            )
        except OSError:
            return False

    def _write(self, token: str, data: bytes) -> bool:
        # The name says who writes, so that two attempts never write the same file.
        hidden = self._folder / f".{token}.{os.getpid()}"
        try:
            hidden.write_bytes(data)
            os.replace(hidden, self._folder / token)
        except OSError:
            hidden.unlink(missing_ok=True)
            raise
        return True

    def get(self, token: str, size: int) -> bytes | None:
        """Returns a delta of this size; None if it is not there, or another size."""
        try:
            if not _is_private(self._root):
                return None
            data = (self._folder / token).read_bytes()
        except OSError:
            return None
        if len(data) == size:
            return data
        self.remove(token)
        return None

    def remove(self, token: str) -> None:
        """Takes a delta away, if it is there."""
        with contextlib.suppress(OSError):
            (self._folder / token).unlink()

    def _make_room(self, size: int) -> bool:
        files = []
        for path in self._root.glob("*/*"):
            with contextlib.suppress(OSError):
                told = path.stat()
                files.append((told.st_mtime, told.st_size, path))
        taken = sum(size for _, size, _ in files)
        limit = self._limit
        if limit is None:
            limit = _limit(BYTES_VARIABLE, (shutil.disk_usage(self._root).free + taken) // 4)
        for _, old, path in sorted(files):
            if taken + size <= limit:
                break
            if path.name != _ALIVE:
                path.unlink(missing_ok=True)
                taken -= old
        return taken + size <= limit


def _is_private(root: Path) -> bool:
    """Returns whether this folder, made if need be, is this user's own, and nobody else may write to it."""
    with contextlib.suppress(FileExistsError):
        root.mkdir(mode=0o700, parents=True)
    told = root.lstat()
    return (
        stat.S_ISDIR(told.st_mode) and told.st_uid == os.getuid() and not told.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    )


# The folders that this process holds, each by a shared lock that goes with the process, however it ends.
_held: dict[Path, int] = {}
_swept = -_SWEEP_S


def _hold(folder: Path) -> bool:
    """Makes a shelf's folder if need be, marks it as used, and keeps others from sweeping it; sweeps now and then."""
    if time.monotonic() - _swept >= _SWEEP_S:
        sweep(folder.parent)
    if folder in _held and not folder.is_dir():
        _let_go(folder)
    if folder not in _held:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(folder / _ALIVE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            raise
        _held[folder] = handle
    os.utime(_held[folder])
    return True


def _let_go(folder: Path) -> None:
    os.close(_held.pop(folder))


def sweep(root: Path | None = None) -> None:
    """Removes the shelves of queries that have ended, or whose executor has crashed.

    They are those that no living process holds, and those that nobody has written to for ten minutes: the worker that
    holds one may stand idle, or work for others. If their query goes on after all, it finds its state in the state
    store. What this process keeps of a run whose shelf ``forget_run`` has removed goes as well.
    """
    global _swept
    _swept = time.monotonic()
    base = cache_root() if root is None else root
    for folder in [folder for folder in _held if folder.parent == base and not folder.is_dir()]:
        _let_go(folder)
        LIVE.forget(folder.name)
    with contextlib.suppress(OSError):
        for folder in list(base.iterdir()):
            if folder.is_dir():
                with contextlib.suppress(OSError):
                    _sweep(folder)


def _sweep(folder: Path) -> None:
    handle = os.open(folder / _ALIVE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if time.time() - os.fstat(handle).st_mtime < _IDLE_S:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while anybody holds it, this process included
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(handle)


def forget_run(run: str, root: Path | None = None) -> None:
    """Removes the shelf of a run that has ended, whoever holds it."""
    shutil.rmtree((cache_root() if root is None else root) / run, ignore_errors=True)
