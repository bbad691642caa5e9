"""Values of lists and structs as bytes, one run of bytes for each, and back; without Python objects.

A struct is its fields, one behind the other. A list is its length, then the headers of its values, then these. A
header, of four bytes, is one more than the number of bytes that a value takes; 0 is null. Numbers, times and booleans
are the bytes of Arrow's buffer, text and bytes are themselves; a map is a list of structs.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.columns.buffers import from_text, is_fixed_width, stored, text_values, truths, validity

__all__ = ["can_pack", "packed", "unpacked"]

Bytes = tuple[NDArray[np.int64], NDArray[np.uint8]]
"""Offsets, int64[n + 1] from 0 on, and the bytes that they bound, uint8."""

_HEADER = 4
_PIECE_BYTES = 1 << 18
"""Copied at a time: the place of each byte takes some tens of bytes."""


def can_pack(kind: pa.DataType) -> bool:
    """Whether values of a list, struct or map type can be packed: what is in them can."""
    tests = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list, pa.types.is_struct, pa.types.is_map)
    if any(test(kind) for test in tests):
        return all(can_pack(part) or _is_leaf(part) for part in (kind.field(i).type for i in range(kind.num_fields)))
    return False


def _is_leaf(kind: pa.DataType) -> bool:
    if isinstance(kind, pa.BaseExtensionType) or pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return False
    if pa.types.is_null(kind) or _is_text(kind) or pa.types.is_boolean(kind):
        return True
    return is_fixed_width(kind) and kind.bit_width >= 8


def _is_text(kind: pa.DataType) -> bool:
    wide = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    return wide or pa.types.is_string(kind) or pa.types.is_binary(kind)


def packed(array: pa.Array) -> Bytes:
    """Returns the bytes of each value of an array; null has none.

    Memory: up to a few times the bytes, and a few numbers for each value within.
    """
    kind = array.type
    valid = validity(array)
    if pa.types.is_null(kind):
        return np.zeros(len(array) + 1, np.int64), np.zeros(0, np.uint8)
    if pa.types.is_struct(kind):
        columns: list[Bytes] = []
        for i in range(kind.num_fields):
            child = array.field(i)
            values = packed(child)
            columns += [_headers(child, values), values]
        found = _side_by_side(columns, len(array))
    elif pa.types.is_nested(kind):
        found = _packed_lists(array)
    elif _is_text(kind):
        offsets, data = text_values(array)
        offsets = offsets.astype(np.int64)
        found = offsets - offsets[0], data[offsets[0] : offsets[-1]]
    elif pa.types.is_boolean(kind):
        found = _fixed(truths(array).view(np.uint8), 1)
    else:
        width = kind.bit_width // 8
        found = _fixed(stored(array, np.dtype((np.void, width))).view(np.uint8), width)
    return found if valid is None else _kept(found, valid.view(np.bool_))


def _fixed(data: NDArray[np.uint8], width: int) -> Bytes:
    return np.arange(len(data) // width + 1, dtype=np.int64) * width, data


def _packed_lists(array: pa.Array) -> Bytes:
    """Returns length, headers and values of lists; of null ones, of what lies under them.

    Arrow's own casts and flatten() are not for this: those of lists of nulls are wrong, and may end the process.
    """
    if pa.types.is_fixed_size_list(array.type):
        places = array.type.list_size * np.arange(array.offset, array.offset + len(array) + 1, dtype=np.int64)
    else:
        places = array.offsets.to_numpy().astype(np.int64)
    items = array.values.slice(places[0], places[-1] - places[0])
    lengths, bounds = np.diff(places), places - places[0]
    values = packed(items)
    headers = _headers(items, values)
    counts = _fixed(lengths.astype(np.uint32).view(np.uint8), _HEADER)
    parts = [counts, (headers[0][bounds], headers[1]), (values[0][bounds], values[1])]
    return _side_by_side(parts, len(array))


def _headers(array: pa.Array, values: Bytes) -> Bytes:
    sizes = np.diff(values[0]) + 1
    valid = validity(array)
    if pa.types.is_null(array.type):
        sizes[:] = 0
    elif valid is not None:
        sizes[valid == 0] = 0
    return _fixed(sizes.astype(np.uint32).view(np.uint8), _HEADER)


def _kept(values: Bytes, wanted: NDArray[np.bool_]) -> Bytes:
    """Returns values of which only the wanted ones have bytes."""
    offsets, data = values
    sizes = np.diff(offsets)
    return _offsets(np.where(wanted, sizes, 0)), data[np.repeat(wanted, sizes)]


def _offsets(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    out = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=out[1:])
    return out


def _side_by_side(columns: list[Bytes], n: int) -> Bytes:
    """Returns for each of n rows the bytes of all columns, one behind the other."""
    sizes = [np.diff(offsets) for offsets, _ in columns]
    offsets = _offsets(np.sum(sizes, axis=0, dtype=np.int64) if sizes else np.zeros(n, np.int64))
    out = np.empty(int(offsets[-1]), np.uint8)
    at = offsets[:-1].copy()
    for (ends, data), size in zip(columns, sizes, strict=True):
        for rows, piece in _pieces(ends):
            out[_places(at[rows], size[rows])] = data[piece]
        at += size
    return offsets, out


def _pieces(offsets: NDArray[np.int64]) -> Iterator[tuple[slice, slice]]:
    """Yields some values at a time, and the bytes of these: at most _PIECE_BYTES, or one value's.

    offsets: from 0 on.
    """
    at, n = 0, len(offsets) - 1
    while at < n:
        end = max(int(offsets.searchsorted(offsets[at] + _PIECE_BYTES, side="right")) - 1, at + 1)
        yield slice(at, end), slice(int(offsets[at]), int(offsets[end]))
        at = end


def _places(begins: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64] | slice:
    """Returns the places of runs of bytes, one behind the other; those of one run, which may be long, as a slice."""
    return slice(int(begins[0]), int(begins[0] + sizes[0])) if len(sizes) == 1 else _runs(begins, sizes)


def _runs(begins: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns ``begin, begin + 1, ...`` of each run, one behind the other."""
    before = np.cumsum(sizes) - sizes
    return np.arange(int(sizes.sum()), dtype=np.int64) + np.repeat(begins - before, sizes)


