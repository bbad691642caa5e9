"""WindowTable: the rows of all (key, window) pairs."""

import numpy as np

from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memmove, memset

from fastwin.core.typedefs cimport NONE, idx_t, int64_t, ts_t, uint32_t
from fastwin.core.keys.keytable cimport KeyTable
from fastwin.core.memory.hashindex cimport (
    count_places, farthest, first_place, free_index, next_place, place_index, resize_index, seed_index, take_out)
from fastwin.core.memory.pages cimport prefetch
from fastwin.core.rows.rowstore cimport RowStore

HEAD_CELLS = sizeof(Window) // 8
END_CELL = sizeof(Head) // 8         # where a row holds its window's end

cdef enum:
    FIRST_INDEX = 64


cdef uint64_t hash_in_place(const void* _owner, const void* place) noexcept nogil:
    return (<const Entry*> place).hash


cdef class WindowTable:
    """Rows by (key id, window start, window end).

    keys: the KeyTable whose ids the rows hold and retain. blank: int64[cells], what a fresh row holds, HEAD_CELLS
    of head first. owned: which of them own a block.
    """

    def __cinit__(self, KeyTable keys not None, blank, owned=()):
        self.keys = keys
        self.rows = RowStore(blank, owned)
        self.removed = []
        seed_index(&self.index)

    def __dealloc__(self):
        cdef Py_ssize_t i
        for i in range(self.sets_n):
            free(self.sets[i].block)
        free(self.sets)
        free_index(&self.index)

    def __len__(self):
        return self.rows.live

    @property
    def nbytes(self):
        """Bytes allocated, the keys left out. O(1)."""
        cdef Py_ssize_t sets = self.sets_n * sizeof(KeyWindows) + self.set_slots * sizeof(idx_t)
        return self.rows.nbytes + self.index.size * sizeof(Entry) + sets

    def place(self, bint in_file):
        """Moves rows and the index, the keys left out, to files or back to memory, see memory/regions.

        Returns their bytes in files. O(bytes) where they move.
        """
        return self.rows.place(in_file) + place_index(&self.index, sizeof(Entry), in_file)

    cdef int _grow(self) except -1:
        cdef Py_ssize_t size = 2 * self.index.size if self.index.size else FIRST_INDEX
        if not resize_index(&self.index, sizeof(Entry), size, hash_in_place, NULL):
            raise MemoryError(f"WindowTable: no memory for an index of {size}")
        return 0

    cdef void soon(self, uint32_t hash) noexcept nogil:
        """Fetches the place in the index of a window that will be asked for."""
        if self.index.size:
            prefetch(self._entry(first_place(&self.index, hash)))

    cdef idx_t sooner(self, uint32_t hash) noexcept nogil:
        """Fetches the row of a window that is about to be asked for; returns its slot, or NONE."""
        cdef Py_ssize_t at
        cdef char* row
        if self.index.size == 0:
            return NONE
        at = first_place(&self.index, hash)
        while self._entry(at).slot != NONE:
            if self._entry(at).hash == hash:
                row = <char*> self.at(self._entry(at).slot)
                prefetch(row)
                prefetch(row + self.rows.stride - 1)
                return self._entry(at).slot
            at = next_place(&self.index, at)
        return NONE

    cdef Py_ssize_t _place_of(self, idx_t key, ts_t start, ts_t end, uint32_t hash) noexcept nogil:
        """Returns where a window is in the index, which is there, or the empty place where looking for it ends."""
        cdef Py_ssize_t at = first_place(&self.index, hash)
        cdef const Window* window
        while self._entry(at).slot != NONE:
            if self._entry(at).hash == hash:
                window = self.at(self._entry(at).slot)
                if window.head.start == start and window.head.key == key and window.end == end:
                    break
            at = next_place(&self.index, at)
        return at

    cdef idx_t find(self, idx_t key, ts_t start, ts_t end) noexcept:
        """Returns the slot of a window, or NONE. O(1) expected."""
        if self.index.size == 0:
            return NONE
        return self._entry(self._place_of(key, start, end, self.hashed(key, start, end))).slot

    cdef idx_t ensure(self, idx_t key, ts_t start, ts_t end) except -1:
        """Returns the slot of a window, a fresh row where there was none, and marks it dirty. O(1) expected."""
        return self.ensure_hashed(key, start, end, self.hashed(key, start, end))

    cdef idx_t ensure_hashed(self, idx_t key, ts_t start, ts_t end, uint32_t hash) except -1:
        """The same for a window whose hash is known."""
        cdef Py_ssize_t at
        cdef idx_t slot
        if 2 * (self.rows.live + 1) > self.index.size:
            self._grow()
        at = self._place_of(key, start, end, hash)
        slot = self._entry(at).slot
        if slot != NONE:
            self.rows.mark(slot)
            return slot
        self.rows.reserve(1)
        slot = self.rows.alloc(key, start)
        self.at(slot).end = end
        self.keys.retain(key)
        self._entry(at).slot, self._entry(at).hash = slot, hash
        return slot

    cdef int release(self, idx_t slot) except -1:
        """Frees a row that is in no set; one that was saved is remembered as removed."""
        cdef Window* window = self.at(slot)
        cdef idx_t key = window.head.key
        cdef Py_ssize_t at = first_place(&self.index, self.hashed(key, window.head.start, window.end))
        while self._entry(at).slot != slot:
            at = next_place(&self.index, at)
        take_out(&self.index, sizeof(Entry), at, hash_in_place, NULL)
        if window.flags & SAVED:
            self.removed.append((key, window.head.start, window.end))    # and keeps the key retained
        else:
            self.keys.release(key)
        self.rows.release(slot)
        return 0

    cdef KeyWindows* key_windows(self, idx_t key) except NULL:
        """Returns the merging windows of a key."""
        cdef Py_ssize_t need
        cdef void* moved
        if key >= self.sets_n:
            need = max(<Py_ssize_t> self.keys.capacity, <Py_ssize_t> key + 1)
            moved = realloc(self.sets, need * sizeof(KeyWindows))
            if moved == NULL:
                raise MemoryError(f"WindowTable: no memory for the windows of {need} keys")
            self.sets = <KeyWindows*> moved
            memset(self.sets + self.sets_n, 0, (need - self.sets_n) * sizeof(KeyWindows))
            self.sets_n = need
        return self.sets + key

    cdef Py_ssize_t first_touching(self, idx_t key, ts_t start) noexcept:
        """Returns the position of the key's first window with end >= start, if its windows do not overlap. O(log n)."""
        cdef KeyWindows* windows = self.sets + key
        cdef Py_ssize_t low = 0, high = windows.n, middle
        if high and self.at(windows.slots[high - 1]).end < start:
            return high
        while low < high:
            middle = (low + high) >> 1
            if self.at(windows.slots[middle]).end < start:
                low = middle + 1
            else:
                high = middle
        return low

    cdef Py_ssize_t first_from(self, const KeyWindows* windows, ts_t start) noexcept:
        """Returns the position of a key's first window that starts at or after a time. O(log n)."""
        cdef Py_ssize_t low = 0, high = windows.n, middle
        if high and self.at(windows.slots[high - 1]).head.start < start:
            return high
        while low < high:
            middle = (low + high) >> 1
            if self.at(windows.slots[middle]).head.start < start:
                low = middle + 1
            else:
                high = middle
        return low

    cdef int make_room(self, KeyWindows* windows, bint in_front) except -1:
        """Makes room for one more in front of a key's windows, or behind them. Amortised O(1)."""
        cdef Py_ssize_t capacity = windows.capacity, other
        cdef idx_t* block = windows.block
        cdef idx_t* slots
        if capacity < 2 * windows.n + 2:
            capacity = max(2 * capacity, 4)
            block = <idx_t*> malloc(capacity * sizeof(idx_t))
            if block == NULL:
                raise MemoryError(f"WindowTable: no memory for {capacity} windows of a key")
        other = (capacity - windows.n) // 4             # at the other end something may come as well
        slots = block + (capacity - windows.n - other if in_front else other)
        if windows.n:
            memmove(slots, windows.slots, windows.n * sizeof(idx_t))
        if block != windows.block:
            free(windows.block)
        self.set_slots += capacity - windows.capacity
        windows.block, windows.slots, windows.capacity = block, slots, capacity
        return 0

    cdef int set_add(self, idx_t slot) except -1:
        """Makes a row one of its key's merging windows. O(log n) for the first or last, amortised; else O(n)."""
        cdef Window* window = self.at(slot)
        cdef KeyWindows* windows = self.key_windows(window.head.key)
        cdef Py_ssize_t at = self.first_from(windows, window.head.start), front = room_in_front(windows)
        cdef bint in_front = 2 * at < windows.n
        while at < windows.n and self.at(windows.slots[at]).head.start == window.head.start:
            at += 1
        if (front if in_front else windows.capacity - front - windows.n) == 0:
            self.make_room(windows, in_front)
        if in_front:
            windows.slots -= 1
            memmove(windows.slots, windows.slots + 1, at * sizeof(idx_t))
        else:
            memmove(windows.slots + at + 1, windows.slots + at, (windows.n - at) * sizeof(idx_t))
        windows.slots[at] = slot
        windows.n += 1
        window.flags |= IN_SET
        return 0

    cdef void set_remove(self, idx_t slot) noexcept:
        """Takes a row out of its key's merging windows. O(log n) for the first or last; else O(n)."""
        cdef Window* window = self.at(slot)
        cdef KeyWindows* windows = self.sets + window.head.key
        cdef Py_ssize_t at = self.first_from(windows, window.head.start)
        while windows.slots[at] != slot:
            at += 1
        if 2 * at < windows.n:
            memmove(windows.slots + 1, windows.slots, at * sizeof(idx_t))
            windows.slots += 1
        else:
            memmove(windows.slots + at, windows.slots + at + 1, (windows.n - at - 1) * sizeof(idx_t))
        windows.n -= 1
        window.flags &= ~<uint32_t> IN_SET
        if windows.n == 0:
            free(windows.block)
            windows.block = windows.slots = NULL
            self.set_slots -= windows.capacity
            windows.capacity = 0

    def saved(self, const idx_t[::1] slots not None):
        """Remembers that the rows are saved as they stand, and that all removals are."""
        cdef Py_ssize_t i
        for i in range(slots.shape[0]):
            self.at(slots[i]).flags |= SAVED
        self._forget_removed()
        self.rows.clear_dirty()

    def unsaved(self):
        """Forgets what was saved: no row counts as saved, and no removal is remembered. O(rows)."""
        cdef idx_t slot
        for slot in self.rows.slots():
            self.at(slot).flags &= ~<uint32_t> SAVED
        self._forget_removed()

    def _forget_removed(self):
        for key, _, _ in self.removed:
            self.keys.release(key)
        self.removed = []

    def lookup(self, const idx_t[::1] keys not None, const int64_t[::1] starts not None,
               const int64_t[::1] ends not None):
        """Returns the slots of windows, -1 for those that are not there: int32[n]."""
        cdef Py_ssize_t i
        out = np.empty(keys.shape[0], dtype=np.int32)
        cdef idx_t[::1] slots = out
        for i in range(keys.shape[0]):
            slots[i] = self.find(keys[i], starts[i], ends[i])
        return out

    def insert(self, const idx_t[::1] keys not None, const int64_t[::1] starts not None,
               const int64_t[::1] ends not None):
        """Returns the slots of windows, fresh rows where there was none: int32[n]."""
        cdef Py_ssize_t i
        out = np.empty(keys.shape[0], dtype=np.int32)
        cdef idx_t[::1] slots = out
        for i in range(keys.shape[0]):
            slots[i] = self.ensure(keys[i], starts[i], ends[i])
        return out

    def flags(self, const idx_t[::1] slots not None):
        """Returns the flags of rows that are part of the state: int64[n]."""
        return self.rows.cells(slots, 4) & np.int64(PERSISTENT)

    def was_saved(self, idx_t slot):
        """Tells whether a row was part of the last snapshot or of a delta since."""
        return (self.at(slot).flags & SAVED) != 0

    def panes(self, const idx_t[::1] slots not None):
        """Returns how often each window has fired: int64[n]."""
        cdef Py_ssize_t i
        out = np.empty(slots.shape[0], dtype=np.int64)
        cdef int64_t[::1] view = out
        for i in range(slots.shape[0]):
            view[i] = self.at(slots[i]).panes
        return out

    def restore_heads(self, const idx_t[::1] slots not None, const int64_t[::1] flags not None,
                      const int64_t[::1] panes not None):
        """Sets flags and panes of rows that a restore has inserted, and puts merging ones into their sets."""
        cdef Py_ssize_t i
        cdef Window* window
        for i in range(slots.shape[0]):
            window = self.at(slots[i])
            if window.flags & IN_SET:
                self.set_remove(slots[i])
            self.filled += ((flags[i] & HAS_CONTENTS) != 0) - ((window.flags & HAS_CONTENTS) != 0)
            # Timer marks are set when the timers are.
            window.flags = (window.flags & ~<uint32_t> PERSISTENT) | (
                <uint32_t> flags[i] & PERSISTENT & ~<uint32_t> (IN_SET | END_TIMER | CLEANUP_TIMER))
            window.panes = <int32_t> panes[i]
            if flags[i] & IN_SET:
                self.set_add(slots[i])

    def _farthest(self):
        """Returns how many rows are passed over, at most, before one is found. O(rows)."""
        return farthest(&self.index, sizeof(Entry), hash_in_place, NULL)

    def _check(self):
        """Raises AssertionError where an invariant does not hold. O(rows)."""
        cdef idx_t slot, key
        cdef Py_ssize_t i, indexed = count_places(&self.index, sizeof(Entry)), in_sets = 0, marked = 0
        cdef Py_ssize_t filled = 0, room = 0
        cdef KeyWindows* windows
        self.rows._check()
        self.keys._check()
        assert indexed == self.rows.live, f"{indexed} rows in the index, {self.rows.live} in the store"
        for slot in self.rows.slots():
            window = self.at(slot)
            assert self.find(window.head.key, window.head.start, window.end) == slot, f"row {slot} cannot be found"
            marked += (window.flags & IN_SET) != 0
            filled += (window.flags & HAS_CONTENTS) != 0
        for key in range(self.sets_n):
            windows = self.sets + key
            in_sets += windows.n
            room += windows.capacity
            for i in range(windows.n):
                assert self.at(windows.slots[i]).head.key == key, f"row {windows.slots[i]} is in the set of key {key}"
                assert self.at(windows.slots[i]).flags & IN_SET, f"row {windows.slots[i]} is in a set and not marked"
                assert i == 0 or self.at(windows.slots[i - 1]).head.start <= self.at(windows.slots[i]).head.start
            assert 0 <= room_in_front(windows) <= windows.capacity - windows.n, f"key {key}: beside its block"
        assert filled == self.filled, f"{filled} rows have contents, {self.filled} were counted"
        assert room == self.set_slots, f"sets have room for {room} rows, {self.set_slots} were counted"
        assert in_sets == marked, f"{in_sets} rows in sets, {marked} marked"
