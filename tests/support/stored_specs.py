"""Specs whose state an earlier version of fastwin has stored. ``stored_streams`` tells what streams of them are fed with.

The stored state names this module, its classes and its functions: none of them may be moved or renamed, and what a
spec says may not change either. What is stored lies in the folder ``stored`` beside this file, a folder for each format
of state. ``python -m tests.support.stored_specs`` stores that of the format that is written now: once, with the
release that brings it, and never again.
"""

import dataclasses
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import fastwin as fw
from tests.support.stored_streams import SAVED, SCHEMA, START_MS, feed


@dataclasses.dataclass
class Totals:
    """An accumulator whose ``==`` and ``isinstance`` tell whether it is of the right class."""

    n: int = 0
    total: int = 0
    words: dict[str, int] = dataclasses.field(default_factory=dict)


class SumUp(fw.AggregateFunction):
    """Counts and sums, and keeps how often each word came."""

    version = 2

    def create_accumulator(self) -> Totals:
        return Totals()

    def add(self, value: Any, accumulator: Totals) -> Totals:
        assert isinstance(accumulator, Totals), f"another class: {type(accumulator)!r}"
        words = accumulator.words | {value.s: accumulator.words.get(value.s, 0) + 1}
        return Totals(accumulator.n + 1, accumulator.total + (value.v or 0), words)

    def get_result(self, accumulator: Totals) -> tuple[int, int, str]:
        words = sorted((str(word), n) for word, n in accumulator.words.items())
        return accumulator.n, accumulator.total, " ".join(f"{word}:{n}" for word, n in words)

    def merge(self, a: Totals, b: Totals) -> Totals:
        words = {word: a.words.get(word, 0) + b.words.get(word, 0) for word in a.words | b.words}
        return Totals(a.n + b.n, a.total + b.total, words)


