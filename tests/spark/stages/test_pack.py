"""The packer: every row goes to the blob of its key group, in order, and both ways out say the same."""

import warnings
from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import fastwin as fw
from fastwin.columns.keys import key_hash
from spark_glue.plan.frameplan import FramePlan, JoinInput
from spark_glue.plan.keygroups import RECORD_ID, ids
from spark_glue.stages import pack, packets
from spark_glue.stages.pack import Packer
from spark_glue.stages.packets import PacketKind, decode
from tests.support.spark_events import START_MS, events
from tests.support.spark_jobs import SPEC, frame_plan_for
from tests.support.spark_packing import expected, good, merged, packed, partials
from tests.support.spark_streams import rows_of


def test_each_row_is_in_its_group_and_in_order():
    table = events(1, 5000).append_column("row", pa.array(range(5000)))
    spec = SPEC.aggregate(n=fw.Count(), last=fw.Max("row"))
    frame_plan = frame_plan_for(table, spec, coalesce=False)
    rows = good(packed(frame_plan, table))
    assert {row["key_group"] for row in rows} <= set(ids(8).tolist())
    group_of_key = {}
    seen = Counter()
    for row in rows:
        batch = decode(row["blob"], frame_plan.plan.input_schema)
        assert batch.num_rows == row["rows"] > 0
        assert batch.column("row").to_pylist() == sorted(batch.column("row").to_pylist())
        for key in batch.column("k").to_pylist():
            assert group_of_key.setdefault(key, row["key_group"]) == row["key_group"]
        seen += rows_of(pa.Table.from_batches([batch]))
    assert seen == rows_of(table.select(frame_plan.plan.input_columns))


def test_only_needed_columns_travel():
    table = events(1, 10)
    assert frame_plan_for(table).packed_schema.names == ["k", "ts", "v"]
    assert frame_plan_for(table, SPEC.side_output_late_data()).packed_schema.names == ["k", "ts", "v", "x"]


def test_rows_that_one_batch_cannot_hold_are_packed_all(monkeypatch):
    """As where a column of text would have more than 2 GiB: Arrow then puts no one batch together."""
    table = events(1, 1000)
    frame_plan = frame_plan_for(table, SPEC.aggregate(n=fw.Count(), last=fw.Max("v")), coalesce=False)
    put_together = FramePlan.input_rows
    monkeypatch.setattr(FramePlan, "input_rows", lambda plan, given: [put_together(plan, [one])[0] for one in given])
    rows = good(packed(frame_plan, table, size=300))
    assert len({row["seq"] for row in rows}) == 4
    blobs = [decode(row["blob"], frame_plan.plan.input_schema) for row in rows]
    assert rows_of(pa.Table.from_batches(blobs)) == rows_of(table.select(frame_plan.plan.input_columns))


def test_groups_do_not_depend_on_task_or_batches():
    table = events(2, 1000)
    frame_plan = frame_plan_for(table)

    def groups(mapper: int, size: int) -> dict:
        found = {}
        for row in good(packed(frame_plan, table, mapper, size)):
            for key in decode(row["blob"], frame_plan.plan.input_schema).column("k").to_pylist():
                found[key] = row["key_group"]
        return found

    assert groups(0, 1) == groups(77, 1000)


def test_flushes_bound_what_is_held(monkeypatch):
    monkeypatch.setattr(pack, "FLUSH_ROWS", 250)
    table = events(3, 1000)
    rows = good(packed(frame_plan_for(table, coalesce=False), table, size=100))
    per_flush = Counter()
    for row in rows:
        per_flush[row["seq"]] += row["rows"]
    assert per_flush == {0: 300, 1: 300, 2: 300, 3: 100}


def test_flushes_bound_the_bytes_held(monkeypatch):
    monkeypatch.setattr(pack, "FLUSH_BYTES", 1000)
    table = events(3, 1000)
    assert max(row["seq"] for row in good(packed(frame_plan_for(table, coalesce=False), table, size=100))) == 9


