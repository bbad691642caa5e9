"""KeptRows: the rows that windows keep, in order of arrival: what is known of each as numbers, its columns as Arrow."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.operators.kept.bystart import ByStart
from fastwin.operators.kept.pieces import Pieces
from fastwin.times import MIN_TIMESTAMP

__all__ = ["NUMBERS", "ByArrival", "KeptRows"]

NUMBERS = {"key": np.int32, "start": np.int64, "arrival": np.int64, "since": np.int64}
"""Of each row: the id of its key, the start of its slice, its number, and the first end of a window it is in, ms."""
_FEW = 16


class KeptRows:
    """Rows by slot, which is their place: 0 is the row that arrived first. schema: of their ``columns``.

    Adding is amortised O(1) a row, and so are its columns but for O(log rows) copies. A row that is dropped leaves its
    place behind, until ``keep`` closes the gaps: its key is -1 there, and its start is int64 min. The rows that are
    saved come before all others.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.columns = Pieces(schema)
        self._numbers = {name: np.empty(_FEW, dtype) for name, dtype in NUMBERS.items()}
        self._saved = 0  # places of rows that are saved, or were
        self._by_start = ByStart()  # of all places, or of the first ones
        self.top = 0
        """How many places there are."""
        self.gone = 0
        """How many of them hold no row any more."""
        self.last_since = MIN_TIMESTAMP
        """The latest ``since`` of all rows so far."""

    def __len__(self) -> int:
        return self.top - self.gone

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        numbers = sum(column.nbytes for column in self._numbers.values())
        return numbers + self.columns.nbytes + self._by_start.nbytes

    def number(self, name: str) -> NDArray:
        """Returns a view of one of NUMBERS, of all places."""
        return self._numbers[name][: self.top]

    def add(self, columns: pa.RecordBatch, **numbers: NDArray) -> None:
        """Adds rows. numbers: an array for each of NUMBERS."""
        n = columns.num_rows
        if n == 0:
            return
        room = len(self._numbers["key"])
        if self.top + n > room:
            room = max(room + room // 4, self.top + n)
            for name, old in self._numbers.items():
                self._numbers[name] = _with_room(old[: self.top], room)
        for name, values in numbers.items():
            self._numbers[name][self.top : self.top + n] = values
        self.last_since = max(self.last_since, int(numbers["since"].max()))
        self.top += n
        self.columns.add(columns)

    @property
    def by_start(self) -> ByStart:
        """All places by their slices; rows that were dropped are still there. O(rows added since the last call)."""
        self._by_start.add(self.number("start")[self._by_start.known :])
        return self._by_start

    def between(self, first: int, last: int) -> NDArray[np.int64]:
        """Returns the slots of the rows of slices with first <= start <= last, ms."""
        return self._live(self.by_start.between(first, last)).astype(np.int64)

    def take_before(self, start: int) -> NDArray[np.int32]:
        """Returns the slots of the rows of slices before ``start``, ms, which are to be dropped now."""
        return self._live(self.by_start.take_before(start))

    def _live(self, places: NDArray[np.int32]) -> NDArray[np.int32]:
        return places[self.number("start")[places] != MIN_TIMESTAMP] if self.gone else places

    def drop(self, slots: NDArray) -> None:
        """Lets rows go, given by their slots, each once. O(these)."""
        self.number("key")[slots] = -1
        self.number("start")[slots] = MIN_TIMESTAMP
        self.gone += len(slots)

    def keep(self, places: NDArray) -> None:
        """Leaves the rows at some places, in that order, and no gaps. O(rows)."""
        self.columns.keep(places)
        for name in NUMBERS:
            self._numbers[name] = self.number(name)[places]
        self._saved = int(np.count_nonzero(places < self._saved))
        self.top, self.gone = len(places), 0
        self._by_start = ByStart()

    # --- what EventTimeOperator asks of rows ---

    def slots(self, first: int = 0) -> NDArray[np.int32]:
        """Returns the slots of all rows, from ``first`` on. O(places from there)."""
        return (first + np.flatnonzero(self.number("start")[first:] != MIN_TIMESTAMP)).astype(np.int32)

    def dirty_slots(self) -> NDArray[np.int32]:
        """Returns the slots of rows that are not saved."""
        return self.slots(self._saved)

    def clear_dirty(self) -> None:
        """Takes all rows as saved."""
        self._saved = self.top

    def keys(self, slots: NDArray[np.int32]) -> NDArray[np.int32]:
        """Returns the key ids of rows."""
        return self.number("key")[slots]

    def _check(self) -> None:
        assert len(self.columns) == self.top, "columns and numbers differ"
        assert (np.diff(self.number("arrival")) > 0).all(), "rows are not in order of arrival"
        assert len(self.slots()) == len(self), "other rows are gone"
        assert ((self.number("key") < 0) == (self.number("start") == MIN_TIMESTAMP)).all(), "half of a row is gone"


class ByArrival:
    """Rows by the numbers of their arrival, which stay theirs while places change; ``state.refresh`` asks for them."""

    def __init__(self, kept: KeptRows) -> None:
        self._kept = kept

    def places(self, numbers: NDArray[np.int64]) -> NDArray[np.int32]:
        """Returns the places of rows, or where they would be. O(n log rows)."""
        return np.searchsorted(self._kept.number("arrival"), numbers).astype(np.int32)

    def slots(self) -> NDArray[np.int64]:
        """Returns the numbers of all rows."""
        return self._kept.number("arrival")[self._kept.slots()]

    def dirty_slots(self) -> NDArray[np.int64]:
        """Returns the numbers of rows that are not saved."""
        return self._kept.number("arrival")[self._kept.dirty_slots()]

    def live_marks(self, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tells which rows are there: bool[n]."""
        there, places = self._kept.number("arrival"), self.places(numbers)
        found = places < len(there)
        at = places[found]
        found[found] = (there[at] == numbers[found]) & (self._kept.number("start")[at] != MIN_TIMESTAMP)
        return found

    def keys(self, numbers: NDArray[np.int64]) -> NDArray[np.int32]:
        """Returns the key ids of rows."""
        return self._kept.keys(self.places(numbers))


def _with_room(old: NDArray, room: int) -> NDArray:
    new = np.empty(room, old.dtype)
    new[: len(old)] = old
    return new
