"""HeldWindows: what an operator knows of its windows, as columns, for those who ask why something happened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.columns.keys import EncodedKeys, KeyCodec
from fastwin.core.keys.keytable import KeyTable
from fastwin.core.rows.rowstore import RowStore
from fastwin.times import MAX_TIMESTAMP, MIN_TIMESTAMP

__all__ = ["NEVER", "HeldWindows", "WindowTimer", "end_firings", "in_rows", "put_together", "slots_of_key"]

NEVER = MIN_TIMESTAMP
"""The time of what is not going to happen, or of what only an element can bring about."""


class WindowTimer(NamedTuple):
    """A timer of a window. time: ms; by_clock: of the processing time, and not of the event time."""

    time: int
    by_clock: bool


@dataclass(frozen=True)
class HeldWindows:
    """Windows that an operator has state of, one place for each (key, window). All arrays are of that length.

    keys: the key columns. starts, ends: int64, ms; equal for a global window. values: what they hold, by name.
    filled: bool, whether they have contents. fired: bool, whether they have fired since their contents came.
    firings: int64, how often; -1: the state does not tell. fires_at: int64, ms, when they fire next, or when their
    trigger is asked; NEVER: only an element brings that about. by_clock: bool, whether that is a time of the clock.
    gone_at: int64, the watermark, or for windows of processing time the clock, at which they go; NEVER: they stay.
    nbytes: int64, of their rows of state; windows that share slices count these each. names: of several windows.
    timers: those that triggers and windows have registered; None: what happens follows from the watermark.
    trigger_state: what their triggers keep, by name. asks: whether ``fires_at`` is only a time at which a trigger is
    asked, which may say no.
    """

    keys: list[pa.Array]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    values: Mapping[str, pa.Array | pa.ChunkedArray]
    filled: NDArray[np.bool_]
    fired: NDArray[np.bool_]
    firings: NDArray[np.int64]
    fires_at: NDArray[np.int64]
    by_clock: NDArray[np.bool_]
    gone_at: NDArray[np.int64]
    nbytes: NDArray[np.int64]
    names: list[str] | None = None
    timers: list[list[WindowTimer]] | None = None
    trigger_state: list[dict[str, Any]] = field(default_factory=list)
    asks: bool = False

    def __len__(self) -> int:
        return len(self.starts)


def slots_of_key(table: KeyTable, rows: RowStore, key: EncodedKeys | None) -> NDArray[np.int32]:
    """Returns the slots of all rows, or of those of one key. O(rows). The caller sweeps the key table afterwards."""
    slots = rows.slots()
    return slots if key is None else slots[rows.keys(slots) == KeyCodec.intern(table, key)[0]]


def in_rows(rows: RowStore, slots: NDArray[np.int32]) -> NDArray[np.int64]:
    """Returns the bytes of rows, int64[n], with what they own."""
    found = np.full(len(slots), rows.stride, np.int64)
    for cell in rows.owned_cells:
        found += np.diff(rows.blobs(slots, cell)[0])
    return found


def end_firings(ends: NDArray[np.int64], watermark: int, lateness_ms: int) -> dict[str, Any]:
    """Returns what follows from the watermark where windows with contents fire at their ends, as HeldWindows has it."""
    passed = ends - 1 <= watermark
    return {
        "filled": np.ones(len(ends), np.bool_),
        "fired": passed,
        "firings": np.where(passed, -1, 0),
        "fires_at": np.where(passed, NEVER, ends - 1),
        "by_clock": np.zeros(len(ends), np.bool_),
        "gone_at": np.minimum(ends - 1, MAX_TIMESTAMP - lateness_ms) + lateness_ms,
    }


def put_together(parts: Sequence[HeldWindows], names: Sequence[str]) -> HeldWindows:
    """Returns the windows of several operators as those of one; names: of the windows of each."""
    first = parts[0]
    arrays: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("starts", "ends", "filled", "fired", "firings", "fires_at", "by_clock", "gone_at", "nbytes")
    }
    keys = [pa.concat_arrays(columns) for columns in zip(*(part.keys for part in parts), strict=True)]
    values = {name: _joined([part.values[name] for part in parts]) for name in first.values}
    told = [name for part, name in zip(parts, names, strict=True) for _ in range(len(part))]
    return HeldWindows(keys=keys, values=values, names=told, **arrays)


def _joined(columns: Sequence[pa.Array | pa.ChunkedArray]) -> pa.ChunkedArray:
    chunks = [column.chunks if isinstance(column, pa.ChunkedArray) else [column] for column in columns]
    return pa.chunked_array([chunk for some in chunks for chunk in some], columns[0].type)
