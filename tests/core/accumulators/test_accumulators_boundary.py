import math

import numpy as np
import pytest

from fastwin.core.accumulators.basic import AccumulatorSet, Count, Max, Mean, Min, Sum
from tests.support.arrays import refuses_what_is_no_array, strided, takes_read_only
from tests.support.kernels import accumulators, pane_table, slots, times

LOW, TOP = -(2**63), 2**63 - 1


def rows_of(members: AccumulatorSet, n: int = 2):
    panes = pane_table(members)
    panes.ensure(panes.keys.intern_int64(np.arange(n)), np.zeros(n, np.int64))
    return panes.rows


def test_empty_arrays_change_nothing() -> None:
    members = accumulators()
    rows = rows_of(members)
    members.add_rows(rows, slots(), [(times(), None)])
    members.add_rows(rows, slots(), [(times(), np.zeros(0, bool))])
    members.merge_rows(rows, slots(), rows, slots())
    assert [len(values) for values, _ in members.results(rows, slots())] == [0] * 6
    assert members.results(rows, slots(0))[0][0].tolist() == [0]


def test_int64_extremes_are_values() -> None:
    members = accumulators()
    rows = rows_of(members)
    members.add_rows(rows, slots(0, 0, 1, 1), [(times(LOW, TOP, LOW, LOW), None)])
    _, _, (total, fits), (lowest, _), (highest, _), (mean, _) = members.results(rows, slots(0, 1))
    assert total[0] == -1
    assert fits.tolist() == [True, False]
    assert (lowest.tolist(), highest.tolist()) == ([LOW, LOW], [TOP, LOW])
    assert mean.tolist() == [-0.5, float(LOW)]


def test_extreme_of_one_extreme_value_is_not_null() -> None:
    """A value equal to what a fresh row holds is a value all the same."""
    members = AccumulatorSet([Min(), Max(), Min("float64", 1), Max("float64", 1)])
    rows = rows_of(members)
    members.add_rows(rows, slots(0, 1), [(times(TOP, LOW), None), (np.array([math.nan, -math.inf]), None)])
    for _, valid in members.results(rows, slots(0, 1)):
        assert valid is None


def test_float_extremes_are_values() -> None:
    members = accumulators("float64")
    rows = rows_of(members, 1)
    big = 1.7976931348623157e308
    members.add_rows(rows, slots(0, 0, 0), [(np.array([big, 5e-324, -big]), None)])
    _, _, (total, _), (lowest, _), (highest, _), _ = members.results(rows, slots(0))
    assert (total[0], lowest[0], highest[0]) == (5e-324, -big, big)


def test_one_row_takes_many_values_in_one_call() -> None:
    members = AccumulatorSet([Count(), Sum(), Mean()])
    rows = rows_of(members)
    members.add_rows(rows, np.zeros(100_000, np.int32), [(np.ones(100_000, np.int64), None)])
    assert [values.tolist() for values, _ in members.results(rows, slots(0))] == [[100_000], [100_000], [1.0]]


def test_read_only_arrays_are_taken() -> None:
    members = accumulators()
    rows = rows_of(members)
    takes_read_only(
        lambda at, values, mask: members.add_rows(rows, at, [(values, mask)]),
        slots(0, 1), times(1, 2), np.array([True, False]),
    )  # fmt: skip
    takes_read_only(lambda at: members.results(rows, at), slots(0, 1))


def test_other_things_than_arrays_are_refused() -> None:
    members = accumulators()
    rows = rows_of(members)
    columns = [(times(1, 2), None)]
    refuses_what_is_no_array(lambda at: members.add_rows(rows, at, columns), slots(0, 1))
    refuses_what_is_no_array(lambda at: members.results(rows, at), slots(0, 1))
    refuses_what_is_no_array(lambda at, to: members.merge_rows(rows, at, rows, to), slots(0, 1), slots(1, 0))
    refuses_what_is_no_array(lambda values: members.add_rows(rows, slots(0, 1), [(values, None)]), times(1, 2))
    for bad in (strided(np.array([True, False])), np.array([1, 0]), [True, False], np.array([[True, False]])):
        with pytest.raises(ValueError):  # noqa: PT011
            members.add_rows(rows, slots(0, 1), [(times(1, 2), bad)])
    assert members.results(rows, slots(0, 1))[0][0].tolist() == [0, 0]


@pytest.mark.parametrize("columns", [None, (), [None], [()], [times(1, 2)], [(times(1, 2),)], "ab"])
def test_columns_of_another_shape_are_refused(columns: object) -> None:
    members = accumulators()
    with pytest.raises((TypeError, ValueError)):
        members.add_rows(rows_of(members), slots(0, 1), columns)


def test_none_is_no_store() -> None:
    members = accumulators()
    with pytest.raises(TypeError, match="rows"):
        members.add_rows(None, slots(0), [(times(1), None)])
    with pytest.raises(TypeError, match="rows"):
        members.results(None, slots(0))
    with pytest.raises(TypeError, match="others"):
        members.merge_rows(rows_of(members), slots(0), None, slots(0))
