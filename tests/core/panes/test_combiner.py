import numpy as np
import pytest

from fastwin.core.panes.combiner import WindowCombiner
from fastwin.core.panes.panetable import PaneTable
from tests.support.kernels import ids, no_columns, pane_table, row_of, times


def filled() -> PaneTable:
    """Key 0 in the panes 0, 10, 20; key 1 in 10; key 2 in 20, twice."""
    panes = pane_table()
    keys = panes.keys.intern_int64(times(5, 5, 5, 6, 7, 7))
    panes.add(keys, times(0, 10, 20, 10, 20, 20), no_columns(6))
    return panes


def collected(combiner: WindowCombiner) -> list[tuple[int, int, int]]:
    """(key id, window start, count) of each row, in order."""
    slots = combiner.rows.slots()
    counts = combiner.panes.accumulators.results(combiner.rows, slots)[0][0]
    rows = zip(combiner.rows.keys(slots).tolist(), combiner.rows.starts(slots).tolist(), counts.tolist(), strict=True)
    return list(rows)


def test_windows_hold_their_panes_in_the_order_given() -> None:
    combiner = WindowCombiner(filled())
    combiner.fire(ids(1, 0, 0), times(0, 0, -10), times(20, 20, 10))
    assert collected(combiner) == [(1, 0, 1), (0, 0, 2), (0, -10, 1)]


def test_window_is_half_open() -> None:
    combiner = WindowCombiner(filled())
    combiner.fire(ids(0, 0, 0, 0), times(21, 1, 1, 10), times(30, 21, 20, 10))
    assert [count for *_, count in collected(combiner)] == [0, 2, 1, 0]


def test_windows_that_do_not_descend_stand_alone() -> None:
    combiner = WindowCombiner(filled())
    combiner.fire(ids(0, 0, 0), times(0, 10, 0), times(10, 30, 30))
    assert [count for *_, count in collected(combiner)] == [1, 2, 3]


def test_windows_collect_until_cleared() -> None:
    combiner = WindowCombiner(filled())
    combiner.fire(ids(0), times(0), times(10))
    combiner.fire(ids(2), times(20), times(30))
    assert collected(combiner) == [(0, 0, 1), (2, 20, 2)]
    combiner.clear()
    assert len(combiner.rows) == 0
    combiner.fire(ids(1), times(10), times(20))
    assert collected(combiner) == [(1, 10, 1)]


def test_each_element_fires_with_those_before_it() -> None:
    panes = filled()
    combiner = WindowCombiner(panes)
    keys = panes.keys.intern_int64(times(5, 6, 5))
    combiner.add_firing(
        keys, times(10, 0, 10), no_columns(3), times(2, 0, 2), times(10, 0, 10, 0), times(30, 20, 30, 20)
    )
    assert collected(combiner) == [(0, 10, 3), (0, 0, 3), (0, 10, 4), (0, 0, 4)]
    assert row_of(panes, 1, 0) >= 0
    panes._check()


def test_windows_of_one_pane_need_no_order_of_panes() -> None:
    n, found = 500, []
    for shared in (True, False):
        panes = filled()
        combiner = WindowCombiner(panes, shared)
        keys = panes.keys.intern_int64(np.arange(5, 7)).repeat(n)
        starts = np.tile(np.arange(n, 0, -1), 2) * 10  # the newest first
        before = panes.moved
        combiner.add_firing(keys, starts, no_columns(2 * n), np.ones(2 * n, np.int64), starts, starts + 10)
        combiner.fire(ids(0, 0, 1, 0), times(20, 0, 0, -10), times(30, 10, 10, 0))
        found.append(collected(combiner))
        assert shared or panes.moved == before
        combiner.rows._check()
        panes._check()
    assert found[0] == found[1]
    assert found[1][-4:] == [(0, 20, 2), (0, 0, 1), (1, 0, 0), (0, -10, 0)]


def test_panes_are_left_alone() -> None:
    panes = filled()
    panes.rows.clear_dirty()
    before = panes.accumulators.results(panes.rows, panes.rows.slots())[0][0].tolist()
    WindowCombiner(panes).fire(ids(0, 0, 1, 2), times(0, 0, 0, 0), times(30, 20, 30, 30))
    assert panes.accumulators.results(panes.rows, panes.rows.slots())[0][0].tolist() == before
    assert panes.rows.dirty_slots().tolist() == []


def test_many_windows_of_a_key_share_its_panes() -> None:
    panes = pane_table()
    key = panes.keys.intern_int64(times(5))[0]
    panes.add(np.full(2_000, key), times(*range(0, 4_000, 2)), no_columns(2_000))
    combiner = WindowCombiner(panes)
    ends = np.arange(4_200, 0, -3)
    combiner.fire(np.full(len(ends), key), ends - 1_500, ends)
    counts = [count for *_, count in collected(combiner)]
    assert counts == [len([t for t in range(0, 4_000, 2) if end - 1_500 <= t < end]) for end in ends.tolist()]
    combiner.rows._check()


def test_needs_panes() -> None:
    with pytest.raises(TypeError, match="panes"):
        WindowCombiner(None)
