"""The state that contexts hand out: value, list, map, reducing and aggregating state of the current window or key."""

from copy import deepcopy

from fastwin.errors import SpecError, StateError
from fastwin.functions.reduce import as_reduce_function
from fastwin.functions.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)

__all__ = ["AggregatingState", "ListState", "MapState", "ReducingState", "State", "StateHolder", "ValueState"]

cdef tuple PLAIN = (int, float, str, bytes, bool, type(None))


cdef object given(object value):
    """Returns a stored value for user code: a copy, so that what is changed in place is not taken for saved."""
    return value if type(value) in PLAIN else deepcopy(value)


cdef class StateHolder:
    """Where state objects find the values of the window or key that is current."""

    cdef dict read(self):
        raise NotImplementedError

    cdef dict write(self):
        raise NotImplementedError

    cdef tuple born(self, object descriptor, tuple kept):
        raise SpecError(
            f"state {descriptor.name!r}: ttl is for the state of keys, global_state(); that of a window goes with it"
        )

    cdef bint is_over(self, tuple lifetime) except -1:
        return False


cdef class State:
    """A piece of state of the current window or key. Use those below.

    It is good for the call that it was handed out in. In any later one the same name may mean another window's or
    key's state, so it raises StateError.
    """

    cdef int check_call(self) except -1:
        if self.call != self.holder.call:
            raise StateError(
                f"state {self.descriptor.name!r}: the call that it was handed out in is over; ask the context of each "
                "call for it anew"
            )
        return 0

    cdef dict read(self):
        self.check_call()
        if self.ends:
            self.expire()
        return self.holder.read()

    cdef dict write(self):
        cdef dict values
        self.check_call()
        if not self.ends:
            values = self.holder.write()
            if self.lifetime in values:     # of an earlier version of the code
                del values[self.lifetime]
            return values
        self.expire()
        values = self.holder.read()
        born = self.holder.born(self.descriptor, None if values is None else values.get(self.lifetime))
        values = self.holder.write()
        values[self.lifetime] = born
        return values

    cdef int expire(self) except -1:
        """Removes the state if its time to live is over."""
        cdef dict values = self.holder.read()
        if values is not None and self.lifetime in values and self.holder.is_over(values[self.lifetime]):
            values = self.holder.write()
            values.pop(self.name, None)
            del values[self.lifetime]
        return 0

    cdef State again(self):
        """Returns another object for the same state."""
        cdef State state = type(self).__new__(type(self))
        state.holder = self.holder
        state.name = self.name
        state.descriptor = self.descriptor
        state.function = self.function
        state.ends, state.lifetime = self.ends, self.lifetime
        return state

    cdef object stored(self):
        cdef dict values = self.read()
        return None if values is None else values.get(self.name)

    cdef object merged(self, object a, object b):
        raise SpecError(f"state {self.descriptor.name!r}: {type(self).__name__} cannot be merged")

    def clear(self):
        """Removes what is stored."""
        cdef dict values = self.read()
        if values is not None and self.name in values:
            values = self.write()
            del values[self.name]
            values.pop(self.lifetime, None)

    def __repr__(self):
        return f"{type(self).__name__}({self.descriptor.name!r})"


cdef class ValueState(State):
    """One value. What ``value()`` returned and was changed in place is not saved without ``update()``."""

    def value(self):
        """Returns the value, or the descriptor's default."""
        cdef dict values = self.read()
        value = self.descriptor.default if values is None else values.get(self.name, self.descriptor.default)
        return given(value)

    def update(self, value):
        """Stores a value; None clears, as in Flink."""
        if value is None:
            self.clear()
        else:
            self.write()[self.name] = value


