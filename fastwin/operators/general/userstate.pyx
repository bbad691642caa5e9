"""UserState: what user code keeps for each window and each key; and where state objects find it."""

from fastwin.core.timemath cimport NO_TIME
from fastwin.core.typedefs cimport NONE, idx_t, ts_t
from fastwin.core.windows.timerservice cimport TimerService
from fastwin.core.windows.windowtable cimport Window, WindowTable, is_global, last_ms
from fastwin.errors import SpecError
from fastwin.functions.keyedstate cimport StateHolder
from fastwin.operators.general.lifetimes import Lifetime, Lifetimes, lifetimes_of


cdef class UserState:
    """What user code keeps: for each window, and for each key.

    table: the rows of the windows. A key that has state is retained.
    """

    def __init__(self, WindowTable table not None):
        self.table = table
        self.windows = []
        self.keys = {}
        self.dirty_keys = set()
        self.touched = set()
        self.lifetimes = Lifetimes(False), Lifetimes(True)

    cdef int fit(self) except -1:
        """Makes the list by slot long enough."""
        cdef Py_ssize_t more = self.table.rows.capacity - len(self.windows)
        if more > 0:
            self.windows.extend([None] * more)
        return 0

    def fit_all(self):
        """Makes the list by slot long enough for all rows."""
        self.fit()

    def set_key(self, idx_t key, values):
        """Sets the state of a key, for a restore; None: it has none."""
        if values:
            self.table.keys.retain(key)         # first, so that the id does not go with what the key had before
        self.forget_key(key)
        if values:
            self.keys[key] = values
            for lifetime in lifetimes_of(values):
                self.lifetimes[lifetime.event].look_at(key, lifetime.end)

    def forget_key(self, idx_t key):
        """Drops the state of a key, if it has any."""
        if self.keys.pop(key, None) is not None:
            self.table.keys.release(key)
            for lifetimes in self.lifetimes:
                lifetimes.forget(key)

    def change_key(self, idx_t key):
        """Notes that the state of a key has changed since the last snapshot or delta, and since the last call."""
        self.touched.add(key)
        if key not in self.dirty_keys:
            self.dirty_keys.add(key)
            self.table.keys.retain(key)

    def settle(self):
        """Drops the state of the keys that the last call has left without any. O(keys whose state it has changed)."""
        for key in self.touched:
            values = self.keys.get(key)
            if values is not None and not values:
                self.forget_key(key)
        self.touched.clear()

    def expire(self, bint event, ts_t now):
        """Removes what is over of the keys' state, on one clock. O(log keys) for each key that is looked at."""
        for key in self.lifetimes[event].due(now):
            changed, again = self.lifetimes[event].expire(self.keys[key], now)
            if changed:
                self.change_key(key)
            if again is not None:
                self.lifetimes[event].look_at(key, again)

    def next_time(self, bint event, timer):
        """Returns the earlier of the time of a timer and when state of a key is over; None: there is neither."""
        over = self.lifetimes[event].first()
        return over if timer is None or (over is not None and over < timer) else timer

    def saved_keys(self):
        """Remembers that all state of keys is saved as it stands."""
        for key in self.dirty_keys:
            self.table.keys.release(key)
        self.dirty_keys = set()


cdef class WindowStates(StateHolder):
    """The user state of one window at a time."""

    def __init__(self, UserState state not None):
        self.state = state
        self.slot = NONE

    cdef dict read(self):
        return self.state.windows[self.slot] if self.slot < len(self.state.windows) else None

    cdef dict write(self):
        cdef UserState state = self.state
        if self.slot >= len(state.windows):
            state.fit()
        values = state.windows[self.slot]
        if values is None:
            values = {}
            state.windows[self.slot] = values
        state.table.rows.mark(self.slot)
        return <dict> values


cdef class KeyStates(StateHolder):
    """The user state of one key at a time. timers: the clocks."""

    def __init__(self, UserState state not None, TimerService timers not None):
        self.state = state
        self.timers = timers
        self.key = self.slot = NONE

    cdef dict read(self):
        return self.state.keys.get(self.key)

    cdef dict write(self):
        cdef UserState state = self.state
        values = state.keys.get(self.key)
        if values is None:
            values = {}
            state.keys[self.key] = values
            state.table.keys.retain(self.key)
        state.change_key(self.key)
        return <dict> values

    cdef ts_t now(self, object name, bint event) except? -2:
        """Returns the time of the call that runs, on one clock. name: of the state, for the error."""
        cdef Window* window = self.timers.at(self.slot)
        if not event:
            return self.timers.clock
        if is_global(window):
            return self.timers.watermark
        if not self.timers.event_time:
            raise SpecError(f"state {name!r}: these windows pass with the clock; a ttl takes ttl_time='processing'")
        return last_ms(window)

    cdef tuple born(self, object descriptor, tuple kept):
        cdef bint event = descriptor.ttl_time == "event"
        cdef ts_t written = self.now(descriptor.name, event)
        if kept is not None and written != NO_TIME:
            last = Lifetime(*kept)
            if last.event == event:
                written = max(written, last.written)    # windows may fire in another order than they end
        lifetime = Lifetime(written, descriptor.ttl_ms, event)
        self.state.lifetimes[event].look_at(self.key, lifetime.end)
        return tuple(lifetime)

    cdef bint is_over(self, tuple lifetime) except -1:
        kept = Lifetime(*lifetime)
        return kept.written != NO_TIME and kept.end <= self.now("", kept.event)
