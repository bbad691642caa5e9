"""Results bear the zone of the event time, and days of UTC in another zone are warned of."""

import warnings

import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.run.planner import plan

KEYED = fw.key_by("k").event_time("t")
HOUR = 3_600_000
WINDOWS = {
    "tumbling": fw.TumblingEventTimeWindows.of("1 hour"),
    "sliding": fw.SlidingEventTimeWindows.of("2 hours", "1 hour"),
    "sessions": fw.EventTimeSessionWindows.with_gap("1 hour"),
    "global": fw.GlobalWindows.create(),
}


def stamps(zone: str | None) -> pa.Table:
    return pa.table({"k": ["a"], "t": pa.array([1_700_000_000_123], pa.timestamp("ms", zone))})


@pytest.mark.parametrize("pane_info", [False, True])
@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize(
    ("zone", "wanted"),
    [
        (None, "UTC"),
        ("UTC", "UTC"),
        ("Etc/UTC", "UTC"),
        ("+00:00", "UTC"),
        ("America/New_York", "America/New_York"),
        ("+05:30", "+05:30"),
    ],
)
def test_bounds_bear_the_zone_of_the_event_time(zone: str | None, wanted: str, name: str, pane_info: bool) -> None:
    spec = KEYED.window(WINDOWS[name])
    if name == "global":
        spec = spec.trigger(fw.CountTrigger.of(1))
    if pane_info:
        spec = spec.with_pane_info()
    table = stamps(zone)
    main = spec.aggregate(n=fw.Count()).run(table).main
    for bound in ("window_start", "window_end"):
        assert main.schema.field(bound).type == pa.timestamp("ms", tz=wanted)
    if name == "tumbling":
        assert main["window_start"].cast(pa.int64()).to_pylist() == [1_700_000_000_123 // HOUR * HOUR]
    assert plan(spec.aggregate(n=fw.Count()), table.schema).main_schema == main.schema


def test_plain_numbers_are_utc() -> None:
    main = KEYED.window(WINDOWS["tumbling"]).aggregate(n=fw.Count()).run(pa.table({"k": ["a"], "t": [5]})).main
    assert main["window_start"].type == pa.timestamp("ms", tz="UTC")


def test_windows_of_arrival_are_utc() -> None:
    spec = (
        fw.key_by("k").processing_time().window(fw.TumblingProcessingTimeWindows.of("1 hour")).aggregate(n=fw.Count())
    )
    assert spec.run(stamps("Asia/Tokyo")).main["window_start"].type == pa.timestamp("ms", tz="UTC")


@pytest.mark.parametrize("name", ["tumbling", "sessions"])
@pytest.mark.parametrize("pane_info", [False, True])
def test_state_does_not_depend_on_the_zone(name: str, pane_info: bool) -> None:
    spec = KEYED.window(WINDOWS[name])
    spec = (spec.with_pane_info() if pane_info else spec).aggregate(n=fw.Count())
    stream = spec.open(schema=stamps("Asia/Tokyo").schema)
    stream.process(stamps("Asia/Tokyo"))
    again = spec.open(schema=stamps("Europe/Paris").schema)
    again.restore([stream.snapshot()])
    main = again.advance_watermark(fw.MAX_TIMESTAMP).main
    assert main["n"].to_pylist() == [1]
    assert main["window_end"].type == pa.timestamp("ms", tz="Europe/Paris")


DAYS = {
    "tumbling": (fw.TumblingEventTimeWindows.of("1 day"), True),
    "a week": (fw.TumblingEventTimeWindows.of("7 days"), True),
    "sliding by days": (fw.SlidingEventTimeWindows.of("7 days", "1 day"), True),
    "cumulative": (fw.CumulativeEventTimeWindows.of("1 day", "1 hour"), True),
    "moved by an offset": (fw.TumblingEventTimeWindows.of("1 day", "-8 hours"), False),
    "sliding by minutes": (fw.SlidingEventTimeWindows.of("1 day", "3 minutes"), False),
    "36 hours": (fw.TumblingEventTimeWindows.of("36 hours"), False),
    "sessions": (fw.EventTimeSessionWindows.with_gap("1 day"), False),
}


@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Tokyo"])
@pytest.mark.parametrize("name", DAYS)
@pytest.mark.parametrize("threads", [1, 2])
def test_days_of_another_zone_are_warned_of(name: str, zone: str | None, threads: int) -> None:
    assigner, warns = DAYS[name]
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        KEYED.window(assigner).aggregate(n=fw.Count()).run(stamps(zone), threads=threads)
    if warns and zone == "Asia/Tokyo":
        (told,) = found
        assert "begin at midnight in UTC, but event_time 't' is in Asia/Tokyo" in str(told.message)
    else:
        assert not found


@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Tokyo"])
@pytest.mark.parametrize("name", [name for name in DAYS if name != "sessions"])
def test_joins_warn_of_days_of_another_zone_and_have_bounds_of_utc(name: str, zone: str | None) -> None:
    assigner, warns = DAYS[name]
    join = fw.window_join(fw.key_by("k").event_time("at"), KEYED, assigner)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        main = join.run(stamps(None).rename_columns(["k", "at"]), stamps(zone)).main
    assert main["window_start"].type == pa.timestamp("ms", tz="UTC")
    if warns and zone == "Asia/Tokyo":
        (told,) = found
        assert "begin at midnight in UTC, but event_time 't' is in Asia/Tokyo" in str(told.message)
        assert told.filename == __file__
    else:
        assert not found


def test_joins_over_days_of_a_calendar_have_bounds_of_its_zone() -> None:
    join = fw.window_join(KEYED, KEYED, fw.CalendarEventTimeWindows.of("1 day", time_zone="Europe/Paris"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        main = join.run(stamps("Asia/Tokyo"), stamps("Asia/Tokyo")).main
    assert main["window_start"].type == pa.timestamp("ms", tz="Europe/Paris")


@pytest.mark.parametrize(
    "zone", ["GMT", "Etc/GMT", "Etc/UTC", "UCT", "Zulu", "+00:00", "-00:00", "UTC", "Etc/Greenwich", "GMT0"]
)
def test_utc_of_another_name_is_not_warned_of(zone: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan(KEYED.window(DAYS["tumbling"][0]).aggregate(n=fw.Count()), stamps(zone).schema)


def test_times_in_runs_have_their_zone() -> None:
    instants = pa.array([0], pa.timestamp("us", tz="Europe/Berlin"))
    times = pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int32()), instants)
    spec = fw.key_by("k").event_time("t").window(fw.TumblingEventTimeWindows.of(10)).aggregate(n=fw.Count())
    assert spec.run(pa.table({"k": [1, 2], "t": times})).main.schema.field("window_end").type.tz == "Europe/Berlin"
