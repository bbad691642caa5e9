"""The stateful operator without Spark: restored, advanced, fed and stored again, with one timer per key group."""

import os

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, TimerValues

import fastwin as fw
from fastwin.run.replica import open_replica
from spark_glue.plan.compat import spark_struct_of
from spark_glue.plan.keygroups import RECORD_ID, ids
from spark_glue.plan.outputs import output_for
from spark_glue.stages import feeding, operator, packets
from spark_glue.stages.counters import COUNTERS
from spark_glue.stages.operator import WindowProcessor
from spark_glue.stages.packets import PacketKind, decode, encode
from spark_glue.stages.unpack import operator_struct
from spark_glue.state import cutparts, log, shares
from spark_glue.state.folders import forget_run
from spark_glue.state.live import LIVE, LiveStreams
from spark_glue.state.log import head_in
from tests.support import spark_fakes
from tests.support.spark_harness import SCHEMA, SPEC, Harness, counts, packet, packet_row
from tests.support.spark_jobs import KEY_GROUPS
from tests.support.spark_packing import packed, partials

GROUP = int(ids(KEY_GROUPS)[3])
"""Of share 3."""


def test_input_and_timer_in_one_batch():
    harness = Harness()
    assert harness.batch(0, {7: [packet((1, 1), (2, 5))], 8: [packet((3, 2))]})["MAIN"] == []
    assert harness.handle.timers == {7: {9}, 8: {9}}
    # 7 has input as well as an expired timer, 8 only the timer
    out = harness.batch(9, {7: [packet((1, 12))]})
    assert counts(out["MAIN"]) == [(1, 0, 1), (2, 0, 1), (3, 0, 1)]
    assert harness.handle.timers == {7: {19}, 8: set()}
    assert harness.counters["fired"] == 3
    assert harness.counters["events"] == 1
    assert harness.counters["open_windows_change"] == 1 - 3


@pytest.mark.parametrize("windows", [fw.TumblingEventTimeWindows.of(10), fw.EventTimeSessionWindows.with_gap(3)])
def test_rows_beside_partial_results_may_be_more_than_one_batch_holds(monkeypatch, windows):
    monkeypatch.setattr(feeding, "combined", lambda rows: rows.to_batches())  # as with 2 GiB of one column of texts
    harness = Harness(fw.key_by("k").event_time("ts").window(windows).aggregate(n=fw.Count()), key_groups=1)
    table = pa.table({"k": [1] * 9, "ts": [2] * 9}, schema=SCHEMA)
    (made,) = partials(packed(harness.frame_plan, table, mapper=0))
    harness.batch(0, {GROUP: [made, packet((1, 1), (2, 5), mapper=1), packet((1, 3), mapper=2)]})
    assert [(key, n) for key, *_, n in sorted(harness.batch(99, {})["MAIN"])] == [(1, 11), (2, 1)]


def test_two_shares_on_a_partition_that_should_have_one_are_an_error(monkeypatch):
    """The session of the job tells of more partitions than the state has; nothing has been committed then."""
    one, other = (int(group) for group in ids(KEY_GROUPS)[3:5])
    monkeypatch.setattr(operator, "has_own_partition", lambda: True)
    harness = Harness()
    harness.batch(0, {one: [packet((1, 1))]})
    harness.batch(0, {one: [packet((1, 1))], RECORD_ID: [packet_row(kind=int(PacketKind.RECORD))]})
    with pytest.raises(fw.StateError, match=r"partitions: shares 3 and 4 are on one partition.*set it to what it was"):
        harness.batch(0, {one: [packet((1, 2))], other: [packet((2, 2))]})
    monkeypatch.undo()
    Harness().batch(0, {one: [packet((1, 2))], other: [packet((2, 2))]})


def test_how_streams_were_found_is_counted():
    def found() -> tuple[int, int, int]:
        return tuple(harness.counters[f"streams_{how}"] for how in ("kept", "caught_up", "loaded"))

    LIVE.clear()
    harness = Harness()
    harness.batch(0, {GROUP: [packet((1, 1))]})
    assert found() == (0, 0, 0)
    assert harness.counters["log_deltas"] == 1
    harness.batch(0, {GROUP: [packet((1, 2))]})
    assert found() == (1, 0, 0)
    deltas = head_in(harness.handle.values[GROUP]["head"][0]).deltas({})
    assert harness.counters["log_deltas"] == len(deltas)
    assert harness.counters["log_bytes"] == sum(map(len, deltas))
    LIVE.clear()
    forget_run("unnamed")
    harness.batch(0, {GROUP: [packet((1, 3))]})
    assert found() == (0, 0, 1)
    assert harness.counters["worker_bytes"] > 10_000_000


