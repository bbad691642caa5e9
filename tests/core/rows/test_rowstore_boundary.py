import numpy as np
import pytest

from fastwin.core.rows.rowstore import RowStore
from tests.support.arrays import refuses_what_is_no_array, takes_read_only
from tests.support.kernels import pane_table, slots, times


def filled() -> RowStore:
    panes = pane_table()
    panes.ensure(panes.keys.intern_int64(times(1, 2)), times(-(2**63), 2**63 - 1))
    return panes.rows


def test_empty_arrays_give_empty_arrays() -> None:
    for rows in (RowStore([0, 0, 0, 0]), filled()):
        for found in (rows.keys(slots()), rows.starts(slots()), rows.cells(slots(), 3), rows.bits(slots())):
            assert found.tolist() == []
        rows.set_cells(slots(), slots(3), [times()])
        rows.set_bits(slots(), times())


def test_extreme_starts_and_cells_are_kept() -> None:
    rows = filled()
    assert rows.starts(slots(0, 1)).tolist() == [-(2**63), 2**63 - 1]
    rows.set_cells(slots(0, 1), slots(3), [times(2**63 - 1, -(2**63))])
    assert rows.cells(slots(0, 1), 3).tolist() == [2**63 - 1, -(2**63)]


def test_live_bit_cannot_be_taken_by_accumulators() -> None:
    rows = filled()
    rows.set_bits(slots(0), times(-1))
    assert rows.bits(slots(0)).tolist() == [2**63 - 1]
    assert rows.slots().tolist() == [0, 1]


def test_read_only_arrays_are_taken() -> None:
    rows = filled()
    takes_read_only(rows.keys, slots(0, 1))
    takes_read_only(lambda at: rows.cells(at, 3), slots(0, 1))
    takes_read_only(lambda at, values: rows.set_cells(at, slots(3), [values]), slots(0, 1), times(4, 5))


def test_other_things_than_arrays_are_refused() -> None:
    rows = filled()
    for call in (rows.keys, rows.starts, rows.bits, rows.live_marks):
        refuses_what_is_no_array(call, slots(0, 1))
    refuses_what_is_no_array(rows.set_bits, slots(0, 1), times(0, 0))
    refuses_what_is_no_array(lambda at, values: rows.set_cells(at, slots(3), [values]), slots(0, 1), times(4, 5))
    assert rows.cells(slots(0, 1), 3).tolist() == [0, 0]


@pytest.mark.parametrize("slot", [-(2**31), -1, 2, 2**31 - 1])
def test_slots_out_of_range_are_refused(slot: int) -> None:
    rows = filled()
    for call in (rows.keys, rows.starts, rows.bits):
        with pytest.raises(IndexError, match=f"got {slot}"):
            call(slots(0, slot))
    assert rows.live_marks(slots(slot)).tolist() == [False]


@pytest.mark.parametrize("cell", [-1, 12, 2**62, -(2**63)])
def test_cells_out_of_range_are_refused(cell: int) -> None:
    with pytest.raises(IndexError, match=f"got {cell}"):
        filled().cells(slots(0), cell)


@pytest.mark.parametrize("cell", [-(2**31), -1, 12, 2**31 - 1])
def test_gather_refuses_what_is_not_there(cell: int) -> None:
    rows = filled()
    with pytest.raises(IndexError, match=f"cells: .* got {cell}"):
        rows.gather(slots(0), slots(1, cell))
    with pytest.raises(IndexError, match=r"slots: .* got 2"):
        rows.gather(slots(2), slots(1))
    assert rows.gather(slots(0, 1), slots()).shape == (0, 2)
    assert rows.gather(slots(), slots(1, 2)).shape == (2, 0)
    takes_read_only(rows.gather, slots(0, 1), slots(1, 2))
    refuses_what_is_no_array(rows.gather, slots(0, 1), slots(1, 2))


def test_rows_are_made_of_int64_cells() -> None:
    for bad in (None, [[0, 0, 0]], ["a", "b", "c"], np.zeros((2, 3))):
        with pytest.raises((TypeError, ValueError)):
            RowStore(bad)
