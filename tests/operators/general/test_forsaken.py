"""Windows whose trigger has deleted the timer that cleans them: they fire no more, as in Flink, and go all the same."""

from typing import ClassVar

import pyarrow as pa
import pytest

import fastwin as fw

SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.int64())])


class Deleting(fw.Trigger):
    """Fires when the clock passes a time, and deletes the timer at the window's end then."""

    cleared: ClassVar[list[int]] = []

    def __init__(self, answer=fw.TriggerResult.FIRE):
        self.answer = answer

    def on_element(self, element, timestamp, window, ctx):
        ctx.register_event_time_timer(window.max_timestamp())
        ctx.register_processing_time_timer(ctx.get_current_processing_time() + 3)
        return fw.TriggerResult.CONTINUE

    def on_processing_time(self, time, window, ctx):
        ctx.delete_event_time_timer(window.max_timestamp())
        return self.answer

    def on_event_time(self, time, window, ctx):
        return fw.TriggerResult.FIRE

    def clear(self, window, ctx):
        self.cleared.append(window.start)


def timeout(trigger: fw.Trigger) -> fw.Trigger:
    return fw.ProcessingTimeoutTrigger.of(trigger, "3 ms")


TRIGGERS = {
    "timeout": lambda: timeout(fw.EventTimeTrigger()),
    "timeout of a continuous one": lambda: timeout(fw.ContinuousEventTimeTrigger.of(20)),
    "one's own": Deleting,
}


def opened(trigger: fw.Trigger) -> fw.Stream:
    spec = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of(10)).trigger(trigger)
    return spec.aggregate(n=fw.Count()).open(schema=SCHEMA)


def rows(*pairs: tuple[int, int]) -> pa.Table:
    return pa.table({"k": [k for k, _ in pairs], "ts": [ts for _, ts in pairs]}, schema=SCHEMA)


@pytest.mark.parametrize("restored", [False, True])
@pytest.mark.parametrize("trigger", TRIGGERS.values(), ids=TRIGGERS)
def test_they_go_with_the_watermark(trigger, restored: bool) -> None:
    stream = opened(trigger())
    for start in (0, 100, 200):
        stream.process(rows((1, start + 1), (2, start + 2)))
        assert stream.advance_processing_time(start + 5).main["n"].to_pylist() == [1, 1]
        if restored:
            chunk = stream.snapshot()
            stream = opened(trigger())
            stream.restore([chunk])
        assert stream.metrics.open_windows == 2
        assert stream.next_timer() == start + 9
        assert stream.advance_watermark(start + 8).main.num_rows == 0
        assert stream.metrics.open_windows == 2
        assert stream.advance_watermark(start + 9).main.num_rows == 0
        assert stream.metrics.open_windows == stream.metrics.state_rows == 0
        assert stream.next_timer() is None


@pytest.mark.parametrize("trigger", TRIGGERS.values(), ids=TRIGGERS)
def test_an_element_more_brings_the_timer_back(trigger) -> None:
    stream = opened(trigger())
    stream.process(rows((1, 1)))
    stream.advance_processing_time(5)
    stream.process(rows((1, 2)))
    assert stream.advance_watermark(9).main["n"].to_pylist() == [2]
    assert stream.metrics.open_windows == 0


def test_their_triggers_are_cleared_and_what_has_not_fired_is_counted() -> None:
    Deleting.cleared.clear()
    stream = opened(Deleting(fw.TriggerResult.CONTINUE))
    stream.process(rows((1, 1), (1, 11)))
    assert stream.advance_processing_time(5).main.num_rows == 0
    assert stream.advance_watermark(fw.MAX_TIMESTAMP).main.num_rows == 0
    assert sorted(Deleting.cleared) == [0, 10]
    assert stream.metrics.unfired == 2
    assert stream.metrics.open_windows == stream.metrics.state_rows == 0


def test_windows_that_merge_leave_nothing_behind() -> None:
    """Each merge takes timers away, of windows that are gone then."""
    spec = fw.key_by("k").event_time("ts").window(fw.EventTimeSessionWindows.with_gap(10)).with_pane_info()
    stream = spec.aggregate(n=fw.Count()).open(schema=SCHEMA)
    stream.process(rows(*((1, 5 * i) for i in range(10))))
    before = stream.metrics.state_bytes
    stream.process(rows(*((1, 5 * i) for i in range(10, 2_000))))
    assert stream.metrics.open_windows == 1
    assert stream.metrics.state_bytes < before + 4_096
    assert stream.advance_watermark(fw.MAX_TIMESTAMP).main["n"].to_pylist() == [2_000]
