# Dense ids for key values.
cimport cython

from fastwin._typedefs cimport NONE, idx_t, int32_t, int64_t, uint8_t, uint64_t
from fastwin.core.memory cimport prefetch
from fastwin.core.texts cimport TextStore

cdef enum:
    CACHED = 16384              # size of an index that needs no fetching
    KEYS_BLOCK = 512            # keys looked up together, so that their cache misses overlap
    FREE_ID = -1                # in `refs`
    SETTLED = -2                # in `chain`


@cython.final
cdef class KeyTable:
    cdef readonly bint is_bytes
    cdef int64_t* ints          # by id, int64 keys
    cdef TextStore texts        # by id, bytes keys
    cdef int32_t* refs          # by id: how many rows hold the key; FREE_ID for ids not in use
    cdef idx_t* chain           # by id: ids not in use and ids new since sweep() are chained; SETTLED for the others
    cdef idx_t* index           # open addressing, linear probing: ids
    cdef Py_ssize_t index_size
    cdef readonly idx_t capacity
    cdef readonly idx_t top     # ids ever used are [0, top)
    cdef readonly idx_t live
    cdef idx_t free, newest, null_id
    cdef idx_t dying, dying_n   # chained: keys that release_later() has left without rows

    cdef int _reserve(self, Py_ssize_t extra) except -1 nogil
    cdef int _grow(self, Py_ssize_t capacity) except -1 nogil
    cdef int _rehash(self, Py_ssize_t size) except -1 nogil
    cdef idx_t _new_id(self) noexcept nogil
    cdef idx_t _add(self, uint64_t h) except -1 nogil
    cdef idx_t _null(self) except -1 nogil
    cdef uint64_t _hash_of(self, idx_t key) noexcept nogil
    cdef void _forget(self, idx_t key) noexcept nogil
    cdef int bury(self) except -1 nogil
    cdef void _start_over(self) noexcept nogil
    cdef int intern_block(self, const int64_t* values, const uint8_t* valid, Py_ssize_t n, idx_t* ids) except -1 nogil
    cdef idx_t _chained(self, idx_t key) noexcept nogil

    cdef inline void retain(self, idx_t key) noexcept nogil:
        self.refs[key] += 1

    cdef inline void release(self, idx_t key) noexcept nogil:
        # A key new since sweep() may be needed yet: the next sweep() looks again.
        self.refs[key] -= 1
        if self.refs[key] == 0 and self.chain[key] == SETTLED:
            self._forget(key)

    cdef inline void release_later(self, idx_t key) noexcept nogil:
        # For many at once: bury() is to follow before anything else.
        self.refs[key] -= 1
        if self.refs[key] == 0 and self.chain[key] == SETTLED:
            self.chain[key] = self.dying
            self.dying = key
            self.dying_n += 1

    cdef inline void _fetch(self, const uint64_t* hashes, Py_ssize_t n) noexcept nogil:
        """Fetches what looking up keys of these hashes reads first, where the table is larger than the cache."""
        cdef Py_ssize_t i, mask = self.index_size - 1
        cdef idx_t key
        if self.index_size <= CACHED:
            return
        for i in range(n):
            prefetch(&self.index[hashes[i] & <uint64_t> mask])
        for i in range(n if self.top > CACHED else 0):
            key = self.index[hashes[i] & <uint64_t> mask]
            if key != NONE:
                prefetch(<char*> &self.texts.texts[key] if self.is_bytes else <char*> &self.ints[key])
        for i in range(n if self.top > CACHED and self.is_bytes else 0):
            key = self.index[hashes[i] & <uint64_t> mask]
            if key != NONE:
                prefetch(self.texts.arena + self.texts.texts[key].at)
