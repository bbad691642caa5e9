"""What the general operator refuses, and how it says so."""

from typing import Any

import pytest

import fastwin as fw
from fastwin.testing import WindowHarness
from tests.support.user_errors import BASE, COUNT, ROWS, RUNNING, SESSIONS, TUMBLING, Answers, Last, Plain

BUILDING = [
    (lambda: SESSIONS.trigger(fw.DeltaTrigger.of(1, lambda a, b: 0)), "DeltaTrigger cannot merge"),
    (lambda: SESSIONS.trigger(fw.PurgingTrigger.of(fw.NeverTrigger())), "PurgingTrigger cannot merge"),
    (lambda: SESSIONS.trigger(fw.any_of(fw.CountTrigger.of(1), Answers(None))), "AnyOf cannot merge"),
    (lambda: SESSIONS.aggregate(Last(), output="v bigint"), "Last has no merge(a, b)"),
    (lambda: TUMBLING.aggregate(Last()), "Last needs output="),
    (lambda: TUMBLING.aggregate(x=Last(), output="y bigint"), "must name the type of 'x'"),
    (lambda: TUMBLING.aggregate(n=fw.Count(), output="y bigint"), "which nothing fills"),
    (lambda: TUMBLING.aggregate(Last(), output="k bigint"), "'k' is taken"),
    (lambda: TUMBLING.process(Last(), output="v bigint"), "must be a ProcessWindowFunction"),
    (lambda: TUMBLING.process(Plain, output="v bigint"), "must be a ProcessWindowFunction"),
    (lambda: TUMBLING.process(Plain(), output="v bigintt"), "unknown type 'bigintt'"),
    (lambda: TUMBLING.process(Plain(), output=""), "the schema is empty"),
    (lambda: TUMBLING.reduce(3), "a callable of two values"),
    (lambda: TUMBLING.trigger(fw.EventTimeTrigger), "must be a trigger such as"),
    (lambda: TUMBLING.evictor(3), "must be an evictor such as"),
    (lambda: TUMBLING.side_output("a b", "v bigint"), "tag must be a name"),
    (lambda: TUMBLING.side_output("a", "v int").side_output("a", "v int"), "given twice"),
    (lambda: fw.key_by("k").processing_time().window(fw.TumblingEventTimeWindows.of(1)), "needs .event_time"),
    (lambda: fw.key_by("k").count_window(0), "size must be an int of at least 1"),
    (lambda: fw.CountTrigger.of(-1), "at least 0, got -1"),
    (lambda: fw.ContinuousEventTimeTrigger.of(0), "at least 1 ms"),
    (lambda: fw.any_of(), "at least one trigger"),
    (lambda: fw.after_watermark(early=3), "early must be a trigger"),
    (lambda: fw.ReducingStateDescriptor("x"), "a callable of two values"),
    (lambda: fw.ValueStateDescriptor(""), "name must be text"),
    (lambda: fw.CumulativeEventTimeWindows.of(10, 3), "multiple of step"),
    (lambda: fw.SlidingEventTimeWindows.of(10_001, 1).assign_windows(None, 0, None) and BASE.window(
        fw.SlidingEventTimeWindows.of(10_001, 1)).trigger(fw.CountTrigger.of(1)).aggregate(n=fw.Count()).run(ROWS),
     "would have 10001 windows"),
]  # fmt: skip


@pytest.mark.parametrize(("build", "says"), BUILDING)
def test_refused_when_built(build: Any, says: str) -> None:
    with pytest.raises(fw.SpecError) as caught:
        build()
    assert says in str(caught.value)


@pytest.mark.parametrize(("spec", "names", "says"), RUNNING[:-1])
def test_errors_in_user_code_name_key_window_and_function(spec: fw.WindowSpec, names: str, says: str) -> None:
    with pytest.raises(fw.UserFunctionError) as caught:
        spec.run(ROWS)
    assert names in str(caught.value)
    assert says in str(caught.value)
    assert "key 'a'" in str(caught.value)


def test_a_stream_that_failed_refuses_until_restored() -> None:
    stream = TUMBLING.trigger(Answers(None)).aggregate(**COUNT).open(schema=ROWS.schema)
    saved = stream.snapshot()
    with pytest.raises(fw.UserFunctionError):
        stream.process(ROWS)
    with pytest.raises(fw.StateError, match="failed in the middle"):
        stream.advance_watermark(5)
    stream.restore(saved)
    stream.advance_watermark(5)


def test_event_time_trigger_on_global_windows_fails_at_the_first_element() -> None:
    harness = WindowHarness(BASE.window(fw.GlobalWindows.create()).trigger(fw.EventTimeTrigger()).aggregate(**COUNT))
    harness.advance_watermark(5)
    with pytest.raises(fw.SpecError, match="global window has no end"):
        harness.push({"k": "a", "ts": 1})
