"""Pieces: the columns of rows as record batches, none of which grows beyond what Arrow's 32-bit offsets reach."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.columns.buffers import is_fixed_width, roomy_text, taken_words, text_values
from fastwin.operators.parts import parts_within

__all__ = ["Pieces", "cut"]

MOST_BYTES = 1 << 30
"""Of a piece, and of what is taken at once. Text and most lists reach 2 GiB; one value may be larger than this."""


class Pieces:
    """Columns of rows by slot, their place among all. schema: of the columns.

    Adding is O(log rows) copies of a row, amortised; taking looks at no other rows.
    """

    def __init__(self, schema: pa.Schema, *rows: pa.RecordBatch) -> None:
        self.schema = schema
        self._take_over(list(rows))

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return sum(piece.nbytes for piece in self._pieces)

    def __len__(self) -> int:
        return sum(piece.num_rows for piece in self._pieces)

    def add(self, rows: pa.RecordBatch) -> None:
        """Adds rows behind all others. They get memory of their own: a caller may fill its own anew."""
        pieces = [*self._pieces, rows]
        while len(pieces) > 1 and pieces[-2].num_rows < 2 * pieces[-1].num_rows:
            if pieces[-2].nbytes + pieces[-1].nbytes > MOST_BYTES:
                break
            pieces[-2:] = [pa.concat_batches(pieces[-2:])]
        if pieces[-1] is rows:
            pieces[-1] = pa.concat_batches([rows, rows[:0]])
        self._take_over(pieces)

    def keep(self, slots: NDArray) -> None:
        """Leaves some rows, each once, in the order in which they are given. O(rows)."""
        self._take_over(list(self.batches(slots)))

    def _take_over(self, pieces: list[pa.RecordBatch]) -> None:
        self._pieces = pieces
        self._begins = np.cumsum([0, *(piece.num_rows for piece in pieces)], dtype=np.int64)[:-1]

    def batches(self, slots: NDArray) -> Iterator[pa.RecordBatch]:
        """Yields the rows at some slots, each there once, in batches that are not too large."""
        for part in [slice(None)] if self.nbytes <= MOST_BYTES else self.parts(slots):
            yield pa.RecordBatch.from_arrays(self.take(slots[part]), schema=self.schema)

    def take(self, slots: NDArray, names: Sequence[str] | None = None) -> list[pa.Array]:
        """Returns the values of columns, None: of all, at some slots; null where a slot is negative.

        They are not too large for an array if ``parts`` says so.
        """
        if self._are_in_one(slots):
            return [_taken(self._pieces[0].column(at), slots) for at in self._at(names)]
        found = [(self._pieces[i], mine, pa.array(slots[mine] - self._begins[i])) for i, mine in self._spread(slots)]
        order = np.concatenate([mine for _, mine, _ in found]) if found else np.empty(0, np.int64)
        places = None
        if len(order) < len(slots) or (order[1:] < order[:-1]).any():
            back = np.zeros(len(slots), np.int64)
            back[order] = np.arange(len(order))
            places = pa.array(back, mask=slots < 0)
        arrays = []
        for at in self._at(names):
            parts = [piece.column(at).take(rows) for piece, _, rows in found] or [
                pa.nulls(0, self.schema.field(at).type)
            ]
            whole = parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
            arrays.append(whole if places is None else whole.take(places))
        return arrays

    def gathered(self, name: str, slots: NDArray) -> pa.Array:
        """Returns the values of a column at some slots, however large: text may have 64-bit offsets."""
        arrays = [self.take(slots[part], [name])[0] for part in self.parts(slots, [name])]
        return arrays[0] if len(arrays) == 1 else pa.concat_arrays([roomy_text(array) for array in arrays])

    def parts(self, slots: NDArray, names: Sequence[str] | None = None) -> Iterator[slice]:
        """Yields parts of slots of which each can be taken at once."""
        return cut(self.sizes(slots, names))

    def are_fixed(self, names: Sequence[str] | None = None) -> bool:
        """Whether all values of columns take the same room, so that any number of them can be taken at once."""
        return all(is_fixed_width(self.schema.field(at).type) for at in self._at(names))

    def sizes(self, slots: NDArray, names: Sequence[str] | None = None) -> NDArray[np.int64]:
        """Returns how many bytes the values at each slot take, but those of fixed width: int64[n]."""
        found = np.zeros(len(slots), np.int64)
        columns = [at for at in self._at(names) if not is_fixed_width(self.schema.field(at).type)]
        for i, mine in self._spread(slots) if columns else ():
            begins = slots[mine] - self._begins[i]
            for at in columns:
                found[mine] += _bytes_between(self._pieces[i].column(at), begins, begins + 1)
        return found

    def _at(self, names: Sequence[str] | None) -> Sequence[int]:
        return range(len(self.schema)) if names is None else [self.schema.get_field_index(name) for name in names]

    def _are_in_one(self, slots: NDArray) -> bool:
        """Whether there is one piece, and no slot is negative."""
        return len(self._pieces) == 1 and (not len(slots) or bool(slots.min() >= 0))

    def _spread(self, slots: NDArray) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Yields each piece that has some of the slots, and the places of these among all, ascending."""
        if self._are_in_one(slots):
            yield 0, np.arange(len(slots))
            return
        of = (np.searchsorted(self._begins, slots, side="right") - 1).astype(np.int16)  # sorted by radix
        order = np.argsort(of, kind="stable")
        ends = np.searchsorted(of[order], np.arange(len(self._pieces) + 1))
        for i in np.flatnonzero(np.diff(ends)).tolist():
            yield i, order[ends[i] : ends[i + 1]]


def _taken(column: pa.Array, slots: NDArray) -> pa.Array:
    words = taken_words(column, slots)
    return column.take(pa.array(slots)) if words is None else words


def cut(sizes: NDArray[np.int64], most: int | None = None) -> Iterator[slice]:
    """Yields parts of sizes, see ``parts_within``. most: None: MOST_BYTES."""
    return parts_within(sizes, MOST_BYTES if most is None else most)


def _bytes_between(array: pa.Array, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns how many bytes the values from one place up to another take, without their offsets: int64[n]."""
    if isinstance(array, pa.ExtensionArray):
        return _bytes_between(array.storage, begins, ends)
    if isinstance(array, pa.StringArray | pa.BinaryArray | pa.LargeStringArray | pa.LargeBinaryArray):
        offsets = text_values(array)[0]
        return offsets[ends].astype(np.int64) - offsets[begins]
    if isinstance(array, pa.ListArray | pa.LargeListArray):  # maps, too
        offsets = array.offsets.to_numpy()
        return _bytes_between(array.values, offsets[begins].astype(np.int64), offsets[ends].astype(np.int64))
    if isinstance(array, pa.FixedSizeListArray):
        size, first = array.type.list_size, array.offset
        return _bytes_between(array.values, (first + begins) * size, (first + ends) * size)
    if isinstance(array, pa.StructArray):
        found = [_bytes_between(array.field(i), begins, ends) for i in range(array.type.num_fields)]
        return sum(found, np.zeros(len(begins), np.int64))
    return (ends - begins) * (array.nbytes // max(len(array), 1) + 1)
