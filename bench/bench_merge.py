"""Interval merging: the sessions of every key from the intervals ``[t, t + gap)`` of its elements."""

import bisect
from collections.abc import Callable

import numpy as np

from bench.race import Contender, Entry, Works
from bench.scale import Scale
from fastwin.core.accumulators.basic import AccumulatorSet, Count
from fastwin.core.keys.keytable import KeyTable
from fastwin.core.sessions.sessiontable import HEAD_CELLS, SessionTable
from fastwin.times import MIN_TIMESTAMP

WORKS = Works()
GAP = 10_000
PER_KEY = 100


def _fresh(keys: int) -> tuple[SessionTable]:
    table = KeyTable("int64")
    ids = table.intern_int64(np.arange(keys))
    assert ids[-1] == keys - 1  # ids are the keys themselves
    return (SessionTable(table, AccumulatorSet([Count(column=-1)], HEAD_CELLS)),)


def _add_all(sessions: SessionTable, keys: np.ndarray, times: np.ndarray) -> SessionTable:
    sessions.add(keys, times, GAP, MIN_TIMESTAMP, 0, [])
    return sessions


def _of_table(sessions: SessionTable) -> list[tuple[int, int, int]]:
    rows, slots = sessions.rows, sessions.rows.slots()
    return sorted(
        zip(rows.keys(slots).tolist(), rows.starts(slots).tolist(), sessions.ends(slots).tolist(), strict=True)
    )


def _naive(keys: list[int], times: list[int]) -> dict[int, tuple[list[int], list[int], list[int]]]:
    """Per key, sorted lists of starts, ends and counts, kept merged after every element."""
    sessions: dict[int, tuple[list[int], list[int], list[int]]] = {}
    for key, start in zip(keys, times, strict=True):
        end, count = start + GAP, 1
        starts, ends, counts = sessions.setdefault(key, ([], [], []))
        first, last = bisect.bisect_left(ends, start), bisect.bisect_right(starts, end)
        if first < last:
            start, end = min(start, starts[first]), max(end, ends[last - 1])
            count += sum(counts[first:last])
        starts[first:last], ends[first:last], counts[first:last] = [start], [end], [count]
    return sessions


def _of_naive(sessions: dict) -> list[tuple[int, int, int]]:
    return sorted((key, s, e) for key, (starts, ends, _) in sessions.items() for s, e in zip(starts, ends, strict=True))


def _sorting(keys: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, ...]:
    """Sorts all intervals by key and time: keys, starts, ends, counts."""
    order = np.lexsort((times, keys))
    keys, times = keys[order], times[order]
    fresh = np.ones(len(keys), dtype=np.bool_)
    fresh[1:] = (keys[1:] != keys[:-1]) | (times[1:] - times[:-1] > GAP)
    first = np.flatnonzero(fresh)
    last = np.append(first[1:], len(keys)) - 1
    return keys[first], times[first], times[last] + GAP, last - first + 1


def _of_sorting(sessions: tuple[np.ndarray, ...]) -> list[tuple[int, int, int]]:
    return list(zip(*(column.tolist() for column in sessions[:3]), strict=True))


def _work(name: str, label: str) -> Callable:
    """Declares a work from ``arrange(n)``, which returns the keys and times of n intervals."""

    def declare(arrange: Callable[[int], tuple[np.ndarray, np.ndarray]]) -> Callable:
        def make(scale: Scale) -> Entry:
            keys, times = arrange(scale.items)
            keys, times = keys.astype(np.int32), times.astype(np.int64)
            listed = keys.tolist(), times.tolist()
            contenders = {
                "fastwin": Contender(
                    lambda sessions: _add_all(sessions, keys, times),
                    setup=lambda: _fresh(int(keys.max()) + 1),
                    answer=_of_table,
                    notes=lambda sessions: {"sessions": len(sessions)},
                ),
                "numpy, sorting": Contender(lambda: _sorting(keys, times), answer=_of_sorting),
                "Python": Contender(lambda: _naive(*listed), answer=_of_naive),
            }
            return Entry(f"merge, {label}", len(keys), contenders)

        WORKS.add(name, "interval", ("numpy, sorting", "Python"))(make)
        return arrange

    return declare


def _in_turns(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Every key has an element in each of PER_KEY rounds; returns the keys and the rounds."""
    keys = n // PER_KEY
    return np.tile(np.arange(keys), PER_KEY), np.repeat(np.arange(PER_KEY, dtype=np.int64), keys)


@_work("merge-ordered", "ordered")
def ordered(n):
    # 0.8 gaps apart on average, so that half of the elements open a session
    random = np.random.default_rng(4)
    return random.integers(0, n // PER_KEY, n), np.sort(random.integers(0, 125 * GAP, n))


@_work("merge-shuffled", "shuffled")
def shuffled(n):
    keys, times = ordered(n)
    order = np.random.default_rng(5).permutation(n)
    return keys[order], times[order]


@_work("merge-bridging", "bridging (every other element joins two sessions)")
def bridging(n):
    keys, rounds = _in_turns(n)
    half = PER_KEY // 2
    return keys, np.where(rounds < half, rounds * 3 * GAP, (rounds - half) * 3 * GAP + 3 * GAP // 2)


@_work("merge-touching", "touching (each begins where one ends)")
def touching(n):
    keys, rounds = _in_turns(n)
    return keys, rounds * GAP


@_work("merge-nested", "nested (inside a session that is there)")
def nested(n):
    keys, rounds = _in_turns(n)
    tenth = PER_KEY // 10
    inside = np.random.default_rng(6).integers(0, tenth * GAP, len(keys))
    return keys, np.where(rounds < tenth, rounds * GAP, inside)


@WORKS.parametrize
def test_merge(race, work, contender):
    race(work, contender)
