# Rows of 8-byte cells: the head, then what the owner of the store put there. A row may own memory outside of it, so
# rows are never copied byte by byte: copy() and reset() know how.
cimport cython

from fastwin.core.typedefs cimport idx_t, int64_t, ts_t, uint64_t
from fastwin.core.memory.bits cimport has_bit, set_bit

cpdef enum:
    HEAD_CELLS = 3              # of 8 bytes: what each row begins with
    MEMBER_BITS = 63            # of a row, one for each aggregate: there cannot be more

cdef enum:
    LIVE_BIT = MEMBER_BITS      # the bit above them is set in rows in use

cdef struct Head:
    uint64_t bits
    ts_t start                  # of the pane, window or session
    idx_t key
    idx_t link                  # free rows: the next free one; live rows: the owner's


cdef inline uint64_t live_mask() noexcept nogil:
    return (<uint64_t> 1) << LIVE_BIT


@cython.final
cdef class RowStore:
    cdef char* block            # as allocated
    cdef char* data             # the rows, from the first cache line in the block on
    cdef uint64_t* dirty        # one bit a row
    cdef char* blank            # what a fresh row holds
    cdef Py_ssize_t* owned      # byte offsets of the cells that own a block, see memory/owned.pxd
    cdef readonly Py_ssize_t owned_n
    cdef readonly Py_ssize_t stride
    cdef readonly idx_t capacity
    cdef readonly idx_t top     # rows ever used are [0, top)
    cdef readonly idx_t live
    cdef idx_t free
    cdef int64_t released       # since free rows were in order

    cdef int reserve(self, Py_ssize_t extra) except -1 nogil
    cdef idx_t alloc(self, idx_t key, ts_t start) noexcept nogil
    cdef int append(self, Py_ssize_t n) except -1 nogil
    cdef void release(self, idx_t slot) noexcept nogil
    cdef void reset(self, idx_t slot, Py_ssize_t first) noexcept nogil
    cdef int copy(self, idx_t slot, RowStore store, idx_t from_slot, Py_ssize_t first) except -1 nogil
    cdef void trim(self) noexcept nogil
    cdef void _order_free(self) noexcept nogil
    cdef int _resize(self, Py_ssize_t capacity) except -1 nogil

    cdef inline Head* head(self, idx_t slot) noexcept nogil:
        return <Head*> (self.data + slot * self.stride)

    cdef inline bint is_live(self, idx_t slot) noexcept nogil:
        return self.head(slot).bits >> LIVE_BIT

    cdef inline void mark(self, idx_t slot) noexcept nogil:
        if not has_bit(self.dirty, slot):     # mostly it is marked, and writing would wait for the write before
            set_bit(self.dirty, slot)
