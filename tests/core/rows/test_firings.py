"""Kernels over rows of firings, held to loops over lists."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastwin.core.rows.firings import best_of, groups_of_sides, pairs_between, sides_apart

VALUES = st.integers(-3, 3) | st.sampled_from([-(2**63), 2**63 - 1])
SIZES = st.lists(st.integers(1, 9), max_size=8)


def _groups(sizes: list[int]) -> np.ndarray:
    return np.repeat(np.arange(len(sizes), dtype=np.int64) * 7 - 3, sizes)


@given(SIZES, st.data(), st.integers(1, 5), st.booleans())
def test_the_best_of_each_group_are_those_that_sorting_puts_first(sizes, data, n, last):
    groups = _groups(sizes)
    values = data.draw(st.lists(VALUES, min_size=len(groups), max_size=len(groups)))
    wanted = []
    for group in dict.fromkeys(groups.tolist()):
        rows = [i for i in range(len(groups)) if groups[i] == group]
        wanted += sorted(rows, key=lambda i: (values[i], -i if last else i))[:n]
    assert best_of(groups, np.array(values, np.int64), n, last).tolist() == wanted


def test_more_than_a_group_has_gives_all_of_it():
    groups, values = np.array([1, 1, 2], np.int64), np.array([5, 4, 9], np.int64)
    assert best_of(groups, values, 1_000).tolist() == [1, 0, 2]


@given(SIZES, st.data())
def test_left_rows_come_first_in_each_group(sizes, data):
    groups = _groups(sizes)
    sides = np.array(data.draw(st.lists(st.integers(0, 1), min_size=len(groups), max_size=len(groups))), np.int8)
    order, begins, rights = sides_apart(groups, sides)
    assert order.tolist() == np.lexsort((np.arange(len(groups)), sides, groups)).tolist()
    assert begins.tolist() == np.cumsum([0, *sizes]).tolist()
    assert rights.tolist() == [int(sides[a:b].sum()) for a, b in zip(begins, begins[1:], strict=False)]


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)).filter(any), max_size=8),
    st.booleans(),
    st.booleans(),
    st.data(),
)
def test_pairs_are_those_of_two_loops(counts, lone_left, lone_right, data):
    pairs, ends = [], []
    lefts, rights = (np.array([count[side] for count in counts], np.int64) for side in (0, 1))
    left_begins, right_begins = np.cumsum(lefts) - lefts + 100, np.cumsum(rights) - rights
    for group, (left, right) in enumerate(counts):
        ones = list(range(left_begins[group], left_begins[group] + left)) or ([-1] if lone_right else [])
        others = list(range(right_begins[group], right_begins[group] + right)) or ([-1] if lone_left else [])
        pairs += [(group, one, other) for one in ones for other in others]
        ends.append(len(pairs))
    first = data.draw(st.integers(0, len(pairs)))
    last = data.draw(st.integers(first, len(pairs)))
    found = pairs_between(left_begins, lefts, right_begins, rights, np.array(ends, np.int64), first, last)
    assert list(zip(*(column.tolist() for column in found), strict=True)) == pairs[first:last]


ROWS = st.lists(st.tuples(st.sampled_from([-(2**63), -5, 0, 2**63 - 1]), st.integers(0, 3)), max_size=12).map(sorted)


@given(ROWS, ROWS, st.booleans(), st.booleans())
def test_groups_of_two_sides_are_those_of_sets(left, right, left_alone, right_alone):
    wanted = []
    for group in sorted({*left, *right}):
        lefts, rights = left.count(group), right.count(group)
        if (lefts or right_alone) and (rights or left_alone):
            places = [[i for i, row in enumerate(rows) if row < group] for rows in (left, right)]
            wanted.append((*group, len(places[0]), lefts, len(places[1]), rights))
    columns = [
        np.array([row[at] for row in rows], dtype)
        for rows in (left, right)
        for at, dtype in ((0, np.int64), (1, np.int32))
    ]
    found = groups_of_sides(*columns, left_alone, right_alone)
    assert list(zip(*(column.tolist() for column in found), strict=True)) == wanted


def test_what_they_refuse():
    groups = np.zeros(2, np.int64)
    with pytest.raises(ValueError, match="n: must be at least 1, got 0"):
        best_of(groups, groups, 0)
    with pytest.raises(ValueError, match="values: needs 2 values"):
        best_of(groups, np.zeros(3, np.int64), 1)
    with pytest.raises(ValueError, match="sides: needs 2 values"):
        sides_apart(groups, np.zeros(1, np.int8))
    one, none = np.array([1]), np.array([], np.int64)
    with pytest.raises(IndexError, match=r"pairs: there are 1, got \[0, 2\)"):
        pairs_between(one, one, one, one, one, 0, 2)
    with pytest.raises(IndexError, match=r"pairs: there are 0, got \[0, 1\)"):
        pairs_between(none, none, none, none, none, 0, 1)
    with pytest.raises(ValueError, match="rights: needs 1 values"):
        pairs_between(one, one, one, none, one, 0, 1)
    with pytest.raises(ValueError, match="right_keys: needs 1 values"):
        groups_of_sides(none, none.astype(np.int32), one, none.astype(np.int32), False, False)
