"""Triggers that ask no other: of event time, of processing time, by count, at intervals."""

from operator import add

from fastwin.core.typedefs cimport int64_t, ts_t
from fastwin.core.timemath cimport MAX_TIME, NO_TIME
from fastwin.errors import SpecError
from fastwin.functions.descriptors import ReducingStateDescriptor
from fastwin.times import MAX_DURATION_MS, format_ms, to_ms
from fastwin.triggers.builtin cimport BuiltInTrigger
from fastwin.triggers.builtin import has_fields
from fastwin.triggers.trigger cimport CONTINUE, FIRE, TriggerHost

__all__ = [
    "ContinuousEventTimeTrigger",
    "ContinuousProcessingTimeTrigger",
    "CountTrigger",
    "EventTimeTrigger",
    "EveryElementTrigger",
    "NeverTrigger",
    "ProcessingTimeTrigger",
]


cdef class _Fieldless(BuiltInTrigger):
    """A trigger without arguments."""

    def __init__(self):
        self.values = ()

    @classmethod
    def create(cls):
        """Returns the trigger, as Flink spells it; the same as calling the class."""
        return cls()


cdef class EventTimeTrigger(_Fieldless):
    """Fires when the watermark passes the window's end, then for every late element.

    Source: Flink's EventTimeTrigger.
    """

    cdef type own_class(self):
        return EventTimeTrigger

    cdef int c_on_element(self, ts_t time) except -1:
        cdef ts_t last = self.host.last()
        if last == MAX_TIME and not self.host.takes_endless:
            raise SpecError("EventTimeTrigger: works on time windows; the global window has no end")
        if last <= self.host.watermark():
            return FIRE
        self.host.register_event(last)
        return CONTINUE

    cdef int c_on_event_time(self, ts_t time) except -1:
        return FIRE if time == self.host.last() else CONTINUE

    def can_merge(self):
        return True

    cdef int renew(self, ts_t watermark, ts_t clock) except -1:
        cdef ts_t last = self.host.last()
        if last > watermark:
            self.host.register_event(last)
        return 0

    cdef int c_on_merge(self) except -1:
        return self.renew(self.host.watermark(), self.host.clock())

    cdef int c_clear(self) except -1:
        return self.host.delete_event(self.host.last())

    def __str__(self):
        return "when the watermark passes the end"


cdef class ProcessingTimeTrigger(_Fieldless):
    """Fires when the processing time passes the window's end. Source: Flink's ProcessingTimeTrigger."""

    cdef type own_class(self):
        return ProcessingTimeTrigger

    cdef bint waits(self) except -1:
        return True

    cdef int c_on_element(self, ts_t time) except -1:
        cdef ts_t last = self.host.last()
        if last == MAX_TIME and not self.host.takes_endless:
            raise SpecError("ProcessingTimeTrigger: works on time windows; the global window has no end")
        self.host.register_processing(last)
        return CONTINUE

    cdef int c_on_processing_time(self, ts_t time) except -1:
        return CONTINUE if self.part and time != self.host.last() else FIRE

    def can_merge(self):
        return True

    cdef int renew(self, ts_t watermark, ts_t clock) except -1:
        cdef ts_t last = self.host.last()
        if last > clock:
            self.host.register_processing(last)
        return 0

    cdef int c_on_merge(self) except -1:
        return self.renew(self.host.watermark(), self.host.clock())

    cdef int c_clear(self) except -1:
        return self.host.delete_processing(self.host.last())

    def __str__(self):
        return "when the processing time passes the end"


cdef class NeverTrigger(_Fieldless):
    """Never fires. Source: the default trigger of Flink's GlobalWindows."""

    cdef type own_class(self):
        return NeverTrigger

    def __str__(self):
        return "never"


cdef class EveryElementTrigger(_Fieldless):
    """Fires for every element."""

    cdef type own_class(self):
        return EveryElementTrigger

    cdef int c_on_element(self, ts_t time) except -1:
        return FIRE

    def can_merge(self):
        return True

    def __str__(self):
        return "for every element"


