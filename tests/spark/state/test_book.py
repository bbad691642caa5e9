"""A delta log that repeats and forgets: whoever loads what is left has the state, and so has whoever catches up."""

import copy
import random
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastwin as fw
from fastwin.run.replica import Replica, open_replica
from fastwin.state.chunks import read_meta
from fastwin.state.refresh import Refresh
from spark_glue.state import book as deltalog
from spark_glue.state.book import DeltaLog, Entry
from tests.support import spark_windows as windows
from tests.support.cases import MANY, Case, cases
from tests.support.lockstep import assert_rows_agree, emitted, main_rows
from tests.support.saved import peek
from tests.support.variants import variants

GROUPS = 4
SEEDS = variants(range(4), 0)
SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.int64()), ("v", pa.int64())])


class Store:
    """A log with the deltas themselves."""

    def __init__(self, groups: list[int]) -> None:
        self.log = DeltaLog()
        self.groups = groups
        self.deltas: dict[str, bytes] = {}

    def save(self, stream: Replica, lateness: int) -> None:
        metrics = stream.metrics
        delta = stream.delta(self.log.refresh(metrics.state_rows, GROUPS, self.groups))
        meta = read_meta(delta)
        token = f"{random.getrandbits(64):016x}"
        entry = Entry.of(self.log.next_chunk, 1, len(delta), token, meta)
        cleaned = None if stream.watermark < fw.MIN_TIMESTAMP + lateness else stream.watermark - lateness + 1
        before = {entry.token for entry in self.log.entries}
        self.log, gone = self.log.append(entry, meta.get("refreshed", 0), len(self.groups), cleaned)
        self.deltas[token] = delta
        assert before | {token} == {entry.token for entry in (*self.log.entries, *gone)}
        for old in gone:
            del self.deltas[old.token]
        assert DeltaLog.from_json(self.log.to_json()) == self.log

    def read(self, entries) -> list[bytes]:
        return [self.deltas[entry.token] for entry in entries]


@pytest.fixture(autouse=True)
def eager(monkeypatch):
    """Rounds begin as soon as there is something to forget."""
    monkeypatch.setattr(deltalog, "_SLACK_ROWS", 0)
    monkeypatch.setattr(deltalog, "_LOGGED_TIMES", 2)
    monkeypatch.setattr(deltalog, "_LEAST_LIMIT", 3)
    monkeypatch.setattr(deltalog, "_MOST_LIMIT", 3)


@MANY
@given(cases(), st.randoms(use_true_random=False))
def test_what_is_left_of_the_log_is_the_state(case: Case, dice: random.Random) -> None:
    spec = case.spec()
    stream, model, store = None, case.model(), Store(list(range(GROUPS)))
    copies: list[tuple[str, Replica]] = []
    for kind, argument, rows in case.play():
        if stream is None:
            if kind != "batch":
                model.step(kind, argument)
                waiting = argument
                stream = open_replica(fw.plan(spec, case.table([], 0).schema))
                stream.advance_watermark(waiting)
                store.save(stream, case.lateness)
                continue
            stream = open_replica(fw.plan(spec, argument.schema))
        model.step(kind, argument if rows is None else rows)
        stream.process(argument) if kind == "batch" else stream.advance_watermark(argument)
        store.save(stream, case.lateness)

        fresh = open_replica(fw.plan(spec, stream._plan.input_schema))
        fresh.catch_up(store.read(store.log.entries))
        found = [fresh]
        kept = []
        for token, one in copies:
            for _, missing in store.log.since_one_of({token}):
                if dice.random() < 0.5:
                    kept.append((token, one))
                    continue
                one.catch_up(store.read(missing))
                one._check_invariants()
                found.append(one)
        copies = [*kept, (store.log.token, fresh)]
        for one in found:
            assert one.watermark == stream.watermark
            assert one.metrics.state_rows == stream.metrics.state_rows
            twin = open_replica(fw.plan(spec, stream._plan.input_schema))
            twin.restore([peek(one)])
            wanted = emitted(copy.deepcopy(model).advance(fw.MAX_TIMESTAMP).emissions)
            assert_rows_agree(main_rows(twin.advance_watermark(fw.MAX_TIMESTAMP).main, case.key_count), wanted)
        for one in found[1:]:
            copies.append((store.log.token, one))
        copies = copies[-4:]


