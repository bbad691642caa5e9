"""Triggers made of several: any of them, all of them, one before the watermark passes the end and one after it."""

from fastwin.core.typedefs cimport int64_t, ts_t
from fastwin.errors import SpecError
from fastwin.functions.descriptors import ReducingStateDescriptor
from fastwin.triggers.nesting cimport ELEMENT, EVENT_TIMER, PROCESSING_TIMER, NestingTrigger
from fastwin.triggers.builtin cimport BuiltInTrigger, bound
from fastwin.triggers.builtin import has_fields
from fastwin.triggers.plain import EveryElementTrigger, NeverTrigger
from fastwin.triggers.trigger cimport CONTINUE, FIRE, FIRE_AND_PURGE, Trigger, TriggerHost
from fastwin.triggers.trigger import check_trigger

__all__ = ["AfterWatermark", "AllOf", "AnyOf", "after_watermark", "all_of", "any_of"]

cdef Py_ssize_t MOST_TRIGGERS = 31


cdef class _Parted(NestingTrigger):
    """A trigger whose parts keep their state apart from each other."""

    cdef int bind(self, TriggerHost host) except -1:
        path = host.path
        self.inner = []
        for i, trigger in enumerate(self.asked()):
            host.path = f"{path}{i}/"
            self.inner.append(bound(trigger, host))
        host.path = path
        return BuiltInTrigger.bind(self, host)

    cdef int renew_after(self, int what, ts_t time, Py_ssize_t deletions) except -1:
        """Renews timers after a call, unless no part has taken one back.

        what, time: of the call. Where time has gone on by far, timers behind this one are still to come. deletions:
        how many there had been before.
        """
        if what == ELEMENT and self.host.deletions == deletions:
            return 0
        cdef ts_t watermark = time if what == EVENT_TIMER else self.host.watermark()
        return self.renew(watermark, time if what == PROCESSING_TIMER else self.host.clock())

    cdef int c_on_merge(self) except -1:
        cdef Py_ssize_t deletions = self.host.deletions
        NestingTrigger.c_on_merge(self)
        return self.renew_after(ELEMENT, 0, deletions)


_SEVERAL, (_TRIGGERS,) = has_fields(triggers="The triggers that are asked, a tuple.")


cdef class _Several(_Parted):
    """Several triggers, asked one after the other."""

    __dataclass_fields__ = _SEVERAL.__dataclass_fields__
    __match_args__ = _SEVERAL.__match_args__
    triggers = _TRIGGERS

    def __init__(self, triggers):
        self.values = (tuple(triggers),)

    cdef tuple asked(self):
        if len(self.triggers) > MOST_TRIGGERS:
            raise SpecError(f"trigger: at most {MOST_TRIGGERS} can be combined, got {len(self.triggers)}")
        return self.triggers


cdef class AnyOf(_Several):
    """Fires when any of its triggers does; each keeps its own count and timers. See ``any_of``."""

    cdef type own_class(self):
        return AnyOf

    cdef int decide(self, int what, ts_t time) except -1:
        cdef Py_ssize_t j
        cdef int result = CONTINUE
        cdef Py_ssize_t deletions = self.host.deletions
        for j in range(len(self.inner)):
            result |= self.ask(j, what, time)
        self.renew_after(what, time, deletions)
        return result

    def __str__(self):
        return f"any of ({'; '.join(map(str, self.triggers))})"


# Through a ctx, by trigger: 0 has not fired, 1 has, 2 has and asked to purge.
_FIRED = ReducingStateDescriptor("all-of", lambda a, b: tuple(max(pair) for pair in zip(a, b, strict=True)))


cdef class AllOf(_Several):
    """Fires when each of its triggers has fired since it fired last. See ``all_of``."""

    # Its cell: two bits for each trigger, whether it has fired, and whether it has asked to purge.

    cdef type own_class(self):
        return AllOf

    cdef int bind(self, TriggerHost host) except -1:
        self.cell = host.add_cell(self, 0, _FIRED)
        return _Several.bind(self, host)

    cdef object to_state(self, int64_t cell):
        cdef int64_t bits = cell
        cdef list fired = []
        for _ in range(len(self.triggers)):
            fired.append((bits & 1) + ((bits & 2) >> 1))
            bits >>= 2
        return tuple(fired)

    cdef int64_t from_state(self, object value) except? -2:
        cdef int64_t bits = 0
        for fired in reversed(value):
            bits = bits << 2 | ((<int64_t> 1 << <int> fired) - 1)
        return bits

    cdef int decide(self, int what, ts_t time) except -1:
        cdef Py_ssize_t j, n = len(self.inner)
        cdef int64_t all_fired = 0x5555555555555555 & (((<int64_t> 1) << <int> (2 * n)) - 1)
        cdef int64_t so_far
        cdef int answer, result = CONTINUE
        cdef Py_ssize_t deletions = self.host.deletions
        for j in range(n):
            answer = self.ask(j, what, time)
            if answer & FIRE:
                self.host.cells[self.cell] |= <int64_t> answer << <int> (2 * j)
            else:
                result |= answer            # to purge alone is done at once
        self.renew_after(what, time, deletions)
        so_far = self.host.cells[self.cell]
        if so_far & all_fired != all_fired:
            return result
        self.host.cells[self.cell] = 0
        return FIRE_AND_PURGE if so_far & (all_fired << 1) else result | FIRE

    cdef int c_on_merge(self) except -1:
        cdef Py_ssize_t j
        cdef int64_t* other
        for j in range(self.host.merged_n):
            other = self.host.merged_cell(j, self.cell)
            if other != self.host.cells + self.cell:
                self.host.cells[self.cell] |= other[0]
                other[0] = 0
        return _Several.c_on_merge(self)

    cdef int c_clear(self) except -1:
        self.host.cells[self.cell] = 0
        return _Several.c_clear(self)

    cdef bint c_keeps(self) except -1:
        return self.host.cells[self.cell] != 0 or _Several.c_keeps(self)

    def __str__(self):
        return f"all of ({'; '.join(map(str, self.triggers))})"


