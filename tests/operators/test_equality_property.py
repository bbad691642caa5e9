"""The aligned and session operators answer as the general one does; it answers alike however it is fed and restored."""

from typing import Any

import pyarrow.compute as pc
from hypothesis import given
from hypothesis import strategies as st

import fastwin as fw
from fastwin.run.planner import plan
from fastwin.triggers import AfterWatermark, AllOf, AnyOf
from tests.support.steps import SCHEMA, run_steps, steps_with

AGGREGATES = {"n": fw.Count(), "s": fw.Sum("v"), "lo": fw.Min("v"), "hi": fw.Max("v"), "m": fw.Mean("v")}
AGGREGATES |= {"p": fw.Count(where=pc.field("v") > 0), "d": fw.Sum(pc.field("v") * 2, where=pc.field("v") != 1)}


class Stats(fw.AggregateFunction):
    """Count and sum in Python."""

    def create_accumulator(self):
        return (0, 0)

    def add(self, value, accumulator):
        return (accumulator[0] + 1, accumulator[1] + value.v)

    def get_result(self, accumulator):
        return accumulator

    def merge(self, a, b):
        return (a[0] + b[0], a[1] + b[1])


times = st.integers(-60, 120)
elements = st.lists(st.tuples(st.sampled_from("abc"), times, st.integers(-5, 5)), min_size=1, max_size=12)


steps = steps_with(elements)
aligned = st.one_of(
    st.builds(
        lambda size, offset: fw.TumblingEventTimeWindows.of(size, offset % size), st.integers(1, 40), st.integers(0, 40)
    ),
    st.builds(
        lambda size, slide, offset: fw.SlidingEventTimeWindows.of(size, slide, offset % slide),
        st.integers(1, 40), st.integers(1, 40), st.integers(0, 40),
    ),
)  # fmt: skip
sessions = st.builds(fw.EventTimeSessionWindows.with_gap, st.integers(1, 30))
lateness = st.sampled_from([0, 1, 10, 50])


nulls = st.lists(
    st.tuples(st.sampled_from(["a", "b", None]), times, st.none() | st.integers(-5, 5)), min_size=1, max_size=12
)
cumulative = st.builds(
    lambda step, steps, offset: fw.CumulativeEventTimeWindows.of(step * steps, step, offset % step),
    st.integers(1, 12), st.integers(1, 5), st.integers(0, 12),
)  # fmt: skip


@given(
    assigner=st.one_of(aligned, sessions, cumulative),
    lateness=lateness,
    steps=steps_with(nulls),
    coalesce=st.booleans(),
)
def test_aligned_and_session_equal_general(assigner: Any, lateness: int, steps: Any, coalesce: bool) -> None:
    spec = fw.key_by("k").event_time("ts").window(assigner).allowed_lateness(lateness).side_output_late_data()
    spec = spec.aggregate(**AGGREGATES)
    assert plan(spec, SCHEMA).operator != "general"
    expected = run_steps(spec, steps, general=True, coalesce=coalesce)
    assert run_steps(spec, steps, general=False, coalesce=coalesce) == expected
    if not coalesce:
        assert run_steps(spec, steps, general=True, one_by_one=True) == expected


triggers = st.deferred(
    lambda: st.one_of(
        st.builds(fw.CountTrigger.of, st.integers(1, 4)),
        st.builds(fw.ContinuousEventTimeTrigger.of, st.integers(1, 30)),
        st.just(fw.EventTimeTrigger()),
        st.builds(fw.PurgingTrigger.of, triggers),
        st.builds(fw.any_of, triggers, triggers),
        st.builds(fw.all_of, triggers, triggers),
        st.builds(lambda early, late: fw.after_watermark(early=early, late=late), triggers, triggers),
    )
)
evictors = st.one_of(
    st.none(),
    st.builds(fw.CountEvictor.of, st.integers(0, 4), st.booleans()),
    st.builds(fw.TimeEvictor.of, st.integers(1, 40), st.booleans()),
)


@given(
    assigner=st.one_of(aligned, sessions), lateness=lateness, trigger=triggers, evictor=evictors,
    python=st.booleans(), pane_info=st.booleans(), steps=steps,
)  # fmt: skip
def test_general_is_the_same_however_fed_and_restored(
    assigner: Any, lateness: int, trigger: Any, evictor: Any, python: bool, pane_info: bool, steps: Any
) -> None:
    spec = fw.key_by("k").event_time("ts").window(assigner).trigger(trigger).allowed_lateness(lateness)
    spec = spec.side_output_late_data()
    if evictor is not None:
        spec = spec.evictor(evictor)
    if pane_info:
        spec = spec.with_pane_info()
    spec = spec.aggregate(Stats(), output="n bigint, s bigint") if python else spec.aggregate(**AGGREGATES)
    without_saves = [step for step in steps if step[0] != "save"]
    assert run_steps(spec, steps, general=True) == run_steps(spec, without_saves, general=True, one_by_one=True)


def user_written(trigger: fw.Trigger) -> fw.Trigger:
    """The same trigger, run in Python: only the built-in class itself is run at C level."""
    kind = type(trigger)
    twin = type(f"User{kind.__name__}", (kind,), {})
    if isinstance(trigger, fw.PurgingTrigger):
        return twin(user_written(trigger.trigger))
    if isinstance(trigger, AnyOf | AllOf):
        return twin(tuple(map(user_written, trigger.triggers)))
    if isinstance(trigger, AfterWatermark):
        return twin(user_written(trigger.early), None if trigger.late is None else user_written(trigger.late))
    return twin(**{name: getattr(trigger, name) for name in kind.__dataclass_fields__})


plain_triggers = st.deferred(
    lambda: st.one_of(
        st.builds(fw.CountTrigger.of, st.integers(1, 4)),
        st.builds(fw.ContinuousEventTimeTrigger.of, st.integers(1, 30)),
        st.just(fw.EventTimeTrigger()),
        st.builds(fw.PurgingTrigger.of, plain_triggers),
        st.builds(fw.any_of, plain_triggers, plain_triggers),
        st.builds(fw.all_of, plain_triggers, plain_triggers),
        st.builds(
            lambda early, late: fw.after_watermark(early=early, late=late),
            plain_triggers,
            st.none() | plain_triggers,
        ),
    )
)


@given(assigner=st.one_of(aligned, sessions), lateness=lateness, trigger=plain_triggers, steps=steps)
def test_built_in_triggers_mean_the_same_at_both_levels(assigner: Any, lateness: int, trigger: Any, steps: Any) -> None:
    def spec(trigger: fw.Trigger) -> fw.WindowSpec:
        spec = fw.key_by("k").event_time("ts").window(assigner).trigger(trigger).allowed_lateness(lateness)
        return spec.side_output_late_data().aggregate(**AGGREGATES)

    assert run_steps(spec(trigger), steps, general=True) == run_steps(spec(user_written(trigger)), steps, general=True)
