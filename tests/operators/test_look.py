"""What the operators of several windows, of rows and of joins say of their windows, held to plain counting."""

import random
from collections import defaultdict

import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.run.planner import plan
from fastwin.run.stream import open_plan
from tests.support.naive import Cumulative, Model, Row, Sliding

HOUR = 3_600_000
KEYED = fw.key_by("k").event_time("ts", unit="ms")
SCHEMA = pa.schema([("k", pa.string()), ("ts", pa.int64()), ("v", pa.int64())])


def rows_of(seed: int, n: int, most: int = 100) -> list[tuple]:
    dice = random.Random(seed)
    return [(dice.choice(["a", "b", None]), dice.randrange(most), dice.randrange(10)) for _ in range(n)]


def table_of(rows: list[tuple]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)


def bounds(row: dict) -> tuple[int, int]:
    return tuple(round(row[name].timestamp() * 1_000) for name in ("window_start", "window_end"))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("lateness", [0, 15])
def test_several_windows(seed: int, lateness: int) -> None:
    """What has not come to the coarser windows yet is counted there as well."""
    windows = {
        "five": (fw.TumblingEventTimeWindows.of(5), Sliding(5, 5)),
        "twenty": (fw.SlidingEventTimeWindows.of(20, 10), Sliding(20, 10)),
        "forty": (fw.CumulativeEventTimeWindows.of(40, 20), Cumulative(40, 20)),
        "seven": (fw.TumblingEventTimeWindows.of(7), Sliding(7, 7)),
    }
    spec = KEYED.windows(**{name: window for name, (window, _) in windows.items()}).allowed_lateness(lateness)
    stream = spec.aggregate(n=fw.Count(), s=fw.Sum("v")).open(schema=SCHEMA)
    models = {name: Model(model, [("count", None), ("sum", 0)], lateness) for name, (_, model) in windows.items()}
    dice = random.Random(seed)
    for step in range(6):
        rows = rows_of(10 * seed + step, dice.randrange(12), 60 + 10 * step)
        stream.process(table_of(rows))
        watermark = dice.randrange(20 * step + 1)
        stream.advance_watermark(watermark)
        wanted = set()
        for name, model in models.items():
            model.batch([Row(i, key, time, (value,)) for i, (key, time, value) in enumerate(rows)])
            model.advance(watermark)
            for (key, window), held in model.contents.items():
                total = sum(row.values[0] for row in held)
                fires = None if window.end - 1 <= model.watermark else window.end - 1
                wanted.add((name, key, *window, len(held), total, fires))
        found = stream.inspect()
        times = found["fires_at"].cast(pa.int64()).to_pylist()
        got = {
            (row["window"], row["k"], *bounds(row), row["n"], row["s"], at)
            for row, at in zip(found.to_pylist(), times, strict=True)
        }
        assert got == wanted
        assert found.num_rows == len(wanted) == stream.inspect().num_rows


def test_calendar_windows() -> None:
    days = fw.CalendarEventTimeWindows.sliding("2 days", "1 day", time_zone="Europe/Berlin")
    spec = KEYED.window(days).aggregate(n=fw.Count())
    first = 1_774_652_400_000  # 2026-03-28 00:00 in Berlin; the day after has 23 hours
    times = [first + HOUR * hour for hour in (1, 30, 47, 60)]
    stream = spec.open(schema=SCHEMA)
    stream.process(table_of([("a", time, 0) for time in times]))
    wanted = defaultdict(int)
    for time in times:
        for window in days.assign_windows(None, time, None):
            wanted[window] += 1
    assert {bounds(row): row["n"] for row in stream.inspect().to_pylist()} == dict(wanted)
    assert str(stream.inspect().schema.field("window_end").type) == "timestamp[ms, tz=Europe/Berlin]"


@pytest.mark.parametrize("seed", range(4))
def test_rows_that_are_kept(seed: int) -> None:
    rows = rows_of(seed, 40, 50)
    windows = fw.SlidingEventTimeWindows.of(20, 10)
    top, last = KEYED.window(windows).top(2, by="v"), KEYED.window(windows).deduplicate(keep="last")
    held = defaultdict(list)
    for key, time, value in rows:
        for window in windows.assign_windows(None, time, None):
            if window.end - 1 > 17:
                held[key, *window].append((time, value))
    for spec in (top, last):
        stream = spec.open(schema=SCHEMA)
        stream.process(table_of(rows))
        stream.advance_watermark(17)
        found = stream.inspect().to_pylist()
        assert {(row["k"], *bounds(row)): row["rows"] for row in found} == {
            key: len(some) for key, some in held.items()
        }
        ends = {(row["k"], *bounds(row)): row["results"] for row in found}
        fired = stream.advance_watermark(fw.MAX_TIMESTAMP).main.to_pylist()
        given = defaultdict(list)
        for row in fired:
            given[row["k"], *bounds(row)].append({"ts": row["ts"], "v": row["v"]})
        assert ends == given