def test_small_state_is_written_whole_before_its_deltas_outweigh_it():
    LIVE.clear()
    harness, group = Harness(small_state=True, key_groups=1), int(ids(1)[0])
    sizes, batches = [], [range(number % 5, 8_000, 5) for number in range(40)]
    for number, keys in enumerate(batches):
        forget_run("unnamed")
        if number % 7 == 0:
            LIVE.clear()  # so that the value is read
        harness.batch(0, {group: [packet(*((key, 1) for key in keys))]})
        (value,) = harness.handle.values[group]["head"]
        sizes.append(len(value))
    assert set(harness.handle.values[group]) == {"head"}
    assert max(sizes) < 3 * sizes[4], "when all keys were there"
    out = harness.batch(9, {})["MAIN"]
    assert sum(n for *_, n in out) == sum(map(len, batches))


@pytest.mark.parametrize("in_chunks", [True, False])
def test_a_share_that_comes_back_to_a_worker_reads_what_it_lacks_and_no_more(monkeypatch, in_chunks):
    def batch(worker: LiveStreams) -> Harness:
        forget_run("unnamed")  # so that no copy is in reach
        monkeypatch.setattr(shares, "LIVE", worker)
        read.clear()
        harness.batch(0, {GROUP: [packet((1, 1))]})
        return harness

    if in_chunks:
        monkeypatch.setattr(log, "INLINE_BYTES", 0)
    read: list[tuple] = []
    monkeypatch.setattr(spark_fakes._Map, "getValue", lambda chunks, key: read.append(key) or chunks.items.get(key))
    here, there = LiveStreams(owner=os.getpid()), LiveStreams(owner=os.getppid())
    harness = Harness()
    for _ in range(4):
        batch(here)
    assert read == []
    assert batch(there).counters["deltas_loaded"] == 4
    assert read == ([(0,), (1,), (2,), (3,)] if in_chunks else [])
    batch(there)
    assert read == []
    assert batch(here).counters["deltas_caught_up"] == 2
    assert read == ([(4,), (5,)] if in_chunks else [])


def test_windows_that_never_fire_and_timers_are_counted():
    spec = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of(10)).trigger(fw.CountTrigger.of(2))
    harness = Harness(spec.aggregate(n=fw.Count()))
    out = harness.batch(0, {7: [packet((1, 1), (1, 2), (2, 5))]})
    assert counts(out["MAIN"]) == [(1, 0, 2)]
    assert harness.counters["unfired"] == 0
    assert harness.counters["timers_change"] == 2  # the ends of both windows
    assert harness.batch(9, {})["MAIN"] == []
    assert harness.counters["unfired"] == 1
    assert harness.counters["timers_change"] == -2


def test_late_rows_of_an_input_that_hands_none_out_are_dropped():
    plain = fw.key_by("k").event_time("ts")
    join = fw.window_join(plain.side_output_late_data(), plain, fw.TumblingEventTimeWindows.of(10))
    bound = join.bind(SCHEMA, SCHEMA)
    harness = Harness(bound.spec, schema=bound.schema, late_inputs=(0,))

    def rows(side: int, *times: int) -> dict:
        (batch,) = bound.united(side, pa.table([[1] * len(times), times], schema=SCHEMA), pa.array(times)).to_batches()
        return packet_row(mapper=side, kind=int(PacketKind.GOOD), rows=len(times), blob=encode(batch).to_pybytes())

    harness.batch(0, {7: [rows(0, 1), rows(1, 25)]})
    found = harness.batch(20, {7: [rows(0, 2, 3), rows(1, 4, 26)]})
    assert found["LATE"] == [(1, 0, 2, 2, None), (1, 0, 3, 3, None)]
    assert (harness.counters["late"], harness.counters["dropped"]) == (2, 1)
    harness.batch(20, {7: [rows(1, 5)]})
    assert (harness.counters["late"], harness.counters["dropped"]) == (0, 1)


