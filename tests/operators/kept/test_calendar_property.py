"""Rows of calendar windows, around nights in which clocks change: as naive models have them, through restores."""

from collections.abc import Iterator
from datetime import UTC, date, datetime
from functools import cache
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import fastwin as fw
from fastwin.run.planner import plan
from tests.support.kept_models import FirstsModel, RowsModel, last_row, top_rows
from tests.support.kept_steps import SCHEMA, follow, steps
from tests.support.naive import Window
from tests.support.naive_calendar import begins, windows_of

HOUR = 3_600_000
ZONE = "Europe/Berlin"
NIGHT = int(datetime(2024, 3, 31, tzinfo=UTC).timestamp()) * 1000


@cache
def _days() -> list[int]:
    return begins("day", 1, ZONE, date(2024, 3, 31), date(2024, 3, 31))


class Days:
    """Windows of so many days, one beginning on each day; the latest first."""

    def __init__(self, days: int) -> None:
        self.days = days

    def assign(self, time: int) -> Iterator[Window]:
        for window in reversed(windows_of(_days(), self.days, time)):
            yield Window(*window)


def spec_of(days: int, lateness: int) -> fw.WindowSpec:
    windows = fw.CalendarEventTimeWindows.sliding(f"{days} days", "1 day", time_zone=ZONE)
    spec = fw.key_by("k").event_time("ts", unit="ms").window(windows)
    return spec.allowed_lateness(lateness).side_output_late_data()


def moved(given_steps: Any) -> list[tuple[str, Any]]:
    """The steps with hours around the night instead of ms."""
    found: list[tuple[str, Any]] = []
    for kind, what in given_steps:
        if kind == "batch":
            what = [(key, NIGHT + time * HOUR, value) for key, time, value in what]
        elif kind == "watermark":
            what = NIGHT + what * HOUR
        found.append((kind, what))
    return found


@settings(max_examples=30)
@given(
    st.sampled_from(["first", "last", "top"]), st.integers(1, 3), st.sampled_from([0, HOUR, 40 * HOUR]), st.booleans(), steps
)  # fmt: skip
def test_rows_of_days(kind: str, days: int, lateness: int, coalesce: bool, given_steps: Any) -> None:
    spec, windows = spec_of(days, lateness), Days(days)
    if kind == "first":
        spec, model = spec.deduplicate(), FirstsModel(windows, lateness, coalesce)
    elif kind == "last":
        spec, model = spec.deduplicate("last"), RowsModel(windows, last_row, lateness, coalesce)
    else:
        spec, model = spec.top(2, by="v"), RowsModel(windows, top_rows(2), lateness, coalesce)
    bound = plan(spec, SCHEMA, coalesce=coalesce)
    assert bound.operator == ("firsts" if kind == "first" else "rows")
    follow(bound, model, moved(given_steps), end=NIGHT + 10_000 * HOUR)
