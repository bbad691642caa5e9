"""The assigners at C level: the windows of one element, the latest one first."""

from operator import index

import numpy as np

from cpython.long cimport PyLong_AsLongLongAndOverflow
from libc.stdlib cimport free, realloc

from fastwin.core.typedefs cimport idx_t, int32_t, int64_t, ts_t
from fastwin.core.panes.slices cimport Slicer, slicer_of, slice_in
from fastwin.windows.assigner import MergingWindowAssigner
from fastwin.errors import SpecError
from fastwin.columns.row cimport Row
from fastwin.core.timemath cimport NO_TIME, add_overflows
from fastwin.core.windows.timerservice cimport plus
from fastwin.operators.general.contexts cimport Clocks
from fastwin.operators.general.elements cimport Elements
from fastwin.windows.bounds import NO_BOUNDS
from fastwin.windows.calendar import CalendarEventTimeWindows
from fastwin.windows.cumulative import CumulativeEventTimeWindows, CumulativeProcessingTimeWindows
from fastwin.windows.global_windows import GlobalWindows
from fastwin.times import MAX_DURATION_MS
from fastwin.windows.session import (
    DynamicEventTimeSessionWindows, DynamicProcessingTimeSessionWindows, EventTimeSessionWindows,
    ProcessingTimeSessionWindows)
from fastwin.windows.sliding import SlidingEventTimeWindows, SlidingProcessingTimeWindows
from fastwin.windows.timewindow import GlobalWindow, TimeWindow
from fastwin.windows.tumbling import TumblingEventTimeWindows, TumblingProcessingTimeWindows

MAX_WINDOWS = 10_000
"""How many windows one element may have."""

cdef Py_ssize_t LIMIT = MAX_WINDOWS
cdef ts_t LONGEST = MAX_DURATION_MS


cdef ts_t floored(ts_t time, ts_t step, ts_t offset) except? -2:
    """Returns the largest offset + k * step <= time, for any int64."""
    cdef ts_t rest = time % step - offset % step
    return plus(time, -(rest + step if rest < 0 else rest))


def too_many(assigner, ts_t windows):
    """Returns the error for an assigner whose elements have too many windows."""
    return SpecError(f"{type(assigner).__name__}: an element would have {windows} windows, at most {LIMIT} are taken")


cdef class AssignerNode:
    """The assigner of one operator. The base of those below."""

    def __init__(self, Elements elements not None, assigner):
        self.elements = elements
        self.timers = elements.timers
        self.name = type(assigner).__qualname__
        self.merging = isinstance(assigner, MergingWindowAssigner)
        if self.merging and type(assigner).merge_windows is not MergingWindowAssigner.merge_windows:
            self.merge_windows = assigner.merge_windows
        self.reserve(1)

    def __dealloc__(self):
        free(self.starts)
        free(self.ends)

    cdef int reserve(self, Py_ssize_t n) except -1:
        cdef void* moved
        if n <= self.capacity:
            return 0
        n = max(n, 2 * self.capacity)
        moved = realloc(self.starts, n * sizeof(ts_t))
        if moved != NULL:
            self.starts = <ts_t*> moved
            moved = realloc(self.ends, n * sizeof(ts_t))
        if moved == NULL:
            raise MemoryError(f"no memory for the {n} windows of an element")
        self.ends = <ts_t*> moved
        self.capacity = n
        return 0

    cdef Py_ssize_t assign(self, Py_ssize_t i, ts_t time, idx_t key) except -1:
        """Fills starts and ends with the windows of element i; returns how many there are."""
        raise NotImplementedError

    def last_end(self, Py_ssize_t i, ts_t time, idx_t key):
        """Returns where the last one of the windows of element i ends; without any, its time."""
        cdef Py_ssize_t j
        cdef ts_t last = time
        for j in range(self.assign(i, time, key)):
            last = self.ends[j] if j == 0 else max(last, self.ends[j])
        return last


