# Byte strings by id, one after another in an arena.
cimport cython
from libc.string cimport memcmp

from fastwin._typedefs cimport idx_t, int64_t, uint8_t, uint64_t

cdef enum:
    ABSENT = -1                 # length of an id without text

cdef struct Text:
    uint64_t hash
    int64_t at                  # in the arena
    int64_t length


@cython.final
cdef class TextStore:
    cdef Text* texts            # by id
    cdef uint8_t* arena
    cdef int64_t used, capacity, garbage
    cdef Py_ssize_t ids         # texts[:ids] are there

    cdef int reserve_ids(self, Py_ssize_t ids) except -1 nogil
    cdef int reserve(self, int64_t extra) except -1 nogil
    cdef void put(self, idx_t key, uint64_t h, const uint8_t* text, int64_t length) noexcept nogil
    cdef void drop(self, idx_t key) noexcept nogil
    cdef void clear(self) noexcept nogil

    cdef inline bint equals(self, idx_t key, uint64_t h, const uint8_t* text, int64_t length) noexcept nogil:
        cdef Text* own = self.texts + key
        return own.hash == h and own.length == length and (
            length == 0 or memcmp(self.arena + own.at, text, length) == 0)

    cdef inline int64_t length(self, idx_t key) noexcept nogil:
        return max(self.texts[key].length, <int64_t> 0)
