"""State of an earlier spec: taken where that is safe, refused by name of what differs where it is not."""

import dataclasses
import random

import pyarrow as pa
import pytest

import fastwin as fw
from tests.support.functions import Spread
from tests.support.variants import variants

BASE = fw.key_by("k").event_time("t")
SCHEMA = pa.schema([("k", pa.string()), ("t", pa.int64()), ("v", pa.int64()), ("s", pa.string())])
WINDOWS = {
    "tumbling": BASE.window(fw.TumblingEventTimeWindows.of(10)),
    "sliding": BASE.window(fw.SlidingEventTimeWindows.of(30, 10)),
    "rest": BASE.window(fw.SlidingEventTimeWindows.of(25, 10)),
    "cumulative": BASE.window(fw.CumulativeEventTimeWindows.of(30, 10)),
    "sessions": BASE.window(fw.EventTimeSessionWindows.with_gap(8)),
    "general": BASE.window(fw.TumblingEventTimeWindows.of(10)).with_pane_info(),
    "general sessions": BASE.window(fw.EventTimeSessionWindows.with_gap(8)).trigger(
        fw.after_watermark(early=fw.CountTrigger.of(2))
    ),
}
ADDED = "added aggregates"


def rows(*values: tuple) -> pa.Table:
    return pa.table(dict(zip(SCHEMA.names, zip(*values, strict=True), strict=True)), SCHEMA)


def some(dice: random.Random, now: int) -> pa.Table:
    return rows(*((dice.choice("abc"), now + dice.randrange(-40, 12), dice.randrange(9), "x") for _ in range(8)))


def restored(spec: fw.WindowSpec, chunks: list[bytes], **arguments) -> fw.Stream:
    stream = spec.open(schema=SCHEMA)
    stream.restore(chunks, **arguments)
    stream._check_invariants()
    return stream


def results(*found: fw.Result) -> list[tuple]:
    return sorted((tuple(row.values()) for one in found for row in one.main.to_pylist()), key=repr)


def run_on(dice: random.Random, first: fw.WindowSpec, deltas: bool) -> tuple[fw.Stream, list[bytes], int]:
    """Returns a stream that has seen something, its state, and its watermark."""
    stream, chunks, now = first.open(schema=SCHEMA), [], 100
    for _ in range(6):
        stream.advance_watermark(now - 15)
        stream.process(some(dice, now))
        chunks.append(stream.delta() if deltas and chunks else stream.snapshot())
        now += 9
    return stream, chunks if deltas else chunks[-1:], now


@pytest.mark.parametrize("deltas", [False, True])
@pytest.mark.parametrize("kind", ["tumbling", "sliding", "rest", "cumulative", "general"])
@pytest.mark.parametrize("seed", variants(range(5), 0, 1))
def test_a_longer_lateness_holds_for_what_is_open_and_brings_nothing_back(kind, seed, deltas):
    """What is open goes on as if the longer lateness had held from the beginning."""
    dice, same = random.Random(seed), random.Random(seed)
    short, long = (WINDOWS[kind].allowed_lateness(ms).aggregate(n=fw.Count(), total=fw.Sum("v")) for ms in (5, 25))
    before, chunks, now = run_on(dice, short, deltas)
    model, _, _ = run_on(same, long, deltas)
    after = restored(long, chunks)
    cleaned = before.watermark - 5
    assert after.metrics.open_windows == before.metrics.open_windows
    for _ in range(8):
        batch = some(dice, now)
        assert open_ones(after.advance_watermark(now - 15), cleaned) == open_ones(
            model.advance_watermark(now - 15), cleaned
        )
        found = after.process(batch)
        assert open_ones(found, None) == open_ones(model.process(batch), cleaned)
        after._check_invariants()
        now += 9


def open_ones(result: fw.Result, cleaned: int | None) -> list[tuple]:
    """Results of windows that end later than ``cleaned``."""
    table = result.main.drop_columns([name for name in result.main.column_names if name.startswith("pane")])
    return sorted(
        tuple(row.values())
        for row in table.to_pylist()
        if cleaned is None or row["window_end"].timestamp() * 1000 - 1 > cleaned
    )


