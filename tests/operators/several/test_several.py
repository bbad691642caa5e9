"""Several windows over one stream: who feeds whom, calendars among them, and what is refused."""

import pickle
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import fastwin as fw
from fastwin.operators.several import operator
from fastwin.operators.several.feeding import feeders
from fastwin.run.planner import plan
from fastwin.run.replica import open_replica
from fastwin.state.chunks import decode, encode

Tumbling, Sliding = fw.TumblingEventTimeWindows.of, fw.SlidingEventTimeWindows.of
Calendar = fw.CalendarEventTimeWindows
KEYED = fw.key_by("k").event_time("ts", unit="ms")
DASHBOARD = {
    "minute": Tumbling("1 minute"),
    "five": Tumbling("5 minutes"),
    "hour": Tumbling("1 hour"),
    "day": Calendar.of("1 day", time_zone="Europe/Berlin"),
    "month": Calendar.cumulative("1 month", "1 day", time_zone="Europe/Berlin"),
    "week": Sliding("7 days", "1 hour"),
}


def fed(**windows: fw.WindowAssigner) -> dict[str, str | None]:
    names = list(windows)
    found = feeders(tuple(windows.items()))
    return {name: None if one is None else names[one] for name, one in zip(names, found, strict=True)}


def rows(first_ms: int, span_ms: int, n: int = 5_000) -> pa.Table:
    random = np.random.default_rng(3)
    times = first_ms + random.integers(0, span_ms, n)
    return pa.table({"k": random.integers(0, 5, n), "ts": times, "v": random.integers(0, 9, n)})


def test_the_coarsest_windows_that_fit_feed_the_next() -> None:
    assert fed(**DASHBOARD) == {
        "minute": None, "five": "minute", "hour": "five", "day": "hour", "month": "day", "week": "hour",
    }  # fmt: skip
    assert fed(a=Tumbling(5), b=Tumbling(7)) == {"a": None, "b": None}
    assert fed(b=Tumbling(10), a=Tumbling(10, 5), c=Sliding(15, 10)) == {"b": "c", "a": "c", "c": None}
    assert fed(a=Tumbling(10), b=Tumbling(10)) == {"a": None, "b": "a"}
    # Days in India begin at half past: no hour of UTC lies in one of them.
    india = Calendar.of("1 day", time_zone="Asia/Kolkata")
    assert fed(hour=Tumbling("1 hour"), half=Tumbling("30 minutes"), day=india)["day"] == "half"
    months = Calendar.of("1 month", time_zone="Asia/Kolkata")
    assert fed(month=months, day=india) == {"month": "day", "day": None}


def test_steps_within_a_day_are_fed_by_those_that_fit_since_1970() -> None:
    def by(step: str, zone: str, size: str = "1 day") -> fw.WindowAssigner:
        return Calendar.cumulative(size, step, time_zone=zone)

    assert fed(minute=Tumbling("1 minute"), so_far=by("1 minute", "Europe/Berlin"))["so_far"] == "minute"
    assert fed(second=Tumbling("1 s"), so_far=by("14 s", "Europe/Berlin"))["so_far"] == "second"
    # Days in Singapore began at half past until 1981, those in Monrovia at 44:30 until 1972.
    assert fed(hour=Tumbling("1 hour"), so_far=by("1 hour", "Asia/Singapore"))["so_far"] is None
    assert fed(minute=Tumbling("1 minute"), so_far=by("1 hour", "Africa/Monrovia"))["so_far"] is None
    day = Calendar.of("1 day", time_zone="Asia/Singapore")
    assert fed(day=day, so_far=by("1 hour", "Asia/Singapore")) == {"day": "so_far", "so_far": None}
    # Half days of a month drift from those of a day where clocks change.
    days, months = by("12 hours", "Europe/Berlin"), by("12 hours", "Europe/Berlin", "1 month")
    assert fed(days=days, months=months) == {"days": None, "months": None}
    hours = by("1 hour", "Europe/Berlin")
    assert fed(hours=hours, months=months) == {"hours": None, "months": "hours"}


def test_a_century_is_computed_by_itself() -> None:
    century, year = (Calendar.of(size, time_zone="Europe/Berlin") for size in ("100 years", "1 year"))
    assert fed(century=century, year=year) == {"century": None, "year": None}


