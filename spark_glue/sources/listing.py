"""The files of a folder as a stream: which ones are new, which a micro-batch takes, and what its offset says of them.

An offset names the files of its micro-batch, so one that runs again reads the same ones. A file is told from others by
its name, size and time of change. Of the files that are older than the newest one taken by less than ``late_ms``, the
offset says one by one which have been seen; all that are older count as seen.
"""

import base64
import hashlib
import logging
import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from fastwin.errors import SourceError

__all__ = ["Folder", "Found", "Listing", "Offset", "files_of", "first_offset"]

SUFFIX = ".parquet"
Offset = dict[str, Any]

_LOG = logging.getLogger(__name__)
_READERS = 16
_NS_PER_MS = 1_000_000


@dataclass(frozen=True, order=True)
class Found:
    """A file, in the order in which files are taken: time of change, ns since 1970; name below the folder; bytes."""

    time_ns: int
    name: str
    size: int

    @property
    def token(self) -> str:
        """Tells it from others, and from what had its name before."""
        text = f"{self.name}\0{self.size}\0{self.time_ns}".encode()
        return base64.b64encode(hashlib.blake2b(text, digest_size=9).digest()).decode()


class Folder:
    """A folder, on this machine or elsewhere. path: or a URI that Arrow knows, such as ``s3://bucket/clicks``."""

    def __init__(self, path: str) -> None:
        is_uri = "://" in path or path.startswith("file:")
        self.path = path if is_uri else os.path.abspath(path)  # tasks run elsewhere
        self._files, self._root = fs.FileSystem.from_uri(self.path)

    def found(self) -> list[Found]:
        """Returns its Parquet files, the oldest first; hidden ones (``_`` and ``.``) are left out."""
        told = self._files.get_file_info(fs.FileSelector(self._root, recursive=False))
        return sorted(_found(info) for info in told if info.type == fs.FileType.File and _is_shown(info.base_name))

    def look(self, name: str) -> Found | None:
        """Returns what a file is now; None: there is none."""
        info = self._files.get_file_info(f"{self._root}/{name}")
        return _found(info) if info.type == fs.FileType.File else None

    def open_same(self, one: Found) -> pq.ParquetFile:
        """Opens a file that was seen before. Raises SourceError where it is not what it was."""
        now = self.look(one.name)
        if now != one:
            told = "is gone" if now is None else "has changed"
            raise SourceError(
                f"{self.path}/{one.name}: the file {told} since a micro-batch was begun with it; put it back as it was "
                f"({one.size:,} bytes, changed at {one.time_ns} ns since 1970), or begin with an empty checkpoint"
            )
        return self.open(one.name)

    def open(self, name: str) -> pq.ParquetFile:
        """Opens a file. Raises ArrowInvalid for one that is no Parquet, or not all of it."""
        return pq.ParquetFile(self._files.open_input_file(f"{self._root}/{name}"), coerce_int96_timestamp_unit="us")


def _is_shown(name: str) -> bool:
    return name.endswith(SUFFIX) and not name.startswith(("_", "."))


def _found(info: fs.FileInfo) -> Found:
    return Found(info.mtime_ns or 0, info.base_name, info.size)


def first_offset() -> Offset:
    """Returns the offset of a stream that has taken nothing."""
    return {"at": 0, "files": [], "newest": None, "seen": []}


def files_of(offset: Mapping[str, Any]) -> list[Found]:
    """Returns the files of the micro-batch that ends at an offset."""
    return [Found(time_ns, name, size) for name, size, time_ns in offset["files"]]


