"""Columns of values as accumulators take them: numbers, validity alone, or hashes."""

from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.arrowbuffers import decoded, decoded_type, from_int64, int64_values, text_values, validity
from fastwin.core.hyperloglog import hash_int64, hash_text, hash_uint64

__all__ = ["Reading", "can_hash", "hashes", "value_column"]

Reading = Literal["int64", "float64", "hash", "valid"]
"""How a column is read: as numbers, as hashes of its values, or only for what is null."""

_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def value_column(column: pa.Array, reading: Reading) -> tuple[NDArray | None, NDArray[np.bool_] | None]:
    """Returns ``(values, valid)`` as accumulators take them: int64[n], float64[n] or None, and bool[n] or None."""
    if reading != "valid" or pa.types.is_dictionary(column.type):
        if reading == "hash" and pa.types.is_dictionary(column.type):
            return _dictionary_hashes(column)
        column = decoded(column)
    valid = validity(column)
    marks = None if valid is None else valid.view(np.bool_)
    if reading == "valid":
        return None, marks
    if reading == "hash":
        return hashes(column), marks
    if reading == "float64":
        # Not through Python: null slots may hold anything, and are not read.
        floats = np.frombuffer(column.buffers()[1] or b"", dtype=f"f{column.type.bit_width // 8}")
        floats = floats[column.offset : column.offset + len(column)] if len(floats) else np.zeros(len(column))
        return floats.astype(np.float64, copy=False), marks
    return int64_values(column), marks


def can_hash(kind: pa.DataType) -> bool:
    """Tells whether values of a type can be hashed."""
    kind = decoded_type(kind)
    tests = (
        pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal, pa.types.is_string,
        pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary,
        pa.types.is_date, pa.types.is_time, pa.types.is_timestamp, pa.types.is_duration, pa.types.is_null,
    )  # fmt: skip
    return any(test(kind) for test in tests)


def hashes(column: pa.Array) -> NDArray[np.int64]:
    """Returns the hash of each value as Redis would hash its text: int64[n], what lies under nulls undefined.

    What the text of a value is, ``fastwin.hyperloglog`` says.
    """
    column = decoded(column)
    kind = column.type
    if pa.types.is_null(kind):
        return np.zeros(len(column), dtype=np.int64)
    if pa.types.is_date(kind) or pa.types.is_decimal(kind):
        column = column.cast(pa.large_string())
    elif pa.types.is_floating(kind):
        column = _as_repr(column)
    elif pa.types.is_timestamp(kind) or pa.types.is_time(kind) or pa.types.is_duration(kind):
        return _time_hashes(column)
    kind = column.type
    if kind == pa.uint64():
        return hash_uint64(int64_values(column).view(np.uint64))
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return hash_int64(int64_values(column))
    return hash_text(*text_values(column))


def _as_repr(column: pa.Array) -> pa.Array:
    """Returns floats as text; each distinct value is written once."""
    codes = from_int64(int64_values(column), None, pa.int64()).dictionary_encode()
    texts = [repr(value) for value in codes.dictionary.to_numpy().view(np.float64).tolist()]
    return pa.array(texts, pa.large_string()).take(codes.indices)


def _time_hashes(column: pa.Array) -> NDArray[np.int64]:
    per_second, values = _PER_SECOND[column.type.unit], int64_values(column)
    if per_second <= 1_000_000:
        return hash_int64(values * (1_000_000 // per_second))
    micros, rest = np.divmod(values, 1_000)
    found = hash_int64(micros)
    fine = np.flatnonzero(rest)
    if len(fine):
        texts = [f"{micro}.{nano:03d}" for micro, nano in zip(micros[fine].tolist(), rest[fine].tolist(), strict=True)]
        found[fine] = hash_text(*text_values(pa.array(texts, pa.large_string())))
    return found


def _dictionary_hashes(column: pa.DictionaryArray) -> tuple[NDArray, NDArray[np.bool_] | None]:
    """Hashes the values of a dictionary once."""
    values, known = hashes(column.dictionary), validity(decoded(column.dictionary))
    marks = None if known is None else known.view(np.bool_)
    indices = int64_values(column.indices)
    valid = validity(column.indices)
    if valid is not None:
        indices = np.where(valid != 0, indices, 0)
    if len(column.dictionary) == 0:
        return np.zeros(len(column), dtype=np.int64), None if valid is None else valid.view(np.bool_)
    out = None if valid is None else valid.view(np.bool_)
    if marks is not None:
        out = marks[indices] if out is None else out & marks[indices]
    return values[indices], out