def test_rows_that_were_handed_out() -> None:
    spec = KEYED.window(fw.TumblingEventTimeWindows.of(10)).allowed_lateness(5).deduplicate()
    stream = spec.open(schema=SCHEMA)
    stream.process(table_of([("a", 3, 1), ("a", 4, 1), ("a", 12, 1), ("b", 3, 1)]))
    found = [(row["k"], *bounds(row), row["fired"], row["fires_at"]) for row in stream.inspect().to_pylist()]
    assert sorted(found) == [("a", 0, 10, True, None), ("a", 10, 20, True, None), ("b", 0, 10, True, None)]
    assert sorted(stream.inspect()["gone_at"].cast(pa.int64()).to_pylist()) == [14, 14, 24]
    apart = KEYED.deduplicate(within=10).open(schema=SCHEMA)
    apart.process(table_of([("a", 3, 1), ("a", 4, 1), ("a", 17, 1)]))
    assert sorted(bounds(row) for row in apart.inspect().to_pylist()) == [(3, 13), (17, 27)]


def test_windows_of_a_join() -> None:
    join = fw.window_join(
        fw.key_by("k").event_time("ts"), fw.key_by("k").event_time("ts"), fw.TumblingEventTimeWindows.of(10)
    )
    stream = join.open(schemas=(SCHEMA, SCHEMA))
    stream.process(left=table_of([("a", 3, 1), ("a", 4, 1), ("b", 12, 1)]), right=table_of([("a", 5, 1)]))
    found = {(row["k"], *bounds(row)): (row["left_rows"], row["right_rows"]) for row in stream.inspect().to_pylist()}
    assert found == {("a", 0, 10): (2, 1), ("b", 10, 20): (1, 0)}


def test_a_row_that_was_late_for_a_window_is_not_counted_in_it() -> None:
    left, right = fw.key_by("k").event_time("ts").allowed_lateness(15), fw.key_by("k").event_time("ts")
    stream = fw.window_join(left, right, fw.SlidingEventTimeWindows.of(20, 10)).open(schemas=(SCHEMA, SCHEMA))
    stream.advance_watermark(24)
    stream.process(left=table_of([("a", 8, 1)]), right=table_of([("a", 15, 1)]))
    found = {bounds(row): (row["left_rows"], row["right_rows"]) for row in stream.inspect().to_pylist()}
    assert found == {(0, 20): (1, 0), (10, 30): (0, 1)}


def test_empty_windows_are_not_told_of_before_they_end() -> None:
    spec = KEYED.window(fw.TumblingEventTimeWindows.of(10), fill="empty").aggregate(n=fw.Count())
    stream = spec.open(schema=SCHEMA)
    stream.process(table_of([("a", 3, 1), ("a", 35, 1)]))
    stream.advance_watermark(9)
    assert [(bounds(row), row["n"]) for row in stream.inspect().to_pylist()] == [((30, 40), 1)]


def test_what_python_code_keeps_is_text() -> None:
    class Total(fw.AggregateFunction):
        def create_accumulator(self):
            return []

        def add(self, value, accumulator):
            return [*accumulator, value["v"]]

        def get_result(self, accumulator):
            raise AssertionError("no user code runs")

        def merge(self, a, b):
            return a + b

    windows = KEYED.window(fw.TumblingEventTimeWindows.of(10))
    rows = table_of([("a", 3, 1), ("a", 4, 2)])
    stream = windows.aggregate(Total(), output="total bigint").open(schema=SCHEMA)
    stream.process(rows)
    assert stream.inspect()["contents"].to_pylist() == ["[1, 2]"]
    stream = windows.evictor(fw.CountEvictor.of(1)).aggregate(n=fw.Count()).open(schema=SCHEMA)
    stream.process(rows)
    assert stream.inspect()["elements"].to_pylist() == [2]


def test_timers_and_clocks() -> None:
    spec = KEYED.window(fw.TumblingEventTimeWindows.of(10)).trigger(fw.ContinuousProcessingTimeTrigger.of(4))
    stream = spec.allowed_lateness(3).aggregate(n=fw.Count()).open(schema=SCHEMA)
    stream.advance_processing_time(5)
    stream.process(table_of([("a", 3, 1)]))
    (row,) = stream.inspect().to_pylist()
    assert row["timers"] == [{"time": 8, "clock": "clock"}, {"time": 12, "clock": "watermark"}]
    assert (row["fires_by"], round(row["fires_at"].timestamp() * 1_000)) == ("clock", 8)


def test_a_count_waits_for_no_end_where_the_lateness_has_grown() -> None:
    """Before, windows were cleaned at their ends; the timer that stood there is kept, and asks a trigger that counts."""
    counting = KEYED.window(fw.TumblingEventTimeWindows.of(10)).trigger(fw.CountTrigger.of(3))
    stream = counting.aggregate(n=fw.Count()).open(schema=SCHEMA)
    stream.process(table_of([("a", 3, 1)]))
    longer = counting.allowed_lateness(5).aggregate(n=fw.Count()).open(schema=SCHEMA)
    longer.restore(stream.snapshot())
    (row,) = longer.inspect().to_pylist()
    assert (row["fires_at"], row["fires_by"]) == (None, None)
    assert "Its trigger fires every 3 elements: 1 of 3 have come." in str(longer.why("a"))
    assert longer.advance_watermark(9).main.num_rows == 0


