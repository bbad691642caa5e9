"""The files of a folder as a stream: which ones are new, which a micro-batch takes, and what its offset says of them.

An offset names the files of its micro-batch, so one that runs again reads the same ones. A file is told from others by
its name, size and time of change. Files up to ``late_ms`` older than the newest one read may still come: of those that
were there, an offset says one by one which have been read. All that are older count as read, but for those that it
names: they have been seen, and could not be read so far. It also has the count and a sum of the old ones that were
there, so that a query that starts can tell whether others have come. What is old never becomes young again. Of a file
that was read and is gone, which may be put back, the offset has the token until all that was read by then is old.

A time that is still to come says nothing of when others come: the newest file counts as no newer than the clock says.
What was read and has such a time is in the offset with it, so that it stays known until that time is old.
"""

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from fastwin.errors import SourceError
from spark_glue.sources.folder import READERS, SUM_BITS, Folder, Found, at_once, in_a_line, is_not_whole, row_groups

__all__ = ["Limits", "Listing", "Offset", "files_of", "first_offset"]

Offset = dict[str, Any]

_LOG = logging.getLogger(__name__)
_MOST_UNREAD = 1_000
"""Old files that an offset names at most."""
_NS_PER_MS = 1_000_000
_NEEDED = {"files", "newest", "oldest", "seen", "unread", "old"}
"""What every offset has, also those of earlier versions."""


def first_offset() -> Offset:
    """Returns the offset of a stream that has taken nothing."""
    return {
        "at": 0, "files": [], "newest": None, "oldest": None,
        "seen": [], "ahead": [], "gone": [], "unread": [], "old": [0, 0],
    }  # fmt: skip


def files_of(offset: Mapping[str, Any]) -> list[Found]:
    """Returns the files of the micro-batch that ends at an offset."""
    return [Found(time_ns, name, size) for name, size, time_ns in offset["files"]]


@dataclass(frozen=True)
class Limits:
    """What a stream of files goes by.

    max_files, max_rows: of a micro-batch, which takes one file at least; None: any number. late_ms: how much older
    than the newest one taken a file may be when it is first seen. unreadable_ms: how long after its last change a file
    may be no whole Parquet file; None: for any time.
    """

    max_files: int | None
    max_rows: int | None
    late_ms: int
    unreadable_ms: int | None = None


