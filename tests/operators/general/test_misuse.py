"""What users do by mistake, or expect and do not find in Flink's documentation: refused with a sentence, or right."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.run.planner import plan
from fastwin.run.stream import open_plan
from fastwin.testing import PendingTimer, WindowHarness

BASE = fw.key_by("k").event_time("ts")
TUMBLING = BASE.window(fw.TumblingEventTimeWindows.of(100))
SESSIONS = BASE.window(fw.EventTimeSessionWindows.with_gap(10))
ROWS = pa.table({"k": ["a", "a", "b"], "ts": [1, 2, 3], "v": [1, 2, 3]})
COUNT = {"n": fw.Count()}


class Each(fw.ProcessWindowFunction):
    """Calls a function with the key's state, and yields what it returns."""

    def __init__(self, function: Any, descriptor: Any) -> None:
        self.function, self.descriptor = function, descriptor

    def process(self, key, context, elements):
        yield (self.function(context.global_state().get_state(self.descriptor)),)


def put_and_change(state: Any) -> int:
    if state.get("list") is None:
        state.put("list", [])
    state.get("list").append(1)
    state.values()[0].append(1)
    state.items()[0][1].append(1)
    return len(state.get("list"))


def add_and_change(state: Any) -> int:
    state.add([])
    state.get()[0].append(1)
    return len(state.get()[0])


def reduce_and_change(state: Any) -> int:
    state.add([])
    state.get().append(1)
    return len(state.get())


@pytest.mark.parametrize(
    ("function", "descriptor"),
    [
        (put_and_change, fw.MapStateDescriptor("m")),
        (add_and_change, fw.ListStateDescriptor("l")),
        (reduce_and_change, fw.ReducingStateDescriptor("r", lambda a, b: a + b)),
    ],
)
def test_what_state_hands_out_is_a_copy(function: Any, descriptor: Any) -> None:
    result = TUMBLING.process(Each(function, descriptor), output="n int").run(ROWS)
    assert result.main["n"].to_pylist() == [0, 0]


class Evicting(fw.Evictor):
    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def evict_before(self, elements, size, window, ctx):
        return self.answer(size)


def test_an_evictor_may_return_numpy_indices_but_no_mask() -> None:
    assert TUMBLING.evictor(Evicting(lambda n: np.arange(n - 1))).aggregate(**COUNT).run(ROWS).main[
        "n"
    ].to_pylist() == [
        1,
        1,
    ]
    for mask in (lambda n: [False] * n, lambda n: np.zeros(n, dtype=bool)):
        with pytest.raises(fw.UserFunctionError, match=r"must return indices of the 2 elements, returned .*False"):
            TUMBLING.evictor(Evicting(mask)).aggregate(**COUNT).run(ROWS)


class Yields(fw.ProcessWindowFunction):
    def __init__(self, *rows: Any) -> None:
        self.rows = rows

    def process(self, key, context, elements):
        yield from self.rows


class Returns(Yields):
    def process(self, key, context, elements):
        return self.rows[0]


class AtHalf(fw.Trigger):
    def on_element(self, element, timestamp, window, ctx):
        ctx.register_event_time_timer(window.end - 0.5)
        return fw.TriggerResult.CONTINUE


class Assigning(fw.WindowAssigner):
    def __init__(self, answer: Any, trigger: Any = None) -> None:
        self.answer, self.trigger = answer, trigger

    def assign_windows(self, element, timestamp, context):
        return self.answer

    def get_default_trigger(self):
        return self.trigger


class MergingAssigner(Assigning, fw.MergingWindowAssigner):
    pass


class TwoKinds(fw.ProcessWindowFunction):
    def process(self, key, context, elements):
        context.global_state().get_state(fw.ValueStateDescriptor("c")).update(1)
        context.global_state().get_state(fw.ListStateDescriptor("c")).add(1)
        yield (1,)


EVENT = fw.EventTimeTrigger()
RUNNING = [
    (TUMBLING.process(Yields((1.5,)), output="n int"), "column 'n' is int32: Float value 1.500000 was truncated"),
    (TUMBLING.process(Yields(("x",)), output="n int"), "column 'n' is int32"),
    (
        TUMBLING.process(Returns((2, 5)), output="n int"),
        r"must yield rows, or return a list of them, returned \(2, 5\)",
    ),
    (TUMBLING.process(TwoKinds(), output="n int"), "state 'c': is named by ValueStateDescriptor"),
    (TUMBLING.trigger(AtHalf()).aggregate(**COUNT), "must be an int of milliseconds, got 99.5"),
    (
        BASE.window(Assigning(fw.TimeWindow(0, 5), EVENT)).aggregate(**COUNT),
        "must return a list of windows, returned Ti",
    ),
    (BASE.window(Assigning(None, EVENT)).aggregate(**COUNT), "must return a list of windows, returned None"),
    (BASE.window(Assigning([fw.TimeWindow(0, 5.5)], EVENT)).aggregate(**COUNT), "no int64 milliseconds"),
    (TUMBLING.reduce(lambda a, b: {"v": "x"}, output="v int"), "<lambda>"),
]


