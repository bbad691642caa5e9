"""A stream's life: watermarks, bad rows, metrics, failure, snapshot and restore; and bounded runs."""

import random
import time

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import fastwin as fw
from fastwin import bounded
from fastwin.operators.aligned import AlignedOperator

BASE = fw.key_by("k").event_time("t").window(fw.TumblingEventTimeWindows.of(10))
COUNT = BASE.aggregate(n=fw.Count())
SUM = BASE.aggregate(s=fw.Sum("v"))


def table(*rows: tuple, names: str = "ktv") -> pa.Table:
    columns = [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in names]
    kinds = {"k": pa.string(), "t": pa.int64(), "v": pa.int64()}
    return pa.table({name: pa.array(column, kinds[name]) for name, column in zip(names, columns, strict=True)})


def rows(result: fw.Result) -> list[tuple]:
    plain = [
        column.cast(pa.int64()) if name.startswith("window_") else column
        for name, column in zip(result.main.column_names, result.main.columns, strict=True)
    ]
    return list(zip(*(column.to_pylist() for column in plain), strict=True))


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


# --- failure ---


def failed_stream() -> tuple[fw.Stream, bytes]:
    stream = SUM.open()
    stream.process(table(("a", 1, 1)))
    saved = stream.snapshot()
    stream.process(table(("a", 2, 2**62), ("a", 3, 2**62)))
    with pytest.raises(fw.AggregateOverflowError, match=r"Sum\('v'\)"):
        stream.advance_watermark(9)
    return stream, saved


def test_failed_stream_refuses_everything() -> None:
    stream, _ = failed_stream()
    for call in (
        lambda: stream.process(table(("a", 30, 1))),
        lambda: stream.advance_watermark(100),
        stream.snapshot,
        stream.delta,
    ):
        with pytest.raises(fw.StateError, match=r"failed in the middle of a batch \(AggregateOverflowError: .*restore"):
            call()


def test_failed_stream_goes_on_once_restored() -> None:
    stream, saved = failed_stream()
    with pytest.raises(fw.StateError):
        stream.restore([saved[:-1]])
    with pytest.raises(fw.StateError, match="failed in the middle"):
        stream.advance_watermark(9)
    stream.restore([saved])
    stream.process(table(("a", 2, 5)))
    assert rows(stream.advance_watermark(9)) == [("a", 0, 10, 6)]


def test_refused_input_does_not_fail_the_stream() -> None:
    stream = SUM.open()
    stream.process(table(("a", 1, 1)))
    for bad in (None, pa.table({"k": ["a"]}), pa.table({"k": ["a"], "t": ["x"], "v": [1]})):
        with pytest.raises(fw.SpecError):
            stream.process(bad)
    assert rows(stream.advance_watermark(9)) == [("a", 0, 10, 1)]


def test_refused_first_batch_binds_nothing() -> None:
    stream = SUM.open()
    with pytest.raises(fw.SpecError):
        stream.process(pa.table({"k": ["a"], "t": [1], "v": ["text"]}))
    stream.process(pa.table({"k": [7], "t": [1], "v": [1.5]}))
    assert rows(stream.advance_watermark(9)) == [(7, 0, 10, 1.5)]


def test_overflow_as_null() -> None:
    spec = BASE.aggregate(s=fw.Sum("v", on_overflow="null"), n=fw.Count())
    found = spec.run(table(("a", 1, 2**62), ("a", 2, 2**62), ("b", 1, 2**63 - 1), ("c", 1, -(2**63)), ("d", 1, None)))
    assert {row[0]: row[3:] for row in rows(found)} == {
        "a": (None, 2),
        "b": (2**63 - 1, 1),
        "c": (-(2**63), 1),
        "d": (None, 1),
    }


def test_sum_may_pass_through_what_it_cannot_end_at() -> None:
    found = SUM.run(table(("a", 1, 2**63 - 1), ("a", 2, 2**63 - 1), ("a", 3, -(2**63)), ("a", 4, 1)))
    assert rows(found) == [("a", 0, 10, 2**63 - 1)]


# --- snapshot and restore ---