def test_more_than_a_column_of_binary_values_holds_is_an_error(monkeypatch):
    monkeypatch.setattr(packets, "MOST_BINARY", 2000)
    table = events(3, 1000)
    with pytest.raises(OverflowError, match=r"packed rows of \d+ bytes, at most 2000 fit .*maxRecordsPerBatch"):
        packed(frame_plan_for(table, coalesce=False), table)


def test_carrier_is_one_less_than_the_newest_good_time():
    table = events(4, 100)
    late_row = events(5, 1, start_ms=4_000_000_000_000)  # too far ahead: no good row
    frame_plan = frame_plan_for(table, SPEC.bad_rows("drop"), max_future_skew_ms=86_400_000)
    rows = packed(frame_plan, pa.concat_tables([table, late_row]))
    (carrier,) = (row["carrier"] for row in rows if row["carrier"] is not None)
    newest_us = max(int(t.value) for t in table["ts"] if t.is_valid)
    assert round(carrier.timestamp() * 1000) == newest_us // 1000 - 1
    assert [row["key_group"] for row in rows if row["kind"] == PacketKind.RECORD] == [RECORD_ID] * 2


@pytest.mark.parametrize("streaming", [True, False])
def test_no_good_row_no_carrier(streaming):
    table = events(6, 20, null_times=1.0)
    rows = packed(frame_plan_for(table, SPEC.bad_rows("drop"), streaming=streaming, carrier=streaming), table)
    assert all(row["carrier"] is None for row in rows)
    assert any(row["kind"] == PacketKind.RECORD for row in rows) == streaming


@pytest.mark.parametrize(("first", "carriers"), [(True, [START_MS + 20_000]), (False, [])])
def test_the_first_micro_batch_brings_the_newest_time_of_history(monkeypatch, first, carriers):
    monkeypatch.setattr(pack, "is_first_batch", lambda: first)
    table = events(6, 20, null_times=1.0)
    frame_plan = frame_plan_for(table, SPEC.bad_rows("drop"), start_ms=START_MS, delays=(20_000,))
    packer = pack.new_packer(frame_plan, 0)
    found = [packer.add(table.select(frame_plan.packed_schema.names).to_batches()[0].columns), *packer.finish()]
    rows = [row for batch in found if batch is not None for row in batch.to_pylist()]
    told = [round(row["carrier"].timestamp() * 1000) for row in rows if row["carrier"] is not None]
    assert told == carriers  # the watermark is 20 s behind: START_MS


def test_no_rows_nothing_packed():
    table = events(6, 0)
    assert packed(frame_plan_for(table), table) == []


@pytest.mark.parametrize("policy", ["drop", "divert"])
def test_bad_rows_are_one_row_with_their_number(policy):
    table = events(7, 200, null_times=0.2)
    frame_plan = frame_plan_for(table, SPEC.bad_rows(policy))
    (bad,) = (row for row in packed(frame_plan, table) if row["kind"] == PacketKind.BAD)
    assert bad["rows"] == table["ts"].null_count
    if policy == "drop":
        assert bad["blob"] is None
    else:
        batch = decode(bad["blob"], frame_plan.plan.bad_schema)
        assert batch.schema.names == [*table.column_names, "bad_reason"]
        assert batch.num_rows == bad["rows"]


def test_bad_rows_raise():
    table = events(7, 200, null_times=0.2)
    with pytest.raises(fw.BadRowError, match="event_time 'ts': null timestamp"):
        packed(frame_plan_for(table), table)


def of_the_right_input(times: list[int | None]) -> tuple[FramePlan, pa.Table]:
    """Returns rows of the right input of a join as rows of both, and the plan of their packer."""
    minutes = fw.TumblingEventTimeWindows.of("1 min")
    join = fw.window_join(fw.key_by("k").event_time("ts"), fw.key_by("k").event_time("at"), minutes)
    left, right = (pa.schema([("k", pa.int64()), (time, pa.int64())]) for time in ("ts", "at"))
    bound = join.bind(left, right)
    table = bound.united(1, pa.table([[1] * len(times), times], schema=right), pa.array(times, pa.int64()))
    return frame_plan_for(table, bound.spec_of(1), join_input=JoinInput("right", "at", True)), table