def test_a_window_that_was_cleaned_does_not_open_again():
    for kind, spec in WINDOWS.items():
        short, long = (spec.allowed_lateness(ms).aggregate(n=fw.Count()) for ms in (0, 1_000))
        stream = short.open(schema=SCHEMA)
        stream.process(rows(("a", 5, 1, ""), ("a", 55, 1, "")))
        stream.advance_watermark(52)
        after = restored(long, [stream.snapshot()])
        assert after.process(rows(("a", 7, 1, ""))).main.num_rows == 0, kind
        assert after.metrics.num_late_records_dropped == 1, kind
        assert after.advance_watermark(500).main.num_rows >= 1, kind
        assert after.process(rows(("a", 56, 1, ""))).main.num_rows >= 1, f"{kind}: kept for the longer lateness"
        again = restored(long, [after.snapshot()])
        assert again.process(rows(("a", 7, 1, ""))).main.num_rows == 0, f"{kind}: it knows after one more restart"
        again.advance_watermark(fw.MAX_TIMESTAMP)
        assert again.metrics.state_rows == 0, kind


class Reminder(fw.Trigger):
    """Sets a timer behind the end of a window with its first element, and takes it back with the second one."""

    def on_element(self, element, timestamp, window, ctx):
        if element.v:
            ctx.delete_event_time_timer(window.max_timestamp() + 5)
        else:
            ctx.register_event_time_timer(window.max_timestamp() + 5)
        return fw.TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        return fw.TriggerResult.CONTINUE


def test_a_timer_that_was_deleted_is_not_the_one_that_cleans_after_a_longer_lateness():
    spec = WINDOWS["tumbling"].trigger(Reminder()).aggregate(n=fw.Count())
    stream = spec.open(schema=SCHEMA)
    stream.process(rows(("a", 5, 0, "")))
    chunks = [stream.snapshot()]
    stream.process(rows(("a", 6, 1, "")))
    chunks.append(stream.delta())
    after = restored(WINDOWS["tumbling"].allowed_lateness(5).trigger(Reminder()).aggregate(n=fw.Count()), chunks)
    after.advance_watermark(100)
    assert after.metrics.state_rows == 0


class FiveLater(fw.Trigger):
    """Fires 5 ms behind the end of a window."""

    def on_element(self, element, timestamp, window, ctx):
        ctx.register_event_time_timer(window.max_timestamp() + 5)
        return fw.TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        return fw.TriggerResult.FIRE if time == window.max_timestamp() + 5 else fw.TriggerResult.CONTINUE


@pytest.mark.parametrize("before", [0, 3, 5])
@pytest.mark.parametrize("deltas", [False, True])
def test_a_trigger_keeps_its_timer_at_the_time_of_cleaning_where_the_lateness_grows(before, deltas):
    def spec(lateness):
        return WINDOWS["tumbling"].allowed_lateness(lateness).trigger(FiveLater()).aggregate(n=fw.Count())

    stream = spec(before).open(schema=SCHEMA)
    stream.process(rows(("a", 5, 0, "")))
    chunks = [stream.snapshot()]
    if deltas:
        stream.process(rows(("a", 6, 0, ""), ("b", 25, 0, "")))
        chunks.append(stream.delta())
        stream.advance_watermark(8)
        chunks.append(stream.delta())
    after = restored(spec(8), chunks)
    if deltas:
        after = restored(spec(8), [*chunks, after.delta()])
    assert after.advance_watermark(13).main.num_rows == 0
    assert after.advance_watermark(14).main["n"].to_pylist() == [1 + deltas]
    assert after.metrics.state_rows == 1 + deltas
    assert after.advance_watermark(17).main.num_rows == 0
    assert after.metrics.state_rows == deltas
    assert after.advance_watermark(100).main["n"].to_pylist() == [1] * deltas
    assert (after.metrics.state_rows, after.metrics.timers) == (0, 0)


def test_what_was_cleaned_in_a_delta_is_asked_no_more_where_the_lateness_grows():
    stream = WINDOWS["tumbling"].allowed_lateness(3).trigger(FiveLater()).aggregate(n=fw.Count()).open(schema=SCHEMA)
    stream.process(rows(("a", 5, 0, "")))
    chunks = [stream.snapshot()]
    stream.advance_watermark(12)  # of the window, only the timer of its trigger is left
    chunks.append(stream.delta())
    assert stream.metrics.timers == 1
    after = restored(WINDOWS["tumbling"].allowed_lateness(8).trigger(FiveLater()).aggregate(n=fw.Count()), chunks)
    assert after.metrics.timers == 1
    assert after.advance_watermark(100).main.num_rows == 0
    assert (after.metrics.state_rows, after.metrics.timers) == (0, 0)


ALL = {
    "n": fw.Count(),
    "total": fw.Sum("v"),
    "first": fw.First("s"),
    "uv": fw.HyperLogLog("s"),
    "mean": fw.Mean("v"),
    "last": fw.Last("s"),
    "low": fw.Min("v"),
}


