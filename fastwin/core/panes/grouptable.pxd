# One row for each (key, pane) of a bounded table: rows are only appended, and found by key and pane together.
from fastwin.core.typedefs cimport idx_t, int64_t, ts_t, uint8_t, uint32_t, uint64_t
from fastwin.core.accumulators.accumulator_set cimport AccumulatorSet
from fastwin.core.keys.keyblocks cimport KeyColumn, store_key
from fastwin.core.memory.hashindex cimport HashIndex
from fastwin.core.memory.tagindex cimport TagIndex
from fastwin.core.panes.slices cimport Slicer
from fastwin.core.rows.rowstore cimport RowStore

cdef enum:
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
    cdef ts_t dropped               # panes before it are gone, maybe not from memory

    cdef int reserve(self, Py_ssize_t n, int64_t text) except -1 nogil
    cdef int64_t text_bytes(self, Py_ssize_t at, Py_ssize_t n) noexcept nogil
    cdef void hash_block(self, Py_ssize_t at, Py_ssize_t n, const ts_t* starts, uint64_t* hashes) noexcept nogil
    cdef idx_t find_one(self, Py_ssize_t i, const ts_t* start, uint64_t h, bint guess) noexcept nogil
    cdef void find_block(self, Py_ssize_t at, const idx_t* picked, Py_ssize_t n, const ts_t* starts,
                         const uint64_t* hashes, idx_t* slots) noexcept nogil
    cdef Py_ssize_t find(self, Py_ssize_t at, Py_ssize_t n, bint one, ts_t* starts, uint32_t share, uint32_t shares,
                         idx_t* picked, idx_t* slots) except -1 nogil
    cdef int feed_key(self, Py_ssize_t at, Py_ssize_t n, Slicer* slicer, const ts_t* times) except -1 nogil
    cdef list keys_in(self, RowStore rows, const idx_t[::1] slots)  # of rows of this table, or of copies of them
    cdef int close_up(self, idx_t* moved) except -1 nogil

    cdef inline idx_t append(self, Py_ssize_t i, ts_t start) noexcept nogil:
        """Returns the slot of a new row for key i; reserve() has made room."""
        cdef idx_t slot = self.rows.alloc(0, start)
        self.starts[slot] = start
        self.ascending = self.ascending and (slot == 0 or self.starts[slot - 1] <= start)
        self.used = store_key(self.columns, self.width, i, <char*> self.rows.head(slot) + WORD, self.arena, self.used)
        return slot
