"""Calendar windows on the aligned operator are those of the general one, through saves and lateness, and polars'."""

from datetime import UTC, datetime
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastwin as fw
from fastwin.run.planner import plan
from tests.support.steps import SCHEMA, run_steps, steps_with

Calendar = fw.CalendarEventTimeWindows
HOUR = 3_600_000
AGGREGATES = {"n": fw.Count(), "s": fw.Sum("v"), "hi": fw.Max("v")}
# Around days that were not as others.
MOMENTS = {
    "Europe/Berlin": (2024, 3, 31),
    "America/Sao_Paulo": (2018, 11, 4),
    "Pacific/Apia": (2011, 12, 30),
    "Asia/Beirut": (1969, 12, 31),
}
shapes = st.sampled_from([
    lambda zone: Calendar.of("1 day", time_zone=zone),
    lambda zone: Calendar.of("1 month", time_zone=zone, offset="-1 day 3 hours"),
    lambda zone: Calendar.sliding("3 days", "1 day", time_zone=zone),
    lambda zone: Calendar.sliding("20 days", "1 day", time_zone=zone, offset="6 hours"),
    lambda zone: Calendar.sliding("1 year", "1 month", time_zone=zone),
    lambda zone: Calendar.cumulative("1 week", "1 day", time_zone=zone),
    lambda zone: Calendar.cumulative("1 day", "5 hours", time_zone=zone),
])  # fmt: skip
hours = st.integers(-100, 100)
elements = st.lists(st.tuples(st.sampled_from("abc"), hours, st.integers(-5, 5)), min_size=1, max_size=12)


@given(
    zone=st.sampled_from(sorted(MOMENTS)),
    shape=shapes,
    lateness=st.sampled_from([0, 1, 40 * HOUR]),
    steps=steps_with(elements, hours),
    coalesce=st.booleans(),
)
def test_aligned_equals_general(zone: str, shape: Any, lateness: int, steps: Any, coalesce: bool) -> None:
    moment = int(datetime(*MOMENTS[zone], tzinfo=UTC).timestamp()) * 1000

    def at(hour: int) -> int:
        return moment + hour * HOUR

    moved = [
        ("e", [(key, at(hour), value) for key, hour, value in what]) if kind == "e"
        else (kind, at(what) if kind == "w" else what)
        for kind, what in steps
    ]  # fmt: skip
    spec = (
        fw.key_by("k")
        .event_time("ts", unit="ms")
        .window(shape(zone))
        .allowed_lateness(lateness)
        .side_output_late_data()
    )
    spec = spec.aggregate(**AGGREGATES)
    assert plan(spec, SCHEMA).operator == "aligned"
    expected = run_steps(spec, moved, general=True, coalesce=coalesce, end=at(24 * 500))
    assert run_steps(spec, moved, general=False, coalesce=coalesce, end=at(24 * 500)) == expected


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"])
@pytest.mark.parametrize("every", ["1d", "3d", "1w", "2w", "1mo", "1q", "1y", "7d every 1d"])
def test_polars_has_the_same_over_thirty_years(zone: str, every: str) -> None:
    """In zones whose clocks never leap at midnight: there polars puts hours into other days."""
    random = np.random.default_rng(5)
    first, last = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) * 1000 for year in (1995, 2025))
    times = np.sort(random.integers(first, last, 20_000))
    table = pa.table({"ts": pa.array(times, pa.timestamp("ms", tz="UTC"))})
    words = {"d": "days", "w": "weeks", "mo": "months", "q": "quarters", "y": "years"}
    period, _, slide = every.partition(" every ")
    size, step = (f"{text[0]} {words[text[1:]]}" for text in (period, slide or period))
    spec = fw.key_by().event_time("ts").window(Calendar.sliding(size, step, time_zone=zone)).aggregate(n=fw.Count())
    main = pl.from_arrow(spec.run(table).main).select(ts="window_start", n="n")
    frame = pl.from_arrow(table).with_columns(pl.col("ts").dt.convert_time_zone(zone))
    theirs = frame.group_by_dynamic("ts", every=slide or period, period=period).agg(n=pl.len().cast(pl.Int64))
    if slide:  # polars leaves out windows that begin before the first element's
        main = main.filter(pl.col("ts") >= theirs["ts"][0])
    assert main.sort("ts").equals(theirs.sort("ts"))
