import numpy as np
import pytest

from fastwin.core.panes.slices import assign_slices
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