class Listing:
    """What the driver knows of a folder while a query runs."""

    def __init__(self, folder: Folder, limits: Limits) -> None:
        self._folder = folder
        self._limits = limits
        self._late_ns = limits.late_ms * _NS_PER_MS
        self._fixed: list[Found] | None = None
        self._quiet: tuple[Offset, list[Found]] | None = None  # the last offset and listing, where nothing was new
        self._old: set[Found] | None = None  # read, and too old for an offset to say so
        self._sum = 0  # of their numbers
        self._away = (0, 0)  # how many of them a start did not find, and the sum of their numbers
        self._groups: dict[Found, tuple[int, ...]] = {}
        self._told: dict[str, bool] = {}  # files that were not whole, and whether they have been told to be old ones

    def fix(self) -> None:
        """Takes what is there now for all there will be."""
        self._fixed = self._folder.found()

    def check(self, offset: Any) -> None:
        """Raises SourceError for an offset of a checkpoint that another source has made."""
        if not isinstance(offset, Mapping) or not offset.keys() >= _NEEDED:
            said = str(offset)
            raise SourceError(
                f"{self._folder.shown}: the checkpoint was made with another source, such as spark.readStream.parquet: "
                f"its offset is {said if len(said) < 80 else said[:80] + '...'}; go on with that source, or begin with "
                f"an empty checkpoint"
            )

    def next(self, start: Offset, unlimited: bool = False) -> Offset:
        """Returns the offset behind the next micro-batch; ``start`` itself if there is nothing new.

        Raises SourceError for a file that came too late to be told from those that have been read, for one that has
        been unreadable for too long, for more of them than an offset can name, and for an offset of another source.
        """
        self.check(start)
        listed = self._folder.found() if self._fixed is None else self._fixed
        if self._quiet == (start, listed):
            return start
        fresh = self._fresh(start, listed)
        self._groups = {one: self._groups[one] for one in fresh if one in self._groups}
        taken = self._taken(fresh, unlimited)
        self._quiet = None if fresh else (start, listed)
        if not taken:
            return start
        now = time.time_ns()
        newest = min(max([one.time_ns for one in taken] + [start["newest"] or 0]), now)
        waiting = set(fresh).difference(taken)
        known = [one for one in listed if one not in waiting]
        oldest = newest - self._late_ns
        if start["oldest"] is not None:  # late_files= may have been less
            oldest = max(oldest, start["oldest"])
        old = self._grow_old({one for one in known if one.time_ns < oldest})
        young = [one for one in known if one not in old]
        return {
            "at": now // _NS_PER_MS,
            "files": _as_told(taken),
            "newest": newest,
            "oldest": oldest,
            "seen": [one.token for one in young if one.time_ns <= newest],
            "ahead": [[one.time_ns, [one.token]] for one in young if one.time_ns > newest],
            "gone": _gone(start, listed, oldest),
            "unread": _as_told(self._unread([one for one in fresh if one in waiting and one.time_ns < oldest])),
            "old": [len(old), self._sum],
        }

    def _grow_old(self, old: set[Found]) -> set[Found]:
        before = self._old or set()
        self._sum = (self._sum + _sum_of(old - before) - _sum_of(before - old)) % (1 << SUM_BITS)
        self._old = old
        return old

    def _unread(self, files: list[Found]) -> list[Found]:
        """Tells of old files that are not read yet, once of each; returns them."""
        for one in files:
            if self._told.get(one.name) is False:
                self._told[one.name] = True
                _LOG.warning(
                    "%s: %s is no whole Parquet file yet, and older than the newest file read by %s s; it is read when "
                    "it is whole",
                    self._folder.shown,
                    one.name,
                    f"{self._late_ns / 1e9:,.0f}",
                )
        if len(files) > _MOST_UNREAD:
            raise SourceError(
                f"{self._folder.shown}: {len(files):,} files are older than the newest one read by more than "
                f"{self._late_ns / 1e9:,.0f} s and are not read yet, {files[0].name!r} for one; {_MOST_UNREAD:,} at "
                f"most are remembered: remove those that are no whole Parquet files"
            )
        return files

    def _fresh(self, start: Offset, listed: Sequence[Found]) -> list[Found]:
        """Returns what a stream has not taken yet."""
        oldest = start["oldest"]
        if oldest is None:
            return list(listed)
        gone = _tokens(start.get("gone", []))
        seen = gone.union(start["seen"], _tokens(start.get("ahead", [])))
        unread = {name for name, _, _ in start["unread"]}
        old = {one for one in listed if one.time_ns < oldest and one.name not in unread}
        if gone:  # a token costs more than all else here
            old = {one for one in old if one.token not in gone}
        if self._old is None:
            self._check_old(old, oldest, *start["old"])
            self._grow_old(old)
        elif lost := old - self._old:
            if (len(lost), _sum_of(lost)) != self._away:  # else a mount was missing, and all of it is there again
                raise SourceError(self._too_late(min(lost).name, oldest))
            self._grow_old(old)
        return [one for one in listed if (one.name in unread if one.time_ns < oldest else one.token not in seen)]

    def _check_old(self, old: set[Found], oldest: int, count: int, total: int) -> None:
        """Compares the old files with those that there were, of which a query that starts knows their count and sum.

        Raises SourceError where there are others among them for sure.
        """
        more = (_sum_of(old) - total) % (1 << SUM_BITS)
        if len(old) == count and not more:
            return
        if named := [one.name for one in old if one.number == more]:
            raise SourceError(self._too_late(named[0], oldest))
        said = (
            f"{self._folder.shown}: of files that are older than the newest one read by more than "
            f"{self._late_ns / 1e9:,.0f} s there were {count:,}, and there are {len(old):,}"
        )
        if len(old) > count:
            raise SourceError(
                f"{said}, so some have come since the query ran, too late to be told from those that it has read; "
                f"{_advice(True, oldest)}"
            )
        self._away = count - len(old), -more % (1 << SUM_BITS)
        _LOG.warning("%s; if others have come among them since the query ran, they are not read", said)

    def _too_late(self, name: str, oldest: int) -> str:
        return (
            f"{self._folder.shown}: the file {name!r} has come more than {self._late_ns / 1e9:,.0f} s later than its "
            f"time of change says (the newest file read is so much newer), and is not read; "
            f"{_advice(False, oldest)}"
        )

    def _taken(self, fresh: Sequence[Found], unlimited: bool) -> list[Found]:
        most_files = len(fresh) if unlimited or self._limits.max_files is None else self._limits.max_files
        most_rows = None if unlimited else self._limits.max_rows
        most_looks = len(fresh) if most_rows is None else READERS
        taken: list[Found] = []
        rows = 0
        at = 0
        while len(taken) < most_files and at < len(fresh):
            block = fresh[at : at + min(most_files - len(taken), most_looks)]
            at += len(block)
            found = list(zip(block, at_once(self._look_into, block), strict=True))
            self._groups |= {one: groups for one, groups in found if groups is not None}
            for one, groups in found:
                if groups is None:
                    continue
                rows += sum(groups)
                if taken and most_rows is not None and rows > most_rows:
                    return taken
                taken.append(one)
        return taken

    def row_groups_of(self, files: Sequence[Found]) -> list[tuple[int, ...]]:
        """Returns how many rows each row group has, of the files of a micro-batch, which may run again.

        Raises SourceError for a file that is not what it was, or not whole.
        """
        unknown = [one for one in files if one not in self._groups]
        self._groups |= zip(unknown, at_once(self._folder.row_groups_of, unknown), strict=True)
        return [self._groups[one] for one in files]

    def _look_into(self, one: Found) -> tuple[int, ...] | None:
        """Returns how many rows each row group of a file has; None: it is left for later.

        So is a file that is no longer what was listed: an offset that named it could never be read.
        """
        groups = self._groups.get(one)
        try:
            if groups is None:
                with self._folder.open(one.name) as file:
                    groups = row_groups(file)
        except FileNotFoundError:
            return None
        except (pa.ArrowInvalid, OSError) as problem:
            if not is_not_whole(problem):
                raise
            if self._folder.is_same(one):
                self._leave(one, problem)
            return None
        return groups if self._folder.is_same(one) else None  # asked last: so what was read was that file's, too

    def _leave(self, one: Found, problem: Exception) -> None:
        """Leaves a file for later that is not whole. Raises SourceError if it has not been for too long."""
        age_ms, most_ms = (time.time_ns() - one.time_ns) // _NS_PER_MS, self._limits.unreadable_ms
        if most_ms is not None and age_ms > most_ms:
            raise SourceError(
                f"{self._folder.shown}/{one.name}: it is no whole Parquet file, {age_ms / 1e3:,.0f} s after its last "
                f"change, and unreadable_after= allows {most_ms / 1e3:,.0f} s: {in_a_line(problem)}; put it whole, or "
                f"remove it"
            ) from problem
        if one.name not in self._told:
            self._told[one.name] = False
            _LOG.warning("%s: %s is left for later: %s", self._folder.shown, one.name, problem)


