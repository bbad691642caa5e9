"""Sums of uint64, booleans and durations, and the mean of booleans, on every operator."""

import datetime as dt

import pyarrow as pa
import pytest

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
