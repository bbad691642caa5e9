"""Sums and means at the ends of their ranges, in any order and however they are merged, against exact fractions."""

import math
import sys
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fastwin.core.accumulators.basic import AccumulatorSet, Max, Mean, Min, Sum
from tests.support.kernel_models import INT64, agrees, float_total, same_float
from tests.support.kernels import pane_table

TOP = sys.float_info.max
HUGE = st.one_of(
    st.sampled_from([TOP, -TOP, 1e308, -1e308, 2.0**1023, -(2.0**1023), 2.0**970, -(2.0**970)]),
    st.floats(1e307, TOP),
    st.floats(-TOP, -1e307),
)
TINY = st.sampled_from([0.0, -0.0, 1.0, -1.0, 1e16, 1e-300, -1e-300, 5e-324, 1e300])


def result(members: AccumulatorSet, parts: Sequence[Sequence[float]], dtype: str = "float64") -> list[float]:
    """The results of values that were added to some rows and then merged into the first."""
    panes = pane_table(members)
    slots = panes.ensure(panes.keys.intern_int64(np.arange(len(parts))), np.zeros(len(parts), np.int64))
    for slot, part in zip(slots, parts, strict=True):
        columns = [(np.array(part, dtype), None)] * members.columns
        members.add_rows(panes.rows, np.full(len(part), slot, np.int32), columns)
    members.merge_rows(panes.rows, np.repeat(slots[:1], len(parts) - 1), panes.rows, slots[1:])
    return [values[0].item() for values, _ in members.results(panes.rows, slots[:1])]


def totals() -> AccumulatorSet:
    return AccumulatorSet([Sum("float64"), Mean("float64")])


@given(st.lists(st.lists(HUGE | TINY, max_size=8), min_size=1, max_size=4).filter(any))
@example([[-TOP, -(2.0**970), 1.0]])
def test_float_totals_come_back_from_beyond_the_largest_float(parts: list[list[float]]) -> None:
    values = [value for part in parts for value in part]
    total, mean = result(totals(), parts)
    assert agrees(total, "sum", values, True), (total, values)
    assert agrees(mean, "mean", values, True), (mean, values)


@given(st.lists(HUGE | TINY, max_size=12), st.integers(1, 4), st.randoms(use_true_random=False))
def test_what_cancels_out_is_gone(values: list[float], parts: int, random) -> None:
    both = [*values, *(-value for value in values)]
    random.shuffle(both)
    total = result(totals(), [both[at::parts] for at in range(parts)])[0]
    assert abs(total) <= len(both) ** 2 * 2.0**-93 * max((abs(value) for value in both), default=0)


@pytest.mark.parametrize(
    ("values", "total", "mean"),
    [
        ([1e308, 1e308, -1e308, -1e308], 0.0, 0.0),
        ([1e308, 1e308, 1e-300, -1e308, -1e308], 1e-300, 2e-301),
        ([1e308, 1e308], math.inf, 1e308),
        ([-TOP] * 3, -math.inf, -TOP),
        ([TOP, TOP, -TOP], TOP, TOP / 3),
        ([1e308, 1e308, -math.inf], -math.inf, -math.inf),
        ([math.inf, 1e308, 1e308, -1e308], math.inf, math.inf),
        ([math.inf, -math.inf], math.nan, math.nan),
        ([1e308, 1e308, math.nan, -1e308], math.nan, math.nan),
    ],
)
def test_sums_leave_the_range_and_come_back(values: list[float], total: float, mean: float) -> None:
    for parts in ([values], [[value] for value in values], [values[:2], values[2:]], [values[2:], values[:2]]):
        got = result(totals(), parts)
        assert got[0] == pytest.approx(total, rel=1e-12, nan_ok=True)
        assert got[1] == pytest.approx(mean, rel=1e-12, nan_ok=True)


SPECIAL = st.sampled_from([math.nan, math.inf, -math.inf])


@given(st.lists(st.lists(HUGE | SPECIAL, max_size=5), min_size=1, max_size=4), SPECIAL)
def test_nan_and_infinities_are_as_without_large_values(parts: list[list[float]], value: float) -> None:
    parts[0].append(value)
    values = [value for part in parts for value in part]
    total, mean = result(totals(), parts)
    assert same_float(total, float_total(values))
    assert same_float(mean, float_total(values))


INTS = st.one_of(st.integers(*INT64), st.integers(-9, 9), st.sampled_from([*INT64, 2**53 + 1, -(2**53) - 1, 2**62]))


@given(st.lists(st.lists(INTS, max_size=8), min_size=1, max_size=4).filter(any))
def test_int_means_are_the_floats_nearest_to_them(parts: list[list[int]]) -> None:
    values = [value for part in parts for value in part]
    assert result(AccumulatorSet([Mean()]), parts, "int64") == [float(Fraction(sum(values), len(values)))]


@given(st.integers(-(2**126), 2**126), st.integers(1, 2**63 - 1))
@example(2**65 + 2**12 + 1, 1)  # a bit beyond the middle of two floats, and 64 bits do not show it
def test_int_means_of_many_values_are_as_near(total: int, count: int) -> None:
    """As a state may say that holds the sum of more values than a test can add."""
    members = AccumulatorSet([Mean()])
    rows = members.new_rows()
    slots = rows.fresh(np.zeros(1, np.int32), np.zeros(1, np.int64))
    words = [total & (2**64 - 1), total >> 64, count]
    cells = np.array([word - 2**64 if word >= 2**63 else word for word in words], np.int64)
    rows.set_cells(slots, np.arange(3, 6, dtype=np.int32), list(cells.reshape(3, 1)))
    assert members.results(rows, slots)[0][0].tolist() == [total / count]


@given(st.lists(st.lists(st.sampled_from([0.0, -0.0]), max_size=4), min_size=1, max_size=4).filter(any))
def test_zeros_are_told_apart_by_their_signs(parts: list[list[float]]) -> None:
    signs = [math.copysign(1, value) for part in parts for value in part]
    least, most = result(AccumulatorSet([Min("float64"), Max("float64")]), parts)
    assert (math.copysign(1, least), math.copysign(1, most)) == (min(signs), max(signs))