def _advice(several: bool, oldest: int) -> str:
    """Returns what to do for a file, or several, that came too late. oldest: what is older is too late, ns."""
    if oldest > time.time_ns():  # so no time that a file can get now would do
        return "the newest file's time is still to come, or the clock has been set back: begin with an empty checkpoint"
    times, which, them = (
        ("their times", "if some were read, had gone and were put back, take these", "them")
        if several
        else ("its time", "if it was read, had gone and was put back, take it", "it")
    )
    return (
        f"change {times} (touch) before the query starts again, and give late_files= more; or, {which} away again: "
        f"touching {them} would read {them} twice"
    )


def _sum_of(files: Iterable[Found]) -> int:
    return sum(one.number for one in files) % (1 << SUM_BITS)


def _tokens(told: Sequence[Sequence[Any]]) -> set[str]:
    """Returns all tokens of ``[[time, tokens]]``."""
    return {token for _, tokens in told for token in tokens}


def _gone(start: Offset, listed: Sequence[Found], oldest: int) -> list[list[Any]]:
    """Returns the tokens of files that were read and are gone: ``[[time, tokens]]``, each file no newer than its time,
    ns. Those of which all are old are left out.

    listed: what is there. An offset may have been written when such files were forgotten.
    """
    gone, before = start.get("gone", []), start["oldest"]
    told = [*gone, *start.get("ahead", []), [start["newest"] or 0, start["seen"]]]
    # What was seen and is young is no older than that, so it needs no tokens of what is.
    there = {one.token for one in listed if gone or before is None or one.time_ns >= before}
    kept = [[time_ns, [token for token in tokens if token not in there]] for time_ns, tokens in told]
    return [[time_ns, tokens] for time_ns, tokens in kept if tokens and time_ns >= oldest]


def _as_told(files: Sequence[Found]) -> list[list[Any]]:
    return [[one.name, one.size, one.time_ns] for one in files]
