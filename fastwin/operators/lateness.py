"""Which windows are gone: by the watermark and the allowed lateness, and by those that held before a restart."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastwin.state.chunks import Chunk
from fastwin.times import MIN_TIMESTAMP

__all__ = ["Lateness", "Split", "cleaned_at", "coalesced_order", "split"]


def cleaned_at(watermark: int, allowed_ms: int, cleaned: int) -> int:
    """Returns the last millisecond of the latest window that is cleaned; int64 min: none is.

    cleaned: what it was when the state was last restored. A longer lateness brings no window back.
    """
    return MIN_TIMESTAMP if watermark == MIN_TIMESTAMP else max(cleaned, watermark - allowed_ms, MIN_TIMESTAMP)


@dataclass
class Lateness:
    """The allowed lateness of an operator, ms, and what had been cleaned when its state was restored."""

    allowed_ms: int
    cleaned: int = MIN_TIMESTAMP

    def at(self, watermark: int) -> int:
        """Returns how long those windows have been kept that still are: less than allowed, soon after a restore."""
        if self.cleaned == MIN_TIMESTAMP:
            return self.allowed_ms
        return max(0, min(self.allowed_ms, watermark - self.cleaned))

    def cleaned_at(self, watermark: int) -> int:
        """Returns the last millisecond of the latest window that is cleaned; int64 min: none is."""
        return cleaned_at(watermark, self.allowed_ms, self.cleaned)

    def take(self, chunks: Iterable[Chunk]) -> None:
        """Takes over what was cleaned when these chunks were written."""
        self.cleaned = max([self.cleaned, *(chunk.meta["cleaned"] for chunk in chunks)])


class Split(NamedTuple):
    """Elements by what becomes of them. late, taken: bool[n]. unassigned: how many in time have no window."""

    late: NDArray[np.bool_]
    taken: NDArray[np.bool_]
    unassigned: int


def split(
    late: NDArray[np.bool_],
    unassigned: NDArray[np.bool_] | None,
    times: NDArray[np.int64],
    reached: int | NDArray[np.int64],
) -> Split:
    """Tells elements apart. Those in a gap between windows are late by their own time, or simply have no window.

    late: bool[n], by the windows that elements have. unassigned: bool[n], which have none; None: all have some. times:
    int64[n], ms. reached: the last time, ms, that is late by itself; of each element, or of all.
    """
    if unassigned is None:
        return Split(late, ~late, 0)
    late = np.where(unassigned, times <= reached, late)
    return Split(late, ~(late | unassigned), int(np.count_nonzero(unassigned & ~late)))


def coalesced_order(ends: NDArray[np.int64], passed: NDArray[np.bool_]) -> NDArray[np.intp] | None:
    """Returns the order of elements that accepts most: those in time, then from the latest window back.

    What connects an early session to one that is open is there before it. ends: int64[n], ms, of the windows of the
    elements, or their times where windows have one length. passed: bool[n], which may be late. None: as they came.
    """
    if not passed.any():
        return None
    behind = np.flatnonzero(passed)
    return np.concatenate([np.flatnonzero(~passed), behind[np.argsort(-ends[behind], kind="stable")]])
