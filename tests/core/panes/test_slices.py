import numpy as np
import pytest

from fastwin.core.panes.slices import all_within, assign_slices, extent
from tests.support.kernels import times


def starts(given: np.ndarray, size: int, slide: int, offset: int = 0) -> list[int]:
    found, outside = assign_slices(given, size, slide, offset)
    assert outside is None
    return found.tolist()


LEAST, MOST = -(2**63), 2**63 - 1


@pytest.mark.parametrize(("first", "last"), [(0, 0), (-7, 5), (-(2**61), 2**61), (LEAST, -1), (0, MOST), (5, MOST)])
def test_times_beyond_a_limit_are_seen(first: int, last: int) -> None:
    inside = [first, last, (first + last) // 2]
    assert all_within(times(*inside), first, last)
    assert all_within(times(), first, last)
    for time in (LEAST, first - 1, first - 2**62, first - 2**63, last + 1, last + 2**62, last + 2**63, MOST):
        if LEAST <= time <= MOST and not first <= time <= last:
            assert not all_within(times(*inside, time), first, last), time


@pytest.mark.parametrize(("first", "last"), [(1, 0), (LEAST, 0), (-1, MOST), (LEAST, MOST)])
def test_limits_ascend_and_are_near_enough(first: int, last: int) -> None:
    with pytest.raises(ValueError, match="first, last: must ascend, less than 2"):
        all_within(times(0), first, last)


def test_tumbling_window_is_one_slice() -> None:
    assert starts(times(0, 9, 10, 25), 10, 10) == [0, 0, 10, 20]


def test_times_before_1970_go_down() -> None:
    assert starts(times(-1, -10, -11), 10, 10) == [-10, -10, -20]


def test_offset_moves_the_grid() -> None:
    assert starts(times(2, 3, 12, 13), 10, 10, 3) == [-7, 3, 3, 13]
    assert starts(times(2, 7, 12), 10, 10, -3) == [-3, 7, 7]


def test_slide_that_divides_size_is_the_slice() -> None:
    assert starts(times(0, 9, 10, 59), 60, 10) == [0, 0, 10, 50]


def test_slide_that_does_not_divide_size_gives_two_slices() -> None:
    # Windows [0, 25), [10, 35), ...: starts at 0, 10, ... and ends at 5, 15, ...
    assert starts(times(0, 4, 5, 9, 10, 14, 15, -1, -6), 25, 10) == [0, 0, 5, 5, 10, 10, 15, -5, -10]


def test_elements_between_windows_are_marked() -> None:
    found, outside = assign_slices(times(0, 3, 4, 9, 10, -1, -10), 4, 10, 0)
    assert found.tolist() == [0, 0, 0, 0, 10, -10, -10]
    assert outside.tolist() == [False, False, True, True, False, True, False]


def test_no_marks_where_all_elements_are_in_windows() -> None:
    assert assign_slices(times(0, 13), 4, 10, 0)[1] is None


@pytest.mark.parametrize(
    ("size", "slide", "offset", "says"),
    [
        (0, 10, 0, r"size: must be at least 1 ms and at most 2\*\*61 ms, got 0"),
        (-1, 10, 0, "size: .* got -1"),
        (10, 0, 0, r"slide: must be at least 1 ms and at most 2\*\*61 ms, got 0"),
        (10, 2**61 + 1, 0, "slide: .* got 2305843009213693953"),
        (10, 10, 10, "offset: must be below slide, 10, and above -10, got 10"),
        (10, 10, -10, "offset: .* got -10"),
    ],
)
def test_impossible_windows_are_refused(size: int, slide: int, offset: int, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        assign_slices(times(1), size, slide, offset)


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 700])
def test_the_first_and_the_last_time(n: int) -> None:
    random = np.random.default_rng(n)
    for some in (random.integers(-(2**63), 2**63 - 1, n, endpoint=True), np.arange(n), -np.arange(n)):
        assert extent(some) == (some.min(), some.max())
    with pytest.raises(ValueError, match="at least one"):
        extent(np.zeros(0, np.int64))