cdef class SlidingNode(AssignerNode):
    """Tumbling (slide = size) and sliding windows."""

    cdef ts_t size, slide, offset
    cdef bint event

    def __init__(self, Elements elements not None, assigner, ts_t size, ts_t slide, ts_t offset):
        super().__init__(elements, assigner)
        self.size = size
        self.slide = slide
        self.offset = offset
        self.plain = True
        self.event = assigner.is_event_time()
        self.single = self.event and size == slide
        if -(-size // slide) > LIMIT:
            raise too_many(assigner, -(-size // slide))
        self.reserve(max(-(-size // slide), 1))

    cdef Py_ssize_t assign(self, Py_ssize_t i, ts_t time, idx_t key) except -1:
        cdef Py_ssize_t n = 0
        cdef ts_t start
        if not self.event:
            time = self.timers.clock
        start = floored(time, self.slide, self.offset)
        if time - start >= self.size:
            return 0
        while True:
            self.starts[n] = start
            self.ends[n] = plus(start, self.size)
            n += 1
            if time - start >= self.size - self.slide:  # so the one before has ended, or has no start in int64
                return n
            start = plus(start, -self.slide)


cdef class CumulativeNode(AssignerNode):
    """Cumulative windows."""

    cdef ts_t size, step, offset
    cdef bint event

    def __init__(self, Elements elements not None, assigner, ts_t size, ts_t step, ts_t offset):
        super().__init__(elements, assigner)
        self.size = size
        self.step = step
        self.offset = offset
        self.plain = True
        self.event = assigner.is_event_time()
        if size // step > LIMIT:
            raise too_many(assigner, size // step)
        self.reserve(size // step)

    cdef Py_ssize_t assign(self, Py_ssize_t i, ts_t time, idx_t key) except -1:
        cdef Py_ssize_t n, first, last
        cdef ts_t start
        if not self.event:
            time = self.timers.clock
        start = floored(time, self.size, self.offset)
        first = (time - start) // self.step + 1
        last = self.size // self.step
        for n in range(last - first + 1):
            self.starts[n] = start
            self.ends[n] = plus(start, (last - n) * self.step)
        return last - first + 1


cdef class CalendarNode(AssignerNode):
    """Calendar windows: bounds out of a table, which is made anew for a time that is not in it."""

    cdef readonly object windows
    cdef object _table
    cdef const int64_t[::1] bounds
    cdef const int32_t[::1] begins, last_ends
    cdef ts_t first, last
    cdef Slicer slicer

    def __init__(self, Elements elements not None, assigner):
        super().__init__(elements, assigner)
        self.windows = assigner
        self.plain = True
        self._table = NO_BOUNDS
        self.first = self.last = 0

    cdef int _cover(self, ts_t time) except -1:
        table = self._table
        if not table.knows(time, time):
            table = self.windows.bounds_with(table, np.array([time], dtype=np.int64))
        if table is not self._table:
            self._table = table
            self.bounds, self.begins, self.last_ends = table.bounds, table.starts, table.last_ends
            self.slicer = slicer_of(self.bounds)
        self.first, self.last = table.range_at(time)
        return 0

    cdef Py_ssize_t assign(self, Py_ssize_t i, ts_t time, idx_t key) except -1:
        cdef Py_ssize_t n, at, last, windows
        if not self.first <= time < self.last:
            self._cover(time)
        slice_in(&self.slicer, time)
        at = self.slicer.at
        last = self.last_ends[at]
        windows = last - at
        if windows > LIMIT:
            raise too_many(self.windows, windows)
        self.reserve(windows)
        for n in range(windows):
            self.starts[n] = self.bounds[self.begins[last - n]]
            self.ends[n] = self.bounds[last - n]
        return windows


cdef class SessionNode(AssignerNode):
    """Sessions with one gap for all elements."""

    cdef ts_t gap
    cdef bint event

    def __init__(self, Elements elements not None, assigner, ts_t gap):
        super().__init__(elements, assigner)
        self.gap = gap
        self.event = assigner.is_event_time()

    cdef Py_ssize_t assign(self, Py_ssize_t i, ts_t time, idx_t key) except -1:
        if not self.event:
            time = self.timers.clock
        self.starts[0] = time
        self.ends[0] = plus(time, self.gap)
        return 1


cdef class GlobalNode(AssignerNode):
    """The global window: start equal to end."""

    cdef Py_ssize_t assign(self, Py_ssize_t i, ts_t time, idx_t key) except -1:
        self.starts[0] = 0
        self.ends[0] = 0
        return 1


cdef class UserNode(AssignerNode):
    """An assigner that is asked in Python."""

    cdef readonly object assigner
    cdef object _assign
    cdef Clocks clocks

    def __init__(self, Elements elements not None, assigner):
        super().__init__(elements, assigner)
        self.assigner = assigner
        self._assign = assigner.assign_windows
        self.asks = self.merging
        self.clocks = Clocks(elements.timers)

    cdef Py_ssize_t assign(self, Py_ssize_t i, ts_t time, idx_t key) except -1:
        cdef Py_ssize_t n = 0
        try:
            windows = self._assign(self.elements.element(i), None if time == NO_TIME else time, self.clocks)
            if windows is None or isinstance(windows, (TimeWindow, GlobalWindow)):
                raise TypeError(f"must return a list of windows, returned {windows!r}")
            for window in windows:
                if n == LIMIT:
                    raise SpecError(f"one element has more than {LIMIT} windows")
                self.reserve(n + 1)
                self._take(window, n)
                n += 1
        except Exception as problem:
            where = f"key {self.elements.key_text(key)}, timestamp {time}"
            raise self.elements.blame(f"{self.name}.assign_windows", where, problem) from problem
        return n

    cdef int _take(self, object window, Py_ssize_t n) except -1:
        cdef ts_t start, end
        if isinstance(window, GlobalWindow):
            self.starts[n] = 0
            self.ends[n] = 0
            return 0
        if not isinstance(window, TimeWindow):
            raise SpecError(
                f"windows must be TimeWindow(start, end) or GlobalWindow(), not of a type of their own: got {window!r}"
            )
        try:
            start, end = index(window.start), index(window.end)
        except (OverflowError, TypeError):
            raise SpecError(f"{window} has bounds that are no int64 milliseconds") from None
        if end <= start:
            raise SpecError(f"{window} has no time in it: end must be above start")
        self.starts[n] = start
        self.ends[n] = end
        return 0


cdef class DynamicSessionNode(UserNode):
    """Sessions whose gaps are in a column of ints; all that is no gap is left to the assigner itself."""

    cdef str column
    cdef bint event

    def __init__(self, Elements elements not None, assigner):
        super().__init__(elements, assigner)
        self.column = assigner.gap
        self.event = assigner.is_event_time()

    cdef Py_ssize_t assign(self, Py_ssize_t i, ts_t time, idx_t key) except -1:
        cdef Row element = self.elements.element(i)
        cdef int overflow = 0
        cdef ts_t start = time if self.event else self.timers.clock, end, gap
        place = element.type.index.get(self.column)
        value = None if place is None else element.value(place)
        if type(value) is int:
            gap = PyLong_AsLongLongAndOverflow(value, &overflow)
            if not overflow and 1 <= gap <= LONGEST and (not self.event or time != NO_TIME) \
                    and not add_overflows(start, gap, &end):
                self.starts[0] = start
                self.ends[0] = end
                return 1
        return UserNode.assign(self, i, time, key)


def _sliding(elements, assigner):
    return SlidingNode(elements, assigner, assigner.size_ms, assigner.slide_ms, assigner.offset_ms)


def _tumbling(elements, assigner):
    return SlidingNode(elements, assigner, assigner.size_ms, assigner.size_ms, assigner.offset_ms)


def _cumulative(elements, assigner):
    return CumulativeNode(elements, assigner, assigner.max_size_ms, assigner.step_ms, assigner.offset_ms)


def _session(elements, assigner):
    return SessionNode(elements, assigner, assigner.gap_ms)


_NODES = {
    TumblingEventTimeWindows: _tumbling,
    TumblingProcessingTimeWindows: _tumbling,
    SlidingEventTimeWindows: _sliding,
    SlidingProcessingTimeWindows: _sliding,
    CumulativeEventTimeWindows: _cumulative,
    CumulativeProcessingTimeWindows: _cumulative,
    CalendarEventTimeWindows: CalendarNode,
    EventTimeSessionWindows: _session,
    ProcessingTimeSessionWindows: _session,
    GlobalWindows: GlobalNode,
}


def is_built_in(assigner):
    """Tells whether an assigner is run at C level; subclasses of built-in ones are asked in Python."""
    return type(assigner) in _NODES


def assigner_node(Elements elements not None, assigner):
    """Returns the node of an assigner."""
    kind = type(assigner)
    if kind in (DynamicEventTimeSessionWindows, DynamicProcessingTimeSessionWindows) and type(assigner.gap) is str:
        return DynamicSessionNode(elements, assigner)
    return _NODES.get(kind, UserNode)(elements, assigner)
