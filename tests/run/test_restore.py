"""A stream that failed, and streams that go on from the state of another."""

import random
import tracemalloc

import pandas as pd
import pyarrow as pa
import pytest

import fastwin as fw
from tests.support.streams import BASE, COUNT, SUM, rows, table


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
        lambda: stream.push({"k": "a", "t": 30, "v": 1}),
        lambda: stream.advance_watermark(100),
        lambda: stream.advance_processing_time(100),
        stream.finish_processing_time,
        stream.snapshot,
        stream.delta,
    ):
        with pytest.raises(fw.StateError, match=r"failed in the middle of a batch \(AggregateOverflowError: .*restore"):
            call()
    assert stream.processing_time == 0


def test_clock_of_a_finished_stream_is_that_of_its_state() -> None:
    spec = fw.key_by("k").processing_time().window(fw.TumblingProcessingTimeWindows.of(10)).aggregate(n=fw.Count())
    stream = spec.open()
    stream.process(table(("a", 1, 1)))
    assert rows(stream.finish_processing_time()) == [("a", 0, 10, 1)]
    restored = spec.open(schema=table().schema)
    restored.restore(stream.snapshot())
    for one in (stream, restored):
        assert one.processing_time == one.metrics.processing_time == fw.MAX_TIMESTAMP
        for call in (one.process, lambda _, stream=one: stream.push({"k": "a"})):
            with pytest.raises(
                fw.StateError, match=r"clock is at the end of time, so tumbling windows .* take no elements"
            ):
                call(table(("a", 1, 1)))
        assert rows(one.advance_processing_time(25)) == []
        one.process(table(("b", 1, 1)))
        assert rows(one.advance_processing_time(29)) == [("b", 20, 30, 1)]


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


def test_deltas_are_widened_one_after_the_other():
    count = 10_000
    stream, saved = SUM.open(), []
    for i in range(20):
        stream.process(table(*((f"k{number}", 1, i + number) for number in range(count))))
        saved.append(stream.delta() if saved else stream.snapshot())
    other = SUM.open(schema=table().schema)
    tracemalloc.start()
    try:
        other.restore(saved)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert other.metrics.state_rows == count
    assert peak < 8 * count * len(saved), f"{peak} bytes: more than one column of all deltas"


def test_text_that_is_no_utf8_is_restored() -> None:
    text = pa.array([b"\xff", b"a"], pa.binary()).view(pa.string())
    start = fw.key_by("text").event_time("ts").window(fw.TumblingEventTimeWindows.of(10))
    for column in (text, text.cast(pa.large_binary()).view(pa.large_string()), text.dictionary_encode()):
        rows = pa.table({"text": text, "ts": [1, 2], "more": column})
        specs = [start.top(1, by="ts"), start.evictor(fw.CountEvictor.of(1)).top(1, by="ts")]
        for spec in (*specs, start.aggregate(more=fw.Max("more"))):
            stream = spec.open(schema=rows.schema)
            stream.process(rows)
            saved = stream.snapshot()
            restored = spec.open(schema=rows.schema)
            restored.restore([saved])
            found = [one.advance_watermark(10).main.select(["text", "more"]) for one in (stream, restored)]
            bare = pa.schema([("text", pa.binary()), ("more", pa.binary())])
            wanted = [{"text": b"a", "more": b"a"}, {"text": b"\xff", "more": b"\xff"}]
            assert [table.cast(bare).sort_by("text").to_pylist() for table in found] == [wanted] * 2


def paged(*times: int | None) -> pa.Table:
    """Rows of a key, with a column that no window reads."""
    pages = [f"p{time}" for time in times]
    return pa.table({"page": pages, "k": ["a"] * len(times), "ts": pa.array(times, pa.int64())})


@pytest.mark.parametrize("how", ["late", "bad"])
@pytest.mark.parametrize("window", [fw.TumblingEventTimeWindows.of(10), fw.EventTimeSessionWindows.with_gap(5)])
@pytest.mark.parametrize("trigger", [None, fw.any_of(fw.EventTimeTrigger(), fw.CountTrigger.of(9))])
def test_outputs_that_are_new_at_a_restart_have_all_columns(
    how: str, window: fw.WindowAssigner, trigger: fw.Trigger | None
) -> None:
    """The state knows those alone that windows read."""
    base = fw.key_by("k").event_time("ts").window(window)
    base = base if trigger is None else base.trigger(trigger)

    old = base.aggregate(n=fw.Count()).open()
    old.process(paged(5, 41))
    old.advance_watermark(30)
    more = base.side_output_late_data() if how == "late" else base.bad_rows("divert")
    new = more.aggregate(n=fw.Count()).open()
    new.restore(old.snapshot())
    result = new.process(paged(3 if how == "late" else None, 42))
    found = result.late if how == "late" else result.bad
    assert found["page"].to_pylist() == ["p3" if how == "late" else "pNone"]
    assert found.column_names[:3] == ["page", "k", "ts"]
    again = more.aggregate(n=fw.Count()).open()
    again.restore(new.snapshot())
    result = again.process(paged(3 if how == "late" else None, 43))
    assert (result.late if how == "late" else result.bad)["page"].to_pylist() == found["page"].to_pylist()
    fired = again.advance_watermark(fw.MAX_TIMESTAMP)
    assert sum(fired.main["n"].to_pylist()) == 3


@pytest.mark.parametrize("first", ["pushed", "nulls", "no rows", "another zone", "refused"])
def test_what_comes_first_after_a_restart_settles_only_what_is_new(first: str) -> None:
    zone = pa.timestamp("ms", tz="UTC")
    base = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of(10))
    kind = zone if first == "another zone" else pa.int64()

    def rows(*times: int) -> pa.Table:
        table = paged(*times)
        return table.set_column(2, "ts", table["ts"].cast(kind))

    old = base.aggregate(n=fw.Count()).open()
    old.process(rows(5, 41))
    old.advance_watermark(30)
    new = base.bad_rows("drop").side_output_late_data().aggregate(n=fw.Count()).open()
    new.restore(old.snapshot())
    if first == "pushed":
        assert new.push({"page": "p3", "k": "a", "ts": 3}).late.to_pylist() == [{"k": "a", "ts": 3, "page": "p3"}]
        assert new.push({"page": "p4", "k": "a", "ts": 4}).late["page"].to_pylist() == ["p4"]
    elif first == "refused":
        with pytest.raises(fw.SpecError, match="ts"):
            new.process(rows(3).drop_columns(["ts"]))
    elif first == "nulls":
        new.process(pa.table({"page": ["x"], "k": ["a"], "ts": pa.nulls(1)}))
    elif first == "no rows":
        new.process(pd.DataFrame({"page": [], "k": [], "ts": []}))
    else:
        tokyo = rows(42)
        new.process(tokyo.set_column(2, "ts", tokyo["ts"].cast(pa.timestamp("ms", tz="Asia/Tokyo"))))
    assert new.process(rows(3, 43)).late["page"].to_pylist() == ["p3"]
    fired = new.advance_watermark(fw.MAX_TIMESTAMP).main
    assert fired["n"].to_pylist() == [3 if first == "another zone" else 2]
