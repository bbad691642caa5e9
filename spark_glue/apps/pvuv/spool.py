"""Logs that grow, as files for Spark: complete lines are copied as they come, also over a rotation and a restart.

Spark's source of files reads each file once, as it finds it. So the lines that a log has got since the last look are
put into a file of their own. Its name says of which log they are and up to where, so a restart goes on there. A log is
known by its first line: renamed or compressed it is still the same, and truncated it is another one.
"""

import gzip
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from fastwin.errors import SpecError

__all__ = ["GZIP", "Spool", "opened"]

_MAX_LINE = 65_536
_MAX_BYTES = 16 * 2**20
_FIRST_FILE_TIME = 1_600_000_000
_POSITIONS = "positions.json"
GZIP = b"\x1f\x8b"


def opened(path: Path) -> Any:
    """Opens a log for reading bytes; gzip is told by its first ones."""
    raw: Any = path.open("rb")
    return gzip.GzipFile(fileobj=raw) if raw.peek(2)[:2] == GZIP else raw


class Spool:
    """What was read of a log, or of the logs in a folder. source: their path. folder: of the copies; may be filled.

    lines: in a copy, at most. Complete lines alone are copied while a log may still grow.
    """

    def __init__(self, source: Path, folder: Path, lines: int) -> None:
        self._source, self._folder, self._lines = source, folder, lines
        folder.mkdir(parents=True, exist_ok=True)
        self._state = folder.parent / _POSITIONS
        self._positions: dict[str, int] = {}
        self._seen: dict[Path, tuple[int, ...]] = {}
        if self._state.exists():
            self._positions = json.loads(self._state.read_text(encoding="utf-8"))
        self._next = self._positions.pop("", 0)
        for name in sorted(path.stem for path in folder.glob("*.log")):
            number, log, end = name.split("-")
            self._next = max(self._next, int(number) + 1)
            self._positions[log] = max(self._positions.get(log, 0), int(end))

    def look(self) -> int:
        """Copies the lines that have come since the last look; returns how many. Raises SpecError for a damaged log."""
        copied = 0
        for path in self._logs():
            try:
                copied += self._look_at(path)
            except FileNotFoundError:
                continue  # renamed between two looks
            except (OSError, EOFError, gzip.BadGzipFile) as problem:
                raise SpecError(f"ACCESS_LOG: {path} cannot be read: {problem}") from None
        return copied

    def take(self, file: IO[bytes]) -> int:
        """Copies all of a stream that ends; returns the number of its lines."""
        return sum(self._copied(file, "stream", 0, whole=True))

    def _logs(self) -> list[Path]:
        """Returns the logs to look at, the oldest first: those of the folder, or the one and what it was before."""
        if self._source.is_dir():
            found = [path for path in self._source.iterdir() if path.is_file() and path.name[0] not in "._"]
        else:
            siblings = self._source.parent.glob(f"{self._source.name}?*")
            # Older logs that were never followed are not ours.
            found = [path for path in siblings if path.is_file() and _identity(path) in self._positions]
            found += [self._source] if self._source.exists() else []
        return sorted(found, key=lambda path: (path == self._source, path.stat().st_mtime, path.name))

    def _look_at(self, path: Path) -> int:
        told = path.stat()
        mark = (told.st_ino, told.st_size, told.st_mtime_ns)
        if self._seen.get(path) == mark:
            return 0
        log = _identity(path)
        copied = 0
        if log is not None:
            with opened(path) as file:
                # What is compressed, or was renamed, gets no further lines.
                whole = isinstance(file, gzip.GzipFile) or (path != self._source and not self._source.is_dir())
                start = self._positions.get(log, 0)
                file.seek(start)
                copied = sum(self._copied(file, log, start, whole))
        self._seen[path] = mark
        return copied

    def _copied(self, file: IO[bytes], log: str, at: int, whole: bool) -> Iterator[int]:
        """Puts the lines of a file, from where it is, into copies; yields how many each has."""
        lines: list[bytes] = []
        size = 0
        for line in file:
            if not line.endswith(b"\n"):
                if not whole:
                    break
                line += b"\n"
            lines.append(line)
            size += len(line)
            if len(lines) == self._lines or size >= _MAX_BYTES:
                at += size
                yield self._put(lines, log, at)
                lines, size = [], 0
        if lines:
            yield self._put(lines, log, at + size)

    def _put(self, lines: list[bytes], log: str, end: int) -> int:
        part = self._folder.parent / "part.tmp"
        part.write_bytes(b"".join(lines))
        os.utime(part, (_FIRST_FILE_TIME + self._next,) * 2)  # Spark takes the oldest first
        os.replace(part, self._folder / f"{self._next:08d}-{log}-{end}.log")
        self._next += 1
        self._positions[log] = end
        part.write_text(json.dumps({**self._positions, "": self._next}), encoding="utf-8")
        os.replace(part, self._state)
        return len(lines)


def _identity(path: Path) -> str | None:
    """Returns what tells a log from others; None as long as its first line is not complete."""
    with suppress(OSError, EOFError), opened(path) as file:
        line = file.readline(_MAX_LINE)
        if line.endswith(b"\n") or len(line) == _MAX_LINE or isinstance(file, gzip.GzipFile):
            return hashlib.sha256(line.rstrip(b"\n")).hexdigest()[:16] if line else None
    return None
