"""Chunks put together in every wrong way: each is refused, or gives exactly the state behind its last chunk."""

import itertools

import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.run.replica import Replica, open_replica
from fastwin.state import chain
from fastwin.state.refresh import Refresh
from tests.support.saved import peek

SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.int64()), ("v", pa.int64())])
BASE = fw.key_by("k").event_time("ts")
COUNTED = {"n": fw.Count(), "total": fw.Sum("v")}


class Seen(fw.ProcessWindowFunction):
    """Tells the values of a window, and how often its key has fired."""

    def process(self, key, context, elements):
        count = context.global_state().get_state(fw.ValueStateDescriptor("count"))
        count.update((count.value() or 0) + 1)
        yield count.value(), repr([row.v for row in elements])


SPECS = {
    "tumbling": BASE.window(fw.TumblingEventTimeWindows.of(20)).aggregate(**COUNTED),
    "sliding": BASE.window(fw.SlidingEventTimeWindows.of(20, 10))
    .allowed_lateness(5, coalesce=True)
    .aggregate(**COUNTED),
    "session": BASE.window(fw.EventTimeSessionWindows.with_gap(6)).aggregate(**COUNTED),
    "general": BASE.window(fw.TumblingEventTimeWindows.of(20)).with_pane_info().aggregate(**COUNTED),
    "elements": BASE.window(fw.TumblingEventTimeWindows.of(20)).process(Seen(), output="n bigint, seen string"),
}

# What a stream gets before each of its chunks: rows of (key, time), and a watermark. The third delta has no rows.
MINE = [([1, 2], 10, 12), ([1, 3], 25, 22), ([2], 30, 27), ([], 0, 33), ([1, 4], 52, 45)]
FORK = [([1, 5], 26, 24), ([], 0, 35), ([2, 5], 50, 46)]
OTHER = [([2, 6], 11, 11), ([1, 6], 24, 21), ([2], 31, 26)]


def opened(spec: fw.WindowSpec) -> Replica:
    return open_replica(fw.plan(spec, SCHEMA))


class Told:
    """Chunks by name, and what a stream has to give behind each of them."""

    def __init__(self, spec: fw.WindowSpec) -> None:
        self.spec = spec
        self.chunks: dict[str, bytes] = {}
        self.truth: dict[str, tuple] = {}

    def play(self, stream: Replica, name: str, steps: list, first: int, snapshot: bool) -> None:
        for number, (keys, time, watermark) in enumerate(steps, first):
            rows = {"k": keys, "ts": [time + key for key in keys], "v": [10 * number + key for key in keys]}
            stream.process(pa.table(rows, schema=SCHEMA))
            stream.advance_watermark(watermark)
            whole = snapshot and number == 0
            self.chunks[f"{name}{number}"] = stream.snapshot() if whole else stream.delta()
            twin = self.open()
            twin.restore(peek(stream))
            self.truth[f"{name}{number}"] = outcome(twin)

    def open(self) -> Replica:
        return opened(self.spec)

    def read(self, names) -> list[bytes]:
        return [self.chunks[name] for name in names]


def outcome(stream: Replica) -> tuple:
    stream._check_invariants()
    before = stream.watermark, stream.metrics.state_rows
    return before, sorted(stream.advance_watermark(fw.MAX_TIMESTAMP).main.to_pylist(), key=repr)


@pytest.fixture(scope="module", params=SPECS)
def told(request) -> Told:
    """Chunks m0 to m4 of a stream, f2 to f4 of one that went on from m1, o0 to o2 of another; s: begun by a snapshot."""
    found = Told(SPECS[request.param])
    for prefix, snapshot in (("s", True), ("", False)):
        found.play(found.open(), prefix + "m", MINE, 0, snapshot)
        fork = found.open()
        take = fork.restore if snapshot else fork.catch_up
        take(found.read([f"{prefix}m0", f"{prefix}m1"]))
        found.play(fork, prefix + "f", FORK, 2, snapshot)
        found.play(found.open(), prefix + "o", OTHER, 0, snapshot)
    return found