def unpacked(
    offsets: NDArray[np.int64], data: NDArray[np.uint8], valid: NDArray[np.bool_] | None, kind: pa.DataType
) -> pa.Array:
    """Returns the array of type ``kind`` whose bytes ``packed`` has given. valid: which are not null; None: all are."""
    n = len(offsets) - 1
    marks = np.ones(n, np.bool_) if valid is None else valid
    if pa.types.is_null(kind):
        return pa.nulls(n)
    if pa.types.is_struct(kind):
        return _unpacked_structs(offsets, data, marks, kind)
    if pa.types.is_nested(kind):
        return _unpacked_lists(offsets, data, marks, kind)
    if _is_text(kind):
        return from_text(offsets - offsets[0], data[offsets[0] : offsets[-1]], valid, kind)
    width = 1 if pa.types.is_boolean(kind) else kind.bit_width // 8
    cells = np.zeros((n, width), np.uint8)
    cells[marks] = data[offsets[0] : offsets[-1]].reshape(-1, width)  # nulls have no bytes
    if pa.types.is_boolean(kind):
        return pa.array(cells[:, 0].astype(np.bool_), kind, mask=~marks)
    bitmap = None if valid is None else pa.py_buffer(np.packbits(marks, bitorder="little"))
    return pa.Array.from_buffers(kind, n, [bitmap, pa.py_buffer(cells.reshape(-1))])


def _unpacked_structs(
    offsets: NDArray[np.int64], data: NDArray[np.uint8], marks: NDArray[np.bool_], kind: pa.DataType
) -> pa.Array:
    at = offsets[:-1].copy()
    children = []
    for field in kind:
        header = np.zeros(len(at), np.int64)
        header[marks] = _read(data, at[marks])
        at[marks] += _HEADER
        sizes = np.maximum(header - 1, 0)
        children.append(_child(data, at, sizes, header > 0, field.type))
        at += sizes
    if not children:
        return pa.array([{} if mark else None for mark in marks], kind)
    return pa.StructArray.from_arrays(children, fields=list(kind), mask=pa.array(~marks))


def _unpacked_lists(
    offsets: NDArray[np.int64], data: NDArray[np.uint8], marks: NDArray[np.bool_], kind: pa.DataType
) -> pa.Array:
    fixed = pa.types.is_fixed_size_list(kind)
    counts = np.full(len(marks), kind.list_size if fixed else 0, np.int64)
    counts[marks] = _read(data, offsets[:-1][marks])
    begins = offsets[:-1] + _HEADER
    known = np.repeat(marks, counts)  # under nulls of a fixed size lie nulls
    header = np.zeros(len(known), np.int64)
    places = np.repeat(begins, counts) + _HEADER * _runs(np.zeros_like(counts), counts)
    header[known] = _read(data, places[known])
    sizes = np.maximum(header - 1, 0)
    before = _offsets(sizes)
    bounds = _offsets(counts)
    first = np.repeat(begins + _HEADER * counts - before[bounds[:-1]], counts)
    at = first + before[:-1]
    is_map = pa.types.is_map(kind)
    item = pa.struct([kind.key_field, kind.item_field]) if is_map else kind.value_type
    items = _child(data, at, sizes, header > 0, item)
    if fixed:
        bitmap = None if marks.all() else pa.py_buffer(np.packbits(marks, bitorder="little"))
        return pa.Array.from_buffers(kind, len(marks), [bitmap], children=[items])
    large, mask = pa.types.is_large_list(kind), pa.array(~marks)
    ends = pa.array(bounds if large else bounds.astype(np.int32))
    if is_map:
        return pa.MapArray.from_arrays(ends, items.field(0), items.field(1), type=kind, mask=mask)
    if large:
        return pa.LargeListArray.from_arrays(ends, items, type=kind, mask=mask)
    return pa.ListArray.from_arrays(ends, items, type=kind, mask=mask)


def _child(
    data: NDArray[np.uint8],
    at: NDArray[np.int64],
    sizes: NDArray[np.int64],
    valid: NDArray[np.bool_],
    kind: pa.DataType,
) -> pa.Array:
    offsets = _offsets(sizes)
    found = np.empty(int(offsets[-1]), np.uint8)
    for rows, piece in _pieces(offsets):
        found[piece] = data[_places(at[rows], sizes[rows])]
    return unpacked(offsets, found, None if valid.all() else valid, kind)


def _read(data: NDArray[np.uint8], at: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the headers at some places."""
    return data[at[:, None] + np.arange(_HEADER)].view("<u4").reshape(-1).astype(np.int64)