class Firings(fw.ProcessWindowFunction):
    """Numbers the firings of a key, over all its windows."""

    def process(self, key, context, elements):
        count = context.global_state().get_state(fw.ValueStateDescriptor("count"))
        count.update((count.value() or 0) + 1)
        yield count.value(), elements[0].n


@pytest.mark.parametrize("kind", ["tumbling", "sliding", "session", "general", "state of keys"])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_stream_handed_from_worker_to_worker_gives_what_one_gives(kind, seed):
    assigner = {
        "tumbling": fw.TumblingEventTimeWindows.of(500),
        "sliding": fw.SlidingEventTimeWindows.of(4_000, 500),
        "session": fw.EventTimeSessionWindows.with_gap(150),
        "general": fw.TumblingEventTimeWindows.of(500),
        "state of keys": fw.TumblingEventTimeWindows.of(500),
    }[kind]
    spec = fw.key_by("k").event_time("ts").window(assigner)
    if kind != "state of keys":  # a key that has fired is to be without a window at once
        spec = spec.allowed_lateness(300, coalesce=True)
    if kind == "general":
        spec = spec.with_pane_info()
    if kind == "state of keys":
        spec = spec.aggregate(n=fw.Count(), then=Firings(), output="firing bigint, n bigint")
    else:
        spec = spec.aggregate(n=fw.Count(), high=fw.Max("v"))
    dice = random.Random(seed)
    told = handed_about(spec, dice, 120, lambda step: [step // 4 + dice.randrange(12) for _ in range(5)])
    assert told["fired"] > 150
    assert told["handed"] > 50


def handed_about(spec, dice: random.Random, steps: int, keys_of, fresh: float = 0.0) -> Counter:
    """Runs a stream that goes about among three workers, one of which now and then loads it all; counts what happens.

    keys_of: the keys of a step's rows. Each step must give what it gives a stream that stays where it is.
    """
    alone, store, told = open_replica(fw.plan(spec, SCHEMA)), Store([3, 0, 2, 1]), Counter()
    workers: list[tuple[str | None, Replica]] = [(None, open_replica(fw.plan(spec, SCHEMA))) for _ in range(3)]
    for step in range(steps):
        keys = keys_of(step)
        times = [step * 60 + dice.randrange(-600, 200) for _ in keys]
        rows = pa.table({"k": keys, "ts": times, "v": [dice.randrange(100) for _ in keys]}, schema=SCHEMA)
        at = dice.randrange(len(workers))
        token, stream = workers[at]
        found = list(store.log.since_one_of({token}))
        if found and dice.random() >= fresh:
            told["handed"] += 1
            stream.catch_up(store.read(found[0][1]))
        else:
            told["loaded"] += 1
            stream = open_replica(fw.plan(spec, SCHEMA))
            stream.catch_up(store.read(store.log.entries)) if store.log.entries else None
        stream._check_invariants()
        for call, argument in (("advance_watermark", step * 60 - 250), ("process", rows)):
            mine = getattr(stream, call)(argument).main.to_pylist()
            wanted = getattr(alone, call)(argument).main.to_pylist()
            told["fired"] += len(wanted)
            assert sorted(mine, key=repr) == sorted(wanted, key=repr)
        store.save(stream, spec.lateness_ms)
        workers[at] = (store.log.token, stream)
        meta = read_meta(store.deltas[store.log.token])
        if meta.get("refreshed"):
            told["repeats"] += 1
            told["wholes"] += meta.get("whole", False)
        told["entries"] = max(told["entries"], len(store.log.entries))
    return told


class Everything(fw.ProcessWindowFunction):
    """Tells what a firing sees, and numbers the firings of a key in state of its own."""

    def __init__(self, merging: bool = False) -> None:
        self.merging = merging

    def process(self, key, context, elements):
        count = context.global_state().get_state(fw.ValueStateDescriptor("count"))
        count.update((count.value() or 0) + 1)
        sizes = fw.ListStateDescriptor("sizes")
        mine = (context.global_state() if self.merging else context.window_state()).get_list_state(sizes)
        mine.add(len(elements))
        yield count.value(), repr(list(mine.get())), repr([tuple(one) for one in elements])


class Span(fw.AggregateFunction):
    """The sorted values, in a Python object."""

    def create_accumulator(self):
        return []

    def add(self, value, accumulator):
        return sorted([*accumulator, value.v])

    def get_result(self, accumulator):
        return (repr(accumulator),)

    def merge(self, a, b):
        return sorted([*a, *b])


KEYED = fw.key_by("k").event_time("ts")
SEEN = {"output": "n bigint, sizes string, seen string"}
KEEPING = {
    "elements": (
        KEYED.window(fw.TumblingEventTimeWindows.of(2_000))
        .allowed_lateness(300, coalesce=True)
        .process(Everything(), **SEEN)
    ),
    "evicted elements": (
        KEYED.window(fw.SlidingEventTimeWindows.of(2_000, 500))
        .evictor(fw.CountEvictor.of(4))
        .process(Everything(), **SEEN)
    ),
    "merged elements": (
        KEYED.window(fw.EventTimeSessionWindows.with_gap(900)).process(Everything(merging=True), **SEEN)
    ),
    "timers": (
        KEYED.window(fw.TumblingEventTimeWindows.of(2_000))
        .trigger(fw.ContinuousEventTimeTrigger.of(130))
        .aggregate(n=fw.Count(), high=fw.Max("v"))
    ),
    "objects": (
        KEYED.window(fw.SlidingEventTimeWindows.of(2_000, 700))
        .allowed_lateness(300, coalesce=True)
        .aggregate(Span(), output="span string")
    ),
    "counts": (
        KEYED.window(fw.GlobalWindows.create())
        .trigger(fw.PurgingTrigger.of(fw.CountTrigger.of(7)))
        .process(Everything(), **SEEN)
    ),
    "delta": (
        KEYED.window(fw.GlobalWindows.create())
        .trigger(fw.DeltaTrigger.of(60, lambda old, new: abs(new.v - old.v)))
        .process(Everything(), **SEEN)
    ),
    "state of a trigger": (
        KEYED.window(fw.TumblingEventTimeWindows.of(2_000))
        .trigger(windows.EveryOther())
        .allowed_lateness(300, coalesce=True)
        .with_pane_info()
        .aggregate(n=fw.Count(), high=fw.Max("v"))
    ),
}


@pytest.mark.parametrize("kind", variants(KEEPING, *[*KEEPING][::2]))
@pytest.mark.parametrize("seed", SEEDS)
def test_the_general_operator_repeats_a_key_group_at_a_time(kind, seed):
    dice = random.Random(seed)
    told = handed_about(KEEPING[kind], dice, 150, lambda _: [dice.randrange(40) for _ in range(4)], fresh=0.4)
    assert told["fired"] > 50
    assert min(told["handed"], told["loaded"]) > 40
    assert told["repeats"] > 40
    assert told["wholes"] == 0
    assert told["entries"] < 16


def test_a_delta_without_the_elements_that_it_goes_on_after_is_refused():
    spec, schema = KEEPING["elements"], SCHEMA
    stream = open_replica(fw.plan(spec, schema))
    deltas = []
    for v in range(3):
        stream.process(pa.table({"k": [7], "ts": [10], "v": [v]}, schema=schema))
        deltas.append(stream.delta())
    open_replica(fw.plan(spec, schema)).catch_up(deltas)
    with pytest.raises(fw.StateError, match=r"the first chunk is delta 2, expected delta 1 or a snapshot"):
        open_replica(fw.plan(spec, schema)).catch_up(deltas[1:])


@pytest.mark.parametrize("kind", ["tumbling", "sessions", "general"])
def test_a_row_that_no_round_would_repeat_is_an_error(kind):
    keyed = fw.key_by("k").event_time("ts")
    if kind == "sessions":
        keyed = keyed.window(fw.EventTimeSessionWindows.with_gap(100))
    else:
        keyed = keyed.window(fw.TumblingEventTimeWindows.of(100))
    spec = (keyed.with_pane_info() if kind == "general" else keyed).aggregate(n=fw.Count())
    table = pa.table({"k": range(20), "ts": [1] * 20})
    stream = open_replica(fw.plan(spec, table.schema))
    stream.process(table)
    stream.delta()
    with pytest.raises(fw.StateError, match=r"rows of key group \d among those of the groups \[0, 2\]"):
        stream.delta(Refresh(4, (0, 2)))


def entry(first: int, rows: int = 10, last_end: int | None = None, chunks: int = 1) -> Entry:
    return Entry(first, chunks, 100, rows, last_end, f"t{first}")


def test_a_round_forgets_what_came_before_it():
    log = DeltaLog()
    for first in range(3):
        log, gone = log.append(entry(first), 0, 4, None)
        assert not gone
    for turn in range(1, 4):
        log, gone = log.append(entry(log.next_chunk), 1, 4, None)
        assert (log.turn, log.since, gone) == (turn, 3, [])
    log, gone = log.append(entry(log.next_chunk), 1, 4, None)
    assert [old.first for old in gone] == [0, 1, 2]
    assert (log.turn, log.since) == (None, 0)
    assert [one.first for one in log.entries] == [3, 4, 5, 6]


def test_all_groups_at_once_forget_all_that_came_before():
    log, _ = DeltaLog().append(entry(0), 0, 4, None)
    log, gone = log.append(entry(1), 4, 4, None)
    assert [old.first for old in gone] == [0]
    assert log.turn is None


def test_rows_are_repeated_only_when_the_log_outweighs_them(monkeypatch):
    monkeypatch.setattr(deltalog, "_SLACK_ROWS", 100)
    log, _ = DeltaLog().append(entry(0, rows=1000), 0, 2, None)
    assert log.refresh(450, 8, [1, 5]) is None
    refresh = log.refresh(449, 8, [1, 5])
    assert (refresh.key_groups, refresh.groups, refresh.turn) == (8, (1, 5), 0)
    log, _ = log.append(entry(1, rows=1), 1, 2, None)
    assert log.refresh(10**6, 8, [1, 5]).turn == 1


def test_many_small_deltas_are_gathered():
    log = DeltaLog()
    for first in range(3):
        assert log.refresh(10**6, 1, [0]) is None
        log, _ = log.append(entry(first, rows=0), 0, 1, None)
    assert log.refresh(10**6, 1, [0]) is not None


def test_a_copy_that_lags_too_far_is_given_up():
    log = DeltaLog()
    for first in range(40):
        log, _ = log.append(entry(first), 0, 1, None)
    assert list(log.since_one_of({"t0"})) == []
    ((token, missing),) = log.since_one_of({"t37"})
    assert token == "t37"
    assert [one.first for one in missing] == [38, 39]


@pytest.mark.parametrize("kind", ["aligned", "session", "general"])
@pytest.mark.parametrize("seed", SEEDS)
def test_rows_that_never_change_outlive_the_deltas_that_made_them(kind, seed):
    assigner = {
        "aligned": fw.SlidingEventTimeWindows.of(4_000, 1_000),
        "session": fw.EventTimeSessionWindows.with_gap(1_500),
        "general": fw.TumblingEventTimeWindows.of(4_000),
    }[kind]
    spec = fw.key_by("k").event_time("ts").window(assigner).allowed_lateness(500, coalesce=True)
    if kind == "general":
        spec = spec.with_pane_info()
    spec = spec.aggregate(n=fw.Count(), high=fw.Max("v"))
    schema = pa.schema([("k", pa.string()), ("ts", pa.int64()), ("v", pa.int64())])
    dice = random.Random(seed)
    stream, store = open_replica(fw.plan(spec, schema)), Store([3, 0, 2, 1])
    copy_of, token, most = open_replica(fw.plan(spec, schema)), None, 0
    for step in range(80):
        keys = [dice.randrange(40 if dice.random() < 0.1 else 4) for _ in range(6)]
        times = [step * 30 + dice.randrange(-500, 3_000) for _ in keys]
        rows = {"k": [f"key {key}" for key in keys], "ts": times, "v": [dice.randrange(100) for _ in keys]}
        stream.process(pa.table(rows, schema=schema))
        stream.advance_watermark(step * 30 - 600)
        store.save(stream, 500)
        fresh = open_replica(fw.plan(spec, schema))
        fresh.catch_up(store.read(store.log.entries))
        if dice.random() < 0.5:
            found = list(store.log.since_one_of({token}))
            copy_of = copy_of if found else open_replica(fw.plan(spec, schema))
            copy_of.catch_up(store.read(found[0][1] if found else store.log.entries))
            token = store.log.token
            copy_of._check_invariants()
        for one in (fresh, copy_of) if token == store.log.token else (fresh,):
            assert state_of(one) == state_of(stream)
        most = max(most, len(store.log.entries))
    assert most < 20
    assert store.log.next_chunk == 80


def state_of(stream: Replica) -> list[dict]:
    """What the stream would give for its open windows. Right after a delta(), a snapshot leaves no trace."""
    twin = open_replica(stream._plan)
    twin.restore([peek(stream)])
    return sorted(twin.advance_watermark(fw.MAX_TIMESTAMP).main.to_pylist(), key=repr)
