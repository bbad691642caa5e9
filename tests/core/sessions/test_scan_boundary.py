import numpy as np
import pytest

from fastwin.core.keys.keyorder import KeyOrder
from fastwin.core.sessions.scan import END_CELL, places_by_time, sessions_of_keys
from tests.support.arrays import refuses_what_is_no_array, takes_read_only
from tests.support.kernels import accumulators, ids, no_columns, times

LIMIT = 2**61


def made(elements: KeyOrder, gap: int = 10, keys: tuple[int, int] = (0, 1), cells: int = END_CELL + 1) -> int:
    """How many sessions some keys have."""
    members = accumulators("int64", cells)
    return len(sessions_of_keys(members, elements, *keys, gap, lambda numbers: no_columns(len(numbers))))


def test_no_elements_make_no_sessions() -> None:
    assert made(KeyOrder(ids(), times(), 0), keys=(0, 0)) == 0
    assert made(KeyOrder(ids(), times(), 3), keys=(1, 3)) == 0
    assert places_by_time(times()).tolist() == []


def test_times_and_gap_at_the_limit() -> None:
    elements = KeyOrder(ids(0, 0, 0), times(LIMIT, -LIMIT, 0), 1)
    assert made(elements, LIMIT) == 1
    assert made(elements, LIMIT - 1) == 3


def test_some_keys() -> None:
    elements = KeyOrder(ids(0, 0, 0, 2, 3, 3, 3, 3), times(0, 50, 90, 0, 0, 20, 40, 60), 4)
    sessions = {(0, 1): 3, (0, 2): 3, (1, 2): 0, (1, 3): 1, (2, 4): 5, (0, 4): 8, (4, 4): 0}
    assert {keys: made(elements, keys=keys) for keys in sessions} == sessions


@pytest.mark.parametrize("time", [-LIMIT - 1, LIMIT + 1])
def test_times_beyond_the_limit_are_refused(time: int) -> None:
    with pytest.raises(ValueError, match=rf"times: must be within \+-2\*\*61 ms, got {time}"):
        made(KeyOrder(ids(0), times(time), 1))


def test_what_does_not_suit_is_refused() -> None:
    elements = KeyOrder(ids(0), times(0), 1)
    for gap in (0, -1, LIMIT + 1):
        with pytest.raises(ValueError, match=f"gap: .* got {gap}"):
            made(elements, gap)
    for keys in ((-1, 1), (0, 2), (1, 0), (2, 2)):
        with pytest.raises(IndexError, match=r"keys: must lie within \[0, 1\)"):
            made(elements, keys=keys)
    with pytest.raises(ValueError, match="cells of head, got 3"):
        made(elements, cells=3)
    with pytest.raises(ValueError, match="column"):
        sessions_of_keys(accumulators("int64", 4), elements, 0, 1, 1, lambda numbers: no_columns(2))
    with pytest.raises(ZeroDivisionError):
        sessions_of_keys(accumulators("int64", 4), elements, 0, 1, 1, lambda numbers: 1 // 0)


def test_the_last_times_there_are() -> None:
    first, last = -(2**63), 2**63 - 1
    assert places_by_time(times(last, first, 0, last)).tolist() == [2, 0, 1, 3]
    assert places_by_time(times(last, last - 1, last)).tolist() == [1, 0, 2]


def test_arrays() -> None:
    takes_read_only(places_by_time, times(1))
    refuses_what_is_no_array(places_by_time, times(2, 1))
    takes_read_only(lambda at: made(KeyOrder(ids(0, 0), at, 1)), np.array([3, 4]))
