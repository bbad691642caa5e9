"""What streams give back: results and metrics."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from fastwin.windows import MIN_TIMESTAMP

__all__ = ["Metrics", "Result"]


@dataclass(frozen=True)
class Result:
    """What a call has produced.

    main: key columns, ``window_start``, ``window_end`` (timestamp[ms, UTC]) and the aggregates.
    late: elements that no window takes any more, with the input's columns; empty unless asked for.
    bad: rows without a usable timestamp, with the input's columns and ``bad_reason``; empty unless diverted.
    side: the side outputs that the spec declares, by tag.
    """

    main: pa.Table
    late: pa.Table
    bad: pa.Table
    side: dict[str, pa.Table] = field(default_factory=dict)


@dataclass(frozen=True)
class Metrics:
    """Counters of a stream since it was opened, and its state as it stands.

    events: rows taken in, bad ones included. bad: rows without a usable timestamp.
    num_late_records_dropped: Flink's counter: late elements, unless they are handed out; ``late`` counts those.
    unassigned: elements in time that no window covers. fired: result rows. open_windows: (key, window) pairs
    with contents. state_rows, state_bytes: rows held and bytes allocated. watermark: ms, int64 min for none yet.
    unfired: (key, window) pairs whose contents went without ever firing. timers: registered ones; the aligned operator
    needs none. processing_time: the clock, ms.
    """

    events: int = 0
    bad: int = 0
    late: int = 0
    num_late_records_dropped: int = 0
    unassigned: int = 0
    fired: int = 0
    open_windows: int = 0
    state_rows: int = 0
    state_bytes: int = 0
    watermark: int = MIN_TIMESTAMP
    unfired: int = 0
    timers: int = 0
    processing_time: int = 0