@pytest.mark.parametrize(("spec", "says"), RUNNING)
def test_refused_while_running_with_key_and_place(spec: fw.WindowSpec, says: str) -> None:
    with pytest.raises(fw.UserFunctionError, match=says) as caught:
        spec.run(ROWS)
    assert "key 'a'" in str(caught.value)


BUILDING = [
    (lambda: fw.CountTrigger(-5), "at least 0, got -5"),
    (lambda: fw.CountTrigger.of(2**70), "below 2\\*\\*63"),
    (lambda: fw.ContinuousEventTimeTrigger(0), "at least 1 ms, got 0"),
    (lambda: fw.ContinuousProcessingTimeTrigger("1 min"), "at least 1 ms, got '1 min'"),
    (lambda: fw.PurgingTrigger(None), "trigger must be a trigger, got None"),
    (lambda: fw.ProcessingTimeoutTrigger(EVENT, 0), "at least 1 ms, got 0"),
    (
        lambda: fw.ProcessingTimeoutTrigger.of(EVENT, "5 s", reset_timer_on_new_record="false"),
        "ProcessingTimeoutTrigger: reset_timer_on_new_record must be True or False, got 'false'",
    ),
    (
        lambda: fw.ProcessingTimeoutTrigger.of(EVENT, "5 s", should_clear_on_timeout=0),
        "ProcessingTimeoutTrigger: should_clear_on_timeout must be True or False, got 0",
    ),
    (lambda: fw.CountEvictor("x"), "max_count must be an int"),
    (lambda: fw.CountEvictor.of(1, 5), "do_evict_after must be True or False, got 5"),
    (lambda: fw.TimeEvictor.of(-5), "at least 0 ms, got -5"),
    (lambda: fw.DeltaTrigger.of(float("nan"), lambda a, b: 0), "threshold must be a number, got nan"),
    (lambda: BASE.window(Assigning([], None)).aggregate(**COUNT), "must return a trigger, returned None"),
    (
        lambda: BASE.window(MergingAssigner([], fw.DeltaTrigger.of(1, lambda a, b: 0))).aggregate(**COUNT),
        "DeltaTrigger cannot merge",
    ),
    (lambda: TUMBLING.reduce(max, then=Yields()), "needs output="),
    (lambda: BASE.window(fw.GlobalWindows.create()).trigger(EVENT).count_window(3), "brings its own trigger"),
    (
        lambda: plan(
            BASE.window(fw.SlidingEventTimeWindows.of(10_001, 1)).trigger(fw.CountTrigger.of(1)).aggregate(**COUNT),
            ROWS.schema,
        ),
        "would have 10001 windows",
    ),
]


@pytest.mark.parametrize(("build", "says"), BUILDING)
def test_refused_when_built(build: Any, says: str) -> None:
    with pytest.raises(fw.SpecError, match=says):
        build()


def test_reduce_then_a_function() -> None:
    class Label(fw.ProcessWindowFunction):
        def process(self, key, context, elements):
            (total,) = elements
            yield (f"{key}: {total.v}", context.window.end)

    spec = TUMBLING.reduce(lambda a, b: a._replace(v=a.v + b.v), then=Label(), output="text string, at bigint")
    assert "then=" in str(spec)
    assert sorted(spec.run(ROWS).main["text"].to_pylist()) == ["a: 3", "b: 3"]


@pytest.mark.parametrize("policy", ["drop", "divert"])
@pytest.mark.parametrize("time", [2**62, -(2**63)])
def test_bad_rows_do_not_depend_on_the_operator(policy: Any, time: int) -> None:
    rows = pa.table({"k": ["a", "a"], "ts": [1, time]})
    spec = TUMBLING.bad_rows(policy).aggregate(**COUNT)
    for asked in (spec, spec.with_pane_info()):
        result = asked.run(rows)
        assert result.main["n"].to_pylist() == [1]
        assert result.bad.num_rows == (policy == "divert")


def test_pane_info_goes_by_the_clock_of_the_window() -> None:
    late = fw.after_watermark(late=fw.ContinuousProcessingTimeTrigger.of(10))
    harness = WindowHarness(TUMBLING.trigger(late).allowed_lateness(1000).with_pane_info().aggregate(**COUNT))
    harness.push({"k": "a", "ts": 1})
    (on_time,) = harness.advance_watermark(99)
    assert on_time.value["pane_timing"] == "ON_TIME"
    harness.push({"k": "a", "ts": 2})
    (corrected,) = harness.advance_processing_time(10)
    assert (corrected.value["pane_timing"], corrected.value["pane_is_last"]) == ("LATE", False)
    spec = TUMBLING.trigger(fw.ContinuousProcessingTimeTrigger.of(99)).with_pane_info().aggregate(**COUNT)
    harness = WindowHarness(spec)
    harness.push({"k": "a", "ts": 1})
    (early,) = harness.advance_processing_time(99)
    assert (early.value["pane_timing"], early.value["pane_is_last"]) == ("EARLY", False)


