"""What all built-in triggers have in common: their fields, and how they run.

The logic of a built-in trigger is written once, in its ``c_`` methods. An operator binds it to a host over its rows. A
user's trigger that asks a built-in one hands it a ctx: a ContextHost then reads and writes the cells through that.
"""

from dataclasses import field, make_dataclass, replace

from libc.stdlib cimport calloc, free

from fastwin.core.typedefs cimport int64_t, ts_t
from fastwin.core.timemath cimport NO_TIME
from fastwin.errors import StateError
from fastwin.functions.descriptors import ValueStateDescriptor
from fastwin.triggers.continues import only_continues
from fastwin.triggers.result import TriggerResult
from fastwin.triggers.trigger cimport Trigger, TriggerHost, WrittenTrigger, is_inherited

__all__ = ["BuiltInTrigger", "has_fields", "reads_rows", "waits_for_clock"]

cdef tuple RESULTS = tuple(TriggerResult)


class _Field:
    """An argument of a built-in trigger, to read."""

    def __init__(self, at, doc):
        self.at = at
        self.__doc__ = doc

    def __get__(self, trigger, owner):
        return self if trigger is None else trigger._value(self.at)


def has_fields(**docs):
    """Returns a dataclass with such fields, and their descriptors; docs: what each is, or that and its default."""
    told = {name: doc if isinstance(doc, tuple) else (doc,) for name, doc in docs.items()}
    fields = [(name, object, field(default=doc[1])) if len(doc) > 1 else (name, object) for name, doc in told.items()]
    return make_dataclass("Fields", fields, frozen=True), [_Field(at, doc[0]) for at, doc in enumerate(told.values())]


cdef class BuiltInTrigger(Trigger):
    """A trigger of this package: a value, equal to others with the same fields.

    It is bound by copying: what is described stays as it is, and each operator has a copy that knows its host.
    """

    __dataclass_params__ = has_fields()[0].__dataclass_params__
    __dataclass_fields__ = {}
    __match_args__ = ()

    cdef type own_class(self):
        """Returns the class that this one's C methods belong to; subclasses in Python are others."""
        raise NotImplementedError

    cdef tuple fields(self):
        return tuple([getattr(self, name) for name in self.own_class().__match_args__])

    cdef int bind(self, TriggerHost host) except -1:
        """Binds this copy to a host, and what it asks."""
        self.host = host
        self.part = bool(host.path)
        return 0

    cdef bint waits(self) except -1:
        """Tells whether processing time means something to it."""
        return False

    cdef int renew(self, ts_t watermark, ts_t clock) except -1:
        """Registers again the timers that it waits for, which another part of several may have deleted.

        watermark, clock: how far timers have been asked about. Those that are due behind may still come.
        """
        return 0

    cdef object to_state(self, int64_t cell):
        """Returns what a cell is where state is kept through a ctx."""
        return cell

    cdef int64_t from_state(self, object value) except? -2:
        return value

    def _value(self, at):
        if self.values is None:
            raise AttributeError(f"{type(self).__name__}: __init__ of the built-in class was not called")
        return self.values[at]

    def __post_init__(self):
        self.own_class()(*self.fields())        # what a dataclass that is derived from this one was given

    def __eq__(self, other):
        if type(other) is not type(self):
            return NotImplemented
        return self.fields() == (<BuiltInTrigger> other).fields()

    def __hash__(self):
        return hash(self.fields())

    def __repr__(self):
        fields = zip(self.own_class().__match_args__, self.fields())
        return f"{type(self).__qualname__}({', '.join([f'{name}={value!r}' for name, value in fields])})"

    def __reduce__(self):
        return _revived, (type(self), self.values), self.__getstate__()

    cdef ContextHost borrowed(self, object window, object ctx, bint merging):
        """Returns a host for a ctx that a user's trigger has handed on."""
        cdef ContextHost host = self.spare
        self.spare = None
        if host is None:
            host = ContextHost(self)
        host.open(window, ctx, merging)
        return host

    cdef int given_back(self, ContextHost host) except -1:
        host.close()
        self.spare = host
        return 0

    def on_element(self, element, timestamp, window, ctx):
        """Asks the built-in trigger about an element."""
        cdef ContextHost host = self.borrowed(window, ctx, False)
        host.its_element = element
        cdef int result = host.trigger.c_on_element(NO_TIME if timestamp is None else timestamp)
        self.given_back(host)
        return RESULTS[result]

    def on_event_time(self, time, window, ctx):
        """Asks the built-in trigger about a timer of event time."""
        cdef ContextHost host = self.borrowed(window, ctx, False)
        cdef int result = host.trigger.c_on_event_time(time)
        self.given_back(host)
        return RESULTS[result]

    def on_processing_time(self, time, window, ctx):
        """Asks the built-in trigger about a timer of processing time."""
        cdef ContextHost host = self.borrowed(window, ctx, False)
        cdef int result = host.trigger.c_on_processing_time(time)
        self.given_back(host)
        return RESULTS[result]

    def on_merge(self, window, ctx):
        """Has the built-in trigger take over the state and timers of merged windows."""
        if not self.can_merge():
            raise NotImplementedError(f"{type(self).__name__} cannot merge")
        cdef ContextHost host = self.borrowed(window, ctx, True)
        host.trigger.c_on_merge()
        self.given_back(host)

    def clear(self, window, ctx):
        """Has the built-in trigger delete its state and timers."""
        cdef ContextHost host = self.borrowed(window, ctx, False)
        host.trigger.c_clear()
        self.given_back(host)


def _revived(kind, values):
    """Returns a trigger again, from its class and the values of its fields."""
    trigger = kind.__new__(kind)
    if values is not None:
        (<BuiltInTrigger> trigger).own_class().__init__(trigger, *values)
    return trigger


