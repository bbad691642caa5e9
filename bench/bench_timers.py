"""Timers: an ordered set of (time, key, namespace)."""

import heapq

import numpy as np

from bench.race import Bar, Contender, Entry, Unavailable, Works, need
from bench.scale import Scale, amount
from fastwin.core.timers import TimerHeap

WORKS = Works()
LAST = 2**62
Columns = tuple[np.ndarray, np.ndarray, np.ndarray]
Timer = tuple[int, int, int]


def _timers(n: int, distinct: int | None = None) -> tuple[Columns, list[Timer]]:
    """Returns n timers at random, as columns and as tuples; distinct: how many different ones, None: all."""
    random = np.random.default_rng(7)
    times = random.integers(0, 3_600_000, n)
    keys = random.permutation(n).astype(np.int32)       # so that all are different
    namespaces = random.integers(0, 4, n)
    if distinct is not None:
        chosen = random.integers(0, distinct, n)
        times, keys, namespaces = times[chosen], keys[chosen], namespaces[chosen]
    columns = times, keys, namespaces
    return columns, list(zip(*(column.tolist() for column in columns), strict=True))


def _filled(columns: Columns) -> tuple[TimerHeap]:
    heap = TimerHeap()
    heap.register_many(*columns)
    return (heap,)


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


def _popped(columns: Columns) -> list[Timer]:
    return list(zip(*(column.tolist() for column in columns), strict=True))


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


@WORKS.add("timers-bulk", "timer", ("heapq", "heapq+set", "sortedcontainers"), Bar.at_least(10, "heapq"))
def bulk(scale: Scale) -> Entry:
    columns, listed = _timers(scale.items)

    def ours() -> Columns:
        heap = TimerHeap()
        heap.register_many(*columns)
        return heap.pop_until(LAST)

    contenders = {
        "fastwin": Contender(ours, answer=_popped),
        "heapq": Contender(lambda: Plain().register_all(listed).pop_until(LAST), answer=list),
        "heapq+set": Contender(lambda: Deduplicating().register_all(listed).pop_until(LAST), answer=list),
        "sortedcontainers": _sorted_set(listed),
    }
    return Entry(f"{amount(len(listed))} timers registered and popped in bulk", len(listed), contenders)


@WORKS.add("timers-duplicates", "timer", ("heapq+set",))
def duplicates(scale: Scale) -> Entry:
    columns, listed = _timers(scale.items, scale.items // 10)
    contenders = {
        "fastwin": Contender(lambda heap: heap.register_many(*columns), setup=lambda: (TimerHeap(),), answer=int),
        "heapq+set": Contender(
            lambda heap: heap.register_all(listed), setup=lambda: (Deduplicating(),), answer=lambda heap: len(heap.live)
        ),
    }
    return Entry("timers registered, each 10 times", len(listed), contenders)


@WORKS.add("timers-steps", "timer", ("heapq", "heapq+set"))
def steps(scale: Scale) -> Entry:
    columns, listed = _timers(scale.items)
    watermarks = range(3_600, 3_600_001, 3_600)

    def ours(heap: TimerHeap) -> int:
        return sum(len(heap.pop_until(watermark)[0]) for watermark in watermarks)

    def theirs(heap: Plain) -> int:
        return sum(len(heap.pop_until(watermark)) for watermark in watermarks)

    contenders = {
        "fastwin": Contender(ours, setup=lambda: _filled(columns), answer=int),
        "heapq": Contender(theirs, setup=lambda: (Plain().register_all(listed),), answer=int),
        "heapq+set": Contender(theirs, setup=lambda: (Deduplicating().register_all(listed),), answer=int),
    }
    return Entry("timers popped in 1,000 steps", len(listed), contenders)


@WORKS.add("timers-one-by-one", "timer", ("heapq", "heapq+set"))
def one_by_one(scale: Scale) -> Entry:
    _, listed = _timers(scale.items)

    def ours(heap: TimerHeap) -> TimerHeap:
        for time, key, namespace in listed:
            heap.register(time, key, namespace)
        return heap

    contenders = {
        "fastwin": Contender(ours, setup=lambda: (TimerHeap(),), answer=len),
        "heapq": Contender(
            lambda heap: heap.register_all(listed), setup=lambda: (Plain(),), answer=lambda heap: len(heap.heap)
        ),
        "heapq+set": Contender(
            lambda heap: heap.register_all(listed), setup=lambda: (Deduplicating(),), answer=lambda heap: len(heap.live)
        ),
    }
    return Entry("timers registered one by one from Python", len(listed), contenders)


@WORKS.add("timers-delete", "timer", ("heapq+set",))
def delete(scale: Scale) -> Entry:
    columns, listed = _timers(scale.items)
    gone = listed[::2]

    def ours(heap: TimerHeap) -> TimerHeap:
        for time, key, namespace in gone:
            heap.delete(time, key, namespace)
        return heap

    contenders = {
        "fastwin": Contender(ours, setup=lambda: _filled(columns), answer=len),
        "heapq+set": Contender(
            lambda heap: heap.delete_all(gone),
            setup=lambda: (Deduplicating().register_all(listed),),
            answer=lambda heap: len(heap.live),
        ),
    }
    return Entry("half of the timers deleted one by one from Python", len(gone), contenders)


@WORKS.parametrize
def test_timers(race, work, contender):
    race(work, contender)
