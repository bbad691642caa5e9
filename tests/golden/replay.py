"""Replays scenarios that real Flink has answered, through the public API.

``replay(scenario)`` returns the shape of a scenario's ``expected``; ``python -m tests.golden.replay FILE`` prints every
scenario of a file with our answer in it.
"""

import json
import sys
from typing import Any

import pyarrow as pa

import fastwin as fw
from fastwin.testing import WindowHarness

SCHEMA = pa.schema([("key", pa.string()), ("ts", pa.int64()), ("value", pa.int64()), ("gap", pa.int64())])


def java_remainder(a: int, b: int) -> int:
    """The remainder with the sign of the dividend, as Java's ``%``."""
    return a % b if a >= 0 else -(-a % b)


# --- what a user would write ---


class ThirtySecondWindows(fw.WindowAssigner):
    """Windows of 30 seconds."""

    def __init__(self, event_time: bool) -> None:
        self.event_time = event_time

    def assign_windows(self, element, timestamp, context):
        time = timestamp if self.event_time else context.get_current_processing_time()
        start = time - java_remainder(time, 30_000)
        return [fw.TimeWindow(start, start + 30_000)]

    def is_event_time(self):
        return self.event_time


class OneSecondIntervalTrigger(fw.Trigger):
    """Fires every second of event time, and at the end of the window."""

    first_seen = fw.ValueStateDescriptor("firstSeen")

    def on_element(self, element, timestamp, window, ctx):
        state = ctx.get_partitioned_state(self.first_seen)
        if not state.value():
            watermark = ctx.get_current_watermark()
            ctx.register_event_time_timer(watermark + (1000 - java_remainder(watermark, 1000)))
            ctx.register_event_time_timer(window.end)
            state.update(True)
        return fw.TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        if time == window.end:
            return fw.TriggerResult.FIRE_AND_PURGE
        watermark = ctx.get_current_watermark()
        upcoming = watermark + (1000 - java_remainder(watermark, 1000))
        if upcoming < window.end:
            ctx.register_event_time_timer(upcoming)
        return fw.TriggerResult.FIRE

    def clear(self, window, ctx):
        ctx.get_partitioned_state(self.first_seen).clear()


class EarlyLateCountTrigger(fw.Trigger):
    """Fires for every n elements, and at the end of the window."""

    count = fw.ReducingStateDescriptor("count", lambda a, b: a + b)

    def __init__(self, n: int) -> None:
        self.n = n

    def on_element(self, element, timestamp, window, ctx):
        ctx.register_event_time_timer(window.max_timestamp())
        count = ctx.get_partitioned_state(self.count)
        count.add(1)
        if count.get() >= self.n:
            count.clear()
            return fw.TriggerResult.FIRE
        return fw.TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        return fw.TriggerResult.FIRE if time == window.max_timestamp() else fw.TriggerResult.CONTINUE

    def can_merge(self):
        return True

    def on_merge(self, window, ctx):
        ctx.merge_partitioned_state(self.count)
        if window.max_timestamp() > ctx.get_current_watermark():
            ctx.register_event_time_timer(window.max_timestamp())

    def clear(self, window, ctx):
        ctx.delete_event_time_timer(window.max_timestamp())
        ctx.get_partitioned_state(self.count).clear()


class Stats(fw.AggregateFunction):
    """Count, sum, smallest and largest value."""

    def create_accumulator(self):
        return (0, 0, None, None)

    def add(self, value, accumulator):
        return self.merge(accumulator, (1, value.value, value.value, value.value))

    def get_result(self, accumulator):
        return list(accumulator)

    def merge(self, a, b):
        lows = [x for x in (a[2], b[2]) if x is not None]
        highs = [x for x in (a[3], b[3]) if x is not None]
        return (a[0] + b[0], a[1] + b[1], min(lows, default=None), max(highs, default=None))


class SumOfValues(fw.ReduceFunction):
    """Adds the values up."""

    def reduce(self, a, b):
        return a._replace(value=a.value + b.value)


class Values(fw.ProcessWindowFunction):
    """All values of the window."""

    def process(self, key, context, elements):
        yield ([element.value for element in elements],)


class Report(fw.ProcessWindowFunction):
    """The aggregate, the clocks, and how often the window and the key have fired."""

    fires = fw.ValueStateDescriptor("window-fires", 0)
    key_fires = fw.ValueStateDescriptor("key-fires", 0)

    def __init__(self, per_window: bool) -> None:
        self.per_window = per_window

    @staticmethod
    def count(state) -> int:
        state.update(state.value() + 1)
        return state.value()

    def process(self, key, context, elements):
        (result,) = elements
        window_fires = None
        if self.per_window:
            window_fires = self.count(context.window_state().get_state(self.fires))
        yield {
            "agg": result,
            "wm": context.current_watermark(),
            "pt": context.current_processing_time(),
            "window_fires": window_fires,
            "key_fires": self.count(context.global_state().get_state(self.key_fires)),
        }

    def clear(self, context):
        if self.per_window:
            context.window_state().get_state(self.fires).clear()


# --- from a scenario to a spec ---


def make_assigner(told: dict[str, Any]) -> fw.WindowAssigner:
    kind, event = told["type"], told.get("time", "event") == "event"
    offset = told.get("offset") or 0
    match kind:
        case "tumbling":
            return (fw.TumblingEventTimeWindows if event else fw.TumblingProcessingTimeWindows).of(told["size"], offset)
        case "sliding":
            sliding = fw.SlidingEventTimeWindows if event else fw.SlidingProcessingTimeWindows
            return sliding.of(told["size"], told["slide"], offset)
        case "session":
            return (fw.EventTimeSessionWindows if event else fw.ProcessingTimeSessionWindows).with_gap(told["gap"])
        case "dynamic_session":
            sessions = fw.EventTimeSessionWindows if event else fw.ProcessingTimeSessionWindows
            return sessions.with_dynamic_gap("gap")
        case "global":
            return fw.GlobalWindows.create()
        case "thirty_seconds":
            return ThirtySecondWindows(event)
    raise ValueError(f"assigner {told}")


