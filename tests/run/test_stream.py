"""A stream's life: watermarks, bad rows, late rows, metrics."""

import time

import numpy as np
import pyarrow as pa
import pytest

import fastwin as fw
from tests.support.streams import BASE, COUNT, rows, table

# --- watermarks ---


def test_window_fires_when_the_watermark_reaches_its_last_millisecond() -> None:
    stream = COUNT.open()
    assert stream.watermark == fw.MIN_TIMESTAMP
    stream.process(table(("a", 0, 1), ("a", 9, 1), ("a", 10, 1)))
    assert rows(stream.advance_watermark(8)) == []
    assert rows(stream.advance_watermark(9)) == [("a", 0, 10, 2)]
    assert stream.watermark == 9
    assert rows(stream.advance_watermark(fw.MAX_TIMESTAMP)) == [("a", 10, 20, 1)]


def test_watermark_never_goes_back() -> None:
    stream = COUNT.open()
    stream.process(table(("a", 25, 1)))
    stream.advance_watermark(20)
    assert rows(stream.advance_watermark(5)) == []
    assert stream.watermark == 20
    stream.process(table(("a", 5, 1)))
    assert stream.metrics.num_late_records_dropped == 1


def test_watermark_before_the_first_batch_counts() -> None:
    stream = COUNT.open()
    assert stream.advance_watermark(15).main.num_rows == 0
    assert stream.watermark == stream.metrics.watermark == 15
    stream.process(table(("a", 5, 1), ("a", 10, 1)))
    assert stream.metrics.num_late_records_dropped == 1
    assert rows(stream.advance_watermark(19)) == [("a", 10, 20, 1)]


@pytest.mark.parametrize(("delay", "watermark"), [("monotonous", 24), (0, 24), ("5 ms", 19), (25, -1)])
def test_watermark_follows_the_data(delay: str | int, watermark: int) -> None:
    """max - delay - 1, as Flink's bounded out-of-orderness has it."""
    stream = COUNT.open(watermark=delay)
    stream.process(table(("a", 25, 1), ("b", 3, 1)))
    assert stream.watermark == watermark
    stream.process(table(("a", 7, 1)))
    assert stream.watermark == watermark
    stream.process(table())
    assert stream.watermark == watermark


def test_elements_of_a_batch_are_judged_by_the_watermark_before_it() -> None:
    stream = COUNT.open(watermark="monotonous")
    first = stream.process(table(("a", 100, 1), ("a", 5, 1)))
    assert rows(first) == [("a", 0, 10, 1)]
    stream.process(table(("a", 5, 1)))
    assert stream.metrics.num_late_records_dropped == 1


def test_bad_rows_move_no_watermark() -> None:
    stream = BASE.bad_rows("drop").aggregate(n=fw.Count()).open(watermark=0)
    stream.process(table(("a", 5, 1), ("a", 2**62, 1), ("a", None, 1)))
    assert stream.watermark == 4
    stream.process(table(("a", None, 1)))
    assert stream.watermark == 4


def test_numpy_watermark() -> None:
    stream = COUNT.open()
    stream.advance_watermark(np.int64(5))
    assert stream.watermark == 5
    assert type(stream.watermark) is int


# --- bad rows ---


def test_raise_leaves_the_stream_as_it_was() -> None:
    stream = COUNT.open()
    stream.process(table(("a", 1, 1)))
    before = stream.metrics
    with pytest.raises(fw.BadRowError):
        stream.process(pa.concat_tables([table(("a", 2, 1)), table(("a", None, 1))]))
    assert stream.metrics == before
    assert rows(stream.advance_watermark(fw.MAX_TIMESTAMP)) == [("a", 0, 10, 1)]


@pytest.mark.parametrize("take", ["process", "push"])
def test_a_first_call_that_is_refused_settles_no_types(take: str) -> None:
    stream = COUNT.open()
    bad = {"k": None, "t": None, "v": None}
    with pytest.raises(fw.BadRowError):
        stream.push(bad) if take == "push" else stream.process(pa.Table.from_pylist([bad]))
    stream.push({"k": "a", "t": 5, "v": 1})
    assert stream.advance_watermark(fw.MAX_TIMESTAMP).main["n"].to_pylist() == [1]
    assert stream.metrics.events == 1


def test_a_later_call_that_is_refused_leaves_the_types() -> None:
    stream = COUNT.open()
    stream.push({"k": "a", "t": 5, "v": 1})
    with pytest.raises(fw.BadRowError):
        stream.push({"k": "a", "t": None, "v": None})
    assert stream.advance_watermark(fw.MAX_TIMESTAMP).main["n"].to_pylist() == [1]


def test_divert_hands_bad_rows_out() -> None:
    stream = BASE.bad_rows("divert").aggregate(n=fw.Count()).open()
    result = stream.process(table(("a", None, 7), ("b", 1, 8), ("c", 2**62, 9)))
    assert result.bad.to_pylist() == [
        {"k": "a", "t": None, "v": 7, "bad_reason": "null timestamp"},
        {"k": "c", "t": 2**62, "v": 9, "bad_reason": f"timestamp outside +-{2**61} ms"},
    ]
    assert (stream.metrics.events, stream.metrics.bad) == (3, 2)
    assert rows(stream.advance_watermark(fw.MAX_TIMESTAMP)) == [("b", 0, 10, 1)]


