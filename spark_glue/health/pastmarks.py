"""What is said of a stored query's past: when its watermark passed a window, and when rows of it began to be late."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fastwin as fw
from fastwin.run.why.windowsat import are_apart
from fastwin.spec.builder import SpecBuilder
from fastwin.spec.joinending import JoinEnding
from fastwin.windows.timetext import TimeText
from spark_glue.health.records import MicroBatch, read_records
from spark_glue.state.marks import Mark, Marks

__all__ = ["PastMarks", "records_of"]


def records_of(query: Any) -> list[MicroBatch]:
    """Returns what a query tells of its last micro-batches; none of a checkpoint's path."""
    if isinstance(query, str | Path):
        return []
    return read_records([json.loads(progress.json) for progress in query.recentProgress])


@dataclass(frozen=True)
class PastMarks:
    """marks: of the micro-batches that the checkpoint tells of. records: of those that the query tells of, if any."""

    marks: Marks
    records: list[MicroBatch]
    time_text: TimeText
    spec: SpecBuilder

    def of_window(self, window: fw.WhyWindow) -> list[str]:
        """Returns by which micro-batch's watermark a window has ended, and from which one on it takes no row."""
        if window.end is None:
            return []
        ended, gone = window.end - 1, window.gone_at
        if gone is not None and gone > ended and self.marks.first_past(gone) == self.marks.first_past(ended):
            return self._passed(gone, "The watermark passed its end, and its allowed lateness,", True)
        said = self._passed(ended, "The watermark passed its end", gone == ended)
        if gone is not None and gone > ended:
            said += self._passed(gone, "The watermark passed its allowed lateness", True)
        return said

    def _passed(self, watermark: int, what: str, late_then: bool) -> list[str]:
        found = self.marks.first_past(watermark)
        if found is None:
            return []
        before, mark = found
        late = "rows of it are late" if are_apart(self.spec.assigner) else "it takes no row"
        rows = f"; {late} from that one on" if late_then else ""
        if before is None and mark.batch > 0:
            return [
                f"{what} in micro-batch {mark.batch:,} or before, the oldest one that the checkpoint tells of{rows}."
            ]
        came = "" if before is None or before.watermark is None else f" from {self.time_text.text(before.watermark)}"
        return [
            f"{what} in micro-batch {mark.batch:,}, which began at {_moment(mark)} UTC by the clock: it went{came} to "
            f"{self.time_text.text(mark.watermark or 0)}{rows}.",
            *self._mover(mark),
        ]

    def _mover(self, mark: Mark) -> list[str]:
        """Returns which row moved the watermark to where it was in a micro-batch, if the query still tells of it."""
        if isinstance(self.spec.ending, JoinEnding):
            return []
        newest = [(one.newest_ms, -one.id) for one in self.records if one.id < mark.batch and one.newest_ms is not None]
        known = {one.id for one in self.records}
        if not newest or mark.batch - 1 not in known:
            return []
        time, number = max(newest)
        row = f"A row of {self.time_text.text(time)}, or up to 1 ms later,"
        return [f"{row} in micro-batch {-number:,} moved it there."]

    def of_rows(self) -> list[str]:
        """Returns how many rows of all keys were late in the micro-batches that the query tells of."""
        late = [one for one in self.records if one.late]
        if not late:
            return []
        last = late[-1]
        at = "" if last.watermark_ms is None else f", whose watermark was {self.time_text.text(last.watermark_ms)}"
        return [
            f"In the last {len(self.records):,} micro-batches {sum(one.late for one in late):,} rows of all keys were "
            f"late, the last of them in micro-batch {last.id:,}{at}."
        ]


def _moment(mark: Mark) -> str:
    return datetime.fromtimestamp(mark.time_ms / 1_000, UTC).strftime("%Y-%m-%d %H:%M:%S")
