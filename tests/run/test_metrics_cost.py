"""What it costs to read ``metrics`` after a few events, however much state there is: counted, not timed."""

import tracemalloc

import numpy as np
import pyarrow as pa
import pytest

import fastwin as fw

SCHEMA = pa.schema([("k", pa.int64()), ("t", pa.int64())])
SLIDING = fw.SlidingEventTimeWindows.of(60, 5)
NEW = 20


def stream_over(spec: fw.WindowSpec, keys: int) -> fw.Stream:
    """Returns a stream with state of so many keys, whose metrics were read."""
    stream = spec.open(schema=SCHEMA)
    feed(stream, np.arange(keys), 0)
    feed(stream, np.arange(keys), 12)
    stream.advance_watermark(1)
    assert stream.metrics.state_rows >= keys
    return stream


def feed(stream: fw.Stream, keys: np.ndarray, time: int) -> None:
    stream.process(pa.table({"k": keys, "t": np.full(len(keys), time)}, schema=SCHEMA))


def spec_of(trigger: fw.Trigger | None = None) -> fw.WindowSpec:
    spec = fw.key_by("k").event_time("t", unit="ms").window(SLIDING)
    return (spec if trigger is None else spec.trigger(trigger)).aggregate(n=fw.Count())


def test_open_sliding_windows_are_counted_by_what_is_new() -> None:
    looked = []
    for keys in (2_000, 20_000):
        stream = stream_over(spec_of(), keys)
        ends = stream._operator._open_ends
        for time in (17, 7):  # behind all rows of their keys, and between them
            feed(stream, np.arange(NEW), time)
            before, open_windows = ends.looked, stream.metrics.open_windows
            looked.append(ends.looked - before)
            assert open_windows > keys
            assert stream.metrics.open_windows == open_windows
            assert ends.looked - before == looked[-1], "rows are looked at that had been counted"
    assert looked[:2] == looked[2:]
    assert NEW <= min(looked) <= max(looked) < 20 * NEW


SPECS = {
    "AlignedOperator": spec_of(),
    "GeneralOperator": spec_of(fw.CountTrigger.of(1_000)),
    "RowsOperator": fw.key_by("k").event_time("t", unit="ms").window(SLIDING).deduplicate("last"),
}


@pytest.mark.parametrize("operator", SPECS)
def test_metrics_make_no_list_of_rows(operator: str) -> None:
    """Such a list would take four bytes a row at least."""
    keys = 20_000
    stream = stream_over(SPECS[operator], keys)
    assert type(stream._operator).__name__ == operator
    feed(stream, np.arange(NEW), 17)
    assert stream.metrics.open_windows > keys  # arrays may grow
    feed(stream, np.arange(NEW), 18)
    tracemalloc.start()
    try:
        assert stream.metrics.open_windows > keys
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < keys, f"{peak} bytes for {stream.metrics.state_rows} rows"
