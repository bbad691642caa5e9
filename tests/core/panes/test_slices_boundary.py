import numpy as np
import pytest

from fastwin.core.panes.slices import assign_slices, most_slices, order_by_slice
from tests.support.arrays import refuses_what_is_no_array, takes_read_only
from tests.support.kernels import times

LIMIT = 2**61


def test_empty_arrays_give_empty_arrays() -> None:
    found, outside = assign_slices(times(), 10, 20, 0)
    assert found.tolist() == []
    assert outside is None


def test_times_at_the_limit_have_slices() -> None:
    assert assign_slices(times(-LIMIT, LIMIT), LIMIT, LIMIT, 0)[0].tolist() == [-LIMIT, LIMIT]
    assert assign_slices(times(-LIMIT, LIMIT), 1, 1, 0)[0].tolist() == [-LIMIT, LIMIT]
    assert assign_slices(times(-LIMIT), LIMIT, LIMIT, LIMIT - 1)[0].tolist() == [-LIMIT - 1]


@pytest.mark.parametrize("time", [-LIMIT - 1, LIMIT + 1, -(2**63), 2**63 - 1])
def test_times_beyond_the_limit_are_refused(time: int) -> None:
    with pytest.raises(ValueError, match=rf"times: must be within \+-2\*\*61 ms, got {time}"):
        assign_slices(times(0, time), 10, 10, 0)


@pytest.mark.parametrize("value", [-(2**63), 2**63 - 1])
def test_extreme_lengths_are_refused(value: int) -> None:
    with pytest.raises(ValueError, match=f"size: .* got {value}"):
        assign_slices(times(0), value, 10, 0)
    with pytest.raises(ValueError, match=f"slide: .* got {value}"):
        assign_slices(times(0), 10, value, 0)
    with pytest.raises(ValueError, match=f"offset: .* got {value}"):
        assign_slices(times(0), 10, 10, value)
    with pytest.raises(OverflowError):
        assign_slices(times(0), 2 * value, 10, 0)


def test_read_only_arrays_are_taken() -> None:
    takes_read_only(lambda given: assign_slices(given, 4, 10, 0), times(1, 5))


def test_other_things_than_arrays_are_refused() -> None:
    refuses_what_is_no_array(lambda given: assign_slices(given, 4, 10, 0), times(1, 5))
    with pytest.raises(ValueError, match="dtype"):
        assign_slices(np.array([1.0]), 4, 10, 0)


@pytest.mark.parametrize("slide", [1, 2, 3, 7, 60_000, 2**40 + 1, 2**49, 2**50 - 1, 2**50, 2**50 + 1, 2**55])
@pytest.mark.parametrize("limit", [1, 100, 2**40, 2**50, 2**51, 2**53])
def test_slices_are_those_of_whole_numbers(slide: int, limit: int) -> None:
    """Near zero they are found with doubles."""
    random = np.random.default_rng(slide % 1_000)
    some = random.integers(-limit, limit, 300)
    edges = some[:100] // slide * slide
    given = np.concatenate([some, edges, edges - 1, edges + 1, times(-limit, limit, limit - 1, 1 - limit, 0)])
    for offset in {0, slide // 2, 1 - slide, slide - 1}:
        expected = [time - (time - offset) % slide for time in given.tolist()]
        assert assign_slices(given, slide, slide, offset)[0].tolist() == expected


@pytest.mark.parametrize("slide", [1, 7, 60_000, 2**45])
@pytest.mark.parametrize("n", [0, 1, 511, 5_000])
@pytest.mark.parametrize("count", [1, 300, most_slices])
def test_the_order_by_slices_is_stable(slide: int, n: int, count: int) -> None:
    first = -3 * slide - slide // 2
    given = np.random.default_rng(n).integers(first, first + count * slide, n)
    places, ends = order_by_slice(given, first, slide, count)
    numbers = (given - first) // slide
    assert places.tolist() == np.argsort(numbers, kind="stable").tolist()
    assert ends.tolist() == np.cumsum(np.bincount(numbers, minlength=count)).tolist()


@pytest.mark.parametrize(
    ("given", "first", "slide", "count", "message"),
    [
        ([9], 10, 10, 2, "times: must be within the slices"),
        ([30], 10, 10, 2, "times: must be within the slices"),
        ([LIMIT + 1], 10, 10, 2, "times: must be within"),
        ([10], 10, 0, 2, "slide: must be at least 1"),
        ([10], -LIMIT - 1, 10, 2, "first: must be within"),
        ([10], 10, 10, 0, "count: must be 1 to"),
        ([10], 10, 10, most_slices + 1, "count: must be 1 to"),
    ],
)
def test_an_order_by_slices_that_cannot_be(given: list[int], first: int, slide: int, count: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        order_by_slice(times(*given), first, slide, count)


def test_an_order_by_slices_at_the_limits() -> None:
    assert order_by_slice(times(-LIMIT, LIMIT), -LIMIT, LIMIT, most_slices)[1][:3].tolist() == [1, 1, 2]
    assert order_by_slice(times(LIMIT), LIMIT, LIMIT, 2)[1].tolist() == [1, 1]
