import numpy as np
import pytest

from fastwin.core.sessionscan import END_CELL, by_key, by_time, sessions_by_key
from tests.boundary.arrays import refuses_what_is_no_array, takes_read_only
from tests.kernels import accumulators, ids, no_columns, times

LIMIT = 2**61


def made(bounds: np.ndarray, at: np.ndarray, gap: int = 10, part: int = 100, cells: int = END_CELL + 1) -> list[int]:
    """How many sessions each part has."""
    members = accumulators("int64", cells)
    return [len(rows) for rows in sessions_by_key(members, bounds, at, gap, no_columns(len(at)), part)]


def test_no_elements_make_no_sessions() -> None:
    order, ordered, bounds = by_key(ids(), times(), 0)
    assert order.tolist() == ordered.tolist() == [] and bounds.tolist() == [0]
    assert made(bounds, ordered) == made(times(0, 0, 0), times()) == []
    assert by_time(times()).tolist() == []


def test_times_and_gap_at_the_limit() -> None:
    _, ordered, bounds = by_key(ids(0, 0, 0), times(LIMIT, -LIMIT, 0), 1)
    assert ordered.tolist() == [-LIMIT, 0, LIMIT]
    assert made(bounds, ordered, LIMIT) == [1]
    assert made(bounds, ordered, LIMIT - 1) == [3]


def test_parts_end_between_keys() -> None:
    assert made(times(0, 3, 3, 4, 8), times(0, 50, 90, 0, 0, 20, 40, 60), part=1) == [3, 1, 4]
    assert made(times(0, 3, 3, 4, 8), times(0, 50, 90, 0, 0, 20, 40, 60), part=4) == [4, 4]


@pytest.mark.parametrize("time", [-LIMIT - 1, LIMIT + 1])
def test_times_beyond_the_limit_are_refused(time: int) -> None:
    with pytest.raises(ValueError, match=rf"times: must be within \+-2\*\*61 ms, got {time}"):
        by_key(ids(0), times(time), 1)
    with pytest.raises(ValueError, match=rf"times: must be within \+-2\*\*61 ms, got {time}"):
        made(times(0, 1), times(time))


@pytest.mark.parametrize("key", [-1, 3])
def test_unknown_ids_are_refused(key: int) -> None:
    with pytest.raises(IndexError):
        by_key(ids(0, key), times(0, 0), 3)


def test_what_does_not_suit_is_refused() -> None:
    with pytest.raises(ValueError, match="times"):
        by_key(ids(0, 0), times(0), 1)
    for bounds in (times(0, 1), times(1, 2), times(0, 2, 1), times()):
        with pytest.raises(ValueError, match=r"bounds|offsets"):
            made(bounds, times(0, 0))
    for gap in (0, -1, LIMIT + 1):
        with pytest.raises(ValueError, match=f"gap: .* got {gap}"):
            made(times(0, 1), times(0), gap)
    with pytest.raises(ValueError, match="cells of head, got 3"):
        made(times(0, 1), times(0), cells=3)
    with pytest.raises(ValueError, match="column"):
        list(sessions_by_key(accumulators("int64", 4), times(0, 1), times(0), 1, no_columns(2), 9))


def test_arrays() -> None:
    takes_read_only(lambda a, b: by_key(a, b, 2), ids(0, 1), times(3, 4))
    takes_read_only(by_time, times(1))
    refuses_what_is_no_array(lambda a, b: by_key(a, b, 2), ids(0, 1), times(3, 4))
    refuses_what_is_no_array(by_time, times(2, 1))
