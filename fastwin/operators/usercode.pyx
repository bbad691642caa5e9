"""User-written triggers as nodes of the general operator, and the contexts that user code is handed."""

from operator import index

from cpython.long cimport PyLong_AsLongLongAndOverflow

from fastwin._typedefs cimport idx_t, ts_t
from fastwin.errors import SpecError
from fastwin.keyedstate cimport State, StateHolder, new_state
from fastwin.keyedstate import MapState, ValueState
from fastwin.operators.keeper cimport NO_TIME, Keeper, KeyStates, WindowStates
from fastwin.operators.triggernodes cimport CONTINUE, FIRE, FIRE_AND_PURGE, PURGE, TriggerNode
from fastwin.triggers import Trigger, TriggerResult

cdef object RESULT_CONTINUE = TriggerResult.CONTINUE
cdef object RESULT_FIRE = TriggerResult.FIRE
cdef object RESULT_PURGE = TriggerResult.PURGE
cdef object RESULT_FIRE_AND_PURGE = TriggerResult.FIRE_AND_PURGE


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
    """Returns the state object made for a descriptor, or makes one."""
    cdef State state = states.get(getattr(descriptor, "name", None))
    if state is None or state.descriptor is not descriptor:
        if state is not None and type(state.descriptor) is not type(descriptor):
            raise SpecError(f"state {descriptor.name!r}: is named by {state.descriptor!r} and by {descriptor!r}")
        state = new_state(descriptor, holder, prefix)
        states[descriptor.name] = state
    return state


cdef class TriggerContext:
    """What a trigger is handed: clocks, timers and state of the current window."""

    def __init__(self, Keeper keeper not None, str prefix not None):
        self.keeper = keeper
        self.holder = WindowStates(keeper)
        self.states = {}
        self.prefix = prefix

    def get_current_watermark(self):
        """Returns the watermark, ms; int64 min for none yet."""
        return self.keeper.watermark

    def get_current_processing_time(self):
        """Returns the processing time, ms."""
        return self.keeper.clock

    def register_event_time_timer(self, time):
        """Has ``on_event_time`` called, once, when the watermark reaches ``time``, ms."""
        self.keeper.register_event(self.slot, to_time(time, "register_event_time_timer"))

    def register_processing_time_timer(self, time):
        """Has ``on_processing_time`` called when the processing time reaches ``time``, ms."""
        self.keeper.register_processing(self.slot, to_time(time, "register_processing_time_timer"))

    def delete_event_time_timer(self, time):
        """Takes a timer back; nothing happens if there is none."""
        self.keeper.delete_event(self.slot, to_time(time, "delete_event_time_timer"))

    def delete_processing_time_timer(self, time):
        """Takes a timer back; nothing happens if there is none."""
        self.keeper.delete_processing(self.slot, to_time(time, "delete_processing_time_timer"))

    def get_partitioned_state(self, descriptor):
        """Returns state of the current window, such as a ValueState for a ValueStateDescriptor."""
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
        for i in range(self.keeper.merged_n):
            self.holder.slot = self.keeper.merged[i]
            values = self.holder.read()
            if values is not None and state.name in values:
                found.append(self.holder.write().pop(state.name))
        self.holder.slot = here
        if found:
            merged = found[0]
            for other in found[1:]:
                merged = state.merged(merged, other)
            self.holder.write()[state.name] = merged


