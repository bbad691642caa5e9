"""State of keys with a time to live: what it reads as, when it goes, and that a restore changes nothing."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastwin as fw

SCHEMA = pa.schema([("k", pa.string()), ("ts", pa.int64())])
SIZE, TTL = 10, 25
STARTED = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of(SIZE))


class Counting(fw.ProcessWindowFunction):
    """Tells how many windows of its key have fired within the time to live."""

    def __init__(self, **ttl: Any) -> None:
        self.seen = fw.ValueStateDescriptor("seen", default=0, **ttl)

    def process(self, key: Any, context: Any, elements: Any) -> Iterator[tuple[int]]:
        seen = context.global_state().get_state(self.seen)
        seen.update(seen.value() + 1)
        yield (seen.value(),)


def spec(**ttl: Any) -> fw.WindowSpec:
    return STARTED.process(Counting(**ttl), output="seen int")


def rows(*pairs: tuple[str, int]) -> pa.Table:
    return pa.table({"k": [k for k, _ in pairs], "ts": [t for _, t in pairs]}, schema=SCHEMA)


def found(result: Any) -> list[tuple[str, int, int]]:
    table = result.main
    ends = table["window_end"].cast(pa.int64()).to_pylist()
    return sorted(zip(table["k"].to_pylist(), ends, table["seen"].to_pylist(), strict=True))


def naive(pairs: list[tuple[str, int]]) -> list[tuple[str, int, int]]:
    """One count a window; it begins anew if the last one of the key ended TTL or more ago."""
    told, written = [], {}
    for k, end in sorted({(k, t // SIZE * SIZE + SIZE) for k, t in pairs}, key=lambda pair: pair[1]):
        last, n = written.get(k, (None, 0))
        n = 1 if last is None or last + TTL <= end else n + 1
        written[k] = end, n
        told.append((k, end, n))
    return sorted(told)


@pytest.mark.parametrize(("gap", "seen"), [(20, 2), (30, 1)])
def test_ends_so_long_after_the_last_write(gap, seen):
    table = rows(("a", 5), ("a", 5 + gap))
    assert found(spec(ttl=30).run(table))[-1] == ("a", 10 + gap, seen)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 300)), min_size=1, max_size=30), st.data())
def test_equals_the_naive_model_however_time_advances(pairs, data):
    expected = naive(pairs)
    assert found(spec(ttl=TTL).run(rows(*pairs))) == expected
    stream, results = spec(ttl=TTL).open(schema=SCHEMA), []
    chunks = [stream.snapshot()]
    for pair in sorted(pairs, key=lambda pair: pair[1]):
        if data.draw(st.booleans()):
            results += found(stream.advance_watermark(pair[1] - 1))
        chunks.append(stream.delta())
        if data.draw(st.booleans()):
            stream = spec(ttl=TTL).open(schema=SCHEMA)
            stream.restore(chunks)
        stream.process(rows(pair))
    results += found(stream.advance_watermark(1_000))
    assert sorted(results) == expected
    stream.advance_watermark(1_000 + TTL)
    assert stream.metrics.state_rows == 0


def test_a_late_firing_does_not_shorten_the_time_to_live():
    stream = STARTED.allowed_lateness(30).process(Counting(ttl=TTL), output="seen int").open(schema=SCHEMA)
    stream.process(rows(("a", 15)))
    assert found(stream.advance_watermark(19)) == [("a", 20, 1)]
    assert found(stream.process(rows(("a", 5)))) == [("a", 10, 2)]
    stream.process(rows(("a", 32)))
    assert found(stream.advance_watermark(39)) == [("a", 40, 3)]


def in_turn(result: Any) -> list[tuple[str, int, int]]:
    """The results in the order in which they came."""
    table = result.main
    ends = table["window_end"].cast(pa.int64()).to_pylist()
    return list(zip(table["k"].to_pylist(), ends, table["seen"].to_pylist(), strict=True))


class NaiveCounts:
    """What is counted of each key, in whatever order its windows fire: it stays for TTL after the latest of them."""

    def __init__(self) -> None:
        self.held: dict[str, tuple[int, int]] = {}

    def check(self, told: list[tuple[str, int, int]]) -> None:
        for k, end, seen in told:
            n, written = self.held.get(k, (0, end - 1))
            if written + TTL <= end - 1:
                n, written = 0, end - 1
            self.held[k] = n + 1, max(written, end - 1)
            assert seen == n + 1

    def reach(self, watermark: int) -> None:
        self.held = {k: held for k, held in self.held.items() if held[1] + TTL > watermark}


SHAPES = {
    "late": STARTED.allowed_lateness(60),
    "sliding": fw.key_by("k").event_time("ts").window(fw.SlidingEventTimeWindows.of(40, SIZE)).allowed_lateness(30),
    "counts": STARTED.trigger(fw.CountTrigger.of(2)),
    "sliding counts": fw.key_by("k")
    .event_time("ts")
    .window(fw.SlidingEventTimeWindows.of(40, SIZE))
    .trigger(fw.PurgingTrigger.of(fw.CountTrigger.of(1)))
    .allowed_lateness(30),
}


@pytest.mark.parametrize("shape", SHAPES)
@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 200), st.integers(1, 60)), max_size=30), st.data())
def test_equals_the_naive_model_in_whatever_order_windows_fire(shape, steps, data):
    def opened() -> Any:
        return SHAPES[shape].process(Counting(ttl=TTL), output="seen int").open(schema=SCHEMA)

    stream, counts, watermark = opened(), NaiveCounts(), -1
    chunks = [stream.snapshot()]
    for k, t, further in steps:
        counts.check(in_turn(stream.process(rows((k, t)))))
        if data.draw(st.booleans()):
            watermark += further
            counts.check(in_turn(stream.advance_watermark(watermark)))
            counts.reach(watermark)
        chunks.append(stream.delta())
        if data.draw(st.booleans()):
            stream = opened()
            stream.restore(chunks)
    counts.check(in_turn(stream.advance_watermark(1_000)))
    stream.advance_watermark(1_000 + TTL)
    assert stream.metrics.state_rows == 0


def test_state_of_keys_that_are_gone_is_gone():
    stream = spec(ttl=TTL).open(schema=SCHEMA)
    stream.process(rows(*((f"k{i}", 5) for i in range(100))))
    stream.advance_watermark(9)
    assert (stream.metrics.state_rows, stream.next_timer()) == (100, 9 + TTL)
    first = stream.snapshot()
    stream.advance_watermark(8 + TTL)
    assert stream.metrics.state_rows == 100
    stream.advance_watermark(9 + TTL)
    assert (stream.metrics.state_rows, stream.next_timer()) == (0, None)
    restored = spec(ttl=TTL).open(schema=SCHEMA)
    restored.restore([first, stream.delta()])
    assert restored.metrics.state_rows == 0


def test_a_restored_stream_knows_when_state_ends():
    stream = spec(ttl=TTL).open(schema=SCHEMA)
    stream.process(rows(("a", 5)))
    stream.advance_watermark(9)
    restored = spec(ttl=TTL).open(schema=SCHEMA)
    restored.restore([stream.snapshot()])
    assert restored.next_timer() == 9 + TTL
    restored.process(rows(("a", 25)))
    assert found(restored.advance_watermark(29)) == [("a", 30, 2)]
    assert restored.next_timer() == 9 + TTL  # it is looked at then, and again later
    restored.advance_watermark(29 + TTL)
    assert restored.metrics.state_rows == 0


def test_processing_time_goes_by_the_clock():
    stream = spec(ttl=TTL, ttl_time="processing").open(schema=SCHEMA)
    stream.advance_processing_time(100)
    stream.process(rows(("a", 5), ("a", 15), ("a", 25)))
    assert found(stream.advance_watermark(9)) == [("a", 10, 1)]
    stream.advance_processing_time(124)
    assert found(stream.advance_watermark(19)) == [("a", 20, 2)]
    assert stream.next_processing_timer() == 125
    stream.advance_processing_time(149)
    assert found(stream.advance_watermark(29)) == [("a", 30, 1)]
    stream.advance_processing_time(149 + TTL)
    assert stream.metrics.state_rows == 0


def test_global_windows_count_from_the_first_watermark():
    every = fw.key_by("k").event_time("ts").window(fw.GlobalWindows.create()).trigger(fw.CountTrigger.of(1))
    stream = every.process(Counting(ttl=TTL), output="seen int").open(schema=SCHEMA)
    assert stream.process(rows(("a", 5), ("a", 500))).main["seen"].to_pylist() == [1, 2]
    assert stream.next_timer() is None
    stream.advance_watermark(600)
    assert stream.next_timer() == 600 + TTL
    assert stream.process(rows(("a", 700))).main["seen"].to_pylist() == [3]
    stream.advance_watermark(600 + TTL)
    assert stream.process(rows(("a", 700))).main["seen"].to_pylist() == [1]


class OfAWindow(fw.ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        context.window_state().get_state(fw.ValueStateDescriptor("seen", ttl=TTL)).update(1)
        return []


def test_state_of_a_window_takes_no_ttl():
    with pytest.raises(fw.UserFunctionError, match="ttl is for the state of keys"):
        STARTED.process(OfAWindow(), output="seen int").run(rows(("a", 5)))


def test_windows_of_the_clock_take_a_ttl_of_the_clock():
    arrivals = fw.key_by("k").processing_time().window(fw.TumblingProcessingTimeWindows.of(SIZE))
    stream = arrivals.process(Counting(ttl=TTL), output="seen int").open()
    stream.process(rows(("a", 5)))
    with pytest.raises(fw.UserFunctionError, match="ttl_time='processing'"):
        stream.advance_processing_time(100)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"ttl": 0}, "ttl must be at least 1 ms, got 0"),
        ({"ttl": "soon"}, "ttl: "),
        ({"ttl": 5, "ttl_time": "wall"}, "ttl_time must be 'event' or 'processing', got 'wall'"),
        ({"ttl_time": "processing"}, "ttl_time='processing' goes with ttl= only"),
    ],
)
def test_other_lifetimes_are_refused(arguments, problem):
    with pytest.raises(fw.SpecError, match=problem):
        fw.ListStateDescriptor("seen", **arguments)


class Lists(fw.ProcessWindowFunction):
    seen = fw.ListStateDescriptor("seen", ttl=TTL)

    def process(self, key: Any, context: Any, elements: Any) -> Any:
        state = context.global_state().get_state(self.seen)
        state.add(key)
        yield (len(state.get()),)


class Maps(fw.ProcessWindowFunction):
    seen = fw.MapStateDescriptor("seen", ttl=TTL)

    def process(self, key: Any, context: Any, elements: Any) -> Any:
        state = context.global_state().get_state(self.seen)
        state.put(context.window.start, 1)
        yield (len(state.keys()),)


class Reducing(fw.ProcessWindowFunction):
    seen = fw.ReducingStateDescriptor("seen", lambda a, b: a + b, ttl=TTL)

    def process(self, key: Any, context: Any, elements: Any) -> Any:
        state = context.global_state().get_state(self.seen)
        state.add(1)
        yield (state.get(),)


class Total(fw.AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: int, accumulator: int) -> int:
        return accumulator + value

    def get_result(self, accumulator: int) -> int:
        return accumulator


class Aggregating(fw.ProcessWindowFunction):
    seen = fw.AggregatingStateDescriptor("seen", Total(), ttl=TTL)

    def process(self, key: Any, context: Any, elements: Any) -> Any:
        state = context.global_state().get_state(self.seen)
        state.add(1)
        yield (state.get(),)


@pytest.mark.parametrize("function", [Lists(), Maps(), Reducing(), Aggregating()], ids=lambda one: type(one).__name__)
def test_all_kinds_of_state_end(function):
    result = STARTED.process(function, output="seen int").run(rows(("a", 5), ("a", 25), ("a", 65)))
    assert result.main["seen"].to_pylist() == [1, 2, 1]


@pytest.mark.parametrize("ttl_time", ["event", "processing"])
def test_what_is_noted_of_keys_does_not_grow_with_saves(ttl_time):
    stream = spec(ttl=10**6, ttl_time=ttl_time).open(schema=SCHEMA)
    stream.advance_processing_time(100)
    stream.process(rows(*((str(key), 5) for key in range(300))))
    stream.advance_watermark(9)
    for turn in range(30):
        stream.snapshot()
        noted = sum(len(one._heap) for one in stream._operator.state.lifetimes)
        assert 300 <= noted <= 2 * 300 + 65, turn


def test_a_call_looks_at_the_keys_alone_whose_state_it_has_changed():
    stream = spec().open(schema=SCHEMA)
    state = None
    for end in (10, 20):
        stream.process(rows(*((str(key), end - 5) for key in range(300))))
        stream.advance_watermark(end - 1)
        state = stream._operator.state
        if end == 10:
            stream.snapshot()
    assert (len(state.dirty_keys), len(state.touched)) == (300, 0)
    stream.process(rows(("a", 25)))
    stream.advance_watermark(29)
    assert (len(state.dirty_keys), len(state.touched)) == (301, 0)
