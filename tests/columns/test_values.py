"""How columns are read for the kernels."""

from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fastwin.columns import values as reading
from fastwin.columns.values import hashes, value_column


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


@pytest.mark.parametrize("rows", [0, 3, 300])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view(), pa.binary_view()], ids=str)
def test_of_a_large_dictionary_no_more_is_hashed_than_there_are_rows(
    rows: int, kind: pa.DataType, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = pa.array([*(f"the word {i}" for i in range(99)), None]).cast(kind)
    codes = np.random.default_rng(1).integers(0, 100, rows + 7)
    column = pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes % 7 == 1), words).slice(7)
    counted, hash_of = [], reading.redis_hash_text

    def counting(offsets: np.ndarray, data: np.ndarray) -> Any:
        counted.append(len(offsets) - 1)
        return hash_of(offsets, data)

    monkeypatch.setattr(reading, "redis_hash_text", counting)
    found, marks = value_column(column, "hash")
    assert sum(counted) == min(rows, 100)
    plain = pa.array([None if word is None else bytes(word, "ascii") for word in map(_as_text, column)], pa.binary())
    valid = np.array([one is not None for one in plain.to_pylist()], bool)
    assert np.array_equal(np.ones(rows, bool) if marks is None else marks, valid)
    assert np.array_equal(found[valid], hashes(plain)[valid])


def _as_text(value: pa.Scalar) -> str | None:
    found = value.as_py()
    return found.decode() if isinstance(found, bytes) else found


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()], ids=str)
def test_floats_hash_as_what_repr_says(kind: pa.DataType) -> None:
    given = [0.0, -0.0, 1.0, 0.1, 1e16, 1e15, 1e-5, float("nan"), float("inf"), -float("inf"), 5e-324, 1 / 3, 1.0]
    column = pa.array([None, *given, None, *given], pa.float64()).cast(kind, safe=False).slice(1)
    found, marks = value_column(column, "hash")
    texts = [None if value is None else repr(value + 0.0) for value in column.cast(pa.float64()).to_pylist()]
    assert marks.tolist() == [text is not None for text in texts]
    assert np.array_equal(found[marks], hashes(pa.array(texts))[marks])
