import numpy as np
import pytest

from fastwin.core.keys.keyorder import KeyOrder
from tests.support.arrays import refuses_what_is_no_array, takes_read_only
from tests.support.kernels import ids, times

LIMIT = 2**61
ENDS = (-(2**63), 2**63 - 1)


def all_of(elements: KeyOrder) -> tuple[list[int], list[int]]:
    numbers, at = elements.slice(0, elements.n)
    return numbers.tolist(), at.tolist()


def test_no_elements() -> None:
    for top in (0, 3):
        elements = KeyOrder(ids(), times(), top)
        ends, begins = elements.session_ends(1)
        assert all_of(elements) == ([], []) and elements.bounds.tolist() == [0] * (top + 1)
        assert elements.parts(5).tolist() == [0]
        assert ends.tolist() == [] and begins.tolist() == [0] * (top + 1)


@pytest.mark.parametrize(("low", "high"), [(0, 2**60 - 1), (0, 2**60), (-LIMIT, LIMIT), ENDS])
def test_times_that_fit_beside_the_numbers_and_times_that_do_not(low: int, high: int) -> None:
    # Four elements take three bits of 63: 60 are left.
    assert all_of(KeyOrder(ids(0, 0, 0, 0), times(high, low, high, low), 1)) == ([1, 3, 0, 2], [low, low, high, high])


def test_keys_do_not_mix() -> None:
    elements = KeyOrder(ids(2, 0, 2, 0), times(5, 9, 4, 9), 4)
    assert all_of(elements) == ([1, 3, 2, 0], [9, 9, 4, 5])
    assert elements.bounds.tolist() == [0, 2, 2, 4, 4]
    assert [part.tolist() for part in elements.slice(1, 3)] == [[3, 2], [9, 4]]


def test_parts_end_between_keys() -> None:
    elements = KeyOrder(ids(0, 0, 0, 2, 3, 3), times(0, 0, 0, 0, 0, 0), 6)
    assert elements.parts(1).tolist() == [0, 1, 3, 4]
    assert elements.parts(0).tolist() == elements.parts(-5).tolist() == elements.parts(1).tolist()
    assert elements.parts(4).tolist() == [0, 3, 6]
    assert elements.parts(100).tolist() == [0, 6]


def test_ends_of_sessions_and_where_each_key_begins() -> None:
    ends, begins = KeyOrder(ids(0, 2, 0, 0), times(0, 7, 21, 10), 4).session_ends(10)
    assert ends.tolist() == [20, 31, 17] and begins.tolist() == [0, 2, 2, 3, 3]
    ends, _ = KeyOrder(ids(0, 0, 0), times(LIMIT, -LIMIT, 0), 1).session_ends(LIMIT)
    assert ends.tolist() == [2 * LIMIT]
    ends, _ = KeyOrder(ids(0, 0, 0), times(LIMIT, -LIMIT, 0), 1).session_ends(LIMIT - 1)
    assert ends.tolist() == [-1, LIMIT - 1, 2 * LIMIT - 1]


@pytest.mark.parametrize("time", [-LIMIT - 1, LIMIT + 1, *ENDS])
def test_sessions_at_times_beyond_the_limit_are_refused(time: int) -> None:
    with pytest.raises(ValueError, match=rf"times: must be within \+-2\*\*61 ms, got {time}"):
        KeyOrder(ids(0, 0), times(0, time), 1).session_ends(1)


@pytest.mark.parametrize("gap", [0, -1, LIMIT + 1])
def test_gaps_that_are_none_are_refused(gap: int) -> None:
    with pytest.raises(ValueError, match=f"gap: .* got {gap}"):
        KeyOrder(ids(0), times(0), 1).session_ends(gap)


@pytest.mark.parametrize("key", [-1, 3])
def test_unknown_ids_are_refused(key: int) -> None:
    with pytest.raises(IndexError):
        KeyOrder(ids(0, key), times(0, 0), 3)


def test_what_does_not_suit_is_refused() -> None:
    with pytest.raises(ValueError, match="times"):
        KeyOrder(ids(0, 0), times(0), 1)
    with pytest.raises(ValueError, match="top: must be at least 0, got -1"):
        KeyOrder(ids(), times(), -1)
    for begin, end in ((-1, 0), (0, 2), (1, 0), (2, 2)):
        with pytest.raises(IndexError, match=r"slice: must lie within \[0, 1\)"):
            KeyOrder(ids(0), times(0), 1).slice(begin, end)


def test_arrays() -> None:
    takes_read_only(lambda a, b: all_of(KeyOrder(a, b, 2)), ids(0, 1), times(3, 4))
    refuses_what_is_no_array(lambda a, b: KeyOrder(a, b, 2), ids(0, 1), times(3, 4))


def test_bounds_stay_as_they_are() -> None:
    elements = KeyOrder(ids(0, 1), times(3, 4), 2)
    with pytest.raises((AttributeError, ValueError)):
        elements.bounds = np.zeros(3, dtype=np.int64)
    with pytest.raises(ValueError, match="read-only"):
        elements.bounds[0] = 99
