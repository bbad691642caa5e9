"""TimerHeap in lockstep with a sorted set of tuples."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fastwin.core.timers import TimerHeap

TIMES = st.one_of(st.integers(-20, 20), st.sampled_from([-(2**63), 2**63 - 1, 2**40]))
KEYS = st.one_of(st.integers(0, 3), st.sampled_from([0, 256, 2**31 - 1]))
NAMESPACES = st.one_of(st.integers(-1, 1), st.sampled_from([-(2**63), 2**63 - 1]))
TIMER = st.tuples(TIMES, KEYS, NAMESPACES)
STEP = st.one_of(
    st.tuples(st.just("register"), TIMER),
    st.tuples(st.just("register_many"), st.lists(TIMER, max_size=40)),
    st.tuples(st.just("delete"), TIMER),
    st.tuples(st.just("delete_known"), st.integers(0, 100)),
    st.tuples(st.just("pop"), TIMES),
)


def columns(timers: list[tuple[int, int, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    times, keys, namespaces = zip(*timers, strict=True) if timers else ((), (), ())
    return np.array(times, np.int64), np.array(keys, np.int32), np.array(namespaces, np.int64)


def tuples(found: tuple[np.ndarray, np.ndarray, np.ndarray]) -> list[tuple[int, int, int]]:
    return list(zip(*(column.tolist() for column in found), strict=True))


def step(heap: TimerHeap, model: set, action: str, argument: object) -> None:
    if action == "register":
        assert heap.register(*argument) is (argument not in model)
        model.add(argument)
    elif action == "register_many":
        assert heap.register_many(*columns(argument)) == len(set(argument) - model)
        model.update(argument)
    elif action == "delete":
        assert heap.delete(*argument) is (argument in model)
        model.discard(argument)
    elif action == "delete_known":
        if model:
            timer = sorted(model)[argument % len(model)]
            assert heap.delete(*timer) is True
            model.remove(timer)
    else:
        due = sorted(timer for timer in model if timer[0] <= argument)
        assert tuples(heap.pop_until(argument)) == due
        model.difference_update(due)


@given(st.lists(STEP, max_size=30))
def test_timers_are_an_ordered_set(steps: list) -> None:
    heap, model = TimerHeap(), set()
    for action, argument in steps:
        step(heap, model, action, argument)
        heap._check()
        assert len(heap) == len(model)
        assert heap.peek() == min((timer[0] for timer in model), default=None)
        assert tuples(heap.timers()) == sorted(model)


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 4),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 100)), max_size=12),
)
def test_many_timers_are_sorted_and_popped(seed: int, spread: int, rounds: list[tuple[int, int]]) -> None:
    """Sizes at which timers are sorted by digits, the heap is rebuilt and memory is given back."""
    rng = np.random.default_rng(seed)
    heap, model, now = TimerHeap(), set(), -100
    for count, ahead in rounds:
        times = rng.integers(now - 50, now + 10**spread, count)
        keys = rng.integers(0, 5**spread, count).astype(np.int32)
        heap.register_many(times, keys, times % 3)
        model.update(zip(times.tolist(), keys.tolist(), (times % 3).tolist(), strict=True))
        for timer in sorted(model)[:: spread + 1]:
            step(heap, model, "delete", timer)
            if len(model) % 5 == 0:
                step(heap, model, "register", timer)
        now += ahead
        step(heap, model, "pop", now)
        heap._check()
        assert tuples(heap.timers()) == sorted(model)
    step(heap, model, "pop", 2**63 - 1)
    assert len(heap) == 0
    assert heap.nbytes < 100_000