class _Part:
    """What one of several triggers is handed: the ctx of them all, with state under names of its own."""

    def __init__(self, path):
        self._path = path
        self._ctx = None

    def __getattr__(self, name):
        return getattr(self._here(), name)

    def get_partitioned_state(self, descriptor):
        return self._here().get_partitioned_state(self._own(descriptor))

    def merge_partitioned_state(self, descriptor):
        self._here().merge_partitioned_state(self._own(descriptor))

    def _here(self):
        if self._ctx is None:
            raise StateError("ctx: the call that it was handed to is over; timers and state belong to its window")
        return self._ctx

    def _own(self, descriptor):
        return replace(descriptor, name=self._path + descriptor.name)


cdef class ContextHost(TriggerHost):
    """One window, known by its ctx: cells are read from its state before each call, and written back after it."""

    def __init__(self, BuiltInTrigger trigger not None):
        super().__init__()
        self.takes_endless = True
        self.trigger = trigger.own_class()(*trigger.fields())
        self.trigger.bind(self)
        self.states = [None] * len(self.kept)
        self.cells = <int64_t*> calloc(len(self.kept) + 1, 2 * sizeof(int64_t))
        if self.cells == NULL:
            raise MemoryError(f"no memory for {len(self.kept)} cells of a trigger")
        self.before = self.cells + len(self.kept)

    def __dealloc__(self):
        free(self.cells)

    cdef Py_ssize_t add_cell(self, Trigger trigger, int64_t blank, object descriptor) except -1:
        if self.path:
            descriptor = replace(descriptor, name=self.path + descriptor.name)
        return TriggerHost.add_cell(self, trigger, blank, descriptor)

    cdef int open(self, object window, object ctx, bint merging) except -1:
        cdef Py_ssize_t at
        cdef BuiltInTrigger trigger
        self.ctx = ctx
        self.its_window = window
        for at in range(len(self.kept)):
            trigger, blank, descriptor = self.kept[at]
            if merging:
                ctx.merge_partitioned_state(descriptor)
            state = ctx.get_partitioned_state(descriptor)
            value = state.value() if isinstance(descriptor, ValueStateDescriptor) else state.get()
            self.cells[at] = self.before[at] = blank if value is None else trigger.from_state(value)
            self.states[at] = state
        return 0

    cdef int close(self) except -1:
        cdef Py_ssize_t at
        cdef BuiltInTrigger trigger
        for at in range(len(self.kept)):
            state, self.states[at] = self.states[at], None
            if self.cells[at] == self.before[at]:
                continue
            trigger, blank, descriptor = self.kept[at]
            state.clear()
            if self.cells[at] != blank:
                keep = state.update if isinstance(descriptor, ValueStateDescriptor) else state.add
                keep(trigger.to_state(self.cells[at]))
        self.ctx = self.its_window = self.its_element = None
        return 0

    cdef object new_context(self):
        return _Part(self.path) if self.path else None

    cdef object next_context(self, object ctx):
        return _Part(ctx._path)

    cdef ts_t last(self) except? -2:
        return self.its_window.max_timestamp()

    cdef ts_t watermark(self) except? -2:
        return self.ctx.get_current_watermark()

    cdef ts_t clock(self) except? -2:
        return self.ctx.get_current_processing_time()

    cdef int register_event(self, ts_t time) except -1:
        self.ctx.register_event_time_timer(time)
        return 0

    cdef int register_processing(self, ts_t time) except -1:
        self.ctx.register_processing_time_timer(time)
        return 0

    cdef int delete_event(self, ts_t time) except -1:
        self.deletions += 1
        self.ctx.delete_event_time_timer(time)
        return 0

    cdef int delete_processing(self, ts_t time) except -1:
        self.deletions += 1
        self.ctx.delete_processing_time_timer(time)
        return 0

    cdef object element(self):
        return self.its_element

    cdef object window(self):
        return self.its_window

    cdef object enter(self, object ctx, bint merging):
        self.deletions += 1             # nobody sees what user code does
        if ctx is None:
            return self.ctx
        ctx._ctx = self.ctx
        return ctx

    cdef int leave(self, object ctx) except -1:
        if ctx is not None:
            ctx._ctx = None
        return 0


cdef object BASE_ON_PROCESSING_TIME = Trigger.on_processing_time
cdef object BUILT_IN_ON_PROCESSING_TIME = BuiltInTrigger.on_processing_time


cdef Trigger bound(Trigger trigger, TriggerHost host):
    """Returns a trigger for a host: built-in ones run at C level, all others, their subclasses too, in Python."""
    cdef BuiltInTrigger copy
    if not isinstance(trigger, BuiltInTrigger) or type(trigger) is not (<BuiltInTrigger> trigger).own_class():
        return WrittenTrigger(trigger, host)
    copy = type(trigger)(*(<BuiltInTrigger> trigger).values)
    copy.bind(host)
    return copy


def reads_rows(Trigger trigger not None):
    """Tells whether a trigger, or one that it asks, is written in Python: such ones are handed elements."""
    cdef TriggerHost host = TriggerHost()
    bound(trigger, host)
    return host.written > 0


def waits_for_clock(Trigger trigger not None):
    """Tells whether a trigger may wait for the processing time.

    It does if ``on_processing_time`` is its own, unless that only returns CONTINUE: Flink makes every trigger write it.
    """
    method = trigger.on_processing_time
    if is_inherited(method, trigger, BASE_ON_PROCESSING_TIME):
        return False
    if is_inherited(method, trigger, BUILT_IN_ON_PROCESSING_TIME):
        return (<BuiltInTrigger> trigger).waits()
    return not only_continues(method)
