"""Processing time in the stateful operator, without Spark: what fires when, and when Spark is to come again."""

import time

import pytest
from pyspark.sql.streaming.stateful_processor import TimerValues

import fastwin as fw
from spark_glue.stages.sharetimers import ShareTimers
from tests.support.spark_fakes import FakeHandle
from tests.support.spark_harness import Harness, counts, packet

ARRIVAL = fw.key_by("k").processing_time().window(fw.TumblingProcessingTimeWindows.of(10)).aggregate(n=fw.Count())
BOTH = (
    fw.key_by("k")
    .event_time("ts")
    .window(fw.TumblingEventTimeWindows.of(100))
    .trigger(fw.any_of(fw.EventTimeTrigger(), fw.ContinuousProcessingTimeTrigger.of(10)))
    .aggregate(n=fw.Count())
)


def test_windows_are_of_the_batchs_time_and_fire_when_it_has_passed():
    harness = Harness(ARRIVAL)
    assert harness.batch(0, {7: [packet((1, 0), (2, 0))]}, now=1003)["MAIN"] == []
    assert harness.handle.timers == {7: {1010}}  # a millisecond after the last of the window
    assert harness.batch(0, {}, now=1009)["MAIN"] == []
    assert counts(harness.batch(0, {}, now=1010)["MAIN"]) == [(1, 1000, 1), (2, 1000, 1)]
    assert harness.handle.timers == {7: set()}
    assert not any(harness.handle.values[7].values())


def test_timers_strictly_before_the_batchs_time_fire_first_then_elements_are_taken():
    harness = Harness(ARRIVAL)
    harness.batch(0, {7: [packet((1, 0))]}, now=1000)
    # 1009 is the window's last millisecond: its timer is not due before 1010, and the element still belongs to it
    assert harness.batch(0, {7: [packet((1, 0))]}, now=1009)["MAIN"] == []
    out = harness.batch(0, {7: [packet((1, 0))]}, now=1010)
    assert counts(out["MAIN"]) == [(1, 1000, 2)]
    assert harness.handle.timers == {7: {1020}}


def test_time_never_goes_back():
    harness = Harness(ARRIVAL)
    harness.batch(0, {7: [packet((1, 0))]}, now=1005)
    assert harness.batch(0, {7: [packet((1, 0))]}, now=900)["MAIN"] == []
    assert counts(harness.batch(0, {}, now=1010)["MAIN"]) == [(1, 1000, 2)]


def test_a_long_pause_fires_every_interval_once():
    early = fw.key_by("k").processing_time().window(fw.TumblingProcessingTimeWindows.of(100))
    harness = Harness(early.trigger(fw.ContinuousProcessingTimeTrigger.of(10)).aggregate(n=fw.Count()))
    harness.batch(0, {7: [packet((1, 5))]}, now=1003)
    assert counts(harness.batch(0, {}, now=1035)["MAIN"]) == [(1, 1000, 1)] * 3
    assert counts(harness.batch(0, {}, now=1100)["MAIN"]) == [(1, 1000, 1)] * 7


def test_event_and_processing_timers_live_together():
    spec = BOTH.window(fw.TumblingEventTimeWindows.of(2000))
    harness = Harness(spec)
    harness.batch(0, {7: [packet((1, 5))]}, now=1003)
    assert harness.handle.timers == {7: {1004}}  # the watermark may have moved by the next batch
    assert harness.batch(0, {}, now=1008)["MAIN"] == []
    assert harness.handle.timers == {7: {1009}}
    assert counts(harness.batch(0, {}, now=1011)["MAIN"]) == [(1, 0, 1)]
    assert counts(harness.batch(1999, {}, now=1015)["MAIN"]) == [(1, 0, 1)]
    assert harness.handle.timers == {7: set()}
    assert harness.counters["state_rows_change"] == -1
    assert "waiting" not in harness.handle.values[7]


def test_a_key_group_with_nothing_due_is_not_read(monkeypatch):
    harness = Harness(BOTH.window(fw.TumblingEventTimeWindows.of(2000)))
    harness.batch(0, {7: [packet((1, 5))]}, now=1003)
    monkeypatch.setattr("spark_glue.stages.operator.StateLog.load", lambda self: 1 / 0)
    for now in range(1004, 1010):
        assert harness.batch(50, {}, now=now)["MAIN"] == []
        assert harness.handle.timers == {7: {now + 1}}
    monkeypatch.undo()
    # Input comes while the timer is set: one timer is left, and the one that had expired does not lead here again.
    harness.batch(50, {7: [packet((1, 6))]}, now=1010)
    assert harness.handle.timers == {7: {1011}}
    assert counts(harness.batch(50, {}, now=1012)["MAIN"]) == [(1, 0, 2)]


