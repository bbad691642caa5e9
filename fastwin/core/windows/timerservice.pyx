"""TimerService: the clocks of the general operator, and which timers its windows have."""

import numpy as np

from fastwin.core.timers.timer cimport Timer
from fastwin.core.timers.timerqueue cimport TOLD, TimerQueue
from fastwin.core.timemath cimport MAX_TIME, NO_TIME, add_overflows
from fastwin.core.typedefs cimport NONE, idx_t, int64_t, ts_t, uint32_t
from fastwin.core.windows.windowtable cimport CLEANED, CLEANUP_TIMER, END_TIMER, Window, WindowTable, is_global, last_ms
from fastwin.errors import SpecError


cdef ts_t plus(ts_t a, ts_t b) except? -2:
    """Returns a + b; raises SpecError if it does not fit in int64."""
    cdef ts_t total
    if add_overflows(a, b, &total):
        raise SpecError(f"window: a bound past int64: {a} + {b} ms")
    return total


cdef bint is_marked(const void* owner, const Timer* timer, ts_t delay) noexcept nogil:
    """Tells whether the row of a timer says that it is registered. The row may be that of another window by now.

    delay: ms between a window's last one and its cleaning.
    """
    cdef uint32_t mark = <uint32_t> (timer.namespace & TOLD) * END_TIMER
    cdef const Window* window = (<WindowTable> owner).living(slot_of(timer))
    cdef ts_t time
    if window == NULL or not window.flags & mark or window.head.key != timer.key:
        return False
    time = last_ms(window)
    if mark == CLEANUP_TIMER and add_overflows(time, delay, &time):
        time = MAX_TIME
    return time == timer.time