cdef class UserTriggerNode(TriggerNode):
    """A trigger written in Python."""

    def __init__(self, trigger):
        self.trigger = trigger
        self.name = type(trigger).__qualname__
        self._on_element = trigger.on_element
        self._on_event_time = trigger.on_event_time
        self._on_processing_time = trigger.on_processing_time
        self._clear = None if type(trigger).clear is Trigger.clear else trigger.clear

    def bind(self, Keeper keeper not None, Py_ssize_t cell):
        self.keeper = keeper
        self.cell = cell
        return cell

    def name_states(self, str prefix not None):
        """Says where the trigger's state is, apart from that of others in one tree."""
        self.ctx = TriggerContext(self.keeper, prefix)

    cdef int _answer(self, object result, str method, idx_t slot) except -1:
        if result is RESULT_CONTINUE:
            return CONTINUE
        if result is RESULT_FIRE:
            return FIRE
        if result is RESULT_FIRE_AND_PURGE:
            return FIRE_AND_PURGE
        if result is RESULT_PURGE:
            return PURGE
        raise self.keeper.blame(
            f"{self.name}.{method}", slot, TypeError(f"must return a TriggerResult, returned {result!r}")
        )

    cdef int on_element(self, idx_t slot, Py_ssize_t i, ts_t time) except -1:
        cdef TriggerContext ctx = self.ctx
        cdef Keeper keeper = self.keeper
        ctx.slot = slot
        ctx.holder.slot = slot
        try:
            result = self._on_element(
                keeper.element(i), None if time == NO_TIME else time, keeper.window_of(slot), ctx
            )
        except Exception as problem:
            raise keeper.blame(f"{self.name}.on_element", slot, problem) from problem
        return self._answer(result, "on_element", slot)

    cdef int on_event_time(self, idx_t slot, ts_t time) except -1:
        self.ctx.slot = slot
        self.ctx.holder.slot = slot
        try:
            result = self._on_event_time(time, self.keeper.window_of(slot), self.ctx)
        except Exception as problem:
            raise self.keeper.blame(f"{self.name}.on_event_time", slot, problem) from problem
        return self._answer(result, "on_event_time", slot)

    cdef int on_processing_time(self, idx_t slot, ts_t time) except -1:
        self.ctx.slot = slot
        self.ctx.holder.slot = slot
        try:
            result = self._on_processing_time(time, self.keeper.window_of(slot), self.ctx)
        except Exception as problem:
            raise self.keeper.blame(f"{self.name}.on_processing_time", slot, problem) from problem
        return self._answer(result, "on_processing_time", slot)

    cdef int on_merge(self, idx_t slot) except -1:
        self.ctx.slot = slot
        self.ctx.holder.slot = slot
        self.ctx.merging = True
        try:
            self.trigger.on_merge(self.keeper.window_of(slot), self.ctx)
        except Exception as problem:
            raise self.keeper.blame(f"{self.name}.on_merge", slot, problem) from problem
        finally:
            self.ctx.merging = False
        return 0

    cdef int clear(self, idx_t slot) except -1:
        if self._clear is None:
            return 0
        self.ctx.slot = slot
        self.ctx.holder.slot = slot
        try:
            self._clear(self.keeper.window_of(slot), self.ctx)
        except Exception as problem:
            raise self.keeper.blame(f"{self.name}.clear", slot, problem) from problem
        return 0


cdef class Clocks:
    """What evictors and assigners are handed: the watermark and the processing time."""

    def __init__(self, Keeper keeper not None):
        self.keeper = keeper

    def get_current_watermark(self):
        """Returns the watermark, ms; int64 min for none yet."""
        return self.keeper.watermark

    def get_current_processing_time(self):
        """Returns the processing time, ms."""
        return self.keeper.clock


cdef class StateStore:
    """State of one window or one key, by descriptor."""

    def __init__(self, StateHolder holder not None, str prefix not None):
        self.holder = holder
        self.states = {}
        self.prefix = prefix

    def get_state(self, descriptor):
        """Returns the state that a descriptor names: a ValueState for a ValueStateDescriptor, and so on."""
        return find_state(self.states, descriptor, self.holder, self.prefix)

    # Flink's names.
    get_list_state = get_map_state = get_reducing_state = get_aggregating_state = get_state


cdef class WindowContext:
    """What a ProcessWindowFunction is handed. ``window``: the window that fires or goes."""

    def __init__(self, Keeper keeper not None, bint merging, side_outputs):
        self.keeper = keeper
        self.merging = merging
        self.window_holder = WindowStates(keeper)
        self.key_holder = KeyStates(keeper)
        self.window_store = StateStore(self.window_holder, "window:")
        self.key_store = StateStore(self.key_holder, "")
        self.side = {tag: [] for tag in side_outputs}

    cdef void move_to(self, idx_t slot, object window) noexcept:
        self.window_holder.slot = slot
        self.key_holder.key = self.keeper.at(slot).head.key
        self.window = window

    def current_watermark(self):
        """Returns the watermark, ms; int64 min for none yet."""
        return self.keeper.watermark

    def current_processing_time(self):
        """Returns the processing time, ms."""
        return self.keeper.clock

    def window_state(self):
        """Returns the state of this key and window: ``.get_state(descriptor)``. Clear it in ``clear``.

        Raises SpecError for merging windows, as Flink does.
        """
        if self.merging:
            raise SpecError("window_state: there is no per-window state with merging windows; use global_state()")
        return self.window_store

    def global_state(self):
        """Returns the state of this key, which outlives its windows: ``.get_state(descriptor)``."""
        return self.key_store

    def output(self, tag, value):
        """Puts a row, a tuple or dict, into the side output ``tag``."""
        rows = self.side.get(tag)
        if rows is None:
            raise SpecError(
                f"output: there is no side output {tag!r}; declared are {', '.join(map(repr, self.side)) or 'none'}"
            )
        rows.append(value)
