"""How columns are read for the kernels."""

from decimal import Context, Decimal

import pyarrow as pa
import pytest

from fastwin.columns.values import value_column


@pytest.mark.parametrize(
    "kind",
    [pa.decimal128(12, 2), pa.decimal128(38, 2), pa.decimal128(38, 30), pa.decimal256(60, 2), pa.decimal128(12, -3)],
    ids=str,
)
def test_decimals_are_read_as_the_nearest_floats(kind: pa.DataType) -> None:
    tops = 10 ** (kind.precision - 1)
    whole = [*range(-300, 301), 2**53 + 1, -(2**53) - 1, tops - 1, -tops]
    values = [Decimal(number).scaleb(-kind.scale, Context(prec=80)) for number in whole if abs(number) <= tops]
    found, _ = value_column(pa.array([None, *values], kind).slice(1), "number")
    assert found.tolist() == [float(value) for value in values]