def test_a_timeout_takes_the_end_of_a_window_for_one() -> None:
    timeout = fw.ProcessingTimeoutTrigger.of(fw.CountTrigger.of(3), "1 hour")
    for trigger, by, fires in ((timeout, "watermark", 1), (fw.any_of(timeout), "clock", 0)):
        spec = KEYED.window(fw.TumblingEventTimeWindows.of(10)).trigger(trigger).aggregate(n=fw.Count())
        stream = spec.open(schema=SCHEMA)
        stream.process(table_of([("a", 3, 1)]))
        assert stream.inspect()["fires_by"].to_pylist() == [by]
        assert stream.advance_watermark(9).main.num_rows == fires


def test_triggers_that_count_are_all_told_of() -> None:
    counts = fw.after_watermark(early=fw.CountTrigger.of(2), late=fw.CountTrigger.of(3))
    spec = KEYED.window(fw.TumblingEventTimeWindows.of(10)).trigger(counts).allowed_lateness(5)
    stream = spec.aggregate(n=fw.Count()).open(schema=SCHEMA)
    stream.process(table_of([("a", 3, 1)]))
    assert "It also counts elements: 1 of 2 and 0 of 3 have come." in str(stream.why("a"))
    stream.advance_watermark(9)
    stream.process(table_of([("a", 3, 1)]))
    assert "0 of 2 and 1 of 3 have come." in " ".join(str(stream.why("a")).split())


@pytest.mark.parametrize("interval", [4, 100])
def test_the_end_of_time_is_no_time_to_show(interval: int) -> None:
    everything = KEYED.window(fw.GlobalWindows.create())
    stream = everything.trigger(fw.after_watermark()).aggregate(n=fw.Count()).open(schema=SCHEMA)
    stream.process(table_of([("a", 3, 1)]))
    assert stream.inspect()["fires_at"].to_pylist() == [None]
    assert stream.inspect()["fires_by"].to_pylist() == ["watermark"]
    assert "It fires when the watermark reaches the end of time" in str(stream.why("a"))
    at_times = everything.trigger(fw.ContinuousEventTimeTrigger.of(interval)).aggregate(n=fw.Count())
    stream = at_times.open(schema=SCHEMA)
    stream.process(table_of([("a", 3, 1)]))
    assert stream.inspect()["fires_at"].cast(pa.int64()).to_pylist() == [interval]


def test_a_name_that_is_taken_gets_an_underscore() -> None:
    spec = fw.key_by("bytes").event_time("ts", unit="ms").window(fw.TumblingEventTimeWindows.of(10))
    stream = spec.aggregate(fired=fw.Count()).open(schema=pa.schema([("bytes", pa.int64()), ("ts", pa.int64())]))
    names = stream.inspect().column_names
    assert names[:4] == ["bytes", "window_start", "window_end", "fired"]
    assert {"fired_", "bytes_"} < set(names)


def test_a_session_that_may_have_fired_while_it_was_shorter() -> None:
    """With lateness a session that has fired is kept, and may grow. Then the state does not tell whether it has."""
    for lateness, firings in ((20, [None]), (0, [0])):
        spec = KEYED.window(fw.EventTimeSessionWindows.with_gap(5)).allowed_lateness(lateness).aggregate(n=fw.Count())
        stream = spec.open(schema=SCHEMA)
        stream.process(table_of([("a", 30, 0)]))
        assert stream.inspect()["firings"].to_pylist() == [0]
        stream.advance_watermark(35)
        stream.process(table_of([("a", 33, 0)]))
        assert stream.inspect()["fires_at"].cast(pa.int64()).to_pylist() == [37]
        assert stream.inspect()["firings"].to_pylist() == firings


@pytest.mark.parametrize("general", [False, True])
@pytest.mark.parametrize("time", [3, 10])
def test_a_session_that_has_grown_since_it_fired_has_not_fired_as_it_is(time: int, general: bool) -> None:
    spec = fw.key_by("k").event_time("t", unit="ms").window(fw.EventTimeSessionWindows.with_gap(10))
    spec = spec.allowed_lateness(5).aggregate(n=fw.Count())
    tables = [pa.table({"k": [1], "t": [at]}) for at in (0, time)]
    stream = open_plan(plan(spec, tables[0].schema, general=general))
    stream.process(tables[0])
    stream.advance_watermark(9)
    assert stream.inspect()["fired"].to_pylist() == [True]
    stream.process(tables[1])
    assert stream.inspect()["fired"].to_pylist() == [False]
    stream.advance_watermark(time + 9)
    assert stream.inspect()["fired"].to_pylist() == [True]