class Listing:
    """What the driver knows of a folder while a query runs.

    max_files, max_rows: of a micro-batch, which takes one file at least; None: any number. late_ms: how much older
    than the newest one taken a file may be when it is first seen.
    """

    def __init__(self, folder: Folder, max_files: int | None, max_rows: int | None, late_ms: int) -> None:
        self._folder = folder
        self._max_files = max_files
        self._max_rows = max_rows
        self._late_ns = late_ms * _NS_PER_MS
        self._fixed: list[Found] | None = None
        self._old: set[Found] | None = None  # seen, and too old for an offset to say so
        self._groups: dict[Found, tuple[int, ...]] = {}
        self._unfinished: set[Found] = set()

    def fix(self) -> None:
        """Takes what is there now for all there will be."""
        self._fixed = self._folder.found()

    def next(self, start: Offset, unlimited: bool = False) -> Offset:
        """Returns the offset behind the next micro-batch; ``start`` itself if there is nothing new.

        Raises SourceError for a file that came too late to be told from those that have been read.
        """
        listed = self._folder.found() if self._fixed is None else self._fixed
        fresh = self._fresh(start, listed)
        taken = self._taken(fresh, unlimited)
        if not taken:
            return start
        newest = max([one.time_ns for one in taken] + [start["newest"] or 0])
        waiting = set(fresh).difference(taken)
        seen = [one for one in listed if one not in waiting]
        self._old = {one for one in seen if one.time_ns < newest - self._late_ns}
        return {
            "at": time.time_ns() // _NS_PER_MS,
            "files": [[one.name, one.size, one.time_ns] for one in taken],
            "newest": newest,
            "seen": [one.token for one in seen if one not in self._old],
        }

    def _fresh(self, start: Offset, listed: Sequence[Found]) -> list[Found]:
        """Returns what a stream has not taken yet."""
        if start["newest"] is None:
            return list(listed)
        oldest = start["newest"] - self._late_ns
        seen = set(start["seen"])
        old = {one for one in listed if one.time_ns < oldest}
        if self._old is None:
            self._old = old
        elif lost := old - self._old:
            raise SourceError(
                f"{self._folder.path}: the file {min(lost).name!r} has come more than {self._late_ns / 1e9:,.0f} s "
                f"later than its time of change says (the newest file read is so much newer), and is not read; change "
                f"its time (touch) before the query starts again, and give late_files= more"
            )
        return [one for one in listed if one.time_ns >= oldest and one.token not in seen]

    def _taken(self, fresh: Sequence[Found], unlimited: bool) -> list[Found]:
        most_files = len(fresh) if unlimited or self._max_files is None else self._max_files
        taken: list[Found] = []
        rows = 0
        at = 0
        while len(taken) < most_files and at < len(fresh):
            block = fresh[at : at + most_files - len(taken)]
            at += len(block)
            for one, groups in zip(block, self._row_groups(block), strict=True):
                if groups is None:
                    continue
                rows += sum(groups)
                if taken and not unlimited and self._max_rows is not None and rows > self._max_rows:
                    return taken
                taken.append(one)
        return taken

    def row_groups_of(self, files: Sequence[Found]) -> list[tuple[int, ...]]:
        """Returns how many rows each row group of the files of a micro-batch has, which may run again."""
        for one in files:
            if one not in self._groups:
                with self._folder.open_same(one):  # says what is wrong with it
                    pass
        return [groups or () for groups in self._row_groups(files)]

    def _row_groups(self, files: Sequence[Found]) -> list[tuple[int, ...] | None]:
        """Returns how many rows each row group of the files has; None for one that is not complete yet."""
        unknown = [one for one in files if one not in self._groups]
        if len(unknown) > 1:
            with ThreadPoolExecutor(_READERS) as pool:
                told = list(pool.map(self._look_into, unknown))
        else:
            told = [self._look_into(one) for one in unknown]
        groups = {one: self._groups[one] for one in files if one in self._groups}
        groups |= {one: found for one, found in zip(unknown, told, strict=True) if found is not None}
        self._groups = groups
        return [groups.get(one) for one in files]

    def _look_into(self, one: Found) -> tuple[int, ...] | None:
        try:
            with self._folder.open(one.name) as file:
                metadata = file.metadata
                return tuple(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups))
        except (pa.ArrowInvalid, FileNotFoundError) as problem:
            if one not in self._unfinished:
                self._unfinished.add(one)
                _LOG.warning("%s: %s is left for later: %s", self._folder.path, one.name, problem)
            return None
