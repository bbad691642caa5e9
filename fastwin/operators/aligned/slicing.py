"""Slicing: which slices and which windows aligned windows have."""

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from fastwin.core.panes.slices import assign_slices
from fastwin.times import MAX_TIMESTAMP, MIN_TIMESTAMP

__all__ = ["CumulativeSlicing", "Slicing", "SlidingSlicing", "Windows", "clamped", "expanded", "within"]

# No window ends beyond; differences of such ends stay in int64.
_END_LIMIT = 2**62
# How many slides a window has where two kinds of blocks pay: with one kind, a slider would hold more than a tenth of
# the panes' rows beside them; with fewer slides, two kinds would hardly hold less.
_TWO_KINDS = (40, 400)


def _floor(t: int, step: int, offset: int) -> int:
    return t - (t - offset) % step


def clamped(t: int) -> int:
    """Returns the int64 nearest to t."""
    return max(MIN_TIMESTAMP, min(t, MAX_TIMESTAMP))


def within(t: int) -> int:
    """Returns the time nearest to t that windows may end at."""
    return max(-_END_LIMIT, min(t, _END_LIMIT))


@dataclass(frozen=True)
class Windows:
    """Windows that cover slices, have passed and are still kept.

    counts: int64[slices], how many for each slice. starts, ends: int64, their bounds, slice by slice, each
    slice's latest window first.
    """

    counts: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]


