import numpy as np
import pytest

from fastwin.core.rows.rowstore import RowStore
from tests.support.kernels import no_columns, pane_table, slots, times


def test_fresh_store_is_empty() -> None:
    rows = RowStore([0, 0, 0, 7])
    assert (len(rows), rows.live, rows.top, rows.capacity, rows.nbytes) == (0, 0, 0, 0, 0)
    assert rows.stride == 32
    assert rows.slots().dtype == rows.dirty_slots().dtype == np.int32
    assert rows.slots().tolist() == rows.dirty_slots().tolist() == []
    rows.clear_dirty()
    rows._check()


def test_head_must_fit() -> None:
    with pytest.raises(ValueError, match=r"cells: a row has at least 3, got 2"):
        RowStore([0, 0])


def test_rows_are_addressed_by_slot() -> None:
    panes = pane_table()
    keys = panes.keys.intern_int64(times(70, 80))
    assert panes.ensure(keys, times(5, -5)).tolist() == [0, 1]
    rows = panes.rows
    assert rows.slots().tolist() == [0, 1]
    assert rows.keys(slots(1, 0)).tolist() == [1, 0]
    assert rows.starts(slots(1, 0, 1)).tolist() == [-5, 5, -5]


@pytest.mark.parametrize("n", [0, 1, 511, 512, 513, 2_000])
def test_gather_gives_cells_in_the_order_asked_for(n: int) -> None:
    panes = pane_table()
    panes.ensure(panes.keys.intern_int64(np.arange(2_000)), np.arange(2_000))
    at = np.random.default_rng(n).integers(0, 2_000, n, dtype=np.int32)
    panes.rows.set_cells(np.arange(2_000, dtype=np.int32), slots(4), [-np.arange(2_000)])
    found = panes.rows.gather(at, slots(4, 1, 4))
    assert found.tolist() == [(-at).tolist(), at.tolist(), (-at).tolist()]


def test_freed_rows_are_used_again_and_hold_nothing() -> None:
    panes = pane_table()
    keys = panes.keys.intern_int64(times(1, 2, 3))
    panes.add(keys, times(0, 1, 1), no_columns(3))
    panes.drop_before(1)
    assert panes.rows.slots().tolist() == [1, 2]
    assert panes.ensure(keys[1:2], times(2)).tolist() == [0]
    assert panes.rows.cells(slots(0, 1), 3).tolist() == [0, 1]


def test_rows_come_in_order_after_many_were_freed() -> None:
    panes = pane_table()
    keys = panes.keys.intern_int64(np.arange(10))
    panes.ensure(keys, np.arange(10) % 2)
    panes.drop_before(1)
    panes.rows._check()
    assert panes.ensure(keys[:6], np.full(6, 2)).tolist() == [0, 2, 4, 6, 8, 10]


def test_cells_are_overwritten() -> None:
    panes = pane_table()
    panes.ensure(panes.keys.intern_int64(times(1, 2)), times(0, 0))
    panes.rows.set_cells(slots(1), slots(4), [times(9)])
    assert panes.rows.cells(slots(0, 1), 4).tolist() == [0, 9]


@pytest.mark.parametrize("n", [0, 1, 511, 512, 513, 1_500])
def test_several_cells_are_overwritten_in_one_pass(n: int) -> None:
    panes = pane_table()
    panes.ensure(panes.keys.intern_int64(np.arange(2_000)), np.arange(2_000))
    at = np.random.default_rng(n).permutation(2_000)[:n].astype(np.int32)
    columns = [np.arange(n) * 3, -np.arange(n)]
    panes.rows.set_cells(at, slots(5, 3), columns)
    assert panes.rows.gather(at, slots(5, 3)).tolist() == [column.tolist() for column in columns]
    assert panes.rows.starts(at).tolist() == at.tolist()


def test_nothing_is_overwritten_where_one_column_does_not_suit() -> None:
    panes = pane_table()
    panes.ensure(panes.keys.intern_int64(times(1, 2)), times(0, 0))
    for wrong in (times(1), np.zeros(2), None):
        with pytest.raises((ValueError, TypeError)):
            panes.rows.set_cells(slots(0, 1), slots(3, 4), [times(8, 9), wrong])
    with pytest.raises(ValueError, match="columns: needs 2 values"):
        panes.rows.set_cells(slots(0, 1), slots(3, 4), [times(8, 9)])
    assert panes.rows.gather(slots(0, 1), slots(3, 4)).tolist() == [[0, 0], [0, 0]]


def test_bits_leave_the_row_live() -> None:
    panes = pane_table()
    panes.ensure(panes.keys.intern_int64(times(1)), times(0))
    assert panes.rows.bits(slots(0)).tolist() == [0]
    panes.rows.set_bits(slots(0), times(5))
    assert panes.rows.bits(slots(0)).tolist() == [5]
    panes.rows.set_bits(slots(0), times(0))
    assert panes.rows.slots().tolist() == [0]


def test_changed_rows_are_dirty_until_cleared() -> None:
    panes = pane_table()
    keys = panes.keys.intern_int64(times(1, 2))
    panes.add(keys, times(0, 0), no_columns(2))
    assert panes.rows.dirty_slots().tolist() == [0, 1]
    panes.rows.clear_dirty()
    assert panes.rows.dirty_slots().tolist() == []
    panes.add(keys[1:], times(0), no_columns(1))
    assert panes.rows.dirty_slots().tolist() == [1]


def test_live_marks_tell_rows_from_free_slots() -> None:
    panes = pane_table()
    panes.ensure(panes.keys.intern_int64(times(1, 2)), times(0, 1))
    panes.drop_before(1)
    assert panes.rows.live_marks(slots(-1, 0, 1, 2, 2**31 - 1)).tolist() == [False, False, True, False, False]


def test_large_store_gives_memory_back_when_empty() -> None:
    panes = pane_table()
    keys = panes.keys.intern_int64(np.arange(70_000))
    panes.ensure(keys, np.zeros(70_000, np.int64))
    assert panes.rows.nbytes >= 70_000 * panes.rows.stride
    panes.drop_before(1)
    assert panes.rows.nbytes == 0
    assert panes.ensure(panes.keys.intern_int64(times(1)), times(0)).tolist() == [0]
    panes._check()


def test_slot_never_used_is_refused() -> None:
    panes = pane_table()
    panes.ensure(panes.keys.intern_int64(times(1)), times(0))
    rows = panes.rows
    with pytest.raises(IndexError, match=r"slots: must be at least 0 and below 1, got 1"):
        rows.keys(slots(0, 1))
    with pytest.raises(IndexError, match=r"slots: must be at least 0 and below 1, got -1"):
        rows.cells(slots(-1), 3)
    with pytest.raises(IndexError, match=r"cell: must be at least 0 and below 12, got 12"):
        rows.cells(slots(0), 12)
    with pytest.raises(IndexError, match=r"cell: must be at least 3, below 12, got 2"):
        rows.set_cells(slots(0), slots(2), [times(1)])
    with pytest.raises(ValueError, match=r"values: needs 1 values, one for each row, got 2"):
        rows.set_cells(slots(0), slots(3), [times(1, 2)])
    with pytest.raises(ValueError, match=r"values: needs 1 values, one for each row, got 0"):
        rows.set_bits(slots(0), times())


def test_bits_of_a_free_row_are_refused() -> None:
    panes = pane_table()
    panes.ensure(panes.keys.intern_int64(times(1, 2)), times(0, 1))
    panes.drop_before(1)
    with pytest.raises(IndexError, match=r"slots: 0 holds no row"):
        panes.rows.set_bits(slots(0), times(1))
