# Dense ids for key values.
cimport cython

from fastwin.core.typedefs cimport NONE, idx_t, int32_t, int64_t, uint8_t, uint64_t
from fastwin.core.memory.hashindex cimport HashIndex, empty_place, first_place, next_place, stir
from fastwin.core.memory.pages cimport prefetch
from fastwin.core.keys.texts cimport TextStore, text_equals, text_start

cdef enum:
    CACHED = 16384              # size of an index that needs no fetching
    KEYS_AT_ONCE = 512          # keys looked up together, so that their cache misses overlap
    FREE_ID = -1                # in `refs`
    SETTLED = -2                # in `chain`


@cython.final
cdef class KeyTable:
    cdef readonly bint is_bytes
    cdef int64_t* ints          # by id, int64 keys
    cdef TextStore texts        # by id, bytes keys
    cdef int32_t* refs          # by id: how many rows hold the key; FREE_ID for ids not in use
    cdef idx_t* chain           # by id: ids not in use and ids new since sweep() are chained; SETTLED for the others
    cdef HashIndex index        # of ids
    cdef readonly idx_t capacity
    cdef readonly idx_t top     # ids ever used are [0, top)
    cdef readonly idx_t live
    cdef idx_t free, newest, null_id
    cdef idx_t dying, dying_n   # chained: keys that release_later() has left without rows
    cdef readonly int64_t walked    # ids passed so far, those in use or not, to make the index or the texts anew

    cdef void _free_arrays(self) noexcept nogil
    cdef int _reserve(self, Py_ssize_t extra) except -1 nogil
    cdef int _grow(self, Py_ssize_t capacity) except -1 nogil
    cdef int _rehash(self, Py_ssize_t size) except -1 nogil
    cdef idx_t _add(self, uint64_t h) except -1 nogil
    cdef idx_t _null(self) except -1 nogil
    cdef void _forget(self, idx_t key) noexcept nogil
    cdef int bury(self) except -1 nogil
    cdef void _lower_top(self) noexcept nogil
    cdef void _start_over(self) noexcept nogil
    cdef int intern_few(self, const int64_t* values, const uint8_t* valid, Py_ssize_t n, idx_t* ids) except -1 nogil

    cdef inline idx_t id_at(self, Py_ssize_t at) noexcept nogil:
        return (<idx_t*> self.index.places)[at]

    cdef inline idx_t _find_int(self, uint64_t h, int64_t value) noexcept nogil:
        cdef Py_ssize_t at = first_place(&self.index, h)
        cdef idx_t key = self.id_at(at)
        while key != NONE and self.ints[key] != value:
            at = next_place(&self.index, at)
            key = self.id_at(at)
        return key

    cdef inline idx_t _find_text(self, uint64_t h, const uint8_t* text, int64_t length) noexcept nogil:
        cdef Py_ssize_t at = first_place(&self.index, h)
        cdef idx_t key = self.id_at(at)
        while key != NONE and not text_equals(&self.texts, key, h, text, length):
            at = next_place(&self.index, at)
            key = self.id_at(at)
        return key

    cdef inline void _enter(self, idx_t key, uint64_t h) noexcept nogil:
        (<idx_t*> self.index.places)[empty_place(&self.index, sizeof(idx_t), h)] = key

    cdef inline uint64_t hash_int(self, int64_t value) noexcept nogil:
        return stir(self.index.start, <uint64_t> value, self.index.factor)

    cdef inline uint64_t hash_of(self, idx_t key) noexcept nogil:
        return self.texts.texts[key].hash if self.is_bytes else self.hash_int(self.ints[key])

    cdef inline idx_t _new_id(self) noexcept nogil:
        cdef idx_t key = self.free
        if key != NONE:
            self.free = self.chain[key]
        else:
            key = self.top
            self.top += 1
        self.refs[key] = 0
        self.chain[key] = self.newest
        self.newest = key
        self.live += 1
        return key

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
        cdef Py_ssize_t i
        cdef const idx_t* places = <idx_t*> self.index.places
        cdef idx_t key
        if self.index.size <= CACHED:
            return
        for i in range(n):
            prefetch(places + first_place(&self.index, hashes[i]))
        for i in range(n if self.top > CACHED else 0):
            key = places[first_place(&self.index, hashes[i])]
            if key != NONE:
                prefetch(<char*> (self.texts.texts + key) if self.is_bytes else <char*> (self.ints + key))
        for i in range(n if self.top > CACHED and self.is_bytes else 0):
            key = places[first_place(&self.index, hashes[i])]
            if key != NONE:
                prefetch(text_start(&self.texts, key))

    cdef inline idx_t _chained(self, idx_t key) noexcept nogil:
        # How many ids are chained from here on; more than `top` if they run in a circle.
        cdef idx_t n = 0
        while key != NONE and n <= self.top:
            n += 1
            key = self.chain[key]
        return n