def test_no_state_before_the_schema_is_known() -> None:
    stream = COUNT.open()
    for call in (stream.snapshot, stream.delta):
        with pytest.raises(fw.StateError, match="no batch and no schema yet"):
            call()
    assert isinstance(COUNT.open(schema=table().schema).snapshot(), bytes)


def test_restore_brings_watermark_back_and_starts_counters_over() -> None:
    stream = COUNT.open()
    stream.process(table(("a", 5, 1)))
    stream.advance_watermark(7)
    fresh = COUNT.open()
    fresh.restore(stream.snapshot())
    assert fresh.watermark == 7
    assert (fresh.metrics.events, fresh.metrics.open_windows) == (0, 1)
    assert rows(fresh.advance_watermark(3)) == []
    assert rows(fresh.advance_watermark(9)) == [("a", 0, 10, 1)]


def test_restore_replaces_what_was_there() -> None:
    old, stream = COUNT.open(), COUNT.open()
    old.process(table(("old", 5, 1)))
    stream.process(table(("new", 5, 1), ("new", 50, 1)))
    stream.advance_watermark(30)
    stream.restore([old.snapshot()])
    assert stream.watermark == fw.MIN_TIMESTAMP
    assert rows(stream.advance_watermark(100)) == [("old", 0, 10, 1)]


def test_failed_restore_changes_nothing() -> None:
    stream = COUNT.open()
    stream.process(table(("a", 5, 1)))
    with pytest.raises(fw.StateError):
        stream.restore([b"nonsense"])
    assert rows(stream.advance_watermark(9)) == [("a", 0, 10, 1)]


def test_fired_window_does_not_fire_again_after_restore() -> None:
    for spec in (
        BASE,
        BASE.window(fw.SlidingEventTimeWindows.of(10, 5)),
        BASE.window(fw.EventTimeSessionWindows.with_gap(5)),
    ):
        spec = spec.allowed_lateness(100).aggregate(n=fw.Count())
        stream = spec.open()
        stream.process(table(("a", 1, 1), ("a", 3, 1)))
        fired = stream.advance_watermark(20)
        assert fired.main.num_rows
        fresh = spec.open()
        fresh.restore([stream.snapshot()])
        assert fresh.advance_watermark(50).main.num_rows == 0
        assert fresh.process(table(("a", 2, 1))).main.num_rows == fired.main.num_rows
        assert fresh.advance_watermark(fw.MAX_TIMESTAMP).main.num_rows == 0
        assert fresh.metrics.state_rows == 0


def test_delta_is_small_where_little_has_changed() -> None:
    stream = COUNT.open()
    stream.process(pa.table({"k": [f"key {i}" for i in range(20_000)], "t": [5] * 20_000}))
    whole = stream.snapshot()
    assert len(stream.delta()) < 3_000
    stream.process(table(("key 7", 5, 1), ("new", 5, 1)))
    assert len(stream.delta()) < len(whole) / 20


def test_state_from_another_place_is_refused() -> None:
    stream = COUNT.open()
    stream.process(table(("a", 5, 1)))
    snapshot, delta = stream.snapshot(), stream.delta()
    others = {
        "another spec": (BASE.aggregate(m=fw.Count()).open(), [snapshot], "written by another spec"),
        "other key type": (
            COUNT.open(schema=pa.schema([("k", pa.int64()), ("t", pa.int64())])),
            [snapshot],
            "the keys were of string, are of int64",
        ),
        "delta first": (COUNT.open(), [delta], r"one snapshot and then deltas, got \['delta'\]"),
        "two snapshots": (COUNT.open(), [snapshot, snapshot], "one snapshot and then deltas"),
        "nothing": (COUNT.open(), [], "got no chunk"),
        "no list": (COUNT.open(), 5, "takes a list of bytes"),
        "text": (COUNT.open(), "text", "takes a list of bytes"),
        "no bytes": (COUNT.open(), [None], "a chunk is bytes"),
    }
    for what, (fresh, chunks, says) in others.items():
        with pytest.raises(fw.StateError, match=says):
            fresh.restore(chunks)
        assert fresh.watermark == fw.MIN_TIMESTAMP, what