def test_state_of_windows_that_fed_each_other_in_another_way_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = KEYED.windows(minute=Tumbling("1 minute"), hour=Tumbling("1 hour")).aggregate(n=fw.Count())
    schema = rows(0, 1, 1).schema
    saved = spec.open(schema=schema).snapshot()
    monkeypatch.setattr(operator, "feeders", lambda windows: [None, None])
    with pytest.raises(fw.StateError, match="its windows 'hour' were fed by 'minute', now by elements"):
        spec.open(schema=schema).restore([saved])


@pytest.mark.parametrize("first_ms", [1_711_670_000_000, 1_729_900_000_000], ids=["March", "October"])
def test_calendars_among_fixed_windows(first_ms: int) -> None:
    """A restart in the middle, where the clocks change; each gives what its own spec gives."""
    table = rows(first_ms, 4 * 86_400_000).sort_by("ts")
    spec = KEYED.windows(**DASHBOARD).aggregate(n=fw.Count(), s=fw.Sum("v"))
    stream = spec.open(watermark="2 hours")
    tables = [stream.process(table.slice(0, 2_000)).main]
    snapshot = stream.snapshot()
    tables.append(stream.process(table.slice(2_000, 1_000)).main)
    restored = spec.open(watermark="2 hours")
    restored.restore([snapshot, stream.delta()])
    tables += [restored.process(table.slice(3_000)).main, restored.advance_watermark(fw.MAX_TIMESTAMP).main]
    assert restored.metrics.state_rows == 0
    found, order = pa.concat_tables(tables), [("k", "ascending"), ("window_end", "ascending")]
    for name, windows in DASHBOARD.items():
        own = KEYED.window(windows).aggregate(n=fw.Count(), s=fw.Sum("v")).run(table).main
        mine = found.filter(pc.equal(found["window"], name)).drop_columns("window").cast(own.schema)
        assert mine.sort_by(order).equals(own.sort_by(order)), name


def test_threads_give_the_same() -> None:
    table = rows(1_711_670_000_000, 86_400_000, 150_000)
    spec = KEYED.windows(minute=DASHBOARD["minute"], hour=DASHBOARD["hour"]).aggregate(n=fw.Count())
    order = [(name, "ascending") for name in ("k", "window", "window_end")]
    assert spec.run(table, threads=2).main.sort_by(order).equals(spec.run(table).main.sort_by(order))


def test_threads_fill_the_same_windows() -> None:
    """Minutes of many elements each, and of few."""
    windows = {"minute": DASHBOARD["minute"], "hour": DASHBOARD["hour"]}
    order = [(name, "ascending") for name in ("k", "window", "window_end")]
    for span in (3_600_000, 30 * 86_400_000):
        table = rows(1_711_670_000_000, span, 240_000)
        table = table.filter(
            pc.equal(pc.bit_wise_and(pc.shift_right(table["ts"], 18), 1), 0)
        )  # four minutes, then none
        assert table.num_rows > 100_000
        spec = KEYED.windows(**windows, fill="empty").aggregate(n=fw.Count(), s=fw.Sum("v"))
        one, two = (spec.run(table, threads=threads).main.sort_by(order) for threads in (1, 2))
        assert two.equals(one)
        assert pc.any(pc.equal(one["n"], 0)).as_py()


def test_columns_and_texts() -> None:
    spec = KEYED.windows(minute=Tumbling("1 minute"), hour=Tumbling("1 hour")).aggregate(n=fw.Count())
    assert spec.run(rows(0, 10)).main.column_names == ["k", "window", "window_start", "window_end", "n"]
    before_input = spec.open().advance_watermark(5).main
    assert before_input.column_names == ["k", "window", "window_start", "window_end", "n"]
    assert "operator: several" in spec.explain()
    assert "minute is fed by elements, hour is fed by minute" in spec.explain()
    assert str(pickle.loads(pickle.dumps(spec))) == str(spec)


