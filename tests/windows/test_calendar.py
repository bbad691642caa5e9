"""Calendar windows: which ones an element is in, held to a naive model and to what is known of odd days."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastwin as fw
from fastwin.windows import bounds
from fastwin.windows.bounds import bounds_over
from tests.support.naive_calendar import begins, utc_ms, windows_of

Calendar = fw.CalendarEventTimeWindows
ZONES = [
    "Europe/Berlin", "America/New_York", "America/Sao_Paulo", "Asia/Beirut", "Pacific/Apia", "Asia/Kolkata",
    "Australia/Lord_Howe", "Africa/Casablanca", "America/Havana", "America/St_Johns", "UTC",
]  # fmt: skip
UNITS = {"day": ("day", 1), "week": ("week", 1), "month": ("month", 1), "quarter": ("month", 3), "year": ("month", 12)}


def ms_of(*parts: int, zone: str = "UTC") -> int:
    return utc_ms(datetime(*parts, tzinfo=ZoneInfo(zone)).astimezone(UTC))


def assigned(windows: fw.WindowAssigner, time: int) -> list[tuple[int, int]]:
    return [tuple(window) for window in windows.assign_windows(None, time, None)]


def hours(windows: fw.WindowAssigner, time: int) -> float:
    ((start, end),) = assigned(windows, time)
    return (end - start) / 3_600_000


@settings(max_examples=25)
@given(
    zone=st.sampled_from(ZONES),
    unit=st.sampled_from(sorted(UNITS)),
    count=st.sampled_from([1, 2, 3]),
    slides=st.integers(1, 4),
    time=st.integers(ms_of(1935, 1, 1), ms_of(2060, 1, 1)),
)
def test_windows_are_those_of_the_model(zone: str, unit: str, count: int, slides: int, time: int) -> None:
    day = datetime.fromtimestamp(0, UTC).date() + timedelta(milliseconds=time)
    kind, times = UNITS[unit]
    around = timedelta(days=slides * count * times * 31)
    expected = windows_of(begins(kind, count * times, zone, day - around, day + around), slides, time)
    sliding = Calendar.sliding(f"{count * slides} {unit}s", f"{count} {unit}", time_zone=zone)
    assert sorted(assigned(sliding, time)) == expected
    if slides == 1:
        assert assigned(Calendar.of(f"{count} {unit}", time_zone=zone), time) == expected


@pytest.mark.parametrize(
    ("zone", "day", "expected"),
    [
        ("Europe/Berlin", (2024, 3, 31), 23),
        ("Europe/Berlin", (2024, 10, 27), 25),
        ("Australia/Lord_Howe", (2024, 10, 6), 23.5),
        ("America/Sao_Paulo", (2018, 11, 4), 23),  # midnight is skipped: the day begins at one
        ("America/Sao_Paulo", (2018, 2, 17), 25),  # the hour before midnight comes twice
        ("Asia/Beirut", (2022, 3, 27), 23),
        ("Pacific/Apia", (2011, 12, 29), 24),  # the next date is skipped
        ("Pacific/Apia", (2011, 12, 31), 24),
        ("America/Havana", (2023, 11, 5), 25),  # midnight comes twice: the day begins at the first one
        ("Europe/Berlin", (1943, 3, 29), 23),
    ],
)
def test_days_are_as_long_as_they_were(zone: str, day: tuple[int, int, int], expected: float) -> None:
    noon = ms_of(*day, 12, zone=zone)
    assert hours(Calendar.of("1 day", time_zone=zone), noon) == expected
    ((start, _),) = assigned(Calendar.of("1 day", time_zone=zone), noon)
    assert datetime.fromtimestamp(start / 1000, ZoneInfo(zone)).date() == date(*day)


def test_a_skipped_date_counts_in_no_window() -> None:
    week = Calendar.sliding("7 days", "1 day", time_zone="Pacific/Apia")
    starts = [datetime.fromtimestamp(start / 1000, ZoneInfo("Pacific/Apia")).day for start, _ in
              assigned(week, ms_of(2012, 1, 2, 12, zone="Pacific/Apia"))]  # fmt: skip
    assert starts == [2, 1, 31, 29, 28, 27, 26]


@pytest.mark.parametrize(
    ("size", "offset", "time", "start"),
    [
        ("1 year", "3 months", (2024, 2, 1), (2023, 4, 1)),
        ("1 year", "3 months 5 days", (2024, 4, 5), (2023, 4, 6)),
        ("1 quarter", "1 month", (2024, 1, 31), (2023, 11, 1)),
        ("1 month", "-5 days", (2024, 2, 24), (2024, 1, 27)),
        ("1 week", "6 days", (2024, 1, 6), (2023, 12, 31)),
        ("1 week", "-1 day", (2024, 1, 6), (2023, 12, 31)),
        ("1 day", "6 hours", (2024, 10, 28, 5), (2024, 10, 27, 6)),
        ("1 day", "-2 h", (2024, 1, 6, 22), (2024, 1, 6, 22)),
    ],
)
def test_offsets_go_by_the_clock(size: str, offset: str, time: tuple, start: tuple) -> None:
    windows = Calendar.of(size, time_zone="Europe/London", offset=offset)
    assert assigned(windows, ms_of(*time, zone="Europe/London"))[0][0] == ms_of(*start, zone="Europe/London")


def test_cumulative_windows_grow_by_steps_and_are_cut_off() -> None:
    time = ms_of(2024, 2, 25, zone="Europe/Berlin")
    weeks = assigned(Calendar.cumulative("1 month", "1 week", time_zone="Europe/Berlin"), time)
    assert weeks == [(ms_of(2024, 2, 1, zone="Europe/Berlin"), ms_of(2024, *end, zone="Europe/Berlin"))
                     for end in ((3, 1), (2, 29))]  # fmt: skip
    long_day = Calendar.cumulative("1 day", "1 hour", time_zone="Europe/Berlin")
    assert len(assigned(long_day, ms_of(2024, 10, 27, zone="Europe/Berlin"))) == 25
    quarters = assigned(Calendar.cumulative("1 year", "1 quarter", time_zone="Asia/Tokyo"), time)
    assert [(end - start) // 86_400_000 for start, end in quarters] == [366, 274, 182, 91]


def test_all_years_have_windows() -> None:
    days = Calendar.of("1 day", time_zone="Europe/Berlin")
    times = [-62_135_596_800_000, 253_402_300_799_999, 4_000_000_000_000]
    for table in (days.bounds(times[0], times[0]), days.bounds(times[1], times[1])):
        assert (np.diff(table.bounds) >= 23 * 3_600_000).all()
    assert hours(days, ms_of(9999, 3, 28, 12)) == 23
    main = fw.key_by().event_time("t").window(days).aggregate(n=fw.Count()).run(pa.table({"t": times})).main
    assert main["n"].to_pylist() == [1, 1, 1]


def test_numbers_beyond_all_calendars_are_bad_rows() -> None:
    spec = fw.key_by().event_time("t").window(Calendar.of("1 month", time_zone="UTC")).aggregate(n=fw.Count())
    with pytest.raises(fw.BadRowError, match="years 1 to 9999"):
        spec.run(pa.table({"t": [2**60]}))


DAYS = {
    "tumbling": (Calendar.of("1 day", time_zone="UTC"), fw.TumblingEventTimeWindows.of("1 day")),
    "sliding": (
        Calendar.sliding("2 days", "1 day", time_zone="UTC"),
        fw.SlidingEventTimeWindows.of("2 days", "1 day"),
    ),
    "cumulative": (
        Calendar.cumulative("1 day", "1 hour", time_zone="UTC"),
        fw.CumulativeEventTimeWindows.of("1 day", "1 hour"),
    ),
}


@pytest.mark.filterwarnings("ignore:window")
@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("shape", DAYS)
def test_elements_come_decades_before_those_known(shape: str, kept: bool) -> None:
    """In order of time they are not, but the watermark has not come to either."""
    year, found = 365 * 86_400_000, []
    for windows in DAYS[shape]:
        spec = fw.key_by("k").event_time("t", unit="ms").window(windows).allowed_lateness("1 hour")
        stream = (spec.deduplicate("last") if kept else spec.aggregate(n=fw.Count())).open()
        main = [stream.process(pa.table({"k": [1], "t": [30 * year]})).main]
        main.append(stream.advance_watermark(9 * year).main)
        main.append(stream.process(pa.table({"k": [1, 1], "t": [10 * year, 10 * year + 1]})).main)
        for end in (10 * year - 86_400_000, 20 * year, fw.MAX_TIMESTAMP):
            main.append(stream.advance_watermark(end).main)
            stream._check_invariants()
        found.append([row.values() for row in pa.concat_tables(main).to_pylist()])
    assert [list(map(str, row)) for row in found[0]] == [list(map(str, row)) for row in found[1]]
    assert len(found[0]) == {"tumbling": 2, "sliding": 4, "cumulative": 48}[shape]


def test_results_bear_the_zone() -> None:
    spec = fw.key_by().event_time("t").window(Calendar.of("1 day", time_zone="Asia/Tokyo")).aggregate(n=fw.Count())
    start = spec.run(pa.table({"t": [ms_of(2024, 1, 1, 16)]})).main["window_start"]
    assert start.type == pa.timestamp("ms", tz="Asia/Tokyo")
    assert start[0].as_py() == datetime(2024, 1, 2, tzinfo=ZoneInfo("Asia/Tokyo"))


def test_a_zone_may_be_a_zoneinfo() -> None:
    assert Calendar.of("1 day", time_zone=ZoneInfo("Asia/Tokyo")) == Calendar.of("1 day", time_zone="Asia/Tokyo")


def test_the_warning_of_utc_days_names_what_helps() -> None:
    table = pa.table({"t": pa.array([0], pa.timestamp("ms", "Europe/Berlin"))})
    spec = fw.key_by().event_time("t").window(fw.TumblingEventTimeWindows.of("1 day")).aggregate(n=fw.Count())
    with pytest.warns(UserWarning, match=r"CalendarEventTimeWindows.of\('1 day', time_zone='Europe/Berlin'\)"):
        spec.run(table)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Calendar.of("1 hour", time_zone="UTC"), "size: must be a number of days.*'1 hour'"),
        (lambda: Calendar.of(5, time_zone="UTC"), "size: must be a number of days"),
        (lambda: Calendar.of("0 days", time_zone="UTC"), "at least 1 day"),
        (lambda: Calendar.of("1 month", time_zone="Mars/Olympus"), "time_zone: must be.*'Mars/Olympus'$"),
        (lambda: Calendar.of("1 month", time_zone=None), "time_zone: must be.*got None$"),
        (lambda: Calendar.of("1 week", time_zone="UTC", offset="sunday"), "offset: must be such as.*got 'sunday'"),
        (lambda: Calendar.of("1 month", time_zone="UTC", offset="1 month"), "offset must be below 1 month"),
        (lambda: Calendar.of("1 day", time_zone="UTC", offset="1 month"), "offset must be below 1 day, got 1 month"),
        (lambda: Calendar.of("1 month", time_zone="UTC", offset="28 days"), "at most 27 days, got 28 days"),
        (lambda: Calendar.sliding("1 month", "1 day", time_zone="UTC"), "multiple of slide.*size=1 month, slide=1 day"),
        (lambda: Calendar.sliding("10 days", "3 days", time_zone="UTC"), "multiple of slide"),
        (lambda: Calendar.cumulative("1 day", "1 month", time_zone="UTC"), "step must be no longer"),
        (lambda: Calendar.cumulative("1 day", 0, time_zone="UTC"), "step must be at least 1 ms"),
        (
            lambda: Calendar.cumulative("1 day", "10 s", time_zone="UTC"),
            "step must be at least 13225 ms in windows of 1 day.*got step=10 s",
        ),
        (
            lambda: Calendar.cumulative("900 years", "1 minute", time_zone="UTC"),
            "in windows of 900 years.*step=1 min",
        ),
    ],
)
def test_errors_say_what_is_wrong(make: object, said: str) -> None:
    with pytest.raises(fw.SpecError, match=said):
        make()


def test_tables_are_kept_as_far_as_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    hours = Calendar.cumulative("1 day", "1 hour", time_zone="UTC")
    monkeypatch.setattr(bounds, "_tables", {})
    tables = [bounds_over(hours, ms_of(year, 1, 1), ms_of(year, 2, 1)) for year in (2000, 2001)]
    assert bounds_over(hours, ms_of(2000, 1, 1), ms_of(2000, 1, 1)) is tables[0]
    monkeypatch.setattr(bounds, "_MOST", 20_000)
    bounds_over(hours, ms_of(2002, 1, 1), ms_of(2002, 1, 1))
    assert bounds_over(hours, ms_of(2000, 1, 1), ms_of(2000, 1, 1)) is tables[0]
    assert bounds_over(hours, ms_of(2001, 1, 1), ms_of(2001, 1, 1)) is not tables[1]  # asked for least of late


def test_too_many_steps_are_refused() -> None:
    minutes = Calendar.cumulative("1 day", "1 minute", time_zone="UTC")
    with pytest.raises(fw.SpecError, match="steps, at most"):
        bounds_over(minutes, ms_of(1900, 1, 1), ms_of(2100, 1, 1))


def test_a_machine_without_time_zones_is_told_how_to_get_them(monkeypatch) -> None:
    monkeypatch.setattr("fastwin.windows.localclock._has_zones", lambda: False)
    with pytest.raises(fw.SpecError, match="got 'Mars/Phobos'; this machine has no time zone data: pip install tzdata"):
        Calendar.of("1 day", time_zone="Mars/Phobos")
