"""Keeper: what the parts of the general operator share: windows, timers, clocks, the current element, user state."""

import numpy as np

from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

from fastwin._typedefs cimport NONE, idx_t, int64_t, ts_t, uint8_t, uint32_t
from fastwin.core.memory cimport prefetch
from fastwin.core.timerqueue cimport TimerQueue
from fastwin.core.timersort cimport Timer
from fastwin.core.windowtable cimport CLEANUP_TIMER, END_TIMER, Window, WindowTable, is_global, last_ms
from fastwin.errors import SpecError, UserFunctionError
from fastwin.keyedstate cimport StateHolder
from fastwin.operators.objectfetch cimport PyObject, fetch_items, fetch_values, place_in
from fastwin.rowview cimport Row, Rows
from fastwin.windows import GlobalWindow, TimeWindow

cdef extern from *:
    bint add_overflows "__builtin_add_overflow"(ts_t a, ts_t b, ts_t* total) noexcept
    Py_ssize_t references "Py_REFCNT"(PyObject* counted) noexcept

cdef enum:
    ROW_AHEAD = 16              # timers whose rows are fetched, and so on
    OBJECT_AHEAD = 12
    INDEX_AHEAD = 8
    ITEMS_AHEAD = 8
    VALUES_AHEAD = 4

cdef ts_t MAX_TIME = 0x7fffffffffffffff
cdef ts_t NO_TIME = -MAX_TIME - 1


cdef ts_t plus(ts_t a, ts_t b) except? -2:
    """Returns a + b; raises SpecError if it does not fit in int64."""
    cdef ts_t total
    if add_overflows(a, b, &total):
        raise SpecError(f"window: a bound past int64: {a} + {b} ms")
    return total


