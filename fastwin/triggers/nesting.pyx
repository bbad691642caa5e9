"""Triggers that ask another one: purging, with a timeout; and what all that ask others have in common."""

from fastwin.core.typedefs cimport ts_t
from fastwin.core.timemath cimport NO_TIME
from fastwin.core.windows.timerservice cimport plus
from fastwin.errors import SpecError
from fastwin.functions.descriptors import ValueStateDescriptor
from fastwin.times import format_ms, to_ms
from fastwin.triggers.builtin cimport BuiltInTrigger, bound
from fastwin.triggers.builtin import has_fields, waits_for_clock
from fastwin.triggers.trigger cimport FIRE, FIRE_AND_PURGE, PURGE, Trigger, TriggerHost
from fastwin.triggers.trigger import check_trigger

__all__ = ["NestingTrigger", "ProcessingTimeoutTrigger", "PurgingTrigger"]


cdef class NestingTrigger(BuiltInTrigger):
    """A trigger that asks others."""

    cdef tuple asked(self):
        """Returns the triggers that it asks, as they are described."""
        raise NotImplementedError

    cdef int decide(self, int what, ts_t time) except -1:
        """Answers an element or a timer; what: which of them."""
        raise NotImplementedError

    cdef int bind(self, TriggerHost host) except -1:
        self.inner = [bound(trigger, host) for trigger in self.asked()]
        return BuiltInTrigger.bind(self, host)

    cdef int c_on_element(self, ts_t time) except -1:
        return self.decide(ELEMENT, time)

    cdef int c_on_event_time(self, ts_t time) except -1:
        return self.decide(EVENT_TIMER, time)

    cdef int c_on_processing_time(self, ts_t time) except -1:
        return self.decide(PROCESSING_TIMER, time)

    cdef bint waits(self) except -1:
        return any([waits_for_clock(trigger) for trigger in self.asked()])

    def can_merge(self):
        return all([trigger.can_merge() for trigger in self.asked()])

    cdef int ask(self, Py_ssize_t j, int what, ts_t time) except -1:
        """Returns the answer of one of them."""
        cdef Trigger trigger = <Trigger> self.inner[j]
        if what == ELEMENT:
            return trigger.c_on_element(time)
        return trigger.c_on_event_time(time) if what == EVENT_TIMER else trigger.c_on_processing_time(time)

    cdef int renew(self, ts_t watermark, ts_t clock) except -1:
        for trigger in self.inner:
            if isinstance(trigger, BuiltInTrigger):
                (<BuiltInTrigger> trigger).renew(watermark, clock)
        return 0

    cdef int c_on_merge(self) except -1:
        cdef Trigger trigger
        for trigger in self.inner:
            trigger.c_on_merge()
        return 0

    cdef int c_clear(self) except -1:
        cdef Trigger trigger
        for trigger in self.inner:
            trigger.c_clear()
        return 0

    cdef bint c_keeps(self) except -1:
        cdef Trigger trigger
        for trigger in self.inner:
            if trigger.c_keeps():
                return True
        return False


_PURGING, (_PURGED,) = has_fields(trigger="The trigger that fires.")


cdef class PurgingTrigger(NestingTrigger):
    """Purges the window whenever another trigger fires it. Source: Flink's PurgingTrigger."""

    __dataclass_fields__ = _PURGING.__dataclass_fields__
    __match_args__ = _PURGING.__match_args__
    trigger = _PURGED

    def __init__(self, trigger):
        check_trigger(type(self).__name__, "trigger", trigger)
        self.values = (trigger,)

    @classmethod
    def of(cls, trigger):
        """Returns a trigger that fires as ``trigger`` does, and purges. Raises SpecError for what is no trigger."""
        return cls(trigger)

    cdef type own_class(self):
        return PurgingTrigger

    cdef tuple asked(self):
        return (self.trigger,)

    cdef int decide(self, int what, ts_t time) except -1:
        cdef int result = self.ask(0, what, time)
        return FIRE_AND_PURGE if result & FIRE else result

    def __str__(self):
        return f"{self.trigger}, purging"


_TIMEOUT = ValueStateDescriptor("timeout")
_TIMING_OUT, (_TIMED, _TIMEOUT_MS, _RESETS, _CLEARS) = has_fields(
    trigger="The trigger that fires otherwise.",
    timeout_ms="The timeout, ms.",
    reset_timer_on_new_record=("Whether every element sets the timeout anew.", False),
    should_clear_on_timeout=("Whether a timeout also clears the other trigger.", True),
)


