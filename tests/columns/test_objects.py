"""Python values on their way into Arrow's columns, where these hold less than Python does."""

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fastwin.columns.objects import exact_objects, table_of_rows
from fastwin.errors import SpecError

FIRST_INFINITE = float(2**128 - 2**103)  # of the numbers that 32 bits round: half a step above the largest one
LARGEST = float(2**128 - 2**104)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("make", [float, np.float64], ids=["float", "numpy"])
def test_a_number_beyond_a_narrow_float_is_not_infinity(sign: int, make: type) -> None:
    below = float(np.nextafter(FIRST_INFINITE, 0))
    for value in (LARGEST, below):
        assert exact_objects([None, make(sign * value)], pa.float32())[1].as_py() == sign * LARGEST
    assert exact_objects([sign * float("inf")], pa.float32())[0].as_py() == sign * float("inf")
    assert np.isnan(exact_objects([float("nan")], pa.float32())[0].as_py())
    with pytest.raises(pa.ArrowInvalid, match="out of range"):
        exact_objects([1.0, make(sign * FIRST_INFINITE)], pa.float32())


@pytest.mark.parametrize("far", [1e300, np.float64(-1e39)], ids=repr)
def test_a_number_beyond_a_narrow_float_within_a_list(far: Any) -> None:
    for value, kind in (
        ([0.5, far], pa.list_(pa.float32())),
        ({"a": far}, pa.struct({"a": pa.float32()})),
        ([("k", far)], pa.map_(pa.string(), pa.float32())),
    ):
        with pytest.raises(pa.ArrowInvalid, match="out of range"):
            exact_objects([None, value], kind)


def test_arrays_within_lists() -> None:
    kind = pa.list_(pa.float32())
    floats = np.array([0.5, 3e38, np.inf], np.float32)
    assert exact_objects([floats], kind).to_pylist() == [floats.tolist()]
    assert exact_objects([floats.astype(np.float64)], kind).to_pylist() == [floats.tolist()]
    with pytest.raises(pa.ArrowInvalid, match="out of range"):
        exact_objects([np.array([1e39])], kind)
    with pytest.raises(pa.ArrowInvalid, match="out of range"):
        exact_objects([np.array([70_000])], pa.list_(pa.float16()))


@pytest.mark.parametrize(
    "value",
    [65_520.0, 65_520, 2_049, 10**400, -70_000, np.int64(70_000), Decimal("1e6"), np.float64(1e6), np.float32(-1e6)],
)
def test_numbers_that_a_half_float_has_no_room_for_are_refused(value) -> None:
    schema = pa.schema([("v", pa.float16())])
    with pytest.raises(SpecError, match=r"push: .*v.*out of range"):
        table_of_rows([{"v": value}], schema, None, "push")


@pytest.mark.parametrize("value", [65_504.0, 65_504, 0.1, math.inf, math.nan, None, np.float16(1.5)])
def test_numbers_that_a_half_float_has_room_for_are_taken(value) -> None:
    schema = pa.schema([("v", pa.float16())])
    assert table_of_rows([{"v": value}], schema, None, "push").num_rows == 1
