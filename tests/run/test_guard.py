"""One call at a time: other threads, and user code that calls its own stream, are refused; numbers may be read."""

import copy
import pickle
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.run.guard import Call
from fastwin.run.planner import plan
from fastwin.run.replica import open_replica
from fastwin.testing import WindowHarness
from tests.support.streams import COUNT, SUM, rows, table

KEYED = fw.key_by("k").event_time("t")
MANY = {
    "tumbling": KEYED.window(fw.TumblingEventTimeWindows.of(100)),
    "sliding": KEYED.window(fw.SlidingEventTimeWindows.of(1_000, 50)),
    "sessions": KEYED.window(fw.EventTimeSessionWindows.with_gap(5)),
    "general": KEYED.window(fw.TumblingEventTimeWindows.of(100)).with_pane_info(),
}


@pytest.fixture
def quick_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def batch(number: int, n: int = 5_000) -> pa.Table:
    dice = np.random.default_rng(number)
    return pa.table(
        {"k": dice.integers(0, 1 << 40, n), "t": dice.integers(0, 10_000, n), "v": dice.integers(0, 1_000, n)}
    )


@pytest.mark.usefixtures("quick_switches")
@pytest.mark.parametrize("name", MANY)
def test_many_threads_in_one_stream(name: str) -> None:
    spec = MANY[name].aggregate(n=fw.Count(), s=fw.Sum("v"))
    stream = spec.open(schema=batch(0).schema)
    taken: list[int] = []
    refused: list[str] = []

    def feed(number: int) -> None:
        try:
            stream.process(batch(number))
            taken.append(number)
        except fw.StateError as problem:
            refused.append(str(problem))
        found = stream.metrics
        assert 0 <= found.state_rows <= 5_000 * 200 * 60
        assert found.watermark == stream.watermark == fw.MIN_TIMESTAMP
        stream.next_timer()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(feed, range(60)))
    assert all(
        re.match(r"stream: another thread is inside process\(\), so process\(\) is refused", text) for text in refused
    )
    assert stream.metrics.events == 5_000 * len(taken)
    stream._check_invariants()
    alone = spec.open(schema=batch(0).schema)
    for number in taken:
        alone.process(batch(number))
    found, wanted = (one.advance_watermark(fw.MAX_TIMESTAMP).main for one in (stream, alone))
    order = [("k", "ascending"), ("window_end", "ascending")]
    assert found.num_rows > 0
    assert found.sort_by(order) == wanted.sort_by(order)


class Waits(fw.Trigger):
    """Waits at an element until it is told to go on."""

    def __init__(self) -> None:
        self.inside, self.go_on = threading.Event(), threading.Event()

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> fw.TriggerResult:
        self.inside.set()
        assert self.go_on.wait(10)
        return fw.TriggerResult.CONTINUE


CALLS: dict[str, Callable[[Any, pa.Table], object]] = {
    "process": lambda stream, data: stream.process(data),
    "advance_watermark": lambda stream, data: stream.advance_watermark(5),
    "advance_processing_time": lambda stream, data: stream.advance_processing_time(5),
    "finish_processing_time": lambda stream, data: stream.finish_processing_time(),
    "snapshot": lambda stream, data: stream.snapshot(),
    "delta": lambda stream, data: stream.delta(),
    "restore": lambda stream, data: stream.restore([b""]),
    "merge": lambda stream, data: stream.merge([]),
    "catch_up": lambda stream, data: stream.catch_up([]),
}


def test_all_calls_are_refused_while_one_is_inside() -> None:
    data, trigger = table(("a", 1, 1)), Waits()
    # describe() would look into the events.
    spec = KEYED.window(fw.TumblingEventTimeWindows.of(10)).trigger(trigger).aggregate(n=fw.Count())
    stream = open_replica(plan(spec, data.schema))
    with ThreadPoolExecutor(1) as pool:
        inside = pool.submit(stream.process, data)
        try:
            assert trigger.inside.wait(10)
            for name, call in CALLS.items():
                says = rf"^stream: another thread is inside process\(\), so {name}\(\)"
                with pytest.raises(fw.StateError, match=says):
                    call(stream, data)
            assert stream.metrics.events == 1
            assert stream.metrics.open_windows == 0  # as it was
            assert (stream.next_timer(), stream.next_processing_timer()) == (None, None)
            assert stream.watermark == fw.MIN_TIMESTAMP
        finally:
            trigger.go_on.set()
        inside.result(10)
    assert stream.metrics.open_windows == 1
    stream.process(data)
    assert stream.metrics.events == 2