@pytest.mark.parametrize("deltas", [False, True])
@pytest.mark.parametrize("kind", WINDOWS)
@pytest.mark.parametrize("seed", variants(range(3), 0))
def test_added_aggregates_begin_empty_and_the_others_go_on(kind, seed, deltas):
    dice = random.Random(seed)
    names = list(ALL)
    kept = [name for name in names if dice.random() < 0.5] or ["total"]
    dice.shuffle(names)
    base = WINDOWS[kind].allowed_lateness(12, coalesce=True)  # one firing for each window and call
    first = base.aggregate(**{name: ALL[name] for name in names if name in kept})
    second = base.aggregate(**{name: ALL[name] for name in names})
    before, chunks, now = run_on(dice, first, deltas)
    after = restored(second, chunks, migrate=ADDED)
    # The old ones go on as if nothing had happened. The new ones are as in a stream that begins now.
    fresh = base.aggregate(**{name: ALL[name] for name in names}).open(schema=SCHEMA)
    fresh.advance_watermark(before.watermark)
    again = None
    for step in range(12):
        call = ("advance_watermark", now - 15) if step % 2 == 0 else ("process", some(dice, now))
        found, old, new = (getattr(stream, call[0])(call[1]).main for stream in (after, before, fresh))
        assert results(fw.Result(found.select(old.column_names), *[pa.table({})] * 2)) == results(
            fw.Result(old, *[pa.table({})] * 2)
        )
        if kind in ("tumbling", "sliding"):
            bounds = ["k", "window_start", "window_end"]
            begun = {tuple(row[name] for name in bounds): row for row in new.to_pylist()}
            for row in found.to_pylist():
                key = tuple(row[name] for name in bounds)
                for name in set(names) - set(kept):
                    empty = 0 if name in ("n", "uv") else None
                    assert row[name] == (begun[key][name] if key in begun else empty), name
        after._check_invariants()
        if step == 4:
            again = [after.snapshot()]
        elif again:
            again.append(after.delta())
        now += 5
    assert results(restored(second, again).advance_watermark(10_000)) == results(after.advance_watermark(10_000))


class Other(fw.AggregateFunction):
    create_accumulator = int

    def add(self, value, accumulator):
        return accumulator + value.v

    def get_result(self, accumulator):
        return accumulator

    def merge(self, a, b):
        return a + b


