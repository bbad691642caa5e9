# Windows of keys: one row for each (key, window), found by a hash of both; merging windows also in order of time.
cimport cython

from fastwin.core.timemath cimport MAX_TIME
from fastwin.core.typedefs cimport idx_t, int32_t, ts_t, uint32_t, uint64_t
from fastwin.core.memory.hashindex cimport HashIndex, stir
from fastwin.core.keys.keytable cimport KeyTable
from fastwin.core.rows.rowstore cimport Head, RowStore

cdef enum:
    HAS_CONTENTS = 1            # elements were added and not purged since
    IN_SET = 2                  # of a merging assigner: the window is one of its key's
    END_TIMER = 4               # an event timer at its last ms is registered
    CLEANUP_TIMER = 8           # the timer that cleans it is registered
    CLEANED = 16                # it is gone but for timers that its trigger left behind
    FIRED = 32                  # it has fired since its contents came
    ON_TIME = 64                # a timer has fired it after it had passed
    SAVED = 128                 # it is part of the last snapshot or delta
    TOUCHED = 256               # marked for one late firing at the end of the call
    PUBLISHED = 512             # its result is in the table that a changelog makes
    EMPTIES = 1024              # with TOUCHED: its contents go once it has fired
    PERSISTENT = HAS_CONTENTS | IN_SET | END_TIMER | CLEANUP_TIMER | CLEANED | FIRED | ON_TIME | PUBLISHED

cdef struct Window:
    Head head
    ts_t end                    # equal to the start for the global window
    uint32_t flags
    int32_t timers              # how many timers it has
    int32_t panes               # how often it has fired
    int32_t run                 # which run of elements it is still to be handed, from 1 on; 0: none

cdef struct Entry:              # of the index: a row, and the hash of its key and window
    idx_t slot
    uint32_t hash

cdef struct KeyWindows:         # of one key, in order of start; there is room in front of them and behind
    idx_t* block
    idx_t* slots                # in the block: the first one
    Py_ssize_t n, capacity


@cython.overflowcheck(False)    # else Cython counts bytes
cdef inline Py_ssize_t room_in_front(const KeyWindows* windows) noexcept nogil:
    """Returns for how many windows there is room in front of those of a key."""
    return windows.slots - windows.block

cdef inline bint is_global(const Window* window) noexcept nogil:
    return window.head.start == window.end

cdef inline ts_t last_ms(const Window* window) noexcept nogil:
    return MAX_TIME if window.head.start == window.end else window.end - 1


@cython.final
cdef class WindowTable:
    cdef readonly KeyTable keys
    cdef readonly RowStore rows
    cdef HashIndex index        # of entries
    cdef KeyWindows* sets       # by key id; merging windows only
    cdef Py_ssize_t sets_n
    cdef Py_ssize_t set_slots   # that all of them have room for
    cdef readonly Py_ssize_t filled     # rows that have contents
    cdef readonly list removed  # (key id, start, end) of saved rows that are gone; their keys are retained

    cdef void soon(self, uint32_t hash) noexcept nogil
    cdef idx_t sooner(self, uint32_t hash) noexcept nogil
    cdef idx_t find(self, idx_t key, ts_t start, ts_t end) noexcept
    cdef idx_t ensure(self, idx_t key, ts_t start, ts_t end) except -1
    cdef Py_ssize_t _place_of(self, idx_t key, ts_t start, ts_t end, uint32_t hash) noexcept nogil
    cdef idx_t ensure_hashed(self, idx_t key, ts_t start, ts_t end, uint32_t hash) except -1
    cdef int release(self, idx_t slot) except -1
    cdef int _grow(self) except -1
    cdef Py_ssize_t first_from(self, const KeyWindows* windows, ts_t start) noexcept
    cdef int make_room(self, KeyWindows* windows, bint in_front) except -1
    cdef int set_add(self, idx_t slot) except -1
    cdef void set_remove(self, idx_t slot) noexcept
    cdef Py_ssize_t first_touching(self, idx_t key, ts_t start) noexcept
    cdef KeyWindows* key_windows(self, idx_t key) except NULL

    cdef inline Window* at(self, idx_t slot) noexcept nogil:
        return <Window*> (self.rows.data + slot * self.rows.stride)

    cdef inline Window* living(self, idx_t slot) noexcept nogil:
        # What is in a slot; NULL for nothing.
        return self.at(slot) if slot < self.rows.top and self.rows.is_live(slot) else NULL

    cdef inline void fill(self, Window* window) noexcept nogil:
        # Says that a window has contents.
        self.filled += not window.flags & HAS_CONTENTS
        window.flags |= HAS_CONTENTS

    cdef inline void empty(self, Window* window) noexcept nogil:
        # Says that a window has none.
        self.filled -= (window.flags & HAS_CONTENTS) != 0
        window.flags &= ~<uint32_t> HAS_CONTENTS

    cdef inline Entry* _entry(self, Py_ssize_t at) noexcept nogil:
        return <Entry*> self.index.places + at

    cdef inline uint64_t hash_window(self, ts_t start, ts_t end) noexcept nogil:
        # The part of a hash that all keys of a window share.
        return stir(stir(self.index.start, <uint64_t> start, self.index.factor), <uint64_t> end, self.index.factor)

    cdef inline uint32_t hash_key(self, uint64_t window, idx_t key) noexcept nogil:
        return <uint32_t> stir(window, <uint64_t> key, self.index.factor)

    cdef inline uint32_t hashed(self, idx_t key, ts_t start, ts_t end) noexcept nogil:
        return self.hash_key(self.hash_window(start, end), key)