def test_value_types_are_part_of_the_state() -> None:
    stream = SUM.open()
    stream.process(pa.table({"k": ["a"], "t": [1], "v": [1.5]}))
    fresh = SUM.open(schema=pa.schema([("k", pa.string()), ("t", pa.int64()), ("v", pa.int64())]))
    with pytest.raises(fw.StateError, match=r"aggregate s was Sum\(.*\) of double, is Sum\(.*\) of int64"):
        fresh.restore([stream.snapshot()])


def test_flipped_bits_anywhere_are_a_state_error() -> None:
    spec = BASE.window(fw.EventTimeSessionWindows.with_gap(5)).aggregate(n=fw.Count(), s=fw.Sum("v"))
    stream = spec.open()
    stream.process(table(*((f"key {i % 7}", i * 3, i) for i in range(200))))
    blob = stream.snapshot()
    dice = random.Random(3)
    for place in [*range(0, 36 * 8, 3), *(dice.randrange(8 * len(blob)) for _ in range(150))]:
        flipped = bytearray(blob)
        flipped[place // 8] ^= 1 << place % 8
        with pytest.raises(fw.StateError):
            spec.open().restore([bytes(flipped)])


# --- bounded runs, and what goes in ---


def test_run_ends_time() -> None:
    spec = BASE.allowed_lateness("1 day").side_output_late_data().bad_rows("divert").aggregate(n=fw.Count())
    result = spec.run(table(("a", 1_000, 1), ("a", -1_000, 1), ("a", None, 1)))
    assert rows(result) == [("a", -1_000, -990, 1), ("a", 1_000, 1_010, 1)]
    assert (result.late.num_rows, result.bad.num_rows) == (0, 1)


@pytest.mark.parametrize(
    "spec",
    [
        COUNT,
        BASE.window(fw.SlidingEventTimeWindows.of(20, 5)).aggregate(n=fw.Count()),
        BASE.window(fw.EventTimeSessionWindows.with_gap(5)).aggregate(n=fw.Count()),
    ],
)
def test_empty_input_gives_an_empty_result(spec: fw.WindowSpec) -> None:
    for empty in (
        table(names="kt"),
        table(names="kt").to_batches()[0]
        if table(names="kt").to_batches()
        else pa.RecordBatch.from_pydict({"k": pa.array([], pa.string()), "t": pa.array([], pa.int64())}),
    ):
        result = spec.run(empty)
        assert result.main.num_rows == result.late.num_rows == result.bad.num_rows == 0
        assert result.main.schema == fw.plan(spec, table(names="kt").schema).main_schema
    typed = pd.DataFrame({"k": pd.Series([], dtype="string"), "t": pd.Series([], dtype="datetime64[ms]")})
    assert spec.run(typed).main.num_rows == 0
    assert spec.run(pl.DataFrame({"k": [], "t": []})).main.num_rows == 0
    # pandas makes up types for columns without values; they bind nothing.
    for untyped in (pd.DataFrame({"k": [], "t": []}), pd.DataFrame(columns=["k", "t"])):
        result = spec.run(untyped)
        assert result.main.num_rows == 0
        assert result.main.column_names == ["k", "window_start", "window_end", "n"]
        stream = spec.open()
        assert stream.process(untyped).main.num_rows == 0
        assert stream.process(table(names="kt")).main.num_rows == 0
    with pytest.raises(fw.SpecError, match="column 't' is missing; the input has k"):
        spec.run(pd.DataFrame({"k": []}))
    with pytest.raises(fw.SpecError, match="event_time: column 't' must be a timestamp or int64 milliseconds, got"):
        spec.run(pd.DataFrame({"k": ["a"], "t": [1.5]}))


def test_before_the_first_batch_results_have_their_columns() -> None:
    spec = BASE.aggregate(n=fw.Count(), s=fw.Sum("v"))
    stream = spec.open()
    main = stream.advance_watermark(5).main
    assert main.column_names == ["k", "window_start", "window_end", "n", "s"]
    assert main.schema.field("window_end").type == pa.timestamp("ms", "UTC")
    later = stream.process(table(names="ktv")).main
    assert pa.concat_tables([main, later], promote_options="default").column_names == main.column_names
    panes = spec.with_pane_info().open().advance_watermark(5).main
    assert panes.column_names[-3:] == ["pane_index", "pane_timing", "pane_is_last"]


def test_all_inputs_give_the_same() -> None:
    frame = pa.table(
        {"k": ["a", None, "a", "b"], "t": pa.array([1, 2, 3, 14], pa.timestamp("ms")), "v": [1, 2, None, 4]}
    )
    spec = BASE.aggregate(n=fw.Count(), s=fw.Sum("v"))
    wanted = sorted(rows(spec.run(frame)), key=repr)
    inputs = [
        frame.to_batches()[0],
        frame.to_pandas(),
        pl.from_arrow(frame),
        pa.concat_tables([frame[:1], frame[:0], frame[1:]]),
        frame.to_pandas().convert_dtypes(),
    ]
    for data in inputs:
        assert sorted(rows(spec.run(data)), key=repr) == wanted


def test_polars_text_and_categories_as_keys_and_late_rows() -> None:
    frame = pl.DataFrame(
        {
            "k": ["a", None, "a longer text than twelve"],
            "c": pl.Series(["x", "y", None], dtype=pl.Categorical),
            "t": [1, 100, 2],
            "l": [["x"], [], None],
        }
    )
    spec = (
        fw.key_by("k", "c")
        .event_time("t")
        .window(fw.TumblingEventTimeWindows.of(10))
        .side_output_late_data()
        .bad_rows("divert")
        .aggregate(n=fw.Count("c"))
    )
    stream = spec.open()
    stream.advance_watermark(50)
    result = stream.process(frame)
    assert result.late["k"].to_pylist() == ["a", "a longer text than twelve"]
    assert result.late["l"].to_pylist() == [["x"], None]
    result.late.validate(full=True)
    bad = stream.process(frame.with_columns(t=pl.lit(None, pl.Int64))).bad
    bad.validate(full=True)
    assert bad["c"].to_pylist() == ["x", "y", None]
    assert rows(stream.advance_watermark(fw.MAX_TIMESTAMP)) == [(None, "y", 100, 110, 1)]


def test_pandas_index_is_not_a_column() -> None:
    frame = pd.DataFrame({"t": [1], "v": [2]}, index=pd.Index(["a"], name="k"))
    with pytest.raises(fw.SpecError, match="key_by: there is no column 'k'; the input has t, v"):
        COUNT.run(frame)


def test_later_batches_may_have_other_harmless_types() -> None:
    stream = SUM.open()
    stream.process(table(("a", 1, 1)))
    stream.process(pl.DataFrame({"v": [2.0], "k": ["a"], "t": [2], "extra": [None]}))
    stream.process(pd.DataFrame({"k": [], "t": [], "v": []}))
    stream.process(
        pa.table({"k": pa.array(["a"], pa.large_string()), "t": pa.array([3], pa.int64()), "v": pa.nulls(1)})
    )
    assert rows(stream.advance_watermark(9)) == [("a", 0, 10, 3)]


def test_key_that_is_the_event_time() -> None:
    spec = (
        fw.key_by("t")
        .event_time("t")
        .window(fw.TumblingEventTimeWindows.of(10))
        .aggregate(n=fw.Count(), t2=fw.Max("t"))
    )
    assert rows(spec.run(pa.table({"t": [5, 5, 6]}))) == [(5, 0, 10, 2, 5), (6, 0, 10, 1, 6)]


def test_global_key() -> None:
    spec = fw.key_by().event_time("t").window(fw.TumblingEventTimeWindows.of(10)).aggregate(n=fw.Count())
    assert rows(spec.run(table(("a", 1, 1), ("b", 2, 1)))) == [(0, 10, 2)]


def test_window_bounds_are_utc_milliseconds() -> None:
    stamps = pa.array([1_700_000_000_123], pa.timestamp("ms", "America/New_York"))
    found = COUNT.window(fw.TumblingEventTimeWindows.of("1 hour")).run(pa.table({"k": ["a"], "t": stamps})).main
    assert found["window_start"].type == pa.timestamp("ms", tz="UTC")
    assert str(found["window_start"][0].as_py()) == "2023-11-14 22:00:00+00:00"


@pytest.mark.parametrize("piece, whole", [(1, 0), (2, 0), (3, 0), (1, 3)])
@pytest.mark.parametrize("second, sessions", [(9, 1), (10, 1), (11, 2)])
def test_session_that_a_later_piece_of_a_run_touches(
    monkeypatch: pytest.MonkeyPatch, piece: int, whole: int, second: int, sessions: int
) -> None:
    monkeypatch.setattr(bounded, "_PIECE_ROWS", piece)
    monkeypatch.setattr(bounded, "_WHOLE_ROWS", whole)
    spec = fw.key_by("k").event_time("t").window(fw.EventTimeSessionWindows.with_gap(10)).aggregate(n=fw.Count())
    table = pa.table({"k": ["a", "b", "a"], "t": pa.array([0, second, second], pa.int64())})
    assert spec.run(table).main.filter(pc.equal(pc.field("k"), "a")).num_rows == sessions


@pytest.mark.parametrize("limit", ["_WHOLE_ROWS", "_WHOLE_BYTES", None])
def test_sessions_of_many_chunks(monkeypatch: pytest.MonkeyPatch, limit: str | None) -> None:
    """Put together or not, of the columns that are needed: the others may be of any size."""
    monkeypatch.setattr("fastwin.batches._SMALL_BATCH", 1)  # such small chunks would have been put together before
    if limit:
        monkeypatch.setattr(bounded, limit, 20)
    random = np.random.default_rng(1)
    columns = {
        "k": pa.array(random.integers(0, 3, 60)).cast(pa.string()),
        "note": pa.array(["x"] * 60),
        "t": pa.array(random.integers(0, 600, 60)),
        "v": pa.array(random.integers(0, 9, 60)),
    }
    whole = pa.table(columns)
    chunks = pa.concat_tables([whole.slice(at, 7) for at in range(0, 60, 7)])
    spec = fw.key_by("k").event_time("t").window(fw.EventTimeSessionWindows.with_gap(10)).side_output_late_data()
    spec = spec.bad_rows("divert").aggregate(n=fw.Count(), first=fw.First("k"), v=fw.Last("v"))
    assert chunks.column(0).num_chunks == 9
    order = [("window_end", "ascending"), ("k", "ascending")]
    assert spec.run(chunks).main.sort_by(order).equals(spec.run(whole).main.sort_by(order))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("assigner", [fw.TumblingEventTimeWindows.of(10), fw.EventTimeSessionWindows.with_gap(10)])
def test_bad_row_of_a_later_chunk(monkeypatch: pytest.MonkeyPatch, assigner: fw.WindowAssigner, threads: int) -> None:
    monkeypatch.setattr("fastwin.batches._SMALL_BATCH", 1)
    monkeypatch.setattr("fastwin.parallel._FEW_ROWS", 1)
    columns = {"k": pa.array([1] * 10), "t": pa.array([*range(9), None], pa.int64())}
    table = pa.concat_tables([pa.table(columns).slice(0, 6), pa.table(columns).slice(6)])
    spec = fw.key_by("k").event_time("t").window(assigner).aggregate(n=fw.Count())
    with pytest.raises(fw.BadRowError, match=r"null timestamp in row 9 .*; 1 of 4 rows from row 6 on are bad"):
        spec.run(table, threads=threads)


def test_run_keeps_no_more_state_than_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[int] = []
    spec = fw.key_by("k").event_time("t").window(fw.TumblingEventTimeWindows.of(10)).aggregate(n=fw.Count())
    advance = AlignedOperator.advance_watermark

    def watched(operator: AlignedOperator, watermark: int) -> list[pa.RecordBatch]:
        held.append(operator.state_rows)
        return advance(operator, watermark)

    monkeypatch.setattr(bounded, "_PIECE_ROWS", 50)
    monkeypatch.setattr(AlignedOperator, "advance_watermark", watched)
    n = 1_000
    done = spec.run(pa.table({"k": pa.array(range(n)), "t": pa.array(range(n), pa.int64())}))
    assert done.main.num_rows == n
    assert max(held) <= 60  # a piece, and the window that it has begun