def value_delta(old, new) -> int:
    return new.value - old.value


def make_trigger(told: dict[str, Any]) -> fw.Trigger:
    match told["type"]:
        case "event_time":
            return fw.EventTimeTrigger()
        case "processing_time":
            return fw.ProcessingTimeTrigger()
        case "count":
            return fw.CountTrigger.of(told["n"])
        case "continuous_event_time":
            return fw.ContinuousEventTimeTrigger.of(told["interval"])
        case "continuous_processing_time":
            return fw.ContinuousProcessingTimeTrigger.of(told["interval"])
        case "delta":
            return fw.DeltaTrigger.of(told["threshold"], value_delta)
        case "purging":
            return fw.PurgingTrigger.of(make_trigger(told["of"]))
        case "never":
            return fw.NeverTrigger()
        case "one_second_interval":
            return OneSecondIntervalTrigger()
        case "early_late_count":
            return EarlyLateCountTrigger(told["n"])
    raise ValueError(f"trigger {told}")


def make_evictor(told: dict[str, Any]) -> fw.Evictor:
    after = bool(told.get("after"))
    match told["type"]:
        case "count":
            return fw.CountEvictor.of(told["n"], after)
        case "time":
            return fw.TimeEvictor.of(told["ms"], after)
        case "delta":
            return fw.DeltaEvictor.of(told["threshold"], value_delta, after)
    raise ValueError(f"evictor {told}")


REPORT = "agg array<bigint>, wm bigint, pt bigint, window_fires bigint, key_fires bigint"
BUILT_IN = {"count": fw.Count(), "sum": fw.Sum("value"), "min": fw.Min("value"), "max": fw.Max("value")}


def make_spec(scenario: dict[str, Any], built_in: bool) -> fw.WindowSpec:
    spec = fw.key_by("key").event_time("ts").window(make_assigner(scenario["assigner"]))
    if scenario.get("trigger"):
        spec = spec.trigger(make_trigger(scenario["trigger"]))
    if scenario.get("evictor"):
        spec = spec.evictor(make_evictor(scenario["evictor"]))
    if scenario.get("allowed_lateness"):
        spec = spec.allowed_lateness(scenario["allowed_lateness"])
    if scenario.get("late_output"):
        spec = spec.side_output_late_data()
    match scenario["function"]:
        case "aggregate" if built_in:
            return spec.aggregate(**BUILT_IN)
        case "aggregate":
            return spec.aggregate(Stats(), output="agg array<bigint>")
        case "reduce":
            return spec.reduce(SumOfValues(), output="value bigint")
        case "process":
            return spec.process(Values(), output="value array<bigint>")
        case "aggregate_process":
            return spec.aggregate(Stats(), then=Report(True), output=REPORT)
        case "aggregate_process_global":
            return spec.aggregate(Stats(), then=Report(False), output=REPORT)
    raise ValueError(f"function {scenario['function']}")


def plain_value(function: str, value: dict[str, Any], built_in: bool) -> Any:
    match function:
        case "aggregate" if built_in:
            return [value["count"], value["sum"] or 0, value["min"], value["max"]]
        case "aggregate":
            return value["agg"]
        case "reduce" | "process":
            return value["value"]
    return value


# --- and through it ---


def replay(scenario: dict[str, Any], built_in: bool = False) -> dict[str, Any]:
    """Returns what we answer to a scenario. built_in: aggregates with built-in ones instead of a Python function."""
    answer: dict[str, Any] = {
        "output": [], "late": [], "dropped": 0, "timers_left": None, "error": None, "error_at": None,
        "unordered_values": False, "state_window_reset": False,
    }  # fmt: skip
    at = -1
    harness = None
    try:
        harness = WindowHarness(make_spec(scenario, built_in), SCHEMA, True)
        for at, item in enumerate(scenario["input"]):
            emitted = feed(harness, item, at, answer)
            for emission in emitted:
                window = emission.window
                start, end = (None, None) if isinstance(window, fw.GlobalWindow) else window
                answer["output"].append(
                    {
                        "after": at,
                        "timer": emission.timer,
                        "key": emission.key,
                        "start": start,
                        "end": end,
                        "ts": emission.timestamp,
                        "value": plain_value(scenario["function"], emission.value, built_in),
                    }
                )
        answer["timers_left"] = harness.timers
    except fw.FastwinError as problem:
        answer["error"], answer["error_at"] = f"{type(problem).__name__}: {problem}", at
    if harness is not None:
        answer["dropped"] = harness.dropped
    return answer


def feed(harness: WindowHarness, item: list[Any], at: int, answer: dict[str, Any]) -> list[Any]:
    match item:
        case ["e", key, ts, value, *gap]:
            known = len(harness.late)
            emitted = harness.push({"key": key, "ts": ts, "value": value, "gap": gap[0] if gap else None})
            answer["late"] += [[row["key"], row["ts"], row["value"], at] for row in harness.late[known:]]
            return emitted
        case ["w", watermark]:
            return harness.advance_watermark(watermark)
        case ["p", processing_time]:
            return harness.advance_processing_time(processing_time)
        case ["snapshot"]:
            harness.restore(harness.snapshot(), forget_watermark=True)
            return []
    raise ValueError(f"input item {item}")


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as lines:
        for line in lines:
            told = json.loads(line)
            print(json.dumps({**told, "expected": replay(told, "--built-in" in sys.argv)}))
