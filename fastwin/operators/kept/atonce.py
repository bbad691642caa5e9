"""Joins of inputs that end, in windows that do not overlap: all rows are at hand, so none has to be kept and found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.columns.decoding import take_rows
from fastwin.columns.keys import EncodedKeys, KeyCodec
from fastwin.core.keys.keytable import KeyTable
from fastwin.core.memory.gather import take
from fastwin.core.memory.ordering import ordered
from fastwin.core.rows.firings import groups_of_sides
from fastwin.operators.aligned.slicing import Slicing
from fastwin.operators.config import Config
from fastwin.operators.kept.pairing import SideOfGroups, lone_sides, paired
from fastwin.operators.kept.pieces import Pieces
from fastwin.spec.joinending import How

__all__ = ["RowsOfSide", "all_pairs"]


class RowsOfSide(NamedTuple):
    """Some rows of one input. times: ms, int64[n]. columns: those of the results."""

    keys: EncodedKeys
    times: NDArray[np.int64]
    columns: pa.RecordBatch


class _Side(NamedTuple):
    """All rows of one input, in order of window, key and arrival.

    slots: of these among the columns, and at the end a -1. starts, keys: int64[n], ms, and int32[n].
    """

    columns: Pieces
    slots: NDArray[np.int32]
    starts: NDArray[np.int64]
    keys: NDArray[np.int32]

    def in_groups(self, begins: NDArray[np.int64], counts: NDArray[np.int64]) -> SideOfGroups:
        return SideOfGroups(self.columns, self.columns.schema.names, self.slots, begins, counts)


def all_pairs(
    config: Config, slicing: Slicing, how: How, inputs: Sequence[tuple[pa.Schema, list[RowsOfSide]]]
) -> Iterator[pa.RecordBatch]:
    """Yields all pairs of rows of two inputs with the same key and window, in order of windows; and, as ``how`` says,
    rows without a partner, with nulls.

    slicing: of windows that share no slices. inputs: of each the columns of its rows in the results, and its rows.
    O(rows log rows + pairs).
    """
    table = config.codec.new_table()
    left, right = (_side(slicing, table, *one) for one in inputs)
    starts, keys, left_begins, lefts, right_begins, rights = groups_of_sides(
        left.starts, left.keys, right.starts, right.keys, *lone_sides(how)
    )
    ends = slicing.last_ends(starts)
    for groups, columns in paired(how, left.in_groups(left_begins, lefts), right.in_groups(right_begins, rights)):
        yield config.result(table, keys[groups], starts[groups], ends[groups], columns)


def _side(slicing: Slicing, table: KeyTable, schema: pa.Schema, parts: list[RowsOfSide]) -> _Side:
    starts, keys, columns = [], [], []
    for rows in parts:
        slicing.cover(rows.times)
        own, outside = slicing.assign(rows.times)
        ids, held = KeyCodec.intern(table, rows.keys), rows.columns
        if outside is not None:
            some = np.flatnonzero(~outside)
            own, ids, held = own[some], ids[some], take_rows(held, some)
        starts.append(own)
        keys.append(ids)
        columns.append(held)
    all_starts, all_keys = _one(starts, np.int64), _one(keys, np.int32)
    places, _ = ordered([all_starts, all_keys.astype(np.int64)])
    slots = np.append(places, np.int32(-1))
    return _Side(Pieces(schema, *columns), slots, take(all_starts, places), all_keys[places])


def _one(parts: list[NDArray], dtype: type) -> NDArray:
    """Returns parts one after another, without a copy of one alone."""
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, dtype), *parts])
