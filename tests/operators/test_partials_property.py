"""Partial results, made apart and merged, give what the elements themselves give as one batch without order."""

import random
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import fastwin as fw
from fastwin.errors import StateError
from fastwin.operators.session import operator as session
from fastwin.run.replica import open_replica
from tests.support import naive
from tests.support.cases import MANY, Case, cases
from tests.support.lockstep import Lockstep
from tests.support.variants import variants


def fed_apart(plan: fw.Plan, table, dice: random.Random) -> list[bytes]:
    """Chunks of one to three feeders, each with some of the rows, in some batches."""
    (rows,) = table.combine_chunks().to_batches() or [None]
    if rows is None:
        return []
    parts = dice.randint(1, 3)
    feeders = [plan.new_feeder(8, parts) for _ in range(dice.randint(1, 3))]
    # Each has a run of the rows: who was first at a time is told by the order of tasks.
    cuts = sorted(dice.randint(0, rows.num_rows) for _ in feeders[1:])
    for feeder, begin, end in zip(feeders, [0, *cuts], [*cuts, rows.num_rows], strict=True):
        step = max(1, end - begin) if feeder.at_once else 1
        for i in range(begin, end, step):
            some = rows.slice(i, step)
            feeder.add(plan.batch(some, plan.times(some)))
    whole, most = ((500, 500), (None, 1), (0, 1))[rows.num_rows % 3]
    found = [partial for feeder in feeders for partial in feeder.partials(whole, most)]
    assert sum(partial.elements for partial in found) == rows.num_rows
    assert all(partial.part < parts for partial in found)
    return [partial.chunk for partial in found]


@MANY
@given(cases(coalesce=st.just(True), policies=("raise",)), st.randoms(use_true_random=False))
def test_partials_give_what_elements_give(case: Case, dice: random.Random) -> None:
    # Sessions that have passed are taken from the latest back, so their ties are not those of the model.
    assume(not isinstance(case.windows, naive.Sessions))
    assume(not (isinstance(case.windows, naive.Sliding) and case.windows.size < case.windows.slide))
    case = replace(case, late_output=False)
    played = list(case.play())
    tables = [argument for kind, argument, _ in played if kind == "batch"]
    assume(tables)
    plan = fw.plan(case.spec(), tables[0].schema, coalesce=True)
    stream = open_replica(plan)
    pair = Lockstep(stream, case.model(), case.key_count)
    for kind, argument, rows in played:
        if kind == "watermark":
            pair.advance(argument)
        else:
            chunks = fed_apart(plan, argument.select(plan.input_columns), dice)
            pair._compare(stream.merge(chunks), pair.model.batch(rows))


def spec_of(assigner: fw.WindowAssigner) -> fw.WindowSpec:
    return fw.key_by("k").event_time("ts").window(assigner)


@pytest.mark.parametrize(
    ("spec", "coalesce"),
    [
        (spec_of(fw.SlidingEventTimeWindows.of(10, 20)).aggregate(n=fw.Count()), True),
        (spec_of(fw.TumblingEventTimeWindows.of(10)).side_output_late_data().aggregate(n=fw.Count()), True),
        (spec_of(fw.TumblingEventTimeWindows.of(10)).aggregate(n=fw.Count()), False),
        (spec_of(fw.TumblingEventTimeWindows.of(10)).allowed_lateness(5, coalesce=False).aggregate(n=fw.Count()), True),
        (spec_of(fw.TumblingEventTimeWindows.of(10)).trigger(fw.CountTrigger.of(2)).aggregate(n=fw.Count()), True),
        (spec_of(fw.TumblingEventTimeWindows.of(10)).aggregate(**{f"n{i}": fw.Count() for i in range(63)}), True),
    ],
    ids=["gaps", "late output", "in order", "in order by the spec", "trigger", "no room for a count"],
)
def test_rows_are_needed(spec, coalesce):
    plan = fw.plan(spec, pa.schema([("k", pa.int64()), ("ts", pa.int64())]), coalesce=coalesce)
    assert plan.new_feeder() is None


def test_state_is_no_partial_result():
    table = pa.table({"k": [1], "ts": [5]})
    spec = spec_of(fw.EventTimeSessionWindows.with_gap(10)).aggregate(n=fw.Count())
    plan = fw.plan(spec, table.schema, coalesce=True)
    stream = open_replica(plan)
    stream.process(table)
    with pytest.raises(StateError, match="no partial results"):
        open_replica(plan).merge([stream.delta()])
    feeder = plan.new_feeder()
    (rows,) = table.to_batches()
    feeder.add(plan.batch(rows, plan.times(rows)))
    (partial,) = feeder.partials()
    with pytest.raises(StateError, match="partial results"):
        open_replica(plan).catch_up([partial.chunk])