def test_value_state_is_never_merged() -> None:
    class Merging(fw.Trigger):
        state = fw.ValueStateDescriptor("s")

        def on_element(self, element, timestamp, window, ctx):
            if timestamp == 0:
                ctx.get_partitioned_state(self.state).update(1)
            return fw.TriggerResult.CONTINUE

        def can_merge(self):
            return True

        def on_merge(self, window, ctx):
            ctx.merge_partitioned_state(self.state)

    harness = WindowHarness(SESSIONS.trigger(Merging()).aggregate(**COUNT))
    harness.push({"k": "a", "ts": 0})
    with pytest.raises(fw.UserFunctionError, match="ValueState cannot be merged"):
        harness.push({"k": "a", "ts": 5})


def test_a_spec_without_python_unpickles_nothing() -> None:
    from fastwin.state import userobjects

    bound = plan(TUMBLING.trigger(fw.CountTrigger.of(2)).aggregate(**COUNT), ROWS.schema)
    stream = open_plan(bound)
    stream.process(ROWS)
    operator: Any = stream._operator
    operator.state.fit_all()
    operator.state.windows[0] = {"trigger0:x": 1}
    chunk = stream.snapshot()
    assert userobjects.dumps({}, operator.program.classes)
    with pytest.raises(fw.StateError, match="nothing of the spec is written in Python"):
        open_plan(bound).restore(chunk)


def test_a_function_that_counts_in_itself_still_reads_its_state() -> None:
    class Counting(fw.ProcessWindowFunction):
        def __init__(self):
            self.calls = 0

        def process(self, key, context, elements):
            self.calls += 1
            yield (len(list(elements)),)

    spec = TUMBLING.process(Counting(), output="n int")
    stream = spec.open()
    stream.process(ROWS)
    stream.advance_watermark(200)
    chunk = stream.snapshot()
    spec.open().restore(chunk)


def test_state_that_cannot_be_pickled_is_named() -> None:
    class Generators(fw.AggregateFunction):
        def create_accumulator(self):
            return (i for i in range(3))

        def add(self, value, accumulator):
            return accumulator

        def get_result(self, accumulator):
            return 1

    stream = TUMBLING.aggregate(Generators(), output="n int").open()
    stream.process(ROWS.slice(2))
    with pytest.raises(fw.StateError, match=r"key 'b', TimeWindow.* cannot be pickled"):
        stream.snapshot()


def test_the_harness_lays_timers_and_state_open() -> None:
    class Noting(fw.Trigger):
        note = fw.ValueStateDescriptor("note")

        def on_element(self, element, timestamp, window, ctx):
            ctx.get_partitioned_state(self.note).update("seen")
            ctx.register_processing_time_timer(7)
            return fw.TriggerResult.CONTINUE

    harness = WindowHarness(TUMBLING.trigger(Noting()).aggregate(**COUNT))
    harness.advance_watermark(0)
    assert harness.watermark == 0
    with pytest.raises(fw.StateError, match="needs the schema="):
        harness.restore(TUMBLING.aggregate(**COUNT).open(schema=ROWS.schema).snapshot())
    harness.push({"k": "a", "ts": 1})
    window = fw.TimeWindow(0, 100)
    assert harness.pending_timers() == [PendingTimer("a", window, 7, False), PendingTimer("a", window, 99, True)]
    assert harness.states() == {("a", window): {"trigger0:note": "seen"}}
    for wrong in ({"k": "a"}, {"k": "a", "ts": 1, "x": 2}, {"k": 5, "ts": 1}):
        with pytest.raises(fw.SpecError, match="push:"):
            harness.push(wrong)


def test_the_harness_takes_dicts_alone() -> None:
    """With a schema and without."""
    for schema in (None, ROWS.schema):
        for wrong in (("a", 1), [{"k": "a", "ts": 1}], None):
            with pytest.raises(
                fw.SpecError, match=f"^push: the element must be a dict by column, got {type(wrong).__name__}$"
            ):
                WindowHarness(TUMBLING.aggregate(**COUNT), schema).push(wrong)


@pytest.mark.parametrize(
    "wrong", [fw.window_join(BASE, BASE, fw.TumblingEventTimeWindows.of(10)), 3], ids=["join", "int"]
)
def test_what_is_no_spec_of_windows_is_told(wrong: Any) -> None:
    for call in (lambda: WindowHarness(wrong), lambda: plan(wrong, ROWS.schema)):
        with pytest.raises(fw.SpecError, match=f"^spec: must be a WindowSpec .*, got {type(wrong).__name__}$"):
            call()


def test_a_forced_operator_says_so() -> None:
    assert (
        "operator: general, because it was asked for"
        in plan(TUMBLING.aggregate(**COUNT), ROWS.schema, general=True).explain()
    )
