"""TimerQueue in lockstep with a set of tuples."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fastwin.core.timers.timerqueue import TimerQueue

Timer = tuple[int, int, int]

TIMES = st.one_of(st.integers(-20, 20), st.sampled_from([-(2**63), 2**63 - 1, 2**40]))
KEYS = st.one_of(st.integers(0, 3), st.sampled_from([0, 256, 2**31 - 1]))
NAMESPACES = st.one_of(st.integers(-1, 1), st.sampled_from([-(2**63), 2**63 - 1]))
TIMER = st.tuples(TIMES, KEYS, NAMESPACES)
CHANGE = st.one_of(
    st.tuples(st.just("add"), TIMER),
    st.tuples(st.just("discard"), TIMER),
    st.tuples(st.just("discard_known"), st.integers(0, 100)),
)
STEP = st.one_of(
    CHANGE,
    st.tuples(st.just("add_many"), st.lists(TIMER, max_size=40)),
    st.tuples(st.just("run"), st.tuples(TIMES, st.lists(CHANGE, max_size=10))),
)


def tuples(found: tuple[np.ndarray, np.ndarray, np.ndarray]) -> list[Timer]:
    return list(zip(*(column.tolist() for column in found), strict=True))


def change(queue: TimerQueue, model: set, action: str, argument: object) -> None:
    if action == "add":
        assert queue.add(*argument) is (argument not in model)
        model.add(argument)
    elif action == "discard":
        assert queue.discard(*argument) is (argument in model)
        model.discard(argument)
    elif model:
        timer = sorted(model)[argument % len(model)]
        assert queue.discard(*timer) is True
        model.remove(timer)


def run(queue: TimerQueue, model: set, until: int, changes: list) -> None:
    """Takes out what is due, with one change after each timer, as a callback would make it."""
    left = iter(changes)
    while True:
        due = min((timer for timer in model if timer[0] <= until), default=None)
        assert queue.pop(until) == due
        if due is None:
            break
        model.remove(due)
        for action, argument in [step for step in [next(left, None)] if step is not None]:
            change(queue, model, action, argument)


@given(st.lists(STEP, max_size=30))
def test_timers_are_an_ordered_set(steps: list) -> None:
    queue, model = TimerQueue(), set()
    for action, argument in steps:
        if action == "run":
            run(queue, model, *argument)
        elif action == "add_many":
            for timer in argument:
                change(queue, model, "add", timer)
        else:
            change(queue, model, action, argument)
        queue._check()
        assert len(queue) == len(model)
        assert queue.peek() == min((timer[0] for timer in model), default=None)
        assert tuples(queue.timers()) == sorted(model)
        assert all(queue.contains(*timer) for timer in model)


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 4),
    st.lists(st.tuples(st.integers(0, 800), st.integers(0, 100)), max_size=8),
)
def test_many_timers_are_sorted_and_taken_out(seed: int, spread: int, rounds: list[tuple[int, int]]) -> None:
    """Sizes at which due timers are sorted at once, the heap is made anew and memory is given back."""
    rng = np.random.default_rng(seed)
    queue, model, now = TimerQueue(), set(), -100
    for count, ahead in rounds:
        times = rng.integers(now - 50, now + 10**spread, count)
        keys = rng.integers(0, 5**spread, count)
        for timer in zip(times.tolist(), keys.tolist(), (times % 3).tolist(), strict=True):
            change(queue, model, "add", timer)
        for timer in sorted(model)[:: spread + 1]:
            change(queue, model, "discard", timer)
            if len(model) % 5 == 0:
                change(queue, model, "add", timer)
        now += ahead
        due = iter(sorted(timer for timer in model if timer[0] <= now))
        assert list(iter(lambda: queue.pop(now), None)) == list(due)  # noqa: B023
        model = {timer for timer in model if timer[0] > now}
        queue._check()
        assert tuples(queue.timers()) == sorted(model)
    assert len(list(iter(lambda: queue.pop(2**63 - 1), None))) == len(model)
    assert len(queue) == 0
    assert queue.nbytes < 100_000
