"""First elements against sets and lists, and arguments out of bounds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastwin.core.accumulators.basic import AccumulatorSet
from fastwin.core.keys.keytable import KeyTable
from fastwin.core.panes.firsts import add_apart, add_firsts
from fastwin.core.panes.panetable import PaneTable
from fastwin.core.rows.rowstore import HEAD_CELLS

ELEMENTS = st.lists(st.tuples(st.integers(0, 3), st.integers(-40, 40)), max_size=40)


def panes(cells: int = 1) -> PaneTable:
    keys = KeyTable("int64")
    keys.retain_ids(keys.intern_int64(np.arange(4)))
    return PaneTable(keys, AccumulatorSet([], HEAD_CELLS + cells))


def columns(elements: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([key for key, _ in elements], np.int32), np.array([time for _, time in elements], np.int64)


@given(st.lists(ELEMENTS, max_size=4))
def test_firsts_are_those_that_no_set_has(batches):
    table, seen = panes(), set()
    for batch in batches:
        expected = []
        for element in batch:
            expected.append(element not in seen)
            seen.add(element)
        table.rows.clear_dirty()
        assert add_firsts(table, *columns(batch)).tolist() == expected
        assert len(table.rows.dirty_slots()) == sum(expected)  # what was there is not changed
        table._check()


@given(st.lists(ELEMENTS, max_size=4), st.integers(1, 30))
def test_rows_apart_are_those_that_no_list_has_close_by(batches, within):
    table, handed = panes(), []
    for batch in batches:
        expected = []
        for key, time in batch:
            expected.append(all(key != other or abs(time - at) >= within for other, at in handed))
            handed += [(key, time)] if expected[-1] else []
        assert add_apart(table, *columns(batch), within).tolist() == expected
        table._check()


def test_boundary_what_is_out_of_bounds_is_refused():
    ids, times = columns([(0, 1)])
    with pytest.raises(ValueError, match="within: must be at least 1 ms"):
        add_apart(panes(), ids, times, 0)
    with pytest.raises(ValueError, match="no cell for the time"):
        add_apart(panes(0), ids, times, 5)
    with pytest.raises(ValueError, match="times"):
        add_apart(panes(), ids, np.array([2**62]), 5)
    for add in (add_firsts, lambda *given: add_apart(*given, 5)):
        with pytest.raises(ValueError, match=r"starts|times"):
            add(panes(), ids, np.zeros(2, np.int64))
        with pytest.raises(IndexError):
            add(panes(), np.array([9], np.int32), times)
        with pytest.raises(TypeError):
            add(panes(), None, times)
    assert add_apart(panes(), *columns([(0, 2**61), (0, -(2**61))]), 2**61).tolist() == [True, True]
