"""The general operator: one state for each (key, window), triggers and functions built in and in Python.

The peer is the bare C loop over the same tumbling windows, so the ratio tells what generality costs. Beside functions
in Python stand the bare calls of them, so the other ratio tells what is left to gain.
"""

import pyarrow as pa

import fastwin as fw
from bench import peers
from bench.barecalls import bare_calls
from bench.bench_tables import MINUTE, c_loop
from bench.events import events
from bench.race import Bar, Contender, Entry, Works
from bench.scale import Scale, amount
from fastwin.machine.memory import keep_freed
from fastwin.run import bounded
from fastwin.run.planner import plan

WORKS = Works()
_BUILT_IN = {"n": fw.Count(), "s": fw.Sum("value"), "lo": fw.Min("value"), "hi": fw.Max("value")}


class Stats(fw.AggregateFunction):
    """Count, sum, smallest and largest value, in Python."""

    def create_accumulator(self):
        return [0, 0, None, None]

    def add(self, value, accumulator):
        v = value.value
        accumulator[0] += 1
        accumulator[1] += v
        if accumulator[2] is None or v < accumulator[2]:
            accumulator[2] = v
        if accumulator[3] is None or v > accumulator[3]:
            accumulator[3] = v
        return accumulator

    def get_result(self, accumulator):
        return tuple(accumulator)


class StatsOfMany(Stats):
    """The same, many elements at once."""

    def add(self, value, accumulator):
        return super().add(value, accumulator)

    def add_many(self, values, accumulator):
        column = values.to_list("value")
        smallest, largest = min(column), max(column)
        accumulator[0] += len(column)
        accumulator[1] += sum(column)
        if accumulator[2] is None or smallest < accumulator[2]:
            accumulator[2] = smallest
        if accumulator[3] is None or largest > accumulator[3]:
            accumulator[3] = largest
        return accumulator


class AtTheEnd(fw.Trigger):
    """What EventTimeTrigger does, in Python."""

    def on_element(self, element, timestamp, window, ctx):
        if window.max_timestamp() <= ctx.get_current_watermark():
            return fw.TriggerResult.FIRE
        ctx.register_event_time_timer(window.max_timestamp())
        return fw.TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        return fw.TriggerResult.FIRE if time == window.max_timestamp() else fw.TriggerResult.CONTINUE

    def clear(self, window, ctx):
        ctx.delete_event_time_timer(window.max_timestamp())


class Everything(fw.ProcessWindowFunction):
    """The same results from the elements themselves."""

    def process(self, key, context, elements):
        values = [element.value for element in elements]
        yield len(values), sum(values), min(values), max(values)


class EverythingByColumn(fw.ProcessWindowFunction):
    """The same from their column."""

    def process(self, key, context, elements):
        values = elements.to_list("value")
        yield len(values), sum(values), min(values), max(values)


_TUMBLING = fw.key_by("key").event_time("ts").window(fw.TumblingEventTimeWindows.of(MINUTE))
_OUTPUT = "n bigint, s bigint, lo bigint, hi bigint"


def _general(spec: fw.WindowSpec, table: pa.Table) -> Contender:
    """A table, run as ``spec.run`` does, by the general operator also where another one would be chosen."""
    bound = plan(spec, table.schema, general=True)
    keep_freed()  # holds for the whole process, as it does from the first ``spec.run`` on

    return Contender(
        lambda: bounded.run(spec, table, plan=bound).main,
        answer=peers.canonical(peers.WINDOW_COLUMNS),
        notes=lambda result: {"rows": result.num_rows},
        attempts=3,
    )


def _entry(label: str, spec: fw.WindowSpec, table: pa.Table, rows: int, *functions: object) -> Entry:
    contenders = {"fastwin": _general(spec, table), "C loop": c_loop(table, rows)}
    if functions:
        contenders["bare calls"] = bare_calls(table, MINUTE, *functions)
    return Entry(f"general operator, {label}", len(table), contenders)


def _sized(scale: Scale, share: int) -> tuple[pa.Table, int]:
    table = events(scale.events // share, scale.keys)
    return table, min(len(table), scale.keys * 10)


def _dozens(scale: Scale) -> tuple[pa.Table, int]:
    """Events of so few keys that a window has dozens."""
    keys = max(scale.keys // 32, 1)
    return events(scale.events // 4, keys), keys * 10


@WORKS.add("general-built-in", "event", ("C loop",), Bar.at_most(4, "C loop"))
def built_in(scale: Scale) -> Entry:
    table, rows = _sized(scale, 1)
    label = f"built-in trigger and aggregates, {amount(scale.events)} events, {amount(scale.keys)} keys"
    return _entry(label, _TUMBLING.aggregate(**_BUILT_IN), table, rows)


@WORKS.add("general-combined", "event", ("C loop",), Bar.at_most(10, "C loop"))
def combined(scale: Scale) -> Entry:
    table, rows = _sized(scale, 1)
    trigger = fw.any_of(fw.CountTrigger.of(1_000_000), fw.EventTimeTrigger())
    return _entry("any_of(count, event time)", _TUMBLING.trigger(trigger).aggregate(**_BUILT_IN), table, rows)


@WORKS.add("general-python", "event", ("C loop", "bare calls"), Bar.at_most(70, "C loop"))
def python(scale: Scale) -> Entry:
    table, rows = _sized(scale, 1)
    trigger, aggregate = AtTheEnd(), Stats()
    spec = _TUMBLING.trigger(trigger).aggregate(aggregate, output=_OUTPUT)
    return _entry("trigger and aggregate in Python", spec, table, rows, trigger, aggregate)


@WORKS.add("general-python-aggregate", "event", ("C loop", "bare calls"))
def python_aggregate(scale: Scale) -> Entry:
    table, rows = _sized(scale, 4)
    aggregate = Stats()
    return _entry("aggregate in Python", _TUMBLING.aggregate(aggregate, output=_OUTPUT), table, rows, aggregate)


@WORKS.add("general-python-many", "event", ("C loop",))
def python_many(scale: Scale) -> Entry:
    spec = _TUMBLING.aggregate(StatsOfMany(), output=_OUTPUT)
    return _entry("aggregate in Python with add_many, dozens of elements a window", spec, *_dozens(scale))


@WORKS.add("general-process", "event", ("C loop", "bare calls"))
def process(scale: Scale) -> Entry:
    table, rows = _sized(scale, 4)
    function = Everything()
    return _entry("ProcessWindowFunction", _TUMBLING.process(function, output=_OUTPUT), table, rows, function)


@WORKS.add("general-process-many", "event", ("C loop",))
def process_many(scale: Scale) -> Entry:
    spec = _TUMBLING.process(EverythingByColumn(), output=_OUTPUT)
    return _entry("ProcessWindowFunction, dozens of elements a window", spec, *_dozens(scale))


@WORKS.parametrize
def test_general(race, work, contender):
    race(work, contender)
