"""A result that cannot be told leaves the operator as it was: its state can be saved, and another goes on with it."""

from decimal import Decimal

import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.state.chunks import decode, owner

BASE = fw.key_by("k").event_time("ts")
WINDOWS = {
    "tumbling": fw.TumblingEventTimeWindows.of(10),
    "sliding": fw.SlidingEventTimeWindows.of(20, 10),
    "sliding over many slices": fw.SlidingEventTimeWindows.of(100, 10),
    "session": fw.EventTimeSessionWindows.with_gap(10),
}
LARGE = [Decimal(value) for value in (5, 10**37, 10**37, 7, 9)]
TABLE = pa.table({"k": [1, 2, 2, 1, 3], "ts": [1, 2, 3, 28, 61], "v": pa.array(LARGE, pa.decimal128(38, 0))})


def rows_of(chunk: bytes) -> dict:
    """What a snapshot holds; its place in the chain, which goes on, left out."""
    return {name: table.to_pydict() for name, table in decode(chunk, owner(chunk)).tables.items()}


@pytest.mark.parametrize("lateness", [0, 30])
@pytest.mark.parametrize("name", WINDOWS)
def test_what_could_not_fire_fires_once_it_can(name: str, lateness: int) -> None:
    base = BASE.window(WINDOWS[name]).allowed_lateness(lateness)
    plan = fw.plan(base.aggregate(n=fw.Count(), m=fw.Mean("v")), TABLE.schema)
    batch = TABLE.to_batches()[0]
    operator = plan.new_operator()
    operator.process(plan.batch(batch, plan.times(batch)))
    before = operator.snapshot()
    for _ in range(2):  # again and again the same
        with pytest.raises(fw.AggregateOverflowError):
            operator.advance_watermark(1_000)
        operator._check()
        assert rows_of(operator.snapshot()) == rows_of(before)
        assert operator.counters.fired == 0
    forgiving = base.aggregate(n=fw.Count(), m=fw.Mean("v", on_overflow="null"))
    told, again = forgiving.open(), forgiving.open()
    told.process(TABLE)
    again.restore([before])
    order = [("k", "ascending"), ("window_end", "ascending")]
    wanted, found = (stream.advance_watermark(1_000).main.sort_by(order).to_pylist() for stream in (told, again))
    assert found == wanted
    assert None in [row["m"] for row in found]