cdef class ProcessingTimeoutTrigger(NestingTrigger):
    """Fires as another trigger does, and when processing time has moved on by ``timeout`` since the first element.

    Source: Flink's ProcessingTimeoutTrigger; like there, any timer of the other trigger counts as a timeout. As one of
    several triggers it takes none for a timeout at which the other one does not fire.
    """

    # Its cell: when the timeout is; NO_TIME: it is not set.
    cdef ts_t timeout
    cdef bint resets, clears

    __dataclass_fields__ = _TIMING_OUT.__dataclass_fields__
    __match_args__ = _TIMING_OUT.__match_args__
    trigger = _TIMED
    timeout_ms = _TIMEOUT_MS
    reset_timer_on_new_record = _RESETS
    should_clear_on_timeout = _CLEARS

    def __init__(self, trigger, timeout_ms, reset_timer_on_new_record=False, should_clear_on_timeout=True):
        name = type(self).__name__
        check_trigger(name, "trigger", trigger)
        if isinstance(timeout_ms, bool) or not isinstance(timeout_ms, int) or timeout_ms < 1:
            raise SpecError(f"{name}: timeout must be at least 1 ms, got {timeout_ms!r}")
        if timeout_ms >= 2**63:
            raise SpecError(f"{name}: timeout must be below 2**63 ms, got {timeout_ms}")
        for argument, value in (("reset_timer_on_new_record", reset_timer_on_new_record),
                                ("should_clear_on_timeout", should_clear_on_timeout)):
            if not isinstance(value, bool):
                raise SpecError(f"{name}: {argument} must be True or False, got {value!r}")
        self.values = (trigger, timeout_ms, reset_timer_on_new_record, should_clear_on_timeout)
        self.timeout = timeout_ms
        self.resets = reset_timer_on_new_record
        self.clears = should_clear_on_timeout

    @classmethod
    def of(cls, trigger, timeout, reset_timer_on_new_record=False, should_clear_on_timeout=True):
        """Returns a trigger with a timeout.

        reset_timer_on_new_record: every element sets the timeout anew. should_clear_on_timeout: a timeout also
            clears the other trigger. Raises SpecError for a timeout below 1 ms, and unless both are True or False.
        """
        ms = to_ms(timeout, argument=f"{cls.__name__}: timeout")
        return cls(trigger, ms, reset_timer_on_new_record, should_clear_on_timeout)

    cdef type own_class(self):
        return ProcessingTimeoutTrigger

    cdef tuple asked(self):
        return (self.trigger,)

    cdef bint waits(self) except -1:
        return True

    def can_merge(self):
        return False

    cdef int bind(self, TriggerHost host) except -1:
        self.cell = host.add_cell(self, NO_TIME, _TIMEOUT)
        return NestingTrigger.bind(self, host)

    cdef int decide(self, int what, ts_t time) except -1:
        cdef int result = self.ask(0, what, time)
        cdef ts_t at = self.host.cells[self.cell]
        if what != ELEMENT:
            if self.part and not result & FIRE and (what == EVENT_TIMER or time != at):
                return result               # another part's
            if self.clears:                 # of any timer: a timeout
                self.c_clear()
            return FIRE | (result & PURGE)
        if result & FIRE:
            self.c_clear()
            return result
        if at != NO_TIME and self.resets:
            self.host.delete_processing(at)
            at = NO_TIME
        if at == NO_TIME:
            at = plus(self.host.clock(), self.timeout)
            self.host.cells[self.cell] = at
            self.host.register_processing(at)
        return result

    cdef int renew(self, ts_t watermark, ts_t clock) except -1:
        cdef ts_t at = self.host.cells[self.cell]
        if at == NO_TIME:                   # so nothing that it asks waits, either
            return 0
        if at > clock:
            self.host.register_processing(at)
        return NestingTrigger.renew(self, watermark, clock)

    cdef int c_clear(self) except -1:
        cdef ts_t at = self.host.cells[self.cell]
        if at != NO_TIME:
            self.host.delete_processing(at)
            self.host.cells[self.cell] = NO_TIME
        return NestingTrigger.c_clear(self)

    cdef bint c_keeps(self) except -1:
        return self.host.cells[self.cell] != NO_TIME or NestingTrigger.c_keeps(self)

    def __str__(self):
        return f"{self.trigger}, or after {format_ms(self.timeout_ms)} of processing time"
