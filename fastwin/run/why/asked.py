"""Asked: which windows a question is about, of those that are held and others, and what a journal knows of them."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastwin.errors import SpecError
from fastwin.operators.heldwindows import HeldWindows
from fastwin.run.why.journal import Fired, Journal, Late
from fastwin.run.why.windowsat import Wanted, window_bounds, windows_at
from fastwin.times import MAX_TIMESTAMP, MIN_TIMESTAMP
from fastwin.windows.assigner import MergingWindowAssigner
from fastwin.windows.timetext import TimeText
from fastwin.windows.timewindow import GlobalWindow, TimeWindow

__all__ = ["Asked", "asked", "firings_of", "known_of"]

_MOST_ABSENT = 20  # windows that are not there: a time may be in thousands of them


@dataclass(frozen=True)
class Asked:
    """A question about the windows at a time, ms, or about one window, or, with neither, about all of a key."""

    assigner: Any
    time: int | None = None
    window: TimeWindow | GlobalWindow | None = None

    @cached_property
    def wanted(self) -> list[Wanted] | None:
        """The windows that are asked for; None: all, or nobody can tell which."""
        if self.window is not None:
            return [Wanted(self.window)]
        return None if self.time is None else windows_at(self.assigner, self.time)

    @property
    def merges(self) -> bool:
        """Whether windows may grow and merge."""
        return isinstance(self.assigner, MergingWindowAssigner)

    @property
    def is_session(self) -> bool:
        """Whether the one window that is wanted is that of an element alone."""
        return any(one.is_session for one in self.wanted or [])

    @property
    def others(self) -> list[TimeWindow | GlobalWindow] | None:
        """What the assigner has in the place of the window; None: that is one of its windows, or nobody can tell."""
        if self.window is None:
            return None
        time = self.window.start if isinstance(self.window, TimeWindow) else 0
        found = windows_at(self.assigner, time)
        if found is None or any(one.is_session or one.window == self.window for one in found):
            return None
        return [one.window for one in found]

    def day(self, watermark: int) -> int | None:
        """Returns a time of the day that most of an answer is of; None: nobody knows."""
        if self.time is not None:
            return self.time
        if isinstance(self.window, TimeWindow):
            return self.window.start
        return watermark if MIN_TIMESTAMP < watermark < MAX_TIMESTAMP else None

    def of(self, held: HeldWindows) -> tuple[list[int], list[Wanted]]:
        """Returns the places of the windows that are asked for, and those of them that are not held, not too many.

        O(windows that are held, and that are asked for).
        """
        if self.time is None and self.window is None:
            return list(range(len(held))), []
        if self.wanted is None or self.is_session:
            assert self.time is not None
            places = np.flatnonzero(self._spans(held.starts, held.ends, self.time)).tolist()
            return places, [] if places else self.wanted or []
        names = [None] * len(held) if held.names is None else held.names
        places_of: dict[tuple, list[int]] = defaultdict(list)
        for place, (start, end, name) in enumerate(zip(held.starts.tolist(), held.ends.tolist(), names, strict=True)):
            places_of[_bounds_of(start, end)].append(place)
            places_of[*_bounds_of(start, end), name].append(place)
        found: list[int] = []
        absent: list[Wanted] = []
        for one in self.wanted:
            bounds = window_bounds(one.window)
            places = places_of.get(bounds if one.name is None else (*bounds, one.name), [])
            found += places
            if not places and len(absent) < _MOST_ABSENT:
                absent.append(one)
        if self.merges and absent and isinstance(self.window, TimeWindow):
            found = np.flatnonzero((held.starts < self.window.end) & (self.window.start < held.ends)).tolist()
        return found, absent

    def joined(self, held: HeldWindows, lateness_ms: int, watermark: int) -> list[tuple[int | None, int | None]]:
        """Returns the bounds of the sessions that an element of the time would join: they touch the one of it alone.

        Without those that are gone by a watermark, ms. In processing time no element has a time that is over: there
        are none.
        """
        if self.time is None or not self.is_session or not self.assigner.is_event_time():
            return []
        start, end = self._alone(self.time)
        kept = held.ends - 1 + lateness_ms > watermark
        touched = kept & (held.starts <= end) & (start <= held.ends)
        order = np.flatnonzero(touched)[np.argsort(held.starts[touched])]
        return [(int(held.starts[place]), int(held.ends[place])) for place in order]

    @staticmethod
    def _spans(starts: NDArray[np.int64], ends: NDArray[np.int64], time: int) -> NDArray[np.bool_]:
        return (starts == ends) | ((starts <= time) & (time < ends))

    def takes_fired(self, fired: Fired) -> bool:
        """Whether a firing is of windows that are asked for."""
        if fired.start is None or fired.end is None:
            return not isinstance(self.window, TimeWindow)
        if self.time is not None:
            return fired.start <= self.time < fired.end
        if isinstance(self.window, TimeWindow) and self.merges:
            return fired.start < self.window.end and self.window.start < fired.end
        return self.window is None or (fired.start, fired.end) == window_bounds(self.window)

    def takes_late(self, time: int) -> bool:
        """Whether an element of a time, ms, would be in windows that are asked for; yes where nobody can tell."""
        if isinstance(self.window, TimeWindow):
            start, end = self._alone(time)
            return start < self.window.end and self.window.start < end
        if self.time is None or self.wanted is None:
            return True
        if self.is_session:
            start, end = self._alone(time)
            return start <= self.time < end
        starts, ends = self._wanted_bounds
        return bool(self._spans(starts, ends, time).any())

    def _alone(self, time: int) -> tuple[int, int]:
        """Returns the session of an element alone, or the time of it; end is exclusive."""
        if self.merges:
            for one in windows_at(self.assigner, time) or []:
                if isinstance(one.window, TimeWindow):
                    return one.window
        return time, time + 1

    @cached_property
    def _wanted_bounds(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        found = [one.window if isinstance(one.window, TimeWindow) else (0, 0) for one in self.wanted or []]
        starts, ends = np.array(found, np.int64).reshape(-1, 2).T
        return starts, ends


def asked(assigner: Any, time_text: TimeText, at: Any, window: Any) -> Asked:
    """Returns what is asked for by a time and a window, as people give them. Raises SpecError for what is neither."""
    if at is not None and window is not None:
        raise SpecError("why: takes at= or window=, not both: at= asks for all windows at that time")
    time = None if at is None else time_text.read("why: at", at)
    return Asked(assigner, time, None if window is None else _read_window(time_text, window))


def known_of(asked: Asked, journal: Journal | None, key: Any) -> tuple[tuple[Fired, ...], tuple[Late, ...]] | None:
    """Returns what a journal knows of a key: firings of the windows that are asked for, and elements that were late."""
    if journal is None:
        return None
    fired = tuple(one for one in journal.of(Fired) if _is_key(one.key, key) and asked.takes_fired(one))
    return fired, tuple(one for one in journal.of(Late) if _is_key(one.key, key) and asked.takes_late(one.time))


def firings_of(
    asked: Asked, fired: tuple[Fired, ...], windows: list[tuple[int | None, int | None, str | None]]
) -> list[list[Fired]]:
    """Returns the firings of each window, given as (start, end, name); of a session, also those while it was shorter.

    One that is not held, see ``Asked.is_session``, has them all.
    """
    if asked.merges:
        return [
            [one for one in fired if one.start is None or (start or 0) <= one.start < (one.end or 0) <= (end or 0)]
            for start, end, _ in windows
        ]
    found: dict[tuple, list[Fired]] = defaultdict(list)
    for one in fired:
        found[one.start, one.end].append(one)
    return [[one for one in found.get((start, end), []) if name in (None, one.name)] for start, end, name in windows]


def _is_key(found: Any, wanted: Any) -> bool:
    if isinstance(found, tuple):
        return all(map(_is_key, found, wanted))
    if isinstance(found, float) and math.isnan(found):
        return isinstance(wanted, float) and math.isnan(wanted)
    return bool(found == wanted)


def _bounds_of(start: int, end: int) -> tuple[int | None, int | None]:
    return (None, None) if start == end else (start, end)


def _read_window(time_text: TimeText, window: Any) -> TimeWindow | GlobalWindow:
    if isinstance(window, TimeWindow | GlobalWindow):
        return window
    if isinstance(window, tuple | list) and len(window) == 2:
        start, end = time_text.read("why: window", window[0]), time_text.read("why: window", window[1])
        if start < end:
            return TimeWindow(start, end)
    raise SpecError(f"why: window must be a TimeWindow, a GlobalWindow, or a pair (start, end), got {window!r}")
