import numpy as np
import pytest

from fastwin.core.memory.gather import put, take
from tests.support.arrays import refuses_what_is_no_array, takes_read_only
from tests.support.kernels import times


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 128, 1_000])
def test_values_taken_and_put_out_of_order(n: int) -> None:
    places = np.random.default_rng(n).permutation(n)
    values = np.arange(n, dtype=np.int64) * 7 - 3
    assert take(values, places).tolist() == take(values, places.astype(np.int32)).tolist() == values[places].tolist()
    into = np.zeros(n, dtype=np.int64)
    put(into, places, values)
    assert into[places].tolist() == values.tolist()


def test_places_may_repeat_and_be_few() -> None:
    assert take(times(5, 6), times(1, 1, 0, 1)).tolist() == [6, 6, 5, 6]
    into = times(0, 0, 0)
    put(into, times(2, 2), times(8, 9))
    assert into.tolist() == [0, 0, 9]


@pytest.mark.parametrize("place", [-1, 2, 2**62, -(2**63)])
def test_places_that_are_not_there_are_refused(place: int) -> None:
    into = times(1, 2)
    with pytest.raises(IndexError, match=f"places: must be at least 0 and below 2, got {place}"):
        take(times(5, 6), times(0, place))
    with pytest.raises(IndexError, match="places: must be at least 0 and below 2, got"):
        take(times(5, 6), np.array([0, -1 if place < 0 else 2], np.int32))
    with pytest.raises(IndexError, match=f"places: must be at least 0 and below 2, got {place}"):
        put(into, times(0, place), times(8, 9))
    assert into.tolist() == [1, 2]


def test_nothing_can_be_taken_from_nothing() -> None:
    with pytest.raises(IndexError, match="below 0, got 0"):
        take(times(), times(0))


def test_as_many_values_as_places() -> None:
    with pytest.raises(ValueError, match="values: needs 2 values"):
        put(times(0, 0), times(0, 1), times(1))


def test_arrays() -> None:
    takes_read_only(take, times(3, 4), times(1, 0))
    takes_read_only(lambda places, values: put(times(0, 0), places, values), times(1, 0), times(3, 4))
    refuses_what_is_no_array(lambda values: take(values, times(1, 0)), times(3, 4))
    places = times(1, 0)
    for bad in (None, [1, 0], places[::-1], places.reshape(1, -1), places.astype(">i8"), places.astype(np.float64)):
        with pytest.raises((TypeError, ValueError)):
            take(times(3, 4), bad)
    refuses_what_is_no_array(lambda places, values: put(times(0, 0), places, values), times(1, 0), times(3, 4))
