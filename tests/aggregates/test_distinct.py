"""HyperLogLog in windows of every operator, through snapshots, deltas and restores."""

import random

import numpy as np
import pyarrow as pa
import pytest

import fastwin as fw
from fastwin import hyperloglog
from fastwin.core.accumulators.basic import AccumulatorSet
from fastwin.core.accumulators.exchange import adopt_rows
from fastwin.core.rows.rowstore import RowStore
from fastwin.core.sketches.hyperloglog import HyperLogLog
from tests.support.kernels import ids, pane_table, slots
from tests.support.naive import Model, Row, Sessions, Sliding

WINDOWS = {
    "tumbling": (fw.TumblingEventTimeWindows.of(100), Sliding(100, 100)),
    "sliding": (fw.SlidingEventTimeWindows.of(100, 30), Sliding(100, 30)),
    "session": (fw.EventTimeSessionWindows.with_gap(7), Sessions(7)),
}
LATENESS = 50


def spec_of(kind: str, operator: str) -> fw.WindowSpec:
    spec = fw.key_by("key").event_time("ts").window(WINDOWS[kind][0]).allowed_lateness(LATENESS)
    spec = spec.aggregate(
        users=fw.HyperLogLog("user"), sketch=fw.HyperLogLog("user", output="sketch"), items=fw.HyperLogLog("item")
    )
    # An own trigger, though it does what the default one does, is for the general operator.
    return spec.trigger(fw.any_of(fw.EventTimeTrigger())) if operator == "general" else spec


def batches(seed: int, wide: bool) -> list[list[Row]]:
    """Rows of (user, item), some null; wide: so many users that sketches become dense."""
    random.seed(seed)
    made, n = [], 0
    for step in range(6):
        rows = []
        for _ in range(3_000 if wide else 60):
            time = step * 60 + random.randrange(-120, 120)
            user = f"u{random.randrange(20_000 if wide else 40)}" if random.random() < 0.9 else None
            rows.append(
                Row(n, random.choice("ab") if wide else random.choice("abcdef"), time, (user, random.randrange(30)))
            )
            n += 1
        made.append(rows)
    return made


def table(rows: list[Row]) -> pa.Table:
    return pa.table(
        {
            "key": [row.key for row in rows],
            "ts": pa.array([row.time for row in rows], pa.int64()),
            "user": pa.array([row.values[0] for row in rows], pa.string()),
            "item": pa.array([row.values[1] for row in rows], pa.int32()),
        }
    )


class Distinct(Model):
    """The naive model with sketches: of all values of a window at once."""

    def _fire(self, key, window, timer, fed) -> None:
        super()._fire(key, window, timer, fed)
        rows = self.contents[key, window]
        users, items = (
            pa.array([row.values[i] for row in rows], kind) for i, kind in ((0, pa.string()), (1, pa.int32()))
        )
        sketch = hyperloglog.sketch(users)
        values = (hyperloglog.estimate(sketch), sketch, hyperloglog.estimate(hyperloglog.sketch(items)))
        fed.emissions[-1] = fed.emissions[-1]._replace(values=values)


def emitted(result: pa.Table) -> list[tuple]:
    columns = [column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column for column in result.columns]
    return sorted(zip(*(column.to_pylist() for column in columns), strict=True))


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("operator", ["own", "general"])
@pytest.mark.parametrize("kind", WINDOWS)
def test_windows_count_distinct_values(kind: str, operator: str, wide: bool, restarts: bool) -> None:
    spec = spec_of(kind, operator)
    assert ("general" in spec.explain()) == (operator == "general")
    model = Distinct(WINDOWS[kind][1], [], lateness=LATENESS)
    stream, chunks, most = spec.open(), [], 0
    for step, rows in enumerate(batches(1, wide)):
        got = [stream.process(table(rows)).main, stream.advance_watermark(step * 60 - 30).main]
        wanted = model.batch(rows).emissions + model.advance(step * 60 - 30).emissions
        assert emitted(pa.concat_tables(got)) == sorted((e.key, e.start, e.end, *e.values) for e in wanted)
        most = max([most, *(e.values[0] for e in wanted)])
        if restarts:
            chunks.append(stream.snapshot() if not chunks else stream.delta())
            if step % 2:
                stream = spec.open(schema=table(rows).schema)
                stream.restore(chunks)
                stream._operator._check()
    last = sorted((e.key, e.start, e.end, *e.values) for e in model.advance(10**9).emissions)
    assert emitted(stream.advance_watermark(10**9).main) == last
    most = max([most, *(values[3] for values in last)])
    assert (most > 1_800) == wide, "sketches become dense, or none does"