def row_by_row(spec: fw.WindowSpec, table: pa.Table, restart: int) -> pa.Table:
    """What a spec gives where the watermark follows each row, with a restart behind so many rows."""
    stream, tables = spec.open(schema=table.schema), []
    for at, time in enumerate(table["ts"].to_pylist()):
        if at == restart:
            snapshot, stream = stream.snapshot(), spec.open(schema=table.schema)
            stream.restore([snapshot])
        tables.append(stream.process(table.slice(at, 1)).main)
        tables.append(stream.advance_watermark(time - 86_400_000).main)
    tables.append(stream.advance_watermark(fw.MAX_TIMESTAMP).main)
    assert stream.metrics.state_rows == 0
    return pa.concat_tables(tables)


@pytest.mark.parametrize("fill", [{}, {"fill": "empty", "longest_gap": "40000 days"}], ids=["plain", "filled"])
@pytest.mark.parametrize("zone", ["Europe/Amsterdam", "Europe/London", "Asia/Singapore", "Africa/Monrovia"])
def test_days_that_began_within_a_minute_or_an_hour_long_ago(zone: str, fill: dict[str, str]) -> None:
    """In Amsterdam clocks were 19 minutes and 32 seconds ahead until 1937; in Singapore days begin at half past."""
    windows = {
        "minute": Tumbling("1 minute"),
        "seven": Tumbling("7 minutes", "3 minutes"),
        "hour": Tumbling("1 hour"),
        "so_far": Calendar.cumulative("1 day", "1 hour", time_zone=zone),
        "day": Calendar.of("1 day", time_zone=zone),
        "month": Calendar.cumulative("1 month", "1 day", time_zone=zone),
    }
    if fill:
        windows = {name: windows[name] for name in ("day", "month")} | {"hours": Tumbling("12 hours", "20 minutes")}
    midnight = -1_577_923_200_000 - 1_172_000  # of 1920, in Amsterdam
    firsts = -6_000_000_000_000, midnight - 2_000, 0, -1_800_000, -2_000, 1_711_670_000_000, 0, midnight - 2_000
    table = pa.concat_tables([rows(first, 4_000, 3) for first in firsts])
    base, aggregates = KEYED.allowed_lateness("40000 days"), {"n": fw.Count(), "s": fw.Sum("v")}
    found = row_by_row(base.windows(**windows, **fill).aggregate(**aggregates), table, restart=7)
    order = [(name, "ascending") for name in ("k", "window_end", "n")]
    for name, assigner in windows.items():
        own = row_by_row(base.window(assigner, **fill).aggregate(**aggregates), table, restart=0)
        mine = found.filter(pc.equal(found["window"], name)).drop_columns("window").cast(own.schema)
        assert mine.sort_by(order).equals(own.sort_by(order)), name


