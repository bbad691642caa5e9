"""Trigger: decides when a window fires. To subclass; and what triggers are bound to when they run.

A trigger runs by its ``c_`` methods. They see a TriggerHost: the window that they are asked about, its timers, the
clocks, and cells for the state of built-in triggers.
"""

from fastwin.core.memory.references cimport PyObject, references
from fastwin.core.typedefs cimport int64_t, ts_t
from fastwin.core.timemath cimport NO_TIME
from fastwin.errors import SpecError
from fastwin.triggers.result import TriggerResult

__all__ = ["Trigger", "check_trigger"]

cdef object RESULT_CONTINUE = TriggerResult.CONTINUE
cdef object RESULT_FIRE = TriggerResult.FIRE


cdef class TriggerHost:
    """What triggers are bound to. This one has no windows: binding to it tells what triggers need."""

    def __init__(self):
        self.kept = []
        self.path = ""

    cdef Py_ssize_t add_cell(self, Trigger trigger, int64_t blank, object descriptor) except -1:
        """Returns the number of a new cell; descriptor: of the same state where it is kept through a ctx."""
        self.kept.append((trigger, blank, descriptor))
        return len(self.kept) - 1

    cdef object new_context(self):
        """Returns what one more trigger that is written in Python is going to be handed."""
        self.written += 1
        return None

    cdef object next_context(self, object ctx):
        """Returns another context for the calls to come, where user code has kept this one."""
        raise NotImplementedError

    cdef ts_t last(self) except? -2:
        """Returns the last ms of the current window; int64 max for the global one."""
        raise NotImplementedError

    cdef ts_t watermark(self) except? -2:
        raise NotImplementedError

    cdef ts_t clock(self) except? -2:
        raise NotImplementedError

    cdef int register_event(self, ts_t time) except -1:
        raise NotImplementedError

    cdef int register_processing(self, ts_t time) except -1:
        raise NotImplementedError

    cdef int delete_event(self, ts_t time) except -1:
        raise NotImplementedError

    cdef int delete_processing(self, ts_t time) except -1:
        raise NotImplementedError

    cdef int64_t* merged_cell(self, Py_ssize_t j, Py_ssize_t cell) noexcept:
        """Returns a cell of the j-th of the merged windows."""
        return NULL

    cdef object element(self):
        """Returns the current element as user code sees it."""
        raise NotImplementedError

    cdef object window(self):
        """Returns the current window as user code sees it."""
        raise NotImplementedError

    cdef object enter(self, object ctx, bint merging):
        """Makes a context ready for a call of user code; returns what to hand over."""
        raise NotImplementedError

    cdef int leave(self, object ctx) except -1:
        """Ends what ``enter`` has begun."""
        raise NotImplementedError

    cdef int failed(self, str what, object problem) except -1:
        """Raises the error for a problem in user code."""
        raise problem


def _new(kind):
    """Returns a trigger of a class, without what its ``__init__`` does."""
    return kind.__new__(kind)


cdef class Trigger:
    """Decides when a window fires. Subclass it and override what you need.

    ``ctx`` has ``get_current_watermark()``, ``get_current_processing_time()``,
    ``register_event_time_timer(t)``, ``delete_event_time_timer(t)``, the same for ``processing_time``, and
    ``get_partitioned_state(descriptor)``, which is state of this window. A trigger object serves all
    windows, so it keeps nothing in itself. Source: Flink's Trigger.
    """

    def on_element(self, element, timestamp, window, ctx):
        """Is called for each element after it was added; element: a read-only row, timestamp: ms."""
        raise NotImplementedError(f"{type(self).__name__} needs on_element(self, element, timestamp, window, ctx)")

    def on_event_time(self, time, window, ctx):
        """Is called when the watermark has reached a timer registered for ``time``, or the window's cleanup."""
        return RESULT_CONTINUE

    def on_processing_time(self, time, window, ctx):
        """Is called when the processing time has reached a timer registered for ``time``."""
        return RESULT_CONTINUE

    def can_merge(self):
        """Tells whether the trigger works with merging windows; then it needs ``on_merge``."""
        return False

    def on_merge(self, window, ctx):
        """Is called when windows were merged into ``window``; ctx also has ``merge_partitioned_state(descriptor)``."""
        raise NotImplementedError(f"{type(self).__name__} cannot merge")

    def clear(self, window, ctx):
        """Is called when the window goes: deletes the trigger's timers and state."""

    def __reduce__(self):
        return _new, (type(self),), self.__getstate__()

    # The same at C level, of triggers that are bound to a host, about its current window.

    cdef int c_on_element(self, ts_t time) except -1:
        return CONTINUE

    cdef int c_on_event_time(self, ts_t time) except -1:
        return CONTINUE

    cdef int c_on_processing_time(self, ts_t time) except -1:
        return CONTINUE

    cdef int c_on_merge(self) except -1:
        return 0

    cdef int c_clear(self) except -1:
        return 0

    cdef bint c_keeps(self) except -1:
        """Tells whether cells of the window hold state of the trigger."""
        return False