def test_all_blobs_are_one_batch_in_order_of_mapper_and_seq():
    first = fw.key_by("k").event_time("ts").window(fw.EventTimeSessionWindows.with_gap(10)).aggregate(n=fw.Count())
    harness = Harness(first)
    out = harness.batch(
        25, {0: [packet((1, 5), mapper=2), packet((1, 15), mapper=0, seq=1), packet((1, 25), mapper=0)]}
    )
    # (5, 15) alone would be late; joined with the others it is in time
    assert out["MAIN"] == []
    assert harness.counters["dropped"] == 0
    out = harness.batch(34, {})
    assert counts(out["MAIN"]) == [(1, 5, 3)]


def test_blobs_are_used_in_order_however_they_arrive():
    """A shuffle run again may bring them in another order, and must give the same."""
    harness = Harness(SPEC.side_output_late_data())
    three = [packet((1, 3), mapper=1, seq=0), packet((1, 2), mapper=0, seq=1), packet((1, 1), mapper=0, seq=0)]
    for arrived in (three, three[::-1]):
        assert harness.batch(100, {0: arrived})["LATE"] == [(1, 1), (1, 2), (1, 3)]


def test_watermark_zero_is_none_yet():
    harness = Harness(SPEC.side_output_late_data())
    assert harness.batch(0, {0: [packet((1, 0))]})["LATE"] == []
    assert harness.counters["watermark_ms"] == 0


def test_late_rows_leave_with_their_columns():
    harness = Harness(SPEC.side_output_late_data())
    out = harness.batch(100, {0: [packet((1, 5), (2, 101))]})
    assert out["LATE"] == [(1, 5)]
    assert harness.counters["late"] == 1
    assert harness.counters["watermark_ms"] == 100


def test_the_last_window_leaves_no_more_than_what_is_cleaned():
    harness = Harness()
    harness.batch(0, {0: [packet(*((key, 5) for key in range(1_000)))]})
    before = stored(harness)
    assert harness.counters["state_bytes"] > 0
    harness.batch(50, {})
    assert stored(harness) < min(before, 1_500)
    assert harness.handle.timers == {0: set()}
    assert harness.counters["state_rows_change"] == -1_000
    held = stored(harness)
    for watermark in range(60, 600, 30):
        harness.batch(watermark, {0: [packet((1, watermark + 1))]})
        harness.batch(watermark + 20, {})
    assert stored(harness) < held + 1_500  # and it does not grow


def stored(harness: Harness, group: int = 0) -> int:
    """Bytes in the store for a group."""
    held = harness.handle.values[group]
    return sum(len(value[0]) for value in [held["head"], *held.get("chunks", {}).values()])


def test_without_a_watermark_nothing_is_left():
    harness = Harness(fw.key_by("k").count_window(2).aggregate(n=fw.Count()))
    harness.batch(0, {0: [packet((1, 5), (1, 6))]})
    assert harness.counters["fired"] == 1
    assert not any(harness.handle.values[0].values())


@pytest.mark.parametrize("first", [[(1, 5), (1, 6)], [(2, 5)]], ids=["fired", "dropped"])
@pytest.mark.parametrize(
    "windows",
    [fw.TumblingEventTimeWindows.of(10), fw.EventTimeSessionWindows.with_gap(10)],
    ids=["tumbling", "sessions"],
)
def test_a_longer_lateness_brings_back_no_window_of_a_group_that_was_empty(windows, first):
    """Its contents are gone: it would fire again, with some of the elements."""
    spec = fw.key_by("k").event_time("ts").window(windows).aggregate(n=fw.Count())
    harness = Harness(spec)
    if first == [(1, 5), (1, 6)]:
        harness.batch(0, {0: [packet(*first)]})
        assert len(harness.batch(100, {})["MAIN"]) == 1
    else:
        assert harness.batch(100, {0: [packet(*first)]})["MAIN"] == []
    assert harness.counters["open_windows_change"] <= 0
    longer = Harness(spec.allowed_lateness(200, coalesce=True).side_output_late_data())
    longer.handle = harness.handle
    out = longer.batch(101, {0: [packet((1, 7), (1, 105))]})
    assert out["LATE"] == [(1, 7)]
    assert longer.batch(400, {})["MAIN"] != []


