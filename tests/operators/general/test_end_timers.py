"""Timers at a window's end, which its row tells of: one of each fires, whatever is deleted and registered again."""

from typing import Any

import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.run.planner import plan
from fastwin.run.stream import open_plan

SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.int64())])
SIZE = 100
TUMBLING = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of(SIZE))


class Restless(fw.Trigger):
    """Takes its timer back with each element, and registers it anew."""

    def on_element(self, element, timestamp, window, ctx):
        ctx.delete_event_time_timer(window.max_timestamp())
        ctx.register_event_time_timer(window.max_timestamp())
        return fw.TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        return fw.TriggerResult.FIRE if time == window.max_timestamp() else fw.TriggerResult.CONTINUE

    def clear(self, window, ctx):
        ctx.delete_event_time_timer(window.max_timestamp())


def opened(spec: fw.WindowSpec) -> fw.Stream:
    return open_plan(plan(spec, SCHEMA, general=True))


def counts(result: Any) -> list[tuple[int, int, int]]:
    """Key, end and count of each result row."""
    table = result.main
    ends = table["window_end"].cast(pa.int64()).to_pylist()
    return list(zip(table["k"].to_pylist(), ends, table["n"].to_pylist(), strict=True))


@pytest.mark.parametrize("lateness", [0, 50])
def test_timer_that_is_registered_again_and_again_fires_once_and_takes_no_room(lateness: int) -> None:
    stream = opened(TUMBLING.trigger(Restless()).allowed_lateness(lateness).aggregate(n=fw.Count()))
    service = stream._operator.timer_service
    for _ in range(10):
        stream.process(pa.table({"k": [1] * 500, "ts": [5] * 500}, SCHEMA))
        stream._operator._check()
    assert stream._operator.timers == (2 if lateness else 1)
    assert service.event_timers.nbytes < 50_000
    assert counts(stream.advance_watermark(SIZE - 1)) == [(1, SIZE, 5_000)]
    assert counts(stream.advance_watermark(10 * SIZE)) == []
    assert stream._operator.timers == stream._operator.state_rows == 0


def test_row_that_another_window_has_got_does_not_fire_for_the_one_before() -> None:
    """The timer of a window that has gone early stays behind, in a row that is another one's."""
    stream = opened(TUMBLING.trigger(fw.PurgingTrigger.of(fw.CountTrigger.of(2))).aggregate(n=fw.Count()))
    for start in range(0, 1_000, SIZE):
        assert counts(stream.process(pa.table({"k": [1, 1, 2], "ts": [start] * 3}, SCHEMA))) == [(1, start + SIZE, 2)]
        stream._operator._check()
        assert counts(stream.advance_watermark(start + SIZE)) == []
        stream._operator._check()
    assert stream._operator.timers == 0


@pytest.mark.parametrize("lateness", [0, 50])
def test_windows_that_fire_and_go_leave_nothing_and_keep_the_others(lateness: int) -> None:
    """Many at once, their keys with and without windows that stay, and with rows that the last snapshot has."""
    stream = opened(TUMBLING.allowed_lateness(lateness).aggregate(n=fw.Count()))
    keys = list(range(600))
    stream.process(pa.table({"k": keys * 2, "ts": [5] * 600 + [105] * 600}, SCHEMA))
    saved = stream.snapshot()
    stream.process(pa.table({"k": keys[::2], "ts": [250] * 300}, SCHEMA))
    assert counts(stream.advance_watermark(SIZE)) == [(key, SIZE, 1) for key in keys]
    assert counts(stream.advance_watermark(2 * SIZE + lateness)) == [(key, 2 * SIZE, 1) for key in keys]
    stream._operator._check()
    assert stream._operator.state_rows == 300
    twin = opened(TUMBLING.allowed_lateness(lateness).aggregate(n=fw.Count()))
    twin.restore([saved, stream.delta()])
    twin._operator._check()
    last = [(key, 3 * SIZE, 1) for key in keys[::2]]
    assert (
        counts(twin.advance_watermark(fw.MAX_TIMESTAMP)) == counts(stream.advance_watermark(fw.MAX_TIMESTAMP)) == last
    )
    stream.delta()  # tells what has gone
    assert stream._operator.state_rows == len(stream._operator.table.keys) == 0
