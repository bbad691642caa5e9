"""Sessions made key by key, against numpy and a plain loop."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastwin.core.accumulators.basic import AccumulatorSet
from fastwin.core.keys.keyorder import KeyOrder
from fastwin.core.sessions.scan import END_CELL, places_by_time, sessions_of_keys
from tests.support.kernels import accumulators

GAP = 10
KEYS = 6
ELEMENTS = st.lists(st.tuples(st.integers(0, KEYS - 1), st.integers(-40, 60)), max_size=60)
WIDE = st.integers(-(2**63), 2**63 - 1)


def columns_of(elements: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    ids = np.array([key for key, _ in elements], dtype=np.int32)
    return ids, np.array([time for _, time in elements], dtype=np.int64)


def rows_of(members: AccumulatorSet, ids: np.ndarray, times: np.ndarray, values: np.ndarray, part: int) -> list[tuple]:
    """(key, start, end, count, sum, min, max) of each session, as they come."""
    elements = KeyOrder(ids, times, KEYS)
    found = []
    for keys in pairwise(elements.parts(part).tolist()):
        rows = sessions_of_keys(members, elements, *keys, GAP, lambda numbers: [(values[numbers], None)])
        rows._check()
        slots = rows.slots()
        results = members.results(rows, slots)
        parts = [rows.keys(slots), rows.starts(slots), rows.cells(slots, END_CELL), *(one[0] for one in results[1:5])]
        found += list(zip(*(part.tolist() for part in parts), strict=True))
    return found


def naive(ids: np.ndarray, times: np.ndarray, values: np.ndarray) -> list[tuple]:
    found: list[list] = []
    for i in np.lexsort((times, ids)).tolist():
        key, time, value = int(ids[i]), int(times[i]), int(values[i])
        if found and found[-1][0] == key and time <= found[-1][2]:
            _, start, _, n, total, low, high = found[-1]
            found[-1] = [key, start, time + GAP, n + 1, total + value, min(low, value), max(high, value)]
        else:
            found.append([key, time, time + GAP, 1, value, value, value])
    return [tuple(row) for row in found]


@given(ELEMENTS, st.integers(1, 20), st.randoms(use_true_random=False))
def test_sessions_are_those_of_a_loop(elements: list[tuple[int, int]], part: int, dice) -> None:
    ids, times = columns_of(elements)
    values = np.array([dice.randint(-9, 9) for _ in elements], dtype=np.int64)
    assert rows_of(accumulators("int64", END_CELL + 1), ids, times, values, part) == naive(ids, times, values)


@pytest.mark.parametrize("part", [1, 700, 10**6])
def test_many_elements_in_blocks(part: int) -> None:
    random = np.random.default_rng(5)
    ids, times = random.integers(0, KEYS, 5_000).astype(np.int32), random.integers(0, 9_000, 5_000)
    values = random.integers(-9, 9, 5_000)
    assert rows_of(accumulators("int64", END_CELL + 1), ids, times, values, part) == naive(ids, times, values)


@given(st.lists(WIDE) | st.lists(st.integers(-9, 9)))
def test_places_by_time_are_those_of_a_stable_sort(times: list[int]) -> None:
    given_ = np.array(times, dtype=np.int64)
    assert np.argsort(places_by_time(given_)).tolist() == np.argsort(given_, kind="stable").tolist()