_COUNT = ReducingStateDescriptor("count", add)
_COUNTING, (_N,) = has_fields(n="How many elements fire.")


cdef class CountTrigger(BuiltInTrigger):
    """Fires when ``n`` elements have come since it fired last. What stays below n at the end is not fired.

    Source: Flink's CountTrigger.
    """

    cdef int64_t wanted

    __dataclass_fields__ = _COUNTING.__dataclass_fields__
    __match_args__ = _COUNTING.__match_args__
    n = _N

    def __init__(self, n):
        if isinstance(n, bool) or not isinstance(n, int) or n < 0:
            raise SpecError(f"{type(self).__name__}: n must be an int of at least 0, got {n!r}")
        if n >= 2**63:
            raise SpecError(f"{type(self).__name__}: n must be below 2**63, got {n}")
        self.values = (n,)
        self.wanted = n

    @classmethod
    def of(cls, n):
        """Returns a trigger for every ``n`` elements; 0 means every element. Raises SpecError for no int64 >= 0."""
        return cls(n)

    cdef type own_class(self):
        return CountTrigger

    cdef int bind(self, TriggerHost host) except -1:
        self.cell = host.add_cell(self, 0, _COUNT)
        return BuiltInTrigger.bind(self, host)

    cdef int c_on_element(self, ts_t time) except -1:
        cdef int64_t* count = self.host.cells + self.cell
        count[0] += 1
        if count[0] >= self.wanted:
            count[0] = 0
            return FIRE
        return CONTINUE

    def can_merge(self):
        return True

    cdef int c_on_merge(self) except -1:
        cdef Py_ssize_t j
        cdef int64_t total = 0
        cdef int64_t* other
        for j in range(self.host.merged_n):
            other = self.host.merged_cell(j, self.cell)
            total += other[0]
            other[0] = 0
        self.host.cells[self.cell] += total
        return 0

    cdef int c_clear(self) except -1:
        self.host.cells[self.cell] = 0
        return 0

    cdef bint c_keeps(self) except -1:
        return self.host.cells[self.cell] != 0

    def __str__(self):
        return f"every {self.n} elements"


cdef inline ts_t truncated(ts_t time, ts_t interval):
    # The multiple of the interval next to time in the direction of 0.
    return time - (time % interval if time >= 0 or time == NO_TIME else -(-time % interval))


_FIRE_TIME = ReducingStateDescriptor("fire-time", min)
_TIMED, (_INTERVAL,) = has_fields(interval_ms="The interval, ms.")


