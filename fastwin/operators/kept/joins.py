"""Joins: what becomes of the rows of two inputs when their window fires."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.columns.exact import Exact
from fastwin.columns.pythonvalues import exact_values
from fastwin.columns.row import Row, Rows, RowType
from fastwin.core.rows.firings import sides_apart
from fastwin.errors import SpecError, UserFunctionError
from fastwin.operators.general.returned import check_rows, first_unsuited, row_maker, to_arrays
from fastwin.operators.kept.pairing import SideOfGroups, paired, widths
from fastwin.operators.kept.picks import Fired, counts_of
from fastwin.operators.kept.pieces import Pieces, cut
from fastwin.operators.kept.upto import firsts_of, rows_upto
from fastwin.spec.joinending import SIDE, Columns, JoinEnding, free_name
from fastwin.windows.timewindow import TimeWindow

__all__ = ["CoGroup", "Pairs"]

# Rows of firings.
_TOGETHER = 1 << 20


class _OfTwo:
    """What is made of the rows of two inputs. Nothing is pruned: each row may have a partner."""

    most = None

    def __init__(self, ending: JoinEnding) -> None:
        self._ending = ending

    def lateness(self, columns: pa.RecordBatch, allowed_ms: int) -> int | NDArray[np.int64]:
        """Returns how late each row may be: what its input allows."""
        of_sides = np.minimum(self._ending.lateness, allowed_ms)
        if of_sides[0] == of_sides[1]:
            return allowed_ms
        return of_sides[_sides(columns.column(SIDE))]

    def best(self, rows: Pieces, fired: Fired) -> Fired:
        return fired

    def _wide(self, lefts: NDArray[np.int64], rights: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns how many rows of each side a firing makes pairs of, given how many it has."""
        raise NotImplementedError

    def upto(self, rows: Pieces, fired: Fired, firings: NDArray[np.int64]) -> Iterator[Fired]:
        """Yields the rows of the firings that have results: a row of each firing is a result, or two are."""
        begins, rights = fired.begins(), np.cumsum(_sides(rows.take(fired.slots, [SIDE])[0]), dtype=np.int64)
        first = firsts_of(begins)[firings]
        of_window = rights[firings] - np.where(first, rights[first - 1], 0)
        lefts, rights = self._wide(firings + 1 - first - of_window, of_window)
        some = np.flatnonzero(lefts * rights > 0)
        firings, first = firings[some], first[some]
        for part in cut(firings + 1 - first, _TOGETHER):
            places, numbers = rows_upto(begins, firings[part])
            yield replace(fired.select(places), groups=some[part][numbers])

    def holds(self, rows: Pieces, fired: Fired) -> dict[str, pa.Array]:
        """Returns how many rows of each input each window has."""
        _, _, rights = self._groups(rows, fired)
        counts = counts_of(fired).to_numpy()
        return {"left_rows": pa.array(counts - rights), "right_rows": pa.array(rights)}

    def _groups(self, rows: Pieces, fired: Fired) -> tuple[Fired, NDArray[np.int64], NDArray[np.int64]]:
        """Returns the rows with those of the left input first in each group; where groups begin, and their right rows.

        Both: int64[groups]; the former has one more, the end.
        """
        order, begins, rights = sides_apart(fired.groups, _sides(rows.take(fired.slots, [SIDE])[0]))
        return fired.select(order), begins, rights


