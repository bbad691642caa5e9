"""Slices against the windows that cover a time, one by one."""

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from fastwin.core.panes.slices import assign_slices

LIMIT = 2**61
SMALL = st.tuples(st.one_of(st.integers(1, 8), st.integers(1, 60)), st.integers(1, 12), st.integers(0, 11))
EXTREME = st.sampled_from([1, 1000, 86_400_000, LIMIT])
WINDOWS = st.one_of(SMALL, SMALL, st.tuples(EXTREME, EXTREME, st.integers(0, LIMIT))).map(
    lambda sizes: (*sizes[:2], sizes[2] % sizes[1])
)
"""(size, slide, offset)"""
NEAR = st.lists(st.integers(-15, 15), min_size=10, max_size=30)
TIMES = st.one_of(NEAR, NEAR, st.lists(st.one_of(st.integers(-LIMIT, LIMIT), st.sampled_from([-LIMIT, LIMIT]))))


def windows(t: int, size: int, slide: int, offset: int) -> tuple[int, int] | None:
    """The first and the last k of the windows [offset + k * slide, offset + k * slide + size) that cover t."""
    first, last = (t - offset - size) // slide + 1, (t - offset) // slide
    return (first, last) if first <= last else None


@given(TIMES, WINDOWS, st.booleans())
def test_slices_are_the_runs_of_times_in_the_same_windows(
    times: list[int], sizes: tuple[int, int, int], ordered: bool
) -> None:
    if ordered:
        times.sort()
    starts, outside = assign_slices(np.array(times, np.int64), *sizes)
    outside = [False] * len(times) if outside is None else outside.tolist()
    for t, start, is_outside in zip(times, starts.tolist(), outside, strict=True):
        covering = windows(t, *sizes)
        assert start <= t
        assert is_outside == (covering is None)
        if not is_outside:
            assert windows(start, *sizes) == covering, f"{start} and {t} are in other windows"
            assert windows(start - 1, *sizes) != covering, f"the slice of {t} begins before {start}"


@given(TIMES, WINDOWS)
def test_offset_counts_modulo_slide(times: list[int], sizes: tuple[int, int, int]) -> None:
    size, slide, offset = sizes
    assume(offset > 0)
    given_times = np.array(times, np.int64)
    one, outside_one = assign_slices(given_times, size, slide, offset)
    other, outside_other = assign_slices(given_times, size, slide, offset - slide)
    assert one.tolist() == other.tolist()
    assert (outside_one is None) == (outside_other is None)