def test_bad_rows_pass_without_touching_state():
    harness = Harness(SPEC.bad_rows("drop"))
    harness.batch(0, {0: [packet((1, 5))]})
    before = dict(harness.handle.values[0])
    out = harness.batch(50, {1: [packet_row(kind=int(PacketKind.BAD), rows=7)]})
    assert counts(out["MAIN"]) == [(1, 0, 1)]
    assert harness.counters["bad"] == 7
    assert before
    assert not harness.handle.values[1]


def test_cleanup_timer_keeps_windows_for_late_rows():
    harness = Harness(SPEC.allowed_lateness(20, coalesce=True))
    harness.batch(0, {0: [packet((1, 5))]})
    assert counts(harness.batch(9, {})["MAIN"]) == [(1, 0, 1)]
    assert harness.handle.timers == {0: {29}}
    assert counts(harness.batch(28, {0: [packet((1, 6), (1, 7))]})["MAIN"]) == [(1, 0, 3)]
    assert harness.batch(29, {})["MAIN"] == []
    assert harness.handle.timers == {0: set()}


def test_large_results_leave_in_several_rows(monkeypatch):
    monkeypatch.setattr(packets, "MAX_BLOB_BYTES", 1000)
    harness = Harness()
    harness.batch(0, {0: [packet(*((k, 5) for k in range(500)))]})
    processor = WindowProcessor(harness.frame_plan)
    processor.init(harness.handle)
    frames = list(processor.handleExpiredTimer((0,), TimerValues(0, 9), ExpiredTimerInfo(9)))
    assert len(frames) > 10
    assert all(len(blob) < 2000 for frame in frames for blob in frame["blob"])
    counts = [counts.split(",") for frame in frames for counts in frame["counters"].dropna()]
    assert [dict(zip(COUNTERS, each, strict=True))["fired"] for each in counts] == ["500"]


def test_many_results_go_on_in_small_blobs(monkeypatch):
    """Spark puts thousands of them into one column of binary values on their way to the next step."""
    monkeypatch.setattr(packets, "MAX_BLOB_BYTES", 1_000)
    monkeypatch.setattr(operator, "LARGE_RESULT_BYTES", 3_000)
    monkeypatch.setattr(operator, "BLOB_BYTES", 200)
    harness = Harness()
    for group, first in ((0, 0), (1, 500)):
        harness.batch(0, {group: [packet(*((k, 5) for k in range(first, first + 500)))]})
    processor = WindowProcessor(harness.frame_plan)
    processor.init(harness.handle)
    found: list[pa.RecordBatch] = []
    for group in (0, 1):  # of one task
        harness.handle.key = group
        for frame in processor.handleExpiredTimer((group,), TimerValues(0, 9), ExpiredTimerInfo(9)):
            found += [decode(blob, harness.frame_plan.plan.main_schema) for blob in frame["blob"]]
    assert [key for batch in found for key in batch["k"].to_pylist()] == list(range(1_000))
    sizes = [batch.nbytes for batch in found]
    assert 2_000 < sum(size for size in sizes if size > 200) <= 3_000
    assert sum(sizes) > 10_000


def test_results_leave_as_rows_where_there_are_main_columns_alone(monkeypatch):
    monkeypatch.setattr(packets, "MAX_BLOB_BYTES", 1000)
    harness = Harness()
    output = output_for(harness.frame_plan, spark_struct_of(SCHEMA), case_sensitive=False)
    assert output.is_flat
    assert not output_for(Harness(SPEC.side_output_late_data()).frame_plan, spark_struct_of(SCHEMA), False).is_flat
    processor = WindowProcessor(harness.frame_plan, output)
    processor.init(harness.handle)
    rows = pd.DataFrame([packet(*((k, 5) for k in range(500)))])
    (counted,) = processor.handleInputRows((0,), iter([rows]), TimerValues(0, 0))
    frames = list(processor.handleExpiredTimer((0,), TimerValues(0, 9), ExpiredTimerInfo(9)))
    assert len(frames) > 10
    for frame, fired in ((counted, 0), (frames[0], 500)):
        assert dict(zip(COUNTERS, frame["counters"][0].split(","), strict=True))["fired"] == str(fired)
        assert frame.drop(columns="counters").isna().all(axis=None)
    names = operator_struct(output).names
    found = pa.concat_tables([pa.Table.from_pandas(frame[names], preserve_index=False) for frame in frames[1:]])
    assert found["counters"].null_count == 500
    assert sorted(zip(*(found[name].to_pylist() for name in names[1:]), strict=True)) == [
        (k, 0, 10_000, 1) for k in range(500)
    ]