cdef class Keeper:
    """Windows, timers, clocks and state of one general operator.

    table: the rows. codec: of the keys. lateness: ms. event_time: whether the assigner's windows pass with the
    watermark.
    """

    def __init__(self, WindowTable table not None, codec, ts_t lateness, bint event_time):
        self.table = table
        self.codec = codec
        self.lateness = lateness
        self.event_time = event_time
        self.event_timers = TimerQueue()
        self.processing_timers = TimerQueue()
        self.watermark = self.cleaned = NO_TIME
        self.contents = []
        self.saved_lists = {}
        self.states = []
        self.key_states = {}
        self.dirty_keys = set()
        self.key_values = {}
        self.row_at = NONE

    def __dealloc__(self):
        free(self.merged)

    cdef ts_t cleanup_time(self, const Window* window) noexcept:
        """Returns when a window goes; int64 max: never."""
        cdef ts_t last = last_ms(window), time
        if not self.event_time:
            return last
        return MAX_TIME if add_overflows(last, self.lateness, &time) else time

    cdef bint passed(self, const Window* window) noexcept:
        """Tells whether the watermark says that a window is gone."""
        return self.event_time and (self.cleanup_time(window) <= self.watermark or last_ms(window) <= self.cleaned)

    cdef uint32_t _mark(self, const Window* window, ts_t time, bint event) noexcept:
        # The bit of a row that says that this timer is registered; 0 for timers without one.
        if event == self.event_time and time == self.cleanup_time(window):
            return CLEANUP_TIMER
        return END_TIMER if event and time == last_ms(window) else 0

    cdef int register_event(self, idx_t slot, ts_t time) except -1:
        cdef Window* window = self.at(slot)
        cdef uint32_t mark = self._mark(window, time, True)
        if window.flags & mark:
            return 0
        if self.final and (is_global(window) or time > last_ms(window)):
            return 0            # the last watermark would go on for ever
        window.flags |= mark
        if self.event_timers.add(time, window.head.key, slot):
            window.timers += 1
            self._changed(slot, time, mark, 0)
        return 0

    cdef int register_processing(self, idx_t slot, ts_t time) except -1:
        cdef Window* window = self.at(slot)
        cdef uint32_t mark = self._mark(window, time, False)
        if window.flags & mark:
            return 0
        if self.final and (is_global(window) or time > last_ms(window)):
            return 0
        window.flags |= mark
        if self.processing_timers.add(time, window.head.key, slot):
            window.timers += 1
            self._changed(slot, time, mark, 1)
        return 0

    cdef int delete_event(self, idx_t slot, ts_t time) except -1:
        cdef Window* window = self.at(slot)
        cdef uint32_t mark = self._mark(window, time, True)
        if mark and not window.flags & mark:
            return 0
        window.flags &= ~mark
        if self.event_timers.discard(time, window.head.key, slot):
            window.timers -= 1
            self._changed(slot, time, mark, 0)
        return 0

    cdef int delete_processing(self, idx_t slot, ts_t time) except -1:
        cdef Window* window = self.at(slot)
        cdef uint32_t mark = self._mark(window, time, False)
        if mark and not window.flags & mark:
            return 0
        window.flags &= ~mark
        if self.processing_timers.discard(time, window.head.key, slot):
            window.timers -= 1
            self._changed(slot, time, mark, 1)
        return 0

    cdef int _changed(self, idx_t slot, ts_t time, uint32_t mark, int kind) except -1:
        self.table.rows.mark(slot)
        if not mark and self.journal is not None:
            self.journal.append((slot, time, kind))
        return 0

    cdef int register_cleanup(self, idx_t slot) except -1:
        cdef Window* window = self.at(slot)
        cdef ts_t time
        if window.flags & CLEANUP_TIMER:
            return 0
        time = self.cleanup_time(window)
        if time == MAX_TIME:
            return 0
        return self.register_event(slot, time) if self.event_time else self.register_processing(slot, time)

    cdef int delete_cleanup(self, idx_t slot) except -1:
        cdef ts_t time = self.cleanup_time(self.at(slot))
        if time == MAX_TIME:
            return 0
        return self.delete_event(slot, time) if self.event_time else self.delete_processing(slot, time)

    def restore_timer(self, idx_t slot, ts_t time, int kind, bint alive):
        """Registers or deletes a timer for a restore; kind: 0 event time, 1 processing time."""
        if alive:
            self.register_processing(slot, time) if kind else self.register_event(slot, time)
        else:
            self.delete_processing(slot, time) if kind else self.delete_event(slot, time)

    def drop_marked(self, const idx_t[::1] slots not None):
        """Deletes the timers that marks in the rows tell of."""
        cdef Py_ssize_t i
        for i in range(slots.shape[0]):
            if self.at(slots[i]).flags & END_TIMER:
                self.delete_event(slots[i], last_ms(self.at(slots[i])))
            if self.at(slots[i]).flags & CLEANUP_TIMER:
                self.delete_cleanup(slots[i])

    def restore_marked(self, const idx_t[::1] slots not None, const int64_t[::1] flags not None, bint at_end=False):
        """Registers the timers that saved flags tell of.

        at_end: windows were cleaned at their ends when the flags were saved, and now are later: one timer was for both.
        """
        cdef Py_ssize_t i
        for i in range(slots.shape[0]):
            if flags[i] & END_TIMER or (at_end and flags[i] & CLEANUP_TIMER):
                self.register_event(slots[i], last_ms(self.at(slots[i])))
            if flags[i] & CLEANUP_TIMER:
                self.register_cleanup(slots[i])

    def unmarked(self, const uint8_t[::1] wanted not None):
        """Returns the timers of wanted rows, uint8[rows], that no marks in these tell of: (slot, time, kind) each.

        O(timers log timers), of all rows.
        """
        cdef Py_ssize_t i
        cdef int kind
        cdef const int64_t[::1] times, slots
        found = []
        for kind in range(2):
            at, _, owners = (self.processing_timers if kind else self.event_timers).timers()
            times, slots = at, owners
            for i in range(times.shape[0]):
                if wanted[slots[i]] and not self._mark(self.at(<idx_t> slots[i]), times[i], not kind):
                    found.append((slots[i], times[i], kind))
        return found

    def has_timer(self, idx_t slot, ts_t time, int kind):
        """Tells whether a row has a timer."""
        cdef TimerQueue timers = self.processing_timers if kind else self.event_timers
        return timers.contains(time, self.at(slot).head.key, slot)

    def marks(self, idx_t slot):
        """Returns the timers that the marks of a row tell of, and how many it has at all."""
        cdef Window* window = self.at(slot)
        told = []
        if window.flags & END_TIMER:
            told.append((last_ms(window), 0))
        if window.flags & CLEANUP_TIMER:
            told.append((self.cleanup_time(window), 0 if self.event_time else 1))
        return told, window.timers

    cdef void _fetch(self, TimerQueue timers) noexcept:
        """Fetches the rows of timers that are next but a few, their places in the index, and their Python contents."""
        cdef const Timer* timer = timers.coming(ROW_AHEAD)
        cdef Window* window
        cdef PyObject** place
        if timer != NULL:
            prefetch(self.at(<idx_t> timer.namespace))
            prefetch(<char*> self.at(<idx_t> timer.namespace) + self.table.rows.stride - 1)
            prefetch(place_in(self.contents, <idx_t> timer.namespace))
            prefetch(place_in(self.states, <idx_t> timer.namespace))
            timers.soon(timer)
        timer = timers.coming(OBJECT_AHEAD)
        if timer != NULL:
            place = place_in(self.contents, <idx_t> timer.namespace)
            if place != NULL:
                prefetch(place[0])
        timer = timers.coming(ITEMS_AHEAD)
        if timer != NULL:
            place = place_in(self.contents, <idx_t> timer.namespace)
            if place != NULL:
                fetch_items(place[0])
        timer = timers.coming(VALUES_AHEAD)
        if timer != NULL:
            place = place_in(self.contents, <idx_t> timer.namespace)
            if place != NULL:
                fetch_values(place[0])
        timer = timers.coming(INDEX_AHEAD)
        if timer != NULL and timer.namespace < self.table.rows.top:
            window = self.at(<idx_t> timer.namespace)
            self.table.soon(window.head.key, window.head.start, window.end)

    cdef bint take_due(self, bint event, ts_t until, Timer* timer) except -1:
        """Takes out the first timer at or before ``until``; returns False if there is none."""
        cdef TimerQueue timers = self.event_timers if event else self.processing_timers
        cdef Window* window
        cdef uint32_t mark
        cdef idx_t slot
        if not timers.next_due(until, timer):
            return False
        self._fetch(timers)
        slot = <idx_t> timer.namespace
        window = self.at(slot)
        mark = self._mark(window, timer.time, event)
        window.flags &= ~mark
        window.timers -= 1
        self._changed(slot, timer.time, mark, not event)
        return True

    cdef int fit(self, idx_t slot) except -1:
        """Makes the lists by slot long enough."""
        cdef Py_ssize_t more = self.table.rows.capacity - len(self.contents)
        if more > 0:
            self.contents.extend([None] * more)
            self.states.extend([None] * more)
        return 0

    cdef int hold_merged(self, const idx_t* slots, Py_ssize_t n) except -1:
        """Makes these the windows that on_merge() merges."""
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

    def hold_slots(self, slots):
        """The same, for a sequence."""
        cdef const idx_t[::1] held = np.array(slots, dtype=np.int32)
        self.hold_merged(&held[0], held.shape[0])

    def begin(self, Rows rows):
        """Makes rows (None: none) the current elements, and forgets what was looked up for others."""
        self.rows = rows
        self.row_at = NONE
        self.row = None
        self.key_values = {}

    cdef Row element(self, Py_ssize_t i):
        """Returns the row of element i."""
        if i != self.row_at:
            if self.row is not None and references(<PyObject*> self.row) == 1:
                self.row.i = i          # nobody has kept the one before
            else:
                self.row = self.rows.row(i)
            self.row_at = i
        return self.row

    cdef object window_object(self, ts_t start, ts_t end):
        """Returns the window as user code sees it."""
        if self.cached_window is None or start != self.cached_start or end != self.cached_end:
            self.cached_window = GlobalWindow() if start == end else TimeWindow(start, end)
            self.cached_start = start
            self.cached_end = end
        return self.cached_window

    cdef object window_of(self, idx_t slot):
        cdef Window* window = self.at(slot)
        return self.window_object(window.head.start, window.end)

    def known_keys(self, ids):
        """Looks up the values of many keys at once; ids: int32[n]."""
        ids = np.unique(ids)
        columns = [column.to_pylist() for column in self.codec.decode(self.table.keys, ids)]
        values = columns[0] if len(columns) == 1 else list(zip(*columns)) if columns else [()] * len(ids)
        self.key_values.update(zip(ids.tolist(), values))

    cdef object key_value(self, idx_t key):
        """Returns the value of a key, a tuple for several columns."""
        cdef Py_ssize_t i
        cdef list ids
        value = self.key_values.get(key, self)
        if value is self:
            ids = [key]
            for timers in (self.event_timers, self.processing_timers):      # those whose turn comes soon
                for i in range(self._soon(timers)):
                    ids.append((<TimerQueue> timers).due[(<TimerQueue> timers).due_at + i].key)
            self.known_keys(np.array(ids, dtype=np.int32))
            value = self.key_values[key]
        return value

    cdef Py_ssize_t _soon(self, TimerQueue timers) noexcept:
        return min(timers.due_n - timers.due_at, 4096)

    cdef object blame(self, object what, object where, problem):
        """Returns the error to raise for a problem in user code; where: the slot of the window, or words."""
        if isinstance(problem, UserFunctionError):
            return problem
        if isinstance(where, int):
            where = self.where(where)
        return UserFunctionError(f"{what}: for {where}: {type(problem).__name__}: {problem}")

    def key_and_window(self, idx_t slot):
        """Returns the key and the window of a row as user code sees them."""
        return self.key_value(self.at(slot).head.key), self.window_of(slot)

    def where(self, idx_t slot):
        """Returns the key and the window of a row in words."""
        key, window = self.key_and_window(slot)
        return f"key {key!r}, {window}"

    def blame_words(self, what, where, problem):
        """Returns the error to raise for a problem in user code; where: in words."""
        return self.blame(what, where, problem)

    def fit_all(self):
        """Makes the lists by slot long enough for all rows."""
        self.fit(self.table.rows.top)

    def set_key_state(self, idx_t key, values):
        """Sets the user state of a key, for a restore; None: it has none."""
        if values:
            self.table.keys.retain(key)         # first, so that the id does not go with what the key had before
        self.forget_key_state(key)
        if values:
            self.key_states[key] = values

    def forget_key_state(self, idx_t key):
        """Drops the user state of a key, if it has any."""
        if self.key_states.pop(key, None) is not None:
            self.table.keys.release(key)

    def saved_keys(self):
        """Remembers that all per-key state is saved as it stands."""
        for key in self.dirty_keys:
            self.table.keys.release(key)
        self.dirty_keys = set()


cdef class WindowStates(StateHolder):
    """The user state of one window at a time."""

    def __init__(self, Keeper keeper not None):
        self.keeper = keeper
        self.slot = NONE

    cdef dict read(self):
        return self.keeper.states[self.slot] if self.slot < len(self.keeper.states) else None

    cdef dict write(self):
        cdef Keeper keeper = self.keeper
        keeper.fit(self.slot)
        values = keeper.states[self.slot]
        if values is None:
            values = {}
            keeper.states[self.slot] = values
        keeper.table.rows.mark(self.slot)
        return <dict> values


cdef class KeyStates(StateHolder):
    """The user state of one key at a time; a key that has some is retained."""

    def __init__(self, Keeper keeper not None):
        self.keeper = keeper
        self.key = NONE

    cdef dict read(self):
        return self.keeper.key_states.get(self.key)

    cdef dict write(self):
        cdef Keeper keeper = self.keeper
        values = keeper.key_states.get(self.key)
        if values is None:
            values = {}
            keeper.key_states[self.key] = values
            keeper.table.keys.retain(self.key)
        if self.key not in keeper.dirty_keys:
            keeper.dirty_keys.add(self.key)
            keeper.table.keys.retain(self.key)
        return <dict> values