@pytest.mark.parametrize("absorbed", [1, 7, session._ABSORBED_ROWS])
def test_partial_sessions_give_what_a_run_gives(absorbed, monkeypatch):
    """Of all kinds of state: numbers, text, sketches; with nulls; more than one key column."""
    monkeypatch.setattr(session, "_ABSORBED_ROWS", absorbed)
    spec = fw.key_by("k", "l").event_time("ts").window(fw.EventTimeSessionWindows.with_gap(10))
    spec = spec.aggregate(
        n=fw.Count(),
        s=fw.Sum("v"),
        least=fw.Min("t"),
        first=fw.First("t"),
        last=fw.Last("v"),
        uv=fw.HyperLogLog("t"),
        spread=fw.Variance("v"),
    )
    dice = random.Random(5)
    for size in (0, 1, 2, 30, 500, 3000):
        table = pa.table(
            {
                "k": pa.array([dice.choice(["a", "bb", "", None]) for _ in range(size)], pa.string()),
                "l": pa.array([dice.randrange(12) for _ in range(size)], pa.int64()),
                "ts": pa.array([dice.randrange(-200, 3 * size + 1) for _ in range(size)], pa.int64()),
                "v": pa.array([dice.choice([None, *range(-5, 5)]) for _ in range(size)], pa.int64()),
                "t": pa.array([dice.choice([None, "", "x" * dice.randrange(20)]) for _ in range(size)], pa.string()),
            }
        )
        plan = fw.plan(spec, table.schema, coalesce=True)
        stream = open_replica(plan)
        stream.merge(fed_apart(plan, table, dice))
        stream._check_invariants()
        found = stream.advance_watermark(fw.MAX_TIMESTAMP).main
        order = [(name, "ascending") for name in ("window_start", "k", "l")]
        assert found.sort_by(order).equals(spec.run(table).main.sort_by(order))


