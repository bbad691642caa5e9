"""What the general operator refuses, and how it says so."""

from typing import Any

import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.testing import WindowHarness

BASE = fw.key_by("k").event_time("ts")
TUMBLING = BASE.window(fw.TumblingEventTimeWindows.of(10))
SESSIONS = BASE.window(fw.EventTimeSessionWindows.with_gap(10))
ROWS = pa.table({"k": ["a", "b"], "ts": [1, 2], "v": [1, 2]})


class Last(fw.AggregateFunction):
    def create_accumulator(self):
        return None

    def add(self, value, accumulator):
        return value.v

    def get_result(self, accumulator):
        return accumulator


class Merging(Last):
    def merge(self, a, b):
        return b


class Plain(fw.ProcessWindowFunction):
    def process(self, key, context, elements):
        yield (len(list(elements)),)


class Answers(fw.Trigger):
    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def on_element(self, element, timestamp, window, ctx):
        return self.answer


class Timing(fw.Trigger):
    def on_element(self, element, timestamp, window, ctx):
        ctx.register_event_time_timer(2**63)
        return fw.TriggerResult.CONTINUE


class Assigns(fw.WindowAssigner):
    def __init__(self, *windows: Any) -> None:
        self.windows = windows

    def assign_windows(self, element, timestamp, context):
        return self.windows


class Many(fw.WindowAssigner):
    def assign_windows(self, element, timestamp, context):
        return (fw.TimeWindow(i, i + 1) for i in range(10_001))


class OwnWindow:
    start, end = 0, 10


class Failing(fw.ProcessWindowFunction):
    def process(self, key, context, elements):
        yield (1,)
        raise ZeroDivisionError("oops")


class PerWindow(fw.ProcessWindowFunction):
    def process(self, key, context, elements):
        context.window_state()
        yield (1,)


class Outputs(fw.ProcessWindowFunction):
    def __init__(self, *rows: Any) -> None:
        self.rows = rows

    def process(self, key, context, elements):
        yield from self.rows


class FailingAdd(Merging):
    def add(self, value, accumulator):
        return value.no_such_column


class WrongEvictor(fw.Evictor):
    def evict_before(self, elements, size, window, ctx):
        return [size]


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


COUNT = {"n": fw.Count()}
RUNNING = [
    (TUMBLING.trigger(Answers(None)).aggregate(**COUNT), "Answers.on_element", "must return a TriggerResult"),
    (TUMBLING.trigger(Answers(True)).aggregate(**COUNT), "Answers.on_element", "returned True"),
    (TUMBLING.trigger(Timing()).aggregate(**COUNT), "Timing.on_element", "must fit in int64"),
    (BASE.window(Many()).aggregate(**COUNT), "Many.assign_windows", "more than 10000 windows"),
    (BASE.window(Assigns(fw.TimeWindow(5, 5))).aggregate(**COUNT), "Assigns.assign_windows", "end must be above start"),
    (BASE.window(Assigns(OwnWindow())).aggregate(**COUNT), "Assigns.assign_windows", "not of a type of their own"),
    (BASE.window(Assigns(fw.TimeWindow(0, 2**63))).aggregate(**COUNT), "Assigns.assign_windows", "int64"),
    (TUMBLING.process(Failing(), output="n int"), "Failing.process", "ZeroDivisionError: oops"),
    (SESSIONS.process(PerWindow(), output="n int"), "PerWindow.process", "no per-window state with merging"),
    (TUMBLING.process(Outputs((1, 2)), output="n int"), "Outputs.process", ""),
    (TUMBLING.process(Outputs((1,)), output="n int, m int"), "Outputs.process", "must give a tuple or dict with n, m"),
    (TUMBLING.process(Outputs({"x": 1}), output="n int, m int"), "Outputs.process", "has no n, m"),
    (SESSIONS.aggregate(FailingAdd(), output="n int"), "FailingAdd.add", "no column 'no_such_column'"),
    (TUMBLING.evictor(WrongEvictor()).aggregate(**COUNT), "WrongEvictor.evict_before", "must return indices"),
    (TUMBLING.reduce(lambda a, b: 3), None, None),
]


@pytest.mark.parametrize(("spec", "names", "says"), RUNNING[:-1])
def test_errors_in_user_code_name_key_window_and_function(spec: fw.WindowSpec, names: str, says: str) -> None:
    with pytest.raises(fw.FastwinError) as caught:
        spec.run(ROWS)
    if says:
        assert isinstance(caught.value, fw.UserFunctionError)
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
