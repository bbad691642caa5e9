import pickle

import numpy as np
import pytest

from fastwin.core.timers import TimerHeap
from tests.boundary.arrays import refuses_what_is_no_array, takes_read_only
from tests.kernels import ids, times

LOW, TOP = -(2**63), 2**63 - 1


def popped(heap: TimerHeap, time: int) -> list[tuple[int, int, int]]:
    return list(zip(*(column.tolist() for column in heap.pop_until(time)), strict=True))


def test_empty_arrays_register_nothing() -> None:
    heap = TimerHeap()
    assert heap.register_many(times(), ids(), times()) == 0
    assert len(heap) == 0


def test_extremes_sort() -> None:
    heap = TimerHeap()
    given = [(LOW, 2**31 - 1, TOP), (TOP, 0, LOW), (LOW, 0, LOW), (TOP, 0, TOP), (0, 0, 0), (-1, 5, -1)]
    heap.register_many(*(np.array(column, kind) for column, kind in zip(zip(*given, strict=True), "qiq", strict=True)))
    assert popped(heap, LOW) == [(LOW, 0, LOW), (LOW, 2**31 - 1, TOP)]
    assert heap.peek() == -1
    assert popped(heap, TOP) == [(-1, 5, -1), (0, 0, 0), (TOP, 0, LOW), (TOP, 0, TOP)]


@pytest.mark.parametrize("n", [1, 63, 64, 65, 255, 256, 257, 1000])
def test_blocks_of_any_length_are_sorted(n: int) -> None:
    rng = np.random.default_rng(n)
    given = rng.integers(LOW, TOP, n), rng.integers(0, 2**31, n).astype(np.int32), rng.integers(LOW, TOP, n)
    heap = TimerHeap()
    assert heap.register_many(*given) == n
    heap._check()
    assert popped(heap, TOP) == sorted(zip(*(column.tolist() for column in given), strict=True))


def test_read_only_arrays_are_taken() -> None:
    heap = TimerHeap()
    heap.register_many(times(1, 2), ids(0, 0), times(0, 0))
    takes_read_only(heap.register_many, times(1, 2), ids(0, 0), times(0, 0))


def test_other_things_than_arrays_are_refused() -> None:
    heap = TimerHeap()
    refuses_what_is_no_array(heap.register_many, times(1, 2), ids(0, 0), times(0, 0))
    assert len(heap) == 0


def test_numbers_out_of_range_are_refused() -> None:
    heap = TimerHeap()
    for arguments in ((TOP + 1, 0), (0, 2**31), (0, 0, TOP + 1)):
        with pytest.raises(OverflowError):
            heap.register(*arguments)
        with pytest.raises(OverflowError):
            heap.delete(*arguments)
    with pytest.raises(OverflowError):
        heap.pop_until(TOP + 1)
    with pytest.raises(TypeError):
        heap.register(None, 0)


def test_deleting_a_negative_key_finds_nothing() -> None:
    heap = TimerHeap()
    heap.register(0, 0)
    assert heap.delete(0, -1) is False
    heap._check()


def test_state_does_not_leave_by_pickle() -> None:
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(TimerHeap())