@pytest.mark.parametrize("absorbed", [1, 2, session._ABSORBED_ROWS])
def test_sessions_that_another_task_joins_know_which_came_first(absorbed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_ABSORBED_ROWS", absorbed)
    spec = spec_of(fw.EventTimeSessionWindows.with_gap(10))
    spec = spec.aggregate(first=fw.FirstArrived("v"), last=fw.LastArrived("v"), n=fw.Count())
    tasks = [
        pa.record_batch({"k": [1, 2, 1, 3, 1], "ts": [40, 0, 0, 0, 20], "v": [1, 2, 3, 4, 5]}),
        pa.record_batch({"k": [3, 1, 1], "ts": [5, 10, 30], "v": [6, 7, 8]}),
    ]
    plan = fw.plan(spec, tasks[0].schema, coalesce=True)
    chunks = []
    for rows in tasks:
        feeder = plan.new_feeder()
        feeder.add(plan.batch(rows, plan.times(rows)))
        chunks += [partial.chunk for partial in feeder.partials()]
    stream = open_replica(plan)
    stream.merge(chunks)
    found = stream.advance_watermark(fw.MAX_TIMESTAMP).main.sort_by("k").select(["k", "first", "last", "n"])
    assert [tuple(row.values()) for row in found.to_pylist()] == [(1, 1, 8, 5), (2, 2, 2, 1), (3, 4, 6, 2)]


@pytest.mark.parametrize("size", [0, 1, 400])
def test_a_feeder_knows_how_many_rows_it_has(size):
    dice = random.Random(size)
    for assigner in (fw.TumblingEventTimeWindows.of(10), fw.EventTimeSessionWindows.with_gap(10)):
        schema = pa.schema([("k", pa.int64()), ("ts", pa.int64())])
        plan = fw.plan(spec_of(assigner).aggregate(n=fw.Count()), schema, coalesce=True)
        feeder = plan.new_feeder(8, 2)
        keys, times = ([dice.randrange(most) for _ in range(size)] for most in (9, 500))
        rows = pa.record_batch({"k": pa.array(keys, pa.int64()), "ts": pa.array(times, pa.int64())})
        assert feeder.rows == 0
        feeder.add(plan.batch(rows, plan.times(rows)))
        held = feeder.rows
        assert held == plan.spec.run(pa.table(rows)).main.num_rows
        stream = open_replica(plan)
        stream.merge([one.chunk for one in feeder.partials()])
        assert stream.metrics.state_rows == held


SHARED = (fw.SlidingEventTimeWindows, fw.CumulativeEventTimeWindows)


@pytest.mark.parametrize("lateness", variants([0, 250], 250))
@pytest.mark.parametrize(
    "assigner",
    [
        fw.TumblingEventTimeWindows.of(100),
        fw.SlidingEventTimeWindows.of(400, 100),
        fw.SlidingEventTimeWindows.of(350, 100),
        fw.CumulativeEventTimeWindows.of(400, 100),
        fw.EventTimeSessionWindows.with_gap(60),
    ],
    ids=str,
)
def test_late_partials_give_what_late_elements_give(assigner, lateness):
    spec = spec_of(assigner).allowed_lateness(lateness).aggregate(n=fw.Count(), s=fw.Sum("v"), h=fw.Max("v"))
    plan = fw.plan(spec, pa.schema([("k", pa.int64()), ("ts", pa.int64()), ("v", pa.float64())]), coalesce=True)
    dice = random.Random(lateness)
    apart, whole = open_replica(plan), open_replica(plan)
    again = 0
    for step in range(150):
        keys = [dice.randrange(4) for _ in range(8)]
        times = [step * 40 + int(dice.gauss(0, 200)) for _ in keys]
        values = [float(dice.randrange(100)) for _ in keys]
        table = pa.table({"k": keys, "ts": times, "v": values}, schema=plan.input_schema)
        for mine, theirs in (
            (apart.advance_watermark(step * 40 - 100), whole.advance_watermark(step * 40 - 100)),
            (apart.merge(fed_apart(plan, table, dice)), whole.process(table)),
        ):
            assert sorted(mine.main.to_pylist(), key=repr) == sorted(theirs.main.to_pylist(), key=repr)
        again += theirs.main.num_rows
        assert apart.metrics.num_late_records_dropped == whole.metrics.num_late_records_dropped
        assert apart.metrics.events == whole.metrics.events
        assert apart.metrics.open_windows == whole.metrics.open_windows
        apart._check_invariants()
    assert whole.metrics.num_late_records_dropped > 0 or (lateness and isinstance(assigner, SHARED))
    assert (again > 10) == (lateness > 0)


@pytest.mark.parametrize("keys", [4, 3_000])
def test_sessions_from_several_feeders_join_those_that_are_open(keys: int) -> None:
    """Where a batch has most of the keys, and where it has few of them."""
    dice = random.Random(keys)
    functions = {"n": fw.Count(), "s": fw.Sum("v"), "first": fw.First("v"), "last": fw.Last("v")}
    spec = spec_of(fw.EventTimeSessionWindows.with_gap(10)).aggregate(**functions)
    schema = pa.schema([("k", pa.int64()), ("ts", pa.int64()), ("v", pa.int64())])
    plan = fw.plan(spec, schema, coalesce=True)
    merged, fed = open_replica(plan), open_replica(plan)

    def step(table: pa.Table, watermark: int) -> None:
        merged.merge(fed_apart(plan, table, dice))
        fed.process(table)
        order = [("k", "ascending"), ("window_start", "ascending")]
        found, wanted = (one.advance_watermark(watermark).main.sort_by(order) for one in (merged, fed))
        assert found.equals(wanted)

    def some(n: int, begin: int, end: int) -> pa.Table:
        return pa.table(
            {
                "k": [dice.randrange(keys) for _ in range(n)],
                "ts": [dice.randrange(begin, end) for _ in range(n)],
                "v": [dice.randrange(99) for _ in range(n)],
            },
            schema,
        )

    step(pa.table({"k": range(keys), "ts": [0] * keys, "v": range(keys)}, schema), -1)
    for turn in range(12):
        step(some(40, 5 * turn, 5 * turn + 30), 5 * turn - 1)
    step(some(0, 0, 1), fw.MAX_TIMESTAMP)


@pytest.mark.parametrize(
    "assigner",
    [
        fw.TumblingEventTimeWindows.of(100),
        fw.SlidingEventTimeWindows.of(300, 100),
        fw.EventTimeSessionWindows.with_gap(60),
    ],
    ids=str,
)
@pytest.mark.parametrize("n", [40, 300, 5_000])
def test_partials_of_many_values_give_what_a_run_gives(assigner, n):
    """Of aggregates that keep values: as many as are held in another form than they are sent in."""
    spec = spec_of(assigner).aggregate(
        n=fw.Count(),
        high=fw.Quantile("v", 0.9),
        mid=fw.Median("v", 0.001),
        distinct=fw.CountDistinct("v"),
        often=fw.TopK("v", 3),
        least=fw.Smallest("v", 4),
        sketch=fw.HyperLogLog("v"),
    )
    table = pa.table(
        {
            "k": pa.array(np.arange(4 * n) // 4 % 2, pa.int64()),
            "ts": pa.array(np.arange(4 * n) // n * 40, pa.int64()),
            "v": np.tile(np.linspace(20, 100, n), 4),
        }
    )
    plan = fw.plan(spec, table.schema, coalesce=True)
    stream = open_replica(plan)
    for begin in (0, 2 * n):
        chunks = []
        for task in range(2):
            (rows,) = table.slice(begin + task * n, n).combine_chunks().to_batches()
            feeder = plan.new_feeder(8, 2)
            feeder.add(plan.batch(rows, plan.times(rows)))
            chunks += [partial.chunk for partial in feeder.partials(500, 500)]
        stream.merge(chunks)
        stream._check_invariants()
    order = [("window_start", "ascending"), ("k", "ascending")]
    assert stream.advance_watermark(fw.MAX_TIMESTAMP).main.sort_by(order).equals(spec.run(table).main.sort_by(order))
