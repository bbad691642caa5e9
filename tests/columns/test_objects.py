"""Python values on their way into Arrow's columns, where these hold less than Python does."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fastwin.columns.objects import exact_objects

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
