"""Triggers made of several: each goes by its own timers, and what one lets go the others still have."""

from typing import Any

import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.testing import WindowHarness

MINUTE = 60_000
PROCESSING = fw.key_by("k").processing_time().window(fw.TumblingProcessingTimeWindows.of(MINUTE))
EVENT = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of(MINUTE))
EVERY_10_S = fw.ContinuousProcessingTimeTrigger.of("10 s")
AT_THE_END = fw.ProcessingTimeTrigger()


def harness(trigger: fw.Trigger, windows: Any = EVENT, lateness: int = 0) -> WindowHarness:
    spec = windows.trigger(trigger)
    if windows is EVENT:
        spec = spec.allowed_lateness(lateness)
    return WindowHarness(spec.aggregate(n=fw.Count()))


def push(of: WindowHarness, time: int = 0) -> list[int]:
    element = {"k": "a"} if of.spec.time_column is None else {"k": "a", "ts": time}
    return counts(of.push(element))


def counts(emissions: list[Any]) -> list[int]:
    return [emission.value["n"] for emission in emissions]


@pytest.mark.parametrize(
    "trigger",
    [
        fw.any_of(EVERY_10_S, fw.PurgingTrigger.of(AT_THE_END)),
        fw.any_of(fw.PurgingTrigger.of(AT_THE_END), EVERY_10_S),
        fw.any_of(fw.any_of(EVERY_10_S), fw.any_of(fw.PurgingTrigger.of(fw.all_of(AT_THE_END)))),
    ],
)
def test_the_end_of_processing_time_is_no_other_parts_timer(trigger: fw.Trigger) -> None:
    one = harness(trigger, PROCESSING)
    assert push(one) == []
    assert counts(one.advance_processing_time(10_000)) == [1]
    assert push(one) == []
    assert counts(one.advance_processing_time(20_000)) == [2]  # nothing was purged
    assert counts(one.advance_processing_time(MINUTE - 1)) == [2, 2, 2, 2]
    assert one.state_rows == one.timers == 0


def test_all_wait_for_the_end_of_processing_time() -> None:
    one = harness(fw.all_of(AT_THE_END, EVERY_10_S), PROCESSING)
    push(one)
    assert one.advance_processing_time(50_000) == []
    assert counts(one.advance_processing_time(MINUTE - 1)) == [1]


def test_a_trigger_of_its_own_answers_any_timer_as_flinks_does() -> None:
    one = harness(fw.ProcessingTimeoutTrigger.of(fw.CountTrigger.of(100), "1 hour"))
    push(one)
    assert counts(one.advance_watermark(MINUTE - 1)) == [1]  # that which cleans the window counts as a timeout


@pytest.mark.parametrize("lateness", [0, 5])
def test_a_timeout_waits_for_the_clock_beside_others(lateness: int) -> None:
    hour = fw.ProcessingTimeoutTrigger.of(fw.CountTrigger.of(100), "1 hour")
    one = harness(fw.all_of(fw.EventTimeTrigger(), hour), lateness=lateness)
    push(one)
    push(one)
    assert one.advance_watermark(MINUTE - 1) == []
    two = harness(fw.all_of(fw.EventTimeTrigger(), hour), lateness=lateness)
    push(two)
    assert two.advance_processing_time(3_600_000) == []
    assert counts(two.advance_watermark(MINUTE - 1)) == [1]


IN_5_S = fw.ProcessingTimeoutTrigger.of(fw.ContinuousEventTimeTrigger.of("1 hour"), "5 s")


@pytest.mark.parametrize("lateness", [0, 7])
@pytest.mark.parametrize(
    "trigger",
    [
        fw.after_watermark(early=IN_5_S),
        fw.after_watermark(early=fw.any_of(IN_5_S)),
        fw.any_of(fw.EventTimeTrigger(), IN_5_S),
        fw.any_of(IN_5_S, fw.EventTimeTrigger()),
        fw.any_of(IN_5_S, fw.PurgingTrigger.of(fw.ContinuousEventTimeTrigger.of("1 minute"))),
        fw.any_of(fw.EventTimeTrigger(), fw.ProcessingTimeoutTrigger.of(fw.EventTimeTrigger(), "5 s")),
        fw.any_of(fw.after_watermark(), IN_5_S),
    ],
    ids=str,
)
def test_a_timeout_takes_no_other_part_the_end(trigger: fw.Trigger, lateness: int) -> None:
    """A timeout clears its inner trigger, whose timer was that of the end as well."""
    for until in (MINUTE - 1, 2**62):
        one = harness(trigger, lateness=lateness)
        push(one)
        assert counts(one.advance_processing_time(5_000)) == [1]
        assert counts(one.advance_watermark(until)) == [1]
        one.advance_watermark(MINUTE - 1 + lateness)
        assert (one.state_rows, one.open_windows) == (0, 0)
        one.advance_processing_time(100_000)
        assert one.timers == 0


