"""Small state: the operator on Spark's ``applyInPandasWithState``.

Spark hands the state of a share over with its rows, as one value, and takes it back with the results. No task asks for
variables one by one, for which Spark would make encoders anew in each. The value is written whole whenever it changes.
"""

import copy
from collections.abc import Iterator
from typing import Any, NamedTuple

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import types as T
from pyspark.sql.streaming import StatefulProcessor
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from spark_glue.plan.frameplan import FramePlan, TimeMode
from spark_glue.stages.shipped import Packed

__all__ = ["run_groups"]

_TIMEOUTS = {
    "EventTime": GroupStateTimeout.EventTimeTimeout,
    "ProcessingTime": GroupStateTimeout.ProcessingTimeTimeout,
    "None": GroupStateTimeout.NoTimeout,
}
_TIMER = "timer"


def run_groups(
    packed: DataFrame, processor: StatefulProcessor, struct: T.StructType, frame_plan: FramePlan
) -> DataFrame:
    """Returns what a processor, which must ask for value variables alone, makes of the groups of packed rows.

    struct: of its rows.
    """
    mode = frame_plan.time_mode
    asked = _Handle(mode)
    copy.copy(processor).init(asked)  # what it asks for here is of no use in a task
    groups = _Groups(Packed(processor), mode, bool(frame_plan.carried_delays))

    def visit(key: Any, rows: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        return groups.visit(key, rows, state)

    return packed.groupBy("key_group").applyInPandasWithState(visit, struct, asked.struct, "append", _TIMEOUTS[mode])


class _Groups:
    """Hands the groups of a task to a processor.

    has_watermark: whether Spark makes one.
    """

    def __init__(self, packed: Packed, mode: TimeMode, has_watermark: bool) -> None:
        self._packed, self._mode, self._has_watermark = packed, mode, has_watermark
        self._handle = _Handle(mode)

    def visit(self, key: Any, rows: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        """Yields what a group gives that has rows, or whose timer has expired, and then what that timer gives."""
        handle = self._handle
        processor = self._packed.begin(handle)
        handle.enter(state)
        times = _Times(state, self._has_watermark)
        if not state.hasTimedOut:
            yield from processor.handleInputRows(key, rows, times)
        expired = handle.take_expired(times)
        if expired is not None:
            yield from processor.handleExpiredTimer(key, times, expired)
        handle.leave(state)


class _Times:
    """The times of a micro-batch, ms: what ``TimerValues`` tells."""

    def __init__(self, state: GroupState, has_watermark: bool) -> None:
        self._state, self._has_watermark = state, has_watermark

    def getCurrentProcessingTimeInMs(self) -> int:  # noqa: N802
        return self._state.getCurrentProcessingTimeMs()

    def getCurrentWatermarkInMs(self) -> int:  # noqa: N802
        return max(self._state.getCurrentWatermarkMs(), 0) if self._has_watermark else 0


class _Expired(NamedTuple):
    """A timer: what ``ExpiredTimerInfo`` tells."""

    ms: int

    def getExpiryTimeInMs(self) -> int:  # noqa: N802
        return self.ms


class _Handle:
    """What a processor asks its handle for, in the one value that Spark keeps for a group: variables, and a timer."""

    def __init__(self, mode: TimeMode) -> None:
        self._mode = mode
        self._fields: list[T.StructField] = []
        self.values: dict[str, tuple[Any, ...] | None] = {}
        self._timer: int | None = None
        self._before: tuple[Any, ...] = ()

    @property
    def struct(self) -> T.StructType:
        """The type of the value, when all variables are known."""
        return T.StructType([T.StructField(_TIMER, T.LongType()), *self._fields])

    def getValueState(self, name: str, struct: T.StructType) -> "_Variable":  # noqa: N802
        self._fields.append(T.StructField(name, struct))
        self.values[name] = None
        return _Variable(self.values, name)

    def registerTimer(self, ms: int) -> None:  # noqa: N802
        self._timer = ms

    def deleteTimer(self, ms: int) -> None:  # noqa: N802
        if self._timer == ms:
            self._timer = None

    def enter(self, state: GroupState) -> None:
        """Turns to a group."""
        found = state.getOption or (None,) * (1 + len(self._fields))
        self._timer, *values = found
        self.values.update(zip(self.values, values, strict=True))
        self._before = self._now()

    def _now(self) -> tuple[Any, ...]:
        return self._timer, *self.values.values()

    def take_expired(self, times: _Times) -> _Expired | None:
        """Returns the timer of the group, and removes it, if it has expired."""
        timer = self._timer
        if timer is None or self._mode == "None":
            return None
        is_event = self._mode == "EventTime"
        now = times.getCurrentWatermarkInMs() if is_event else times.getCurrentProcessingTimeInMs()
        if timer > now:
            return None
        self._timer = None
        return _Expired(timer)

    def leave(self, state: GroupState) -> None:
        """Hands the group back to Spark."""
        after = self._now()
        if after != self._before:
            if any(value is not None for value in after):
                state.update(after)
            elif state.exists:
                state.remove()
        if self._timer is None:
            return
        # Spark's timeouts expire when the time is past them, timers when it has come to them.
        if self._mode == "EventTime":
            state.setTimeoutTimestamp(max(self._timer - 1, 1))
        else:
            state.setTimeoutDuration(max(self._timer - 1 - state.getCurrentProcessingTimeMs(), 1))


class _Variable:
    """One variable of the group that its handle is at."""

    def __init__(self, values: dict[str, tuple[Any, ...] | None], name: str) -> None:
        self._values, self._name = values, name

    def get(self) -> tuple[Any, ...] | None:
        return self._values[self._name]

    def update(self, value: tuple[Any, ...]) -> None:
        self._values[self._name] = value

    def clear(self) -> None:
        self._values[self._name] = None
