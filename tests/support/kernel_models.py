"""What the tests of the kernels share: aggregates over plain lists, and the values they are tried with."""

import math
import sys
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

INT64 = (-(2**63), 2**63 - 1)
RESULTS = ("count_rows", "count", "sum", "min", "max", "mean")

int64s = st.one_of(
    st.integers(-5, 5), st.integers(*INT64), st.sampled_from([*INT64, -(2**62), 2**62]), st.sampled_from([0, 1, -1])
)
float64s = st.one_of(
    st.floats(-1e300, 1e300, allow_subnormal=True),
    st.floats(-10, 10, width=16),
    st.sampled_from([0.0, -0.0, 1e16, -1e16, 1.0, 1e300, -1e300, 5e-324, 1e308, -1e308, sys.float_info.max]),
    st.sampled_from([math.nan, math.inf, -math.inf]),
)


def column(values: Sequence[int | float | None], dtype: str) -> tuple[np.ndarray, np.ndarray | None]:
    """Values as kernels take them; what lies under a null is garbage on purpose."""
    garbage = 77 if dtype == "int64" else math.nan
    valid = np.array([value is not None for value in values], dtype=np.bool_)
    data = np.array([garbage if value is None else value for value in values], dtype=dtype)
    return data, None if valid.all() else valid


def _order(value: float) -> tuple[bool, float, float]:
    """NaN above all others, -0.0 below 0.0."""
    return (True, 0, 0) if value != value else (False, value, math.copysign(1, value))


def to_float(number: Fraction) -> float:
    """The nearest float, infinite beyond the largest."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


TOP = sys.float_info.max


def float_total(values: Sequence[float], count: int = 1) -> float:
    """The sum of values over a count, rounded once; NaN and infinities as IEEE arithmetic has them."""
    special = [value for value in values if not math.isfinite(value)]
    return sum(special) if special else to_float(sum(map(Fraction, values), Fraction(0)) / count)


def same_float(a: float, b: float) -> bool:
    """Whether both are the same, also the signs of zeros; all NaN are."""
    return (a == b and math.copysign(1, a) == math.copysign(1, b)) or (a != a and b != b)


def expected(kind: str, values: Sequence[int | float | None], is_float: bool) -> int | float | str | None:
    """The result of an aggregate over values, None for null, "overflow" for an int sum outside int64."""
    present = [value for value in values if value is not None]
    if kind == "count_rows":
        return len(values)
    if kind == "count":
        return len(present)
    if not present:
        return None
    if kind in ("min", "max"):
        return (min if kind == "min" else max)(present, key=_order)
    if is_float:
        return float_total(present, 1 if kind == "sum" else len(present))
    total = sum(present)
    if kind == "sum":
        return total if INT64[0] <= total <= INT64[1] else "overflow"
    return total / len(present)  # Python rounds it once, to the nearest


def agrees(got: int | float | None, kind: str, values: Sequence[int | float | None], is_float: bool) -> bool:
    """Whether a kernel's result is the expected one: exactly, but for the last digits of float sums and means."""
    wanted = expected(kind, values, is_float)
    if wanted is None or wanted == "overflow":
        return got is None
    if got is None or isinstance(got, int) != isinstance(wanted, int):
        return False
    if isinstance(wanted, int):
        return got == wanted
    special = any(value is not None and not math.isfinite(value) for value in values)
    if kind in ("min", "max") or not is_float or special:
        return same_float(got, wanted)
    size = sum(abs(Fraction(value)) for value in values if value is not None)
    # The rounding of what was rounded away; beyond the largest float, less of it is kept.
    lost = len(values) ** 2 * size / 2 ** (104 if size < 2**1023 else 93)
    lost = lost if kind == "sum" else lost / len(values)
    return abs(_at_the_edge(got) - _at_the_edge(wanted)) <= 2 * Fraction(min(math.ulp(wanted), math.ulp(TOP))) + lost


def _at_the_edge(value: float) -> Fraction:
    """A result as a fraction; infinity is what comes behind the largest float, so that rounding may reach it."""
    return Fraction(value) if math.isfinite(value) else Fraction(math.copysign(1, value)) * 2**1024


def as_list(values: np.ndarray, valid: np.ndarray | None) -> list[int | float | None]:
    """A kernel's result as a list with None for null."""
    marks = [True] * len(values) if valid is None else valid.tolist()
    return [value if mark else None for value, mark in zip(values.tolist(), marks, strict=True)]


def assert_results(got: list[tuple], kinds: Sequence[str], rows: Sequence[Sequence], is_float: bool) -> None:
    """Results of all accumulators over some rows are those expected of the rows' values."""
    assert len(got) == len(kinds)
    for kind, result in zip(kinds, got, strict=True):
        for value, values in zip(as_list(*result), rows, strict=True):
            assert agrees(value, kind, values, is_float), f"{kind} of {values}: got {value!r}"
