import numpy as np
import pytest

from fastwin.core.timers import TimerHeap
from tests.kernels import ids, times


def popped(heap: TimerHeap, time: int) -> list[tuple[int, int, int]]:
    return list(zip(*(column.tolist() for column in heap.pop_until(time)), strict=True))


def test_fresh_heap_is_empty() -> None:
    heap = TimerHeap()
    assert len(heap) == heap.nbytes == 0
    assert heap.peek() is None
    assert not heap.delete(1, 2)
    assert popped(heap, 2**63 - 1) == []
    assert [column.dtype for column in heap.timers()] == [np.int64, np.int32, np.int64]
    heap._check()


def test_timers_come_out_in_order() -> None:
    heap = TimerHeap()
    heap.register(5, 1)
    heap.register(-5, 2)
    heap.register(5, 0, 7)
    heap.register(5, 0, -7)
    assert heap.peek() == -5
    assert popped(heap, 4) == [(-5, 2, 0)]
    assert popped(heap, 5) == [(5, 0, -7), (5, 0, 7), (5, 1, 0)]
    assert len(heap) == 0


def test_timer_at_the_time_is_due() -> None:
    heap = TimerHeap()
    heap.register(10, 0)
    assert popped(heap, 9) == []
    assert popped(heap, 10) == [(10, 0, 0)]


def test_registering_twice_keeps_one() -> None:
    heap = TimerHeap()
    assert heap.register(1, 2, 3) is True
    assert heap.register(1, 2, 3) is False
    assert heap.register_many(times(1, 1, 2), ids(2, 2, 2), times(3, 3, 3)) == 1
    assert popped(heap, 9) == [(1, 2, 3), (2, 2, 3)]


def test_deleted_timer_does_not_come_out() -> None:
    heap = TimerHeap()
    heap.register(1, 0)
    heap.register(2, 0)
    assert heap.delete(1, 0) is True
    assert heap.delete(1, 0) is False
    assert heap.peek() == 2
    assert popped(heap, 9) == [(2, 0, 0)]


def test_timer_deleted_and_registered_again_comes_out_once() -> None:
    heap = TimerHeap()
    for _ in range(3):
        heap.register(1, 0)
        heap.delete(1, 0)
    heap.register(1, 0)
    heap._check()
    assert popped(heap, 1) == [(1, 0, 0)]
    assert popped(heap, 1) == []


def test_deleting_does_not_pile_up() -> None:
    heap = TimerHeap()
    heap.register(0, 0)
    for i in range(10_000):
        heap.register(i, 1)
        heap.delete(i, 1)
    assert heap.nbytes < 20_000


def test_memory_is_given_back() -> None:
    heap = TimerHeap()
    heap.register_many(np.arange(100_000), np.zeros(100_000, np.int32), np.zeros(100_000, np.int64))
    peak = heap.nbytes
    popped(heap, 99_990)
    heap._check()
    assert len(heap) == 9
    assert heap.nbytes < peak / 100


def test_timers_lists_and_keeps() -> None:
    heap = TimerHeap()
    heap.register_many(times(3, 1), ids(0, 1), times(0, 0))
    assert [column.tolist() for column in heap.timers()] == [[1, 3], [1, 0], [0, 0]]
    assert len(heap) == 2


def test_negative_key_is_refused() -> None:
    heap = TimerHeap()
    with pytest.raises(ValueError, match="key: not negative, got -1"):
        heap.register(0, -1)
    with pytest.raises(ValueError, match="keys: not negative, got -2"):
        heap.register_many(times(0, 0), ids(1, -2), times(0, 0))
    assert len(heap) == 0


def test_lengths_must_agree() -> None:
    with pytest.raises(ValueError, match="keys: needs 2 values, one for each row, got 1"):
        TimerHeap().register_many(times(0, 0), ids(1), times(0, 0))
    with pytest.raises(ValueError, match="namespaces: needs 2 values, one for each row, got 3"):
        TimerHeap().register_many(times(0, 0), ids(1, 1), times(0, 0, 0))