def test_what_was_read_during_a_call_is_read_again_at_its_end() -> None:
    stream = COUNT.open()
    call = Call("process")
    stream._guard.enter(call)
    assert stream._guard.look(stream, "sizes", "nothing yet") == "nothing yet"
    stream._guard.leave(call, stream)
    assert stream._guard._last["sizes"] == (0, 0, 0, 0)


@pytest.mark.parametrize("call", ["process", "snapshot", "advance_watermark", "restore"])
@pytest.mark.parametrize("caught", [True, False])
def test_user_code_that_calls_its_own_stream(call: str, caught: bool) -> None:
    data = table(("a", 1, 1))
    told: list[str] = []

    class Calls(fw.Trigger):
        def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> fw.TriggerResult:
            assert held[0].metrics.events == 1
            try:
                CALLS[call](held[0], data)
            except fw.StateError as problem:
                told.append(str(problem))
                if not caught:
                    raise
            return fw.TriggerResult.FIRE

    spec = KEYED.window(fw.TumblingEventTimeWindows.of(10)).trigger(Calls()).aggregate(n=fw.Count())
    held = [spec.open(schema=data.schema)]
    saved = held[0].snapshot()
    if caught:
        assert rows(held[0].process(data)) == [("a", 0, 10, 1)]
        held[0].advance_watermark(9)
    else:
        with pytest.raises(fw.UserFunctionError, match="was called by code that process"):
            held[0].process(data)
        with pytest.raises(fw.StateError, match="failed in the middle of a batch"):
            held[0].snapshot()
        held[0].restore([saved])
        assert held[0].advance_watermark(9).main.num_rows == 0
    assert told == [
        f"stream: {call}() was called by code that process() runs; it is inside until that returns, and takes no other call"
    ]


def test_a_call_that_fails_lets_others_in() -> None:
    stream = SUM.open()
    with pytest.raises(fw.SpecError):
        stream.process(5)
    with pytest.raises(fw.SpecError):
        stream.advance_watermark("x")  # type: ignore[arg-type]
    stream.process(table(("a", 1, 2**62), ("a", 2, 2**62)))
    with pytest.raises(fw.AggregateOverflowError):
        stream.advance_watermark(9)
    with pytest.raises(fw.StateError, match="failed in the middle"):
        stream.process(table(("a", 1, 1)))


def test_a_harness_takes_one_thread_at_a_time() -> None:
    trigger = Waits()
    spec = KEYED.window(fw.TumblingEventTimeWindows.of(10)).trigger(trigger).aggregate(n=fw.Count())
    harness = WindowHarness(spec)
    with ThreadPoolExecutor(1) as pool:
        inside = pool.submit(harness.push, {"k": "a", "t": 1})
        try:
            assert trigger.inside.wait(10)
            for call in (lambda: harness.push({"k": "a", "t": 1}), harness.snapshot, harness.pending_timers):
                with pytest.raises(fw.StateError, match=r"^harness: another thread is inside push"):
                    call()
        finally:
            trigger.go_on.set()
        inside.result(10)
    assert [timer.time for timer in harness.pending_timers()] == [9]


def test_streams_are_freed_at_once() -> None:
    """No circle of references keeps a stream's state until the next garbage collection."""
    import weakref

    stream = COUNT.open()
    stream.process(table(("a", 1, 1)))
    assert stream.metrics.state_rows == 1
    told = weakref.ref(stream)
    del stream
    assert told() is None


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_streams_cannot_be_copied(copied: Callable[[Any], object]) -> None:
    stream, harness = COUNT.open(), WindowHarness(COUNT)
    for one, name in ((stream, "stream"), (harness, "harness")):
        with pytest.raises(
            fw.StateError, match=rf"^{name}: it cannot be copied or pickled; snapshot\(\) .*restore\(\)"
        ):
            copied(one)
    stream.process(table(("a", 1, 1)))
    with pytest.raises(fw.StateError, match="snapshot"):
        copied(stream)


def test_reading_metrics_while_another_thread_feeds() -> None:
    spec = KEYED.window(fw.SlidingEventTimeWindows.of(1_000, 50)).aggregate(n=fw.Count())
    stream, over = spec.open(schema=batch(0).schema), time.monotonic() + 1

    def read() -> None:
        while time.monotonic() < over:
            found = stream.metrics
            assert found.open_windows >= 0
            assert found.state_bytes >= 0
            stream.next_timer()

    number = 0
    with ThreadPoolExecutor(3) as pool:
        readers = [pool.submit(read) for _ in range(3)]
        while time.monotonic() < over:
            stream.process(batch(number, 2_000))
            number += 1
            if number % 10 == 0:
                stream.advance_watermark(number * 10)
        for reader in readers:
            reader.result(30)
    assert stream.metrics.events == 2_000 * number
