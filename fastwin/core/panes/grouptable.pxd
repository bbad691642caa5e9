# One row for each (key, pane) of a bounded table: rows are only appended, and found by key and pane together.
from fastwin.core.typedefs cimport idx_t, int64_t, ts_t, uint8_t, uint32_t, uint64_t
from fastwin.core.accumulators.accumulator_set cimport AccumulatorSet
from fastwin.core.keys.keyblocks cimport KEYS_AT_ONCE, LENGTH_BYTES, KeyColumn, hash_keys, is_key, offset_of, store_key
from fastwin.core.memory.equal cimport are_one
from fastwin.core.memory.hashindex cimport HashIndex, stir
from fastwin.core.memory.tagindex cimport TagIndex, entry_of, no_entry, slot_in
from fastwin.core.panes.recentgroups cimport RecentGroups
from fastwin.core.panes.slices cimport NEAR_SLICES, Numbered, Slicer, divide, number_slices
from fastwin.core.rows.rowstore cimport RowStore
from fastwin.core.timemath cimport NO_TIME

cdef enum:
    BLOCK = KEYS_AT_ONCE        # rows found, then updated, while they are in the cache
    BLOCKS = 32                 # that are not divided by panes after one whose elements are in many
    WORD = 16                   # where the first word of a key lies in a row: in place of key id and link


cdef class GroupTable:
    cdef readonly AccumulatorSet accumulators
    cdef readonly RowStore rows
    cdef readonly tuple texts       # bool a key column: whether it is text, or int64
    cdef readonly bint ascending    # whether rows lie in order of their panes
    cdef Py_ssize_t width           # of a key, in columns
    cdef Py_ssize_t numbers         # columns of int64 among them: the word of the texts comes behind theirs
    cdef KeyColumn* columns         # those that are held
    cdef TagIndex index
    cdef HashIndex seed             # what hashes begin with; it has no places
    cdef ts_t* starts               # of panes by slot, once more: read in a row; in SessionGroups, ends of sessions
    cdef idx_t capacity             # of them
    cdef uint8_t* arena             # records of texts, in order of slots
    cdef int64_t used, room         # its bytes
    cdef Py_ssize_t waiting         # blocks until elements of one key are divided by panes again
    cdef RecentGroups recent        # rows of keys that fit into two words
    cdef ts_t dropped               # panes before it are gone, maybe not from memory

    cdef int reserve(self, Py_ssize_t n, int64_t text) except -1 nogil
    cdef void find_block(self, Py_ssize_t at, const idx_t* picked, Py_ssize_t n, const ts_t* starts,
                         const uint64_t* hashes, idx_t* slots) noexcept nogil
    cdef int find(self, Py_ssize_t at, Py_ssize_t n, bint one, const ts_t* starts, const idx_t* picked,
                  idx_t* slots) except -1 nogil
    cdef Py_ssize_t find_lately(self, Py_ssize_t at, Py_ssize_t n, Slicer* slicer, const ts_t* times, bint inside,
                                idx_t* slots) except -1 nogil
    cdef object cells_from(self, int first)
    cdef list keys_in(self, list words)
    cdef int close_up(self, idx_t* moved) except -1 nogil

    cdef inline idx_t append(self, Py_ssize_t i, ts_t start) noexcept nogil:
        """Returns the slot of a new row for key i; reserve() has made room."""
        cdef idx_t slot = self.rows.alloc(0, start)
        self.starts[slot] = start
        self.ascending = self.ascending and (slot == 0 or self.starts[slot - 1] <= start)
        self.used = store_key(self.columns, self.width, i, <char*> self.rows.head(slot) + WORD, self.arena, self.used)
        return slot

    cdef inline int64_t text_bytes(self, Py_ssize_t at, Py_ssize_t n) noexcept nogil:
        """Returns how many bytes the records of n keys take, at most."""
        cdef int64_t total = 0
        cdef Py_ssize_t c
        for c in range(self.width if self.numbers < self.width else 0):
            if self.columns[c].values == NULL:
                total += offset_of(self.columns + c, at + n) - offset_of(self.columns + c, at) + LENGTH_BYTES * n
        return total

    cdef inline void hash_block(self, Py_ssize_t at, Py_ssize_t n, const ts_t* starts, uint64_t* hashes) noexcept nogil:
        cdef uint64_t first
        cdef Py_ssize_t i
        if are_one(starts, n):
            first = stir(self.seed.start, <uint64_t> starts[0], self.seed.factor)
            for i in range(n):
                hashes[i] = first
        else:
            for i in range(n):
                hashes[i] = stir(self.seed.start, <uint64_t> starts[i], self.seed.factor)
        hash_keys(self.columns, self.width, at, n, self.seed.factor, hashes)

    cdef inline idx_t find_one(self, Py_ssize_t i, const ts_t* start, uint64_t h, bint guess) noexcept nogil:
        """Returns the slot of key i, a new one if there is none; see find_block(). guess: keys are not compared."""
        cdef uint64_t* places = self.index.places
        cdef uint64_t entry
        cdef Py_ssize_t place = h >> self.index.shift, mask = self.index.size - 1
        cdef const char* row
        while True:
            entry = places[place]
            if entry == no_entry():
                places[place] = entry_of(h, self.append(i, NO_TIME if start == NULL else start[0]))
                return slot_in(places[place])
            if (entry ^ h) >> 32 == 0:
                row = self.rows.data + slot_in(entry) * self.rows.stride
                if (start == NULL or (<const ts_t*> row)[1] == start[0]) and (
                        guess or is_key(self.columns, self.width, i, row + WORD, self.arena)):
                    return slot_in(entry)
            place = (place + 1) & mask

    cdef inline idx_t slot_of(self, Py_ssize_t at, ts_t start) except -1 nogil:
        """Returns the slot of one key and pane."""
        cdef uint64_t h
        self.reserve(1, self.text_bytes(at, 1))
        self.hash_block(at, 1, &start, &h)
        return self.find_one(at, &start, h, False)

    cdef inline int feed_key(self, Py_ssize_t at, Py_ssize_t n, Slicer* slicer, const ts_t* times, ts_t low,
                             ts_t high) except -1 nogil:
        """Adds elements of one key pane by pane, if they are in few; returns whether they are. So the values of a row
        are added in a run, and do not wait for each other. times: from low to high."""
        cdef idx_t[NEAR_SLICES][BLOCK] picked
        cdef idx_t[BLOCK] numbers, slots
        cdef idx_t[NEAR_SLICES] counts
        cdef Numbered found
        cdef idx_t pane, i
        self.waiting -= self.waiting > 0        # as long as elements are in many
        if self.waiting or not number_slices(slicer, times, n, low, high, numbers, &found):
            self.waiting = self.waiting or BLOCKS
            return False
        divide(numbers, n, found.first, found.last, picked, counts)
        for pane in range(found.first, found.last + 1):
            if counts[pane]:
                slots[0] = self.slot_of(at, found.starts[pane])
                for i in range(1, counts[pane]):
                    slots[i] = slots[0]
                self.accumulators.add_some(self.rows, slots, counts[pane], at, picked[pane])
        return True
