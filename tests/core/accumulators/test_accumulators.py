import math

import numpy as np
import pytest

from fastwin.core.accumulators.basic import Accumulator, AccumulatorSet, Count, Max, Mean, Min, Sum
from fastwin.core.rows.rowstore import RowStore
from fastwin.errors import AggregateOverflowError, FastwinError
from tests.support.kernels import ids, pane_table, slots, times

TOP = 2**63 - 1


def rows_of(members: AccumulatorSet, n: int = 1) -> RowStore:
    """A store with rows 0 to n - 1."""
    panes = pane_table(members)
    panes.ensure(panes.keys.intern_int64(np.arange(n)), np.zeros(n, np.int64))
    return panes.rows


def results(member: Accumulator, values: list, dtype: str = "int64", valid: list | None = None) -> tuple:
    """The result of one accumulator over the values, in one row."""
    members = AccumulatorSet([member])
    rows = rows_of(members)
    mask = None if valid is None else np.array(valid)
    members.add_rows(rows, np.zeros(len(values), np.int32), [(np.array(values, dtype), mask)] * members.columns)
    found, marks = members.results(rows, slots(0))[0]
    return found.tolist()[0] if marks is None or marks[0] else None, found.dtype


def test_ints_are_counted_summed_and_compared() -> None:
    assert results(Count(), [4, 5, 6]) == (3, np.int64)
    assert results(Sum(), [4, -5, 6]) == (5, np.int64)
    assert results(Min(), [4, -5, 6]) == (-5, np.int64)
    assert results(Max(), [4, -5, 6]) == (6, np.int64)
    assert results(Mean(), [4, -5, 6]) == (5 / 3, np.float64)


def test_floats_are_summed_and_compared() -> None:
    assert results(Sum("float64"), [0.5, 0.25], "float64") == (0.75, np.float64)
    assert results(Min("float64"), [0.5, 0.25], "float64") == (0.25, np.float64)
    assert results(Max("float64"), [0.5, 0.25], "float64") == (0.5, np.float64)
    assert results(Mean("float64"), [0.5, 0.25], "float64") == (0.375, np.float64)


def test_nulls_are_skipped() -> None:
    assert results(Count(), [1, 2, 3], valid=[True, False, True])[0] == 2
    assert results(Sum(), [1, 2, 3], valid=[True, False, True])[0] == 4
    assert results(Min(), [1, 0, 3], valid=[True, False, True])[0] == 1
    assert results(Mean(), [1, 100, 3], valid=[True, False, True])[0] == 2.0


def test_nothing_but_nulls_is_null_and_counts_zero() -> None:
    assert results(Count(), [1], valid=[False])[0] == 0
    for member in (Sum(), Min(), Max(), Mean()):
        assert results(member, [1], valid=[False])[0] is None


def test_rows_are_counted_without_a_column() -> None:
    members = AccumulatorSet([Count(column=-1)])
    assert members.columns == 0
    rows = rows_of(members, 2)
    members.add_rows(rows, slots(0, 1, 0), [])
    assert members.results(rows, slots(0, 1))[0][0].tolist() == [2, 1]


def test_nulls_are_counted_without_values() -> None:
    members = AccumulatorSet([Count()])
    rows = rows_of(members)
    members.add_rows(rows, slots(0, 0, 0), [(None, np.array([True, False, True]))])
    assert members.results(rows, slots(0))[0][0].tolist() == [2]


def test_sum_outside_int64_raises() -> None:
    with pytest.raises(AggregateOverflowError, match=r"^total: the sum of a window is outside int64"):
        results(Sum(name="total"), [TOP, 1])
    with pytest.raises(OverflowError):
        results(Sum(), [-TOP, -2])
    assert issubclass(AggregateOverflowError, FastwinError)


def test_sum_outside_int64_is_null_on_request() -> None:
    assert results(Sum(on_overflow="null"), [TOP, 1])[0] is None
    assert results(Sum(on_overflow="null"), [TOP, 0])[0] == TOP


def test_sum_may_leave_int64_and_come_back() -> None:
    assert results(Sum(), [TOP, TOP, TOP, -TOP, -TOP, -2])[0] == TOP - 2
    assert results(Mean(), [TOP, TOP])[0] == float(TOP)


def test_float_sum_keeps_what_rounding_takes() -> None:
    assert results(Sum("float64"), [1e16, 1.0, -1e16], "float64")[0] == 1.0
    assert results(Sum("float64"), [0.1] * 10, "float64")[0] == 1.0


def test_nan_is_above_all_others() -> None:
    assert results(Min("float64"), [math.nan, math.inf], "float64")[0] == math.inf
    assert math.isnan(results(Max("float64"), [math.inf, math.nan, 1.0], "float64")[0])
    assert math.isnan(results(Min("float64"), [math.nan], "float64")[0])


def test_infinities_add_up_as_floats_do() -> None:
    assert results(Sum("float64"), [math.inf, 1.0], "float64")[0] == math.inf
    assert math.isnan(results(Sum("float64"), [math.inf, -math.inf], "float64")[0])
    assert results(Mean("float64"), [-math.inf, 1.0], "float64")[0] == -math.inf
    assert results(Max("float64"), [-math.inf], "float64")[0] == -math.inf