def test_drop_counts_bad_rows() -> None:
    stream = BASE.bad_rows("drop").aggregate(n=fw.Count()).open()
    result = stream.process(table(("a", None, 7), ("b", 1, 8)))
    assert result.bad.num_rows == 0
    assert (stream.metrics.events, stream.metrics.bad) == (2, 1)


def test_rows_far_ahead_of_the_clock() -> None:
    now = int(time.time() * 1_000)
    stream = BASE.bad_rows("divert").aggregate(n=fw.Count()).open(max_future_skew="1 hour")
    result = stream.process(table(("a", now, 1), ("b", now + 10_000, 1), ("c", now + 7_200_000, 1)))
    assert result.bad["k"].to_pylist() == ["c"]
    assert result.bad["bad_reason"].to_pylist() == ["timestamp further ahead of the clock than max_future_skew"]
    with pytest.raises(fw.BadRowError, match="max_future_skew"):
        COUNT.open(max_future_skew=0).process(table(("c", now + 7_200_000, 1)))


# --- late rows ---


def test_late_rows_keep_the_input() -> None:
    spec = BASE.side_output_late_data().aggregate(n=fw.Count())
    stream = spec.open()
    stream.advance_watermark(9)
    frame = pa.table({"extra": [[1], [2], None], "t": [9, 10, 0], "k": ["a", "b", None]})
    result = stream.process(frame)
    assert result.late.to_pylist() == frame.take([0, 2]).to_pylist()
    assert result.late.schema == frame.schema
    assert (stream.metrics.late, stream.metrics.num_late_records_dropped) == (2, 0)


def test_late_rows_are_counted_where_nobody_wants_them() -> None:
    stream = COUNT.open()
    stream.advance_watermark(9)
    result = stream.process(table(("a", 9, 1), ("a", 10, 1)))
    assert result.late.num_rows == 0
    assert (stream.metrics.late, stream.metrics.num_late_records_dropped) == (0, 1)


def test_lateness_ends_with_its_last_millisecond() -> None:
    spec = BASE.allowed_lateness(5).aggregate(n=fw.Count())
    for watermark, kept in [(13, True), (14, False)]:
        stream = spec.open()
        stream.process(table(("a", 1, 1)))
        assert len(rows(stream.advance_watermark(watermark))) == 1
        assert rows(stream.process(table(("a", 2, 1)))) == ([("a", 0, 10, 2)] if kept else [])
        assert stream.metrics.num_late_records_dropped == (not kept)


def test_each_late_element_fires_unless_coalesced() -> None:
    for coalesce, wanted in [(None, [2, 3, 4]), (False, [2, 3, 4]), (True, [4])]:
        stream = BASE.allowed_lateness(50, coalesce=coalesce).aggregate(n=fw.Count()).open()
        stream.process(table(("a", 1, 1)))
        stream.advance_watermark(9)
        found = rows(stream.process(table(("a", 2, 1), ("a", 3, 1), ("a", 4, 1))))
        assert [row[-1] for row in found] == wanted


def test_coalesced_late_firings_come_by_window_end() -> None:
    spec = fw.key_by("k").event_time("t").window(fw.SlidingEventTimeWindows.of(20, 10))
    spec = spec.allowed_lateness(500, coalesce=True).aggregate(n=fw.Count())
    stream = spec.open()
    stream.advance_watermark(100)
    found = rows(stream.process(table(("b", 45, 1), ("a", 5, 1), ("b", 6, 1))))
    assert [row[2] for row in found] == [10, 10, 20, 20, 50, 60]
    assert sorted(found) == [
        ("a", -10, 10, 1),
        ("a", 0, 20, 1),
        ("b", -10, 10, 1),
        ("b", 0, 20, 1),
        ("b", 30, 50, 1),
        ("b", 40, 60, 1),
    ]


# --- metrics ---


def test_metrics_before_anything() -> None:
    assert COUNT.open().metrics == fw.Metrics()


def test_metrics_say_what_has_happened() -> None:
    spec = fw.key_by("k").event_time("t").window(fw.SlidingEventTimeWindows.of(5, 10)).bad_rows("drop")
    stream = spec.aggregate(n=fw.Count()).open()
    stream.process(table(("a", 1, 1), ("a", 7, 1), ("b", 2, 1), ("b", None, 1)))
    found = stream.metrics
    assert (found.events, found.bad, found.unassigned, found.open_windows, found.state_rows) == (4, 1, 1, 2, 2)
    assert found.state_bytes > 0
    stream.advance_watermark(20)
    stream.process(table(("a", 3, 1), ("a", 18, 1), ("a", 28, 1)))
    found = stream.metrics
    assert (found.fired, found.num_late_records_dropped, found.unassigned, found.open_windows) == (2, 2, 2, 0)


def test_state_is_given_back() -> None:
    stream = COUNT.open()
    keys = pa.array([f"key {i}" for i in range(100_000)])
    big = pa.table({"k": keys, "t": pa.array(np.full(100_000, 5))})
    stream.process(big)
    full = stream.metrics.state_bytes
    stream.advance_watermark(9)
    assert stream.metrics.state_rows == 0
    for start in range(10, 200, 10):
        stream.process(pa.table({"k": ["a"], "t": [start]}))
        stream.advance_watermark(start + 9)
    assert stream.metrics.state_bytes <= full
