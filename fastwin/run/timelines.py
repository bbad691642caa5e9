"""The picture of a spec over a few rows, taken one by one."""

from __future__ import annotations

from typing import Any, Literal

from fastwin.columns.tables import as_table
from fastwin.errors import SpecError
from fastwin.run.datawatermark import data_watermark
from fastwin.run.reading import mentions_column, reads_column
from fastwin.run.results import Metrics
from fastwin.run.stream import Stream
from fastwin.spec.builder import SpecBuilder
from fastwin.timeline.recorder import Recorder, Source
from fastwin.timeline.recording import Kind
from fastwin.timeline.timeline import Timeline
from fastwin.times import MAX_TIMESTAMP, MIN_TIMESTAMP, Duration

__all__ = ["is_bad", "kind_of_element", "spec_timeline"]

_MOST_ROWS = 10_000


def spec_timeline(
    spec: SpecBuilder, rows: Any, key: Any, watermark: Duration | Literal["monotonous"] | None
) -> Timeline:
    """Takes rows one by one; see ``WindowSpec.timeline``."""
    spec.check_complete()
    source = Source(spec.keys, spec.time_column, spec.time_unit)
    table = as_table(rows, mentions_column(spec), reads_column(spec))
    if table.num_rows > _MOST_ROWS:
        raise SpecError(
            f"timeline: rows: up to {_MOST_ROWS:,} are taken one by one, got {table.num_rows:,}; give the first "
            f"ones, or those of one key. run(rows).timeline(key=...) shows the windows of any number"
        )
    times = [time for _, time in source.elements(table)]
    follows, stream, recorder = data_watermark(watermark), Stream(spec), Recorder(source)
    newest = MIN_TIMESTAMP
    for number, time in enumerate(times):
        row, before = table.slice(number, 1), stream.metrics
        result = stream.process(row)
        good = None if is_bad(before, stream.metrics) else time
        if good is not None:
            recorder.arrived(row, kind_of_element(before, stream.metrics))
        recorder.fired(result.main, [None] * result.main.num_rows)
        if good is not None and follows is not None:
            newest = max(newest, good)
            _advance(stream, recorder, follows.after(newest, newest))
    _advance(stream, recorder, MAX_TIMESTAMP)
    return recorder.timeline(key)


def _advance(stream: Stream, recorder: Recorder, watermark: int) -> None:
    """Moves the watermark. What it fires before the end of a window was due at the latest then."""
    recorder.moved(watermark)
    main = stream.advance_watermark(watermark).main
    recorder.fired(main, [watermark] * main.num_rows)


def is_bad(before: Metrics, after: Metrics) -> bool:
    """Tells whether a row was a bad one, by what was counted before and after it."""
    return after.bad > before.bad


def kind_of_element(before: Metrics, after: Metrics) -> Kind:
    """Returns what became of an element, by what was counted before and after it."""
    if after.late + after.num_late_records_dropped > before.late + before.num_late_records_dropped:
        return "late"
    return "in no window" if after.unassigned > before.unassigned else "in time"