def test_an_element_that_fires_takes_no_other_part_the_end() -> None:
    second = fw.ProcessingTimeoutTrigger.of(fw.any_of(fw.EventTimeTrigger(), fw.CountTrigger.of(2)), "5 s")
    one = harness(fw.any_of(fw.EventTimeTrigger(), second))
    assert push(one) == []
    assert push(one) == [2]
    assert counts(one.advance_watermark(MINUTE - 1)) == [2]
    assert one.state_rows == 0


def test_a_timeout_that_fired_for_all_takes_no_other_part_the_end() -> None:
    one = harness(fw.all_of(fw.EventTimeTrigger(), IN_5_S))
    push(one)
    assert one.advance_processing_time(5_000) == []
    assert counts(one.advance_watermark(MINUTE - 1)) == [1]
    assert one.state_rows == 0


def test_a_timer_that_is_passed_in_one_step_with_the_end_takes_no_other_part_the_end() -> None:
    in_an_hour = fw.ProcessingTimeoutTrigger.of(fw.ContinuousEventTimeTrigger.of("10 s"), "1 hour")
    spec = EVENT.trigger(fw.after_watermark(early=in_an_hour)).aggregate(n=fw.Count())
    table = pa.table({"k": ["a"], "ts": [45_000]})
    assert spec.run(table).main["n"].to_pylist() == [1, 1]  # at 50 s and at the end
    one = harness(fw.after_watermark(early=in_an_hour))
    push(one, 45_000)
    assert counts(one.advance_watermark(2**62)) == [1, 1]
    assert one.state_rows == 0


ANEW = fw.ProcessingTimeoutTrigger.of(fw.CountTrigger.of(100), "10 s", reset_timer_on_new_record=True)


@pytest.mark.parametrize(
    "trigger", [fw.any_of(EVERY_10_S, ANEW), fw.after_watermark(early=fw.any_of(EVERY_10_S, ANEW))], ids=str
)
def test_a_timeout_that_is_set_anew_takes_no_other_part_its_timer(trigger: fw.Trigger) -> None:
    one = harness(trigger)
    push(one)
    one.advance_processing_time(5_000)
    push(one)  # the timeout moves on from 10 s to 15 s
    assert counts(one.advance_processing_time(10_000)) == [2]
    assert counts(one.advance_processing_time(14_999)) == []
    assert counts(one.advance_processing_time(20_000)) == [2, 2]


class TakesBack(fw.Trigger):
    """Takes back with each element a timer that it never had."""

    def on_element(self, element, timestamp, window, ctx):
        ctx.delete_processing_time_timer(10_000)
        return fw.TriggerResult.CONTINUE


def test_a_trigger_in_python_takes_no_other_part_its_timer() -> None:
    one = harness(fw.any_of(EVERY_10_S, TakesBack()))
    push(one)
    assert counts(one.advance_processing_time(10_000)) == [1]


def test_an_early_part_that_is_over_takes_no_other_part_its_timer() -> None:
    """With the first element of a window that is late."""
    late = fw.after_watermark(early=AT_THE_END, late=fw.CountTrigger.of(2))
    one = harness(fw.any_of(AT_THE_END, late), lateness=7)
    one.advance_watermark(MINUTE)
    push(one)
    assert counts(one.advance_processing_time(MINUTE)) == [1]


def test_a_late_part_that_a_merge_ends_takes_no_other_part_its_timer() -> None:
    sessions = fw.key_by("k").event_time("ts").window(fw.EventTimeSessionWindows.with_gap(MINUTE))
    spec = sessions.trigger(fw.any_of(EVERY_10_S, fw.after_watermark(late=EVERY_10_S))).allowed_lateness(MINUTE)
    one = WindowHarness(spec.aggregate(n=fw.Count()))
    one.push({"k": "a", "ts": 0})
    one.advance_watermark(MINUTE)
    one.push({"k": "a", "ts": 1})
    one.push({"k": "a", "ts": MINUTE // 2})  # now the session ends behind the watermark again
    assert counts(one.advance_processing_time(10_000)) == [3]


def test_a_part_does_not_fire_at_the_end_by_the_clock_of_another() -> None:
    second = fw.ProcessingTimeoutTrigger.of(fw.ContinuousProcessingTimeTrigger.of("20 s"), "20 s")
    one = harness(fw.all_of(second, EVERY_10_S))
    push(one)
    assert counts(one.advance_processing_time(MINUTE)) == [1]


def test_sessions_go_by_the_watermark_without_an_early_part() -> None:
    sessions = fw.key_by("k").event_time("ts").window(fw.EventTimeSessionWindows.with_gap(MINUTE))
    one = WindowHarness(sessions.trigger(fw.after_watermark()).allowed_lateness(MINUTE).aggregate(n=fw.Count()))
    push(one)
    push(one, MINUTE // 2)
    assert counts(one.advance_watermark(2 * MINUTE)) == [2]
    assert push(one, MINUTE) == [3]
    with pytest.raises(fw.SpecError, match="cannot merge"):
        sessions.trigger(fw.after_watermark(early=fw.NeverTrigger()))
