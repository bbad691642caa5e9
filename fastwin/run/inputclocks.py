"""The watermark of several inputs, of which a quiet one no longer holds time back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fastwin.times import MAX_TIMESTAMP, MIN_TIMESTAMP

__all__ = ["InputClocks", "time_of_quiet_inputs"]


def time_of_quiet_inputs(newest: int, quiet_ms: int, idle_ms: int) -> int:
    """Returns the watermark, ms, where no input has had elements for ``quiet_ms``, which is at least ``idle_ms``.

    It is the newest time when they become idle, and goes on with the clock from there. newest: int64 min for none.
    """
    return newest if newest == MIN_TIMESTAMP else min(newest + quiet_ms - idle_ms, MAX_TIMESTAMP)


@dataclass(frozen=True)
class InputClocks:
    """What is known of each input. It is immutable; all times are ms.

    newest: the newest event time of each, int64 min for none. heard: by the clock, when each had elements last, or when
    waiting for them began; later by what does not count as waiting.
    """

    newest: tuple[int, ...]
    heard: tuple[int, ...]

    @classmethod
    def begin(cls, inputs: int, now: int) -> InputClocks:
        """Begins to wait for some inputs at a time of the clock."""
        return cls((MIN_TIMESTAMP,) * inputs, (now,) * inputs)

    def hear(self, newest: Sequence[int], now: int) -> InputClocks:
        """Returns the clocks after a batch. newest: its newest time for each input, int64 min for one without rows."""
        spoke = [time > MIN_TIMESTAMP for time in newest]
        return InputClocks(
            tuple(map(max, self.newest, newest)),
            tuple(max(at, now) if one else at for at, one in zip(self.heard, spoke, strict=True)),
        )

    def unseen(self, since: int, now: int, idle_ms: int) -> InputClocks:
        """Returns the clocks after a time, from ``since`` to ``now``, in which nobody has looked at the inputs.

        It may have been a pause. So for an input that was not idle it counts for at most half of ``idle_ms``, rounded
        up: one such time makes no input idle that was heard at its begin, two in a row do. For those that were idle it
        counts in full, as time goes on with the clock.
        """
        pause = max(now - since - (idle_ms + 1) // 2, 0)
        idle = self.idle(since, idle_ms)
        return replace(self, heard=tuple(at if one else at + pause for at, one in zip(self.heard, idle, strict=True)))

    def idle(self, now: int, idle_ms: int | None) -> tuple[bool, ...]:
        """Returns of each input whether it has had no elements for so long. idle_ms: None: that does not count."""
        return tuple(idle_ms is not None and now - at >= idle_ms for at in self.heard)

    def holder(self, delays: Sequence[int], now: int, idle_ms: int | None) -> int | None:
        """Returns the number of the input whose watermark is that of all; None: all are idle. delays: of each, ms."""
        idle = self.idle(now, idle_ms)
        waited = [(self._behind(number, delay), number) for number, delay in enumerate(delays) if not idle[number]]
        return min(waited)[1] if waited else None

    def watermark(self, delays: Sequence[int], now: int, idle_ms: int | None) -> int:
        """Returns the watermark of all inputs; int64 min for none yet. It may be below an earlier one.

        It is the least of those inputs that are not idle, or goes on with the clock. delays: how far the elements of
        each may be out of order, ms.
        """
        holder = self.holder(delays, now, idle_ms)
        if holder is not None:
            return self._behind(holder, delays[holder])
        assert idle_ms is not None
        return time_of_quiet_inputs(max(self.newest), now - max(self.heard), idle_ms)

    def _behind(self, number: int, delay: int) -> int:
        newest = self.newest[number]
        return newest if newest == MIN_TIMESTAMP else max(newest - delay - 1, MIN_TIMESTAMP)