def test_the_state_keeps_the_clock_over_restarts():
    harness = Harness(ARRIVAL.aggregate(n=fw.Count()))
    harness.batch(0, {7: [packet((1, 0))], 8: [packet((2, 0))]}, now=1000)
    harness.batch(0, {8: [packet((2, 0))]}, now=1003)
    assert counts(harness.batch(0, {}, now=5000)["MAIN"]) == [(1, 1000, 1), (2, 1000, 2)]


@pytest.mark.parametrize(("now", "expected"), [(1_003, 1_001), (1_000, 1_001), (999, 1_000), (400, 401)])
def test_a_share_that_waits_is_visited_next_time_though_the_clock_has_gone_back(now, expected):
    """A timer that is due, or will be in the next micro-batch, stays."""
    handle = FakeHandle()
    timers = ShareTimers(handle, "ProcessingTime")
    timers.wait(TimerValues(1_000, 0))
    assert handle.timers == {0: {1_001}}
    handle.values[0]["waiting"] = (5, 7_000, 1_001)
    timers.wait(TimerValues(now, 0))
    assert handle.timers == {0: {expected}}
    assert handle.values[0]["waiting"] == (5, 7_000, expected)


def test_without_event_time_there_are_no_timers():
    harness = Harness(fw.key_by("k").count_window(2).aggregate(n=fw.Count()))
    assert harness.frame_plan.time_mode == "None"
    harness.batch(0, {7: [packet((1, 0))]}, now=1000)
    assert counts_of(harness.batch(0, {7: [packet((1, 0), (1, 0))]}, now=2000)) == [2]
    assert not any(harness.handle.timers.values())


def counts_of(out) -> list[int]:
    return [row[-1] for row in out["MAIN"]]


class When(fw.ProcessWindowFunction):
    def process(self, key, context, elements):
        yield context.current_processing_time()


def test_without_event_time_the_clock_is_the_machines():
    """Spark tells none."""
    harness = Harness(fw.key_by("k").count_window(1).process(When(), output="t bigint"))
    assert harness.frame_plan.time_mode == "None"
    before = time.time_ns() // 1_000_000
    (told,) = counts_of(harness.batch(0, {7: [packet((1, 0))]}))
    assert before <= told <= time.time_ns() // 1_000_000


def test_elements_of_a_global_window_grow_old(monkeypatch):
    spec = fw.key_by("k").processing_time().window(fw.GlobalWindows.create()).trigger(fw.CountTrigger.of(1))
    harness = Harness(spec.evictor(fw.TimeEvictor.of("10 s")).aggregate(n=fw.Count()))
    assert harness.frame_plan.time_mode == "None"
    found = []
    for now in (1_000_000, 1_004_000, 1_013_000, 1_060_000):
        monkeypatch.setattr(time, "time_ns", lambda now=now: now * 1_000_000)
        found += counts_of(harness.batch(0, {7: [packet((1, 0))]}))
    assert found == [1, 2, 2, 1]


def test_a_window_behind_a_window_is_told_the_time_before_its_rows():
    spec = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of(10_000))
    harness = Harness(spec.trigger(fw.CountTrigger.of(1)).process(When(), output="t bigint"), chained=True)
    assert counts_of(harness.batch(0, {7: [packet((1, 5))]}, now=1234)) == [1234]
    early = fw.after_watermark(early=fw.ContinuousProcessingTimeTrigger.of(100))
    harness = Harness(spec.trigger(early).aggregate(n=fw.Count()), chained=True)
    assert counts_of(harness.batch(0, {7: [packet((1, 5))]}, now=1234)) == []
    assert counts_of(harness.batch(0, {}, now=1299)) == []
    assert counts_of(harness.batch(0, {}, now=1301)) == [1]


def test_the_clock_of_event_time_queries_is_the_batchs_too():
    spec = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of(10)).process(When(), output="t bigint")
    harness = Harness(spec)
    assert harness.frame_plan.time_mode == "EventTime"
    harness.batch(0, {7: [packet((1, 5))]}, now=1000)
    assert [row[-1] for row in harness.batch(9, {}, now=1234)["MAIN"]] == [1234]
