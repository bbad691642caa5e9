"""The order of elements by key and time, against numpy."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fastwin.core.keys.keyorder import KeyOrder

KEYS = 6
LIMIT = 2**61
FEW = st.lists(st.tuples(st.integers(0, KEYS - 1), st.integers(-40, 60)), max_size=60)
ONE_KEY = st.lists(st.tuples(st.just(2), st.integers(-400, 600)), min_size=40, max_size=300)
WIDE = st.lists(st.tuples(st.integers(0, KEYS - 1), st.integers(-LIMIT, LIMIT)), max_size=60)
GAPS = st.integers(1, 100) | st.integers(1, LIMIT)


def columns_of(elements: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    ids = np.array([key for key, _ in elements], dtype=np.int32)
    return ids, np.array([time for _, time in elements], dtype=np.int64)


@given(FEW | ONE_KEY | WIDE)
def test_it_is_a_stable_sort(elements: list[tuple[int, int]]) -> None:
    ids, times = columns_of(elements)
    ordered = KeyOrder(ids, times, KEYS)
    numbers, at = ordered.slice(0, len(elements))
    assert numbers.tolist() == np.lexsort((times, ids)).tolist()
    assert at.tolist() == times[numbers].tolist()
    assert ordered.bounds.tolist() == np.searchsorted(np.sort(ids), np.arange(KEYS + 1)).tolist()


@given(FEW | ONE_KEY | WIDE, GAPS)
def test_ends_are_those_of_a_loop(elements: list[tuple[int, int]], gap: int) -> None:
    ids, times = columns_of(elements)
    ends, begins = KeyOrder(ids, times, KEYS).session_ends(gap)
    naive: list[list[int]] = [[] for _ in range(KEYS)]
    for key, time in sorted(elements):
        if naive[key] and time <= naive[key][-1]:
            naive[key].pop()
        naive[key].append(time + gap)
    assert ends.tolist() == [end for own in naive for end in own]
    assert np.diff(begins).tolist() == [len(own) for own in naive]


@given(FEW, st.integers(1, 30))
def test_parts_hold_enough_and_all(elements: list[tuple[int, int]], least: int) -> None:
    ordered = KeyOrder(*columns_of(elements), KEYS)
    parts = ordered.parts(least)
    sizes = np.diff(ordered.bounds[parts])
    assert sizes.sum() == len(elements) and (sizes[:-1] >= least).all() and (sizes > 0).all()
