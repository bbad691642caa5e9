"""The general operator beyond what Flink's scenarios show."""

import pickle
from typing import Any

import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.run.planner import plan
from fastwin.run.replica import open_replica
from fastwin.run.stream import open_plan
from fastwin.state.chunks import decode, encode, owner
from fastwin.testing import WindowHarness
from tests.support.functions import Spread

BASE = fw.key_by("k").event_time("ts")
TUMBLING = BASE.window(fw.TumblingEventTimeWindows.of(100))
ROWS = pa.table({"k": ["a", "b", "a", "a"], "ts": [1, 2, 30, 120], "v": [1, 2, 3, 4]})


def values(emissions: list[Any], *names: str) -> list[Any]:
    return [tuple(emission.value[name] for name in names) for emission in emissions]


class Pair(Spread):
    def get_result(self, accumulator):
        return {"high": accumulator[1], "low": accumulator[0]}


class Describe(fw.ProcessWindowFunction):
    def process(self, key, context, elements):
        (result,) = elements
        context.output("seen", {"key": key, "end": context.window.end})
        yield {"text": f"{key} {result}"}


def run_values(spec: fw.WindowSpec, *names: str) -> list[tuple[Any, ...]]:
    return sorted(zip(*(spec.run(ROWS).main[name].to_pylist() for name in names), strict=True))


def test_built_in_and_python_aggregates_mix_in_the_order_named() -> None:
    spec = TUMBLING.aggregate(n=fw.Count(), spread=Spread(), total=fw.Sum("v"), output="spread bigint")
    assert spec.run(ROWS).main.column_names == ["k", "window_start", "window_end", "n", "spread", "total"]
    assert run_values(spec, "k", "n", "spread", "total") == [("a", 1, 0, 4), ("a", 2, 2, 4), ("b", 1, 0, 2)]


def test_an_aggregate_of_several_columns_beside_named_ones() -> None:
    spec = TUMBLING.aggregate(Pair(), n=fw.Count(), output="low bigint, high bigint")
    assert run_values(spec, "k", "n", "low", "high") == [("a", 1, 4, 4), ("a", 2, 1, 3), ("b", 1, 2, 2)]


def test_a_function_behind_aggregates_gets_their_results() -> None:
    spec = TUMBLING.side_output("seen", "key string, end bigint").aggregate(
        n=fw.Count(), spread=Spread(), then=Describe(), output="text string"
    )
    result = spec.run(ROWS)
    assert sorted(result.main["text"].to_pylist()) == [
        "a Row(n=1, spread=0)", "a Row(n=2, spread=2)", "b Row(n=1, spread=0)",
    ]  # fmt: skip
    assert sorted(result.side["seen"]["end"].to_pylist()) == [100, 100, 200]


def test_reduce_takes_callables_and_gives_the_inputs_columns() -> None:
    spec = TUMBLING.reduce(lambda a, b: a._replace(v=a.v + b.v))
    assert spec.run(ROWS).main.column_names == ["k", "window_start", "window_end", "ts", "v"]
    assert run_values(spec, "k", "v") == [("a", 4), ("a", 4), ("b", 2)]


def test_count_windows() -> None:
    table = pa.table({"k": ["a"] * 7, "v": range(7)})
    assert fw.key_by("k").count_window(3).aggregate(s=fw.Sum("v")).run(table).main["s"].to_pylist() == [3, 12]
    sliding = fw.key_by("k").count_window(4, 2).aggregate(s=fw.Sum("v")).run(table)
    assert sliding.main["s"].to_pylist() == [1, 6, 14]
    assert sliding.main["window_start"].null_count == 3


def test_pane_info_tells_firings_apart() -> None:
    trigger = fw.after_watermark(early=fw.CountTrigger.of(2), late=fw.CountTrigger.of(1))
    harness = WindowHarness(TUMBLING.trigger(trigger).allowed_lateness(50).with_pane_info().aggregate(n=fw.Count()))
    names = ("n", "pane_index", "pane_timing", "pane_is_last")
    for ts in (1, 2, 3):
        harness.push({"k": "a", "ts": ts})
    harness.advance_watermark(99)
    harness.push({"k": "a", "ts": 4})
    harness.advance_watermark(149)
    assert values(harness.emissions, *names) == [
        (2, 0, "EARLY", False), (3, 1, "ON_TIME", False), (4, 2, "LATE", False),
    ]  # fmt: skip
    assert harness.state_rows == harness.timers == 0


def test_the_on_time_firing_is_the_last_without_lateness() -> None:
    harness = WindowHarness(TUMBLING.with_pane_info().aggregate(n=fw.Count()))
    harness.push({"k": "a", "ts": 1})
    assert values(harness.advance_watermark(1000), "pane_timing", "pane_is_last") == [("ON_TIME", True)]


