"""Columns of values as accumulators take them: numbers, text, hashes, or validity alone."""

from decimal import Decimal
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fastwin.columns.buffers import (
    from_int64,
    from_text,
    from_values,
    int64_values,
    stored,
    text_values,
    truths,
    validity,
)
from fastwin.columns.decoding import decoded, decoded_type
from fastwin.columns.packed import packed
from fastwin.columns.units import PER_SECOND
from fastwin.core.sketches.hyperloglog import (
    redis_hash_float64,
    redis_hash_int64,
    redis_hash_text,
    redis_hash_uint64,
)
from fastwin.errors import SpecError

__all__ = [
    "Reading",
    "Stored",
    "ValueColumn",
    "can_hash",
    "check_scale",
    "from_sortable",
    "hashes",
    "stored_as",
    "value_column",
]

Reading = Literal[
    "int64", "float64", "number", "text", "packed", "decimal", "sortable", "hash", "valid", "time", "arrival", "rows"
]
"""How a column is read: as numbers or bytes that it is stored as, as the bytes of lists and structs, as float64 of any
numbers, as decimals of 16 bytes, as numbers or bytes in the order of its values, as hashes of its values, or only for
what is null. Three are none of the columns: ``"time"``, the event times, ``"arrival"``, the places in the batch, and
``"rows"``, which rows count."""

Stored = Literal["int64", "float64", "text"]
"""What accumulators keep."""

ValueColumn = tuple
"""``(values, valid)``: int64[n], float64[n] or None, and bool[n] or None; or for text ``(offsets, data, valid)``:
int64[n + 1], uint8[bytes]."""

_EXACT_INTS, _EXACT_POWERS = 2**53, 22  # ints, and powers of ten, up to these are floats exactly
_PLAIN_SCALE = 6  # with 0 to 6 places behind the point, Arrow writes no decimal as 1E-8
_MOST_DIGITS = {32: 9, 64: 18, 128: 38, 256: 76}  # of decimals of so many bits; Arrow has no text of a larger scale


def stored_as(kind: pa.DataType) -> Stored | None:
    """Returns what values of a type are stored as; None for those that are kept in no accumulator, such as lists."""
    kind = decoded_type(kind)
    if not can_hash(kind):
        return None
    if pa.types.is_floating(kind):
        return "float64"
    fixed = pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind)
    return "int64" if fixed or pa.types.is_temporal(kind) else "text"


def check_scale(kind: pa.DataType, reading: Reading, what: str) -> None:
    """Raises SpecError for decimals of a scale that they cannot be read with by their digits.

    what: the values, in the words of the error.
    """
    kind = decoded_type(kind)
    if reading in ("decimal", "number", "hash") and pa.types.is_decimal(kind):
        bits = max(kind.bit_width, 128) if reading == "decimal" else kind.bit_width
        most = _MOST_DIGITS[bits]
        if not -most <= kind.scale <= most:
            raise SpecError(f"{what}: the scale of decimals of {bits} bits must be from {-most} to {most}, got {kind}")


def value_column(column: pa.Array, reading: Reading) -> ValueColumn:
    """Returns the values of an array, read in one way."""
    if reading == "hash" and pa.types.is_dictionary(column.type) and len(column.dictionary) <= len(column):
        return _dictionary_hashes(column)
    if reading != "valid" or pa.types.is_dictionary(column.type):
        column = decoded(column)
    valid = validity(column)
    marks = None if valid is None else valid.view(np.bool_)
    if reading == "valid":
        return None, marks
    if reading == "hash":
        return hashes(column), marks
    if reading == "packed":
        return (*packed(column), marks)
    if reading == "sortable":
        return (*_sortable(column), marks)
    if reading == "decimal" and column.type.bit_width < 128:
        column = column.cast(pa.decimal128(38, column.type.scale))
    if reading in ("text", "decimal"):
        return (*_text(column), marks)
    if reading == "float64":
        return _floats(column), marks
    if reading == "number":
        return _numbers(column), marks
    return int64_values(column), marks


def _floats(column: pa.Array) -> NDArray[np.float64]:
    # Not through Python: null slots may hold anything, and are not read.
    return stored(column, np.dtype(f"f{column.type.bit_width // 8}")).astype(np.float64, copy=False)


def _numbers(column: pa.Array) -> NDArray[np.float64]:
    if pa.types.is_floating(column.type):
        return _floats(column)
    if pa.types.is_decimal(column.type):
        return _of_decimals(column)
    values = int64_values(column)
    return (values.view(np.uint64) if column.type == pa.uint64() else values).astype(np.float64)


def _of_decimals(column: pa.Array) -> NDArray[np.float64]:
    """Returns the nearest floats. Arrow's own cast is not always the nearest, but that of text is."""
    scale = column.type.scale
    if column.type.bit_width == 128 and 0 <= scale <= _EXACT_POWERS:
        offsets, data = _text(column)
        words = data[offsets[0] : offsets[-1]].copy().view("<i8").reshape(-1, 2)
        low, high = words[:, 0], words[:, 1]
        if np.all((high == low >> 63) & (low >= -_EXACT_INTS) & (low <= _EXACT_INTS)):
            return low / 10.0**scale  # of two floats that are exact: rounded once
    return _floats(column.cast(pa.string()).cast(pa.float64()))


