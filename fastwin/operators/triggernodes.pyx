"""The built-in triggers at C level: one node for each, their state in the cells of a row.

What each does is told by its twin in ``fastwin.triggers``. Combined ones are in ``combinatornodes``.
"""

from fastwin._typedefs cimport idx_t, int64_t, ts_t
from fastwin.core.windowtable cimport is_global, last_ms
from fastwin.errors import SpecError
from fastwin.operators.keeper cimport NO_TIME, Keeper


cdef class TriggerNode:
    """One trigger of an operator. The base of those below."""

    cdef int on_element(self, idx_t slot, Py_ssize_t i, ts_t time) except -1:
        return CONTINUE

    cdef int on_event_time(self, idx_t slot, ts_t time) except -1:
        return CONTINUE

    cdef int on_processing_time(self, idx_t slot, ts_t time) except -1:
        return CONTINUE

    cdef int on_merge(self, idx_t slot) except -1:
        return 0

    cdef int clear(self, idx_t slot) except -1:
        return 0

    cdef bint keeps(self, idx_t slot) except -1:
        """Tells whether the trigger has state in the row's cells."""
        return False

    def bind(self, Keeper keeper not None, Py_ssize_t cell):
        """Gives the trigger its keeper and its first cell; returns the first one that is free behind it."""
        self.keeper = keeper
        self.cell = cell
        return cell + self.cells

    def blank(self):
        """Returns what the trigger's cells hold in a fresh row."""
        return [0] * self.cells


cdef class EventTimeNode(TriggerNode):
    """EventTimeTrigger."""

    cdef int on_element(self, idx_t slot, Py_ssize_t i, ts_t time) except -1:
        cdef ts_t last = last_ms(self.keeper.at(slot))
        if is_global(self.keeper.at(slot)):
            raise SpecError("EventTimeTrigger: works on time windows; the global window has no end")
        if last <= self.keeper.watermark:
            return FIRE
        self.keeper.register_event(slot, last)
        return CONTINUE

    cdef int on_event_time(self, idx_t slot, ts_t time) except -1:
        return FIRE if time == last_ms(self.keeper.at(slot)) else CONTINUE

    cdef int on_merge(self, idx_t slot) except -1:
        cdef ts_t last = last_ms(self.keeper.at(slot))
        if last > self.keeper.watermark:
            self.keeper.register_event(slot, last)
        return 0

    cdef int clear(self, idx_t slot) except -1:
        return self.keeper.delete_event(slot, last_ms(self.keeper.at(slot)))


cdef class ProcessingTimeNode(TriggerNode):
    """ProcessingTimeTrigger."""

    cdef int on_element(self, idx_t slot, Py_ssize_t i, ts_t time) except -1:
        if is_global(self.keeper.at(slot)):
            raise SpecError("ProcessingTimeTrigger: works on time windows; the global window has no end")
        self.keeper.register_processing(slot, last_ms(self.keeper.at(slot)))
        return CONTINUE

    cdef int on_processing_time(self, idx_t slot, ts_t time) except -1:
        return FIRE

    cdef int on_merge(self, idx_t slot) except -1:
        cdef ts_t last = last_ms(self.keeper.at(slot))
        if last > self.keeper.clock:
            self.keeper.register_processing(slot, last)
        return 0

    cdef int clear(self, idx_t slot) except -1:
        return self.keeper.delete_processing(slot, last_ms(self.keeper.at(slot)))


cdef class NeverNode(TriggerNode):
    """NeverTrigger."""


cdef class CountNode(TriggerNode):
    """CountTrigger. Cell: the count."""

    cdef int64_t n

    def __init__(self, int64_t n):
        self.n = n
        self.cells = 1

    cdef int on_element(self, idx_t slot, Py_ssize_t i, ts_t time) except -1:
        cdef int64_t* count = cell_of(self, slot)
        count[0] += 1
        if count[0] >= self.n:
            count[0] = 0
            return FIRE
        return CONTINUE

    cdef int on_merge(self, idx_t slot) except -1:
        cdef Py_ssize_t i
        cdef int64_t total = 0
        for i in range(self.keeper.merged_n):
            total += cell_of(self, self.keeper.merged[i])[0]
            cell_of(self, self.keeper.merged[i])[0] = 0
        cell_of(self, slot)[0] += total
        return 0

    cdef int clear(self, idx_t slot) except -1:
        cell_of(self, slot)[0] = 0
        return 0

    cdef bint keeps(self, idx_t slot) except -1:
        return cell_of(self, slot)[0] != 0


