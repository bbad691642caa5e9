"""Shares of rows: those of some keys, or those between two times, so that they are taken together."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.columns.decoding import take_rows
from fastwin.columns.keys import key_hash
from fastwin.core.memory.gather import take
from fastwin.run.sample import Part

__all__ = ["MOST_SHARES", "between", "places_of_shares", "taken"]

MOST_SHARES = 64
"""More of them gain nothing."""


def places_of_shares(rows: pa.RecordBatch, keys: tuple[str, ...], shares: int) -> list[NDArray[np.int64]]:
    """Returns the places of the rows of each share, ascending: int64[n] each. shares: at most 65,536."""
    # By the high bits: the low ones find the keys' places in tables.
    high = key_hash(rows, keys) >> np.uint64(32)
    share = ((high * np.uint64(shares)) >> np.uint64(32)).astype(np.uint16)
    ends = np.cumsum(np.bincount(share, minlength=shares))
    return np.split(np.argsort(share, kind="stable"), ends[:-1])  # a radix sort for 16 bits


def taken(part: Part, places: NDArray[np.int64]) -> Part:
    """Returns the rows at some places, and their times."""
    rows, times = part
    return take_rows(rows, places), take(times, places)


def between(part: Part, first: int | None, last: int | None) -> Part:
    """Returns the rows with first <= time < last, ms, without a copy where they are neighbours. None: no bound."""
    rows, times = part
    marks = np.ones(len(times), np.bool_) if first is None else times >= first
    if last is not None:
        marks &= times < last
    n, at = int(np.count_nonzero(marks)), int(marks.argmax()) if len(marks) else 0
    if marks[at : at + n].all():
        return rows.slice(at, n), times[at : at + n]
    return taken(part, np.flatnonzero(marks))
