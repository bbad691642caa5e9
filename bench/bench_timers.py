"""Timers as the general operator holds them: an ordered set of (time, key, namespace), added and popped one by one."""

import heapq

import numpy as np

from bench.race import Contender, Entry, Unavailable, Works, need
from bench.scale import Scale, amount
from fastwin.core.timers.timerqueue import TimerQueue

WORKS = Works()
LAST = 2**62
Timer = tuple[int, int, int]


def _timers(n: int, distinct: int | None = None) -> list[Timer]:
    """Returns n timers at random; distinct: how many different ones, None: all."""
    random = np.random.default_rng(7)
    times = random.integers(0, 3_600_000, n)
    keys = random.permutation(n)  # so that all are different
    namespaces = random.integers(0, 4, n)
    if distinct is not None:
        chosen = random.integers(0, distinct, n)
        times, keys, namespaces = times[chosen], keys[chosen], namespaces[chosen]
    return list(zip(times.tolist(), keys.tolist(), namespaces.tolist(), strict=True))


def _added(timers: list[Timer]) -> TimerQueue:
    queue = TimerQueue()
    add = queue.add
    for time, key, namespace in timers:
        add(time, key, namespace)
    return queue


def _popped(queue: TimerQueue, until: int) -> list[Timer]:
    pop, found = queue.pop, []
    while (timer := pop(until)) is not None:
        found.append(timer)
    return found


class Plain:
    """heapq alone: it keeps duplicates and cannot delete."""

    def __init__(self) -> None:
        self.heap: list[Timer] = []

    def register_all(self, timers: list[Timer]) -> "Plain":
        push, heap = heapq.heappush, self.heap
        for timer in timers:
            push(heap, timer)
        return self

    def pop_until(self, time: int) -> list[Timer]:
        pop, heap, found = heapq.heappop, self.heap, []
        while heap and heap[0][0] <= time:
            found.append(pop(heap))
        return found


class Deduplicating(Plain):
    """heapq beside a set: duplicates count once, and what was deleted is passed over when it is popped."""

    def __init__(self) -> None:
        super().__init__()
        self.live: set[Timer] = set()

    def register_all(self, timers: list[Timer]) -> "Deduplicating":
        push, heap, live = heapq.heappush, self.heap, self.live
        for timer in timers:
            if timer not in live:
                live.add(timer)
                push(heap, timer)
        return self

    def delete_all(self, timers: list[Timer]) -> "Deduplicating":
        discard = self.live.discard
        for timer in timers:
            discard(timer)
        return self

    def pop_until(self, time: int) -> list[Timer]:
        pop, heap, live, found = heapq.heappop, self.heap, self.live, []
        while heap and heap[0][0] <= time:
            timer = pop(heap)
            if timer in live:
                live.remove(timer)
                found.append(timer)
        return found


def _sorted_set(timers: list[Timer]) -> Contender | Unavailable:
    library = need("sortedcontainers")
    if isinstance(library, Unavailable):
        return library

    def run() -> list[Timer]:
        held = library.SortedSet(timers)
        found = list(held.irange((0,), (LAST,)))
        held.clear()
        return found

    return Contender(run, answer=list)


@WORKS.add("timers-one-by-one", "timer", ("heapq", "heapq+set", "sortedcontainers"))
def one_by_one(scale: Scale) -> Entry:
    timers = _timers(scale.items)
    contenders = {
        "fastwin": Contender(lambda: _popped(_added(timers), LAST), answer=list),
        "heapq": Contender(lambda: Plain().register_all(timers).pop_until(LAST), answer=list),
        "heapq+set": Contender(lambda: Deduplicating().register_all(timers).pop_until(LAST), answer=list),
        "sortedcontainers": _sorted_set(timers),
    }
    return Entry(f"{amount(len(timers))} timers added and popped from Python", len(timers), contenders)


@WORKS.add("timers-duplicates", "timer", ("heapq+set",))
def duplicates(scale: Scale) -> Entry:
    timers = _timers(scale.items, scale.items // 10)
    contenders = {
        "fastwin": Contender(lambda: _added(timers), answer=len),
        "heapq+set": Contender(lambda: Deduplicating().register_all(timers), answer=lambda heap: len(heap.live)),
    }
    return Entry("timers added from Python, each 10 times", len(timers), contenders)


@WORKS.add("timers-steps", "timer", ("heapq", "heapq+set"))
def steps(scale: Scale) -> Entry:
    timers = _timers(scale.items)
    watermarks = range(3_600, 3_600_001, 3_600)

    def ours(queue: TimerQueue) -> int:
        return sum(len(_popped(queue, watermark)) for watermark in watermarks)

    def theirs(heap: Plain) -> int:
        return sum(len(heap.pop_until(watermark)) for watermark in watermarks)

    contenders = {
        "fastwin": Contender(ours, setup=lambda: (_added(timers),), answer=int),
        "heapq": Contender(theirs, setup=lambda: (Plain().register_all(timers),), answer=int),
        "heapq+set": Contender(theirs, setup=lambda: (Deduplicating().register_all(timers),), answer=int),
    }
    return Entry("timers popped from Python in 1,000 steps", len(timers), contenders)


@WORKS.add("timers-discard", "timer", ("heapq+set",))
def discard(scale: Scale) -> Entry:
    timers = _timers(scale.items)
    gone = timers[::2]

    def ours(queue: TimerQueue) -> TimerQueue:
        for time, key, namespace in gone:
            queue.discard(time, key, namespace)
        return queue

    contenders = {
        "fastwin": Contender(ours, setup=lambda: (_added(timers),), answer=len),
        "heapq+set": Contender(
            lambda heap: heap.delete_all(gone),
            setup=lambda: (Deduplicating().register_all(timers),),
            answer=lambda heap: len(heap.live),
        ),
    }
    return Entry("half of the timers discarded one by one from Python", len(gone), contenders)


@WORKS.parametrize
def test_timers(race, work, contender):
    race(work, contender)