def test_evicted_elements_are_not_counted() -> None:
    spec = (
        fw.key_by().event_time("ts").window(fw.TumblingEventTimeWindows.of(100)).evictor(fw.CountEvictor.of(2))
    ).aggregate(users=fw.HyperLogLog("user"))
    result = spec.run(pa.table({"ts": [1, 2, 3, 4], "user": ["a", "b", "c", "c"]})).main
    assert result["users"].to_pylist() == [1]


def test_windows_without_values_count_zero() -> None:
    spec = fw.key_by().event_time("ts").window(fw.TumblingEventTimeWindows.of(10))
    spec = spec.aggregate(n=fw.HyperLogLog("x"), s=fw.HyperLogLog("x", output="sketch"), rows=fw.Count("x"))
    result = spec.run(pa.table({"ts": [1], "x": pa.array([None], pa.string())})).main
    assert result["n"].to_pylist() == [0]
    assert hyperloglog.estimate(result["s"].to_pylist()) == 0
    assert result.schema.field("s").type == pa.binary()


def test_a_purged_window_counts_anew() -> None:
    spec = fw.key_by().event_time("ts").window(fw.TumblingEventTimeWindows.of(100))
    spec = spec.trigger(fw.PurgingTrigger.of(fw.CountTrigger.of(2))).aggregate(n=fw.HyperLogLog("x"))
    result = spec.run(pa.table({"ts": [1, 2, 3, 4], "x": [1, 2, 3, 3]})).main
    assert result["n"].to_pylist() == [2, 1]


def test_rows_own_what_they_point_to() -> None:
    members = AccumulatorSet([HyperLogLog()])
    assert members.owned == (3,)
    panes = pane_table(members)
    rows = panes.rows
    panes.ensure(panes.keys.intern_int64(np.arange(3)), np.zeros(3, np.int64))
    empty = rows.nbytes
    members.add_rows(rows, slots(*[0] * 5_000), [(np.arange(5_000) * 2**14 + np.arange(5_000), None)])
    assert rows.nbytes > empty + 8_000
    offsets, data = rows.blobs(slots(0, 1), 3)
    assert offsets[1] == len(data) > 8_000
    rows.set_blobs(slots(2), 3, offsets[:2].copy(), data)
    assert members.results(rows, slots(0, 1, 2))[0][0].tolist()[0::2] == [members.results(rows, slots(0))[0][0][0]] * 2
    panes.drop_before(1)
    assert rows.nbytes <= empty
    with pytest.raises(IndexError, match="slots: must be at least 0 and below 0, got 0"):
        rows.blobs(slots(0), 3)


def test_owned_cells_are_checked() -> None:
    rows = RowStore([0, 0, 0, 0, 0], [4])
    assert rows.owned_cells == (4,)
    with pytest.raises(IndexError, match=r"cell: 3 owns no blocks, those that do are \(4,\)"):
        rows.blobs(ids(), 3)
    with pytest.raises(IndexError, match="owned: cell 5 is not behind the head of a row of 5"):
        RowStore([0, 0, 0, 0, 0], [5])
    with pytest.raises(IndexError, match="owned: cell 2 is not behind the head"):
        RowStore([0, 0, 0, 0, 0], [2])


@pytest.mark.parametrize(
    "blob",
    [
        b"\0" * 3,
        b"\0" * 24,
        b"\1" + b"\0" * 19,
        b"\0\0\0\0" + b"\1\1\0\0" * 4,
        b"\0" * (4 + 4 * 4_096),
        b"\1\0\0\0" + b"\0\0\0\xff" + b"\0" * 12,
        b"\0" * 20_000,
        b"\2\0\0\x80" + b"\1\1\0\0",
        b"\0\0\0\x80" + b"\0\0\0\xff",
    ],
    ids=lambda blob: str(len(blob)),
)
def test_blocks_of_another_form_are_refused(blob: bytes) -> None:
    members = AccumulatorSet([HyperLogLog()])
    panes = pane_table(members)
    panes.ensure(panes.keys.intern_int64(np.arange(1)), np.zeros(1, np.int64))
    data = np.frombuffer(blob, np.uint8)
    panes.rows.set_blobs(slots(0), 3, np.array([0, len(data)]), data)
    with pytest.raises(ValueError, match="HyperLogLog: a row holds what is none of its forms"):
        adopt_rows(members, panes.rows, slots(0))