cdef inline ts_t truncated(ts_t time, ts_t interval):
    # The multiple of the interval next to time in the direction of 0.
    return time - (time % interval if time >= 0 or time == NO_TIME else -(-time % interval))


cdef class ContinuousNode(TriggerNode):
    """ContinuousEventTimeTrigger and ContinuousProcessingTimeTrigger. Cell: when it fires next; NO_TIME: not set."""

    cdef ts_t interval
    cdef bint event

    def __init__(self, ts_t interval, bint event):
        self.interval = interval
        self.event = event
        self.cells = 1

    def blank(self):
        return [NO_TIME]

    cdef int _register(self, idx_t slot, ts_t time) except -1:
        return self.keeper.register_event(slot, time) if self.event else self.keeper.register_processing(slot, time)

    cdef int _next(self, idx_t slot, ts_t time) except -1:
        cdef ts_t upcoming = last_ms(self.keeper.at(slot))
        if time < upcoming - self.interval or time < 0:     # no sum past int64
            upcoming = min(time + self.interval, upcoming)
        cdef int64_t* cell = cell_of(self, slot)
        if cell[0] == NO_TIME or upcoming < cell[0]:
            cell[0] = upcoming
        return self._register(slot, upcoming)

    cdef int on_element(self, idx_t slot, Py_ssize_t i, ts_t time) except -1:
        cdef ts_t last
        if self.event:
            last = last_ms(self.keeper.at(slot))
            if last <= self.keeper.watermark:
                return FIRE
            self.keeper.register_event(slot, last)
        else:
            time = self.keeper.clock
        if cell_of(self, slot)[0] == NO_TIME:
            self._next(slot, truncated(time, self.interval))
        return CONTINUE

    cdef int _on_time(self, idx_t slot, ts_t time) except -1:
        if time == last_ms(self.keeper.at(slot)):
            return FIRE
        if cell_of(self, slot)[0] != time:
            return CONTINUE
        cell_of(self, slot)[0] = NO_TIME
        self._next(slot, time)
        return FIRE

    cdef int on_event_time(self, idx_t slot, ts_t time) except -1:
        return self._on_time(slot, time) if self.event else CONTINUE

    cdef int on_processing_time(self, idx_t slot, ts_t time) except -1:
        return CONTINUE if self.event else self._on_time(slot, time)

    cdef int on_merge(self, idx_t slot) except -1:
        cdef Py_ssize_t i
        cdef int64_t* cell = cell_of(self, slot)
        cdef int64_t* other
        cdef int64_t first = cell[0]
        for i in range(self.keeper.merged_n):
            other = cell_of(self, self.keeper.merged[i])
            if other[0] != NO_TIME and (first == NO_TIME or other[0] < first):
                first = other[0]
            other[0] = NO_TIME
        cell[0] = first
        if first != NO_TIME:
            self._register(slot, first)
        return 0

    cdef int clear(self, idx_t slot) except -1:
        cdef ts_t time = cell_of(self, slot)[0]
        if time == NO_TIME:
            return 0
        cell_of(self, slot)[0] = NO_TIME
        return self.keeper.delete_event(slot, time) if self.event else self.keeper.delete_processing(slot, time)

    cdef bint keeps(self, idx_t slot) except -1:
        return cell_of(self, slot)[0] != NO_TIME


cdef class EveryNode(TriggerNode):
    """Fires for every element: the late part of after_watermark where none is given."""

    cdef int on_element(self, idx_t slot, Py_ssize_t i, ts_t time) except -1:
        return FIRE