class Pairs(_OfTwo):
    """All pairs of a left and a right row with the same key and window; and rows without a partner, with nulls."""

    def _wide(self, lefts: NDArray[np.int64], rights: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return widths(self._ending.how, lefts, rights)

    def results(self, rows: Pieces, fired: Fired) -> Iterator[tuple[Fired, list[pa.Array]]]:
        fired, begins, rights = self._groups(rows, fired)
        firsts, slots = begins[:-1], np.append(fired.slots, -1)
        left, right = ([name for name, _ in columns] for columns in (self._ending.left, self._ending.right))
        sides = (
            SideOfGroups(rows, left, slots, firsts, np.diff(begins) - rights),
            SideOfGroups(rows, right, slots, begins[1:] - rights, rights),
        )
        for groups, columns in paired(self._ending.how, *sides):
            yield fired.select(firsts[groups]), columns


def _sides(column: pa.Array) -> NDArray[np.int8]:
    return column.to_numpy()


class CoGroup(_OfTwo):
    """What a function of the user's makes of the rows of each key and window. keys: names of the key columns."""

    def __init__(self, ending: JoinEnding, keys: tuple[str, ...]) -> None:
        super().__init__(ending)
        assert ending.output is not None
        assert ending.function is not None
        self._keys, self._function, self._output = keys, ending.function, ending.output
        self._what = getattr(ending.function, "__qualname__", type(ending.function).__qualname__)
        self._maker = row_maker(tuple(ending.output.names), self._what)

    def _wide(self, lefts: NDArray[np.int64], rights: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns numbers that are not 0: the function is called for each firing."""
        return lefts + rights, lefts + rights

    def results(self, rows: Pieces, fired: Fired) -> Iterator[tuple[Fired, list[pa.Array]]]:
        fired, begins, rights = self._groups(rows, fired)
        right_ones = np.repeat(begins[1:] - rights, np.diff(begins)) <= np.arange(len(fired))
        lefts = self._objects(rows, fired.slots[~right_ones], self._ending.left)
        rights_of = self._objects(rows, fired.slots[right_ones], self._ending.right)
        firsts = begins[:-1]
        keys = self._seen_keys(rows, fired.slots[firsts])
        places: list[int] = []
        values: list[list[Any]] = [[] for _ in self._output]
        for i, (begin, n, right) in enumerate(
            zip(firsts.tolist(), np.diff(begins).tolist(), rights.tolist(), strict=True)
        ):
            window = TimeWindow(int(fired.starts[begin]), int(fired.ends[begin]))
            for made in self._call(keys[i], window, list(islice(lefts, n - right)), list(islice(rights_of, right))):
                places.append(begin)
                for column, value in zip(values, made, strict=True):
                    column.append(value)
        if places:
            found = fired.select(np.array(places))
            yield found, self._columns(values, found, lambda row: keys[int(firsts.searchsorted(places[row]))])

    def _columns(self, values: list[list[Any]], fired: Fired, key: Callable[[int], Any]) -> list[pa.Array]:
        """Returns what the function gave as columns; blames the key and window of a value that does not suit.

        fired: the firings, one for each row. key: tells the key of a row.
        """
        try:
            return to_arrays(values, self._output, self._what)
        except SpecError as problem:
            unsuited = first_unsuited(values, self._output, self._what)
            if unsuited is None:
                raise
            row, told = unsuited
            window = TimeWindow(int(fired.starts[row]), int(fired.ends[row]))
            said = f"{self._where(key(row), window)}: ValueError: {told[len(self._what) + 2 :]}"
            raise UserFunctionError(said) from problem

    def _where(self, key: Any, window: TimeWindow) -> str:
        return f"{self._what}: for key {key!r}, {window}"

    def _seen_keys(self, rows: Pieces, slots: NDArray[np.int64]) -> list[Any]:
        """Returns the keys of rows as the function sees them: without key columns, empty tuples."""
        if not self._keys:
            return [()] * len(slots)
        columns = (exact_values(rows.gathered(name, slots)) for name in self._keys)
        return [self._shown(key) for key in zip(*columns, strict=True)]

    def _shown(self, key: tuple[Any, ...]) -> Any:
        """Returns a key as the function sees it: a tuple for several columns."""
        values = [
            value.shown_as(name) if isinstance(value, Exact) else value
            for name, value in zip(self._keys, key, strict=True)
        ]
        return tuple(values) if len(values) > 1 else values[0]

    def _objects(self, rows: Pieces, slots: NDArray[np.int64], columns: Columns) -> Iterator[Row]:
        """Yields rows of one input as the function sees them."""
        names = [*self._keys, *(name for name, _ in columns)]
        told = _names_seen(self._keys, columns)
        for part in rows.parts(slots, names):
            found = Rows(RowType(told), pa.RecordBatch.from_arrays(rows.take(slots[part], names), names=told))
            yield from (found[i] for i in range(len(found)))

    def _call(self, key: Any, window: TimeWindow, left: list, right: list) -> Iterator[tuple[Any, ...]]:
        function: Callable[..., Any] = self._function
        try:
            returned = function(key, window, left, right)
            if returned is None:
                return
            check_rows(returned)
            for value in returned:
                yield self._maker(value)
        except Exception as problem:
            raise UserFunctionError(f"{self._where(key, window)}: {type(problem).__name__}: {problem}") from problem


def _names_seen(keys: tuple[str, ...], columns: Columns) -> list[str]:
    """Returns the names of keys and columns of one input in its rows, each once: keys have those of the left input."""
    seen = [*keys, *(own for _, own in columns)]
    for at, (_, own) in enumerate(columns, len(keys)):
        if own in keys:
            seen[at] = free_name(own, seen)
    return seen
