"""Windows of every family: which ones an element is in, what is refused, and how they are told."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastwin as fw

CLOCK = SimpleNamespace(get_current_processing_time=lambda: 1_007)
TIMES = st.integers(-(10**15), 10**15)


def windows_of(assigner: fw.WindowAssigner, time: int) -> list[tuple[int, int]]:
    return sorted(tuple(window) for window in assigner.assign_windows(None, time, CLOCK))


def naive(time: int, size: int, slide: int, offset: int) -> list[tuple[int, int]]:
    """All windows [k * slide + offset, ... + size) around a time, by trying each k."""
    k = (time - offset) // slide
    starts = [n * slide + offset for n in range(k - size // slide - 2, k + 3)]
    return [(start, start + size) for start in starts if start <= time < start + size]


@given(TIMES, st.integers(1, 50), st.integers(1, 50), st.data())
def test_sliding_windows_cover_the_time(time: int, size: int, slide: int, data: Any) -> None:
    offset = data.draw(st.integers(-slide + 1, slide - 1))
    assert windows_of(fw.SlidingEventTimeWindows.of(size, slide, offset), time) == naive(time, size, slide, offset)


@given(TIMES, st.integers(1, 50), st.data())
def test_tumbling_windows_are_sliding_ones_side_by_side(time: int, size: int, data: Any) -> None:
    offset = data.draw(st.integers(-size + 1, size - 1))
    found = windows_of(fw.TumblingEventTimeWindows.of(size, offset), time)
    assert found == naive(time, size, size, offset)
    assert len(found) == 1


@given(TIMES, st.integers(1, 10), st.integers(1, 6), st.data())
def test_cumulative_windows_share_their_start(time: int, step: int, steps: int, data: Any) -> None:
    size = step * steps
    offset = data.draw(st.integers(-size + 1, size - 1))
    ((start, end),) = naive(time, size, size, offset)
    expected = [(start, until) for until in range(start + step, end + 1, step) if time < until]
    assert windows_of(fw.CumulativeEventTimeWindows.of(size, step, offset), time) == expected


@given(TIMES, st.integers(1, 50))
def test_a_session_begins_as_the_gap_behind_its_element(time: int, gap: int) -> None:
    assert windows_of(fw.EventTimeSessionWindows.with_gap(gap), time) == [(time, time + gap)]


def test_a_dynamic_gap_is_asked_of_each_element() -> None:
    by_column = fw.EventTimeSessionWindows.with_dynamic_gap("gap")
    by_function = fw.EventTimeSessionWindows.with_dynamic_gap(lambda element: timedelta(milliseconds=element["gap"]))
    for assigner in (by_column, by_function):
        assert list(assigner.assign_windows({"gap": 7}, 3, CLOCK)) == [fw.TimeWindow(3, 10)]
    with pytest.raises(fw.SpecError, match="gap must be at least 1 ms, got gap=0"):
        by_column.assign_windows({"gap": 0}, 3, CLOCK)


def test_the_global_window_takes_all() -> None:
    assigner = fw.GlobalWindows.create()
    assert list(assigner.assign_windows(None, 5, CLOCK)) == [fw.GlobalWindow()]
    assert assigner.get_default_trigger() == fw.NeverTrigger()
    assert not assigner.is_event_time()


@pytest.mark.parametrize(
    ("assigner", "window"),
    [
        (fw.TumblingProcessingTimeWindows.of(100), (1_000, 1_100)),
        (fw.SlidingProcessingTimeWindows.of(100, 50), (950, 1_050)),
        (fw.CumulativeProcessingTimeWindows.of(100, 50), (1_000, 1_050)),
        (fw.ProcessingTimeSessionWindows.with_gap(3), (1_007, 1_010)),
    ],
)
def test_processing_time_goes_by_the_clock(assigner: fw.WindowAssigner, window: tuple[int, int]) -> None:
    assert windows_of(assigner, 5)[0] == window
    assert not assigner.is_event_time()
    assert assigner.get_default_trigger() == fw.ProcessingTimeTrigger()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: fw.CumulativeEventTimeWindows.of(10, 3), "max_size must be a multiple of step, got max_size=10 step=3"),
        (lambda: fw.CumulativeEventTimeWindows.of(10, 5, 10), "|offset| must be below max_size, got offset=10 max_size=10"),
        (lambda: fw.SlidingEventTimeWindows.of(10, 5, -5), "|offset| must be below slide, got offset=-5 slide=5"),
        (lambda: fw.TumblingProcessingTimeWindows.of(0), "TumblingProcessingTimeWindows: size must be at least 1 ms, got size=0"),
        (lambda: fw.TumblingEventTimeWindows(2**60), "size must be within"),
        (lambda: fw.TumblingEventTimeWindows(True), "size must be an int of milliseconds, got True"),
        (lambda: fw.TumblingEventTimeWindows(5, "1 s"), "offset must be an int of milliseconds, got '1 s'"),
        (lambda: fw.EventTimeSessionWindows.with_gap("0.5 ms"), "EventTimeSessionWindows: gap: must be whole milliseconds"),
        (lambda: fw.EventTimeSessionWindows.with_dynamic_gap(3), "gap must be the name of a column or a function of a row, got 3"),
    ],
)  # fmt: skip
def test_nonsense_names_owner_argument_and_limit(make: Any, says: str) -> None:
    with pytest.raises(fw.SpecError) as caught:
        make()
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("assigner", "text"),
    [
        (fw.TumblingEventTimeWindows.of("1 hour"), "tumbling windows of 1 h"),
        (fw.TumblingEventTimeWindows.of("1 day", "-8 hours"), "tumbling windows of 1 d, offset -8 h"),
        (fw.TumblingProcessingTimeWindows.of("5 s"), "tumbling windows of 5 s of processing time"),
        (fw.SlidingEventTimeWindows.of("90 min", "15 min"), "sliding windows of 90 min every 15 min"),
        (fw.SlidingEventTimeWindows.of("90 min", "15 min", 1), "sliding windows of 90 min every 15 min, offset 1 ms"),
        (fw.CumulativeEventTimeWindows.of("1 d", "1 h", "2 h"), "cumulative windows of 1 d by 1 h, offset 2 h"),
        (fw.EventTimeSessionWindows.with_gap(1_500), "session windows with a gap of 1500 ms"),
        (fw.EventTimeSessionWindows.with_dynamic_gap("g"), "session windows with a gap from g"),
        (
            fw.ProcessingTimeSessionWindows.with_dynamic_gap(len),
            "session windows with a gap from len of processing time",
        ),
        (fw.GlobalWindows.create(), "one global window"),
    ],
)
def test_assigners_in_words(assigner: fw.WindowAssigner, text: str) -> None:
    assert str(assigner) == text


def test_assigners_take_all_kinds_of_durations() -> None:
    hour = fw.TumblingEventTimeWindows(3_600_000)
    assert fw.TumblingEventTimeWindows.of(timedelta(hours=1)) == fw.TumblingEventTimeWindows.of("60 min") == hour
    assert fw.SlidingEventTimeWindows.of("1 h", timedelta(minutes=1), 5).offset_ms == 5
    assert fw.EventTimeSessionWindows.with_gap(timedelta(seconds=1)).gap_ms == 1_000
    assert fw.TumblingEventTimeWindows.of("0.5 s").size_ms == 500
