"""When windows are gone, so is everything about them; and a journal never outweighs the state it tells of."""

import gc
import weakref
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.run.planner import plan
from fastwin.run.stream import open_plan
from tests.support.variants import variants

SCHEMA = pa.schema([("k", pa.string()), ("ts", pa.int64()), ("v", pa.int64())])
BASE = fw.key_by("k").event_time("ts")
TUMBLING = BASE.window(fw.TumblingEventTimeWindows.of(100))
SLIDING = BASE.window(fw.SlidingEventTimeWindows.of(100, 25))
SESSIONS = BASE.window(fw.EventTimeSessionWindows.with_gap(10))
COUNTED: set[int] = set()


class Held:
    """An accumulator that is known to be alive."""

    def __init__(self) -> None:
        self.n = 0
        COUNTED.add(id(self))
        weakref.finalize(self, COUNTED.discard, id(self))


class Holding(fw.AggregateFunction):
    def create_accumulator(self):
        return Held()

    def add(self, value, accumulator):
        accumulator.n += 1
        return accumulator

    def get_result(self, accumulator):
        return accumulator.n

    def merge(self, a, b):
        a.n += b.n
        return a


class Remembering(fw.Trigger):
    """Keeps state of every kind and timers of both kinds."""

    seen = fw.ValueStateDescriptor("seen")
    values = fw.ListStateDescriptor("values")
    total = fw.ReducingStateDescriptor("total", lambda a, b: a + b)

    def on_element(self, element, timestamp, window, ctx):
        ctx.get_partitioned_state(self.seen).update(True)
        ctx.get_partitioned_state(self.values).add(element.v)
        ctx.get_partitioned_state(self.total).add(1)
        ctx.register_event_time_timer(window.max_timestamp())
        ctx.register_event_time_timer(timestamp + 3)
        ctx.register_processing_time_timer(timestamp + 10**6)
        return fw.TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        return fw.TriggerResult.FIRE if time == window.max_timestamp() else fw.TriggerResult.CONTINUE

    def can_merge(self):
        return True

    def on_merge(self, window, ctx):
        ctx.merge_partitioned_state(self.total)
        ctx.register_event_time_timer(window.max_timestamp())

    def clear(self, window, ctx):
        for descriptor in (self.seen, self.values, self.total):
            ctx.get_partitioned_state(descriptor).clear()


class PerWindow(fw.ProcessWindowFunction):
    fires = fw.ValueStateDescriptor("fires", 0)

    def process(self, key, context, elements):
        state = context.window_state().get_state(self.fires)
        state.update(state.value() + 1)
        yield (len(list(elements)),)

    def clear(self, context):
        context.window_state().get_state(self.fires).clear()


class PerKey(fw.ProcessWindowFunction):
    """Counts a key's firings, and forgets them at the second one."""

    fires = fw.ValueStateDescriptor("fires", 0)

    def process(self, key, context, elements):
        state = context.global_state().get_state(self.fires)
        state.update(state.value() + 1)
        if state.value() == 2:
            state.clear()
        yield (len(list(elements)),)


SPECS = {
    "count": TUMBLING.trigger(fw.CountTrigger.of(3)).aggregate(n=fw.Count(), s=fw.Sum("v")),
    "continuous": SLIDING.trigger(fw.ContinuousEventTimeTrigger.of(7)).allowed_lateness(30).aggregate(n=fw.Count()),
    "delta": TUMBLING.trigger(fw.DeltaTrigger.of(2, lambda a, b: b.v - a.v)).aggregate(n=fw.Count()),
    "purging": TUMBLING.trigger(fw.PurgingTrigger.of(fw.CountTrigger.of(2))).aggregate(n=fw.Count()),
    "evictor": TUMBLING.evictor(fw.CountEvictor.of(2)).aggregate(s=fw.Sum("v")),
    "sessions": SESSIONS.trigger(fw.CountTrigger.of(3)).allowed_lateness(20).aggregate(Holding(), output="n bigint"),
    "python": SLIDING.aggregate(Holding(), output="n bigint"),
    "reduce": SLIDING.reduce(lambda a, b: a._replace(v=a.v + b.v), output="v bigint"),
    "per window": TUMBLING.process(PerWindow(), output="n bigint"),
    "trigger state": TUMBLING.trigger(Remembering()).aggregate(Holding(), output="n bigint"),
    "merging trigger state": SESSIONS.trigger(Remembering()).aggregate(Holding(), output="n bigint"),
    "combined": TUMBLING.trigger(fw.after_watermark(early=fw.CountTrigger.of(2), late=fw.CountTrigger.of(1)))
    .allowed_lateness(50)
    .with_pane_info()
    .aggregate(n=fw.Count()),
}


