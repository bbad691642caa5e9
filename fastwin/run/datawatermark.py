"""A watermark that follows the data: behind the newest element by how far elements may be out of order."""

from __future__ import annotations

import time
from typing import Literal

from fastwin.errors import SpecError
from fastwin.run.inputclocks import time_of_quiet_inputs
from fastwin.times import MIN_TIMESTAMP, Duration, to_ms

__all__ = ["DataWatermark", "data_watermark", "idle_time"]


class DataWatermark:
    """Tells the watermark after each batch.

    delay_ms: how far elements may be out of order. idle_ms: after how long without elements, by the machine's clock,
    the watermark goes up to the newest one, and on with the clock; None: never.
    """

    def __init__(self, delay_ms: int, idle_ms: int | None) -> None:
        self._delay_ms, self._idle_ms = delay_ms, idle_ms
        self.restart()

    @property
    def delay_ms(self) -> int:
        """How far elements may be out of order."""
        return self._delay_ms

    @property
    def idle_ms(self) -> int | None:
        """After how long without elements the watermark goes up to the newest one."""
        return self._idle_ms

    def restart(self) -> None:
        """Begins to wait for elements anew."""
        self._last_element = time.monotonic()

    def after(self, newest: int, ever: int) -> int:
        """Returns the watermark after a batch whose newest element has the time ``newest``, int64 min for an empty one.

        ever: the newest time of all batches, ms. Int64 min: the watermark stays where it is.
        """
        if newest > MIN_TIMESTAMP:
            self.restart()
            return max(newest - self._delay_ms - 1, MIN_TIMESTAMP)
        if self._idle_ms is None:
            return MIN_TIMESTAMP
        quiet_ms = int((time.monotonic() - self._last_element) * 1_000 + 1e-6)  # 0.1 s in steps are not quite 100 ms
        return MIN_TIMESTAMP if quiet_ms < self._idle_ms else time_of_quiet_inputs(ever, quiet_ms, self._idle_ms)


def idle_time(idle: Duration | None, *, follows: bool) -> int | None:
    """Returns after how long an input without elements is idle, ms. follows: whether a watermark follows the data."""
    idle_ms = None if idle is None else to_ms(idle, argument="idle")
    if idle_ms is not None and (idle_ms < 1 or not follows):
        raise SpecError(f"idle: must be at least 1 ms, and needs a watermark= that follows the data, got {idle_ms} ms")
    return idle_ms


def data_watermark(
    watermark: Duration | Literal["monotonous"] | None, idle: Duration | None = None
) -> DataWatermark | None:
    """Returns what the arguments of ``WindowSpec.open`` ask for; None: the caller moves the watermark."""
    delay_ms = None
    if watermark is not None:
        if isinstance(watermark, str) and watermark.isalpha() and watermark != "monotonous":
            raise SpecError(
                f"watermark: {watermark!r} is no duration; write for example '5 seconds', or 'monotonous' where times "
                f"never go back"
            )
        delay_ms = 0 if watermark == "monotonous" else to_ms(watermark, argument="watermark")
        if delay_ms < 0:
            raise SpecError(f"watermark: must not be negative, got {delay_ms} ms")
    idle_ms = idle_time(idle, follows=delay_ms is not None)
    return None if delay_ms is None else DataWatermark(delay_ms, idle_ms)
