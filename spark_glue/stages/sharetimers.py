"""When Spark must visit a share again: one timer for each, in the time that the query's timers wait for."""

import time

from pyspark.sql.streaming import StatefulProcessorHandle
from pyspark.sql.streaming.stateful_processor import TimerValues

import fastwin as fw
from spark_glue.plan.compat import finds_old_timers
from spark_glue.plan.frameplan import TimeMode
from spark_glue.stages.duetimers import ask_unless
from spark_glue.stages.shareclocks import ShareClocks
from spark_glue.stages.worker import has_own_partition
from spark_glue.state.variables import WAITING, WAITING_TYPE

__all__ = ["ShareTimers"]


class ShareTimers:
    """The timers of a task's shares, and the clocks that streams are told. Made once per task.

    In processing time Spark's timers know the clock alone. A share in which something waits for the watermark is
    therefore visited in every micro-batch. ``nothing_due`` tells, before any state is read, whether that was needless.

    In event time, a share that has had input is done with what is due, and is alone on its partition. So its task need
    not ask Spark for expired timers, and a timer that comes too soon stays as it is: at worst, a micro-batch in which
    the share has no input visits it once for nothing, and sets the right one.

    clocks: make the watermark; None: it is Spark's. start_ms: the watermark to start with; None: none.
    """

    def __init__(
        self,
        handle: StatefulProcessorHandle,
        mode: TimeMode,
        clocks: ShareClocks | None = None,
        start_ms: int | None = None,
    ) -> None:
        self._start = max(start_ms or 0, 0)
        self._handle = handle
        self._mode = mode
        self._clocks = clocks
        # What is waited for: the first timers of the share, and the timer of Spark's that is set for them.
        self._waiting = handle.getValueState(WAITING, WAITING_TYPE) if mode == "ProcessingTime" else None
        self._is_done = False
        alone = mode == "EventTime" and has_own_partition() and finds_old_timers()
        self._keeps_sooner = alone and ask_unless(handle, lambda: self._is_done)

    def set_clock(self, stream: fw.Stream, values: TimerValues) -> list[fw.Result]:
        """Brings a stream's clock to the batch's own time; returns what fires.

        Where a query waits for no time, Spark tells none: then it is the machine's time. Timers strictly before that
        time fire, as in a task of Flink, where elements that arrive in the very millisecond come first. A time that
        goes back is ignored.
        """
        now = time.time_ns() // 1_000_000 if self._mode == "None" else values.getCurrentProcessingTimeInMs()
        return [stream.advance_processing_time(now, before=True)] if now > stream.processing_time else []

    def advance(self, stream: fw.Stream, values: TimerValues) -> list[fw.Result]:
        """Brings a stream to the batch's watermark. Spark says 0 while there is none yet."""
        watermark = self._watermark(values)
        return [stream.advance_watermark(watermark)] if self._mode != "None" and watermark > 0 else []

    def begin(self, stream: fw.Stream) -> None:
        """Brings a stream that holds nothing to the watermark to start with."""
        if self._start > 0:
            stream.advance_watermark(self._start)

    def _watermark(self, values: TimerValues) -> int:
        spark_ms = int(values.getCurrentWatermarkInMs())
        found = spark_ms if self._clocks is None else self._clocks.watermark(values)
        return found if found > 0 else self._start

    def told(self, values: TimerValues) -> dict[str, int]:
        """Returns what is to be counted of the inputs, where shares make their watermark themselves."""
        if self._clocks is None:
            return {}
        newest, holder = self._clocks.state(values)
        return {"frame_newest_ms": max(newest, 0), "held_by": 0 if holder is None else holder + 1}

    def nothing_due(self, values: TimerValues) -> bool:
        """Returns whether an expired timer of the current share means nothing, and if so sets the next one."""
        if self._waiting is None:
            return False
        event, processing, _ = self._waiting.get() or (None, None, None)
        now = values.getCurrentProcessingTimeInMs()
        if event is None and self._clocks is None:
            return False
        if (event is not None and event <= self._watermark(values)) or (processing is not None and processing < now):
            return False
        self._handle.registerTimer(now + 1)
        self._waiting.update((event, processing, now + 1))
        return True

    def wait(self, values: TimerValues) -> None:
        """Sees to it that the current share, which makes its watermark itself, is visited in each micro-batch.

        Its timer may stand later than that where the driver's clock has gone back.
        """
        assert self._waiting is not None
        event, processing, timer = self._waiting.get() or (None, None, None)
        soon = values.getCurrentProcessingTimeInMs() + 1
        if timer is None or timer > soon:
            self._change(timer, soon, None)
            self._waiting.update((event, processing, soon))

    def set(self, stream: fw.Stream, values: TimerValues, before: int | None, expired: int | None) -> int | None:
        """Sets the current share's timer for a stream; returns it if the caller is to remember it.

        before: the timer that this returned last. expired: the one that led here, which Spark removes.
        """
        event = stream.next_timer()
        if event is not None:
            event = max(event, stream.watermark + 1, 1)  # an expired one would go with the one that led here
        if self._mode == "None":
            return None
        if self._waiting is None:
            if self._keeps_sooner and before is not None and event is not None and before != expired:
                event = min(before, event)
            self._change(before, event, expired)
            return event
        _, _, before = self._waiting.get() or (None, None, None)
        processing, now = stream.next_processing_timer(), values.getCurrentProcessingTimeInMs()
        timer = None
        if event is not None or self._clocks is not None:
            timer = now + 1  # in the next micro-batch, which may have another watermark
        elif processing is not None:
            timer = max(min(processing, fw.MAX_TIMESTAMP - 1), now) + 1
        self._change(before, timer, expired)
        if timer is None:
            self._waiting.clear()
        else:
            self._waiting.update((event, processing, timer))
        return None

    def done(self) -> None:
        """Says that the current share has had input, and that all is done that was due."""
        self._is_done = True

    def forget(self, before: int | None) -> None:
        """Removes the current share's timer. before: that which ``set`` has returned."""
        if self._waiting is not None:
            found = self._waiting.get()
            before = None if found is None else found[2]
            self._waiting.clear()
        if before is not None and self._mode != "None":
            self._handle.deleteTimer(before)

    def _change(self, before: int | None, timer: int | None, expired: int | None) -> None:
        if timer == before:
            return
        if before not in (None, expired):
            self._handle.deleteTimer(before)
        if timer is not None:
            self._handle.registerTimer(timer)