cdef bint is_inherited(object method, object trigger, object inherited):
    """Tells whether a method that an object has is that of its base class, bound to the object itself."""
    return getattr(method, "__func__", None) is inherited and method.__self__ is trigger


cdef object BASE_CLEAR = Trigger.clear


cdef class WrittenTrigger(Trigger):
    """A trigger that is written in Python, bound to a host."""

    def __init__(self, Trigger trigger not None, TriggerHost host not None):
        self.trigger = trigger
        self.host = host
        self.name = type(trigger).__qualname__
        self.on_element_ = trigger.on_element
        self.on_event_time_ = trigger.on_event_time
        self.on_processing_time_ = trigger.on_processing_time
        self.clear_ = None if is_inherited(trigger.clear, trigger, BASE_CLEAR) else trigger.clear
        self.ctx = host.new_context()

    cdef object enter(self, bint merging):
        """Begins a call; returns the ctx to hand over. What user code has kept of an earlier call stays closed."""
        if self.ctx is not None and references(<PyObject*> self.ctx) > 1:
            self.ctx = self.host.next_context(self.ctx)
        return self.host.enter(self.ctx, merging)

    cdef int answer(self, object result, str method) except -1:
        if result is RESULT_CONTINUE:
            return CONTINUE
        if result is RESULT_FIRE:
            return FIRE
        if isinstance(result, TriggerResult):
            return result.value
        problem = TypeError(f"must return a TriggerResult, returned {result!r}")
        return self.host.failed(f"{self.name}.{method}", problem)

    cdef int c_on_element(self, ts_t time) except -1:
        ctx = self.enter(False)
        try:
            result = self.on_element_(
                self.host.element(), None if time == NO_TIME else time, self.host.window(), ctx
            )
        except Exception as problem:
            self.host.failed(f"{self.name}.on_element", problem)
        finally:
            self.host.leave(self.ctx)
        return self.answer(result, "on_element")

    cdef int c_on_event_time(self, ts_t time) except -1:
        ctx = self.enter(False)
        try:
            result = self.on_event_time_(time, self.host.window(), ctx)
        except Exception as problem:
            self.host.failed(f"{self.name}.on_event_time", problem)
        finally:
            self.host.leave(self.ctx)
        return self.answer(result, "on_event_time")

    cdef int c_on_processing_time(self, ts_t time) except -1:
        ctx = self.enter(False)
        try:
            result = self.on_processing_time_(time, self.host.window(), ctx)
        except Exception as problem:
            self.host.failed(f"{self.name}.on_processing_time", problem)
        finally:
            self.host.leave(self.ctx)
        return self.answer(result, "on_processing_time")

    cdef int c_on_merge(self) except -1:
        ctx = self.enter(True)
        try:
            self.trigger.on_merge(self.host.window(), ctx)
        except Exception as problem:
            self.host.failed(f"{self.name}.on_merge", problem)
        finally:
            self.host.leave(self.ctx)
        return 0

    cdef int c_clear(self) except -1:
        if self.clear_ is None:
            return 0
        ctx = self.enter(False)
        try:
            self.clear_(self.host.window(), ctx)
        except Exception as problem:
            self.host.failed(f"{self.name}.clear", problem)
        finally:
            self.host.leave(self.ctx)
        return 0


def check_trigger(str owner not None, str name not None, value):
    """Raises SpecError for what is no trigger."""
    if not isinstance(value, Trigger):
        raise SpecError(f"{owner}: {name} must be a trigger, got {value!r}")
