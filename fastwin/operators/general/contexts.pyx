"""Contexts: what user code is handed to reach timers, clocks and state; and the host over the rows of an operator."""

from operator import index

cimport cython
from cpython.long cimport PyLong_AsLongLongAndOverflow
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

from fastwin.core.memory.references cimport PyObject, references
from fastwin.core.typedefs cimport NONE, idx_t, int64_t, ts_t
from fastwin.core.windows.timerservice cimport TimerService
from fastwin.core.windows.windowtable cimport last_ms
from fastwin.errors import SpecError, StateError
from fastwin.functions.keyedstate cimport State, StateHolder, new_state
from fastwin.functions.keyedstate import MapState, ValueState
from fastwin.operators.general.elements cimport Elements
from fastwin.operators.general.sideoutput cimport SideOutput
from fastwin.operators.general.userstate cimport KeyStates, UserState, WindowStates
from fastwin.triggers.trigger cimport TriggerHost


cdef ts_t to_time(object time, str method) except? -2:
    cdef int overflow = 0
    cdef ts_t found
    if type(time) is int:
        found = PyLong_AsLongLongAndOverflow(time, &overflow)
        if not overflow:
            return found
    try:
        return index(time)
    except OverflowError:
        raise SpecError(f"{method}: the time must fit in int64, got {time}") from None
    except TypeError:
        raise SpecError(f"{method}: the time must be an int of milliseconds, got {time!r}") from None


cdef State find_state(dict states, object descriptor, StateHolder holder, str prefix):
    """Returns a state object for the current call: the one of an earlier call, if nobody has kept it."""
    cdef State state = states.get(getattr(descriptor, "name", None))
    if state is None or state.descriptor is not descriptor:
        if state is not None and type(state.descriptor) is not type(descriptor):
            raise SpecError(f"state {descriptor.name!r}: is named by {state.descriptor!r} and by {descriptor!r}")
        state = new_state(descriptor, holder, prefix)
        states[descriptor.name] = state
    elif state.call != holder.call and references(<PyObject*> state) > 2:       # besides ``states`` and here
        state = state.again()
        states[descriptor.name] = state
    state.call = holder.call
    return state


cdef class RowHost(TriggerHost):
    """What the triggers of an operator are bound to: one window at a time, by its row."""

    def __init__(self, TimerService timers not None, Elements elements not None, UserState state not None):
        super().__init__()
        self.timers = timers
        self.elements = elements
        self.state = state

    def __dealloc__(self):
        free(self.merged)

    cdef int hold_merged(self, const idx_t* slots, Py_ssize_t n) except -1:
        """Makes these the windows that are merged."""
        cdef void* moved
        if n > self.merged_capacity:
            moved = realloc(self.merged, 2 * n * sizeof(idx_t))
            if moved == NULL:
                raise MemoryError(f"no memory to merge {n} windows")
            self.merged = <idx_t*> moved
            self.merged_capacity = 2 * n
        memcpy(self.merged, slots, n * sizeof(idx_t))
        self.merged_n = n
        return 0

    cdef int64_t* merged_cell(self, Py_ssize_t j, Py_ssize_t cell) noexcept:
        return cells_of(self.timers.at(self.merged[j])) + cell

    cdef object new_context(self):
        self.written += 1
        return TriggerContext(self, f"trigger{self.written - 1}:")

    cdef object next_context(self, object ctx):
        return (<TriggerContext> ctx).again()

    cdef ts_t last(self) except? -2:
        return last_ms(self.timers.at(self.slot))

    cdef ts_t watermark(self) except? -2:
        return self.timers.watermark

    cdef ts_t clock(self) except? -2:
        return self.timers.clock

    cdef int register_event(self, ts_t time) except -1:
        return self.timers.register_timer(self.slot, time, True)

    cdef int register_processing(self, ts_t time) except -1:
        return self.timers.register_timer(self.slot, time, False)

    cdef int delete_event(self, ts_t time) except -1:
        self.deletions += 1
        return self.timers.delete_timer(self.slot, time, True)

    cdef int delete_processing(self, ts_t time) except -1:
        self.deletions += 1
        return self.timers.delete_timer(self.slot, time, False)

    cdef object element(self):
        return self.elements.element(self.i)

    cdef object window(self):
        return self.elements.window_of(self.slot)

    cdef object enter(self, object ctx, bint merging):
        cdef TriggerContext entered = ctx
        entered.slot = entered.holder.slot = self.slot
        entered.merging = merging
        return entered

    cdef int leave(self, object ctx) except -1:
        cdef TriggerContext left = ctx
        left.slot = left.holder.slot = NONE
        left.holder.call += 1
        return 0

    cdef int failed(self, str what, object problem) except -1:
        raise self.elements.blame(what, self.slot, problem) from problem


