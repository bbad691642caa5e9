"""How large the blobs are in which packed rows travel: few large ones, and small ones where a backlog makes many."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import fastwin as fw
from spark_glue.stages import pack
from spark_glue.stages.packets import PacketKind, decode, pieces
from tests.support.spark_events import events
from tests.support.spark_jobs import frame_plan_for
from tests.support.spark_packing import expected, good, merged, packed, partials


def test_blobs_of_rows_stay_small_and_in_order(monkeypatch):
    """A backlog gives a share thousands of them, which Spark puts into one column of binary values."""
    monkeypatch.setattr(pack, "BLOB_BYTES", 500)
    monkeypatch.setattr(pack, "LARGE_BLOB_BYTES", 0)
    table = events(3, 3000).append_column("at", pa.array(range(3000)))
    window = fw.TumblingEventTimeWindows.of("1 min")
    spec = fw.key_by("k").event_time("ts").window(window).aggregate(x=fw.Last("at"))
    frame_plan = frame_plan_for(table, spec, coalesce=False)
    rows = good(packed(frame_plan, table, size=1500))
    assert max(row["rows"] for row in rows) <= 500 // (3 * 8)  # k, ts and at
    places = []
    for row in sorted(rows, key=lambda row: (row["key_group"], row["seq"])):
        places += [(row["key_group"], at) for at in decode(row["blob"], frame_plan.plan.input_schema)["at"].to_pylist()]
    assert len(places) == 3000
    assert places == sorted(places)


@pytest.mark.parametrize("large", [0, 3_000])
def test_bad_rows_leave_in_small_blobs_too_and_in_order(monkeypatch, large):
    monkeypatch.setattr(pack, "BLOB_BYTES", 500)
    monkeypatch.setattr(pack, "LARGE_BLOB_BYTES", large)
    table = events(3, 2_000, null_times=1.0).append_column("at", pa.array(range(2_000)))
    window = fw.TumblingEventTimeWindows.of("1 min")
    spec = fw.key_by("k").event_time("ts").window(window).bad_rows("divert").aggregate(x=fw.Last("at"))
    frame_plan = frame_plan_for(table, spec)
    monkeypatch.setattr(pack, "FLUSH_ROWS", 50)
    rows = [row for row in packed(frame_plan, table, mapper=0, size=50) if row["kind"] == PacketKind.BAD]
    assert len({row["key_group"] for row in rows}) == 1
    bad = [decode(row["blob"], frame_plan.plan.bad_schema) for row in sorted(rows, key=lambda row: row["seq"])]
    assert [row["rows"] for row in rows] == [batch.num_rows for batch in bad]
    assert [at for batch in bad for at in batch["at"].to_pylist()] == list(range(2_000))
    assert sum(batch.nbytes for batch in bad if batch.nbytes > 550) <= large
    assert (max(batch.num_rows for batch in bad) == 50) == (large > 0)


@pytest.mark.parametrize("assigner", [fw.TumblingEventTimeWindows.of(1000), fw.EventTimeSessionWindows.with_gap(500)])
def test_partial_results_are_bounded_in_bytes_and_a_task_sends_few_large_blobs(monkeypatch, assigner):
    monkeypatch.setattr(pack, "MOST_PARTIAL_BYTES", 30_000)
    monkeypatch.setattr(pack, "BLOB_BYTES", 1000)
    monkeypatch.setattr(pack, "FLUSH_ROWS_AT_ONCE", 500)
    monkeypatch.setattr(pack, "FLUSH_ROWS", 500)
    monkeypatch.setattr(pack, "MOST_HELD", 2.0)
    table = events(1, 5000)
    table = table.set_column(table.column_names.index("k"), "k", pa.array(np.arange(5000) * 7 % 400))
    spec = fw.key_by("k").event_time("ts").window(assigner)
    frame_plan = frame_plan_for(table, spec.aggregate(n=fw.Count(), x=fw.First("v"), y=fw.Last("v")))

    def sent(large: int) -> tuple[Counter, int, int]:
        """Returns the blobs by flush, how many groups there are, and the bytes of the first flush's largest blob."""
        monkeypatch.setattr(pack, "LARGE_BLOB_BYTES", large)
        rows = partials(packed(frame_plan, table, mapper=3))
        assert sum(row["rows"] for row in rows) == 5000
        assert merged(frame_plan, rows) == expected(frame_plan, table)
        blobs, groups = Counter(row["seq"] for row in rows), len({row["key_group"] for row in rows})
        sizes = Counter()
        for row in rows:
            if blobs[row["seq"]] <= groups and row["seq"] < max(blobs):
                sizes[row["key_group"]] += len(row["blob"])
        assert max(sizes.values(), default=0) <= large // 4
        return blobs, groups, max(len(row["blob"]) for row in rows if row["seq"] == min(blobs))

    whole, groups, largest = sent(1 << 22)
    assert len(whole) > 2
    assert max(whole.values()) <= groups
    small = sent(0)[0]
    assert all(count > 2 * groups for number, count in small.items() if number < max(small))
    first, *others = sorted(sent(4 * largest)[0].items())
    assert first[1] <= groups
    assert all(count > 2 * groups for _, count in others[:-1])