def _text(column: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    offsets, data = text_values(column)
    return offsets.astype(np.int64, copy=False), data


def _sortable(column: pa.Array) -> tuple[NDArray, ...]:
    """Returns numbers, or offsets and bytes, that sort as the values do."""
    kind = column.type
    if pa.types.is_floating(kind):
        return (_floats(column),)
    if kind == pa.uint64():
        return (int64_values(column) ^ np.int64(-(2**63)),)
    if pa.types.is_decimal(kind):
        # Two's complement with the low byte first: the other way round, and the sign bit turned.
        width = kind.bit_width // 8
        offsets, data = _text(column)
        digits = data[offsets[0] : offsets[-1]].reshape(-1, width)[:, ::-1].copy()
        digits[:, 0] ^= 0x80
        return offsets - offsets[0], digits.reshape(-1)
    return (int64_values(column),) if stored_as(kind) == "int64" else _text(column)


def from_sortable(values: NDArray, data: NDArray[np.uint8] | None, kind: pa.DataType) -> pa.Array:
    """Returns the array of type ``kind`` that was read as "sortable".

    values: numbers; or offsets from 0 on, where data holds the bytes.
    """
    if data is None:
        if pa.types.is_floating(kind):
            return from_values(values.astype(f"f{kind.bit_width // 8}", copy=False), None, kind)
        return from_int64(values ^ np.int64(-(2**63)) if kind == pa.uint64() else values, None, kind)
    if pa.types.is_decimal(kind):
        digits = data.reshape(-1, kind.bit_width // 8).copy()
        digits[:, 0] ^= 0x80
        data = np.ascontiguousarray(digits[:, ::-1]).reshape(-1)
    return from_text(values, data, None, kind)


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
    if pa.types.is_date(kind):
        column = column.cast(pa.large_string())
    elif pa.types.is_decimal(kind):
        return _decimal_hashes(column)
    elif pa.types.is_floating(kind):
        return _float_hashes(column)
    elif pa.types.is_timestamp(kind) or pa.types.is_time(kind) or pa.types.is_duration(kind):
        return _time_hashes(column)
    kind = column.type
    if kind == pa.uint64():
        return redis_hash_uint64(int64_values(column).view(np.uint64))
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return redis_hash_int64(int64_values(column))
    return redis_hash_text(*text_values(column))


def _decimal_hashes(column: pa.Array) -> NDArray[np.int64]:
    texts = column.cast(pa.large_string())
    found = redis_hash_text(*text_values(texts))
    if not 0 <= column.type.scale <= _PLAIN_SCALE:
        odd = np.flatnonzero(truths(pc.match_substring(texts, "E")))
        if len(odd):
            codes = texts.take(pa.array(odd)).dictionary_encode()  # mostly zeros
            hashes = _hashes_of([f"{Decimal(text):f}" for text in codes.dictionary.to_pylist()])
            found[odd] = hashes[codes.indices.to_numpy()]
    return found


def _hashes_of(texts: list[str]) -> NDArray[np.int64]:
    return redis_hash_text(*text_values(pa.array(texts, pa.large_string())))


def _float_hashes(column: pa.Array) -> NDArray[np.int64]:
    """Hashes each distinct value once: its text takes long to find."""
    codes = from_int64(int64_values(column), None, pa.int64()).dictionary_encode()
    return redis_hash_float64(codes.dictionary.to_numpy().view(np.float64))[codes.indices.to_numpy()]


def _time_hashes(column: pa.Array) -> NDArray[np.int64]:
    per_second, values = PER_SECOND[column.type.unit], int64_values(column)
    if per_second <= 1_000_000:
        factor = 1_000_000 // per_second
        found, most = redis_hash_int64(values * factor), np.iinfo(np.int64).max // factor
        far = np.flatnonzero((values > most) | (values < -most))  # int64 has no room for their microseconds
        if len(far):
            found[far] = _hashes_of([str(value * factor) for value in values[far].tolist()])
        return found
    micros, rest = np.divmod(values, 1_000)
    found = redis_hash_int64(micros)
    fine = np.flatnonzero(rest)
    if len(fine):
        found[fine] = _hashes_of([_micros_text(value) for value in values[fine].tolist()])
    return found


def _micros_text(nanos: int) -> str:
    micros, rest = divmod(abs(nanos), 1_000)
    return f"{'-' if nanos < 0 else ''}{micros}.{rest:03d}"


def _dictionary_hashes(column: pa.DictionaryArray) -> tuple[NDArray, NDArray[np.bool_] | None]:
    """Hashes the values of a dictionary once. It has no more than there are rows: a slice may have one of far more."""
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