def wrong_ways(names: list[str], own: list[str]) -> set[tuple[str, ...]]:
    """Returns all lists of one or two chunks, the stream's own ones in all orders, and with one other or one twice."""
    pairs = itertools.product(names, repeat=2)
    orders = (order for n in range(1, len(own) + 1) for order in itertools.permutations(own, n))
    places = itertools.product(range(len(own) + 1), (0, 1), names)
    others = ((*own[:at], name, *own[at + dropped :]) for at, dropped, name in places)
    return {*pairs, *orders, *others}


def test_a_restore_takes_what_fits_or_nothing(told: Told) -> None:
    names = [name for name in told.chunks if name[0] == "s"]
    own = [f"sm{number}" for number in range(5)]
    accepted = set()
    for order in wrong_ways(names, own):
        stream = told.open()
        try:
            stream.restore(told.read(order))
        except fw.StateError:
            continue
        assert outcome(stream) == told.truth[order[-1]], order
        accepted.add(order)
    assert {tuple(own[:n]) for n in range(1, 6)} | {("so0", "so1")} <= accepted
    assert not any(order[1:3] == ("sm2", "sm1") or order[1:2] == ("sm2",) for order in accepted)


def test_a_fresh_stream_takes_what_is_enough_of_a_log_or_nothing(told: Told) -> None:
    names = [name for name in told.chunks if name[0] != "s"]
    own = [f"m{number}" for number in range(5)]
    accepted = set()
    for order in wrong_ways(names, own):
        stream = told.open()
        try:
            stream.catch_up(told.read(order))
        except fw.StateError:
            continue
        assert outcome(stream) == told.truth[order[-1]], order
        accepted.add(order)
    assert {tuple(own[:n]) for n in range(1, 6)} <= accepted
    if told.spec in (SPECS["tumbling"], SPECS["session"]):  # what the last watermark has cleaned may be gone
        assert {("m4",), ("m2", "m4"), ("f2", "f4")} <= accepted
    else:
        assert ("m4",) not in accepted


def test_a_stream_goes_on_with_what_fits_or_not_at_all(told: Told) -> None:
    own = [f"m{number}" for number in range(5)]
    accepted = 0
    others = [name for name in told.chunks if name[0] != "s"] + ["sm0", "sm2"]
    for behind, more in itertools.product((1, 2, 4), (1, 2)):
        for order in itertools.product(others, repeat=more):
            stream = told.open()
            stream.catch_up(told.read(own[:behind]))
            try:
                stream.catch_up(told.read(order))
            except fw.StateError:
                continue
            assert outcome(stream) == told.truth[order[-1]], (behind, order)
            accepted += 1
    assert accepted >= 5


def test_what_is_wrong_is_said(told: Told) -> None:
    def refused(*names: str) -> str:
        with pytest.raises(fw.StateError) as caught:
            told.open().restore(told.read(names))
        return str(caught.value)

    assert "chunk 2 of 2 is delta 3, expected delta 2: what is between is missing" in refused("sm0", "sm2")
    assert "chunk 3 of 3 is delta 2, expected delta 3: it was taken before" in refused("sm0", "sm1", "sm1")
    assert "chunk 2 of 2, delta 2, goes on from chunk" in refused("so0", "sm1")
    assert "takes one snapshot and then deltas" in refused("sm0", "so0")
    stream = told.open()
    stream.catch_up(told.read(["m0"]))
    with pytest.raises(fw.StateError, match="chunk 1 of 1 is a snapshot, which only a stream without state takes"):
        stream.catch_up(told.read(["sm0"]))


def test_a_stream_that_has_changed_takes_no_deltas(told: Told) -> None:
    stream = told.open()
    stream.catch_up(told.read(["m0"]))
    stream.process(pa.table({"k": [9], "ts": [29], "v": [1]}, schema=SCHEMA))
    with pytest.raises(fw.StateError, match="the stream has changed since"):
        stream.catch_up(told.read(["m1"]))