def test_all_of_waits_for_each_and_any_of_for_one() -> None:
    def firings(trigger: fw.Trigger) -> list[Any]:
        harness = WindowHarness(TUMBLING.trigger(trigger).aggregate(n=fw.Count()))
        for ts in range(6):
            harness.push({"k": "a", "ts": ts})
        harness.advance_watermark(99)
        return values(harness.emissions, "n")

    two, three = fw.CountTrigger.of(2), fw.CountTrigger.of(3)
    assert firings(fw.all_of(two, three)) == [(3,), (6,)]
    assert firings(fw.any_of(two, three)) == [(2,), (3,), (4,), (6,)]
    assert firings(fw.all_of(two, fw.EventTimeTrigger())) == [(6,)]
    assert firings(fw.PurgingTrigger.of(fw.any_of(two, three))) == [(2,), (1,), (1,), (2,)]


def test_processing_timeout() -> None:
    trigger = fw.ProcessingTimeoutTrigger.of(fw.CountTrigger.of(3), 100)
    spec = fw.key_by("k").processing_time().window(fw.GlobalWindows.create()).trigger(trigger)
    harness = WindowHarness(spec.aggregate(n=fw.Count()))
    harness.push({"k": "a"})
    assert values(harness.advance_processing_time(100), "n") == [(1,)]
    for _ in range(3):
        harness.push({"k": "a"})
    assert values(harness.emissions, "n") == [(1,), (4,)]  # the timeout has cleared the count, not the contents
    assert harness.timers == 0


def test_processing_time_windows_run_to_their_end() -> None:
    spec = fw.key_by("k").processing_time().window(fw.TumblingProcessingTimeWindows.of("1 day"))
    result = spec.aggregate(n=fw.Count()).run(ROWS)
    assert sum(result.main["n"].to_pylist()) == 4


def test_cumulative_windows() -> None:
    result = BASE.window(fw.CumulativeEventTimeWindows.of(100, 50)).aggregate(n=fw.Count()).run(ROWS).main
    rows = zip(
        result["k"].to_pylist(), result["window_end"].cast(pa.int64()).to_pylist(), result["n"].to_pylist(), strict=True
    )
    assert sorted(rows) == [("a", 50, 2), ("a", 100, 2), ("a", 150, 1), ("a", 200, 1), ("b", 50, 1), ("b", 100, 1)]


class Bounds(fw.MergingWindowAssigner):
    """Windows of the element's own bounds; only equal ends merge."""

    def assign_windows(self, element, timestamp, context):
        return [fw.TimeWindow(element.start, element.end)]

    def merge_windows(self, windows, callback):
        by_end: dict[int, list[fw.TimeWindow]] = {}
        for window in windows:
            by_end.setdefault(window.end, []).append(window)
        for group in by_end.values():
            if len(set(group)) > 1:
                callback(group, fw.TimeWindow(min(w.start for w in group), group[0].end))


def test_windows_merge_as_the_user_says() -> None:
    harness = WindowHarness(BASE.window(Bounds()).aggregate(n=fw.Count()))
    for start, end in ((0, 10), (5, 10), (5, 20), (2, 20), (2, 20)):
        harness.push({"k": "a", "ts": start, "start": start, "end": end})
    harness.advance_watermark(100)
    assert [(e.window, e.value["n"]) for e in harness.emissions] == [((0, 10), 2), ((2, 20), 3)]
    assert harness.state_rows == harness.timers == 0


def test_nothing_is_left_of_a_key_whose_windows_are_gone() -> None:
    stream = (
        TUMBLING.trigger(fw.any_of(fw.EventTimeTrigger(), fw.CountTrigger.of(2)))
        .aggregate(n=fw.Count(), spread=Spread(), output="spread bigint")
        .open(schema=ROWS.schema)
    )
    stream.process(ROWS)
    stream.advance_watermark(1000)
    operator = stream._operator
    assert stream.metrics.state_rows == stream.metrics.timers == 0
    assert len(operator.table.keys) == 0
    assert not any(operator.contents.objects)
    assert not any(operator.state.windows)


def test_unfired_contents_are_counted() -> None:
    stream = TUMBLING.trigger(fw.CountTrigger.of(3)).aggregate(n=fw.Count()).open(schema=ROWS.schema)
    stream.process(ROWS)
    stream.advance_watermark(1000)
    assert stream.metrics.unfired == 3


