"""Sums of uint64, booleans, durations and wide decimals, and means of what is no number, on every operator."""

import datetime as dt
from decimal import Decimal, localcontext

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastwin as fw
from tests.support.one_window import OPERATORS, run


@pytest.mark.parametrize("operator", OPERATORS)
def test_sums_of_what_int64_does_not_hold(operator):
    table = pa.table(
        {
            "ts": [500, 600, 700],
            "u": pa.array([2**63, 2**63 - 1, None], pa.uint64()),
            "b": [True, None, True],
            "d": pa.array([-5, 2, None], pa.duration("ms")),
        }
    )
    found = run(table, operator, u=fw.Sum("u"), b=fw.Sum("b"), d=fw.Sum("d"), share=fw.Mean("b"))
    assert found == {"u": 2**64 - 1, "b": 2, "d": dt.timedelta(milliseconds=-3), "share": 1.0}


def test_sums_outside_of_uint64():
    table = pa.table({"ts": [1, 2], "u": pa.array([2**64 - 1, 1], pa.uint64())})
    with pytest.raises(fw.AggregateOverflowError, match=r"Sum\('u'\): the sum of a window is outside uint64"):
        run(table, s=fw.Sum("u"))
    assert run(table, s=fw.Sum("u", on_overflow="null")) == {"s": None}


@pytest.mark.parametrize("operator", OPERATORS)
def test_distinct_values_of_uint64(operator):
    values = [2**63, 5, 2**63, None, 0, 2**64 - 1 - 2**63 - 5]
    table = pa.table({"ts": range(500, 506), "u": pa.array(values, pa.uint64())})
    found = run(table, operator, s=fw.Sum("u", distinct=True), n=fw.CountDistinct("u"))
    assert found == {"s": 2**64 - 1, "n": 4}


def test_distinct_values_of_uint64_outside_of_it():
    table = pa.table({"ts": [1, 2, 3], "u": pa.array([2**64 - 1, 1, 1], pa.uint64())})
    with pytest.raises(fw.AggregateOverflowError, match="the sum of a window is outside uint64"):
        run(table, s=fw.Sum("u", distinct=True))
    assert run(table, s=fw.Sum("u", distinct=True, on_overflow="null")) == {"s": None}


def wide(units: list[int | None], digits: int = 76, scale: int = 3) -> pa.Table:
    with localcontext(prec=100):
        values = [None if unit is None else Decimal(unit).scaleb(-scale) for unit in units]
    column = pa.array(values, pa.decimal256(digits, scale))
    return pa.table({"ts": pa.array(range(500, 500 + len(units)), pa.int64()), "x": column})


def units_of(value: Decimal | None, scale: int = 3) -> int | None:
    with localcontext(prec=100):
        return None if value is None else int(value.scaleb(scale))


big = st.integers(-(10**75), 10**75) | st.integers(-(2**130), 2**130) | st.integers(-5, 5)


@given(st.lists(st.none() | big, min_size=1, max_size=8), st.sampled_from(sorted(OPERATORS)))
def test_sums_of_wide_decimals_are_exact(units, operator):
    found = run(wide(units), operator, s=fw.Sum("x", on_overflow="null"), d=fw.Sum("x", distinct=True))
    there = [unit for unit in units if unit is not None]
    assert units_of(found["s"]) == (sum(there) if there else None)
    assert units_of(found["d"]) == (sum(set(there)) if there else None)


@given(st.lists(big, min_size=1, max_size=8), st.sampled_from(sorted(OPERATORS)))
def test_means_of_wide_decimals_are_exact_but_for_one_rounding(units, operator):
    found = run(wide(units), operator, m=fw.Mean("x", on_overflow="null"))
    exact = abs(sum(units)) * 10**4
    rounded = (2 * exact + len(units)) // (2 * len(units))
    whole = rounded if sum(units) >= 0 else -rounded
    assert units_of(found["m"], 7) == (whole if rounded < 10**76 else None)


@pytest.mark.parametrize("distinct", [True, False])
def test_sums_of_wide_decimals_outside_of_their_digits(distinct):
    most = 10**76 - 1
    table = wide([most, -2, 3 - most, -1, most])
    assert units_of(run(wide([most, -most, 7]), s=fw.Sum("x", distinct=distinct))["s"]) == 7
    assert units_of(run(wide([-most]), s=fw.Sum("x", distinct=distinct))["s"]) == -most
    assert units_of(run(table, s=fw.Sum("x"))["s"]) == most
    over = wide([most, 1])
    with pytest.raises(fw.AggregateOverflowError, match="more than 76 digits"):
        run(over, s=fw.Sum("x", distinct=distinct))
    assert run(over, s=fw.Sum("x", distinct=distinct, on_overflow="null")) == {"s": None}
