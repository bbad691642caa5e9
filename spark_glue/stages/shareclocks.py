"""The watermark that a share makes itself, of the newest times of all inputs; quiet ones are not waited for."""

from collections.abc import Sequence

from pyspark.sql.streaming import StatefulProcessorHandle
from pyspark.sql.streaming.stateful_processor import TimerValues

from fastwin import MIN_TIMESTAMP
from fastwin.run.inputclocks import InputClocks
from spark_glue.state.variables import CLOCKS, clocks_type

__all__ = ["ShareClocks"]


class ShareClocks:
    """What each share knows of all inputs, kept in the state store. Made once per task.

    In every micro-batch with good rows, each share is told the newest time of each input that had some; in one without,
    its timer tells it that there were none. So all shares know the same, a micro-batch that runs again makes the same
    of it, and a restart goes on from it. As with Spark's watermark, what a micro-batch brings counts from the next one.

    All times are those of micro-batches, ms. A pause of the query is no silence: of the time between two micro-batches,
    at most half of idle_ms counts as silence of an input that was not idle before, see ``InputClocks.unseen``.

    delays: how far the rows of each input may be out of order. idle_ms: after how long without rows one is idle.
    """

    def __init__(self, handle: StatefulProcessorHandle, delays: Sequence[int], idle_ms: int) -> None:
        self._delays, self._idle_ms = tuple(delays), idle_ms
        self._state = handle.getValueState(CLOCKS, clocks_type(len(delays)))

    def hear(self, newest: Sequence[tuple[int, int]], values: TimerValues) -> None:
        """Takes what the current share is told: numbers of inputs, and new times of them. Empty: no input had rows."""
        now = values.getCurrentProcessingTimeInMs()
        clocks, seen, watermark, coming = self._load(now)
        if seen == now and not newest:
            return  # the timer, in a micro-batch that has brought rows
        if seen is not None:
            clocks = clocks.unseen(seen, now, self._idle_ms)
        told = [max((time for at, time in newest if at == number), default=MIN_TIMESTAMP) for number in self._inputs]
        clocks = clocks.hear(told, now)
        watermark = watermark if seen == now else coming
        coming = max(watermark, clocks.watermark(self._delays, now, self._idle_ms))
        pairs = [value for pair in zip(clocks.newest, clocks.heard, strict=True) for value in pair]
        self._state.update((*pairs, now, watermark, coming))

    def begin(self, known: Sequence[int] | None) -> None:
        """Gives the current share what another one knows, as the state store has it; None: nothing."""
        if known is None:
            self._state.clear()
        else:
            self._state.update(tuple(known))

    def watermark(self, values: TimerValues) -> int:
        """Returns the current share's watermark in this micro-batch; int64 min for none yet. After ``hear``."""
        return self._load(values.getCurrentProcessingTimeInMs())[2]

    def state(self, values: TimerValues) -> tuple[int, int | None]:
        """Returns the newest time of all inputs, and the number of the one that holds time back; None: all are idle."""
        now = values.getCurrentProcessingTimeInMs()
        clocks = self._load(now)[0]
        return max(clocks.newest), clocks.holder(self._delays, now, self._idle_ms)

    @property
    def _inputs(self) -> range:
        return range(len(self._delays))

    def _load(self, now: int) -> tuple[InputClocks, int | None, int, int]:
        """Returns the clocks, the micro-batch that they are of, its watermark, and that of the next one."""
        found = self._state.get()
        if found is None:
            return InputClocks.begin(len(self._delays), now), None, MIN_TIMESTAMP, MIN_TIMESTAMP
        *pairs, seen, watermark, coming = found
        return InputClocks(tuple(pairs[::2]), tuple(pairs[1::2])), seen, watermark, coming
