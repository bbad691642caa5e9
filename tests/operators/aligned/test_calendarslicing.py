"""Calendar windows before their first element, over years far apart, and what a watermark costs them."""

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


def test_a_watermark_within_a_window_looks_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = spec_of(MINUTES).open(schema=SCHEMA)
    stream.process(table(NOW, NOW + 40_000))
    stream.advance_watermark(NOW)
    asked = []
    monkeypatch.setattr(CalendarSlicing, "first_kept", lambda *given: asked.append(given))
    for time in range(NOW + 1, NOW + MINUTE - 1, 500):
        stream.advance_watermark(time)
    assert not asked
    monkeypatch.undo()
    assert ends_of(stream.advance_watermark(NOW + MINUTE)) == [(NOW + MINUTE, 2)]


FAR = [-59_000_000_000_000, 0, 946_684_800_000, NOW - 400 * DAY, NOW]  # years 100, 1970, 2000, 2023 and 2024


def test_years_far_apart_need_no_steps_between() -> None:
    stream = spec_of(MINUTES).open(watermark="10 s", schema=SCHEMA)
    stream.process(table(NOW))
    assert stream.process(table(0, NOW + 2 * MINUTE)).main.num_rows == 1
    assert stream.metrics.num_late_records_dropped == 1
    slicing = CalendarSlicing(MINUTES)
    slicing.cover(np.array(FAR))
    assert slicing.bounds is not None
    assert len(slicing.bounds) < 6 * 366 * 1_440
    assert (np.diff(slicing.bounds) > 0).all()


far = st.tuples(st.sampled_from(FAR), st.integers(-2 * DAY, 2 * DAY)).map(sum)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.lists(far, max_size=4), far), min_size=1, max_size=5),
    st.sampled_from([0, 3 * DAY, 30_000 * DAY]),
    st.sampled_from([("1 day", "4 hours"), ("1 month", "12 hours")]),
)
def test_years_far_apart_are_those_of_the_general_operator(steps: Any, lateness: int, sizes: tuple[str, str]) -> None:
    windows = Calendar.cumulative(*sizes, time_zone="America/New_York")
    spec = fw.key_by().event_time("ts", unit="ms").window(windows).allowed_lateness(lateness).side_output_late_data()
    own = spec.aggregate(n=fw.Count())
    general = spec.trigger(fw.any_of(fw.EventTimeTrigger())).aggregate(n=fw.Count())
    assert "operator: aligned" in own.explain()
    assert "operator: general" in general.explain()
    streams = [own.open(schema=SCHEMA), general.open(schema=SCHEMA)]
    for times, watermark in [*steps, ([], 2**52)]:
        found = [[stream.process(table(*times)), stream.advance_watermark(watermark)] for stream in streams]
        for one, other in zip(*found, strict=True):
            assert sorted(map(str, one.main.to_pylist())) == sorted(map(str, other.main.to_pylist()))
            assert one.late.to_pylist() == other.late.to_pylist()
        streams[0]._check_invariants()
        saved = streams[0].snapshot()
        streams[0] = own.open(schema=SCHEMA)
        streams[0].restore([saved])
        assert streams[0].metrics.open_windows == streams[1].metrics.open_windows


def test_a_gap_over_years_is_filled() -> None:
    windows = Calendar.cumulative("1 day", "12 hours", time_zone="UTC")
    base = fw.key_by().event_time("ts", unit="ms")
    spec = base.window(windows, fill="empty", longest_gap="5000 days").aggregate(n=fw.Count())
    stream = spec.open(schema=SCHEMA)
    stream.process(table(0, 3_000 * DAY))
    n = stream.advance_watermark(2**52).main["n"].to_pylist()
    assert len(n) == 2 * 3_000 + 2
    assert [at for at, count in enumerate(n) if count] == [0, 1, 6_000, 6_001]
    assert spec.run(table(0, 3_000 * DAY)).main["n"].to_pylist() == n
    assert spec.run(table(0, 9_000 * DAY)).main.num_rows == 4


def test_too_many_years_are_refused() -> None:
    years = np.arange(40) * 3 * 366 * DAY
    with pytest.raises(fw.SpecError, match=r"times of 40 years, from 1970 to 2087, have .* steps, at most 16,777,216"):
        spec_of(MINUTES).run(table(*years.tolist()))
