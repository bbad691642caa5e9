"""Cells: the value of one field of one pane as bytes. Numbers are decimal text, sketches are Redis's own strings."""

import struct
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from fastwin.columns.buffers import from_int64, int64_values, validity
from fastwin.errors import StoreError

__all__ = ["Cell", "from_cells", "pack", "to_cells", "unpack"]

Cell = bytes | None
"""None for null; never empty."""

_HEAD = struct.Struct(">QQ")
_LENGTH = struct.Struct(">I")


def to_cells(column: pa.Array | pa.ChunkedArray) -> list[Cell]:
    """Returns a column as cells: ints and times as decimal ints, floats in their shortest exact form, bytes as is."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):  # no chunk at all
        return []
    kind = array.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return array.to_pylist()
    if pa.types.is_floating(kind):
        return [None if value is None else repr(value).encode() for value in array.cast(pa.float64()).to_pylist()]
    numbers = pa.array(int64_values(array), mask=None if (valid := validity(array)) is None else valid == 0)
    return pc.cast(numbers, pa.string()).cast(pa.binary()).to_pylist()


def from_cells(cells: Sequence[Cell], kind: pa.DataType, name: str) -> pa.Array:
    """Returns cells as a column of a type.

    name: of the field, for errors. Raises StoreError for a cell that is no such value.
    """
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return pa.array(cells, kind)
    try:
        text = pa.array(cells, pa.binary()).cast(pa.string())
        if pa.types.is_floating(kind):
            return text.cast(pa.float64()).cast(kind)
        numbers = text.cast(pa.int64())
    except pa.ArrowException as problem:
        raise StoreError(f"store: the field {name!r} of a pane holds what is no number: {problem}") from None
    return from_int64(int64_values(numbers), validity(numbers), kind)


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