_PASSED = ReducingStateDescriptor("after-watermark", lambda a, b: a or b)
_AROUND, (_EARLY, _LATE) = has_fields(early=("Fires before the end.", None), late=("Fires after it.", None))


cdef class AfterWatermark(_Parted):
    """Fires at the window's end, with triggers of their own before and after it. See ``after_watermark``."""

    # Its cell: 1 when the watermark has passed the end.

    __dataclass_fields__ = _AROUND.__dataclass_fields__
    __match_args__ = _AROUND.__match_args__
    early = _EARLY
    late = _LATE

    def __init__(self, early=None, late=None):
        self.values = (early, late)

    cdef type own_class(self):
        return AfterWatermark

    cdef tuple asked(self):
        early, late = self.early, self.late
        return NeverTrigger() if early is None else early, EveryElementTrigger() if late is None else late

    def can_merge(self):
        return all([trigger.can_merge() for trigger in (self.early, self.late) if trigger is not None])

    cdef int bind(self, TriggerHost host) except -1:
        self.cell = host.add_cell(self, 0, _PASSED)
        return _Parted.bind(self, host)

    cdef int clear_part(self, Py_ssize_t j) except -1:
        return (<Trigger> self.inner[j]).c_clear()

    cdef int decide(self, int what, ts_t time) except -1:
        cdef ts_t last = self.host.last()
        cdef Py_ssize_t deletions = self.host.deletions
        cdef int result
        if what == ELEMENT and last > self.host.watermark():
            self.host.register_event(last)
        elif self.host.cells[self.cell] == 0 and (what == ELEMENT or (what == EVENT_TIMER and time == last)):
            self.host.cells[self.cell] = 1
            self.clear_part(0)
            if what == EVENT_TIMER:
                return FIRE
        result = self.ask(self.host.cells[self.cell] != 0, what, time)
        self.renew_after(what, time, deletions)
        return result

    cdef int renew(self, ts_t watermark, ts_t clock) except -1:
        cdef ts_t last = self.host.last()
        if self.host.cells[self.cell] == 0 and last > watermark:
            self.host.register_event(last)
        part = self.inner[self.host.cells[self.cell] != 0]
        return (<BuiltInTrigger> part).renew(watermark, clock) if isinstance(part, BuiltInTrigger) else 0

    cdef int c_on_merge(self) except -1:
        cdef Py_ssize_t j
        cdef ts_t last = self.host.last()
        cdef bint passed = last <= self.host.watermark()
        cdef Py_ssize_t deletions = self.host.deletions
        for j in range(self.host.merged_n):
            self.host.merged_cell(j, self.cell)[0] = 0
        NestingTrigger.c_on_merge(self)
        self.host.cells[self.cell] = passed
        if not passed:
            self.host.register_event(last)
        self.clear_part(0 if passed else 1)
        return self.renew_after(ELEMENT, 0, deletions)

    cdef int c_clear(self) except -1:
        self.host.cells[self.cell] = 0
        self.host.delete_event(self.host.last())
        return _Parted.c_clear(self)

    cdef bint c_keeps(self) except -1:
        return self.host.cells[self.cell] != 0 or _Parted.c_keeps(self)

    def __str__(self):
        early = f", early {self.early}" if self.early is not None else ""
        return f"when the watermark passes the end{early}, late {self.asked()[1]}"


def _several(name, triggers):
    if not triggers:
        raise SpecError(f"{name}: at least one trigger is needed, got none")
    for i, trigger in enumerate(triggers):
        check_trigger(name, f"argument {i + 1}", trigger)
    return triggers


def any_of(*triggers):
    """Returns a trigger that fires when any of ``triggers`` does, and purges when that one does.

    Raises SpecError for none, or for what is no trigger.
    """
    return AnyOf(_several("any_of", triggers))


def all_of(*triggers):
    """Returns a trigger that fires when each of ``triggers`` has fired since it fired last.

    It purges if one of them had asked for it. Raises SpecError for none, or for what is no trigger.
    """
    return AllOf(_several("all_of", triggers))


def after_watermark(*, early=None, late=None):
    """Returns a trigger that fires when the watermark passes the window's end.

    early: fires before that; None: nothing does. late: fires afterwards, within the allowed lateness; None:
        every late element does. Both count anew in their part of the window's life.
    Raises SpecError for what is no trigger.
    """
    for name, trigger in (("early", early), ("late", late)):
        if trigger is not None:
            check_trigger("after_watermark", name, trigger)
    return AfterWatermark(early, late)
