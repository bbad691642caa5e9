"""A folder of Parquet files, on this machine or elsewhere: which there are, and what each of them is."""

import base64
import hashlib
import logging
import os
import re
import socket
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from fastwin.errors import SourceError

__all__ = [
    "LISTED_BY_JOB",
    "LISTED_BY_STREAM",
    "READERS",
    "SUM_BITS",
    "Folder",
    "Found",
    "Listed",
    "at_once",
    "in_a_line",
    "is_not_whole",
    "row_groups",
    "shown_path",
]

_LOG = logging.getLogger(__name__)

SUFFIX = ".parquet"
SUM_BITS = 64
_DAMAGED = "Couldn't deserialize thrift"  # so begins what Arrow says of a footer or a page; with a path it says more
_NS_PER_S = 1_000_000_000
_PORT = re.compile(r"(hdfs|viewfs)://[^/@:]*:\d+(/|$)")  # these alone have one, and no keys
READERS = 16
"""So many files are opened at once."""

_WITH_FOLDERS = ("local", "hdfs")  # in other stores a folder is there while something is in it
_ORDER = attrgetter("time_ns", "name", "size")

Told = TypeVar("Told")


@dataclass(frozen=True, order=True)
class Found:
    """A file, in the order in which files are taken: time of change, ns since 1970; name below the folder; bytes."""

    time_ns: int
    name: str
    size: int

    @cached_property
    def token(self) -> str:
        """Tells it from others, and from what had its name before."""
        return base64.b64encode(self._digest(9)).decode()

    @property
    def number(self) -> int:
        """Such a token as a number of SUM_BITS, of which there may be sums."""
        return int.from_bytes(self._digest(SUM_BITS // 8))

    def _digest(self, size: int) -> bytes:
        text = f"{self.name}\0{self.size}\0{self.time_ns}".encode()
        return hashlib.blake2b(text, digest_size=size).digest()


@dataclass(frozen=True)
class Listed:
    """Since when a file has to be as it was, and what to do where it is not, beside putting it back; for errors.

    goes_without: whether the files can be read without it, once it is removed.
    """

    since: str
    otherwise: str
    goes_without: bool


LISTED_BY_STREAM = Listed("a micro-batch was begun with it", "begin with an empty checkpoint", False)
LISTED_BY_JOB = Listed("the first job of this frame listed it", "call apply again", True)


class Folder:
    """A folder, on this machine or elsewhere.

    path: or a URI that Arrow knows, such as ``s3://bucket/clicks``. listed: by whom, for errors. shown: the path
    without secrets, for errors and logs.
    """

    def __init__(self, path: str, listed: Listed = LISTED_BY_STREAM) -> None:
        is_uri = "://" in path or path.startswith("file:")
        self.path = path if is_uri else os.path.abspath(path)  # tasks run elsewhere
        self.shown = shown_path(self.path)
        self._files, self._root = fs.FileSystem.from_uri(self.path)
        self._listed = listed
        self._is_local = not is_uri or path.startswith("file:")
        self._known: dict[str, Found] = {}  # what was found last, by name
        self._odd: set[bytes] = set()  # names that are no text, and have been told

    def found(self) -> list[Found]:
        """Returns its Parquet files, the oldest first; hidden ones (``_`` and ``.``) are left out, and
        with a warning those whose names are no text. A stream may begin with an empty place in a store of objects.

        A file that is as it was found last is the same object. O(n log n) for n files.
        """
        empty = self._listed == LISTED_BY_STREAM and self._files.type_name not in _WITH_FOLDERS
        try:
            told = self._files.get_file_info(fs.FileSelector(self._root, allow_not_found=empty, recursive=False))
        except FileNotFoundError as problem:
            raise SourceError(f"path: there is no folder {self.shown}; make it, or name another") from problem
        named = [info for info in told if info.type == fs.FileType.File and self._has_name(info)]
        found = [_found(info, self._known) for info in named if _is_shown(info.base_name)]
        self._known = {one.name: one for one in found}
        return sorted(found, key=_ORDER)

    def _has_name(self, info: fs.FileInfo) -> bool:
        """Returns whether the name of a file is text, as Arrow and offsets need it; warns once of one that is not."""
        try:
            return bool(info.base_name)
        except UnicodeDecodeError as problem:
            name = problem.object
        if name not in self._odd and _is_shown(os.fsdecode(name)):
            self._odd.add(name)
            _LOG.warning("%s: the file %r is left out: its name is no UTF-8; rename it", self.shown, name)
        return False

    def look(self, name: str) -> Found | None:
        """Returns what a file is now; None: there is none."""
        info = self._files.get_file_info(f"{self._root}/{name}")
        return _found(info, {}) if info.type == fs.FileType.File else None

    def is_same(self, one: Found) -> bool:
        """Returns whether a file that was seen before is what it was."""
        return _is_same(self.look(one.name), one)

    def open_same(self, one: Found) -> pq.ParquetFile:
        """Opens a file that was seen before. Raises SourceError where it is not what it was, or not whole."""
        now = self.look(one.name)
        if not _is_same(now, one):
            told = "is gone" if now is None else "has changed"
            where = f"; that is on {socket.gethostname()}: driver and executors must reach the folder"
            raise SourceError(
                f"{self.shown}/{one.name}: the file {told} since {self._listed.since}; {self._back(one)}"
                f"{where if now is None and self._is_local else ''}"
            )
        try:
            return self.open(one.name)
        except (pa.ArrowInvalid, OSError) as problem:
            if not is_not_whole(problem):
                raise
            raise SourceError(
                f"{self.shown}/{one.name}: it is no whole Parquet file: {in_a_line(problem)}; {self._mend(one)}"
            ) from problem

    def unreadable(self, one: Found, problem: Exception) -> SourceError:
        """Returns the error for a file that could be opened, but not read to its end."""
        said, file = in_a_line(problem), f"{self.shown}/{one.name}"
        if is_not_whole(problem) or not isinstance(problem, OSError):
            return SourceError(f"{file}: it cannot be read: {said}; {self._mend(one)}")
        return SourceError(
            f"{file}: reading has failed on {socket.gethostname()}: {said}; if its store was out of reach, start again "
            f"when it is back; if the file is damaged, {self._mend(one)}"
        )

    def _mend(self, one: Found) -> str:
        """Returns what to do with a damaged file."""
        return (
            f"put it whole, or remove it, and {self._listed.otherwise}"
            if self._listed.goes_without
            else self._back(one)
        )

    def _back(self, one: Found) -> str:
        told = f"{one.size:,} bytes, changed at {one.time_ns} ns since 1970"
        return f"put it back as it was ({told}), or {self._listed.otherwise}"

    def open(self, name: str) -> pq.ParquetFile:
        """Opens a file. Raises ArrowInvalid for one that is no Parquet, or not all of it."""
        # It closes what it has opened itself.
        return pq.ParquetFile(f"{self._root}/{name}", filesystem=self._files, coerce_int96_timestamp_unit="us")

    def row_groups_of(self, one: Found) -> tuple[int, ...]:
        """Returns how many rows each row group of a file has that was seen before; raises as open_same() does."""
        with self.open_same(one) as file:
            return row_groups(file)


def shown_path(path: str) -> str:
    """Returns a path, or a URI without the user and the keys in it, which may have a slash as it is."""
    scheme, there, rest = path.partition("://")
    host = rest.partition("/")[0]
    if there and "@" in host:
        return f"{scheme}://...@{rest[host.rindex('@') + 1 :]}"
    if there and "@" in rest and ":" in host and not _PORT.match(path):
        return f"{scheme}://...@{rest.partition('@')[2]}"
    return path


def row_groups(file: pq.ParquetFile) -> tuple[int, ...]:
    """Returns how many rows each row group has."""
    metadata = file.metadata
    return tuple(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups))


def at_once(ask: Callable[[Found], Told], files: Sequence[Found]) -> list[Told]:
    """Asks of several files at once, which may be far away; returns the answers in order."""
    if len(files) < 2:
        return [ask(one) for one in files]
    with ThreadPoolExecutor(READERS) as pool:
        return list(pool.map(ask, files))


def in_a_line(problem: Exception) -> str:
    """Returns what it says; Arrow breaks its lines."""
    return " ".join(str(problem).split())


def is_not_whole(problem: Exception) -> bool:
    """Whether it tells of what is in a file, and not that it could not be looked at."""
    return isinstance(problem, pa.ArrowInvalid) or str(problem).startswith(_DAMAGED)


def _is_shown(name: str) -> bool:
    return name.endswith(SUFFIX) and not name.startswith(("_", "."))


def _is_same(now: Found | None, one: Found) -> bool:
    """Returns whether a file is what it was. now: as it was asked for by its name; None: there is none.

    Some stores of objects tell the time of one file in whole seconds, and in a listing with fractions.
    """
    if now is None or (now.name, now.size) != (one.name, one.size):
        return False
    (second, rest), (listed, fraction) = (divmod(time_ns, _NS_PER_S) for time_ns in (now.time_ns, one.time_ns))
    return second == listed and (rest == fraction or 0 in (rest, fraction))


def _found(info: fs.FileInfo, known: Mapping[str, Found]) -> Found:
    name, size, time_ns = info.base_name, info.size, info.mtime_ns or 0
    before = known.get(name)
    if before is not None and before.size == size and before.time_ns == time_ns:
        return before
    return Found(time_ns, name, size)
