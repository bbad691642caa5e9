"""What the general operator knows of its windows: rows, timers, and what triggers keep. No user code runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.columns.keys import EncodedKeys
from fastwin.core.rows.rowstore import RowStore
from fastwin.core.windows.windowtable import END_CELL, HEAD_CELLS
from fastwin.operators.general.repeating import unmarked
from fastwin.operators.heldwindows import NEVER, HeldWindows, WindowTimer, in_rows, slots_of_key
from fastwin.spec.joinending import free_name
from fastwin.times import MAX_TIMESTAMP
from fastwin.triggers import (
    AfterWatermark,
    AnyOf,
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountTrigger,
    DeltaTrigger,
    EventTimeTrigger,
    NeverTrigger,
    ProcessingTimeoutTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
    Trigger,
)

if TYPE_CHECKING:
    from fastwin.core.windows.timerservice import TimerService
    from fastwin.functions.descriptors import StateDescriptor
    from fastwin.operators.general.operator import GeneralOperator

    _Cell = tuple[Trigger, int, StateDescriptor]

__all__ = ["Marks", "look"]

_AT_END = (EventTimeTrigger, ContinuousEventTimeTrigger, AfterWatermark)
_AT_END_OF_CLOCK = (ProcessingTimeTrigger, ContinuousProcessingTimeTrigger)
_AT_END_ALONE = (EventTimeTrigger, ProcessingTimeTrigger)
_LONGEST = 200  # characters of a Python object that are shown


class Marks(NamedTuple):
    """The flags of rows that are asked for: see WindowTable."""

    has_contents: int
    fired: int
    cleaned: int
    needed: int
    """All of these are set where a row is a window of its key."""


def look(operator: GeneralOperator, kept: Sequence[_Cell], marks: Marks, key: EncodedKeys | None) -> HeldWindows:
    """Returns the windows that are known, of one key or of all. kept: of each cell of triggers, see TriggerHost."""
    table, config, trigger = operator.table, operator.config, operator.program.trigger
    rows = table.rows
    slots = slots_of_key(table.keys, rows, key)
    slots = slots[(table.flags(slots) & (marks.cleaned | marks.needed)) == marks.needed]
    flags, ends = table.flags(slots), rows.cells(slots, END_CELL)
    starts = rows.starts(slots)
    lasts = np.where(starts == ends, MAX_TIMESTAMP, ends - 1)
    timers = _timers(operator.timer_service, rows, slots)
    gone = _cleanups(operator.timer_service, starts, ends)
    next_ones = [
        _next(trigger, told, at, last, operator.timer_service.event_time)
        for told, at, last in zip(timers, gone.tolist(), lasts.tolist(), strict=True)
    ]
    fires_at = np.array([NEVER if timer is None else timer.time for timer in next_ones], np.int64)
    fired = (flags & marks.fired) != 0
    if marks.needed and isinstance(trigger, _AT_END_ALONE):
        fired &= fires_at == NEVER  # a session that has grown has not fired as it is now
    found = HeldWindows(
        keys=config.codec.decode(table.keys, rows.keys(slots)),
        starts=starts,
        ends=ends,
        values=_values(operator, slots),
        filled=(flags & marks.has_contents) != 0,
        fired=fired,
        firings=table.panes(slots),
        fires_at=fires_at,
        by_clock=np.array([timer is not None and timer.by_clock for timer in next_ones], np.bool_),
        gone_at=gone,
        nbytes=in_rows(rows, slots),
        timers=timers,
        trigger_state=[_kept(operator, kept, slot) for slot in slots.tolist()],
        asks=not _is_exact(trigger),
    )
    table.keys.sweep()
    return found


def _cleanups(service: TimerService, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    lateness = service.lateness if service.event_time else 0
    gone = np.minimum(ends - 1, MAX_TIMESTAMP - lateness) + lateness
    return np.where(starts == ends, NEVER, gone)


def _timers(service: TimerService, rows: RowStore, slots: NDArray[np.int32]) -> list[list[WindowTimer]]:
    """Returns the timers of rows, in order of time. O(timers) of all rows."""
    wanted = np.zeros(rows.top, dtype=np.uint8)
    wanted[slots] = 1
    found: dict[int, list[WindowTimer]] = {slot: [] for slot in slots.tolist()}
    for slot, told in found.items():
        told += [WindowTimer(time, bool(kind)) for time, kind in service.marks(slot)[0]]
    for slot, time, kind in unmarked(service, wanted):
        found[slot].append(WindowTimer(time, bool(kind)))
    return [sorted(set(told)) for told in found.values()]


def _next(
    trigger: Trigger, timers: Sequence[WindowTimer], cleanup: int, last: int, event_time: bool
) -> WindowTimer | None:
    """Returns the first timer at which a trigger fires, or is asked; None: there is none but the one for cleaning."""
    for timer in timers:
        cleans = timer.time == cleanup and timer.by_clock != event_time
        if (not cleans or timer.time == last) and _fires(trigger, timer, last):
            return timer
    return None


def _fires(trigger: Trigger, timer: WindowTimer, last: int, alone: bool = True) -> bool:
    """Whether a trigger fires, or may fire, at a timer of its window. alone: it is not one of several."""
    at_end = timer.time == last and not timer.by_clock
    match trigger:
        case PurgingTrigger():
            return _fires(trigger.trigger, timer, last, alone)
        case AnyOf():
            return any(_fires(one, timer, last, False) for one in trigger.triggers)
        case AfterWatermark():
            parts = [one for one in (trigger.early, trigger.late) if one is not None]
            return at_end or any(_fires(one, timer, last, False) for one in parts)
        case ProcessingTimeoutTrigger():  # alone, it takes any timer for a timeout
            own = timer.by_clock and timer.time != last
            return alone or own or _fires(trigger.trigger, timer, last, False)
        case CountTrigger() | NeverTrigger() | DeltaTrigger():
            return False
        case EventTimeTrigger():
            return at_end
        case ContinuousEventTimeTrigger():
            return timer.time <= last and not timer.by_clock
    return timer.by_clock if isinstance(trigger, _AT_END_OF_CLOCK) else True


def _is_exact(trigger: Trigger) -> bool:
    """Whether a trigger fires at each of its timers."""
    match trigger:
        case PurgingTrigger() | ProcessingTimeoutTrigger():
            return _is_exact(trigger.trigger)
        case AnyOf():
            return all(map(_is_exact, trigger.triggers))
        case AfterWatermark():
            return all(one is None or _is_exact(one) for one in (trigger.early, trigger.late))
    return isinstance(trigger, (*_AT_END, *_AT_END_OF_CLOCK, CountTrigger, NeverTrigger, DeltaTrigger))


def _values(operator: GeneralOperator, slots: NDArray[np.int32]) -> dict[str, pa.Array | pa.ChunkedArray]:
    """Returns what windows hold: built-in aggregates, how many elements, or what Python code has made, as text."""
    contents, config = operator.contents, operator.config
    values: dict[str, pa.Array | pa.ChunkedArray] = {}
    objects = [contents.objects[slot] if slot < len(contents.objects) else None for slot in slots.tolist()]
    if contents.keeps_rows:
        values["elements"] = pa.array([len(held or ()) for held in objects], pa.int64())
    elif config.results:
        values |= config.values_by_name(contents.accumulators, operator.table.rows, slots)
    if contents.in_python and not contents.keeps_rows:
        values[free_name("contents", values, "_")] = pa.array(
            [None if held is None else _shortened(held) for held in objects], pa.string()
        )
    return values


def _shortened(held: object) -> str:
    text = repr(held)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _kept(operator: GeneralOperator, kept: Sequence[_Cell], slot: int) -> dict[str, Any]:
    """Returns what the triggers of a window keep, and what its functions do, by name."""
    told: dict[str, Any] = {}
    for at, (trigger, blank, descriptor) in enumerate(kept):
        (value,) = operator.table.rows.cells(np.array([slot], np.int32), HEAD_CELLS + at).tolist()
        if isinstance(trigger, CountTrigger):
            counts = [told[descriptor.name]] if descriptor.name in told else []
            told[descriptor.name] = " and ".join([*counts, f"{value} of {trigger.n}"])
        elif value != blank:
            told[descriptor.name] = value
    windows = operator.state.windows
    return told | ((windows[slot] if slot < len(windows) else None) or {})