cdef class TimerService:
    """Watermark, processing time and timers of one general operator.

    table: the rows of its windows. Timers at a window's end and for its cleaning are marked in its row, and are in no
    index; the journal tells of the others. lateness: ms. event_time: whether windows pass with the watermark.

    A trigger may delete the timer that cleans a window, by its time. No timer goes off then, as in Flink, so the
    trigger is not called; but the window goes all the same once it has passed.
    """

    def __init__(self, WindowTable table not None, ts_t lateness, bint event_time):
        self.table = table
        self.lateness = lateness
        self.event_time = event_time
        self.event_timers = TimerQueue()
        self.processing_timers = TimerQueue()
        self.forsaken = TimerQueue()
        self.event_timers.ask(table, is_marked, lateness)
        self.processing_timers.ask(table, is_marked, 0)
        self.watermark = self.cleaned = NO_TIME

    cdef bint take_due(self, bint event, ts_t until, Timer* timer) except -1:
        """Takes out the first timer at or before ``until``; returns False if there is none."""
        cdef Window* window
        cdef uint32_t mark
        cdef idx_t slot
        if not self.queue(event).next_due(until, timer):
            return False
        slot = slot_of(timer)
        window = self.at(slot)
        mark = self._mark(window, timer.time, event)
        window.flags &= ~mark
        window.timers -= 1
        self._changed(slot, timer.time, mark, not event)
        return True

    cdef idx_t next_forsaken(self, bint event, ts_t until) except? -2:
        """Returns the next window that goes up to ``until`` without a timer; NONE: no more."""
        cdef Timer timer
        cdef Window* window
        while event == self.event_time and self.forsaken.next_due(until, &timer):
            window = self.table.living(slot_of(&timer))
            if (window != NULL and not window.flags & (CLEANED | CLEANUP_TIMER) and window.head.key == timer.key
                    and self.cleanup_time(window) == timer.time):
                self.table.rows.mark(slot_of(&timer))
                return slot_of(&timer)
        return NONE

    cdef int _forsake(self, idx_t slot) except -1:
        cdef const Window* window = self.at(slot)
        cdef ts_t time = self.cleanup_time(window)
        if time != MAX_TIME:
            self.forsaken.add(time, window.head.key, self.namespace(slot, 0))
        return 0

    def next_time(self, bint event):
        """Returns when the first timer of one clock goes off, or a window goes without one; None: never."""
        times = [self.queue(event).peek(), self.forsaken.peek() if event == self.event_time else None]
        return min([time for time in times if time is not None], default=None)

    cdef ts_t cleanup_time(self, const Window* window) noexcept:
        """Returns when a window goes; int64 max: never."""
        cdef ts_t last = last_ms(window), time
        if not self.event_time:
            return last
        return MAX_TIME if add_overflows(last, self.lateness, &time) else time

    cdef bint passed(self, const Window* window) noexcept:
        """Tells whether the watermark says that a window is gone."""
        return self.event_time and (self.cleanup_time(window) <= self.watermark or last_ms(window) <= self.cleaned)

    cdef uint32_t _mark(self, const Window* window, ts_t time, bint event) noexcept:
        # The bit of a row that says that this timer is registered; 0 for timers without one. A window that never goes
        # has no timer for that, and one of its trigger's at the same time is like any other.
        if event == self.event_time and time != MAX_TIME and time == self.cleanup_time(window):
            return CLEANUP_TIMER
        return END_TIMER if event and time == last_ms(window) else 0

    cdef TimerQueue queue(self, bint event):
        return self.event_timers if event else self.processing_timers

    cdef int register_timer(self, idx_t slot, ts_t time, bint event) except -1:
        cdef Window* window = self.at(slot)
        cdef uint32_t mark = self._mark(window, time, event)
        if window.flags & mark:
            return 0
        if self.final and (is_global(window) or time > last_ms(window)):
            return 0            # the last watermark would go on for ever
        window.flags |= mark
        if self.queue(event).add(time, window.head.key, self.namespace(slot, mark)):
            window.timers += 1
            self._changed(slot, time, mark, not event)
        return 0

    cdef int delete_timer(self, idx_t slot, ts_t time, bint event) except -1:
        cdef uint32_t mark = self._mark(self.at(slot), time, event)
        if mark == CLEANUP_TIMER and self.at(slot).flags & mark:
            self._forsake(slot)
        return self._delete(slot, time, event, mark)

    cdef int _delete(self, idx_t slot, ts_t time, bint event, uint32_t mark) except -1:
        cdef Window* window = self.at(slot)
        if mark and not window.flags & mark:
            return 0
        window.flags &= ~mark
        if self.queue(event).discard(time, window.head.key, self.namespace(slot, mark)):
            window.timers -= 1
            self._changed(slot, time, mark, not event)
        return 0

    cdef int _changed(self, idx_t slot, ts_t time, uint32_t mark, int kind) except -1:
        self.table.rows.mark(slot)
        if not mark and self.journal is not None:
            self.journal.append((slot, time, kind))
        return 0

    cdef int register_cleanup(self, idx_t slot) except -1:
        cdef Window* window = self.at(slot)
        cdef ts_t time
        if window.flags & CLEANUP_TIMER:
            return 0
        time = self.cleanup_time(window)
        if time == MAX_TIME:
            return 0
        return self.register_timer(slot, time, self.event_time)

    cdef int delete_cleanup(self, idx_t slot) except -1:
        cdef ts_t time = self.cleanup_time(self.at(slot))
        if time == MAX_TIME:
            return 0
        return self._delete(slot, time, self.event_time, CLEANUP_TIMER)

    def restore_timer(self, idx_t slot, ts_t time, int kind, bint alive):
        """Registers or deletes a timer for a restore; kind: 0 event time, 1 processing time."""
        if alive:
            self.register_timer(slot, time, not kind)
        else:
            self.delete_timer(slot, time, not kind)

    def drop_marked(self, const idx_t[::1] slots not None):
        """Deletes the timers that marks in the rows tell of."""
        cdef Py_ssize_t i
        for i in range(slots.shape[0]):
            if self.at(slots[i]).flags & END_TIMER:
                self.delete_timer(slots[i], last_ms(self.at(slots[i])), True)
            if self.at(slots[i]).flags & CLEANUP_TIMER:
                self.delete_cleanup(slots[i])

    def restore_marked(self, const idx_t[::1] slots not None, const int64_t[::1] flags not None, bint at_end=False):
        """Registers the timers that saved flags tell of.

        at_end: windows were cleaned at their ends when the flags were saved, and now are later: one timer was for both.
        """
        cdef Py_ssize_t i
        for i in range(slots.shape[0]):
            if flags[i] & END_TIMER or (at_end and flags[i] & CLEANUP_TIMER):
                self.register_timer(slots[i], last_ms(self.at(slots[i])), True)
            if flags[i] & CLEANUP_TIMER:
                self.register_cleanup(slots[i])
            elif not flags[i] & CLEANED:
                self._forsake(slots[i])

    def unmarked(self):
        """Returns the timers that no marks in their rows tell of, by time for each clock.

        Slots int32[n], times int64[n], kinds int8[n]: 0 event time, 1 processing time. O(timers log timers), O(1) where
        marks tell of all.
        """
        cdef int kind
        parts = [(np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, np.int8))]
        for kind in range(2):
            if self.queue(not kind).live:
                times, _, namespaces = self.queue(not kind).timers()
                own = namespaces & TOLD == 0
                slots = (namespaces[own] >> 2).astype(np.int32)
                parts.append((slots, times[own], np.full(len(slots), kind, np.int8)))
        return tuple(np.concatenate(columns) for columns in zip(*parts))

    def has_timer(self, idx_t slot, ts_t time, int kind):
        """Tells whether a row has a timer."""
        cdef const Window* window = self.at(slot)
        return self.queue(not kind).contains(
            time, window.head.key, self.namespace(slot, self._mark(window, time, not kind)))

    def listed(self, bint event):
        """Returns all timers of one clock in order: times int64[n], the slots of their rows int64[n]. O(n)."""
        times, _, namespaces = self.queue(event).timers()
        return times, namespaces >> 2

    def marks(self, idx_t slot):
        """Returns the timers that the marks of a row tell of, and how many it has at all."""
        cdef Window* window = self.at(slot)
        told = []
        if window.flags & END_TIMER:
            told.append((last_ms(window), 0))
        if window.flags & CLEANUP_TIMER:
            told.append((self.cleanup_time(window), 0 if self.event_time else 1))
        return told, window.timers
