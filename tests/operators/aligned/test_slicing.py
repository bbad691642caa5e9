"""Slices and ends of aligned windows against the list of all windows."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fastwin.core.panes.slices import assign_slices
from fastwin.operators.aligned.slicing import SlidingSlicing
from fastwin.times import MAX_TIMESTAMP, MIN_TIMESTAMP


@st.composite
def slicings(draw) -> SlidingSlicing:
    slide = draw(st.integers(1, 12))
    return SlidingSlicing(draw(st.integers(1, 30)), slide, draw(st.integers(1 - slide, slide - 1)))


def windows(slicing: SlidingSlicing) -> list[tuple[int, int]]:
    starts = [k * slicing.slide + slicing.offset for k in range(-300, 300)]
    return [(start, start + slicing.size) for start in starts]


def start_of(slicing: SlidingSlicing, time: int) -> int:
    return int(assign_slices(np.array([time]), slicing.size, slicing.slide, slicing.offset)[0][0])


@given(slicings(), st.integers(-40, 40))
def test_a_slice_belongs_to_the_windows_of_each_of_its_times(slicing: SlidingSlicing, time: int) -> None:
    start = start_of(slicing, time)
    covering = [window for window in windows(slicing) if window[0] <= time < window[1]]
    if covering:
        assert [window for window in windows(slicing) if window[0] <= start < window[1]] == covering
        assert slicing.last_end(start) == covering[-1][1]
        assert slicing.end_after(start) == covering[0][1]
    _, outside = assign_slices(np.array([time]), slicing.size, slicing.slide, slicing.offset)
    assert (outside is not None) == (not covering)


@given(slicings(), st.integers(-40, 40))
def test_at_most_two_slices_a_slide(slicing: SlidingSlicing, time: int) -> None:
    starts = {start_of(slicing, at) for at in range(time, time + slicing.slide)}
    assert len(starts) <= (3 if slicing.size > slicing.slide and slicing.size % slicing.slide else 2)


@given(slicings(), st.integers(-40, 40))
def test_end_after_is_the_first_later_one(slicing: SlidingSlicing, time: int) -> None:
    assert slicing.end_after(time) == min(end for _, end in windows(slicing) if end > time)


@given(slicings(), st.integers(-40, 40), st.integers(-60, 60), st.integers(0, 30))
def test_kept_and_passed_follow_from_the_watermark(
    slicing: SlidingSlicing, time: int, watermark: int, lateness: int
) -> None:
    covering = [window for window in windows(slicing) if window[0] <= time < window[1]]
    if not covering:
        return
    start = start_of(slicing, time)
    late = [end for _, end in covering if end - 1 + lateness <= watermark]
    passed = [end for _, end in covering if end - 1 <= watermark]
    assert (start < slicing.first_kept(watermark, lateness)) == (len(late) == len(covering))
    assert (start < slicing.first_unpassed(watermark)) == bool(passed)
    windows_late = slicing.late_windows(np.array([start]), watermark, lateness)
    assert windows_late.ends.tolist() == sorted(set(passed) - set(late), reverse=True)
    assert (windows_late.ends - windows_late.starts == slicing.size).all()
    assert windows_late.counts.tolist() == [len(windows_late.ends)]
    for after in (covering[0][1] - slicing.slide, *passed):
        rest = slicing.late_windows(np.array([start]), watermark, lateness, np.array([after]))
        assert rest.ends.tolist() == [end for end in windows_late.ends.tolist() if end > after]


@given(slicings(), st.integers(0, 2**53))
def test_bounds_stay_in_int64_at_both_ends_of_time(slicing: SlidingSlicing, lateness: int) -> None:
    for watermark in (MIN_TIMESTAMP, MIN_TIMESTAMP + 1, -(2**61), 2**61, MAX_TIMESTAMP - 1, MAX_TIMESTAMP):
        for bound in (slicing.first_kept(watermark, lateness), slicing.first_unpassed(watermark)):
            assert MIN_TIMESTAMP <= bound <= MAX_TIMESTAMP
    assert slicing.first_kept(MIN_TIMESTAMP, lateness) == MIN_TIMESTAMP
