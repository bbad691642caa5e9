"""Between Arrow arrays and the numpy buffers that the kernels work on, without Python objects."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = [
    "decoded",
    "decoded_type",
    "encoded",
    "from_int64",
    "from_text",
    "from_values",
    "int64_values",
    "is_fixed_width",
    "roomy_text",
    "roomy_type",
    "take_rows",
    "text_values",
    "validity",
]

_STORED_AS = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}


def _without_views(kind: pa.DataType) -> pa.DataType:
    """The type without views, at any depth: Arrow can neither take nor filter views."""
    if pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _without_views(kind.value_type), kind.ordered)
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_without_views(kind.value_type)))
    if pa.types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(_without_views(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_without_views(field.type)) for field in kind])
    return kind


def decoded_type(kind: pa.DataType) -> pa.DataType:
    """Returns the type in which values of ``kind`` leave: dictionaries and views are decoded."""
    kind = _without_views(kind)
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def roomy_type(kind: pa.DataType) -> pa.DataType:
    """Returns the type that also takes what later batches bring: a dictionary of more values than its index counts."""
    if pa.types.is_dictionary(kind) and kind.index_type.bit_width < 32:
        return pa.dictionary(pa.int32(), kind.value_type, kind.ordered)
    return kind


def is_fixed_width(kind: pa.DataType) -> bool:
    """Whether values of a type take the same room each, so that an array of them may be of any length."""
    try:
        return kind.bit_width >= 0
    except ValueError:
        return False


def roomy_text(array: pa.Array) -> pa.Array:
    """Returns text or bytes with offsets of 64 bits, so that arrays may be put together to any size; others stay."""
    if pa.types.is_string(array.type):
        return array.cast(pa.large_string())
    return array.cast(pa.large_binary()) if pa.types.is_binary(array.type) else array


def encoded(array: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """Returns an array cast to ``kind``, also to a dictionary type. Raises ArrowInvalid where that loses something."""
    if pa.types.is_dictionary(kind) and not pa.types.is_dictionary(array.type):
        array = array.cast(_without_views(kind.value_type)).dictionary_encode()
    return array.cast(kind)


def decoded(array: pa.Array) -> pa.Array:
    """Returns an array of dictionary or view type as one of its ``decoded_type``; others as they are."""
    kind = _without_views(array.type)
    if array.type != kind:
        array = array.cast(kind)
    return array.dictionary_decode() if pa.types.is_dictionary(kind) else array


def take_rows(rows: pa.RecordBatch, indices: NDArray[np.int64]) -> pa.RecordBatch:
    """Returns the rows at the given indices; the types stay, also those that Arrow itself cannot take."""
    wanted = pa.array(indices)
    columns = []
    for column in rows.columns:
        kind = _without_views(column.type)
        same = kind == column.type
        columns.append(column.take(wanted) if same else column.cast(kind).take(wanted).cast(column.type))
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


def validity(array: pa.Array) -> NDArray[np.uint8] | None:
    """Returns one byte a value, 0 for null: uint8[n]; None if no value is null."""
    if array.null_count == 0:
        return None
    if pa.types.is_null(array.type):
        return np.zeros(len(array), dtype=np.uint8)
    bits = np.frombuffer(array.buffers()[0], dtype=np.uint8)
    first = array.offset // 8
    marks = np.unpackbits(bits[first : (array.offset + len(array) + 7) // 8], bitorder="little")
    return marks[array.offset - 8 * first :][: len(array)]


def _stored(array: pa.Array, dtype: np.dtype | type) -> NDArray:
    data = array.buffers()[1]
    if data is None:
        return np.zeros(len(array), dtype=dtype)
    return np.frombuffer(data, dtype=dtype)[array.offset : array.offset + len(array)]


def int64_values(array: pa.Array) -> NDArray[np.int64]:
    """Returns the values of a fixed-width array as int64[n], what lies under nulls undefined.

    Ints are widened, uint64 and 64-bit times are viewed, booleans are 0 and 1, floats are viewed as
    the bits of their float64 with -0.0 made 0.0 and all NaN made one. No copy where there is none to make.
    """
    kind = array.type
    if pa.types.is_null(kind):
        return np.zeros(len(array), dtype=np.int64)
    if pa.types.is_boolean(kind):
        bits = np.frombuffer(array.buffers()[1], dtype=np.uint8) if len(array) else np.zeros(0, dtype=np.uint8)
        return np.unpackbits(bits, bitorder="little")[array.offset : array.offset + len(array)].astype(np.int64)
    if pa.types.is_floating(kind):
        floats = _stored(array, np.dtype(f"f{kind.bit_width // 8}")).astype(np.float64) + 0.0
        floats[np.isnan(floats)] = np.nan
        return floats.view(np.int64)
    width = kind.bit_width // 8
    unsigned = pa.types.is_unsigned_integer(kind)
    values = _stored(array, np.dtype(f"u{width}") if unsigned else _STORED_AS[width])
    return values.view(np.int64) if width == 8 else values.astype(np.int64)


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
    offsets = np.frombuffer(ends, dtype=dtype)[array.offset : array.offset + n + 1]
    return offsets, np.zeros(0, dtype=np.uint8) if data is None else np.frombuffer(data, dtype=np.uint8)


def _bitmap(valid: NDArray | None) -> pa.Buffer | None:
    if valid is None:
        return None
    return pa.py_buffer(np.packbits(valid.view(np.bool_), bitorder="little"))


def from_values(values: NDArray, valid: NDArray | None, kind: pa.DataType) -> pa.Array:
    """Returns an array of type ``kind`` over values that have its storage type: no copy."""
    return pa.Array.from_buffers(kind, len(values), [_bitmap(valid), pa.py_buffer(np.ascontiguousarray(values))])


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
    """Returns the array of type ``kind`` whose values text_values() had given."""
    n = len(offsets) - 1
    if pa.types.is_decimal(kind) or pa.types.is_fixed_size_binary(kind):
        width = kind.bit_width // 8
        if len(data) != n * width:  # nulls took no bytes
            whole = np.zeros((n, width), dtype=np.uint8)
            whole[np.diff(offsets) > 0] = data.reshape(-1, width)
            data = whole.reshape(-1)
        return pa.Array.from_buffers(kind, n, [_bitmap(valid), pa.py_buffer(data)])
    wide = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    if not wide and offsets[-1] > 2**31 - 1:
        kind = pa.large_string() if pa.types.is_string(kind) else pa.large_binary()
        wide = True
    ends = offsets if wide else offsets.astype(np.int32)
    return pa.Array.from_buffers(kind, n, [_bitmap(valid), pa.py_buffer(ends), pa.py_buffer(data)])
