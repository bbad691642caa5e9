"""Calendar windows before their first element, and what a watermark costs them."""

import tracemalloc
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastwin as fw
from fastwin.operators.aligned.calendarslicing import CalendarSlicing

Calendar = fw.CalendarEventTimeWindows
MINUTES = Calendar.cumulative("1 day", "1 minute", time_zone="Europe/Berlin")
MINUTE, DAY = 60_000, 86_400_000
NOW = 1_717_200_000_000  # 2024-06-01T00:00Z
SCHEMA = pa.schema([("ts", pa.int64())])


def spec_of(windows: fw.WindowAssigner) -> fw.WindowSpec:
    return fw.key_by().event_time("ts", unit="ms").window(windows).aggregate(n=fw.Count())


def table(*times: int) -> pa.Table:
    return pa.table({"ts": pa.array(times, pa.int64())})


def ends_of(result: fw.Result) -> list[tuple[int, int]]:
    ends = result.main["window_end"].cast(pa.int64()).to_pylist()
    return list(zip(ends, result.main["n"].to_pylist(), strict=True))


@pytest.mark.parametrize("restored", [False, True])
def test_a_watermark_may_come_before_the_first_row(restored: bool) -> None:
    stream = spec_of(MINUTES).open(schema=SCHEMA)
    assert stream.advance_watermark(NOW - MINUTE).main.num_rows == 0
    if restored:
        chunk = stream.snapshot()
        stream = spec_of(MINUTES).open(schema=SCHEMA)
        stream.restore([chunk])
    assert stream.process(table(NOW, NOW - 2 * MINUTE)).main.num_rows == 0
    assert ends_of(stream.advance_watermark(NOW + MINUTE - 1)) == [(NOW, 1), (NOW + MINUTE, 2)]


@pytest.mark.parametrize("ending", ["last", "first", "top", "aggregate", "fill"])
def test_watermarks_before_the_first_row_change_nothing(ending: str) -> None:
    day = fw.key_by().event_time("ts", unit="ms")
    windows = Calendar.of("1 day", time_zone="Europe/Berlin")
    made: Any = day.window(windows, fill="empty") if ending == "fill" else day.window(windows)
    if ending in ("aggregate", "fill"):
        made = made.aggregate(n=fw.Count())
    else:
        made = made.top(1, by="ts") if ending == "top" else made.deduplicate(ending)
    streams = [made.open(schema=SCHEMA) for _ in range(2)]
    streams[1].advance_watermark(NOW - 3 * DAY)
    streams[1].advance_watermark(NOW - 2 * DAY)
    for stream in streams:
        stream.advance_watermark(NOW - DAY)
    one, other = ([stream.process(table(NOW)), stream.advance_watermark(NOW + 2 * DAY)] for stream in streams)
    assert [result.main.to_pylist() for result in one] == [result.main.to_pylist() for result in other]
    assert sum(result.main.num_rows for result in one) == 1


@settings(max_examples=30)
@given(
    st.sampled_from([
        MINUTES,
        Calendar.of("1 month", time_zone="America/New_York"),
        Calendar.sliding("7 days", "1 day", time_zone="Asia/Beirut"),
        Calendar.cumulative("1 month", "1 day", time_zone="UTC"),
    ]),
    st.integers(-400 * DAY, 400 * DAY),
    st.sampled_from([0, 1, 3 * DAY]),
)  # fmt: skip
def test_the_first_slice_kept_follows_from_the_last_ends(
    windows: fw.CalendarEventTimeWindows, away: int, lateness: int
) -> None:
    slicing = CalendarSlicing(windows)
    slicing.cover(np.array([NOW]))
    bounds = slicing.bounds
    assert bounds is not None
    starts = bounds[(bounds > NOW - 100 * DAY) & (bounds < NOW + 100 * DAY)]
    watermark = NOW + away
    late = slicing.last_ends(starts) - 1 + lateness <= watermark
    assert ((starts < slicing.first_kept(watermark, lateness)) == late).all()


def test_a_watermark_copies_no_table() -> None:
    slicing = CalendarSlicing(MINUTES)
    slicing.cover(np.array([NOW]))
    assert slicing.bounds is not None
    assert len(slicing.bounds) > 500_000
    tracemalloc.start()
    try:
        slicing.first_kept(NOW, 0)
        assert tracemalloc.get_traced_memory()[1] < 10_000
    finally:
        tracemalloc.stop()