@cython.binding(False)      # as plain methods: those that user code calls with every element
cdef class TriggerContext:
    """What a trigger is handed: clocks, timers and state of the current window."""

    def __init__(self, RowHost host not None, str prefix not None):
        self.timers = host.timers
        self.host = host
        self.holder = WindowStates(host.state)
        self.slot = NONE
        self.states = {}
        self.prefix = prefix

    cdef TriggerContext again(self):
        """Returns another one for the calls to come, where user code has kept this one: it stays closed."""
        cdef TriggerContext ctx = TriggerContext.__new__(TriggerContext)
        ctx.timers = self.timers
        ctx.host = self.host
        ctx.holder = self.holder
        ctx.slot = NONE
        ctx.states = self.states
        ctx.prefix = self.prefix
        return ctx

    def get_current_watermark(self):
        """Returns the watermark, ms; int64 min for none yet."""
        return self.timers.watermark

    def get_current_processing_time(self):
        """Returns the processing time, ms."""
        return self.timers.clock

    cdef idx_t here(self) except -1:
        """Returns the row of the current window; raises StateError when there is none."""
        if self.slot == NONE:
            raise StateError("ctx: the call that it was handed to is over; timers and state belong to its window")
        return self.slot

    def register_event_time_timer(self, time):
        """Has ``on_event_time`` called, once, when the watermark reaches ``time``, ms."""
        self.timers.register_timer(self.here(), to_time(time, "register_event_time_timer"), True)

    def register_processing_time_timer(self, time):
        """Has ``on_processing_time`` called when the processing time reaches ``time``, ms."""
        self.timers.register_timer(self.here(), to_time(time, "register_processing_time_timer"), False)

    def delete_event_time_timer(self, time):
        """Takes a timer back; nothing happens if there is none."""
        self.host.deletions += 1
        self.timers.delete_timer(self.here(), to_time(time, "delete_event_time_timer"), True)

    def delete_processing_time_timer(self, time):
        """Takes a timer back; nothing happens if there is none."""
        self.host.deletions += 1
        self.timers.delete_timer(self.here(), to_time(time, "delete_processing_time_timer"), False)

    def get_partitioned_state(self, descriptor):
        """Returns state of the current window, such as a ValueState for a ValueStateDescriptor."""
        self.here()
        return find_state(self.states, descriptor, self.holder, self.prefix)

    def merge_partitioned_state(self, descriptor):
        """Merges state of the windows that were merged into the current one's; in ``on_merge`` only.

        Raises SpecError for value and map state, which do not merge.
        """
        cdef State state = self.get_partitioned_state(descriptor)
        cdef dict values
        cdef list found = []
        cdef Py_ssize_t i
        cdef idx_t here = self.slot
        if not self.merging:
            raise SpecError("merge_partitioned_state: is for on_merge only")
        if isinstance(state, (ValueState, MapState)):
            state.merged(None, None)        # says that it cannot
        values = self.holder.read()
        if values is not None and state.name in values:
            found.append(self.holder.write().pop(state.name))
        for i in range(self.host.merged_n):
            self.holder.slot = self.host.merged[i]
            values = self.holder.read()
            if values is not None and state.name in values:
                found.append(self.holder.write().pop(state.name))
        self.holder.slot = here
        if found:
            merged = found[0]
            for other in found[1:]:
                merged = state.merged(merged, other)
            self.holder.write()[state.name] = merged


@cython.binding(False)
cdef class Clocks:
    """What evictors and assigners are handed: the watermark and the processing time."""

    def __init__(self, TimerService timers not None):
        self.timers = timers

    def get_current_watermark(self):
        """Returns the watermark, ms; int64 min for none yet."""
        return self.timers.watermark

    def get_current_processing_time(self):
        """Returns the processing time, ms."""
        return self.timers.clock


