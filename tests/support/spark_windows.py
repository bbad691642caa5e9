"""Windows with user-written parts, for the tests of the general operator on Spark."""

import dataclasses

import fastwin as fw


@dataclasses.dataclass
class Totals:
    """An accumulator whose ``==`` and ``isinstance`` tell whether it is of the right class."""

    n: int = 0
    total: int = 0

    def with_value(self, value: int | None) -> "Totals":
        return Totals(self.n + 1, self.total + (value or 0))


class SumUp(fw.AggregateFunction):
    def create_accumulator(self):
        return Totals()

    def add(self, value, accumulator):
        assert isinstance(accumulator, Totals), f"another class: {type(accumulator)!r}"
        return accumulator.with_value(value.v)

    def get_result(self, accumulator):
        return accumulator.n, accumulator.total

    def merge(self, a, b):
        return Totals(a.n + b.n, a.total + b.total)


class EveryOther(fw.Trigger):
    """Fires at every second element of a window, and at its end."""

    seen = fw.ValueStateDescriptor("seen")

    def on_element(self, element, timestamp, window, ctx):
        seen = ctx.get_partitioned_state(self.seen)
        seen.update((seen.value() or 0) + 1)
        if window.max_timestamp() > ctx.get_current_watermark():
            ctx.register_event_time_timer(window.max_timestamp())
        return fw.TriggerResult.CONTINUE if seen.value() % 2 else fw.TriggerResult.FIRE

    def on_event_time(self, time, window, ctx):
        return fw.TriggerResult.FIRE if time == window.max_timestamp() else fw.TriggerResult.CONTINUE

    def on_processing_time(self, time, window, ctx):
        return fw.TriggerResult.CONTINUE

    def clear(self, window, ctx):
        ctx.get_partitioned_state(self.seen).clear()


class Numbered(fw.ProcessWindowFunction):
    """Numbers the firings of a key over all its windows, and tells of every third one at the side."""

    count = fw.ValueStateDescriptor("count")

    def process(self, key, context, elements):
        (result,) = elements
        count = context.global_state().get_state(self.count)
        count.update((count.value() or 0) + 1)
        if count.value() % 3 == 0:
            context.output("third", {"key": str(key), "start": context.window.start})
        yield count.value(), *result, [result[0], None]


class Values(fw.ProcessWindowFunction):
    def process(self, key, context, elements):
        yield {"vs": [e.v for e in elements], "key": repr(key)}


class HalfMinutes(fw.WindowAssigner):
    def assign_windows(self, element, timestamp, context):
        start = timestamp - timestamp % 30_000
        return [fw.TimeWindow(start, start + 30_000)]


def gap_of(element):
    return 1_000 + 500 * (abs(element.v or 0) % 5)


TUMBLING = fw.TumblingEventTimeWindows.of("1 minute", "7 s")
BASE = fw.key_by("k").event_time("ts")
SPECS = {
    "user-written, with everything": (
        BASE.window(TUMBLING)
        .trigger(EveryOther())
        .allowed_lateness("30 s", coalesce=False)
        .side_output_late_data()
        .side_output("third", "key string, start bigint")
        .with_pane_info()
        .aggregate(SumUp(), then=Numbered(), output="firing int, n bigint, total bigint, more array<bigint>")
    ),
    "sessions that merge": (
        BASE.window(fw.EventTimeSessionWindows.with_gap("2 s"))
        .trigger(fw.after_watermark(early=fw.CountTrigger.of(2)))
        .side_output_late_data()
        .aggregate(SumUp(), low=fw.Min("x"), output="n bigint, total bigint")
    ),
    "dynamic gaps": (
        BASE.window(fw.EventTimeSessionWindows.with_dynamic_gap(gap_of))
        .evictor(fw.CountEvictor.of(3))
        .allowed_lateness("5 s")
        .aggregate(n=fw.Count(), total=fw.Sum("v"))
    ),
    "an assigner, and elements": BASE.window(HalfMinutes()).process(Values(), output="vs array<bigint>, key string"),
    "reduced": BASE.window(fw.CumulativeEventTimeWindows.of("1 minute", "20 s")).reduce(
        lambda a, b: a._replace(v=(a.v or 0) + (b.v or 0))
    ),
}
COUNTED = {
    "counted": fw.key_by("k").count_window(3).aggregate(n=fw.Count(), total=fw.Sum("v")),
    "counted, the last four": fw.key_by().count_window(4, 2).process(Values(), output="vs array<bigint>, key string"),
}
