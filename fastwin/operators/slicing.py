"""Slicing: which slices and which ends aligned windows have."""

from dataclasses import dataclass

from fastwin.windows import MAX_TIMESTAMP, MIN_TIMESTAMP

__all__ = ["Slicing"]


@dataclass(frozen=True)
class Slicing:
    """Windows ``[k * slide + offset, k * slide + offset + size)``; all in ms. Tumbling: slide = size.

    A slice is an interval between neighbouring starts or ends of windows; a window is a run of slices.
    """

    size: int
    slide: int
    offset: int

    def _floor(self, t: int, offset: int) -> int:
        return t - (t - offset) % self.slide

    def end_after(self, t: int) -> int:
        """Returns the first end of a window later than t."""
        return self._floor(t, self.offset + self.size) + self.slide

    def last_end(self, start: int) -> int:
        """Returns the end of the last window that covers the slice starting at ``start``."""
        return self._floor(start, self.offset) + self.size

    def first_kept(self, watermark: int, lateness: int) -> int:
        """Returns the first slice start with a window that is not late: last end - 1 + lateness > watermark."""
        if watermark == MIN_TIMESTAMP:
            return MIN_TIMESTAMP
        first = self._floor(watermark - self.size - lateness + 1, self.offset) + self.slide
        return max(MIN_TIMESTAMP, min(first, MAX_TIMESTAMP))

    def first_unpassed(self, watermark: int) -> int:
        """Returns the first slice start without a window that has passed: every end - 1 > watermark."""
        if watermark == MIN_TIMESTAMP:
            return MIN_TIMESTAMP
        return max(MIN_TIMESTAMP, min(self._floor(watermark + 1, self.offset + self.size), MAX_TIMESTAMP))

    def late_ends(self, start: int, watermark: int, lateness: int) -> range:
        """Returns the ends of windows that cover a slice, have passed and are still kept, latest first."""
        first = max(self.end_after(start), self.end_after(watermark - lateness + 1))
        last = min(self.last_end(start), self._floor(watermark + 1, self.offset + self.size))
        return range(last, first - 1, -self.slide)
