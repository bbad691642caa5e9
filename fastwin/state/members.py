"""One member of rows as bytes of its own: its mark, its plain cells, and each block that it owns behind its length."""

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fastwin.columns.buffers import from_text
from fastwin.core.accumulators.accumulator_set import AccumulatorSet
from fastwin.core.accumulators.exchange import owned_sizes, tidy_rows
from fastwin.core.rows.rowstore import RowStore
from fastwin.errors import StateError

__all__ = ["block_sizes", "empty_member", "load_members", "save_member"]

_LENGTH = struct.Struct("<I")


def _cells(accumulators: AccumulatorSet, index: int) -> tuple[list[int], list[int]]:
    """Returns the plain and the owning cells of a member, as places in a row."""
    first = accumulators.head_cells + sum(member.cells for member in accumulators.members[:index])
    cells = range(first, first + accumulators.members[index].cells)
    return [c for c in cells if c not in accumulators.owned], [c for c in cells if c in accumulators.owned]


def block_sizes(
    accumulators: AccumulatorSet, members: Sequence[int], rows: RowStore, slots: NDArray[np.int32]
) -> NDArray[np.int64]:
    """Returns how many bytes the blocks of some members, by their places in the set, take in each row: int64[n]."""
    cells = [cell for index in members for cell in _cells(accumulators, index)[1]]
    return owned_sizes(rows, slots, cells)


def save_member(accumulators: AccumulatorSet, index: int, rows: RowStore, slots: NDArray[np.int32]) -> pa.Array:
    """Returns what a member keeps of rows that are tidied, as a binary column; equal states have equal bytes."""
    plain, owning = _cells(accumulators, index)
    head = np.empty((len(slots), 1 + 8 * len(plain)), dtype=np.uint8)
    head[:, 0] = rows.bits(slots) >> index & 1
    if plain:
        cells = np.asarray(rows.gather(slots, np.array(plain, dtype=np.int32))).T
        head[:, 1:] = np.ascontiguousarray(cells, dtype="<i8").view(np.uint8)
    parts = [_fixed(head)]
    for cell in owning:
        offsets, data = rows.blobs(slots, cell)
        lengths = np.diff(offsets).astype("<u4")
        parts += [
            _fixed(lengths.view(np.uint8).reshape(len(slots), 4)),
            from_text(offsets, data, None, pa.large_binary()),
        ]
    nothing: Any = pa.scalar(b"", pa.large_binary())
    joined = pc.binary_join_element_wise(*(part.cast(pa.large_binary()) for part in parts), nothing)
    return joined.cast(pa.binary())


def _fixed(values: NDArray[np.uint8]) -> pa.Array:
    kind = pa.binary(values.shape[1])
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])


def empty_member(accumulators: AccumulatorSet, index: int) -> bytes:
    """Returns what a member keeps of no element."""
    rows = accumulators.new_rows()
    slots = rows.fresh(np.zeros(1, dtype=np.int32), np.zeros(1, dtype=np.int64))
    tidy_rows(accumulators, rows, slots)
    return save_member(accumulators, index, rows, slots)[0].as_py()


def load_members(accumulators: AccumulatorSet, columns: list[pa.Array]) -> dict[str, NDArray | pa.Array]:
    """Returns saved members, one column for each of a set, as the cells of rows: ``bits`` and ``c3`` and so on.

    Raises StateError for bytes that no member of this kind has saved.
    """
    found: dict[str, NDArray | pa.Array] = {"bits": np.zeros(len(columns[0]), dtype=np.int64)}
    for index, column in enumerate(columns):
        plain, owning = _cells(accumulators, index)
        states = column.to_pylist()
        size = 1 + 8 * len(plain)
        blobs: list[list[bytes]] = [[] for _ in owning]
        heads = []
        for state in states:
            heads.append(state[:size])
            at = size
            for held in blobs:
                end = at + _LENGTH.size
                if end <= len(state):
                    at, end = end, end + _LENGTH.unpack_from(state, at)[0]
                held.append(state[at:end])
                at = end
            if at != len(state):
                raise StateError(f"state: {len(state)} bytes are none of {type(accumulators.members[index]).__name__}")
        head = np.frombuffer(b"".join(heads), dtype=np.uint8).reshape(len(states), size)
        found["bits"] |= (head[:, 0].astype(np.int64) & 1) << index
        cells = np.ascontiguousarray(head[:, 1:]).view("<i8").reshape(len(states), len(plain))
        found |= {f"c{cell}": np.ascontiguousarray(cells[:, i]) for i, cell in enumerate(plain)}
        found |= {f"c{cell}": pa.array(held, pa.large_binary()) for cell, held in zip(owning, blobs, strict=True)}
    return found
