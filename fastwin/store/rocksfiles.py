"""The folder of a RocksDB store: opened for writing or reading, and the mark by which both know what it must hold."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastwin.errors import StoreError

__all__ = ["Mark", "Reader", "database_id", "open_writer", "read_mark", "write_mark"]

_MARK = "FASTWIN"
_ATTEMPTS = 6
_PAUSE_SECONDS = 0.1


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
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as problem:
        raise StoreError(f"rocksdb: {path / _MARK} is damaged: {problem}") from None


def write_mark(path: Path, mark: Mark) -> None:
    """Puts a mark in place of the one before, as one step."""
    part = path / f"{_MARK}.new"
    part.write_text(f"{mark.identity} {mark.version}\n", encoding="ascii")
    os.replace(part, path / _MARK)


def database_id(path: Path) -> str | None:
    """Returns the name that RocksDB gave a database when it was created; None if there is none."""
    try:
        return (path / "IDENTITY").read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return None


def _options(rocks: Any) -> Any:
    options = rocks.Options(raw_mode=True)
    options.set_paranoid_checks(True)
    # A log whose last record is cut off is one whose writer was killed. Anything else that is wrong is an error, where
    # RocksDB would by default leave out what follows.
    options.set_wal_recovery_mode(rocks.DBRecoveryMode.tolerate_corrupted_tail_records())
    return options


def open_writer(rocks: Any, path: Path) -> Any:
    """Returns the database of a folder, created if there is none. Raises StoreError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        options = _options(rocks)
        options.set_compression_type(rocks.DBCompressionType.lz4())
        options.set_keep_log_file_num(2)
        return rocks.Rdict(str(path), options)
    except Exception as problem:
        text = str(problem)
        if "lock" in text.lower():
            raise StoreError(
                f"rocksdb: {path} is open for writing already, in this process or another; one writes at a time, and "
                f"others open it with read_only=True"
            ) from problem
        raise StoreError(f"rocksdb: {path} cannot be opened: {text}") from problem


class Reader:
    """A database opened as a secondary instance, whose files were found whole."""

    def __init__(self, rocks: Any, path: Path) -> None:
        self.path = path
        self.database_id = database_id(path)
        self._scratch = tempfile.mkdtemp(prefix="fastwin-reader-")
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
                access = rocks.AccessType.secondary(self._scratch)
                return rocks.Rdict(str(self.path), _options(rocks), access_type=access)
            except Exception as problem:
                if attempt == _ATTEMPTS - 1:
                    raise StoreError(f"rocksdb: {self.path} cannot be read: {problem}") from problem
                time.sleep(_PAUSE_SECONDS)  # a writer may just be replacing files
        raise AssertionError

    def drop(self) -> None:
        """Lets go of the database; iterators over it may go on."""
        self.database = None
        shutil.rmtree(self._scratch, ignore_errors=True)
