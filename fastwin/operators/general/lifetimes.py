"""Lifetimes: which keys have state with a time to live, and when to look at them next."""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

from fastwin.times import MIN_TIMESTAMP

__all__ = ["Lifetime", "Lifetimes", "lifetimes_of"]

_SPARE = 64  # entries that nothing stands behind any more, however few keys there are
_MARK = "\0"  # a lifetime is kept beside the state, as a plain tuple, under the state's name behind this


class Lifetime(NamedTuple):
    """When a state was written, ms; for how long it stays; and whether both are event time.

    written: int64 min: before there was a watermark. It then counts from the first one.
    """

    written: int
    ttl: int
    event: bool

    @property
    def end(self) -> int:
        """The time at which the state is gone, ms."""
        return MIN_TIMESTAMP if self.written == MIN_TIMESTAMP else self.written + self.ttl


def lifetimes_of(values: dict[str, Any]) -> list[Lifetime]:
    """Returns the lifetimes that a key's state tells of."""
    return [Lifetime(*kept) for name, kept in values.items() if name[0] == _MARK]


class Lifetimes:
    """One clock's keys with state that ends, each with about two entries at most. O(log keys) a look, amortised."""

    def __init__(self, event: bool) -> None:
        self.event = event
        self._heap: list[tuple[int, int]] = []
        self._next: dict[int, int] = {}

    def look_at(self, key: int, time: int) -> None:
        """Makes sure that a key is looked at when the clock reaches ``time``."""
        if key not in self._next or time < self._next[key]:
            self._next[key] = time
            heappush(self._heap, (time, key))
            if len(self._heap) > 2 * len(self._next) + _SPARE:  # the others are of keys that were forgotten since
                self._heap = [(time, key) for key, time in self._next.items()]
                heapify(self._heap)

    def forget(self, key: int) -> None:
        """Takes back what was noted for a key."""
        self._next.pop(key, None)

    def first(self) -> int | None:
        """Returns when the first key is looked at; None: there is none, or it waits for the first watermark."""
        while self._heap and self._next.get(self._heap[0][1]) != self._heap[0][0]:
            heappop(self._heap)
        return self._heap[0][0] if self._heap and self._heap[0][0] != MIN_TIMESTAMP else None

    def due(self, now: int) -> Iterator[int]:
        """Takes out the keys to look at now."""
        while self._heap and self._heap[0][0] <= now:
            time, key = heappop(self._heap)
            if self._next.get(key) == time:
                del self._next[key]
                yield key

    def expire(self, values: dict[str, Any], now: int) -> tuple[bool, int | None]:
        """Drops what is over of a key's state. Returns whether any of it has changed, and when to look again."""
        changed, again = False, None
        for name, kept in [(name, kept) for name, kept in values.items() if name[0] == _MARK]:
            lifetime = Lifetime(*kept)
            if lifetime.event != self.event:
                continue
            if lifetime.written == MIN_TIMESTAMP:
                lifetime = lifetime._replace(written=now)
                values[name], changed = tuple(lifetime), True
            if lifetime.end <= now:
                del values[name]
                values.pop(name[1:], None)
                changed = True
            elif again is None or lifetime.end < again:
                again = lifetime.end
        return changed, again
