"""Rounds of repeating: each turn finds what a look at all rows finds, whatever came and went since the round began."""

import random
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.columns.keys import KeyCodec
from fastwin.errors import StateError
from fastwin.operators.general.repeating import GeneralRound, RowTimer, is_unmarked
from fastwin.run.planner import plan
from fastwin.run.replica import open_replica
from fastwin.state.chunks import read_meta
from fastwin.state.refresh import MOST_TURNS, Refresh, Repeated, Round
from tests.support import newer_specs, stored_specs, stored_streams
from tests.support.newer_specs import JOIN, joined_rows
from tests.support.seeds import seed
from tests.support.stored_steps import Step, rebuilt, run, steps
from tests.support.variants import variants

GROUPS = 8
SEVERAL_FILLED = (
    newer_specs.BY_TEXT.windows(slide=newer_specs.SLIDING, minute=newer_specs.MINUTE, fill="empty", longest_gap="3 m")
    .allowed_lateness("15 s")
    .aggregate(n=fw.Count())
)
SPECS = stored_specs.SPECS | newer_specs.SPECS | {"join": JOIN.spec, "several_filled": SEVERAL_FILLED}
SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("ms"))])


def rows_of(keys: np.ndarray) -> pa.Table:
    return pa.table([keys, pa.array(np.zeros(len(keys), dtype=np.int64), pa.timestamp("ms"))], schema=SCHEMA)


def in_rounds(dice: random.Random, count: int, groups: tuple[int, ...]) -> list[Step]:
    """Micro-batches of which most are turns of rounds, the last 20 all; before, some turns are left out."""
    refreshes = (None if dice.random() < 0.2 and i < count - 20 else Refresh(GROUPS, groups) for i in range(count))
    return [step._replace(refresh=refresh) for step, refresh in zip(steps(dice, count), refreshes, strict=True)]


def turned(step: Step, turn: int, groups: int) -> Step:
    if step.refresh is None or turn >= groups:
        return step
    return step._replace(refresh=Refresh(GROUPS, step.refresh.groups, turn))


def in_step(self: Round, refresh: Refresh) -> bool:
    """Goes on however much has changed: with so few rows, rounds would be made anew most of the time."""
    return refresh == self._next and refresh.left > 0


def look(self: Round) -> Repeated:
    """Finds the rows of a turn among all."""
    turn = self._next
    changed = [set(rows.dirty_slots().tolist()) for rows in self._kinds]
    by_group: list[list[list[int]]] = []
    for rows, dirty in zip(self._kinds, changed, strict=True):
        by_group.append([[] for _ in range(turn.key_groups)])
        clean = [slot for slot in rows.slots().tolist() if slot not in dirty]
        for slot, group in zip(clean, groups_of(self, rows, clean), strict=True):
            by_group[-1][group].append(slot)
    taken, left = list(turn.groups[turn.turn :]), sum(map(len, changed)) // 4
    for at, group in enumerate(taken):
        left -= sum(len(groups[group]) for groups in by_group)
        if left < 0:
            taken = taken[: max(at, 1)]
            break
    self._next = replace(turn, turn=turn.turn + len(taken))
    found = [sorted(slot for group in taken for slot in groups[group]) for groups in by_group]
    dirty_slots = [rows.dirty_slots() for rows in self._kinds]
    among = [np.isin(groups_of(self, *some), taken) for some in zip(self._kinds, dirty_slots, strict=True)]
    unchanged = [np.array(slots, some.dtype) for slots, some in zip(found, dirty_slots, strict=True)]
    return Repeated(dirty_slots, among, unchanged, len(taken))


def groups_of(on: Round, rows, slots) -> list[int]:
    ids = rows.keys(np.array(slots, rows.dirty_slots().dtype))
    return KeyCodec.groups(on._keys, ids, on._next.key_groups).tolist()


def timers(self: GeneralRound, slots: np.ndarray) -> set[RowTimer]:
    """Finds the timers of rows among all."""
    wanted, service, found = set(slots.tolist()), self._service, set()
    for kind in (0, 1):
        for time, slot in zip(*(column.tolist() for column in service.listed(not kind)), strict=True):
            if slot in wanted and is_unmarked(service, slot, time, kind):
                found.add((slot, time, kind))
    return found