class WeightedMean(fw.NumpyAggregate):
    """The mean of the first column, weighted by the second."""

    state = {"total": "float64", "weight": "int64"}  # noqa: RUF012
    output = pa.float64()

    def lift(self, x: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return x * weight, weight

    def combine(self, a: Any, b: Any) -> tuple[np.ndarray, np.ndarray]:
        return a[0] + b[0], a[1] + b[1]

    def lower(self, state: Any) -> np.ndarray:
        return np.ma.masked_array(state[0] / np.where(state[1] == 0, 1, state[1]), mask=state[1] == 0)


class EveryOther(fw.Trigger):
    """Fires at every second element of a window and at its end; keeps the last element, of an odd number of them."""

    seen = fw.ValueStateDescriptor("seen")
    waiting = fw.ListStateDescriptor("waiting")

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> fw.TriggerResult:
        seen, waiting = ctx.get_partitioned_state(self.seen), ctx.get_partitioned_state(self.waiting)
        seen.update((seen.value() or 0) + 1)
        if window.max_timestamp() > ctx.get_current_watermark():
            ctx.register_event_time_timer(window.max_timestamp())
        if seen.value() % 2:
            waiting.add(element)
            return fw.TriggerResult.CONTINUE
        (other,) = waiting.get()
        assert other._fields == element._fields
        waiting.clear()
        return fw.TriggerResult.FIRE if (other.v or 0) + (element.v or 0) > -50 else fw.TriggerResult.FIRE_AND_PURGE

    def on_event_time(self, time: int, window: Any, ctx: Any) -> fw.TriggerResult:
        return fw.TriggerResult.FIRE if time == window.max_timestamp() else fw.TriggerResult.CONTINUE

    def clear(self, window: Any, ctx: Any) -> None:
        ctx.get_partitioned_state(self.seen).clear()
        ctx.get_partitioned_state(self.waiting).clear()
        ctx.delete_event_time_timer(window.max_timestamp())


class HalfMinutes(fw.WindowAssigner):
    """Windows of half a minute, and one more over each whole minute."""

    def assign_windows(self, element: Any, timestamp: int, context: Any) -> list[fw.TimeWindow]:
        half, whole = timestamp - timestamp % 30_000, timestamp - timestamp % 60_000
        return [fw.TimeWindow(half, half + 30_000), fw.TimeWindow(whole, whole + 60_000)]


class Values(fw.ProcessWindowFunction):
    """Tells the elements of a window, in their order."""

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[dict[str, Any]]:
        rows = list(elements)
        yield {"n": len(rows), "vs": " ".join(f"{row.v}@{row.ts:%M:%S}" for row in rows)}


def _class_of_notes() -> type:
    class Note:
        """What a window has to say; no other module can import its class."""

        def __init__(self, text: str) -> None:
            self.text = text

    return Note


class Ledger(fw.ProcessWindowFunction):
    """Keeps something in every kind of state of the window and of the key.

    note: a class that pickles cannot name.
    """

    firings = fw.ValueStateDescriptor("firings", 100)
    newest = fw.ValueStateDescriptor("newest")
    seen = fw.ListStateDescriptor("seen")
    windows = fw.MapStateDescriptor("windows")
    highest = fw.ReducingStateDescriptor("highest", max)
    totals = fw.AggregatingStateDescriptor("totals", SumUp())

    def __init__(self, note: type) -> None:
        self.note = note

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
        rows = list(elements)
        window, own = context.window_state(), context.global_state()
        firings = window.get_state(self.firings)
        firings.update(firings.value() + 1)
        newest = own.get_state(self.newest)
        before = newest.value()
        assert before is None or before._fields == rows[-1]._fields
        newest.update(rows[-1])
        window.get_list_state(self.seen).add_all(row for row in rows if row.x is not None)
        own.get_list_state(self.seen).add(self.note(f"{len(rows)}"))
        assert all(isinstance(note, self.note) for note in own.get_list_state(self.seen).get())
        windows = own.get_map_state(self.windows)
        windows.put(context.window, fw.TriggerResult.FIRE)
        assert set(windows.values()) == {fw.TriggerResult.FIRE}
        window.get_map_state(self.windows).put(firings.value(), rows[0])
        for state in (window, own):
            for row in rows:
                state.get_reducing_state(self.highest).add((row.v or 0, row.s or "", row.d or 0))
                state.get_aggregating_state(self.totals).add(row)
        notes = " ".join(note.text for note in own.get_list_state(self.seen).get())
        yield (
            firings.value(),
            None if before is None else before.v,
            f"{notes}; {len(windows.keys())} windows, the first from {min(windows.keys()).start - START_MS}",
            sum(row.x for row in window.get_list_state(self.seen).get()),
            " ".join(f"{n}:{row.ts:%M:%S}" for n, row in window.get_map_state(self.windows).items()),
            str(window.get_reducing_state(self.highest).get()),
            str(own.get_reducing_state(self.highest).get()),
            str(window.get_aggregating_state(self.totals).get()),
            str(own.get_aggregating_state(self.totals).get()),
        )

    def clear(self, context: Any) -> None:
        state = context.window_state()
        for held in (
            state.get_state(self.firings),
            state.get_list_state(self.seen),
            state.get_map_state(self.windows),
            state.get_reducing_state(self.highest),
            state.get_aggregating_state(self.totals),
        ):
            held.clear()


def distance(a: Any, b: Any) -> int:
    """Returns how far the values of two rows are apart."""
    return abs((a.v or 0) - (b.v or 0))


def gap_of(row: Any) -> int:
    """Returns how long a session lasts after an element, ms."""
    return row.gap


def larger(a: Any, b: Any) -> Any:
    """Returns the row with the larger value, with both texts."""
    kept = b if (b.v or 0) > (a.v or 0) else a
    return kept._replace(s=f"{a.s},{b.s}")


BY_TEXT = fw.key_by("k").event_time("ts")
BY_NUMBER = fw.key_by("i").event_time("ts")
BY_BOTH = fw.key_by("k", "i").event_time("ts")
BY_NONE = fw.key_by().event_time("ts")

SPECS: dict[str, fw.WindowSpec] = {
    "tumbling": (
        BY_TEXT.window(fw.TumblingEventTimeWindows.of("20 s"))
        .allowed_lateness("15 s")
        .aggregate(
            n=fw.Count(),
            nv=fw.Count("v"),
            total=fw.Sum("v"),
            floats=fw.Sum("x"),
            low=fw.Min("v"),
            high=fw.Max("x"),
            mean=fw.Mean("v"),
            mean_x=fw.Mean("x"),
        )
    ),
    "tumbling_mixed": (
        BY_NUMBER.window(fw.TumblingEventTimeWindows.of("30 s", "7 s"))
        .allowed_lateness("10 s", coalesce=True)
        .aggregate(
            sold=fw.Sum("d"),
            mean=fw.Mean("d"),
            uv=fw.HyperLogLog("s"),
            first=fw.First("s"),
            last=fw.Last("s"),
            top=fw.ArgMax("s", by="v"),
            least=fw.ArgMin("d", by="x"),
            low=fw.Min("s"),
            spread=fw.Variance("x"),
            width=fw.StdDev("v", ddof=0),
            sketch=fw.HyperLogLog("v", output="sketch"),
        )
    ),
    "sliding": (
        BY_BOTH.window(fw.SlidingEventTimeWindows.of("30 s", "10 s"))
        .allowed_lateness("10 s")
        .aggregate(n=fw.Count(), total=fw.Sum("v"), last=fw.Last("s"), sold=fw.Sum("d"))
    ),
    "sliding_rest": (
        BY_NONE.window(fw.SlidingEventTimeWindows.of("25 s", "10 s", "3 s"))
        .side_output_late_data()
        .aggregate(n=fw.Count(), low=fw.Min("x"), uv=fw.HyperLogLog("s"), first=fw.First("v"))
    ),
    "cumulative": (
        BY_NUMBER.window(fw.CumulativeEventTimeWindows.of("1 minute", "20 s"))
        .allowed_lateness("20 s")
        .aggregate(n=fw.Count(), mean=fw.Mean("x"), top=fw.ArgMax("s", by="d"))
    ),
    "sessions": (
        BY_TEXT.window(fw.EventTimeSessionWindows.with_gap("3 s"))
        .allowed_lateness("12 s")
        .aggregate(n=fw.Count(), total=fw.Sum("v"), first=fw.First("s"), uv=fw.HyperLogLog("s"), sold=fw.Sum("d"))
    ),
    "numpy": (
        BY_TEXT.window(fw.TumblingEventTimeWindows.of("20 s"))
        .allowed_lateness("15 s")
        .aggregate(n=fw.Count(), mean=WeightedMean("x", "gap"))
    ),
    "counted": (
        BY_TEXT.window(fw.TumblingEventTimeWindows.of("1 minute"))
        .trigger(fw.PurgingTrigger.of(fw.CountTrigger.of(4)))
        .aggregate(n=fw.Count(), total=fw.Sum("v"), last=fw.Last("s"), mean=WeightedMean("x", "gap"))
    ),
    "count_window": fw.key_by("i").count_window(5, 3).process(Values(), output="n bigint, vs string"),
    "continuous": (
        BY_NUMBER.window(fw.SlidingEventTimeWindows.of("40 s", "20 s"))
        .trigger(fw.ContinuousEventTimeTrigger.of("7 s"))
        .allowed_lateness("10 s")
        .with_pane_info()
        .aggregate(n=fw.Count(), high=fw.Max("v"))
    ),
    "delta": (
        BY_NONE.window(fw.TumblingEventTimeWindows.of("1 minute"))
        .trigger(fw.DeltaTrigger.of(60, distance))
        .aggregate(n=fw.Count(), total=fw.Sum("v"))
    ),
    "combined": (
        BY_TEXT.window(fw.EventTimeSessionWindows.with_gap("5 s"))
        .trigger(
            fw.after_watermark(
                early=fw.any_of(
                    fw.CountTrigger.of(5), fw.all_of(fw.CountTrigger.of(2), fw.ContinuousEventTimeTrigger.of("4 s"))
                ),
                late=fw.CountTrigger.of(2),
            )
        )
        .allowed_lateness("15 s")
        .with_pane_info()
        .aggregate(SumUp(), low=fw.Min("x"), output="n bigint, total bigint, words string")
    ),
    "timeout": (
        BY_BOTH.window(fw.TumblingEventTimeWindows.of("1 minute"))
        .trigger(fw.ProcessingTimeoutTrigger.of(fw.PurgingTrigger.of(fw.CountTrigger.of(6)), "30 s"))
        .aggregate(n=fw.Count(), total=fw.Sum("v"))
    ),
    "ledger": (
        BY_NUMBER.window(fw.TumblingEventTimeWindows.of("40 s"))
        .trigger(fw.after_watermark(early=fw.CountTrigger.of(5)))
        .evictor(fw.TimeEvictor.of("15 s"))
        .allowed_lateness("10 s")
        .process(
            Ledger(_class_of_notes()),
            output="firing int, newest bigint, notes string, floats double, firsts string, highest string, "
            "highest_ever string, totals string, totals_ever string",
        )
    ),
    "reduced": BY_TEXT.window(fw.CumulativeEventTimeWindows.of("1 minute", "30 s")).reduce(larger),
    "own_trigger": (
        BY_TEXT.window(fw.TumblingEventTimeWindows.of("30 s"))
        .trigger(EveryOther())
        .allowed_lateness("10 s")
        .aggregate(SumUp(), high=fw.Max("v"), output="n bigint, total bigint, words string")
    ),
    "own_windows": BY_NUMBER.window(HalfMinutes()).process(Values(), output="n bigint, vs string"),
    "dynamic_gap": (
        BY_TEXT.window(fw.EventTimeSessionWindows.with_dynamic_gap(gap_of))
        .evictor(fw.CountEvictor.of(4))
        .allowed_lateness("5 s")
        .aggregate(n=fw.Count(), total=fw.Sum("v"), sold=fw.Sum("d"))
    ),
    "arrival": (
        fw.key_by("k")
        .processing_time()
        .window(fw.TumblingProcessingTimeWindows.of("30 s"))
        .aggregate(n=fw.Count(), total=fw.Sum("v"))
    ),
}

QUERIES = {"aligned": SPECS["tumbling"], "own_trigger": SPECS["own_trigger"]}
"""Specs of the stored checkpoints of queries on Spark."""


def store(folder: Path) -> None:
    """Stores what each spec saves."""
    folder.mkdir()
    for name, spec in SPECS.items():
        stream = spec.open(schema=SCHEMA)
        for batch, saved in enumerate(SAVED):
            feed(stream, batch)
            (folder / f"{name}.{saved}").write_bytes(stream.delta() if batch else stream.snapshot())


if __name__ == "__main__":
    from fastwin.state.chunks import FORMAT_VERSION
    from tests.support import stored_specs  # by the name under which the state names its classes
    from tests.support.stored_streams import folder_of

    stored_specs.store(folder_of(FORMAT_VERSION))
