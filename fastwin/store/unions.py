"""Unions of sketches over sliding windows, each sketch read at most twice however many windows it lies in."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from fastwin.core.sketches.hyperloglog import Sketch
from fastwin.store.cells import Cell

__all__ = ["union_windows"]


def union_windows(
    groups: NDArray[np.int32],
    times: NDArray[np.int64],
    cells: Sequence[Cell],
    where: NDArray[np.int32],
    starts: NDArray[np.int64],
    size: int,
) -> Iterator[Sketch | None]:
    """Yields the union of the sketches of each window; None where there is none.

    groups, times, cells: of the panes, n each. where, starts: group and start of each window, in order of both.
    size: of the windows, ms. A yielded sketch is the caller's.
    """
    order = np.lexsort((times, groups))
    order = order[np.array([cells[row] is not None for row in order.tolist()], dtype=bool)]
    panes = [(int(times[row]), cells[row]) for row in order.tolist()]
    owners = groups[order]
    first = np.searchsorted(owners, where, "left")
    last = np.searchsorted(owners, where, "right")
    queue = _Queue()
    before = None
    at = 0
    for group, start, begin, end in zip(where.tolist(), starts.tolist(), first.tolist(), last.tolist(), strict=True):
        if group != before:
            queue, before, at = _Queue(), group, begin
        while at < end and panes[at][0] < start + size:
            if panes[at][0] >= start:
                queue.push(*panes[at])
            at += 1
        queue.evict(start)
        yield queue.union()


class _Queue:
    """A queue that knows the union of what is in it. Source: the two-stacks algorithm of sliding-window aggregation.

    Invariant: ``front`` has the unions of the first elements up to the flip, the next to go on top; ``back`` has the
    elements since, and ``rest`` their union.
    """

    def __init__(self) -> None:
        self.front: list[tuple[int, Sketch]] = []
        self.back: list[tuple[int, Cell]] = []
        self.rest = Sketch()

    def push(self, time: int, cell: Cell) -> None:
        assert cell is not None
        self.back.append((time, cell))
        self.rest.merge_string(cell)

    def evict(self, start: int) -> None:
        """Removes the elements before ``start``. Amortised O(1)."""
        while self.front and self.front[-1][0] < start:
            self.front.pop()
        if self.front or not self.back or self.back[0][0] >= start:
            return
        union: Sketch | None = None
        for time, cell in reversed(self.back):
            if time < start:
                break
            assert cell is not None
            longer = _copy(union)
            longer.merge_string(cell)
            self.front.append((time, longer))
            union = longer
        self.back, self.rest = [], Sketch()

    def union(self) -> Sketch | None:
        if not self.front and not self.back:
            return None
        found = _copy(self.front[-1][1] if self.front else None)
        found.merge(self.rest)
        return found


def _copy(sketch: Sketch | None) -> Sketch:
    found = Sketch()
    if sketch is not None:
        found.merge(sketch)
    return found