class Slicing(Protocol):
    """A slice is an interval between neighbouring bounds of windows; a window is a run of slices. All in ms.

    slide: the grid of window starts. step: that of window ends. shared: whether windows share slices, or each is a
    slice of its own. covering: the most windows over a slice. blocks: how many slides WindowSlider takes together.
    """

    @property
    def slide(self) -> int: ...
    @property
    def step(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def shared(self) -> bool: ...
    @property
    def covering(self) -> int: ...
    @property
    def blocks(self) -> tuple[int, ...]: ...
    @property
    def grid(self) -> tuple[int, int, int] | None:
        """Slide, rest and offset of the slices, see PaneTable.feed; None where some times are in no window."""

    @property
    def bounds(self) -> NDArray[np.int64] | None:
        """All bounds of slices around the times that are covered, ascending: int64[n]; None where they are a grid."""

    def cover(self, times: NDArray[np.int64]) -> None:
        """Is told of times, ms, of which or of whose slices it will be asked: int64[n].

        It changes nothing where all are ones that it was told of or, if windows share no slices, between such. Else one
        thread alone may ask it anything.
        """

    def knows(self, first: int, last: int) -> bool:
        """Returns whether no ``cover`` changes the bounds of slices and windows between two times, ms."""

    def assign(self, times: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None]:
        """Returns the start of each element's slice, and marks of those that no window takes; see assign_slices."""

    def bound_at(self, t: int) -> int:
        """Returns the last bound of slices that is not later than t."""

    def bound_after(self, t: int) -> int:
        """Returns the first bound of slices later than t."""

    def start_of(self, end: int) -> int:
        """Returns the start of the window that ends at ``end``."""

    def end_after(self, t: int) -> int:
        """Returns the first end of a window later than t."""

    def last_end(self, start: int) -> int:
        """Returns the end of the last window that covers the slice starting at ``start``."""

    def last_ends(self, starts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns what ``last_end`` does for each of some slices: int64[n]."""

    def first_kept(self, watermark: int, lateness: int) -> int:
        """Returns the first slice start with a window that is not late: last end - 1 + lateness > watermark."""

    def first_unpassed(self, watermark: int) -> int:
        """Returns the first slice start without a window that has passed: every end - 1 > watermark."""

    def late_windows(
        self, starts: NDArray[np.int64], watermark: int, lateness: int, afters: NDArray[np.int64] | None = None
    ) -> Windows:
        """Returns the windows that elements in the slices at ``starts`` fire once more.

        afters: int64[n], ends of windows: only those that end after ``afters[i]`` of the ones over ``starts[i]``.
        """

    def kept_ends(
        self, starts: NDArray[np.int64], watermark: int, lateness: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns first and last end of the windows over each slice that are kept, a multiple of ``step`` apart.

        Where none is, the last end comes before the first one. ``ends_at`` tells their times.
        """

    def first_end(self, t: int) -> int:
        """Returns the first end of a window later than t, as ``kept_ends`` gives ends."""

    def ends_at(self, ends: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns the times of ends as ``kept_ends`` gives them: int64[n]."""

    def end_behind(self, end: int, windows: int) -> int:
        """Returns the end of the window so many ends behind the one at ``end``, as far as ends are known."""

    def cover_between(self, afters: NDArray[np.int64], untils: NDArray[np.int64]) -> None:
        """Is told of gaps of whose windows it will be asked: they end after ``afters[i]`` and before ``untils[i]``.

        Both are ends of windows: int64[n].
        """

    def places_of(self, ends: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns numbers of ends of windows, of which neighbours differ by one, until the next ``cover``: int64[n]."""

    def windows_at(self, places: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns starts and ends of the windows of which ``places_of`` gives these numbers: int64[n] each."""


def expanded(first: NDArray, last: NDArray, step: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns how many ends ``first, first + step, ... last`` there are for each row, and all of them, last first."""
    counts = np.maximum((last - first) // step + 1, 0)
    begins = np.cumsum(counts) - counts
    steps = np.arange(int(counts.sum()), dtype=np.int64) - np.repeat(begins, counts)
    return counts, np.repeat(last, counts) - steps * step


class _OnGrid(Slicing, Protocol):
    """Slices on a grid."""

    def _first_ends(self, starts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns the end of the first window over each slice: int64[n]."""


class _Regular:
    """What slices on a grid have in common."""

    bounds: ClassVar[None] = None

    def cover(self, times: NDArray[np.int64]) -> None:
        """Does nothing: all times are on the grid."""

    def knows(self, first: int, last: int) -> bool:
        return True

    def ends_at(self, ends: NDArray[np.int64]) -> NDArray[np.int64]:
        return ends

    def cover_between(self, afters: NDArray[np.int64], untils: NDArray[np.int64]) -> None:
        """Does nothing, as ``cover``."""

    def kept_ends(
        self: _OnGrid, starts: NDArray[np.int64], watermark: int, lateness: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        first = self._first_ends(starts)
        if watermark > MIN_TIMESTAMP:
            first = np.maximum(first, self.first_end(watermark - lateness + 1))
        return first, self.last_ends(starts)

    def first_end(self: _OnGrid, t: int) -> int:
        return within(self.end_after(t))

    def end_behind(self: _OnGrid, end: int, windows: int) -> int:
        return end + windows * self.step

    def places_of(self: _OnGrid, ends: NDArray[np.int64]) -> NDArray[np.int64]:
        return ends // self.step


@dataclass(frozen=True)
class SlidingSlicing(_Regular):
    """Windows ``[k * slide + offset, k * slide + offset + size)``. Tumbling: slide = size."""

    size: int
    slide: int
    offset: int

    @property
    def step(self) -> int:
        return self.slide

    @property
    def shared(self) -> bool:
        return self.size > self.slide

    @property
    def covering(self) -> int:
        return max(1, -(-self.size // self.slide))

    @property
    def blocks(self) -> tuple[int, ...]:
        slides = self.size // self.slide
        if _TWO_KINDS[0] <= slides < _TWO_KINDS[1]:
            root = round(slides ** (1 / 3))
            return root, root * root
        root = int(slides**0.5)
        return (root,) if root > 1 else ()

    @property
    def grid(self) -> tuple[int, int, int] | None:
        if self.slide > self.size:
            return None
        return self.slide, self.size % self.slide, self.offset

    def assign(self, times: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None]:
        return assign_slices(times, self.size, self.slide, self.offset)

    def bound_at(self, t: int) -> int:
        return max(_floor(t, self.slide, self.offset), _floor(t, self.slide, self.offset + self.size))

    def bound_after(self, t: int) -> int:
        return min(_floor(t, self.slide, self.offset), _floor(t, self.slide, self.offset + self.size)) + self.slide

    def start_of(self, end: int) -> int:
        return end - self.size

    def end_after(self, t: int) -> int:
        return _floor(t, self.slide, self.offset + self.size) + self.slide

    def last_end(self, start: int) -> int:
        return _floor(start, self.slide, self.offset) + self.size

    def last_ends(self, starts: NDArray[np.int64]) -> NDArray[np.int64]:
        if self.slide >= self.size:  # a slice is a window
            return starts + self.size
        return starts - (starts - self.offset) % self.slide + self.size

    def first_kept(self, watermark: int, lateness: int) -> int:
        if watermark == MIN_TIMESTAMP:
            return MIN_TIMESTAMP
        return clamped(_floor(watermark - self.size - lateness + 1, self.slide, self.offset) + self.slide)

    def first_unpassed(self, watermark: int) -> int:
        if watermark == MIN_TIMESTAMP:
            return MIN_TIMESTAMP
        return clamped(_floor(watermark + 1, self.slide, self.offset + self.size))

    def late_windows(
        self, starts: NDArray[np.int64], watermark: int, lateness: int, afters: NDArray[np.int64] | None = None
    ) -> Windows:
        grid = self.offset + self.size
        earliest = within(self.end_after(watermark - lateness + 1))
        latest = within(_floor(watermark + 1, self.slide, grid))
        if self.slide >= self.size and afters is None:  # a slice is a window
            ends = starts + self.size
            takes = (ends >= earliest) & (ends <= latest)
            ends = ends if takes.all() else ends[takes]
            return Windows(takes.astype(np.int64), ends - self.size, ends)
        first = np.maximum(starts - (starts - grid) % self.slide + self.slide, earliest)
        if afters is not None:
            first = np.maximum(first, afters + self.slide)
        last = np.minimum(starts - (starts - self.offset) % self.slide + self.size, latest)
        counts, ends = expanded(first, last, self.slide)
        return Windows(counts, ends - self.size, ends)

    def _first_ends(self, starts: NDArray[np.int64]) -> NDArray[np.int64]:
        return starts - (starts - self.offset - self.size) % self.slide + self.slide

    def windows_at(self, places: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        ends = places * self.slide + (self.offset + self.size) % self.slide
        return ends - self.size, ends


@dataclass(frozen=True)
class CumulativeSlicing(_Regular):
    """Windows ``[k * max_size + offset, k * max_size + offset + j * step)``, j from 1 to max_size / step."""

    max_size: int
    step: int
    offset: int

    @property
    def slide(self) -> int:
        return self.max_size

    @property
    def shared(self) -> bool:
        return self.max_size > self.step

    @property
    def covering(self) -> int:
        return self.max_size // self.step

    @property
    def blocks(self) -> tuple[int, ...]:
        return ()  # starts never move within a window

    @property
    def grid(self) -> tuple[int, int, int] | None:
        return self.step, 0, self.offset % self.step

    def assign(self, times: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None]:
        return assign_slices(times, self.step, self.step, self.offset % self.step)

    def bound_at(self, t: int) -> int:
        return _floor(t, self.step, self.offset)

    def bound_after(self, t: int) -> int:
        return _floor(t, self.step, self.offset) + self.step

    def start_of(self, end: int) -> int:
        return _floor(end - 1, self.max_size, self.offset)

    def end_after(self, t: int) -> int:
        return _floor(t, self.step, self.offset) + self.step

    def last_end(self, start: int) -> int:
        return _floor(start, self.max_size, self.offset) + self.max_size

    def last_ends(self, starts: NDArray[np.int64]) -> NDArray[np.int64]:
        return starts - (starts - self.offset) % self.max_size + self.max_size

    def first_kept(self, watermark: int, lateness: int) -> int:
        if watermark == MIN_TIMESTAMP:
            return MIN_TIMESTAMP
        first = _floor(watermark - self.max_size - lateness + 1, self.max_size, self.offset) + self.max_size
        return clamped(first)

    def first_unpassed(self, watermark: int) -> int:
        return MIN_TIMESTAMP if watermark == MIN_TIMESTAMP else clamped(_floor(watermark + 1, self.step, self.offset))

    def late_windows(
        self, starts: NDArray[np.int64], watermark: int, lateness: int, afters: NDArray[np.int64] | None = None
    ) -> Windows:
        begins = starts - (starts - self.offset) % self.max_size
        first = np.maximum(starts + self.step, within(self.end_after(watermark - lateness + 1)))
        if afters is not None:
            first = np.maximum(first, afters + self.step)
        last = np.minimum(begins + self.max_size, within(_floor(watermark + 1, self.step, self.offset)))
        counts, ends = expanded(first, last, self.step)
        return Windows(counts, np.repeat(begins, counts), ends)

    def _first_ends(self, starts: NDArray[np.int64]) -> NDArray[np.int64]:
        return starts + self.step

    def windows_at(self, places: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        ends = places * self.step + self.offset % self.step
        return ends - 1 - (ends - 1 - self.offset) % self.max_size, ends