COUNTED = WINDOWS["tumbling"].allowed_lateness(20).aggregate(n=fw.Count(), total=fw.Sum("v"))
REFUSED = {
    "shorter lateness": (COUNTED.allowed_lateness(10), r"allowed_lateness was 20 ms, is 10 ms; only a longer one"),
    "other size": (
        COUNTED.window(fw.TumblingEventTimeWindows.of(20)),
        r"window was Tumbling.*\(size_ms=10, .*, is Tumbling",
    ),
    "other windows": (COUNTED.window(fw.SlidingEventTimeWindows.of(10, 5)), "window was Tumbling.*, is Sliding"),
    "removed": (
        COUNTED.aggregate(n=fw.Count()),
        r"aggregate total=Sum\(.*\) is missing; migrate='removed aggregates' drops it, 'renamed OLD to NEW' gives",
    ),
    "changed": (COUNTED.aggregate(n=fw.Count(), total=fw.Max("v")), r"aggregate total was Sum\(.*\) of int64, is Max"),
    "renamed": (
        COUNTED.aggregate(m=fw.Count(), total=fw.Sum("v")),
        r"aggregate m=.* is new.*aggregate n=.* is missing",
    ),
    "other keys": (dataclasses.replace(COUNTED, keys=("k", "s")), "key_by was 'k', is 'k', 's'"),
    "other time": (COUNTED.event_time("v"), "event_time was 't', is 'v'"),
    "a trigger": (COUNTED.trigger(fw.CountTrigger.of(2)), "trigger was not given, is CountTrigger"),
    "pane info": (COUNTED.with_pane_info(), "with_pane_info was not given, is given"),
    "a python aggregate": (
        COUNTED.aggregate(Other(), n=fw.Count(), total=fw.Sum("v"), output="other bigint"),
        "aggregate was given, is .*Other",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
@pytest.mark.parametrize("migrate", [None, ADDED])
def test_all_else_is_refused(what, migrate):
    spec, says = REFUSED[what]
    if migrate and what == "renamed":
        says = "aggregate n=.* is missing"
    stream = COUNTED.open(schema=SCHEMA)
    stream.process(rows(("a", 5, 1, "")))
    first = stream.snapshot()
    stream.process(rows(("a", 6, 1, "")))
    for chunks in ([first], [first, stream.delta()]):
        with pytest.raises(fw.StateError, match=says):
            spec.open(schema=SCHEMA).restore(chunks, migrate=migrate)


def test_an_added_aggregate_must_be_asked_for():
    stream = COUNTED.open(schema=SCHEMA)
    stream.process(rows(("a", 5, 1, "")))
    more = COUNTED.aggregate(n=fw.Count(), total=fw.Sum("v"), last=fw.First("s"))
    with pytest.raises(fw.StateError, match=r"last=First\(.*\) is new: .* migrate='added aggregates' allows that"):
        restored(more, [stream.snapshot()])
    with pytest.raises(
        fw.SpecError,
        match=r"migrate: must be None, 'added aggregates', 'changed functions', 'removed aggregates', 'wider types' or "
        r"'renamed OLD to NEW', or a set of these, got True",
    ):
        restored(more, [stream.snapshot()], migrate=True)
    with pytest.raises(fw.StateError, match=r"no column.*; if they are new, open the stream with a schema"):
        more.open().restore([stream.snapshot()], migrate=ADDED)
    assert restored(more, [stream.snapshot()], migrate=ADDED).advance_watermark(9).main["last"].to_pylist() == [None]


def test_built_in_ones_beside_python_ones_may_be_added_to_others_only():
    base = WINDOWS["general"]
    alone = base.aggregate(Spread(), output="spread bigint")
    stream = alone.open(schema=SCHEMA)
    stream.process(rows(("a", 5, 1, "")))
    with pytest.raises(fw.StateError, match=r"n=Count.* is new, and there was no built-in one before"):
        restored(base.aggregate(Spread(), n=fw.Count(), output="spread bigint"), [stream.snapshot()], migrate=ADDED)


def test_a_process_function_is_not_taken_for_one_behind_an_aggregate():
    class Of(fw.ProcessWindowFunction):
        def process(self, key, context, elements):
            yield (len(elements),)

    stream = WINDOWS["tumbling"].process(Of(), output="c bigint").open(schema=SCHEMA)
    stream.process(rows(("a", 5, 1, "")))
    behind = WINDOWS["tumbling"].aggregate(n=fw.Count(), then=Of(), output="c bigint")
    with pytest.raises(fw.StateError, match=r"process was .*, is not given now"):
        restored(behind, [stream.snapshot()], migrate=ADDED)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (fw.Variance("v"), fw.StdDev("v")),
        (fw.Sum("v"), fw.Mean("v")),
        (fw.Collect("v"), fw.Collect("v", limit=2)),
    ],
    ids=str,
)
@pytest.mark.parametrize("longer", [0, 50])
@pytest.mark.parametrize("migrate", [None, ADDED])
def test_an_argument_of_an_aggregate_is_part_of_it(before, after, longer: int, migrate: str | None) -> None:
    base = WINDOWS["tumbling"]
    stream = base.aggregate(a=before).open(schema=SCHEMA)
    stream.process(rows(("a", 100, 1, "x")))
    with pytest.raises(fw.StateError, match="aggregate a was"):
        restored(base.allowed_lateness(longer).aggregate(a=after), [stream.snapshot()], migrate=migrate)


def test_several_changes_are_allowed_at_once() -> None:
    def spec(function, **more: fw.Count) -> fw.WindowSpec:
        keyed = BASE.window(fw.TumblingEventTimeWindows.of(10)).trigger(fw.DeltaTrigger.of(5, function))
        return keyed.aggregate(n=fw.Count(), **more)

    stream = spec(lambda a, b: b.v - a.v).open(schema=SCHEMA)
    stream.process(rows(("a", 1, 1, "x")))
    chunks = [stream.snapshot()]
    after = spec(lambda a, b: b.v - a.v + 0, more=fw.Count())
    for migrate in (ADDED, "changed functions", {"added_aggregates"}, ["changed functions"]):
        with pytest.raises(fw.StateError):
            restored(after, chunks, migrate=migrate)
    for both in ({"added_aggregates", "changed_functions"}, (ADDED, "changed functions")):
        assert restored(after, chunks, migrate=both).metrics.state_rows == 1
    with pytest.raises(fw.SpecError, match=r"or a set of these, got \{'other'\}"):
        restored(after, chunks, migrate={"other"})
