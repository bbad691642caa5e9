"""The folder of a RocksDB store: opened for writing or reading, and the mark by which both know what it must hold."""

from __future__ import annotations

import ctypes
import os
import re
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastwin.errors import StoreError
from fastwin.machine.files import put_whole
from fastwin.machine.scratch import Scratch

__all__ = [
    "NOTHING",
    "Held",
    "Mark",
    "Reader",
    "keep_if_forked",
    "let_go",
    "mark_is_empty",
    "open_writer",
    "read_mark",
    "write_mark",
]

_MARK = "FASTWIN"
_ATTEMPTS = 6
_PAUSE_SECONDS = 0.1
_LOCKED = re.compile(r"lock hold by current process|While lock file: .*: Resource temporarily unavailable", re.DOTALL)
"""What RocksDB says of a lock that this process has, or another one."""

_LOG_BYTES = 10 * 2**20

NOTHING = {
    "epoch": 0,
    "watermark": None,
    "since": None,
    "complete_from": None,
    "version": 0,
    "identity": "",
    "history": "",
    "lost": False,
}
"""The meta of a store that nothing was ever put into."""


@dataclass(frozen=True)
class Mark:
    """The identity of a store and its newest version: what RocksDB must know, or else its files have lost something."""

    identity: str
    version: int

    def missing_from(self, stored: dict[str, Any]) -> bool:
        """Returns whether a database that holds this meta is another one, or behind."""
        return stored.get("identity", "") != self.identity or stored["version"] < self.version


def read_mark(path: Path) -> Mark | None:
    """Returns the mark in a folder; None if it has none yet. Raises StoreError for one that is damaged."""
    try:
        identity, version = (path / _MARK).read_text(encoding="ascii").split()
        return Mark(identity, int(version))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as problem:
        raise StoreError(f"rocksdb: {path / _MARK} is damaged: {problem}") from None


def write_mark(path: Path, mark: Mark) -> None:
    """Puts a mark in place of the one before, as one step, also over a power cut."""
    put_whole(path / _MARK, f"{mark.identity} {mark.version}\n".encode("ascii"), path / f"{_MARK}.new")


def mark_is_empty(path: Path) -> bool:
    """Returns whether a folder's mark is a file without content, as a power cut leaves one that was not forced."""
    try:
        return not (path / _MARK).read_bytes().strip(b"\0")
    except OSError:
        return False


class Held:
    """The file IDENTITY of a database, held open: so no other file has its inode, not even that of a copy."""

    def __init__(self, path: Path) -> None:
        self._path = path / "IDENTITY"
        self._owner = os.getpid()
        try:
            self._file: int | None = os.open(self._path, os.O_RDONLY)
        except OSError:
            self._file = None

    def is_ours(self) -> bool:
        """Returns whether this process has opened it, and not one that this one was forked from."""
        return self._owner == os.getpid()

    def is_there(self) -> bool:
        """Returns whether the folder still is the one that it was."""
        try:
            return self._file is not None and os.path.samestat(os.fstat(self._file), os.stat(self._path))
        except OSError:
            return False

    def is_replaced(self) -> bool:
        """Returns whether another database is in its place."""
        return self._path.exists() and not self.is_there()

    def drop(self) -> None:
        """Lets go of the file."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)

    def __del__(self) -> None:
        self.drop()


def _options(rocks: Any) -> Any:
    options = rocks.Options(raw_mode=True)
    options.set_paranoid_checks(True)
    # A log whose last record is cut off is one whose writer was killed. Anything else that is wrong is an error, where
    # RocksDB would by default leave out what follows.
    options.set_wal_recovery_mode(rocks.DBRecoveryMode.tolerate_corrupted_tail_records())
    # RocksDB's own text log, which would grow for as long as the store is open.
    options.set_max_log_file_size(_LOG_BYTES)
    options.set_keep_log_file_num(2)
    options.set_stats_dump_period_sec(0)
    return options


def open_writer(rocks: Any, path: Path) -> Any:
    """Returns the database of a folder, created if there is none. Raises StoreError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        options = _options(rocks)
        options.set_compression_type(rocks.DBCompressionType.lz4())
        return rocks.Rdict(str(path), options)
    except Exception as problem:
        text = str(problem)
        if _LOCKED.search(text):
            raise StoreError(
                f"rocksdb: {path} is open for writing already, in this process or another; one writes at a time, and "
                f"others open it with read_only=True"
            ) from problem
        raise StoreError(f"rocksdb: {path} cannot be opened: {text}") from problem


def _keep(database: Any) -> None:
    """Leaves a database as it is until the process ends: it is neither closed nor freed."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(database))


def keep_if_forked(database: Any, held: Held) -> bool:
    """Keeps a database of another process; returns whether it is one.

    Closed or freed in a forked process, it would write to the files of its parent, and wait for threads that the fork
    has left behind.
    """
    if held.is_ours():
        return False
    _keep(database)
    return True


def let_go(database: Any, held: Held) -> None:
    """Closes a database that was open for writing."""
    if keep_if_forked(database, held):
        pass
    elif held.is_replaced():
        # Closed or freed, it would delete files from what was put in its place.
        with suppress(Exception):
            database.cancel_all_background(True)
        _keep(database)
    else:
        with suppress(Exception):  # it cannot flush, but what was committed is in the log
            database.close()
    held.drop()


class Reader:
    """A database opened as a secondary instance, whose files were found whole."""

    def __init__(self, rocks: Any, path: Path) -> None:
        self.path = path
        self.database: Any = None
        self.held = Held(path)
        try:
            self._scratch = Scratch("reader")
        except OSError as problem:
            self.held.drop()
            raise StoreError(f"rocksdb: a reader needs a folder for its log: {problem}") from problem
        try:
            self.database = self._opened(rocks)
        except BaseException:
            self.drop()
            raise

    def _opened(self, rocks: Any) -> Any:
        for attempt in range(_ATTEMPTS):
            if not (self.path / "CURRENT").exists():
                raise StoreError(f"rocksdb: there is no store at {self.path}")
            try:
                # A secondary instance takes files as it finds them. Opened for reading only, all are looked at.
                whole = rocks.AccessType.read_only(error_if_log_file_exist=False)
                rocks.Rdict(str(self.path), _options(rocks), access_type=whole).close()
                access = rocks.AccessType.secondary(str(self._scratch.path))
                return rocks.Rdict(str(self.path), _options(rocks), access_type=access)
            except Exception as problem:
                if attempt == _ATTEMPTS - 1:
                    raise StoreError(f"rocksdb: {self.path} cannot be read: {problem}") from problem
                time.sleep(_PAUSE_SECONDS)  # a writer may just be replacing files
        raise AssertionError

    def drop(self) -> None:
        """Lets go of the database; iterators over it may go on."""
        if self.database is not None:
            keep_if_forked(self.database, self.held)
        self.database = None
        self.held.drop()
        self._scratch.drop()
