"""Ranges of time, cut into panes of two levels: fine ones at the edges, coarse ones within."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from fastwin.times import FIRST_DATE_MS, LAST_DATE_MS

__all__ = [
    "FIRST_MS",
    "LAST_MS",
    "Level",
    "Span",
    "coarse_width",
    "cover",
    "earliest",
    "floor_to",
    "latest",
    "span_of_windows",
    "time_text",
]

FIRST_MS = FIRST_DATE_MS
LAST_MS = LAST_DATE_MS + 1
"""The years 1 to 9999, half-open."""

_MINUTE = 60_000
_NICE = [_MINUTE * m for m in (1, 2, 3, 5, 10, 15, 20, 30, 60, 120, 180, 240, 360, 480, 720, 1_440, 2_880, 10_080)]
_NICE = [1_000, 2_000, 5_000, 10_000, 15_000, 30_000, *_NICE]


@dataclass(frozen=True)
class Level:
    """A grid of panes: every ``width_ms``, shifted from the epoch by ``offset_ms``."""

    width_ms: int
    offset_ms: int = 0

    def start_of(self, time: int) -> int:
        """Returns the start of the pane with this time."""
        return floor_to(time, self.width_ms, self.offset_ms)

    def starts(self, start: int, end: int) -> range:
        """Returns the starts of the panes in ``[start, end)``, both on the grid."""
        return range(start, end, self.width_ms)


@dataclass(frozen=True)
class Span:
    """Panes of one level, 0 for fine and 1 for coarse, that start in ``[start, end)``."""

    level: int
    start: int
    end: int


def floor_to(time: int, width: int, offset: int = 0) -> int:
    """Returns the last point of a grid at or before a time; all ms.

    >>> floor_to(-1, 60_000)
    -60000
    """
    return time - (time - offset) % width


def earliest(*times: int | None) -> int | None:
    """Returns the earliest of times; None if none is known."""
    return min((int(at) for at in times if at is not None), default=None)


def latest(*times: int | None) -> int | None:
    """Returns the latest of times; None if none is known."""
    return max((int(at) for at in times if at is not None), default=None)


def coarse_width(pane_ms: int, window_ms: int) -> int | None:
    """Returns the width of the coarse panes with which a window needs the fewest panes; None if none saves any.

    >>> coarse_width(180_000, 86_400_000)
    3600000
    """
    best, cost = None, window_ms / pane_ms
    for width in _NICE:
        if width > pane_ms and width % pane_ms == 0 and window_ms / width + width / pane_ms < cost:
            best, cost = width, window_ms / width + width / pane_ms
    return best


def cover(start: int, end: int, coarse: Level | None) -> Iterator[Span]:
    """Yields the spans that make up ``[start, end)``, in order: 24 h at 3 min and 1 h are at most 43 panes.

    >>> [span.level for span in cover(180_000, 3 * 3_600_000, Level(3_600_000))]
    [0, 1]
    """
    if coarse is not None:
        first = coarse.start_of(start + coarse.width_ms - 1)
        last = coarse.start_of(end)
        if first < last:
            if start < first:
                yield Span(0, start, first)
            yield Span(1, first, last)
            if last < end:
                yield Span(0, last, end)
            return
    if start < end:
        yield Span(0, start, end)


def span_of_windows(coarse: Level | None, window_ms: int, step_ms: int, start: int, end: int) -> Span:
    """Returns the span of windows between two times, one each ``step_ms``: of coarse panes if all are made of them."""
    fits = coarse is not None and not any(ms % coarse.width_ms for ms in (window_ms, step_ms, end - coarse.offset_ms))
    return Span(1 if fits else 0, start, end)


@lru_cache(maxsize=65_536)
def time_text(ms: int) -> str:
    """Returns a time of the years 1 to 9999 in UTC, as short as it is exact from minutes on; it sorts like the time.

    Of a time before them, at which a span with the first pane may begin, it is the ms.

    >>> time_text(1_704_067_380_000)
    '2024-01-01T00:03Z'
    """
    if ms < FIRST_MS:
        return str(ms)
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=ms // 1_000)
    if ms % _MINUTE == 0:
        return f"{moment:%Y-%m-%dT%H:%M}Z".rjust(17, "0")
    seconds = f"{moment:%Y-%m-%dT%H:%M:%S}".rjust(19, "0")
    return f"{seconds}Z" if ms % 1_000 == 0 else f"{seconds}.{ms % 1_000:03d}Z"
