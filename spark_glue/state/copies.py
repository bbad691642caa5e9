"""Copies of deltas on an executor, so that a micro-batch reads what has changed and not the whole.

``Shelf``: a folder, in memory where the machine has such a place, in which the executor's workers leave the deltas that
they write; a worker that gets a share which another one had before takes the missing deltas from there, and asks the
state store only for what it lacks.

Neither these nor the streams of ``state.live`` are believed: the state store says by token which state is the right
one. A token is a digest of the delta that leads to the state, which names the one before it. So what a failed or
forgotten attempt leaves behind is either what the committed one wrote, byte for byte, or has a token that nobody asks
for. A file is written aside, then renamed, and never changed; a stream is taken before it is touched, and put back
after all has been stored.
"""

import contextlib
import os
import re
import shutil
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spark_glue.state.folders import TAKEN_FILE, cache_root, hold, is_private, limit_of, lock, say_once

__all__ = ["BYTES_VARIABLE", "Shelf"]

BYTES_VARIABLE = "FASTWIN_CACHE_BYTES"

_TAKEN = struct.Struct("<qd")  # bytes of all copies, and when they were last counted
_COUNT_S = 10.0  # a full folder is not counted more often than that,
_RECOUNT_S = 600.0  # and any folder now and then
_STALE_S = 3600.0  # what nobody has written or read for so long makes room
_HALF_WRITTEN = re.compile(r"\.[0-9a-f]+\.\d+")  # token and pid; see Shelf._write


class Shelf:
    """The deltas of one run of a query, a file each, named by their tokens.

    run: the id of the run. root: the folder of all shelves; None: cache_root(). limit: bytes that all shelves may take
    together; None: FASTWIN_CACHE_BYTES, or a quarter of what is free and taken.

    A full shelf takes no more: what is there stays until its log forgets it. A cold worker reads a log from its base to
    its end, so to throw out the oldest would throw out what it asks for first. Only what nobody has written or read for
    an hour makes room then: of a share that has gone to another executor, no worker hears what its log forgets.

    Nothing here raises OSError: what cannot be written or read is not there, and the state store has it; the log says
    so once. A root that somebody else owns or may write to is left alone: deltas may hold pickles, which only our own
    user shall make.
    """

    def __init__(self, run: str, root: Path | None = None, limit: int | None = None) -> None:
        self._root = cache_root() if root is None else root
        self._folder = self._root / run
        self._limit = limit

    def put(self, token: str, data: bytes) -> bool:
        """Leaves a delta; returns False if there was no room, or no such folder could be made. O(1)."""
        try:
            if not is_private(self._root):
                return False
            hold(self._folder)
            if (self._folder / token).exists():
                return True
            if not self._has_room(len(data)):
                say_once(f"copies of state: {self._root} is full; deltas beyond it are read from the state store")
                return False
            self._write(token, data)
        except OSError as problem:
            say_once(
                f"copies of state: {self._root} cannot be written to ({problem.strerror}); the state store is read"
            )
            return False
        return True

    def _write(self, token: str, data: bytes) -> None:
        # The name says who writes, so that two attempts never write the same file.
        hidden = self._folder / f".{token}.{os.getpid()}"
        try:
            hidden.write_bytes(data)
            os.replace(hidden, self._folder / token)
        except OSError:
            hidden.unlink(missing_ok=True)
            raise

    def get(self, token: str, size: int) -> bytes | None:
        """Returns a delta of this size; None if it is not there, or another size."""
        try:
            if not is_private(self._root):
                return None
            data = (self._folder / token).read_bytes()
            if len(data) == size:
                os.utime(self._folder / token)
                return data
        except OSError:
            return None
        self.remove(token)
        return None

    def remove(self, token: str) -> None:
        """Takes a delta away, if it is there."""
        with contextlib.suppress(OSError):
            size = (self._folder / token).stat().st_size
            (self._folder / token).unlink()
            self._has_room(-size)

    def _has_room(self, size: int) -> bool:
        """Adds to the bytes that are taken, if the limit allows it. Seldom are all files counted, and nobody waits."""
        with self._taken() as told:
            taken, counted = told
            fits = self._add(told, size)
            due = size > 0 and not 0 <= time.time() - counted < (_RECOUNT_S if fits else _COUNT_S)
            if due:
                told[1] = time.time()  # so that no other worker counts as well
        if due:
            found = self._count(drop=not fits)
            with self._taken() as told:
                told[0] += found - taken  # runs that were forgotten were still in the number
                return fits or self._add(told, size)
        return fits

    def _add(self, told: list[Any], size: int) -> bool:
        fits = size <= 0 or told[0] + size <= self._most(told[0])
        if fits:
            told[0] += size
        return fits

    @contextlib.contextmanager
    def _taken(self) -> Iterator[list[Any]]:
        """Gives the bytes that are taken and when they were counted, to be changed; no other worker has them then."""
        handle = os.open(self._root / TAKEN_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            lock(handle)
            data = os.pread(handle, _TAKEN.size, 0)
            told = list(_TAKEN.unpack(data)) if len(data) == _TAKEN.size else [0, 0.0]
            yield told
            os.pwrite(handle, _TAKEN.pack(max(0, told[0]), told[1]), 0)
        finally:
            os.close(handle)

    def _most(self, taken: int) -> int:
        if self._limit is not None:
            return self._limit
        return limit_of(BYTES_VARIABLE, (shutil.disk_usage(self._root).free + taken) // 4)

    def _count(self, drop: bool) -> int:
        """Counts the bytes of all files, without half-written ones of killed workers, which go.

        drop: those that nobody uses are removed.
        """
        total, stale = 0, time.time() - _STALE_S
        for folder in os.scandir(self._root):
            with contextlib.suppress(OSError):
                for file in os.scandir(folder.path) if folder.is_dir() else ():
                    with contextlib.suppress(OSError):  # its log has forgotten it meanwhile
                        told = file.stat()
                        unused = drop and not file.name.startswith(".")
                        if told.st_mtime < stale and (unused or _HALF_WRITTEN.fullmatch(file.name)):
                            os.unlink(file.path)
                        else:
                            total += told.st_size
        return total
