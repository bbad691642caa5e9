"""Shares: the elements of a table side by side by their (key, window), so that the state of a share is in the cache."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from fastwin.columns.values import ValueColumn
from fastwin.core.panes.division import Divider, Division
from fastwin.operators.aligned.slicing import Slicing
from fastwin.operators.batch import Batch, rows_between
from fastwin.times import MAX_TIMESTAMP, MIN_TIMESTAMP

__all__ = ["Shares"]


class Shares:
    """The elements of some batches in shares. All of a (key, window) are in one, as they came.

    No share has a window before one of the shares in front of it. batches: with a list of key columns each, see
    ``KeyCodec.columns``, none of which has nulls; numbered, see ``Batch.numbered``. cuts: int64[n], ascending starts of
    windows, ms, between which about as many elements are; so a window with many of these is several of them. since,
    until: windows that start before or from there on, ms, are left out. each: calls a function with each of some
    arguments, as ``map`` does, maybe on several threads.
    """

    def __init__(
        self,
        slicing: Slicing,
        batches: Sequence[Batch],
        cuts: NDArray[np.int64],
        since: int = MIN_TIMESTAMP,
        until: int = MAX_TIMESTAMP,
        each: Callable = map,
    ) -> None:
        assert slicing.grid is not None
        slide, _, offset = slicing.grid
        self._each = each
        first = cast(list, batches[0].keys)
        divider = Divider([len(column) == 3 for column in first], *_bands(slicing, cuts, since, until))

        def divide(batch: Batch) -> Division:
            return divider.divide(cast(list, batch.keys), batch.times, slide, offset, slicing.bounds)

        self._divisions = list(each(divide, batches))
        counts = np.stack([division.counts[:-1] for division in self._divisions])
        self._starts, self._ends = _places(counts)
        self._times = self._spread_numbers([batch.times for batch in batches])
        self._keys = [self._column([cast(list, batch.keys)[c] for batch in batches]) for c in range(len(first))]
        self._columns = [self._column([batch.columns[c] for batch in batches]) for c in range(len(batches[0].columns))]

    def batches(self) -> list[list[Batch]]:
        """Returns the elements of each share, as one batch."""
        return [[self._batch(int(at), int(stop))] for at, stop in zip(self._starts[0], self._ends, strict=True)]

    def _batch(self, at: int, stop: int) -> Batch:
        return Batch(
            [rows_between(column, at, stop) for column in self._keys],
            self._times[at:stop],
            [rows_between(column, at, stop) for column in self._columns],
        )

    def _spread_numbers(self, parts: Sequence[NDArray]) -> NDArray:
        """Returns numbers of 8 bytes or of one, side by side."""
        out = np.empty(int(self._ends[-1]), parts[0].dtype)
        into = out.view(np.int64 if out.itemsize == 8 else np.uint8)
        views = [part.view(into.dtype) for part in parts]
        self._all(lambda division, starts, part: division.spread(part, starts, into), self._starts, views)
        return out

    def _column(self, parts: Sequence[ValueColumn]) -> ValueColumn:
        valid = None
        if any(part[-1] is not None for part in parts):
            some = [part[-1] for part in parts]
            full = [np.ones(d.counts.sum(), np.bool_) if one is None else one
                    for d, one in zip(self._divisions, some, strict=True)]  # fmt: skip
            valid = self._spread_numbers(full)
        if len(parts[0]) == 3:
            return (*self._spread_texts(parts), valid)
        return None if parts[0][0] is None else self._spread_numbers([part[0] for part in parts]), valid

    def _spread_texts(self, parts: Sequence[ValueColumn]) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        offsets = [part[0].astype(np.int64, copy=False) for part in parts]
        found = self._each(lambda division, one: division.text_bytes(one), self._divisions, offsets)
        first_bytes, ends = _places(np.stack([total[:-1] for total in found]))
        into = np.empty(int(self._ends[-1]) + 1, np.int64), np.empty(int(ends[-1]), np.uint8)
        into[0][-1] = ends[-1]
        self._all(
            lambda division, starts, begin, one, part: division.spread_texts(one, part[1], starts, begin, *into),
            self._starts, first_bytes, offsets, parts,
        )  # fmt: skip
        return into

    def _all(self, call: Callable, *arguments: Iterable) -> None:
        """Calls a function for each batch with its division, and with its arguments."""
        for _ in self._each(call, self._divisions, *arguments):
            pass


def _bands(
    slicing: Slicing, cuts: NDArray[np.int64], since: int, until: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns the edges and widths of bands, see Divider: a window that is several of the cuts is a band of its own."""
    starts, widths = np.unique(cuts, return_counts=True)
    found = {since: 1}
    for start, width in zip(starts.tolist(), widths.tolist(), strict=True):
        if since <= start < until:
            found[start] = width
            if width > 1 and (behind := slicing.bound_after(start)) < until:
                found[behind] = 1  # or what the next one says
    edges = sorted(found)
    return np.array([*edges, until]), np.array([found[edge] for edge in edges])


def _places(counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns where each batch's part of each share begins, share after share, and where each share ends.

    counts: int64[batches, shares]. Returns int64[batches, shares] and int64[shares].
    """
    by_share = counts.T.ravel()
    ends = np.cumsum(by_share)
    return np.ascontiguousarray((ends - by_share).reshape(counts.T.shape).T), ends.reshape(counts.T.shape)[:, -1]
