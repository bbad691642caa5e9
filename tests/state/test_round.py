"""Rounds of repeating: each turn finds what a look at all rows finds, whatever came and went since the round began."""

import random

import numpy as np
import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.errors import StateError
from fastwin.operators.protocol import EventTimeOperator
from fastwin.run.planner import plan
from fastwin.run.replica import open_replica
from fastwin.state.chunks import read_meta
from fastwin.state.refresh import Refresh, Repeated, Round
from tests.support import newer_specs, stored_specs
from tests.support.stored_steps import Step, rebuilt, run, steps

GROUPS = 8
SPECS = stored_specs.SPECS | newer_specs.SPECS
SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("ms"))])


def rows_of(keys: np.ndarray) -> pa.Table:
    return pa.table([keys, pa.array(np.zeros(len(keys), dtype=np.int64), pa.timestamp("ms"))], schema=SCHEMA)


def in_rounds(dice: random.Random, count: int, groups: tuple[int, ...]) -> list[Step]:
    """Micro-batches of which most are turns of rounds; a turn may be left out, and a round may begin anew."""
    refreshes = (None if dice.random() < 0.1 else Refresh(GROUPS, groups) for _ in range(count))
    return [step._replace(refresh=refresh) for step, refresh in zip(steps(dice, count), refreshes, strict=True)]


def turned(step: Step, turn: int, groups: int) -> Step:
    if step.refresh is None or turn >= groups:
        return step
    return step._replace(refresh=Refresh(GROUPS, step.refresh.groups, turn))


def in_step(self: Round, refresh: Refresh) -> bool:
    """Goes on however much has changed: with so few rows, rounds would be made anew most of the time."""
    return refresh == self._next and refresh.left > 0


def look(self: EventTimeOperator, refresh: Refresh, changed: np.ndarray) -> Repeated:
    """Finds the rows of a turn among all."""
    return refresh.take(self._keys, self._rows, changed, self._beside_keys())


@pytest.mark.parametrize("name", SPECS)
def test_a_stream_in_a_round_writes_what_one_writes_that_looks_at_all_rows(name, monkeypatch):
    seed = random.randrange(1 << 30)
    print("seed", seed)  # shown if it fails
    dice = random.Random(seed)
    monkeypatch.setattr(Round, "goes_on", in_step)
    live, looks, turn = rebuilt(SPECS[name], []), rebuilt(SPECS[name], []), 0
    for step in in_rounds(dice, 40, tuple(range(GROUPS))):
        step = turned(step, turn, GROUPS)
        told = run(live, step)
        with monkeypatch.context() as patch:
            patch.setattr(EventTimeOperator, "_repeated", look)
            assert run(looks, step) == told
        turn = 0 if step.refresh is None or turn >= GROUPS else turn + read_meta(told)["refreshed"]


def test_a_turn_looks_at_what_it_repeats(monkeypatch):
    spec = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of("1 hour")).aggregate(n=fw.Count())
    looked = []
    groups = Round._groups
    monkeypatch.setattr(Round, "_groups", lambda *given: looked.append(len(given[3])) or groups(*given))
    found = {}
    for keys in (1_000, 100_000):
        stream, shares = open_replica(plan(spec, SCHEMA)), tuple(range(64))
        stream.process(rows_of(np.arange(keys)))
        stream.delta()
        looked.clear()
        for turn in range(8):
            stream.process(rows_of(np.arange(10)))
            assert read_meta(stream.delta(Refresh(64, shares, turn)))["refreshed"] == 1
        assert looked.pop(0) == keys  # when the round begins
        found[keys] = max(looked)
    assert found[100_000] < 3 * 100_000 // 64
    assert found[1_000] < 60


def test_rows_of_a_group_that_nothing_repeats_are_an_error():
    spec = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of("1 hour")).aggregate(n=fw.Count())
    stream = open_replica(plan(spec, SCHEMA))
    stream.process(rows_of(np.arange(50)))
    stream.delta()
    with pytest.raises(StateError, match=r"key group . among those of the groups"):
        stream.delta(Refresh(8, (1, 2)))
