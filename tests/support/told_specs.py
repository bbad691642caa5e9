"""Specs of many kinds by name: what they say of themselves, and their fingerprints, are part of stored state."""

import functools
from enum import Enum
from typing import Any

import pyarrow as pa

import fastwin as fw

HOUR = fw.TumblingEventTimeWindows.of("1 hour")
BASE = fw.key_by("k").event_time("t")


def larger(a: Any, b: Any) -> Any:
    return a if a.v >= b.v else b


def distance(a: Any, b: Any) -> float:
    return abs(a.v - b.v)


def scaled(factor: int, a: Any, b: Any) -> Any:
    return a._replace(v=factor * (a.v + b.v))


def gap_of(element: Any) -> int:
    return 1_000 * element.v


class Mood(Enum):
    GLAD = 1


class Average(fw.AggregateFunction):
    version = 3

    def __init__(self, column: str, mood: Mood = Mood.GLAD) -> None:
        self.column, self.mood = column, mood

    def create_accumulator(self) -> Any:
        return (0, 0)

    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator[0] + value[self.column], accumulator[1] + 1

    def get_result(self, accumulator: Any) -> Any:
        return accumulator[0] / accumulator[1]

    def merge(self, a: Any, b: Any) -> Any:
        return a[0] + b[0], a[1] + b[1]


class Larger(fw.ReduceFunction):
    def reduce(self, a: Any, b: Any) -> Any:
        return larger(a, b)


class Tell(fw.ProcessWindowFunction):
    def __init__(self, **told: Any) -> None:
        self.told = told

    def process(self, key: Any, context: Any, elements: Any) -> Any:
        yield (len(list(elements)),)


class Total(fw.NumpyAggregate):
    version = "b"
    state = {"total": "float64"}  # noqa: RUF012
    output = pa.float64()

    def lift(self, x: Any) -> Any:
        return (x,)

    def combine(self, a: Any, b: Any) -> Any:
        return (a[0] + b[0],)

    def lower(self, state: Any) -> Any:
        return state[0]


class EveryOther(fw.Trigger):
    def __init__(self) -> None:
        self.seen = fw.ReducingStateDescriptor("seen", max)


class Halves(fw.WindowAssigner):
    def assign_windows(self, element: Any, timestamp: int, context: Any) -> Any:
        return [fw.TimeWindow(timestamp, timestamp + 2)]


SPECS = {
    "count": BASE.window(HOUR).aggregate(n=fw.Count()),
    "no key": fw.key_by().event_time("t").window(HOUR).aggregate(n=fw.Count("v")),
    "aggregates": BASE.window(fw.SlidingEventTimeWindows.of("1 day", "3 min", "-1 min")).aggregate(
        n=fw.Count(), s=fw.Sum("v", on_overflow="null"), lo=fw.Min("v"), hi=fw.Max("v"), m=fw.Mean("v"),
        var=fw.Variance("v"), dev=fw.StdDev("v", ddof=0), a=fw.First("v"), z=fw.Last("v"),
        least=fw.ArgMin("v", "w"), most=fw.ArgMax("v", by="w"),
        uv=fw.HyperLogLog("u"), sketch=fw.HyperLogLog("u", output="sketch"),
    ),
    "lateness and outputs": BASE.window(fw.CumulativeEventTimeWindows.of("1 day", "1 hour"))
    .allowed_lateness("90 s", coalesce=True).side_output_late_data().bad_rows("drop").aggregate(m=fw.Mean("v")),
    "session": fw.key_by("a", "b").event_time("t").window(fw.EventTimeSessionWindows.with_gap("30 min")).aggregate(n=fw.Count()),
    "gap of a column": BASE.window(fw.EventTimeSessionWindows.with_dynamic_gap("gap")).aggregate(n=fw.Count()),
    "gap of a function": BASE.window(fw.EventTimeSessionWindows.with_dynamic_gap(gap_of)).aggregate(n=fw.Count()),
    "arrival": fw.key_by("k").processing_time().window(fw.TumblingProcessingTimeWindows.of("5 s")).aggregate(n=fw.Count()),
    "arrival, sliding": fw.key_by("k").processing_time().window(fw.SlidingProcessingTimeWindows.of("5 s", "1 s")).aggregate(n=fw.Count()),
    "global": BASE.window(fw.GlobalWindows.create()).trigger(fw.CountTrigger.of(5)).aggregate(n=fw.Count()),
    "count window": BASE.count_window(5).aggregate(s=fw.Sum("v")),
    "sliding count window": BASE.count_window(5, 2).aggregate(s=fw.Sum("v")),
    "delta": BASE.window(fw.GlobalWindows.create()).trigger(fw.DeltaTrigger.of(2.5, distance))
    .evictor(fw.DeltaEvictor.of(2, distance, do_evict_after=True)).aggregate(n=fw.Count()),
    "evictor": BASE.window(HOUR).evictor(fw.TimeEvictor.of("1 min")).aggregate(n=fw.Count()),
    "combined triggers": BASE.window(HOUR).trigger(
        fw.after_watermark(early=fw.ContinuousEventTimeTrigger.of("1 min"), late=fw.CountTrigger.of(1))
    ).aggregate(n=fw.Count()),
    "any of": BASE.window(HOUR).trigger(fw.any_of(fw.EventTimeTrigger(), fw.PurgingTrigger.of(fw.CountTrigger.of(9))))
    .with_pane_info().aggregate(n=fw.Count()),
    "timeout": BASE.window(HOUR).trigger(fw.ProcessingTimeoutTrigger.of(fw.CountTrigger.of(3), "10 s")).aggregate(n=fw.Count()),
    "user aggregate": BASE.window(HOUR).aggregate(Average("v"), output="mean double"),
    "aggregates of both kinds": BASE.window(HOUR).allowed_lateness(1_500)
    .aggregate(n=fw.Count(), mean=Average("v"), total=Total("v"), output="mean double"),
    "aggregate then": BASE.window(HOUR).side_output("odd", "k string, n bigint")
    .aggregate(Average("v"), n=fw.Count(), then=Tell(limit=5, names=["a"]), output="n bigint"),
    "reduce": BASE.window(HOUR).reduce(larger),
    "reduce of a class": BASE.window(HOUR).reduce(Larger(), output="t bigint, v bigint"),
    "reduce of a partial": BASE.window(HOUR).reduce(functools.partial(scaled, 2)),
    "reduce then": BASE.window(HOUR).reduce(larger, then=Tell(), output="n bigint"),
    "process": BASE.window(HOUR).side_output("a", pa.schema([("x", pa.list_(pa.int32()))])).side_output("b", "y date")
    .process(Tell(mood=Mood.GLAD, share={"x": 0.5, "y": None}, kinds={"b", "a"}, by=larger, ms=b"1"), output="n bigint"),
    "user trigger": BASE.window(HOUR).trigger(EveryOther()).aggregate(n=fw.Count()),
    "user assigner": BASE.window(Halves()).aggregate(n=fw.Count()),
    "panes": BASE.window(fw.SlidingEventTimeWindows.of("1 day", "1 hour")).aggregate(m=fw.Mean("v"), uv=fw.HyperLogLog("u")).panes("30 min"),
}  # fmt: skip