def test_days_that_begin_within_a_minute_are_refused_where_minutes_come_late_as_partial_results() -> None:
    amsterdam = Calendar.of("1 day", time_zone="Europe/Amsterdam")
    spec = KEYED.windows(minute=Tumbling("1 minute"), day=amsterdam).allowed_lateness("2 days").aggregate(n=fw.Count())
    day_ms = -1_577_923_200_000 - 1_172_000
    (batch,) = rows(day_ms - 3_000, 6_000).to_batches()
    plan = fw.plan(spec, batch.schema, coalesce=True)
    feeder = plan.new_feeder()
    assert feeder is not None
    feeder.add(plan.batch(batch, plan.times(batch)))
    stream = open_replica(plan)
    stream.advance_watermark(day_ms + 3_600_000)
    with pytest.raises(fw.SpecError, match="'day' begins in the middle of 'minute'"):
        stream.merge([partial.chunk for partial in feeder.partials()])


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: KEYED.windows(), "windows: at least one is needed"),
        (
            lambda: KEYED.windows(fill=Tumbling(5)),
            "windows: fill= is an option.*another name to tumbling windows of 5 ms",
        ),
        (lambda: KEYED.windows(a=Tumbling(5), longest_gap=Tumbling(9)), "windows: longest_gap= is an option"),
        (lambda: KEYED.windows(a=Tumbling(5), longest_gap=9), "windows: longest_gap= goes with fill='empty' only"),
        (lambda: KEYED.windows(a=Tumbling(5), fill="no"), "windows: fill must be None or 'empty', got 'no'"),
        (lambda: KEYED.windows(a=Tumbling(5), fill="empty", longest_gap=4), "windows: longest_gap must be at least"),
        (
            lambda: (
                KEYED.windows(a=Tumbling(5), fill="empty", longest_gap=9).allowed_lateness(30).aggregate(n=fw.Count())
            ),
            "windows: longest_gap must be at least the allowed lateness, got 9 ms and 30 ms",
        ),
        (lambda: KEYED.windows(a="5 s"), "windows: a must be windows such as TumblingEventTimeWindows.*got '5 s'$"),
        (lambda: KEYED.windows(a=fw.EventTimeSessionWindows.with_gap(5)), "got session windows.*a spec of its own"),
        (lambda: KEYED.windows(a=fw.TumblingProcessingTimeWindows.of(5)), "of processing time; it needs a spec"),
        (lambda: KEYED.windows(a=Sliding(5, 9)), "windows: a leaves gaps"),
        (
            lambda: KEYED.windows(a=Tumbling(5)).trigger(fw.CountTrigger.of(2)),
            "windows: several take built-in.*got trigger every 2",
        ),
        (lambda: KEYED.windows(a=Tumbling(5)).with_pane_info(), r"got with_pane_info\(\)"),
        (lambda: KEYED.windows(a=Tumbling(5)).with_changelog(), r"got with_changelog\(\)"),
        (lambda: KEYED.windows(a=Tumbling(5)).evictor(fw.CountEvictor.of(2)), "got evictor"),
        (lambda: KEYED.windows(a=Tumbling(5)).reduce(lambda a, b: a), "got functions written in Python"),
        (lambda: KEYED.windows(a=Tumbling(5)).aggregate(window=fw.Count()), "the name 'window' is taken"),
        (lambda: fw.key_by("window").event_time("t").windows(a=Tumbling(5)).aggregate(n=fw.Count()), "rename the key"),
        (
            lambda: KEYED.windows(a=Tumbling(5)).aggregate(n=fw.Count()).panes(),
            "only windows of event time that tumble",
        ),
        (
            lambda: fw.plan(KEYED.windows(a=Tumbling(5)).aggregate(n=fw.Count()), rows(0, 9).schema, general=True),
            "general operator runs one kind",
        ),
    ],
)
def test_what_is_refused(make: object, said: str) -> None:
    with pytest.raises(fw.SpecError, match=said):
        make()


def test_state_of_other_windows_is_refused() -> None:
    one, two = (
        KEYED.windows(a=Tumbling("1 minute"), b=b).aggregate(n=fw.Count()) for b in (Tumbling(60), Tumbling(30))
    )
    stream = one.open()
    stream.process(rows(0, 1_000))
    with pytest.raises(fw.StateError, match="window was NamedWindows"):
        two.open().restore(stream.snapshot())


def test_rows_that_an_earlier_version_kept_back_are_not_passed_over():
    spec = (
        fw.key_by("k")
        .event_time("ts")
        .windows(
            hour=fw.TumblingEventTimeWindows.of("1 hour"),
            day=fw.CalendarEventTimeWindows.of("1 day", time_zone="Europe/Berlin"),
        )
        .aggregate(n=fw.Count())
    )
    table = pa.table({"k": ["a"], "ts": pa.array([-7_200_000], pa.int64())})
    for time, taken in ((-7_200_000, False), (7_200_000, True)):
        stream = spec.open()
        stream.process(table.set_column(1, "ts", pa.array([time], pa.int64())))
        again = spec.open()
        again.restore([stream.snapshot()])
        owner = plan(spec, table.schema).config
        chunk = decode(stream.snapshot(), owner.fingerprint, owner.text)
        before = {name: value for name, value in chunk.meta.items() if name != "fed_from"}
        blob = encode(replace(chunk, meta=before), owner.fingerprint)
        again = spec.open()
        if taken:
            again.restore([blob])
            assert again.advance_watermark(fw.MAX_TIMESTAMP).main["n"].to_pylist() == [1, 1]
            continue
        with pytest.raises(fw.StateError, match="an earlier version has kept rows of 'hour' back from before 1970"):
            again.restore([blob])
