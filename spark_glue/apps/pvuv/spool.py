"""Logs that grow, as files for Spark: complete lines are copied as they come, also over a rotation and a restart.

Spark's source of files reads each file once, as it finds it. So the lines that a log has got since the last look are
put into a file of their own. Its name says of which log they are and up to where, so a restart goes on there. A log is
known by its first lines: renamed, copied or compressed it is still the same, and truncated it is another one. One that
was begun and rotated away between two looks is told by its name and its time; those from before the first look are not
read.
"""

import glob
import gzip
import hashlib
import json
import re
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from operator import eq
from pathlib import Path
from stat import S_ISREG
from typing import IO, Any, NamedTuple

from fastwin.errors import SpecError
from fastwin.machine.files import put_whole

__all__ = ["GZIP", "UNREADABLE", "Spool", "opened"]

_FIRST_LINES = 16
_MAX_LINE = 65_536
_MAX_BYTES = 16 * 2**20
_FIRST_FILE_TIME = 1_600_000_000
_POSITIONS = "positions.json"
_CLOCK_NS = 1_000_000_000  # so far may a disk's time of change be behind the clock
_ROTATED = re.compile(r"(\.\d+|[-._]\d{4}[-._:T\d]{2,})(\.gz)?")  # between or behind the parts of a log's name
GZIP = b"\x1f\x8b"
UNREADABLE = (OSError, EOFError, zlib.error)
"""What reading a file that ``opened`` returns may raise."""

_DAMAGED = (EOFError, gzip.BadGzipFile, zlib.error)  # of these, what a gzip raises that is cut off or damaged


def opened(path: Path) -> Any:
    """Opens a log for reading bytes; gzip is told by its first ones."""
    raw: Any = path.open("rb")
    return gzip.GzipFile(fileobj=raw) if raw.peek(2)[:2] == GZIP else raw


class _Mark(NamedTuple):
    """What the disk tells of a file: while it is the same, nothing has been written."""

    inode: int
    size: int
    changed_ns: int