def test_bad_rows_of_a_join_raise_by_the_column_of_their_input():
    with pytest.raises(fw.BadRowError, match=r"event_time 'at': null .* in row 1 of the right input"):
        packed(*of_the_right_input([START_MS, None]))


def test_times_of_a_join_that_look_like_seconds_are_warned_of():
    frame_plan, table = of_the_right_input([START_MS // 1_000])
    with pytest.warns(UserWarning, match=r"event_time 'at': the int64 times .*: event_time\('at', unit='s'\)"):
        packed(frame_plan, table)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        packed(replace(frame_plan, join_input=JoinInput("right", "at", False)), table)
        packed(*of_the_right_input([START_MS]))


def test_batches_may_come_in_another_time_zone_or_width():
    table = events(8, 300, keys="string")
    other = table.set_column(0, "k", table["k"].cast(pa.large_string())).set_column(
        1, "ts", table["ts"].cast(pa.timestamp("us", tz="Asia/Tokyo"))
    )
    assert packed(frame_plan_for(table), other) == packed(frame_plan_for(table), table)


@pytest.mark.parametrize("sizes", [[], [0], [5], [0, 5, 0], [1, 1, 1], [100, 100, 0, 100, 0]])
@pytest.mark.parametrize("flush_rows", [1, 100, 10_000])
def test_both_ways_out_say_the_same(monkeypatch, sizes, flush_rows):
    monkeypatch.setattr(pack, "FLUSH_ROWS", flush_rows)
    table = events(9, sum(sizes), null_times=0.05)
    frame_plan = frame_plan_for(table, SPEC.bad_rows("divert"))
    batches, at = [], 0
    for size in sizes:
        batches.append(
            pa.RecordBatch.from_arrays([c.combine_chunks() for c in table.slice(at, size).columns], table.column_names)
        )
        at += size
    by_rows = [row for batch in pack._pack_rows(frame_plan, iter(batches)) for row in batch.to_pylist()]
    columns = list(pack._pack_columns(frame_plan, iter([tuple(batch.columns) for batch in batches])))
    assert [len(column) for column in columns] == [size for size in sizes if size]
    by_columns = [row for column in columns for value in column.to_pylist() if value is not None for row in value]
    assert by_columns == by_rows
    told = (PacketKind.RECORD, PacketKind.CLOCK)  # the newest time
    assert sum(row["rows"] for row in by_rows if row["kind"] not in told) == sum(sizes)


def test_one_column_comes_without_a_tuple():
    table = pa.table({"ts": pa.array([START_MS * 1000], pa.timestamp("us", tz="UTC"))})
    spec = fw.key_by().event_time("ts").window(fw.TumblingEventTimeWindows.of("1 min")).aggregate(n=fw.Count())
    (column,) = pack._pack_columns(frame_plan_for(table, spec), iter([table["ts"].combine_chunks()]))
    assert [row["rows"] for row in column.to_pylist()[0]] == [1, START_MS, 0]  # the record is told the newest time


def test_a_naive_time_is_read_in_the_time_zone():
    table = pa.table({"k": [1], "ts": pa.array([np.datetime64("2024-07-01T12:00", "us")]), "v": [1]})
    schema = table.schema.append(pa.field("__event_time_ms", pa.int64()))
    spec = SPEC.event_time("__event_time_ms")
    frame_plan = frame_plan_for(table, spec, schema=schema, time_column="ts", time_zone="Europe/Berlin", coalesce=False)
    assert frame_plan.packed_schema.names == ["k", "v", "ts"]
    (row,) = good(packed(frame_plan, table))
    assert decode(row["blob"], frame_plan.plan.input_schema).to_pylist() == [
        {"k": 1, "__event_time_ms": 1719828000000, "v": 1}
    ]


@pytest.mark.parametrize("most", [1 << 20, 50])
def test_partial_results_travel_instead_of_rows(monkeypatch, most):
    monkeypatch.setattr(pack, "MOST_PARTIALS", most)
    monkeypatch.setattr(pack, "FLUSH_ROWS", 500)
    monkeypatch.setattr(pack, "MOST_HELD", 2.0)
    table = events(1, 5000)
    frame_plan = frame_plan_for(table)
    rows = packed(frame_plan, table)
    assert not good(rows)
    assert sum(row["rows"] for row in partials(rows)) == 5000
    assert len({row["seq"] for row in partials(rows)}) == (1 if most > 50 else 10)
    assert merged(frame_plan, rows) == expected(frame_plan, table)


def test_rows_whose_gap_is_none_are_bad_rows():
    table = events(1, 6).append_column("gap", pa.array([5, 0, None, 5, -1, 5]))
    spec = fw.key_by("k").event_time("ts").window(fw.EventTimeSessionWindows.with_dynamic_gap("gap"))
    frame_plan = frame_plan_for(table, spec.bad_rows("divert").aggregate(n=fw.Count()))
    rows = packed(frame_plan, table)
    assert sum(row["rows"] for row in good(rows)) == 3
    (bad,) = (decode(row["blob"], frame_plan.plan.bad_schema) for row in rows if row["kind"] == PacketKind.BAD)
    assert bad.column("gap").to_pylist() == [0, None, -1]
    assert set(bad.column("bad_reason").to_pylist()) == {
        "gap that is null, below 1 ms or no duration of whole milliseconds"
    }


def test_shares_hold_the_key_groups_of_a_partition():
    table = events(1, 2000)
    frame_plan = frame_plan_for(table, coalesce=False)
    packer = Packer(frame_plan, 0, shares=3)
    packer.add(table.select(frame_plan.packed_schema.names).combine_chunks().to_batches()[0].columns)
    rows = [row for batch in packer.finish() for row in batch.to_pylist()]
    by_share = {row["key_group"]: decode(row["blob"], frame_plan.plan.input_schema) for row in good(rows)}
    numbers = {identity: share for share, identity in enumerate(ids(3).tolist())}
    assert set(by_share) <= set(numbers)
    for identity in by_share:
        share = numbers[identity]
        groups = key_hash(by_share[identity], ["k"]) % np.uint64(8)
        assert set((groups % np.uint64(3)).tolist()) == {share}


def test_a_hot_key_is_one_row_a_window():
    table = pa.table({"k": [7] * 1000, "ts": pa.array([START_MS] * 1000, pa.timestamp("ms")), "v": [1] * 1000})
    table = table.set_column(1, "ts", table["ts"].cast(pa.timestamp("us", tz="UTC")))
    frame_plan = frame_plan_for(table)
    (row,) = partials(packed(frame_plan, table))
    assert row["rows"] == 1000
    assert len(row["blob"]) < 4000
    assert [one["n"] for one in merged(frame_plan, [row])] == [1000]


def test_a_task_whose_rows_hardly_meet_ships_rows(monkeypatch):
    monkeypatch.setattr(pack, "FLUSH_ROWS", 100)
    stamp = pa.array([START_MS] * 1000, pa.timestamp("ms")).cast(pa.timestamp("us", tz="UTC"))
    table = pa.table({"k": range(1000), "ts": stamp, "v": [1] * 1000})
    rows = packed(frame_plan_for(table), table, size=100)
    assert sum(row["rows"] for row in partials(rows)) == 100
    assert sum(row["rows"] for row in good(rows)) == 900


SESSIONS = (
    fw.key_by("k").event_time("ts").window(fw.EventTimeSessionWindows.with_gap("10 min")).aggregate(s=fw.Sum("v"))
)


def test_partial_sessions_are_made_of_many_rows_at_once(monkeypatch):
    monkeypatch.setattr(pack, "FLUSH_ROWS", 100)
    monkeypatch.setattr(pack, "FLUSH_ROWS_AT_ONCE", 1500)
    monkeypatch.setattr(pack, "MOST_HELD", 2.0)
    table = events(1, 4000)
    frame_plan = frame_plan_for(table, SESSIONS)
    rows = packed(frame_plan, table, size=100)
    assert not good(rows)
    per_flush = Counter()
    for row in partials(rows):
        per_flush[row["seq"]] += row["rows"]
    assert per_flush == {0: 1500, 1: 1500, 2: 1000}
    assert merged(frame_plan, rows) == expected(frame_plan, table)


def test_a_task_whose_sessions_hold_hardly_more_than_a_row_ships_rows(monkeypatch):
    monkeypatch.setattr(pack, "FLUSH_ROWS", 100)
    monkeypatch.setattr(pack, "FLUSH_ROWS_AT_ONCE", 300)
    stamp = pa.array([START_MS] * 1000, pa.timestamp("ms")).cast(pa.timestamp("us", tz="UTC"))
    table = pa.table({"k": range(1000), "ts": stamp, "v": [1] * 1000})
    rows = packed(frame_plan_for(table, SESSIONS), table, size=100)
    assert sum(row["rows"] for row in partials(rows)) == 300
    assert [row["rows"] for row in good(rows) if row["rows"] > 100] == []
    assert sum(row["rows"] for row in good(rows)) == 700


@pytest.mark.parametrize("spec", [SPEC, SESSIONS])
def test_wide_rows_that_hardly_meet_are_shipped_as_rows_too(monkeypatch, spec):
    """Flushes are of fewer rows then than it takes to decide."""
    monkeypatch.setattr(pack, "FLUSH_ROWS", 500)
    monkeypatch.setattr(pack, "FLUSH_BYTES", 2500)  # about a hundred rows
    stamp = pa.array([START_MS] * 2000, pa.timestamp("ms")).cast(pa.timestamp("us", tz="UTC"))
    table = pa.table({"k": range(2000), "ts": stamp, "v": [1] * 2000})
    rows = packed(frame_plan_for(table, spec), table, size=50)
    assert max(row["rows"] for row in good(rows) + partials(rows)) < 500
    assert 500 <= sum(row["rows"] for row in partials(rows)) < 700
    assert sum(row["rows"] for row in good(rows) + partials(rows)) == 2000


def test_how_far_ahead_a_row_is_follows_from_the_micro_batchs_time():
    """So a batch that runs again, years later too, judges it as before."""
    table = events(1, 100)
    frame_plan = frame_plan_for(table, SPEC.bad_rows("drop"), max_future_skew_ms=0)
    for now_ms, bad in ((START_MS + 10**9, 0), (START_MS - 10**9, 100)):
        rows = packed(frame_plan, table, now_ms=now_ms)
        assert sum(row["rows"] for row in rows if row["kind"] == PacketKind.BAD) == bad


def test_the_micro_batchs_time_counts_from_the_first_row_that_has_it():
    """Rows that are surely not too far ahead need not bring it."""
    table = pa.concat_tables([events(1, 300), events(2, 100, start_ms=START_MS + 10**10)])
    frame_plan = frame_plan_for(table, SPEC.bad_rows("drop"), max_future_skew_ms=10**9)
    packer = Packer(frame_plan, 3)
    found = []
    for batch in table.select(frame_plan.packed_schema.names).to_batches(max_chunksize=50):
        ahead = pc.greater(batch.column("ts").cast(pa.int64()), (START_MS + 10**9) * 1_000)
        now = pc.if_else(ahead, pa.scalar(START_MS * 1_000, pa.int64()), None).cast(pa.timestamp("us", "UTC"))
        found.append(packer.add([*batch.columns, now]))
    rows = [row for batch in [*found, *packer.finish()] if batch is not None for row in batch.to_pylist()]
    assert rows == packed(frame_plan, table, size=50)
    assert sum(row["rows"] for row in rows if row["kind"] == PacketKind.BAD) == 100