def test_state_without_python_state_is_never_pickled() -> None:
    built_in = TUMBLING.trigger(fw.CountTrigger.of(3)).evictor(fw.CountEvictor.of(2)).aggregate(n=fw.Count())
    python = TUMBLING.aggregate(Spread(), output="spread bigint")
    for spec, pickled in ((built_in, 0), (python, 1)):
        stream = spec.open(schema=ROWS.schema)
        stream.process(ROWS)
        assert stream.snapshot()[7] == pickled


def test_a_delta_holds_only_what_changed() -> None:
    keys = [f"key {i}" for i in range(2000)]
    table = pa.table({"k": keys, "ts": [1] * 2000, "v": range(2000)})
    stream = TUMBLING.aggregate(Spread(), output="spread bigint").open(schema=table.schema)
    stream.process(table)
    whole = stream.snapshot()
    stream.process(table.slice(7, 1))
    assert len(stream.delta()) < len(whole) / 5


def test_specs_pickle_and_their_fingerprints_are_stable() -> None:
    spec = TUMBLING.trigger(fw.PurgingTrigger.of(fw.CountTrigger.of(3))).aggregate(Spread(), output="spread bigint")
    again = pickle.loads(pickle.dumps(spec))
    assert again.fingerprint == spec.fingerprint
    assert "0x" not in str(TUMBLING.trigger(fw.DeltaTrigger.of(1, lambda a, b: 0)).aggregate(n=fw.Count()))

    class Newer(Spread):
        version = 2

    Newer.__qualname__, Newer.__module__ = Spread.__qualname__, Spread.__module__
    assert (
        TUMBLING.aggregate(Newer(), output="spread bigint").fingerprint
        != TUMBLING.aggregate(Spread(), output="spread bigint").fingerprint
    )


def test_value_changed_in_place_is_not_saved() -> None:
    class Grows(fw.ProcessWindowFunction):
        seen = fw.ValueStateDescriptor("seen", [])

        def process(self, key, context, elements):
            state = context.global_state().get_state(self.seen)
            state.value().append(1)
            yield (len(state.value()),)
            state.update([*state.value(), 1])

    spec = TUMBLING.process(Grows(), output="n int")
    assert [n for k, n in run_values(spec, "k", "n") if k == "a"] == [0, 1]


def test_explain_says_which_operator_and_why() -> None:
    assert "operator: aligned" in TUMBLING.aggregate(n=fw.Count()).explain()
    told = TUMBLING.trigger(fw.CountTrigger.of(3)).aggregate(n=fw.Count()).explain()
    assert "operator: general, because it has a trigger of its own (every 3 elements)" in told.text
    assert told._repr_html_().startswith("<div>")


@pytest.mark.parametrize("general", [False, True])
def test_coalesced_late_firings_are_one_for_each_window_and_call(general: bool) -> None:
    spec = TUMBLING.allowed_lateness(100, coalesce=True).aggregate(n=fw.Count())
    stream = open_plan(plan(spec, ROWS.schema, general=general))
    stream.advance_watermark(99)
    assert stream.process(ROWS).main["n"].to_pylist() == [2, 1]


def test_windows_of_processing_time_have_no_late_firings_to_coalesce() -> None:
    spec = BASE.window(fw.TumblingProcessingTimeWindows.of(10)).trigger(fw.CountTrigger.of(1))
    stream = spec.allowed_lateness(0, coalesce=True).aggregate(n=fw.Count()).open(schema=ROWS.schema)
    stream.advance_watermark(1000)
    assert stream.process(ROWS.slice(1)).main["n"].to_pylist() == [1, 1, 2]


def test_coalesced_firings_are_one_for_each_window_also_where_rows_are_used_again() -> None:
    """The session [25, 35) is merged away, and its row then taken for another key's."""
    spec = (
        fw.key_by("k")
        .event_time("ts")
        .window(fw.EventTimeSessionWindows.with_dynamic_gap("gap"))
        .allowed_lateness(1000, coalesce=True)
        .aggregate(n=fw.Count())
    )
    table = pa.table({"k": [1, 0, 1, 1], "ts": [48, 16, 25, 22], "gap": [14, 17, 10, 19]})
    stream = spec.open(schema=table.schema)
    stream.advance_watermark(100)
    fired = stream.process(table).main
    assert sorted(zip(fired["k"].to_pylist(), fired["n"].to_pylist(), strict=True)) == [(0, 1), (1, 1), (1, 2)]


def test_timers_at_the_very_millisecond_can_wait_for_elements() -> None:
    """As in a task of Flink, where a timer fires a millisecond after its time."""
    spec = fw.key_by("k").processing_time().window(fw.TumblingProcessingTimeWindows.of(10)).aggregate(n=fw.Count())
    table = pa.table({"k": [1]})
    stream = spec.open(schema=table.schema)
    stream.advance_processing_time(3)
    stream.process(table)
    assert stream.advance_processing_time(9, before=True).main.num_rows == 0
    assert (stream.processing_time, stream.next_processing_timer()) == (9, 9)
    stream.process(table)
    assert stream.advance_processing_time(10, before=True).main["n"].to_pylist() == [2]
    assert stream.next_processing_timer() is None


