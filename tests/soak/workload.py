"""What is run and disturbed: kinds of windows, and events that come in rough order, some of them late or bad.

With a late output rows travel to the state; kinds "aggregated first" have none, so that partial results do.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import fastwin as fw
from tests.support import spark_windows as windows
from tests.support.spark_events import events

__all__ = ["KINDS", "spec_of", "tables"]

_BASE = fw.key_by("k").event_time("ts")
_PLAIN = {
    "tumbling": _BASE.window(fw.TumblingEventTimeWindows.of("1 minute")),
    "sliding": _BASE.window(fw.SlidingEventTimeWindows.of("1 minute", "20 seconds")),
    "sessions": _BASE.window(fw.EventTimeSessionWindows.with_gap("20 seconds")),
}
_KEYS = 150
_FIRST = ", aggregated first"
KINDS = (*_PLAIN, *(kind + _FIRST for kind in _PLAIN), "user-written")


def spec_of(kind: str) -> fw.WindowSpec:
    """Returns the spec of a kind, with bad rows handed out, and late ones unless they are aggregated first."""
    if kind == "user-written":  # a trigger, an aggregate and a process function in Python, which fire early and late
        return windows.SPECS["user-written, with everything"].bad_rows("divert")
    kept = _PLAIN[kind.removesuffix(_FIRST)].allowed_lateness("10 seconds").bad_rows("divert")
    kept = kept if kind.endswith(_FIRST) else kept.side_output_late_data()
    return kept.aggregate(n=fw.Count(), total=fw.Sum("v"), low=fw.Min("x"))


def tables(seed: int, batches: int, rows: int = 500, keys: int = _KEYS) -> list[pa.Table]:
    """Returns the input of micro-batches. Windows fire in every one, and some rows are late."""
    rng = np.random.default_rng((seed, 1))  # of its own: with that of events, each key would have a time of its own
    table = events(seed, batches * rows, keys="string", span_ms=batches * 75_000, null_times=0.01)
    names = pa.array([f"key {key}" if key else None for key in rng.integers(0, keys, table.num_rows)])
    table = table.set_column(0, "k", names)
    jitter = rng.normal(0, 20_000, table.num_rows)
    arrival = pc.fill_null(table["ts"].cast(pa.int64()), 0).to_numpy() / 1000 + jitter
    table = table.take(pa.array(np.argsort(arrival, kind="stable")))
    return [table.slice(i * rows, rows) for i in range(batches)]