def test_members_lie_side_by_side() -> None:
    members = AccumulatorSet([Count(), Sum("float64", 1), Mean("int64", 2)], head_cells=6)
    assert members.cells == 6 + 1 + 2 + 3
    assert members.columns == 3
    assert len(members.blank()) == members.cells
    assert [member.column for member in members.members] == [0, 1, 2]


def test_merging_takes_the_order_given() -> None:
    members = AccumulatorSet([Sum(), Min(), Max()])
    rows = rows_of(members, 3)
    members.add_rows(rows, slots(0, 1, 2), [(times(1, 20, 300), None)])
    members.merge_rows(rows, slots(1, 0), rows, slots(2, 1))
    found = [values.tolist() for values, _ in members.results(rows, slots(0, 1))]
    assert found == [[321, 320], [1, 20], [300, 300]]


def test_merging_null_changes_nothing() -> None:
    members = AccumulatorSet([Sum(), Min("float64", 1), Max()])
    rows, empty = rows_of(members), rows_of(members)
    members.add_rows(rows, slots(0), [(times(5), None), (np.array([math.nan]), None)])
    members.merge_rows(rows, slots(0), empty, slots(0))
    (total, _), (lowest, _), (highest, _) = members.results(rows, slots(0))
    assert (total[0], highest[0]) == (5, 5)
    assert math.isnan(lowest[0])
    assert members.results(empty, slots(0))[0][1].tolist() == [False]


def test_arguments_are_checked() -> None:
    with pytest.raises(ValueError, match=r"Sum: dtype must be one of \('int64', 'float64'\), got 'int32'"):
        Sum("int32")
    with pytest.raises(ValueError, match="Sum: on_overflow must be 'raise' or 'null', got 'wrap'"):
        Sum(on_overflow="wrap")
    with pytest.raises(ValueError, match="Min: column must be at least -1, got -2"):
        Min(column=-2)


def test_sets_are_checked() -> None:
    with pytest.raises(ValueError, match="aggregates: at most 63 in one spec, got 64"):
        AccumulatorSet([Count() for _ in range(64)])
    with pytest.raises(ValueError, match="members: Sum number 1 reads no column"):
        AccumulatorSet([Count(), Sum(column=-1)])
    with pytest.raises(TypeError, match="members: accumulators, got None"):
        AccumulatorSet([None])
    with pytest.raises(ValueError, match="head_cells: at least 3, got 2"):
        AccumulatorSet([], head_cells=2)
    member = Count()
    AccumulatorSet([member])
    with pytest.raises(ValueError, match="members: Count number 0 belongs to a set already"):
        AccumulatorSet([member])


def test_most_members_fit() -> None:
    members = AccumulatorSet([Sum() for _ in range(63)])
    rows = rows_of(members)
    members.add_rows(rows, slots(0), [(times(4), None)])
    assert [values.tolist() for values, _ in members.results(rows, slots(0))] == [[4]] * 63
    assert rows.bits(slots(0)).tolist() == [2**63 - 1]


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ([], "columns: the accumulators read 1, got 0"),
        ([(np.zeros(2), None)], "columns: column 0 does not suit Sum"),
        ([(None, np.ones(2, bool))], "columns: column 0 does not suit Sum"),
        ([(np.zeros(3, np.int64), None)], "columns: column 0: needs 2 values, one for each row, got 3"),
        ([(np.zeros(2, np.int64), np.ones(1, bool))], "columns: mask of column 0: needs 2 values"),
        ([(np.zeros(2, np.int32), None)], "columns: column 0: must be of int64 or float64, got int32"),
        ([([1, 2], None)], "columns: column 0: must be of int64 or float64, got list"),
        ([(np.zeros(2, np.int64), np.ones(2, np.int64))], "mask of column 0: must be of bool or uint8, got int64"),
    ],
)
def test_columns_are_checked(columns: list, says: str) -> None:
    members = AccumulatorSet([Sum()])
    with pytest.raises(ValueError, match=says):
        members.add_rows(rows_of(members), slots(0, 0), columns)


def test_rows_of_another_layout_are_refused() -> None:
    members = AccumulatorSet([Sum()])
    rows = rows_of(members)
    with pytest.raises(ValueError, match="rows: of 24 bytes, but the set has 40"):
        members.add_rows(RowStore([0, 0, 0]), slots(), [(times(), None)])
    with pytest.raises(ValueError, match="rows: of 24 bytes, but the set has 40"):
        members.merge_rows(rows, slots(), RowStore([0, 0, 0]), slots())
    with pytest.raises(ValueError, match="rows: of 24 bytes, but the set has 40"):
        members.results(RowStore([0, 0, 0]), slots())
    with pytest.raises(ValueError, match="from_slots: needs 1 values, one for each row, got 2"):
        members.merge_rows(rows, slots(0), rows, slots(0, 0))
    with pytest.raises(IndexError, match="slots: must be at least 0 and below 1, got 1"):
        members.add_rows(rows, ids(1), [(times(5), None)])
    with pytest.raises(IndexError, match="slots: must be at least 0 and below 1, got -1"):
        members.results(rows, ids(-1))
