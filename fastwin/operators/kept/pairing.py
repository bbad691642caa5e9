"""Pairs of a left and a right row of the same group, and rows without a partner, with nulls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.core.rows.firings import pairs_between
from fastwin.operators.kept.pieces import Pieces, cut
from fastwin.spec.joinending import How

__all__ = ["SideOfGroups", "lone_sides", "paired", "widths"]

# Pairs that leave together.
_TOGETHER = 1 << 20


class SideOfGroups(NamedTuple):
    """The rows of one input, group by group.

    columns: of all rows. names: those of the pairs. slots: of the rows among them, and at the end a -1, which the place
    of a row that is not there leads to. begins, counts: where the rows of each group begin, and how many there are.
    """

    columns: Pieces
    names: list[str]
    slots: NDArray
    begins: NDArray[np.int64]
    counts: NDArray[np.int64]


def lone_sides(how: How) -> tuple[bool, bool]:
    """Whether left rows without a partner are results, and right ones."""
    return how in ("left", "full"), how in ("right", "full")


def widths(
    how: How, lefts: NDArray[np.int64], rights: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns how many rows each side of groups has: one null row where rows without a partner are results."""
    lone_left, lone_right = lone_sides(how)
    return np.maximum(lefts, 1) if lone_right else lefts, np.maximum(rights, 1) if lone_left else rights


def paired(how: How, left: SideOfGroups, right: SideOfGroups) -> Iterator[tuple[NDArray[np.int64], list[pa.Array]]]:
    """Yields the pairs of groups, in their order: of which group each is, and the columns, left ones first."""
    wide_left, wide_right = widths(how, left.counts, right.counts)
    ends = np.cumsum(wide_left * wide_right)
    count = int(ends[-1]) if len(ends) else 0
    for at in range(0, count, _TOGETHER):
        groups, *places = pairs_between(
            left.begins, left.counts, right.begins, right.counts, ends, at, min(at + _TOGETHER, count)
        )
        sides = [(one, one.slots[some]) for one, some in zip((left, right), places, strict=True)]
        for part in _parts(sides):
            found = [column for one, slots in sides for column in one.columns.take(slots[part], one.names)]
            yield groups[part], found


def _parts(sides: list[tuple[SideOfGroups, NDArray]]) -> Iterator[slice]:
    """Yields parts of pairs, given by the slots of both sides, of which each can be taken at once."""
    sizes = [one.columns.sizes(slots, one.names) for one, slots in sides if not one.columns.are_fixed(one.names)]
    yield from cut(np.sum(sizes, axis=0)) if sizes else [slice(None)]
