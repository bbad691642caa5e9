"""Slices against the windows that cover a time, one by one."""

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from fastwin.core.slices import assign_slices

LIMIT = 2**61
LENGTHS = st.one_of(st.integers(1, 30), st.sampled_from([1000, 86_400_000, LIMIT]))
TIMES = st.one_of(st.integers(-60, 60), st.integers(-LIMIT, LIMIT), st.sampled_from([-LIMIT, LIMIT]))


def windows(t: int, size: int, slide: int, offset: int) -> range:
    """Numbers k of the windows [offset + k * slide, offset + k * slide + size) that cover t."""
    return range((t - offset - size) // slide + 1, (t - offset) // slide + 1)


@given(st.lists(TIMES, max_size=40), LENGTHS, LENGTHS, st.integers(-LIMIT, LIMIT), st.booleans())
def test_slices_are_the_runs_of_times_in_the_same_windows(
    times: list[int], size: int, slide: int, offset: int, ordered: bool
) -> None:
    offset %= slide
    if ordered:
        times.sort()
    starts, outside = assign_slices(np.array(times, np.int64), size, slide, offset)
    outside = [False] * len(times) if outside is None else outside.tolist()
    for t, start, is_outside in zip(times, starts.tolist(), outside, strict=True):
        covering = windows(t, size, slide, offset)
        assert start <= t
        assert is_outside == (len(covering) == 0)
        if not is_outside:
            assert windows(start, size, slide, offset) == covering, f"{start} and {t} are in other windows"
            assert windows(start - 1, size, slide, offset) != covering, f"the slice of {t} begins before {start}"


@given(st.lists(TIMES, max_size=40), LENGTHS, LENGTHS, st.integers(-LIMIT, LIMIT))
def test_offset_counts_modulo_slide(times: list[int], size: int, slide: int, offset: int) -> None:
    offset %= slide
    assume(offset > 0)
    given_times = np.array(times, np.int64)
    one, outside_one = assign_slices(given_times, size, slide, offset)
    other, outside_other = assign_slices(given_times, size, slide, offset - slide)
    assert one.tolist() == other.tolist()
    assert (outside_one is None) == (outside_other is None)
