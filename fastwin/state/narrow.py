"""Columns of whole numbers in as few bytes as they take.

A note tells what was made of a column ``x``: ``[type, size, least, first]``. What is kept are distances from ``least``,
of ``size`` bytes, of the values or, unless ``first`` is null, of the steps from each value to the next, beginning with
the value ``first``. Distances of 3, 5, 6 or 7 bytes are divided among the columns ``x`` (the lowest 2 or 4 bytes),
``x/1`` and ``x/2``.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.columns.buffers import aligned, in_one
from fastwin.core.memory.widening import widen

__all__ = ["NarrowTables", "column_of", "names_in", "narrowed", "widened"]

_Pieces = dict[str, list[NDArray[Any]]]
_PIECES: Final = {1: (1,), 2: (2,), 3: (2, 1), 4: (4,), 5: (4, 1), 6: (4, 2), 7: (4, 2, 1)}
"""Into which unsigned numbers one of so many bytes is divided, lowest first."""


def narrowed(table: pa.Table) -> tuple[pa.Table, dict[str, list[Any]]]:
    """Returns a table whose columns of whole numbers take as few bytes as they can, and what ``widened`` needs."""
    columns: dict[str, Any] = {}
    notes = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        whole = column.type in (pa.int64(), pa.int32()) and len(column) and not column.null_count
        found = _pieces(in_one(column).to_numpy()) if whole else None
        if found is None:
            columns[name] = column
        else:
            pieces, notes[name] = found
            columns |= {_piece(name, i): pa.array(piece) for i, piece in enumerate(pieces)}
    return pa.table(columns), notes


def _pieces(values: NDArray[Any]) -> tuple[list[NDArray[Any]], list[Any]] | None:
    """Returns what a column is divided into, and its note; None if that takes no less than the column itself."""
    first = None
    size, least = _range(values)
    if size > 1 and len(values) > 1:
        steps = np.diff(values)  # may wrap around, and back again
        step_size, least_step = _range(steps)
        if step_size < size:
            first, size, least = int(values[0]), step_size, least_step
            values = np.concatenate([np.array([least], dtype=values.dtype), steps])
    if size >= values.dtype.itemsize:
        return None
    left = (values - values.dtype.type(least)).view(f"u{values.dtype.itemsize}")
    pieces = []
    for width in _PIECES[size]:
        pieces.append(left.astype(f"u{width}"))
        left = left >> np.array(8 * width, dtype=left.dtype) if width < left.dtype.itemsize else left
    return pieces, [str(values.dtype), size, least, first]


def _range(values: NDArray[Any]) -> tuple[int, int]:
    """Returns how many bytes the distance from the least value takes, at least one, and that value."""
    least = int(values.min())
    return max(1, -(-(int(values.max()) - least).bit_length() // 8)), least


def _piece(name: str, number: int) -> str:
    return f"{name}/{number}" if number else name


def widened(table: pa.Table, notes: dict[str, list[Any]]) -> pa.Table:
    """Returns the table that ``narrowed`` was given. Raises ValueError, and others, for notes of no such table."""
    return _widened(table, notes, _all_checked(table, notes))


def _widened(table: pa.Table, notes: dict[str, list[Any]], pieces: _Pieces) -> pa.Table:
    for name, note in notes.items():
        spare = [_piece(name, number) for number in range(1, len(pieces[name]))]
        table = table.drop_columns(spare) if spare else table
        table = table.set_column(table.column_names.index(name), name, pa.array(_wide(note, pieces[name])))
    return table


def _wide(note: list[Any], pieces: list[NDArray[Any]]) -> NDArray[Any]:
    kind, _, least, first = note
    return widen(pieces, np.dtype(kind).itemsize, least, first)


def _all_checked(table: pa.Table, notes: dict[str, list[Any]]) -> _Pieces:
    return {name: _checked(table, name, note) for name, note in notes.items()}


def _checked(table: pa.Table, name: str, note: list[Any]) -> list[NDArray[Any]]:
    """Returns the pieces of a column. Raises ValueError, and others, where there are none that ``widen`` can take."""
    kind, size, least, first = note
    if kind not in ("int32", "int64") or type(least) is not int or type(first) not in (int, type(None)):
        raise ValueError(f"column {name}: a note of {kind}, {least}, {first}")
    np.array([least, first or 0], dtype=kind)  # raises OverflowError where they do not fit
    pieces = [
        aligned(in_one(table[_piece(name, number)]).to_numpy(zero_copy_only=False))
        for number in range(len(_PIECES[size]))
    ]
    if [piece.dtype for piece in pieces] != [np.dtype(f"u{width}") for width in _PIECES[size]]:
        raise ValueError(f"column {name}: {size} bytes in pieces of {[str(piece.dtype) for piece in pieces]}")
    return pieces


class NarrowTables(Mapping[str, pa.Table]):
    """Tables that are widened whenever they are looked at: between looks they take a fraction of their bytes.

    So many of them can be held at once, and be taken one after the other. Raises ValueError, and others, for notes that
    do not go with their tables.
    """

    def __init__(self, parts: dict[str, tuple[pa.Table, dict[str, list[Any]]]]) -> None:
        self._parts = {name: (table, notes, _all_checked(table, notes)) for name, (table, notes) in parts.items()}

    def __getitem__(self, name: str) -> pa.Table:
        return _widened(*self._parts[name])

    def __contains__(self, name: object) -> bool:
        return name in self._parts

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def column(self, table: str, name: str) -> NDArray[Any]:
        """Returns one column."""
        narrow, notes, pieces = self._parts[table]
        return _wide(notes[name], pieces[name]) if name in notes else narrow[name].to_numpy()

    def names(self, table: str) -> list[str]:
        """Returns the names of the columns of a table, and of the pieces of them."""
        return self._parts[table][0].column_names


def column_of(tables: Mapping[str, pa.Table], table: str, name: str) -> NDArray[Any]:
    """Returns one column of one of the tables. The others are not widened for it."""
    return tables.column(table, name) if isinstance(tables, NarrowTables) else tables[table][name].to_numpy()


def names_in(tables: Mapping[str, pa.Table], table: str) -> list[str]:
    """Returns the names of the columns of one of the tables, and perhaps of pieces of them."""
    return tables.names(table) if isinstance(tables, NarrowTables) else tables[table].column_names
