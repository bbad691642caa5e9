"""Windows that a user's assigner merges: what a callback may say, and what is refused."""

from typing import Any

import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.testing import WindowHarness

A, B, C = fw.TimeWindow(0, 10), fw.TimeWindow(5, 15), fw.TimeWindow(20, 30)
COVER, OTHER = fw.TimeWindow(0, 15), fw.TimeWindow(0, 30)
BASE = fw.key_by("k").event_time("ts")
Calls = list[tuple[list[Any], Any]]


class Saying(fw.MergingWindowAssigner):
    """Windows of the element's own bounds; makes these callbacks when A, B and C are there."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls

    def assign_windows(self, element, timestamp, context):
        return [fw.TimeWindow(element.start, element.end)]

    def merge_windows(self, windows, callback):
        if {A, B, C} <= set(windows):
            for merged, result in self.calls:
                callback(merged, result)


class LeavingTimers(fw.Trigger):
    """Leaves a timer behind in each window."""

    def on_element(self, element, timestamp, window, ctx):
        ctx.register_event_time_timer(1000)
        return fw.TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        return fw.TriggerResult.FIRE if time == window.max_timestamp() else fw.TriggerResult.CONTINUE

    def can_merge(self):
        return True

    def on_merge(self, window, ctx):
        ctx.register_event_time_timer(window.max_timestamp())


def _row(window: fw.TimeWindow, key: str = "a") -> dict[str, Any]:
    return {"k": key, "ts": window.start, "start": window.start, "end": window.end}


@pytest.mark.parametrize("leaves", [False, True])
@pytest.mark.parametrize(
    ("calls", "says"),
    [
        ([([A, B], COVER), ([B, C], OTHER)], f"{B} has been merged already"),
        ([([A, B], COVER), ([A, B], COVER)], f"{A} has been merged already"),
        ([([A, B], A), ([A, C], OTHER)], f"{A} has been merged already"),
        ([([A, B], C), ([C], OTHER)], f"{C} has been merged already"),
        ([([A, fw.TimeWindow(7, 9)], COVER)], "is none of the windows to merge"),
        ([([A, B], COVER), ([COVER, C], OTHER)], f"{COVER} is none of the windows to merge"),
        ([([A, B], fw.TimeWindow(0, 2**63))], "must be a TimeWindow of int64 ms"),
        ([([A, B], fw.TimeWindow(0, 5.5))], "float"),  # type: ignore[arg-type]
        ([([A, B], (0, 15))], "must be a TimeWindow of int64 ms"),
    ],
)
def test_what_a_callback_may_not_say(calls: Calls, says: str, leaves: bool) -> None:
    spec = BASE.window(Saying(calls))
    if leaves:
        spec = spec.trigger(LeavingTimers())
    rows = [_row(fw.TimeWindow(7, 9), "b"), _row(A), _row(B), _row(C)]
    stream = spec.aggregate(n=fw.Count()).open(schema=pa.Table.from_pylist(rows).schema)
    saved = stream.snapshot()
    with pytest.raises(fw.UserFunctionError) as told:
        stream.process(pa.Table.from_pylist(rows))
    assert f"Saying.merge_windows: for key 'a', {C}: " in str(told.value)
    assert says in str(told.value)
    stream._operator._check()
    with pytest.raises(fw.StateError, match="failed in the middle"):
        stream.advance_watermark(5)
    stream.restore(saved)
    stream.process(pa.Table.from_pylist(rows[1:3]))
    fired = stream.advance_watermark(100).main
    assert [row["n"] for row in fired.to_pylist()] == [1, 1]


@pytest.mark.parametrize("leaves", [False, True])
@pytest.mark.parametrize(
    ("calls", "counts"),
    [
        ([([], COVER)], {A: 1, B: 1, C: 1}),
        ([([A, B, A], COVER)], {COVER: 2, C: 1}),
        ([([A, C], A)], {A: 2, B: 1}),
        ([([A, C], C)], {C: 2, B: 1}),
        ([([A, B], C)], {C: 3}),
        ([([A, B], fw.TimeWindow(50, 60))], {C: 1, fw.TimeWindow(50, 60): 2}),
        ([([A], OTHER), ([B, C], COVER)], {COVER: 2, OTHER: 1}),
        ([([C], COVER)], {A: 1, B: 1, COVER: 1}),
    ],
)
def test_what_windows_become(calls: Calls, counts: dict[fw.TimeWindow, int], leaves: bool) -> None:
    spec = BASE.window(Saying(calls))
    harness = WindowHarness((spec.trigger(LeavingTimers()) if leaves else spec).aggregate(n=fw.Count()))
    for window in (A, B, C):
        harness.push(_row(window))
    harness._operator._check()
    harness.advance_watermark(999)
    if not leaves:
        assert {e.window: e.value["n"] for e in harness.emissions} == counts
        assert len(harness.emissions) == len(counts)
    harness.advance_watermark(2000)
    harness._operator._check()
    assert harness.state_rows == harness.timers == 0


class Handing(fw.Trigger):
    """Hands all calls on to another trigger, which then keeps its state through the ctx."""

    def __init__(self, asked: fw.Trigger) -> None:
        self.asked = asked

    def on_element(self, element, timestamp, window, ctx):
        return self.asked.on_element(element, timestamp, window, ctx)

    def can_merge(self):
        return True

    def on_merge(self, window, ctx):
        self.asked.on_merge(window, ctx)

    def clear(self, window, ctx):
        self.asked.clear(window, ctx)


# The windows that are merged are cleared after ``on_merge``, as in Flink: in A, all counts begin anew at 4 elements. In
# others, the part that waits for two has fired, and the other one has counted four; it fires at the next element.
@pytest.mark.parametrize(("result", "fires"), [(A, [7]), (C, [5, 8]), (COVER, [5, 8])], ids=["old", "new", "another"])
def test_all_of_in_what_windows_become(result: fw.TimeWindow, fires: list[int]) -> None:
    asked = fw.all_of(fw.CountTrigger.of(2), fw.CountTrigger.of(3))
    told = []
    for trigger in (asked, Handing(asked)):
        harness = WindowHarness(BASE.window(Saying([([A, B, C], result)])).trigger(trigger).aggregate(n=fw.Count()))
        for window in (A, A, B, B, C, result, result, result, result):
            harness.push(_row(window))
        told.append([e.value["n"] for e in harness.emissions])
        assert {e.window for e in harness.emissions} == {result}
        harness._operator._check()
    assert told[0] == told[1] == fires
