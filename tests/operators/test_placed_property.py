"""Streams whose state moves to files and back in mid-run equal those that stay in memory, step for step."""

import gc

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import fastwin as fw
from fastwin.core.memory.regions import allow_memory
from fastwin.run import planner
from fastwin.run.replica import Replica, open_replica
from tests.support.disk import bytes_in_files, files_on_disk
from tests.support.forks import in_a_child

SCHEMA = pa.schema([("k", pa.int64()), ("name", pa.string()), ("ts", pa.int64()), ("v", pa.float64())])
SLIDING = fw.SlidingEventTimeWindows.of(400, 100)
SESSIONS = fw.EventTimeSessionWindows.with_gap(150)
NUMBERS = {"n": fw.Count(), "low": fw.Min("v"), "high": fw.Max("v"), "first": fw.First("v")}


def keyed(*columns: str):
    return fw.key_by(*columns).event_time("ts", unit="ms")


SPECS = {
    "sliding": keyed("k").window(SLIDING).allowed_lateness(100).aggregate(**NUMBERS),
    "texts": keyed("name", "k").window(fw.TumblingEventTimeWindows.of(200)).aggregate(**NUMBERS),
    "owned": keyed("k").window(SLIDING).aggregate(names=fw.HyperLogLog("name"), few=fw.Largest("v", 3)),
    "several": keyed("k").windows(short=fw.TumblingEventTimeWindows.of(100), long=SLIDING).aggregate(**NUMBERS),
    "sessions": keyed("k").window(SESSIONS).aggregate(**NUMBERS),
    "general": keyed("k").window(SESSIONS).trigger(fw.CountTrigger.of(2)).aggregate(**NUMBERS),
    "deduplicated": keyed("k").window(fw.TumblingEventTimeWindows.of(200)).deduplicate(keep="first"),
}


@pytest.fixture(autouse=True)
def disk():
    before = bytes_in_files()
    with files_on_disk():
        yield
        gc.collect()
        assert bytes_in_files() == before  # nothing is left behind


def table(rng: np.random.Generator, turn: int) -> pa.Table:
    n = int(rng.integers(1, 6_000))
    keys = rng.integers(0, 4_000 * (1 + turn % 4), n)
    times = np.clip(70 * turn + rng.integers(-150, 100, n), 0, None)
    names = pa.array([f"a name that is not short {key % 5_000}" for key in keys.tolist()])
    return pa.table({"k": keys, "name": names, "ts": times, "v": rng.integers(0, 50, n) / 4}, schema=SCHEMA)


def same(one: fw.Result, other: fw.Result) -> bool:
    return ordered(one.main).equals(ordered(other.main))


def ordered(main: pa.Table) -> pa.Table:
    """The rows in the order of all columns that have one."""
    main = main.rename_columns([str(i) for i in range(main.num_columns)])  # keys may be named alike
    compared = [f.name for f in main.schema if not (pa.types.is_binary(f.type) or pa.types.is_nested(f.type))]
    return main.take(pc.sort_indices(main, [(name, "ascending") for name in compared]))


def fed(stream: Replica, plan: planner.Plan, rows: pa.Table, as_partials: bool) -> fw.Result:
    feeder = plan.new_feeder() if as_partials else None
    if feeder is None:
        return stream.process(rows)
    (batch,) = rows.combine_chunks().to_batches()
    feeder.add(plan.batch(batch, plan.times(batch)))
    return stream.merge([part.chunk for part in feeder.partials()])


@pytest.mark.parametrize("name", SPECS)
def test_state_may_lie_anywhere(name):
    plan = planner.plan(SPECS[name], SCHEMA, coalesce=True)
    rng = np.random.default_rng(len(name))
    moved, stayed, behind = (open_replica(plan) for _ in range(3))
    most = 0
    for turn in range(13):
        most = max(most, moved.place(turn % 5 != 3) if turn else 0)
        rows, as_partials = table(rng, turn), turn % 3 == 1
        assert same(fed(moved, plan, rows, as_partials), fed(stayed, plan, rows, as_partials))
        if turn % 2:
            watermark = 70 * turn - 100
            assert same(moved.advance_watermark(watermark), stayed.advance_watermark(watermark))
        delta = moved.delta()
        assert delta == stayed.delta()
        behind.catch_up([delta])
        if turn % 4 == 1:
            behind.place(turn % 8 == 1)
        if turn == 9:  # others go on, which were loaded into files
            allow_memory(0)
            whole = stayed.snapshot()
            moved, behind = (open_replica(plan) for _ in range(2))
            for stream in (moved, behind):
                stream.restore([whole])
            allow_memory(None)
        assert moved.metrics.state_rows == stayed.metrics.state_rows == behind.metrics.state_rows
        moved._operator._check()
        behind._operator._check()
    assert most > 0
    assert moved.snapshot() == stayed.snapshot()
    assert same(moved.advance_watermark(100_000), behind.advance_watermark(100_000))
    assert moved.metrics.state_rows == 0


@pytest.mark.parametrize("name", ["sliding", "texts", "sessions"])
def test_a_child_lets_go_of_what_lies_in_files_from_the_start(name):
    """More than a thousand windows at once, so that the index of panes lies in a file, too."""
    held = {"moved": open_replica(planner.plan(SPECS[name], SCHEMA, coalesce=True))}
    n = 3_000
    rows = table(np.random.default_rng(3), 0).slice(0, 1)
    many = pa.table(
        {
            "k": np.zeros(n, np.int64),
            "name": pa.array(rows["name"].to_pylist() * n),
            "ts": np.arange(n) * 250,
            "v": np.ones(n),
        },
        schema=SCHEMA,
    )
    allow_memory(0)
    try:
        held["moved"].process(many)
        assert bytes_in_files() > 0
    finally:
        allow_memory(None)
    in_a_child(lambda: (held.clear(), gc.collect()))
    held["moved"]._operator._check()
    held["moved"].place(False)
    assert held["moved"].advance_watermark(10**9).main.num_rows >= n


@pytest.mark.parametrize("name", ["sliding", "owned"])
def test_a_fork_in_mid_run_changes_nothing(name):
    plan = planner.plan(SPECS[name], SCHEMA, coalesce=True)
    rng = np.random.default_rng(7)
    held = {"moved": open_replica(plan)}
    stayed = open_replica(plan)
    for turn in range(3):
        rows = table(rng, turn)
        assert same(held["moved"].process(rows), stayed.process(rows))
        assert held["moved"].place(True)

        def go_on(turn: int = turn) -> None:
            held.clear()
            gc.collect()
            stayed.process(table(rng, turn + 1))
            stayed.place(True)
            stayed._operator._check()

        in_a_child(go_on)
        lost = [bytearray(1 << 18) for _ in range(50)]
        assert not any(map(any, lost))
        held["moved"]._operator._check()
        assert held["moved"].delta() == stayed.delta()
