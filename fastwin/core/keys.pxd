# Dense ids for key values.
from fastwin._typedefs cimport idx_t, int32_t, int64_t, uint8_t, uint64_t

cdef struct Text:               # a bytes key in the arena
    uint64_t hash
    int64_t at
    int64_t length

cdef class KeyTable:
    cdef readonly bint is_bytes
    cdef int64_t* ints          # by id, int64 keys
    cdef Text* texts            # by id, bytes keys
    cdef int32_t* refs          # by id: how many rows hold the key; FREE_ID for ids not in use
    cdef idx_t* next_free       # by id
    cdef idx_t* index           # open addressing, linear probing: ids
    cdef uint8_t* arena
    cdef int64_t arena_size, arena_capacity, arena_garbage
    cdef Py_ssize_t index_size
    cdef readonly idx_t capacity
    cdef readonly idx_t top     # ids ever used are [0, top)
    cdef readonly idx_t live
    cdef idx_t free, null_id
    cdef idx_t* fresh           # ids handed out since the last sweep()
    cdef Py_ssize_t fresh_n, fresh_capacity

    cdef int _reserve(self, Py_ssize_t extra) except -1 nogil
    cdef int _rehash(self, Py_ssize_t size) except -1 nogil
    cdef int _reserve_arena(self, int64_t extra) except -1 nogil
    cdef idx_t _new_id(self) noexcept nogil
    cdef uint64_t _hash_of(self, idx_t key) noexcept nogil
    cdef void _forget(self, idx_t key) noexcept nogil
    cdef idx_t _null(self) noexcept nogil

    cdef inline void retain(self, idx_t key) noexcept nogil:
        self.refs[key] += 1

    cdef inline void release(self, idx_t key) noexcept nogil:
        self.refs[key] -= 1
        if self.refs[key] == 0:
            self._forget(key)
