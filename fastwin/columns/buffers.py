"""Between Arrow arrays and the numpy buffers that the kernels work on, without Python objects."""

from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.core.memory.gather import take

__all__ = [
    "aligned",
    "from_int64",
    "from_text",
    "from_values",
    "in_one",
    "int64_values",
    "is_fixed_width",
    "repeated",
    "roomy_text",
    "runs",
    "sortable",
    "spread",
    "stored",
    "taken_words",
    "text_values",
    "truths",
    "validity",
]

_KEPT_TEXTS = 1 << 16
_MOST_BYTES = 2**31 - 1  # that offsets of 32 bits reach
_STORED_AS = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}


def is_fixed_width(kind: pa.DataType) -> bool:
    """Whether values of a type take the same room each, so that an array of them may be of any length."""
    try:
        return kind.bit_width >= 0
    except ValueError:
        return False


def roomy_text(array: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Returns text or bytes with offsets of 64 bits, so that arrays may be put together to any size; others stay."""
    if pa.types.is_string(array.type):
        return array.cast(pa.large_string())
    return array.cast(pa.large_binary()) if pa.types.is_binary(array.type) else array


def validity(array: pa.Array) -> NDArray[np.uint8] | None:
    """Returns one byte a value, 0 for null: uint8[n]; None if no value is null."""
    if array.null_count == 0:
        return None
    if pa.types.is_null(array.type):
        return np.zeros(len(array), dtype=np.uint8)
    return _unpacked(array.buffers()[0], array)


def truths(array: pa.Array) -> NDArray[np.bool_]:
    """Returns which values of a boolean array are true: bool[n]; null is not. Of a type of nulls alone, none is."""
    bits = None if pa.types.is_null(array.type) else array.buffers()[1]
    if bits is None or not len(array):
        return np.zeros(len(array), dtype=np.bool_)
    valid = validity(array)
    found = _unpacked(bits, array)
    return (found if valid is None else found & valid).view(np.bool_)


def _unpacked(bits: pa.Buffer, array: pa.Array) -> NDArray[np.uint8]:
    """Returns the array's part of a buffer that has one bit a value, as one byte a value."""
    first = array.offset // 8
    part = np.frombuffer(bits, dtype=np.uint8)[first : (array.offset + len(array) + 7) // 8]
    return np.unpackbits(part, bitorder="little")[array.offset - 8 * first :][: len(array)]


def aligned(values: NDArray) -> NDArray:
    """Returns the values where kernels can read them: a copy if they begin at an address that does not suit their type.

    Arrow takes buffers from anywhere, such as a message in the middle of a mapped file.
    """
    return values if values.flags.aligned else values.copy()


def in_one(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Returns a column as one array. What is one already is not copied, which ``combine_chunks`` does."""
    if isinstance(column, pa.Array):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def runs(array: pa.RunEndEncodedArray) -> NDArray[np.intp]:
    """Returns for each value of a run-end-encoded array which run it is of: intp[n]."""
    places = np.arange(array.offset, array.offset + len(array))
    return np.searchsorted(array.run_ends.to_numpy(), places, side="right")


def stored(array: pa.Array, dtype: np.dtype | type) -> NDArray:
    """Returns the values of a fixed-width array as its buffer holds them, what lies under nulls undefined."""
    data = array.buffers()[1]
    if data is None or not len(array):
        return np.zeros(len(array), dtype=dtype)
    return aligned(np.frombuffer(data, dtype, len(array), array.offset * np.dtype(dtype).itemsize))


def int64_values(array: pa.Array) -> NDArray[np.int64]:
    """Returns the values of a fixed-width array as int64[n], what lies under nulls undefined.

    Ints are widened, uint64 and 64-bit times are viewed, booleans are 0 and 1, floats are viewed as
    the bits of their float64 with -0.0 made 0.0 and all NaN made one. No copy where there is none to make.
    """
    kind = array.type
    if pa.types.is_null(kind):
        return np.zeros(len(array), dtype=np.int64)
    if pa.types.is_boolean(kind):
        bits = array.buffers()[1]
        if bits is None or not len(array):
            return np.zeros(len(array), dtype=np.int64)
        return _unpacked(bits, array).astype(np.int64)
    if pa.types.is_floating(kind):
        floats = stored(array, np.dtype(f"f{kind.bit_width // 8}")).astype(np.float64) + 0.0
        floats[np.isnan(floats)] = np.nan
        return floats.view(np.int64)
    width = kind.bit_width // 8
    unsigned = pa.types.is_unsigned_integer(kind)
    values = stored(array, np.dtype(f"u{width}") if unsigned else _STORED_AS[width])
    return values.view(np.int64) if width == 8 else values.astype(np.int64)


def sortable(array: pa.Array) -> NDArray[np.int64] | None:
    """Returns numbers in the order of the values of an array without nulls: int64[n]; NaN is above all other floats.

    None: the type has no such numbers, as text and decimals. (What accumulators keep of values in order is said by
    ``columns.values``: there floats stay floats, and text has bytes.)
    """
    kind = array.type
    if pa.types.is_floating(kind):
        bits = int64_values(array)
        return bits ^ (bits >> 63 & np.iinfo(np.int64).max)
    if pa.types.is_integer(kind) or pa.types.is_temporal(kind) or pa.types.is_boolean(kind):
        if pa.types.is_interval(kind):
            return None
        return int64_values(array) ^ (np.iinfo(np.int64).min if kind == pa.uint64() else 0)
    return None


def text_values(array: pa.Array) -> tuple[NDArray[np.int32] | NDArray[np.int64], NDArray[np.uint8]]:
    """Returns ``(offsets, data)`` of an array of text, bytes, fixed-size bytes or decimals.

    offsets: int32 or int64[n + 1]; value i is ``data[offsets[i]:offsets[i + 1]]``. data: uint8.
    """
    kind, n = array.type, len(array)
    if pa.types.is_decimal(kind) or pa.types.is_fixed_size_binary(kind):
        width = kind.bit_width // 8
        data = array.buffers()[1]
        whole = np.zeros(0, dtype=np.uint8) if data is None else np.frombuffer(data, dtype=np.uint8)
        return np.arange(array.offset, array.offset + n + 1, dtype=np.int64) * width, whole
    wide = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    _, ends, data = array.buffers()
    dtype: Any = np.int64 if wide else np.int32
    if ends is None or ends.size == 0:
        return np.zeros(n + 1, dtype=dtype), np.zeros(0, dtype=np.uint8)
    offsets = aligned(np.frombuffer(ends, dtype, n + 1, array.offset * np.dtype(dtype).itemsize))
    return offsets, np.zeros(0, dtype=np.uint8) if data is None else np.frombuffer(data, dtype=np.uint8)


def _bitmap(valid: NDArray | None) -> pa.Buffer | None:
    if valid is None:
        return None
    return pa.py_buffer(np.packbits(valid.view(np.bool_), bitorder="little"))


def from_values(values: NDArray, valid: NDArray | None, kind: pa.DataType) -> pa.Array:
    """Returns an array of type ``kind`` over values that have its storage type: no copy."""
    return pa.Array.from_buffers(kind, len(values), [_bitmap(valid), pa.py_buffer(np.ascontiguousarray(values))])


def taken_words(array: pa.Array, places: NDArray[np.int64] | NDArray[np.int32]) -> pa.Array | None:
    """Returns the values at some places, none of them negative; None where a value is null, or has no 8 bytes.

    Arrow itself asks for fresh memory each time, and pages that are touched first cost more than what is copied there.
    """
    kind = array.type
    if array.null_count or not pa.types.is_primitive(kind) or kind.bit_width != 64:
        return None
    return from_values(take(stored(array, np.int64), places), None, kind)


def from_int64(values: NDArray[np.int64], valid: NDArray | None, kind: pa.DataType) -> pa.Array:
    """Returns the array of type ``kind`` that int64_values() had been given."""
    if pa.types.is_null(kind):
        return pa.nulls(len(values))
    if pa.types.is_boolean(kind):
        return pa.Array.from_buffers(
            kind, len(values), [_bitmap(valid), pa.py_buffer(np.packbits(values != 0, bitorder="little"))]
        )
    if pa.types.is_floating(kind):
        return from_values(values.view(np.float64).astype(f"f{kind.bit_width // 8}"), valid, kind)
    return from_values(values.astype(f"i{kind.bit_width // 8}", copy=False), valid, kind)


def from_text(
    offsets: NDArray[np.int64], data: NDArray[np.uint8], valid: NDArray | None, kind: pa.DataType
) -> pa.Array:
    """Returns the array of type ``kind`` whose values text_values() had given.

    Text or bytes that offsets of 32 bits do not reach have some of 64.
    """
    n = len(offsets) - 1
    if pa.types.is_decimal(kind) or pa.types.is_fixed_size_binary(kind):
        width = kind.bit_width // 8
        if len(data) != n * width:  # nulls took no bytes
            whole = np.zeros((n, width), dtype=np.uint8)
            whole[np.diff(offsets) > 0] = data.reshape(-1, width)
            data = whole.reshape(-1)
        return pa.Array.from_buffers(kind, n, [_bitmap(valid), pa.py_buffer(data)])
    wide = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    if not wide and offsets[-1] > _MOST_BYTES:
        kind = pa.large_string() if pa.types.is_string(kind) else pa.large_binary()
        wide = True
    ends = offsets if wide else offsets.astype(np.int32)
    return pa.Array.from_buffers(kind, n, [_bitmap(valid), pa.py_buffer(ends), pa.py_buffer(data)])


def spread(column: pa.Array, places: NDArray[np.int64], n: int, other: pa.Array) -> pa.Array:
    """Returns n values: those of a column at the given places, int64[len(column)], and that of ``other`` elsewhere.

    other: one value of the same type. Each place is one of 0 to n - 1.

    >>> spread(pa.array([5, None]), np.array([3, 1]), 4, pa.array([0])).to_pylist()
    [0, None, 0, 5]
    """
    kind = column.type
    if not pa.types.is_primitive(kind) or kind.bit_width not in (8, 16, 32, 64):
        found = np.zeros(n, np.int32)
        found[places] = np.arange(1, len(column) + 1)
        return pa.concat_arrays([other, column]).take(pa.array(found))
    dtype = _STORED_AS[kind.bit_width // 8]
    values = np.full(n, stored(other, dtype)[0])
    values[places] = stored(column, dtype)
    if not column.null_count and not other.null_count:
        return from_values(values, None, kind)
    valid, known = np.full(n, not other.null_count), validity(column)
    valid[places] = True if known is None else known
    return from_values(values, valid, kind)


def repeated(text: str, n: int) -> pa.Array:
    """Returns a text n times: mostly a part of what is kept, since Arrow writes each of them."""
    return _kept_texts(text)[:n] if n <= _KEPT_TEXTS else pa.repeat(text, n)


@lru_cache(maxsize=32)
def _kept_texts(text: str) -> pa.Array:
    return pa.repeat(text, _KEPT_TEXTS)
