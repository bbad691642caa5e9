"""Marks: which watermark each of a query's last micro-batches had, as Spark's own log of them tells."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Mark", "Marks", "marks_in"]


@dataclass(frozen=True)
class Mark:
    """A micro-batch: its number, when it began by the clock, ms, and its watermark, ms; None: there was none yet."""

    batch: int
    time_ms: int
    watermark: int | None


@dataclass(frozen=True)
class Marks:
    """The micro-batches that the checkpoint still tells of, the oldest first."""

    marks: tuple[Mark, ...]

    def first_past(self, watermark: int) -> tuple[Mark | None, Mark] | None:
        """Returns the first micro-batch whose watermark is at least so far, and the one before it.

        None: the watermark is not so far yet, or none is known. Nothing before it: the checkpoint does not tell whether
        an older one was that far.
        """
        before = None
        for mark in self.marks:
            if mark.watermark is not None and mark.watermark >= watermark:
                return (None, mark) if before is None and mark.batch > 0 else (before, mark)
            before = mark
        return None


def marks_in(texts: Iterable[tuple[str, str]], last: int) -> Marks:
    """Returns what files of Spark's log of offsets tell. texts: their paths and contents. last: the last batch."""
    found = []
    for path, text in texts:
        name = path.rpartition("/")[2]
        if not name.isdigit() or int(name) > last:
            continue
        for line in text.splitlines():
            told = json.loads(line) if line.startswith("{") else {}
            if "batchWatermarkMs" in told:
                found.append(Mark(int(name), told.get("batchTimestampMs", 0), told["batchWatermarkMs"] or None))
                break
    return Marks(tuple(sorted(found, key=lambda mark: mark.batch)))