@pytest.mark.parametrize("large", [0, 400_000])
def test_long_rows_of_one_share_are_told_by_their_own_bytes(monkeypatch, large):
    """A few rows of one key, side by side, have nearly all bytes."""
    monkeypatch.setattr(pack, "FLUSH_ROWS", 1_000)
    monkeypatch.setattr(pack, "BLOB_BYTES", 20_000)
    monkeypatch.setattr(pack, "LARGE_BLOB_BYTES", large)
    table = events(3, 4_000)
    notes = ["x" * (9_000 if at % 1_000 < 60 else 1) for at in range(4_000)]
    keys = [0 if at % 1_000 < 60 else int(key) for at, key in enumerate(np.arange(4_000) % 97)]
    table = table.set_column(table.column_names.index("k"), "k", pa.array(keys)).append_column("note", pa.array(notes))
    window = fw.TumblingEventTimeWindows.of("1 min")
    frame_plan = frame_plan_for(table, fw.key_by("k").event_time("ts").window(window).aggregate(x=fw.Last("note")))
    frame_plan = replace(frame_plan, coalesce=False)
    rows = good(packed(frame_plan, table, mapper=0, size=1_000))
    held = Counter()
    for row in rows:
        if len(row["blob"]) > 22_000:
            held[row["key_group"]] += len(row["blob"])
    assert max(held.values(), default=0) <= 1.1 * large
    places = Counter()
    for row in sorted(rows, key=lambda row: (row["key_group"], row["seq"])):
        places[row["key_group"]] += decode(row["blob"], frame_plan.plan.input_schema).num_rows
    assert sum(places.values()) == 4_000


def test_rows_go_in_large_blobs_as_long_as_these_are_few(monkeypatch):
    monkeypatch.setattr(pack, "FLUSH_ROWS", 500)
    monkeypatch.setattr(pack, "BLOB_BYTES", 500)
    monkeypatch.setattr(pack, "LARGE_BLOB_BYTES", 64_000)
    table = events(3, 5000)
    frame_plan = frame_plan_for(table, coalesce=False)
    for mapper in (0, 3):
        large = Counter()
        rows = good(packed(frame_plan, table, mapper))
        for row in rows:
            if row["rows"] * 16 > 500:
                large[row["key_group"]] += row["rows"] * 16  # a key and a time, and at most a value
        assert large
        assert max(large.values()) <= 64_000 // (mapper + 1)
        assert sum(row["rows"] for row in rows) == 5000


def test_results_with_more_lists_than_one_array_has_room_for():
    never_touched = pa.py_buffer(np.zeros(5 << 28, np.uint8))
    text = pa.Array.from_buffers(pa.string(), 1, [None, pa.array([0, 5 << 28], pa.int32()).buffers()[1], never_touched])
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 1], pa.int32()), text)
    table = pa.table({"at": pa.chunked_array([[1, 2], [3, 4]]), "texts": pa.chunked_array([lists, lists])})
    with pytest.raises(pa.ArrowInvalid, match="overflow"):
        table.combine_chunks()
    found = pieces(table)
    assert [at for piece in found for at in piece["at"].to_pylist()] == [1, 2, 3, 4]
    assert [len(texts) for piece in found for texts in piece["texts"]] == [1, 0, 1, 0]
