"""Global windows: timers at the end of time, and elements without a time."""

from typing import Any

import pyarrow as pa
import pytest

import fastwin as fw

SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.int64())])
GLOBAL = fw.key_by("k").event_time("ts").window(fw.GlobalWindows.create())
ARRIVALS = fw.key_by("k").processing_time().window(fw.GlobalWindows.create())


def rows(*times: int | None) -> pa.Table:
    return pa.table({"k": [1] * len(times), "ts": times}, schema=SCHEMA)


class AtTheEnd(fw.Trigger):
    """Fires at the last millisecond of its window, by one of the clocks; an element at 9 takes the timer away."""

    def __init__(self, by_clock: bool) -> None:
        self.by_clock = by_clock

    def on_element(self, element: Any, timestamp: int | None, window: fw.TimeWindow, context: Any) -> fw.TriggerResult:
        last, clock = window.max_timestamp(), "processing" if self.by_clock else "event"
        what = "delete" if element["ts"] == 9 else "register"
        getattr(context, f"{what}_{clock}_time_timer")(last)
        return fw.TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: fw.TimeWindow, context: Any) -> fw.TriggerResult:
        return fw.TriggerResult.FIRE

    def on_processing_time(self, time: int, window: fw.TimeWindow, context: Any) -> fw.TriggerResult:
        return fw.TriggerResult.FIRE

    def clear(self, window: fw.TimeWindow, context: Any) -> None:
        return


def at_the_end(stream: fw.Stream) -> list[int]:
    found = [stream.advance_watermark(fw.MAX_TIMESTAMP), stream.finish_processing_time()]
    return [n for one in found for n in one.main["n"].to_pylist()]


@pytest.mark.parametrize("chunks", ["snapshot", "delta", "delta of a change", "gone by a delta"])
@pytest.mark.parametrize("by_clock", [False, True], ids=["event time", "the clock"])
def test_timers_at_the_end_of_time_are_restored(by_clock: bool, chunks: str) -> None:
    spec = (ARRIVALS if by_clock else GLOBAL).trigger(AtTheEnd(by_clock)).aggregate(n=fw.Count())
    stream = spec.open(schema=SCHEMA)
    if chunks == "snapshot":
        stream.process(rows(1, 2))
        kept = [stream.snapshot()]
    else:
        kept = [stream.snapshot()]
        stream.process(rows(1, 2))
        kept.append(stream.delta())
    if chunks == "delta of a change":
        stream.process(rows(3))
        kept.append(stream.delta())
    elif chunks == "gone by a delta":
        stream.process(rows(9))
        kept.append(stream.delta())
    restored = spec.open(schema=SCHEMA)
    restored.restore(kept)
    timers = 0 if chunks == "gone by a delta" else 1
    assert restored.metrics.timers == stream.metrics.timers == timers
    expected = {"delta of a change": [3], "gone by a delta": []}.get(chunks, [2])
    assert at_the_end(stream) == expected
    assert at_the_end(restored) == expected


@pytest.mark.parametrize("interval", ["10 ms", "3 ms", "8 ms"])
def test_an_element_without_a_time_sets_no_firing_and_stops_none(interval: str) -> None:
    spec = GLOBAL.trigger(fw.ContinuousEventTimeTrigger.of(interval)).aggregate(n=fw.Count())
    found = []
    for times in ((None, 5, 6), (5, 6)):
        stream = spec.open(schema=SCHEMA)
        stream.process(rows(*times))
        found.append(stream.advance_watermark(100).main["n"].to_pylist())
    assert found == [[3] * len(found[1]), [2] * len(found[1])] and found[1]


def test_elements_without_a_time_alone_wait_for_the_end() -> None:
    spec = GLOBAL.trigger(fw.ContinuousEventTimeTrigger.of("10 ms")).aggregate(n=fw.Count())
    stream = spec.open(schema=SCHEMA)
    assert not stream.process(rows(None, None)).main.num_rows
    assert not stream.advance_watermark(100).main.num_rows
    assert stream.advance_watermark(fw.MAX_TIMESTAMP).main["n"].to_pylist() == [2]