cdef class ListState(State):
    """A list of values. What is handed out is a copy."""

    def get(self):
        """Returns the values as a new list."""
        return [given(value) for value in self.stored() or ()]

    def add(self, value):
        """Appends a value."""
        self.write().setdefault(self.name, []).append(value)

    def add_all(self, values):
        """Appends values."""
        values = list(values)
        if values:      # else there is nothing to keep
            self.write().setdefault(self.name, []).extend(values)

    def update(self, values):
        """Replaces all values."""
        values = list(values)
        if values:
            self.write()[self.name] = values
        else:
            self.clear()

    cdef object merged(self, object a, object b):
        return a + b


cdef class MapState(State):
    """A map of values. What is handed out is a copy: use ``put()`` to save a changed value."""

    def get(self, key):
        """Returns the value of a key, or None."""
        return given((self.stored() or {}).get(key))

    def put(self, key, value):
        """Stores the value of a key."""
        self.write().setdefault(self.name, {})[key] = value

    def put_all(self, values):
        """Stores all entries of a mapping."""
        values = dict(values)
        if values:
            self.write().setdefault(self.name, {}).update(values)

    def remove(self, key):
        """Removes a key, if it is there."""
        entries = self.stored()
        if entries is None or key not in entries:
            return
        if len(entries) == 1:
            self.clear()        # an empty map would be kept for ever
        else:
            self.write()[self.name].pop(key)

    def contains(self, key):
        """Tells whether a key is there."""
        return key in (self.stored() or ())

    def keys(self):
        """Returns the keys as a list."""
        return list(self.stored() or ())

    def values(self):
        """Returns the values as a list."""
        return [given(value) for value in (self.stored() or {}).values()]

    def items(self):
        """Returns the entries as a list of pairs."""
        return [(key, given(value)) for key, value in (self.stored() or {}).items()]

    def is_empty(self):
        """Tells whether there is no entry."""
        return not self.stored()


cdef class ReducingState(State):
    """A value that others are reduced into. What is handed out is a copy."""

    def get(self):
        """Returns the value, None when empty."""
        return given(self.stored())

    def add(self, value):
        """Reduces a value into what is there."""
        cdef dict values = self.write()
        values[self.name] = self.function(values[self.name], value) if self.name in values else value

    cdef object merged(self, object a, object b):
        return self.function(a, b)


cdef class AggregatingState(State):
    """An accumulator."""

    def get(self):
        """Returns the result, None when empty."""
        cdef dict values = self.read()
        if values is None or self.name not in values:
            return None
        return given(self.function.get_result(values[self.name]))

    def add(self, value):
        """Adds a value to the accumulator."""
        cdef dict values = self.write()
        accumulator = values[self.name] if self.name in values else self.function.create_accumulator()
        values[self.name] = self.function.add(value, accumulator)

    cdef object merged(self, object a, object b):
        return self.function.merge(a, b)


cdef State new_state(object descriptor, StateHolder holder, str prefix):
    """Returns the state that a descriptor names, in a holder. Raises SpecError for what is no descriptor."""
    cdef State state
    function = None
    if isinstance(descriptor, ValueStateDescriptor):
        state = ValueState.__new__(ValueState)
    elif isinstance(descriptor, ListStateDescriptor):
        state = ListState.__new__(ListState)
    elif isinstance(descriptor, MapStateDescriptor):
        state = MapState.__new__(MapState)
    elif isinstance(descriptor, ReducingStateDescriptor):
        state = ReducingState.__new__(ReducingState)
        function = as_reduce_function(descriptor.reduce, "ReducingStateDescriptor").reduce
    elif isinstance(descriptor, AggregatingStateDescriptor):
        state = AggregatingState.__new__(AggregatingState)
        function = descriptor.aggregate
    else:
        raise SpecError(f"state: takes a descriptor such as ValueStateDescriptor('seen'), got {descriptor!r}")
    state.holder = holder
    state.name = prefix + descriptor.name
    state.descriptor = descriptor
    state.function = function
    state.ends, state.lifetime = descriptor.ttl is not None, "\0" + state.name
    return state
