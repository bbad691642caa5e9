"""Rows that are near in time, as docs/recipes.md joins them: each pair once, as a naive model has it."""

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given
from hypothesis import strategies as st

import fastwin as fw

rows = st.lists(st.tuples(st.sampled_from("ab"), st.integers(-60, 60)), max_size=12)
batches = st.lists(st.tuples(rows, rows), min_size=1, max_size=3)
SCHEMAS = pa.schema([("k", pa.string()), ("ts", pa.int64())]), pa.schema([("k", pa.string()), ("at", pa.int64())])


def table(rows: list[tuple[str, int]], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema)


@given(batches=batches, before=st.integers(0, 30), after=st.integers(0, 30), slide=st.integers(1, 40))
def test_each_pair_comes_once(batches: list, before: int, after: int, slide: int) -> None:
    windows = fw.SlidingEventTimeWindows.of(max(before, after) + slide, slide)
    join = fw.window_join(fw.key_by("k").event_time("ts"), fw.key_by("k").event_time("at"), windows)
    stream = join.open(schemas=SCHEMAS)
    results = [stream.process(*map(table, batch, SCHEMAS)) for batch in batches]
    pairs = pa.concat_tables([result.main for result in [*results, stream.advance_watermark(1_000)]])
    apart = pc.subtract(pairs["at"], pairs["ts"])
    later = pc.max_element_wise(pairs["at"], pairs["ts"])
    first = pc.greater_equal(later, pc.subtract(pairs["window_end"].cast("int64"), slide))
    near = pc.and_(pc.greater_equal(apart, -before), pc.less_equal(apart, after))
    found = [tuple(row.values()) for row in pairs.filter(pc.and_(first, near)).select(["k", "ts", "at"]).to_pylist()]
    lefts, rights = ([row for batch in batches for row in batch[side]] for side in (0, 1))
    assert sorted(found) == sorted(
        (key, ts, at) for key, ts in lefts for other, at in rights if key == other and -before <= at - ts <= after
    )
