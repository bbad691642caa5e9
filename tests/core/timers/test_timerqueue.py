import numpy as np
import pytest

from fastwin.core.timers.timerqueue import TimerQueue

Timer = tuple[int, int, int]


def popped(queue: TimerQueue, until: int) -> list[Timer]:
    return list(iter(lambda: queue.pop(until), None))


def filled(*timers: Timer) -> TimerQueue:
    queue = TimerQueue()
    for timer in timers:
        queue.add(*timer)
    return queue


def test_fresh_queue_is_empty() -> None:
    queue = TimerQueue()
    assert len(queue) == queue.nbytes == 0
    assert queue.peek() is None
    assert not queue.contains(1, 2, 0)
    assert not queue.discard(1, 2, 0)
    assert queue.pop(2**63 - 1) is None
    assert [column.dtype for column in queue.timers()] == [np.int64, np.int32, np.int64]
    queue._check()


def test_timers_come_out_in_order() -> None:
    queue = filled((5, 1, 0), (-5, 2, 0), (5, 0, 7), (5, 0, -7))
    assert queue.peek() == -5
    assert popped(queue, 4) == [(-5, 2, 0)]
    assert popped(queue, 5) == [(5, 0, -7), (5, 0, 7), (5, 1, 0)]
    assert len(queue) == 0


def test_timer_at_the_time_is_due() -> None:
    queue = filled((10, 0, 0))
    assert queue.pop(9) is None
    assert queue.pop(10) == (10, 0, 0)


def test_adding_twice_keeps_one() -> None:
    queue = TimerQueue()
    assert queue.add(1, 2, 3) is True
    assert queue.add(1, 2, 3) is False
    assert queue.contains(1, 2, 3)
    assert popped(queue, 9) == [(1, 2, 3)]
    assert not queue.contains(1, 2, 3)


def test_discarded_timer_does_not_come_out() -> None:
    queue = filled((1, 0, 0), (2, 0, 0))
    assert queue.discard(1, 0, 0) is True
    assert queue.discard(1, 0, 0) is False
    assert queue.peek() == 2
    assert popped(queue, 9) == [(2, 0, 0)]


def test_timer_discarded_and_added_again_comes_out_once() -> None:
    queue = TimerQueue()
    for _ in range(3):
        queue.add(1, 0, 0)
        queue.discard(1, 0, 0)
    queue.add(1, 0, 0)
    queue._check()
    assert popped(queue, 1) == [(1, 0, 0)]


def test_discarding_does_not_pile_up() -> None:
    queue = filled((0, 0, 0))
    for i in range(10_000):
        queue.add(i, 1, 0)
        queue.discard(i, 1, 0)
    assert queue.nbytes < 20_000


def test_memory_is_given_back() -> None:
    queue = filled(*((time, 0, 0) for time in range(100_000)))
    peak = queue.nbytes
    assert len(popped(queue, 99_990)) == 99_991
    queue._check()
    assert len(queue) == 9
    assert queue.nbytes < peak / 100


def test_timers_lists_and_keeps() -> None:
    queue = filled((3, 0, 0), (1, 1, 0))
    assert [column.tolist() for column in queue.timers()] == [[1, 3], [1, 0], [0, 0]]
    assert len(queue) == 2


def test_timers_come_and_go_while_due_ones_are_taken_out() -> None:
    queue = filled(*((time, 0, 0) for time in range(3_000)))  # so many that the rest is sorted on the way
    taken = [queue.pop(5_000) for _ in range(1_000)]
    queue.discard(2_000, 0, 0)
    queue.add(1_000, 0, -1)  # before the next one
    queue.add(2_999, 1, 0)
    queue.discard(1_500, 0, 0)
    queue.add(1_500, 0, 0)  # the same again
    taken += popped(queue, 5_000)
    wanted = {(time, 0, 0) for time in range(3_000)} - {(2_000, 0, 0)} | {(1_000, 0, -1), (2_999, 1, 0)}
    assert taken == sorted(wanted)
    queue._check()


def test_negative_key_is_refused() -> None:
    queue = TimerQueue()
    with pytest.raises(ValueError, match="key: not negative, got -1"):
        queue.add(0, -1, 0)
    assert len(queue) == 0
    assert not queue.discard(0, -1, 0)
    queue._check()


def test_sorting_begins_whatever_a_call_passes_over() -> None:
    """Two timers leave the heap in every other call, so their number goes past the one from which sorting pays."""
    queue = filled(*((time, 0, 0) for time in range(2_000)))
    for time in range(0, 2_000, 3):
        queue.discard(time, 0, 0)
    before = queue.nbytes
    found = [queue.pop(5_000) for _ in range(400)]
    assert queue.nbytes > before  # those that are due are in a list of their own
    assert [*found, *popped(queue, 5_000)] == [(time, 0, 0) for time in range(2_000) if time % 3]
    queue._check()