def wave(at: int, keys: int = 50) -> pa.Table:
    """Elements of keys that come once."""
    rows = [{"k": f"{at}-{i}", "ts": at + j * 7, "v": i + j} for i in range(keys) for j in range(8)]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def after_waves(stream: Any, waves: int, *, each: Any = lambda: None) -> None:
    for i in range(waves):
        stream.process(wave(i * 1000))
        stream.advance_processing_time(i * 1000)
        each()
        stream.advance_watermark(i * 1000 + 900)
        stream._check_invariants()


@pytest.mark.parametrize("deltas", [False, True])
@pytest.mark.parametrize("name", variants(SPECS, *[*SPECS][::2]))
def test_nothing_is_left_of_windows_that_are_gone(name: str, deltas: bool) -> None:
    stream = open_plan(plan(SPECS[name], SCHEMA, general=True))
    if deltas:
        stream.snapshot()
    after_waves(stream, 2, each=stream.delta if deltas else lambda: None)
    bytes_before = stream.metrics.state_bytes
    after_waves(stream, 8, each=stream.delta if deltas else lambda: None)
    if deltas:
        stream.delta()
    gc.collect()
    operator = stream._operator
    # Processing-time timers of the trigger's own are due much later: what they belong to is gone all the same.
    stream.advance_processing_time(10**8)
    stream._check_invariants()
    if deltas:
        stream.delta()
    assert (stream.metrics.open_windows, stream.metrics.state_rows, stream.metrics.timers) == (0, 0, 0)
    assert len(operator.table.keys) == 0
    assert not any(operator.contents.objects) and not any(operator.state.windows)
    assert not operator.contents.saved_lists and not operator.state.keys
    assert not COUNTED
    # Tables double, and the index of keys grows faster as long as it fits in a cache.
    assert stream.metrics.state_bytes <= 2 * bytes_before + (64 << 10)


def test_per_key_state_stays_until_cleared() -> None:
    stream = TUMBLING.process(PerKey(), output="n bigint").open(schema=SCHEMA)
    row = pa.Table.from_pylist([{"k": "a", "ts": 1, "v": 1}], schema=SCHEMA)
    stream.process(row)
    stream.advance_watermark(1000)
    assert (stream.metrics.open_windows, stream.metrics.state_rows) == (0, 1)
    stream.process(row.set_column(1, "ts", pa.array([2000])))
    stream.advance_watermark(9000)
    assert stream.metrics.state_rows == 0
    assert len(stream._operator.table.keys) == 0


@pytest.mark.parametrize("name", ["count", "evictor", "merging trigger state", "per window"])
def test_a_stream_saved_once_keeps_no_endless_journal(name: str) -> None:
    bound = plan(SPECS[name], SCHEMA, general=True)
    stream = open_plan(bound)
    first = stream.snapshot()
    after_waves(stream, 40)
    operator = stream._operator
    assert len(operator.timer_service.journal or ()) + len(operator.table.removed) <= 8192
    stream.process(wave(50_000))
    restored = open_plan(bound)
    restored.restore([first, stream.delta()])
    restored._check_invariants()
    expected = stream.advance_watermark(60_000).main
    assert restored.advance_watermark(60_000).main.sort_by([("k", "ascending"), ("window_start", "ascending")]) == (
        expected.sort_by([("k", "ascending"), ("window_start", "ascending")])
    )


def test_a_delta_holds_only_the_elements_that_are_new() -> None:
    spec = TUMBLING.process(PerWindow(), output="n bigint")
    bound = plan(spec, SCHEMA, general=True)
    stream = open_plan(bound)
    many = pa.table({"k": ["a"] * 5000, "ts": [1] * 5000, "v": range(5000)}, schema=SCHEMA)
    stream.process(many)
    chunks = [stream.snapshot()]
    for i in range(5):
        stream.process(pa.table({"k": ["a"], "ts": [2], "v": [i]}, schema=SCHEMA))
        chunks.append(stream.delta())
        assert len(chunks[-1]) < len(chunks[0]) / 3
        stream = open_plan(bound)
        stream.restore(chunks)
    assert stream.advance_watermark(100).main["n"].to_pylist() == [5005]