class Spool:
    """What was read of a log, or of the logs in a folder. source: their path. folder: of the copies; may be filled.

    lines: in a copy, at most. Complete lines alone are copied while a log may still grow. say: tells a line.
    """

    def __init__(self, source: Path, folder: Path, lines: int, say: Callable[[str], None] = print) -> None:
        self._source, self._folder, self._lines, self._say = source, folder, lines, say
        folder.mkdir(parents=True, exist_ok=True)
        self._state = folder.parent / _POSITIONS
        self._positions: dict[str, int] = {}
        self._begins: dict[str, list[str]] = {}
        self._seen: dict[Path, _Mark] = {}
        self._cut: Counter[_Mark] = Counter()
        self._ragged: set[Path] = set()  # renamed, and with a last line that has no end
        self._looked_ns: int | None = None  # when the last whole look has begun; None: there was none
        self._next = self._restored() if self._state.exists() else 0
        if self._take_names():
            self._note()

    def _restored(self) -> int:
        """Takes what an earlier run has noted of its logs; returns the number of the next copy."""
        try:
            for log, told in json.loads(self._state.read_text(encoding="utf-8")).items():
                end, *begin = told if isinstance(told, list) else [told]
                self._positions[log], self._begins[log] = int(end), [str(mark) for mark in begin]
            looked = self._begins.pop("", [])  # earlier versions did not note it
            self._looked_ns = int(looked[0]) if looked else self._state.stat().st_mtime_ns
        except (OSError, ValueError, TypeError, AttributeError) as problem:
            raise SpecError(
                f"--out: {self._state} is damaged, and without it nobody knows up to where the logs were read: "
                f"{problem}; begin anew with another folder and an empty store"
            ) from None
        return self._positions.pop("", 0)

    def _take_names(self) -> bool:
        """Takes what the names of the copies tell; returns whether that is more than was noted."""
        noted = self._positions.copy()
        for name in sorted(path.stem for path in self._folder.glob("*.log")):
            number, log, end = name.split("-")
            self._next = max(self._next, int(number) + 1)
            self._positions[log] = max(self._positions.get(log, 0), int(end))
        return self._positions != noted

    def look(self) -> int:
        """Copies the lines that have come since the last look; returns how many.

        A gzip that is not the source itself may be cut off, because it is just being written: it is looked at again
        when it has changed. Raises SpecError for a log that is damaged itself, and where a copy cannot be written.
        """
        copied, begun = 0, time.time_ns()
        first = self._looked_ns is None
        if self._looked_ns is None:  # what is older was never followed, also for who goes on with half of this look
            self._looked_ns = begun
        for path, mark in self._logs():
            unchanged = self._seen.get(path) == mark
            if unchanged and path not in self._ragged:
                continue
            self._ragged.discard(path)
            try:
                for lines in self._look_at(path, mark, unchanged):
                    copied += lines
            except FileNotFoundError:
                continue  # renamed between two looks
            except UNREADABLE as problem:
                if path == self._source or not isinstance(problem, _DAMAGED):
                    raise SpecError(f"ACCESS_LOG: {path} cannot be read: {problem}") from None
                self._cut[mark] += 1
                if self._cut[mark] == 1:
                    continue
                if self._cut[mark] == 2:  # nothing was written between two looks
                    self._say(f"{path}: the gzip is cut off or damaged: {problem}; it is read on when it has changed")
            self._seen[path] = mark
        self._looked_ns = max(self._looked_ns, begun - _CLOCK_NS)
        if first:
            self._note()
        return copied

    def settle(self) -> None:
        """Notes the copies that are there, also one behind which a look was broken off: Spark deletes what it reads."""
        self._take_names()
        self._note()

    def take(self, file: IO[bytes]) -> int:
        """Copies all of a stream that ends; returns the number of its lines."""
        return sum(self._copied(file, "stream", 0, whole=True))

    def _logs(self) -> list[tuple[Path, _Mark]]:
        """Returns the logs to look at, the oldest first: those of the folder, or the one and what it was before."""
        if self._source.is_dir():
            found = _files(path for path in self._source.iterdir() if path.name[0] not in "._")
        else:
            # access.log.1 as well as access-20240101.log.
            named = self._source.parent.glob(f"{glob.escape(self._source.stem)}*")
            siblings = _files(path for path in named if path != self._source and self._was_renamed(path))
            own = _files([self._source])
            same = {mark.inode for _, mark in own}  # a link to the one that is written
            ours = [(path, mark) for path, mark in siblings if mark.inode not in same and self._is_ours(path, mark)]
            found = ours + own
        return sorted(found, key=lambda one: (one[0] == self._source, one[1].changed_ns, one[0].name))

    def _is_ours(self, path: Path, mark: _Mark) -> bool:
        """Whether a log has been looked at before, or was begun and rotated away since the last look.

        One that may not be read counts as not, since nobody can tell.
        """
        with suppress(OSError):
            if self._log_of(begin := _begin(path)) is not None:
                return True
            assert self._looked_ns is not None
            return bool(begin) and mark.changed_ns > self._looked_ns and self._is_rotated(path.name)
        return False

    def _was_renamed(self, path: Path) -> bool:
        """Whether a log may be the rest of the one: access-ssl.log beside access.log is another one."""
        name, rest = self._source.name, path.name[len(self._source.stem) :]
        return path.name.startswith(name) or any(map(str.isdigit, rest))

    def _is_rotated(self, name: str) -> bool:
        """Whether a log has a name that a rotation gives: access2.log and access.log.pos are others' files."""
        one = self._source
        rests = [name.removeprefix(one.name)]
        if one.suffix:
            rests.append(name.removeprefix(one.stem).replace(one.suffix, "", 1))
        return any(_ROTATED.fullmatch(rest) for rest in rests)

    def _look_at(self, path: Path, mark: _Mark, unchanged: bool) -> Iterator[int]:
        """Copies what a log has got; yields how many lines each copy has. unchanged: since the look before."""
        begin = _begin(path)
        if not begin:
            return
        log = self._log_of(begin) or self._new_log(begin[0])
        self._begins[log] = max(begin, self._begins.get(log, []), key=len)
        with opened(path) as file:
            # What is compressed gets no further lines. What was renamed does, until its writer opens the new one.
            renamed = path != self._source and not self._source.is_dir()
            whole = isinstance(file, gzip.GzipFile) or (renamed and unchanged)
            start = self._positions.get(log, 0)
            file.seek(start)
            yield from self._copied(file, log, start, whole)
            if renamed and not whole and self._positions.get(log, 0) < mark.size:
                self._ragged.add(path)

    def _log_of(self, begin: list[str]) -> str | None:
        """Returns the log that begins so, as far as both are there; None if none is known."""
        for log in self._positions:
            known = self._begins.get(log) or [log.partition(".")[0]]
            if begin and all(map(eq, known, begin)):
                return log
        return None

    def _new_log(self, first: str) -> str:
        """Returns a name for a log with this first line: a number is behind it where others have the same."""
        name, others = first, 0
        while name in self._positions:
            others += 1
            name = f"{first}.{others}"
        return name

    def _copied(self, file: IO[bytes], log: str, at: int, whole: bool) -> Iterator[int]:
        """Puts the lines of a file, from where it is, into copies; yields how many each has."""
        lines: list[bytes] = []
        size = 0
        for line in file:
            ended = line.endswith(b"\n")
            if not (ended or whole):
                break
            size += len(line)
            lines.append(line if ended else line + b"\n")
            if len(lines) == self._lines or size >= _MAX_BYTES:
                at += size
                yield self._put(lines, log, at)
                lines, size = [], 0
        if lines:
            yield self._put(lines, log, at + size)

    def _put(self, lines: list[bytes], log: str, end: int) -> int:
        copy = self._folder / f"{self._next:08d}-{log}-{end}.log"
        self._write(copy, b"".join(lines), _FIRST_FILE_TIME + self._next)  # Spark takes the oldest first
        self._next += 1
        self._positions[log] = end
        self._note()
        return len(lines)

    def _note(self) -> None:
        """Writes up to where each log was read."""
        told = {name: [at, *self._begins.get(name, [])] for name, at in self._positions.items()}
        looked = [] if self._looked_ns is None else [str(self._looked_ns)]
        self._write(self._state, json.dumps({**told, "": [self._next, *looked]}).encode())

    def _write(self, path: Path, data: bytes, seconds: float | None = None) -> None:
        """Puts a file in place as a whole. Raises SpecError where that cannot be done."""
        try:
            put_whole(path, data, self._folder.parent / "part.tmp", seconds)
        except OSError as problem:
            raise SpecError(f"--out: {path} cannot be written: {problem}") from None


def _files(paths: Iterable[Path]) -> list[tuple[Path, _Mark]]:
    """Returns the plain files among paths, with what the disk tells of each; those that are gone are left out."""
    found = []
    for path in paths:
        try:
            told = path.stat()
        except FileNotFoundError:
            continue
        except OSError as problem:
            raise SpecError(f"ACCESS_LOG: {path} cannot be read: {problem}") from problem
        if S_ISREG(told.st_mode):
            found.append((path, _Mark(told.st_ino, told.st_size, told.st_mtime_ns)))
    return found


def _begin(path: Path) -> list[str]:
    """Returns what tells a log from others: a digest of its first line, of its first two, and so on; complete ones.

    Raises OSError for one that cannot be read.
    """
    marks: list[str] = []
    digest = hashlib.sha256()
    with suppress(*_DAMAGED), opened(path) as file:
        for line in iter(lambda: file.readline(_MAX_LINE), b""):
            whole = line.endswith(b"\n") or len(line) == _MAX_LINE or isinstance(file, gzip.GzipFile)
            if not whole or len(marks) == _FIRST_LINES:
                break
            digest.update(line.rstrip(b"\n"))
            marks.append(digest.hexdigest()[:16])
            digest.update(b"\n")
    return marks
