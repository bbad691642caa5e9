"""Cells: the value of one field of one pane as bytes. Numbers are decimal text, sketches are Redis's own strings."""

import struct
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from fastwin.columns.buffers import from_int64, int64_values, validity
from fastwin.columns.validtext import is_text, valid_text
from fastwin.errors import StoreError

__all__ = ["Cell", "from_cells", "pack", "to_cells", "unpack"]

Cell = bytes | None
"""None for null."""

_TRUTHS = (b"0", b"1")

_HEAD = struct.Struct(">QQ")
_LENGTH = struct.Struct(">I")


def to_cells(column: pa.Array | pa.ChunkedArray) -> list[Cell]:
    """Returns a column as cells: ints and times as decimal ints, booleans as 0 and 1, floats in their shortest exact
    form, decimals with all places, text and bytes as they are; of states the bytes."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):  # no chunk at all
        return []
    kind = array.type
    if pa.types.is_struct(kind):
        return array.field("state").to_pylist()
    if _is_plain(kind):
        return array.cast(pa.large_binary()).to_pylist()
    if pa.types.is_boolean(kind):
        return [None if value is None else _TRUTHS[value] for value in array.to_pylist()]
    if pa.types.is_decimal(kind):
        return [None if value is None else f"{value:f}".encode() for value in array.to_pylist()]
    if pa.types.is_floating(kind):
        return [None if value is None else repr(value).encode() for value in array.cast(pa.float64()).to_pylist()]
    if kind == pa.uint64():
        return pc.cast(array, pa.string()).cast(pa.binary()).to_pylist()
    numbers = pa.array(int64_values(array), mask=None if (valid := validity(array)) is None else valid == 0)
    return pc.cast(numbers, pa.string()).cast(pa.binary()).to_pylist()


def from_cells(cells: Sequence[Cell], kind: pa.DataType, name: str) -> pa.Array:
    """Returns cells as a column of a type; states as their bytes.

    name: of the field, for errors. In text, U+FFFD stands for bytes that are no UTF-8. Raises StoreError for a cell
    that is no such value.
    """
    if pa.types.is_struct(kind):
        return pa.array(cells, pa.binary())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return pa.array(cells, kind)
    if is_text(kind):
        raw = pa.large_binary() if pa.types.is_large_string(kind) else pa.binary()
        return valid_text(pa.array(cells, raw).view(kind))
    try:
        text = pa.array(cells, pa.binary()).cast(pa.string())
        if pa.types.is_decimal(kind) or kind == pa.uint64():
            return text.cast(kind)
        if pa.types.is_floating(kind):
            return text.cast(pa.float64()).cast(kind)
        numbers = text.cast(pa.int64())
        if pa.types.is_boolean(kind):
            return numbers.cast(pa.bool_())
    except pa.ArrowException as problem:
        raise StoreError(f"store: the field {name!r} of a pane holds what is no number: {problem}") from None
    return from_int64(int64_values(numbers), validity(numbers), kind)


def _is_plain(kind: pa.DataType) -> bool:
    """Whether values are bytes already, or text."""
    tests = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_string, pa.types.is_large_string)
    return any(test(kind) for test in tests)


def pack(revision: tuple[int, int], cells: Sequence[Cell]) -> bytes:
    """Returns a pane as one record: its revision, then each cell behind its length plus one, 0 for null."""
    parts = [_HEAD.pack(*revision)]
    for cell in cells:
        parts += [_LENGTH.pack(0)] if cell is None else [_LENGTH.pack(len(cell) + 1), cell]
    return b"".join(parts)


def unpack(record: bytes) -> tuple[tuple[int, int], list[Cell]]:
    """Returns the revision and the cells of a record. Raises StoreError for bytes that are none."""
    try:
        epoch, batch = _HEAD.unpack_from(record)
        cells: list[Cell] = []
        at = _HEAD.size
        while at < len(record):
            (length,) = _LENGTH.unpack_from(record, at)
            at += _LENGTH.size
            if at + max(length - 1, 0) > len(record):
                raise StoreError("store: a pane's record is cut off")
            cells.append(record[at : at + length - 1] if length else None)
            at += max(length - 1, 0)
    except struct.error:
        raise StoreError("store: a pane's record is damaged") from None
    return (epoch, batch), cells
