"""User code that goes wrong in every way, and what the errors must say."""

from typing import Any

import pyarrow as pa

import fastwin as fw

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
    (
        TUMBLING.process(Outputs((1, 2)), output="n int"),
        "Outputs.process",
        "column 'n' is int32: Could not convert (1, 2)",
    ),
    (TUMBLING.process(Outputs((1,)), output="n int, m int"), "Outputs.process", "must give a tuple or dict with n, m"),
    (TUMBLING.process(Outputs({"x": 1}), output="n int, m int"), "Outputs.process", "has no n, m"),
    (SESSIONS.aggregate(FailingAdd(), output="n int"), "FailingAdd.add", "no column 'no_such_column'"),
    (TUMBLING.evictor(WrongEvictor()).aggregate(**COUNT), "WrongEvictor.evict_before", "must return indices"),
    (TUMBLING.reduce(lambda a, b: 3), None, None),
]