def test_equal_streams_write_equal_bytes(told: Told) -> None:
    again = Told(told.spec)
    again.play(again.open(), "sm", MINE, 0, True)
    assert again.chunks == {name: told.chunks[name] for name in again.chunks}
    # Pickles tell whether equal texts are one object, and so whether they were loaded.
    for begun in () if told.spec is SPECS["elements"] else (2, 3, 4):
        stream = told.open()
        stream.restore(told.read([f"sm{number}" for number in range(begun)]))
        again.play(stream, "sm", MINE[begun:], begun, True)
    assert again.chunks == {name: told.chunks[name] for name in again.chunks}


def test_two_who_ask_for_deltas_are_noticed(told: Told) -> None:
    stream = told.open()
    mine, theirs = [stream.snapshot()], []
    for number, found in enumerate([mine, theirs, mine]):
        stream.process(pa.table({"k": [1], "ts": [number], "v": [number]}, schema=SCHEMA))
        found.append(stream.delta())
    with pytest.raises(fw.StateError, match="chunk 3 of 3 is delta 4, expected delta 3"):
        told.open().restore(mine)


def test_a_stream_that_forgot_its_watermark_begins_a_chain() -> None:
    spec = SPECS["general"]
    stream = opened(spec)
    stream.process(pa.table({"k": [1], "ts": [50], "v": [1]}, schema=SCHEMA))
    stream.advance_watermark(40)
    saved = stream.snapshot()
    stream.restore(saved, forget_watermark=True)
    stream.advance_watermark(10)
    delta = stream.delta()
    with pytest.raises(fw.StateError, match="chunk 2 of 2 is delta 1, expected delta 2"):
        opened(spec).restore([saved, delta])
    again = opened(spec)
    again.restore(stream.snapshot())
    assert again.watermark == 10
    assert again.metrics.state_rows == 1


@pytest.mark.parametrize("kind", ["sliding", "general"])
def test_a_whole_round_of_repeating_is_enough(kind: str) -> None:
    stream = opened(SPECS[kind])
    deltas = []
    for number in range(6):
        stream.process(pa.table({"k": [number, 20 + number], "ts": [9, 15], "v": [1, 1]}, schema=SCHEMA))
        deltas.append(stream.delta(Refresh(2, (0, 1), number - 3) if number in (3, 4) else None))
    wanted = None
    for first in range(6):
        again = opened(SPECS[kind])
        if first > 3:
            with pytest.raises(fw.StateError, match=f"the first chunk is delta {first + 1}, expected delta 4"):
                again.catch_up(deltas[first:])
            continue
        again.catch_up(deltas[first:])
        found = outcome(again)
        wanted = wanted or found
        assert found == wanted
    with pytest.raises(fw.StateError, match="the first chunk is delta 4, expected delta 1"):
        opened(SPECS[kind]).catch_up(deltas[3:4])


def test_ends_that_are_left_out_are_kept_in_the_oldest_pair() -> None:
    most = chain._MOST_ENDS
    ends = tuple((number, 10 * most - number) for number in range(1, most + 3))
    assert chain._newest(ends[:most]) == ends[:most]
    left = chain._newest(ends)
    assert len(left) == most
    assert left[0] == (3, 10 * most - 1)
    assert left[1:] == ends[3:]
    assert chain._newest((*left, (most + 3, 5)))[0] == (4, 10 * most - 1)


@pytest.mark.parametrize("watermark", [495, 530])
def test_a_log_of_more_ends_than_a_chunk_takes(watermark: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "_MOST_ENDS", 3)
    stream, deltas = opened(SPECS["tumbling"]), []
    for number in range(8):
        stream.process(pa.table({"k": [1], "ts": [500 - 20 * number], "v": [1]}, schema=SCHEMA))
        deltas.append(stream.delta())
    stream.advance_watermark(watermark)
    deltas.append(stream.delta())
    again = opened(SPECS["tumbling"])
    if watermark < 500:  # the window of the first delta is still open
        with pytest.raises(fw.StateError, match="the first chunk is delta 7, expected delta 1"):
            again.catch_up(deltas[6:])
        again = opened(SPECS["tumbling"])
        again.catch_up(deltas)
    else:
        again.catch_up(deltas[6:])
    assert outcome(again) == outcome(stream)