@pytest.mark.parametrize("name", variants(SPECS, *[*SPECS][::3]))
def test_a_stream_in_a_round_writes_what_one_writes_that_looks_at_all_rows(name, monkeypatch):
    dice = random.Random(seed())
    monkeypatch.setattr(Round, "goes_on", in_step)
    schema = JOIN.schema if name == "join" else stored_streams.SCHEMA
    live, looks, turn = rebuilt(SPECS[name], [], schema), rebuilt(SPECS[name], [], schema), 0
    log: list[bytes] = []
    since = first = None  # of the last round that is over, and of the one that is on
    for number, step in enumerate(in_rounds(dice, 40, tuple(range(GROUPS)))):
        step = turned(step, turn, GROUPS)
        if name == "join":
            step = step._replace(rows=joined_rows(step.rows))
        told = run(live, step)
        with monkeypatch.context() as patch:
            patch.setattr(Round, "take", look)
            patch.setattr(GeneralRound, "timers", timers)
            assert run(looks, step) == told
        if since is not None and dice.random() < 0.1:
            assert run(rebuilt(SPECS[name], log[since:], schema), step) == told
        log.append(told)
        if turn >= GROUPS:
            turn = 0
        elif step.refresh is None:  # some go on with their turns; but a log that forgets has to begin anew
            turn, first = dice.choice([turn, 0]), None
        else:
            first = number if turn == 0 else first
            turn += read_meta(told)["refreshed"]
            since = first if turn >= GROUPS and first is not None else since
    assert rebuilt(SPECS[name], log[since:], schema).snapshot() == live.snapshot()
    assert since, "no round came to its end"


START = fw.key_by("k").event_time("ts")
HOURS = START.window(fw.TumblingEventTimeWindows.of("1 hour"))
MANY = {
    "aligned": HOURS.aggregate(n=fw.Count()),
    "general": HOURS.trigger(fw.ContinuousEventTimeTrigger.of("7 s")).aggregate(n=fw.Count()),
    "several": START.windows(
        minute=fw.TumblingEventTimeWindows.of("1 minute"), hour=fw.TumblingEventTimeWindows.of("1 hour")
    ).aggregate(n=fw.Count()),
    "rows": HOURS.deduplicate("last"),
}


@pytest.mark.parametrize("name", MANY)
def test_a_turn_looks_at_what_it_repeats(name, monkeypatch):
    looked = []
    groups = Round._groups
    monkeypatch.setattr(Round, "_groups", lambda *given: looked.append(len(given[2])) or groups(*given))
    found = {}
    for keys in (1_000, 100_000):
        stream, shares = open_replica(plan(MANY[name], SCHEMA, coalesce=True)), tuple(range(64))
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


def test_a_round_of_many_groups_is_over_after_some_hundred_deltas():
    stream, groups, turn, deltas = open_replica(plan(MANY["aligned"], SCHEMA, coalesce=True)), 32_768, 0, 0
    stream.process(rows_of(np.arange(5_000)))
    stream.delta()
    while turn < groups:
        stream.process(rows_of(np.arange(1)))
        turn += read_meta(stream.delta(Refresh(groups, tuple(range(groups)), turn)))["refreshed"]
        deltas += 1
    assert deltas <= MOST_TURNS == 256


def test_rows_of_a_group_that_nothing_repeats_are_an_error():
    spec = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of("1 hour")).aggregate(n=fw.Count())
    stream = open_replica(plan(spec, SCHEMA))
    stream.process(rows_of(np.arange(50)))
    stream.delta()
    with pytest.raises(StateError, match=r"key group . among those of the groups"):
        stream.delta(Refresh(8, (1, 2)))


@pytest.mark.parametrize("changed", [1, 40])
def test_numbers_of_rows_cost_no_memory(changed: int) -> None:
    """Rows that are kept are told by their arrival, which grows for as long as a query runs."""
    spec = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of("1 h")).top(3, by="ts")
    replica = open_replica(plan(spec, SCHEMA, coalesce=True))
    replica.process(rows_of(np.arange(40 - changed)))
    replica.delta()
    replica._operator._arrived = 2**45
    replica.process(rows_of(np.arange(100, 100 + changed)))
    turn, rows = 0, 0
    while turn < GROUPS:
        meta = read_meta(replica.delta(Refresh(GROUPS, tuple(range(GROUPS)), turn)))
        turn, rows = turn + meta["refreshed"], rows + meta["rows"]
    assert rows >= 40