LISTED, MAPPED = fw.ListStateDescriptor("values"), fw.MapStateDescriptor("values")
EMPTIED = {
    "nothing added to a list": (LISTED, lambda state: state.add_all([])),
    "an empty generator added to a list": (LISTED, lambda state: state.add_all(value for value in [])),
    "nothing put into a map": (MAPPED, lambda state: state.put_all({})),
    "the last entry removed": (MAPPED, lambda state: (state.put("x", 1), state.remove("x"))),
    "all entries removed": (
        MAPPED,
        lambda state: (state.put_all({"x": 1, "y": 2}), *(state.remove(key) for key in "zxyx")),
    ),
}


@pytest.mark.parametrize("ttl", [None, 10**6])
@pytest.mark.parametrize("case", EMPTIED)
def test_state_that_is_empty_is_not_kept(case: str, ttl: int | None) -> None:
    descriptor, does = EMPTIED[case]
    descriptor = replace(descriptor, ttl=ttl)

    class Empties(fw.ProcessWindowFunction):
        def process(self, key, context, elements):
            state = context.global_state().get_state(descriptor)
            does(state)
            return [(len(state.get() if isinstance(descriptor, fw.ListStateDescriptor) else state.items()),)]

    stream = TUMBLING.process(Empties(), output="n bigint").open(schema=SCHEMA)
    chunks = [stream.snapshot()]
    keys = [f"k{i}" for i in range(100)]
    stream.process(pa.table({"k": keys, "ts": [1] * 100, "v": [1] * 100}, schema=SCHEMA))
    chunks.append(stream.delta())
    assert stream.advance_watermark(99).main["n"].to_pylist() == [0] * 100
    assert stream.metrics.state_rows == 0
    chunks.append(stream.delta())
    stream = TUMBLING.process(Empties(), output="n bigint").open(schema=SCHEMA)
    stream.restore(chunks)
    assert stream.metrics.state_rows == 0


class Circular(fw.AggregateFunction):
    """Its accumulators are garbage that only a search for circles finds."""

    def __init__(self, kind: type, fresh: bool) -> None:
        self.kind, self.fresh = kind, fresh

    def create_accumulator(self):
        return self.kind()

    def add(self, value, accumulator):
        kept = [accumulator, Held()]
        accumulator = self.kind(accumulator) if self.fresh else accumulator
        kept.append(accumulator)
        if self.kind is dict:
            accumulator[len(accumulator)] = kept
        else:
            accumulator.append(kept)
        return accumulator

    def get_result(self, accumulator):
        return len(accumulator)

    def merge(self, a, b):
        return self.add(b, a)


class CircularElements(fw.ProcessWindowFunction):
    """Makes a list of what it is handed such garbage."""

    def process(self, key, context, elements):
        found = len(elements)
        rows = [*elements]
        rows.append([Held(), rows, elements])
        yield (found,)


CIRCULAR = [
    lambda windows: windows.aggregate(Circular(list, False), output="n bigint"),
    lambda windows: windows.aggregate(Circular(list, True), output="n bigint"),
    lambda windows: windows.aggregate(Circular(dict, True), output="n bigint"),
    lambda windows: windows.process(CircularElements(), output="n bigint"),
]


@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("windows", [TUMBLING, SESSIONS])
@pytest.mark.parametrize("spec", CIRCULAR)
def test_what_user_code_makes_circular_goes_too(spec: Any, windows: Any, ends: bool) -> None:
    stream = open_plan(plan(spec(windows), SCHEMA, general=True))
    for at in (0, 1000):
        stream.process(wave(at, 5))
        if ends:
            assert sum(stream.advance_watermark(at + 900).main["n"].to_pylist()) == 40
    stream._check_invariants()
    del stream
    gc.collect()
    assert not COUNTED


class Keeping(fw.ProcessWindowFunction):
    def __init__(self) -> None:
        self.kept: list[Any] = []

    def process(self, key, context, elements):
        self.kept.append(elements)
        yield (len(elements),)


@pytest.mark.parametrize("lateness", [0, 50])
def test_elements_that_a_function_keeps_stay_as_they_were(lateness: int) -> None:
    function = Keeping()
    stream = TUMBLING.allowed_lateness(lateness).process(function, output="n bigint").open(schema=SCHEMA)
    for at in (0, 100, 200):
        stream.process(wave(at, 2))
        stream.advance_watermark(at + 99)
    stream.advance_watermark(1000)
    assert sorted([e.v for e in elements] for elements in function.kept) == [[*range(8)]] * 3 + [[*range(1, 9)]] * 3
