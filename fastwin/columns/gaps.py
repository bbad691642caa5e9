"""Gaps of sessions out of a column: which values are none."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.columns.buffers import int64_values, validity
from fastwin.columns.decoding import decoded
from fastwin.columns.units import PER_SECOND
from fastwin.errors import SpecError
from fastwin.times import MAX_DURATION_MS, to_ms

__all__ = ["no_gaps"]


def no_gaps(column: pa.Array) -> NDArray[np.bool_] | None:
    """Returns which values are no gap of a session: null, below 1 ms, above MAX_DURATION_MS, or no whole milliseconds.

    column: ints of milliseconds, durations, text such as ``"10 minutes"``, or dictionaries of these. Returns bool[n];
    None: all are gaps. The text of each duration is read once.
    """
    column = decoded(column)
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        bad = _no_texts(column)
    elif pa.types.is_duration(kind):
        bad = _no_durations(int64_values(column), kind.unit)
    else:
        bad = _outside(int64_values(column), 1, MAX_DURATION_MS)  # uint64 from 2**63 on is seen below 0
    valid = validity(column)
    if valid is not None:
        bad |= valid == 0
    return bad if bad.any() else None


def _outside(values: NDArray[np.int64], first: int, last: int) -> NDArray[np.bool_]:
    return (values < first) | (values > last)


def _no_durations(values: NDArray[np.int64], unit: str) -> NDArray[np.bool_]:
    per_second = PER_SECOND[unit]
    if per_second < 1_000:
        return _outside(values, 1, MAX_DURATION_MS // 1_000)
    per_ms = per_second // 1_000
    last = min(MAX_DURATION_MS * per_ms, np.iinfo(np.int64).max)
    return _outside(values, per_ms, last) | (values % per_ms != 0)


def _no_texts(column: pa.Array) -> NDArray[np.bool_]:
    """Returns which texts are no gap; of nulls it says anything."""
    coded = column.dictionary_encode()
    each = np.array([*map(_is_no_gap, coded.dictionary.to_pylist()), True])
    return each[coded.indices.fill_null(len(each) - 1).to_numpy(zero_copy_only=False)]


def _is_no_gap(text: str) -> bool:
    try:
        return to_ms(text) < 1
    except SpecError:
        return True
