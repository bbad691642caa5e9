"""KeyTable: key values to dense ids and back; the ids of keys that no row holds any more are used again."""

import numpy as np

from fastwin.core.hashing import group_rows, hash_int64, hash_text

from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memset

from fastwin._typedefs cimport NONE, idx_t, int32_t, int64_t, uint8_t, uint64_t
from fastwin.core.bounds cimport check_ids, check_length, check_offsets, offset_t
from fastwin.core.hashing cimport hash_bytes, spread
from fastwin.core.memory cimport ask_large_pages, prefetch
from fastwin.core.texts cimport TextStore

__all__ = ["KeyTable", "group_rows", "hash_int64", "hash_text"]

cdef enum:
    AHEAD = 16                  # keys whose places are fetched beforehand
    FIRST_CAPACITY = 64
    KEPT_CAPACITY = 65536       # an empty table keeps no more than this
    MANY = 1048576
    MAX_KEYS = 1073741824       # 2**30


cdef void* resized(void* array, Py_ssize_t n, size_t size) except NULL nogil:
    cdef void* moved = realloc(array, n * size)
    if moved == NULL:
        with gil:
            raise MemoryError(f"KeyTable: no memory for {n} keys")
    return moved


cdef class KeyTable:
    """Hands out an int32 id for each distinct key, int64 or bytes; null is a key of its own.

    kind: ``"int64"`` or ``"bytes"``; anything else raises ValueError.

    Rows retain and release the ids. An id that no row holds is forgotten, and handed out again later:
    when its last row releases it, or by sweep() if it was interned since the sweep() before. So the ids
    of new keys are good until sweep(), whether rows hold them or not.
    """

    def __cinit__(self, kind):
        if kind not in ("int64", "bytes"):
            raise ValueError(f"kind: must be 'int64' or 'bytes', got {kind!r}")
        self.is_bytes = kind == "bytes"
        self.texts = TextStore()
        self.free = self.newest = self.null_id = self.dying = NONE

    def __dealloc__(self):
        free(self.ints)
        free(self.refs)
        free(self.chain)
        free(self.index)

    def __len__(self):
        return self.live

    @property
    def nbytes(self):
        """Bytes allocated."""
        cdef Py_ssize_t one = sizeof(int32_t) + sizeof(idx_t) + (0 if self.is_bytes else sizeof(int64_t))
        return self.capacity * one + self.index_size * <Py_ssize_t> sizeof(idx_t) + self.texts.nbytes

    cdef int _reserve(self, Py_ssize_t extra) except -1 nogil:
        """Makes room for ``extra`` new keys."""
        cdef Py_ssize_t need = self.live + extra, capacity = self.capacity, size = self.index_size
        if need > capacity:
            capacity = max(capacity, FIRST_CAPACITY)
            while capacity < need:
                capacity *= 2
            self._grow(capacity)
        size = max(size, 4 * FIRST_CAPACITY)
        # Collisions cost more than memory, up to a point; and much more as long as the index stays in the cache.
        while size < max((4 if need < MANY else 2) * need, min(16 * need, CACHED)):
            size *= 2
        if size != self.index_size:
            self._rehash(size)
        return 0

    cdef int _grow(self, Py_ssize_t capacity) except -1 nogil:
        if capacity > MAX_KEYS:
            with gil:
                raise MemoryError(f"KeyTable: at most {MAX_KEYS} keys at a time")
        if self.is_bytes:
            self.texts.reserve_ids(capacity)
        else:
            self.ints = <int64_t*> resized(self.ints, capacity, sizeof(int64_t))
        self.refs = <int32_t*> resized(self.refs, capacity, sizeof(int32_t))
        self.chain = <idx_t*> resized(self.chain, capacity, sizeof(idx_t))
        self.capacity = <idx_t> capacity
        return 0

    cdef int _rehash(self, Py_ssize_t size) except -1 nogil:
        cdef idx_t* index = <idx_t*> malloc(size * sizeof(idx_t))
        cdef Py_ssize_t at
        cdef idx_t key
        if index == NULL:
            with gil:
                raise MemoryError(f"KeyTable: no memory for an index of {size}")
        ask_large_pages(index, size * sizeof(idx_t))
        memset(index, 0xFF, size * sizeof(idx_t))
        for key in range(self.top):
            if not self.is_bytes and key + AHEAD < self.top:
                prefetch(index + (spread(<uint64_t> self.ints[key + AHEAD]) & <uint64_t> (size - 1)))
            if self.refs[key] != FREE_ID and key != self.null_id:
                at = <Py_ssize_t> (self._hash_of(key) & <uint64_t> (size - 1))
                while index[at] != NONE:
                    at = (at + 1) & (size - 1)
                index[at] = key
        free(self.index)
        self.index = index
        self.index_size = size
        return 0

    cdef idx_t _new_id(self) noexcept nogil:
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

    cdef idx_t _add(self, uint64_t h) except -1 nogil:
        """Returns an id for a new key with this hash; the caller stores the key."""
        cdef Py_ssize_t at, mask
        self._reserve(1)
        mask = self.index_size - 1
        at = <Py_ssize_t> (h & <uint64_t> mask)
        while self.index[at] != NONE:
            at = (at + 1) & mask
        self.index[at] = self._new_id()
        return self.index[at]

    cdef idx_t _null(self) except -1 nogil:
        if self.null_id == NONE:
            self._reserve(1)
            self.null_id = self._new_id()
        return self.null_id

    cdef uint64_t _hash_of(self, idx_t key) noexcept nogil:
        return self.texts.texts[key].hash if self.is_bytes else spread(<uint64_t> self.ints[key])

    cdef void _forget(self, idx_t key) noexcept nogil:
        cdef Py_ssize_t at, gap, home, mask = self.index_size - 1
        if key == self.null_id:
            self.null_id = NONE
        else:
            at = <Py_ssize_t> (self._hash_of(key) & <uint64_t> mask)
            while self.index[at] != key:
                at = (at + 1) & mask
            gap = at
            while True:                 # close the gap: move back what probing would no longer reach
                at = (at + 1) & mask
                if self.index[at] == NONE:
                    break
                home = <Py_ssize_t> (self._hash_of(self.index[at]) & <uint64_t> mask)
                if ((at - home) & mask) >= ((at - gap) & mask):
                    self.index[gap] = self.index[at]
                    gap = at
            self.index[gap] = NONE
            if self.is_bytes:
                self.texts.drop(key)
        self.refs[key] = FREE_ID
        self.chain[key] = self.free
        self.free = key
        self.live -= 1

    def intern_int64(self, const int64_t[::1] values not None, const uint8_t[::1] valid=None):
        """Returns the ids of int64 keys, new ids for new keys: int32[n].

        values: int64[n]. valid: uint8[n], 0 marks null; None: no nulls. Amortised O(n).
        Raises ValueError for a table of bytes keys, or a valid of another length.
        """
        cdef Py_ssize_t at = 0, n = values.shape[0]
        cdef const uint8_t* marks = NULL
        if self.is_bytes:
            raise ValueError("KeyTable: holds bytes keys, got int64 keys")
        if valid is not None:
            check_length("valid", valid.shape[0], n)
        out = np.empty(n, dtype=np.int32)
        cdef idx_t[::1] ids = out
        with nogil:
            while at < n:
                if valid is not None:
                    marks = &valid[at]
                self.intern_block(&values[at], marks, min(n - at, KEYS_BLOCK), &ids[at])
                at += KEYS_BLOCK
        return out

    cdef int bury(self) except -1 nogil:
        """Forgets the keys that release_later() has left without rows: one by one if they are few, else by making the
        index anew, and by emptying the table where no other is left."""
        cdef idx_t key = self.dying, after
        cdef bint few = self.dying_n < self.live // 4
        if self.dying_n and self.dying_n == self.live:
            memset(self.index, 0xFF, self.index_size * sizeof(idx_t))
            if self.is_bytes:
                self.texts.clear()
                self.texts.reserve_ids(self.capacity)
            self.live, self.null_id, key = 0, NONE, NONE
            self._start_over()
        while key != NONE:
            after = self.chain[key]
            if few:
                self._forget(key)
            else:
                if key == self.null_id:
                    self.null_id = NONE
                elif self.is_bytes:
                    self.texts.drop(key)
                self.refs[key], self.chain[key], self.free = FREE_ID, self.free, key
                self.live -= 1
            key = after
        if not few and self.dying_n and self.live:
            while self.index_size > 16 * (<Py_ssize_t> self.live + FIRST_CAPACITY):
                self.index_size //= 2
            self._rehash(self.index_size)
        self.dying, self.dying_n = NONE, 0

    cdef int intern_block(self, const int64_t* values, const uint8_t* valid, Py_ssize_t n, idx_t* ids) except -1 nogil:
        """Fills in the ids of up to KEYS_BLOCK keys, of which ``valid`` marks the null ones."""
        cdef uint64_t[KEYS_BLOCK] hashes
        cdef Py_ssize_t i, at, mask
        cdef idx_t key = NONE
        cdef int64_t value, before = 0
        self._reserve(1)
        mask = self.index_size - 1
        for i in range(n):
            hashes[i] = spread(<uint64_t> values[i])
        self._fetch(hashes, n)
        for i in range(n):
            if valid != NULL and not valid[i]:
                ids[i] = self._null()
                continue
            value = values[i]
            if value == before and key != NONE:     # a run of one key
                ids[i] = key
                continue
            mask = self.index_size - 1
            at = <Py_ssize_t> (hashes[i] & <uint64_t> mask)
            key = self.index[at]
            while key != NONE and self.ints[key] != value:
                at = (at + 1) & mask
                key = self.index[at]
            if key == NONE:
                key = self._add(hashes[i])
                self.ints[key] = value
            ids[i] = key
            before = value
        return 0

    def intern_bytes(self, const offset_t[::1] offsets not None, const uint8_t[::1] data not None,
                     const uint8_t[::1] valid=None):
        """Returns the ids of bytes keys ``data[offsets[i]:offsets[i + 1]]``: int32[n].

        offsets: int32 or int64[n + 1], ascending, within data. valid: uint8[n], 0 marks null.
        Amortised O(n + bytes). Raises ValueError for a table of int64 keys, for offsets that do not
        ascend within data, or a valid of another length.
        """
        cdef uint64_t[KEYS_BLOCK] hashes
        cdef Py_ssize_t i, at, mask, first = 0, stop = 0, n = offsets.shape[0] - 1
        cdef idx_t key
        cdef uint64_t h
        cdef int64_t length
        cdef const uint8_t* text
        cdef const uint8_t* start = &data[0] if data.shape[0] else NULL
        if not self.is_bytes:
            raise ValueError("KeyTable: holds int64 keys, got bytes keys")
        check_offsets(offsets, data.shape[0])
        if valid is not None:
            check_length("valid", valid.shape[0], n)
        out = np.empty(n, dtype=np.int32)
        cdef idx_t[::1] ids = out
        with nogil:
            self._reserve(1)
            for i in range(n):
                if i == stop:
                    first, stop = i, min(n, i + KEYS_BLOCK)
                    for at in range(first, stop):
                        hashes[at - first] = hash_bytes(start + offsets[at], offsets[at + 1] - offsets[at])
                    self._fetch(hashes, stop - first)
                if valid is not None and not valid[i]:
                    ids[i] = self._null()
                    continue
                text = start + offsets[i]
                length = offsets[i + 1] - offsets[i]
                h = hashes[i - first]
                mask = self.index_size - 1
                at = <Py_ssize_t> (h & <uint64_t> mask)
                key = self.index[at]
                while key != NONE and not self.texts.equals(key, h, text, length):
                    at = (at + 1) & mask
                    key = self.index[at]
                if key == NONE:
                    self.texts.reserve(length)
                    key = self._add(h)
                    self.texts.put(key, h, text, length)
                ids[i] = key
        return out

    def take_int64(self, const idx_t[::1] ids not None):
        """Returns ``(values, valid)`` of ids: int64[n] and bool[n], or None where no key is null.

        Raises ValueError for a table of bytes keys, IndexError for an id that was never handed out.
        """
        cdef Py_ssize_t i, n = ids.shape[0]
        if self.is_bytes:
            raise ValueError("KeyTable: holds bytes keys, asked for int64 keys")
        check_ids("ids", ids, self.top)
        out = np.empty(n, dtype=np.int64)
        cdef int64_t[::1] view = out
        with nogil:
            for i in range(n):
                view[i] = self.ints[ids[i]] if ids[i] != self.null_id else 0
        return out, self._valid(ids)

    def take_bytes(self, const idx_t[::1] ids not None):
        """Returns ``(offsets, data, valid)`` of ids: int64[n + 1], uint8[bytes], bool[n] or None.

        Raises ValueError for a table of int64 keys, IndexError for an id that was never handed out.
        """
        cdef Py_ssize_t i, n = ids.shape[0]
        cdef int64_t total = 0, length
        if not self.is_bytes:
            raise ValueError("KeyTable: holds int64 keys, asked for bytes keys")
        check_ids("ids", ids, self.top)
        ends = np.empty(n + 1, dtype=np.int64)
        cdef int64_t[::1] offsets = ends
        with nogil:
            for i in range(n):
                offsets[i] = total
                total += self.texts.length(ids[i])
            offsets[n] = total
        out = np.empty(total, dtype=np.uint8)
        cdef uint8_t[::1] data = out
        with nogil:
            for i in range(n):
                length = offsets[i + 1] - offsets[i]
                if length:
                    memcpy(&data[offsets[i]], self.texts.arena + self.texts.texts[ids[i]].at, length)
        return ends, out, self._valid(ids)

    def _valid(self, const idx_t[::1] ids):
        valid = None if self.null_id == NONE else np.asarray(ids) != self.null_id
        return None if valid is None or valid.all() else valid

    def retain_ids(self, const idx_t[::1] ids not None):
        """Counts one more row for each id. Raises IndexError for one that is not in use."""
        cdef Py_ssize_t i
        check_ids("ids", ids, self.top)
        for i in range(ids.shape[0]):
            if self.refs[ids[i]] == FREE_ID:
                raise IndexError(f"ids: {ids[i]} is not in use")
            self.retain(ids[i])

    def release_ids(self, const idx_t[::1] ids not None):
        """Counts one row less for each id; see the class for what becomes of one without rows.

        Raises IndexError for an id that no row holds.
        """
        cdef Py_ssize_t i
        check_ids("ids", ids, self.top)
        for i in range(ids.shape[0]):
            if self.refs[ids[i]] < 1:
                raise IndexError(f"ids: {ids[i]} is not retained")
            self.release(ids[i])

    def sweep(self):
        """Forgets the keys interned since the last sweep that no row holds. O(keys interned since)."""
        cdef idx_t key = self.newest, after
        with nogil:
            self.newest = NONE
            while key != NONE:
                after = self.chain[key]
                self.chain[key] = SETTLED
                if self.refs[key] == 0:
                    self._forget(key)
                key = after
            if self.live == 0:
                self._start_over()

    cdef void _start_over(self) noexcept nogil:
        """Hands out ids from 0 again, and gives memory back; for a table without keys."""
        self.top = 0
        self.free = NONE
        if self.capacity > KEPT_CAPACITY:
            free(self.ints)
            free(self.refs)
            free(self.chain)
            free(self.index)
            self.ints = NULL
            self.refs = self.chain = self.index = NULL
            self.index_size = self.capacity = 0
            self.texts.clear()

    def ids(self):
        """Returns the ids in use, ascending: int32[len]. O(ids ever used)."""
        if self.top == 0:
            return np.empty(0, dtype=np.int32)
        return np.flatnonzero(np.asarray(<int32_t[:self.top]> self.refs) != FREE_ID).astype(np.int32)

    cdef idx_t _chained(self, idx_t key) noexcept nogil:
        # How many ids are chained from here on; more than `top` if they run in a circle.
        cdef idx_t n = 0
        while key != NONE and n <= self.top:
            n += 1
            key = self.chain[key]
        return n

    def _check(self):
        """Raises AssertionError where an invariant does not hold. O(keys)."""
        cdef idx_t key, live = 0, gone, new, unsettled = 0
        cdef Py_ssize_t at, indexed = 0, mask = self.index_size - 1
        for key in range(self.top):
            if self.refs[key] == FREE_ID:
                continue
            live += 1
            unsettled += self.chain[key] != SETTLED
            assert self.refs[key] > 0 or self.chain[key] != SETTLED, f"key {key}: settled, but no row holds it"
            if key == self.null_id:
                continue
            at = <Py_ssize_t> (self._hash_of(key) & <uint64_t> mask)
            while self.index[at] != key:
                assert self.index[at] != NONE, f"key {key} cannot be found"
                at = (at + 1) & mask
        for at in range(self.index_size):
            indexed += self.index[at] != NONE
        gone, new = self._chained(self.free), self._chained(self.newest)
        assert live == self.live, f"{live} keys are live, counted {self.live}"
        assert live + gone == self.top <= self.capacity, f"{live} live and {gone} free keys, top {self.top}"
        assert new == unsettled, f"{new} new keys are chained, {unsettled} are not settled"
        assert indexed == live - (self.null_id != NONE), f"{indexed} of {live} keys are in the index"
        self.texts._check()