cdef class StateStore:
    """State of one window or one key, by descriptor."""

    def __init__(self, StateHolder holder not None, str prefix not None):
        self.holder = holder
        self.states = {}
        self.prefix = prefix

    def get_state(self, descriptor):
        """Returns the state that a descriptor names: a ValueState for a ValueStateDescriptor, and so on.

        Raises StateError where the call that this was handed out in is over.
        """
        if self.call != self.holder.call:
            raise StateError("state: the call that its context was handed to is over; ask that of each call anew")
        return find_state(self.states, descriptor, self.holder, self.prefix)

    # Flink's names.
    get_list_state = get_map_state = get_reducing_state = get_aggregating_state = get_state


cdef StateStore handed_out(StateStore store):
    """Returns a store for the current call: the one of an earlier call, if nobody has kept it."""
    if store.call != store.holder.call and references(<PyObject*> store) > 2:       # besides the context's and here
        store = StateStore(store.holder, store.prefix)
    store.call = store.holder.call
    return store


@cython.binding(False)
cdef class WindowContext:
    """What a ProcessWindowFunction is handed. ``window``: the window that fires or goes."""

    def __init__(self, Elements elements not None, UserState state not None, bint merging, side_outputs):
        self.elements = elements
        self.timers = elements.timers
        self.merging = merging
        self.window_holder = WindowStates(state)
        self.key_holder = KeyStates(state, elements.timers)
        self.window_store = StateStore(self.window_holder, "window:")
        self.key_store = StateStore(self.key_holder, "")
        self.side = {tag: SideOutput(tag, schema) for tag, schema in side_outputs}

    cdef void enter(self, idx_t slot, object window, str function) noexcept:
        """Begins a call of user code about a window. function: its name, for errors."""
        self.is_open = True
        self.function = function
        self.window_holder.slot = self.key_holder.slot = slot
        self.key_holder.key = self.timers.at(slot).head.key
        self.window = window

    cdef void leave(self) noexcept:
        """Ends what ``enter`` has begun."""
        self.is_open = False
        self.window_holder.slot = self.key_holder.key = NONE
        self.window_holder.call += 1
        self.key_holder.call += 1

    cdef WindowContext again(self):
        """Returns another one for the calls to come, where user code has kept this one: it stays closed."""
        cdef WindowContext ctx = WindowContext.__new__(WindowContext)
        ctx.elements = self.elements
        ctx.timers = self.timers
        ctx.merging = self.merging
        ctx.window_holder = self.window_holder
        ctx.key_holder = self.key_holder
        ctx.window_store = self.window_store
        ctx.key_store = self.key_store
        ctx.side = self.side
        self.window_store = self.key_store = None       # so that these do not count as kept
        return ctx

    cdef int check_call(self) except -1:
        if not self.is_open:
            raise StateError("context: the call that it was handed to is over; state and outputs belong to its window")
        return 0

    def current_watermark(self):
        """Returns the watermark, ms; int64 min for none yet."""
        return self.timers.watermark

    def current_processing_time(self):
        """Returns the processing time, ms."""
        return self.timers.clock

    def window_state(self):
        """Returns the state of this key and window: ``.get_state(descriptor)``. Clear it in ``clear``.

        Raises SpecError for merging windows, as Flink does.
        """
        if self.merging:
            raise SpecError("window_state: there is no per-window state with merging windows; use global_state()")
        self.check_call()
        self.window_store = handed_out(self.window_store)
        return self.window_store

    def global_state(self):
        """Returns the state of this key, which outlives its windows: ``.get_state(descriptor)``."""
        self.check_call()
        self.key_store = handed_out(self.key_store)
        return self.key_store

    def output(self, tag, value):
        """Puts a row, a tuple or dict, into the side output ``tag``.

        Raises SpecError for a tag that is not declared, and for a row that has not the columns of its output.
        """
        cdef SideOutput side
        self.check_call()
        side = self.side.get(tag)
        if side is None:
            raise SpecError(
                f"output: there is no side output {tag!r}; declared are {', '.join(map(repr, self.side)) or 'none'}"
            )
        side.add(value, self.function, self.elements.exact_key(self.key_holder.key), self.window)