cdef class _Continuous(BuiltInTrigger):
    """Fires at multiples of an interval. Its cell: when it fires next; NO_TIME: that is not set."""

    cdef ts_t interval
    cdef bint event

    __dataclass_fields__ = _TIMED.__dataclass_fields__
    __match_args__ = _TIMED.__match_args__
    interval_ms = _INTERVAL

    def __init__(self, interval_ms):
        if isinstance(interval_ms, bool) or not isinstance(interval_ms, int) or interval_ms < 1:
            raise SpecError(f"{type(self).__name__}: interval must be at least 1 ms, got {interval_ms!r}")
        if interval_ms > MAX_DURATION_MS:
            raise SpecError(
                f"{type(self).__name__}: interval must be at most {MAX_DURATION_MS} ms, got {interval_ms} ms")
        self.values = (interval_ms,)
        self.interval = interval_ms

    @classmethod
    def of(cls, interval):
        """Returns a trigger for every ``interval``. Raises SpecError below 1 ms."""
        return cls(to_ms(interval, argument=f"{cls.__name__}: interval"))

    cdef int bind(self, TriggerHost host) except -1:
        self.cell = host.add_cell(self, NO_TIME, _FIRE_TIME)
        return BuiltInTrigger.bind(self, host)

    cdef int register(self, ts_t time) except -1:
        return self.host.register_event(time) if self.event else self.host.register_processing(time)

    cdef int next(self, ts_t time) except -1:
        """Sets when it fires next, after ``time``."""
        cdef ts_t upcoming = self.host.last()
        cdef int64_t* cell = self.host.cells + self.cell
        if time < upcoming - self.interval or time < 0:     # no sum past int64
            upcoming = min(time + self.interval, upcoming)
        if cell[0] == NO_TIME or upcoming < cell[0]:
            cell[0] = upcoming
        return self.register(upcoming)

    cdef int on_time(self, ts_t time) except -1:
        if time == self.host.last() and (self.event or not self.part or self.host.cells[self.cell] == time):
            return FIRE                 # as one of several, at no other part's timer
        if self.host.cells[self.cell] != time:
            return CONTINUE
        self.host.cells[self.cell] = NO_TIME
        self.next(time)
        return FIRE

    def can_merge(self):
        return True

    cdef int renew(self, ts_t watermark, ts_t clock) except -1:
        cdef ts_t time = self.host.cells[self.cell]
        if time != NO_TIME and time > (watermark if self.event else clock):
            self.register(time)
        return 0

    cdef int c_on_merge(self) except -1:
        cdef Py_ssize_t j
        cdef int64_t* other
        cdef int64_t first = self.host.cells[self.cell]
        for j in range(self.host.merged_n):
            other = self.host.merged_cell(j, self.cell)
            if other[0] != NO_TIME and (first == NO_TIME or other[0] < first):
                first = other[0]
            other[0] = NO_TIME
        self.host.cells[self.cell] = first
        if first != NO_TIME:
            self.register(first)
        return 0

    cdef int c_clear(self) except -1:
        cdef ts_t time = self.host.cells[self.cell]
        if time == NO_TIME:
            return 0
        self.host.cells[self.cell] = NO_TIME
        return self.host.delete_event(time) if self.event else self.host.delete_processing(time)

    cdef bint c_keeps(self) except -1:
        return self.host.cells[self.cell] != NO_TIME


cdef class ContinuousEventTimeTrigger(_Continuous):
    """Fires whenever the watermark passes a multiple of ``interval``, at the window's end, and for late elements.

    Multiples count from the epoch. An element without an event time, which global windows take, sets none.
    Source: Flink's ContinuousEventTimeTrigger.
    """

    def __init__(self, interval_ms):
        super().__init__(interval_ms)
        self.event = True

    cdef type own_class(self):
        return ContinuousEventTimeTrigger

    cdef int c_on_element(self, ts_t time) except -1:
        cdef ts_t last = self.host.last()
        if last <= self.host.watermark():
            return FIRE
        self.host.register_event(last)
        if time != NO_TIME and self.host.cells[self.cell] == NO_TIME:
            self.next(truncated(time, self.interval))
        return CONTINUE

    cdef int c_on_event_time(self, ts_t time) except -1:
        return self.on_time(time)

    cdef int renew(self, ts_t watermark, ts_t clock) except -1:
        cdef ts_t last = self.host.last()
        if last > watermark:
            self.host.register_event(last)
        return _Continuous.renew(self, watermark, clock)

    def __str__(self):
        return f"every {format_ms(self.interval_ms)} of event time and at the end"


cdef class ContinuousProcessingTimeTrigger(_Continuous):
    """Fires whenever the processing time passes a multiple of ``interval``, up to the window's end.

    Source: Flink's ContinuousProcessingTimeTrigger.
    """

    cdef type own_class(self):
        return ContinuousProcessingTimeTrigger

    cdef bint waits(self) except -1:
        return True

    cdef int c_on_element(self, ts_t time) except -1:
        if self.host.cells[self.cell] == NO_TIME:
            self.next(truncated(self.host.clock(), self.interval))
        return CONTINUE

    cdef int c_on_processing_time(self, ts_t time) except -1:
        return self.on_time(time)

    def __str__(self):
        return f"every {format_ms(self.interval_ms)} of processing time"
