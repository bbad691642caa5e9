"""Sums, means and extremes at the ends of their ranges: every operator, a restore and merged parts give the same."""

import math
import random
import sys
from collections.abc import Callable
from fractions import Fraction

import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.run.replica import open_replica

TOP = sys.float_info.max
BASE = fw.key_by().event_time("ts")
DAY = fw.TumblingEventTimeWindows.of(1_000)
AGGREGATES = {"s": fw.Sum("x", on_overflow="null"), "m": fw.Mean("x"), "lo": fw.Min("x"), "hi": fw.Max("x")}
SPECS = {
    "tumbling": BASE.window(DAY),
    "sliding": BASE.window(fw.SlidingEventTimeWindows.of(1_000, 100)),
    "odd slices": BASE.window(fw.SlidingEventTimeWindows.of(1_000, 300, 100)),
    "session": BASE.window(fw.EventTimeSessionWindows.with_gap(1_000)),
    "general": BASE.window(DAY).with_pane_info(),
    "general sliding": BASE.window(fw.SlidingEventTimeWindows.of(1_000, 100)).with_pane_info(),
    "general session": BASE.window(fw.EventTimeSessionWindows.with_gap(1_000)).with_pane_info(),
    "evicting": BASE.window(DAY).evictor(fw.CountEvictor.of(1_000)),
}


def run(spec: fw.WindowSpec, table: pa.Table) -> pa.Table:
    return spec.run(table).main


def restored(spec: fw.WindowSpec, table: pa.Table) -> pa.Table:
    """Half of the table, then a snapshot and a restore, then the rest row by row."""
    stream = spec.open()
    stream.process(table.slice(0, len(table) // 2))
    again = spec.open()
    again.restore([stream.snapshot()])
    for i in range(len(table) // 2, len(table)):
        again.process(table.slice(i, 1))
    return again.advance_watermark(fw.MAX_TIMESTAMP).main


def merged(spec: fw.WindowSpec, table: pa.Table) -> pa.Table:
    """Each row in a part of its own."""
    plan = fw.plan(spec, table.schema, coalesce=True)
    stream = open_replica(plan)
    for batch in table.combine_chunks().to_batches(max_chunksize=1):
        feeder = plan.new_feeder()
        assert feeder is not None
        feeder.add(plan.batch(batch, plan.times(batch)))
        stream.merge([partial.chunk for partial in feeder.partials()])
    return stream.advance_watermark(fw.MAX_TIMESTAMP).main


WAYS = {"run": run, "restored": restored, "merged": merged}
ELEMENTS_ONLY = [(name, "merged") for name in SPECS if name.startswith(("general", "evicting"))]


@pytest.fixture(
    params=[(name, way) for name in SPECS for way in WAYS if (name, way) not in ELEMENTS_ONLY],
    ids=lambda pair: "-".join(pair),
)
def found(request: pytest.FixtureRequest) -> Callable[[list, pa.DataType], dict]:
    """Gives the results over values, all in one window, at times that ascend."""
    name, way = request.param

    def results(values: list, kind: pa.DataType) -> dict:
        times = pa.array([100 * (i % 10) for i in range(len(values))], pa.int64())
        table = pa.table({"ts": times, "x": pa.array(values, kind)}).sort_by("ts")
        main = WAYS[way](SPECS[name].aggregate(n=fw.Count(), **AGGREGATES), table)
        all_of_them = next(row for row in main.to_pylist() if row["n"] == len(values))
        return {name: all_of_them[name] for name in AGGREGATES}

    return results


@pytest.mark.parametrize(
    ("values", "total", "mean"),
    [
        ([1e308, 1e308, -1e308, -1e308], 0.0, 0.0),
        ([1e308, 1e308, 1e308, 1.0, -1e308, -1e308, -1e308], 1.0, 1 / 7),
        ([TOP, TOP], math.inf, TOP),
        ([-TOP, -TOP, -TOP, 1.0], -math.inf, -0.75 * TOP),
        ([1e308, 1e308, -math.inf], -math.inf, -math.inf),
        ([math.inf, 1e308, 1e308, -math.inf], math.nan, math.nan),
    ],
)
def test_float_sums_leave_the_range_and_come_back(found, values: list, total: float, mean: float) -> None:
    got = found(values, pa.float64())
    assert got["s"] == pytest.approx(total, rel=1e-15, nan_ok=True)
    assert got["m"] == pytest.approx(mean, rel=1e-15, nan_ok=True)


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()], ids=str)
@pytest.mark.parametrize("values", [[0.0, -0.0], [-0.0, 0.0], [0.0, -0.0, -0.0, 0.0]], ids=str)
def test_zeros_are_in_order(found, values: list, kind: pa.DataType) -> None:
    got = found(values, kind)
    assert math.copysign(1, got["lo"]) == -1
    assert math.copysign(1, got["hi"]) == 1


@pytest.mark.parametrize("seed", range(3))
def test_int_means_are_the_nearest_floats(found, seed: int) -> None:
    dice = random.Random(seed)
    values = [dice.randint(-(2**60), 2**60) for _ in range(dice.randint(3, 7))]
    assert found(values, pa.int64())["m"] == float(Fraction(sum(values), len(values)))


def test_a_mean_is_rounded_once(found) -> None:
    """With 64 bits in between, as some machines have them, 2**62 + 2**9 + 1/7 would become the even one of two."""
    values = [2**62 + 2**9] * 6 + [2**62 + 2**9 + 1]
    assert found(values, pa.int64())["m"] == float(2**62 + 2**10)