class Same(fw.Trigger):
    """Another trigger, asked in Python."""

    def __init__(self, other: fw.Trigger) -> None:
        self.other = other
        for name in ("on_element", "on_event_time", "on_processing_time", "on_merge", "clear", "can_merge"):
            setattr(self, name, getattr(other, name))


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_session_that_is_extended_past_the_watermark_counts_its_late_elements_anew(wrapped: bool) -> None:
    trigger: fw.Trigger = fw.after_watermark(early=fw.CountTrigger.of(9), late=fw.CountTrigger.of(2))
    spec = BASE.window(fw.EventTimeSessionWindows.with_gap(10)).trigger(Same(trigger) if wrapped else trigger)
    harness = WindowHarness(spec.allowed_lateness(50).aggregate(n=fw.Count()))
    harness.push({"k": "a", "ts": 0, "v": 1})
    assert values(harness.advance_watermark(12), "n") == [(1,)]
    assert not harness.push({"k": "a", "ts": 1, "v": 1})  # the first of two late ones
    assert not harness.push({"k": "a", "ts": 9, "v": 1})  # extends the session to 19
    assert values(harness.advance_watermark(20), "n") == [(3,)]
    assert not harness.push({"k": "a", "ts": 2, "v": 1})
    assert values(harness.push({"k": "a", "ts": 3, "v": 1}), "n") == [(5,)]


class _Box:
    def __init__(self, n: int) -> None:
        self.n = n


class _Boxed(fw.AggregateFunction):
    def create_accumulator(self):
        return _Box(0)

    def add(self, value, accumulator):
        return _Box(accumulator.n + 1)

    def get_result(self, accumulator):
        return accumulator.n


def test_deltas_replace_accumulators_of_any_class() -> None:
    spec = fw.key_by("k").count_window(3).aggregate(_Boxed(), output="n int")
    table = pa.table({"k": [1]})
    stream = spec.open(schema=table.schema)
    stream.process(table)
    chunks = [stream.snapshot()]
    stream.process(table)
    chunks.append(stream.delta())
    again = spec.open(schema=table.schema)
    again.restore(chunks)
    assert again.process(table).main["n"].to_pylist() == [3]


class Gathered(fw.AggregateFunction):
    """Keeps the rows themselves, as they were handed in."""

    def create_accumulator(self) -> list:
        return []

    def add(self, value, accumulator: list) -> list:
        return [*accumulator, value]

    def get_result(self, accumulator: list) -> str:
        return " ".join(str(row.value) for row in accumulator)


class EachRow(fw.Trigger):
    """Keeps the rows, too, and asks for nothing."""

    def __init__(self) -> None:
        self.rows: list = []

    def on_element(self, element, timestamp, window, ctx) -> fw.TriggerResult:
        self.rows.append(element)
        return fw.TriggerResult.FIRE


def test_a_row_that_user_code_keeps_stays_as_it_was() -> None:
    table = pa.table({"k": ["a"] * 5, "ts": [0, 1, 2, 3, 4], "value": [5, 6, 7, 8, 9]})
    trigger = EachRow()
    spec = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of("1 second"))
    result = spec.trigger(trigger).aggregate(Gathered(), output="kept string").run(table).main
    assert result["kept"].to_pylist() == ["5", "5 6", "5 6 7", "5 6 7 8", "5 6 7 8 9"]
    assert [row.value for row in trigger.rows] == [5, 6, 7, 8, 9]


def test_a_window_that_a_chunk_removes_twice_is_removed() -> None:
    table = pa.table({"k": [1, 2], "ts": [1, 1]})
    counted = fw.key_by("k").event_time("ts").window(fw.GlobalWindows.create())
    spec = counted.trigger(fw.PurgingTrigger.of(fw.CountTrigger.of(2))).aggregate(n=fw.Count())
    stream = spec.open(schema=table.schema)
    stream.process(table)
    deltas = [stream.delta()]
    stream.process(table)
    deltas.append(stream.delta())
    wrote = owner(deltas[1])
    chunk = decode(deltas[1], wrote)
    chunk.tables["removed_keys"] = chunk.tables["removed_keys"].set_column(1, "k0", pa.array([1, 1]))
    again = open_replica(plan(spec, table.schema))
    again.catch_up([deltas[0], encode(chunk, wrote)])
    assert again.process(table).main["k"].to_pylist() == [2]
    again._check_invariants()