def test_a_lower_watermark_is_ignored():
    harness = Harness(SPEC.side_output_late_data())
    harness.batch(50, {0: [packet((1, 55))]})
    assert harness.batch(20, {0: [packet((1, 25))]})["LATE"] == [(1, 25)]


@pytest.mark.parametrize("coalesce", [True, False])
def test_coalesce_decides_how_often_a_window_fires_again(coalesce):
    harness = Harness(SPEC.allowed_lateness(100, coalesce=coalesce))
    harness.batch(50, {0: [packet((1, 5), (1, 6), (1, 7))]})
    assert harness.counters["fired"] == (1 if coalesce else 3)


@pytest.mark.parametrize("piece_bytes", [1 << 20, 100], ids=["whole", "cut"])
@pytest.mark.parametrize("order", ["parts first", "watermark first"])
def test_a_share_begins_with_the_watermark_of_history_and_the_parts_that_it_gets(monkeypatch, order, piece_bytes):
    """Spark hands over what a share gets in one frame, or in several, which may end within a part."""
    monkeypatch.setattr(cutparts, "PIECE_BYTES", piece_bytes)
    harness = Harness(start_ms=25, delays=(0,))
    stream = open_replica(harness.frame_plan.plan)
    stream.process(pa.table({"k": [1, 1, 2], "ts": [31, 32, 33]}, SCHEMA))
    stream.advance_watermark(25)
    stream.snapshot()
    rows = pa.Table.from_batches(cutparts.cut(stream.parts(KEY_GROUPS))).to_pandas()
    assert (len(rows) > 6) == (piece_bytes == 100)
    frames = [rows[at : at + 4] for at in range(0, len(rows), 4)]
    frames.append(pd.DataFrame([[None] * len(cutparts.STATE)], columns=cutparts.STATE.names))
    other = int(ids(KEY_GROUPS)[4])
    for group, pieces in ((GROUP, frames), (other, frames[-1:])):
        harness.handle.key = group
        processor = WindowProcessor(harness.frame_plan)
        processor.init(harness.handle)
        for piece in pieces if order == "parts first" else pieces[::-1]:
            processor.handleInitialState((group,), piece, TimerValues(0, 0))
    # Spark's watermark knows nothing of history.
    out = harness.batch(5, {GROUP: [packet((1, 12), (1, 34))], other: [packet((3, 12), (3, 34))]})
    assert out["MAIN"] == []
    assert counts(harness.batch(100, {})["MAIN"]) == [(1, 30, 3), (2, 30, 1), (3, 30, 1)]


def test_a_part_of_history_without_all_of_its_pieces_ends_the_task(monkeypatch):
    """Whether another share comes behind it or none."""
    monkeypatch.setattr(cutparts, "PIECE_BYTES", 100)
    harness = Harness(start_ms=25, delays=(0,))
    stream = open_replica(harness.frame_plan.plan)
    stream.process(pa.table({"k": [1, 1, 2], "ts": [31, 32, 33]}, SCHEMA))
    stream.snapshot()
    rows = pa.Table.from_batches(cutparts.cut(stream.parts(KEY_GROUPS))).to_pandas()
    harness.handle.key = GROUP
    processor = WindowProcessor(harness.frame_plan)
    processor.init(harness.handle)
    processor.handleInitialState((GROUP,), rows[1:], TimerValues(0, 0))
    with pytest.raises(fw.StateError, match=r"pieces of what key groups .* hold are missing"):
        processor.close()
    with pytest.raises(fw.StateError, match=r"pieces of what key groups .* hold are missing"):
        list(processor.handleInputRows((int(ids(KEY_GROUPS)[4]),), iter([]), TimerValues(0, 0)))
