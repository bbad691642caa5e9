import pickle
from random import Random

import numpy as np
import pytest

from fastwin.core.timers.timerqueue import TimerQueue

LOW, TOP = -(2**63), 2**63 - 1


def popped(queue: TimerQueue, until: int) -> list[tuple[int, int, int]]:
    return list(iter(lambda: queue.pop(until), None))


def test_extremes_sort() -> None:
    queue = TimerQueue()
    for timer in [(LOW, 2**31 - 1, TOP), (TOP, 0, LOW), (LOW, 0, LOW), (TOP, 0, TOP), (0, 0, 0), (-1, 5, -1)]:
        queue.add(*timer)
    assert popped(queue, LOW) == [(LOW, 0, LOW), (LOW, 2**31 - 1, TOP)]
    assert queue.peek() == -1
    assert popped(queue, TOP) == [(-1, 5, -1), (0, 0, 0), (TOP, 0, LOW), (TOP, 0, TOP)]


@pytest.mark.parametrize("n", [1, 63, 64, 65, 255, 256, 257, 1000])
def test_any_number_of_timers_is_sorted(n: int) -> None:
    rng = np.random.default_rng(n)
    columns = rng.integers(LOW, TOP, n), rng.integers(0, 2**31, n), rng.integers(LOW, TOP, n)
    given = list(zip(*(column.tolist() for column in columns), strict=True))
    queue = TimerQueue()
    for timer in given:
        assert queue.add(*timer)
    queue._check()
    assert popped(queue, TOP) == sorted(given)


@pytest.mark.parametrize(
    "bits", [(0, 0, 0), (20, 17, 20), (32, 31, 0), (0, 31, 32), (33, 31, 0), (1, 0, 63), (64, 0, 0)]
)
@pytest.mark.parametrize("first", [LOW, -1, 0])
def test_timers_are_sorted_whatever_their_fields_span(bits: tuple[int, int, int], first: int) -> None:
    random = Random(sum(bits))
    firsts = [LOW if bits[0] == 64 else first, 0, first]
    ends = [[0, 2**some - 1] for some in bits]  # both are there
    fields = [some + [random.randint(*some) for _ in range(300)] for some in ends]
    given = {
        tuple(start + value for start, value in zip(firsts, row, strict=True)) for row in zip(*fields, strict=True)
    }
    queue = TimerQueue()
    for timer in given:
        queue.add(*timer)
    assert popped(queue, TOP) == sorted(given)


def test_numbers_out_of_range_are_refused() -> None:
    queue = TimerQueue()
    for arguments in ((TOP + 1, 0, 0), (0, 2**31, 0), (0, 0, TOP + 1)):
        for method in (queue.add, queue.discard, queue.contains):
            with pytest.raises(OverflowError):
                method(*arguments)
    with pytest.raises(OverflowError):
        queue.pop(TOP + 1)
    with pytest.raises(TypeError):
        queue.add(None, 0, 0)
    assert len(queue) == 0


def test_state_does_not_leave_by_pickle() -> None:
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(TimerQueue())
