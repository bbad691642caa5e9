"""KeyTable: key values to dense ids and back; the ids of keys that no row holds any more are used again."""

import numpy as np

from fastwin.core.typedefs cimport NONE, idx_t, int32_t, int64_t, uint8_t, uint64_t
from fastwin.core.memory.bounds cimport check_ids, check_int64, check_length, check_offsets, offset_t
from fastwin.core.memory.equal cimport are_one
from fastwin.core.memory.hashindex cimport (
    count_places, empty_index, farthest, first_place, free_index, next_place, place_index, renew_index, seed_index,
    stir, take_out)
from fastwin.core.memory.pages cimport prefetch
from fastwin.core.memory.regions cimport free_region, place_array
from fastwin.core.keys.keyarrays cimport resized
from fastwin.core.keys.texts cimport (
    add_lengths, check_texts, copy_texts, drop_text, free_texts, hash_texts, place_texts, put_text,
    reserve_text_bytes, reserve_texts, text_bytes)

cdef enum:
    AHEAD = 16                  # keys whose places are fetched beforehand
    FIRST_CAPACITY = 64
    KEPT_CAPACITY = 65536       # an empty table keeps no more than this
    MANY = 1048576
    MAX_KEYS = 1073741824       # 2**30


cdef uint64_t hash_in_place(const void* owner, const void* place) noexcept nogil:
    return (<KeyTable> owner).hash_of((<const idx_t*> place)[0])


cdef class KeyTable:
    """Hands out an int32 id for each distinct key, int64 or bytes; null is a key of its own.

    kind: ``"int64"`` or ``"bytes"``; anything else raises ValueError.
    Rows retain and release the ids. An id that no row holds is forgotten, and handed out again later: when its last row
    releases it, or by sweep() if it was interned since the sweep() before. So those of new keys are good until then.
    """

    def __cinit__(self, kind):
        if kind not in ("int64", "bytes"):
            raise ValueError(f"kind: must be 'int64' or 'bytes', got {kind!r}")
        self.is_bytes = kind == "bytes"
        seed_index(&self.index)
        self.free = self.newest = self.null_id = self.dying = NONE

    def __dealloc__(self):
        self._free_arrays()
        free_index(&self.index)
        free_texts(&self.texts)

    def __len__(self):
        return self.live

    @property
    def nbytes(self):
        """Bytes allocated."""
        cdef Py_ssize_t one = sizeof(int32_t) + sizeof(idx_t) + (0 if self.is_bytes else sizeof(int64_t))
        return self.capacity * one + self.index.size * <Py_ssize_t> sizeof(idx_t) + text_bytes(&self.texts)

    def place(self, bint in_file):
        """Moves the keys to a file or back to memory, see memory/regions; returns their bytes in a file. O(bytes)."""
        cdef size_t total, n = self.capacity
        with nogil:
            total = place_array(<void**> &self.ints, n * sizeof(int64_t), in_file)
            total += place_array(<void**> &self.refs, n * sizeof(int32_t), in_file)
            total += place_array(<void**> &self.chain, n * sizeof(idx_t), in_file)
            total += place_index(&self.index, sizeof(idx_t), in_file) + place_texts(&self.texts, in_file)
        return total

    cdef void _free_arrays(self) noexcept nogil:
        free_region(self.ints)
        free_region(self.refs)
        free_region(self.chain)
        self.ints = NULL
        self.refs = self.chain = NULL
        self.capacity = 0

    cdef int _reserve(self, Py_ssize_t extra) except -1 nogil:
        """Makes room for ``extra`` new keys."""
        cdef Py_ssize_t need = self.live + extra, capacity = self.capacity, size = self.index.size
        if need > capacity:
            capacity = max(capacity, FIRST_CAPACITY)
            while capacity < need:
                capacity *= 2
            self._grow(capacity)
        size = max(size, 4 * FIRST_CAPACITY)
        # Collisions cost more than memory, up to a point; and much more as long as the index stays in the cache.
        while size < max((4 if need < MANY else 2) * need, min(16 * need, CACHED)):
            size *= 2
        if size != self.index.size:
            self._rehash(size)
        return 0

    cdef int _grow(self, Py_ssize_t capacity) except -1 nogil:
        if capacity > MAX_KEYS:
            with gil:
                raise MemoryError(f"KeyTable: at most {MAX_KEYS} keys at a time")
        if self.is_bytes:
            reserve_texts(&self.texts, capacity)
        else:
            self.ints = <int64_t*> resized(self.ints, self.capacity, capacity, sizeof(int64_t))
        self.refs = <int32_t*> resized(self.refs, self.capacity, capacity, sizeof(int32_t))
        self.chain = <idx_t*> resized(self.chain, self.capacity, capacity, sizeof(idx_t))
        self.capacity = <idx_t> capacity
        return 0

    cdef int _rehash(self, Py_ssize_t size) except -1 nogil:
        """Makes the index anew from the keys, which lie in order, so that it is only written at random."""
        cdef idx_t key
        if not renew_index(&self.index, sizeof(idx_t), size):
            with gil:
                raise MemoryError(f"KeyTable: no memory for an index of {size}")
        self.walked += self.top
        for key in range(self.top):
            if not self.is_bytes and key + AHEAD < self.top:
                prefetch(<idx_t*> self.index.places + first_place(&self.index, self.hash_int(self.ints[key + AHEAD])))
            if self.refs[key] != FREE_ID and key != self.null_id:
                self._enter(key, self.hash_of(key))
        return 0

    cdef idx_t _add(self, uint64_t h) except -1 nogil:
        """Returns an id for a new key with this hash; the caller stores the key."""
        cdef idx_t key
        self._reserve(1)
        key = self._new_id()
        self._enter(key, h)
        return key

    cdef idx_t _null(self) except -1 nogil:
        if self.null_id == NONE:
            self._reserve(1)
            self.null_id = self._new_id()
        return self.null_id

    cdef void _forget(self, idx_t key) noexcept nogil:
        cdef Py_ssize_t at
        if key == self.null_id:
            self.null_id = NONE
        else:
            at = first_place(&self.index, self.hash_of(key))
            while self.id_at(at) != key:
                at = next_place(&self.index, at)
            take_out(&self.index, sizeof(idx_t), at, hash_in_place, <void*> self)
            if self.is_bytes:
                drop_text(&self.texts, key)
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
        check_int64("values", values)
        if valid is not None:
            check_length("valid", valid.shape[0], n)
        out = np.empty(n, dtype=np.int32)
        cdef idx_t[::1] ids = out
        with nogil:
            while at < n:
                if valid is not None:
                    marks = &valid[at]
                self.intern_few(&values[at], marks, min(n - at, KEYS_AT_ONCE), &ids[at])
                at += KEYS_AT_ONCE
        return out

    cdef int bury(self) except -1 nogil:
        """Forgets the keys that release_later() has left without rows. Amortised O(1) for each of them: one by one if
        they are few of the ids ever used, else by making the index anew, or emptying it where no other key is left."""
        cdef idx_t key = self.dying, after
        cdef bint all_die = self.dying_n == self.live
        cdef Py_ssize_t size = self.index.size, most = 32 * (<Py_ssize_t> self.dying_n + FIRST_CAPACITY)
        cdef bint few = max(size, <Py_ssize_t> self.capacity) > most if all_die else self.dying_n < self.top // 4
        if all_die and self.dying_n and not few:
            empty_index(&self.index, sizeof(idx_t))
            if self.is_bytes:
                free_texts(&self.texts)
                reserve_texts(&self.texts, self.capacity)
            self.live, self.null_id, key = 0, NONE, NONE
        while key != NONE:
            after = self.chain[key]
            if few:
                self._forget(key)
            else:
                if key == self.null_id:
                    self.null_id = NONE
                elif self.is_bytes:
                    drop_text(&self.texts, key)
                self.refs[key], self.chain[key], self.free = FREE_ID, self.free, key
                self.live -= 1
            key = after
        if self.dying_n and self.live == 0:
            self._start_over()
        elif self.dying_n and not few:
            while size > 16 * (<Py_ssize_t> self.live + FIRST_CAPACITY):
                size //= 2
            self._lower_top()
            self._rehash(size)
        self.dying, self.dying_n = NONE, 0

    cdef void _lower_top(self) noexcept nogil:
        """Takes back the ids behind the last one in use, and hands out the free ones in order. O(ids ever used)."""
        cdef idx_t key
        while self.top and self.refs[self.top - 1] == FREE_ID:
            self.top -= 1
        self.free = NONE
        for key in range(self.top - 1, -1, -1):
            if self.refs[key] == FREE_ID:
                self.chain[key], self.free = self.free, key

    cdef int intern_few(self, const int64_t* values, const uint8_t* valid, Py_ssize_t n, idx_t* ids) except -1 nogil:
        """Fills in the ids of up to KEYS_AT_ONCE keys, of which ``valid`` marks the null ones."""
        cdef uint64_t[KEYS_AT_ONCE] hashes
        cdef Py_ssize_t i, few = 1 if n and valid == NULL and are_one(values, n) else n
        cdef uint64_t start = self.index.start, factor = self.index.factor
        cdef idx_t key = NONE
        cdef int64_t value, before = 0
        self._reserve(1)
        for i in range(few):
            hashes[i] = stir(start, <uint64_t> values[i], factor)
        self._fetch(hashes, few)
        for i in range(few):
            if valid != NULL and not valid[i]:
                ids[i] = self._null()
                continue
            value = values[i]
            if value == before and key != NONE:     # a run of one key
                ids[i] = key
                continue
            key = self._find_int(hashes[i], value)
            if key == NONE:
                key = self._add(hashes[i])
                self.ints[key] = value
            ids[i] = key
            before = value
        for i in range(few, n):
            ids[i] = key
        return 0

    def intern_bytes(self, const offset_t[::1] offsets not None, const uint8_t[::1] data not None,
                     const uint8_t[::1] valid=None):
        """Returns the ids of bytes keys ``data[offsets[i]:offsets[i + 1]]``: int32[n].

        offsets: int32 or int64[n + 1], ascending, within data. valid: uint8[n], 0 marks null.
        Amortised O(n + bytes). Raises ValueError for a table of int64 keys, for offsets that do not ascend within
        data, or a valid of another length.
        """
        cdef uint64_t[KEYS_AT_ONCE] hashes
        cdef Py_ssize_t i, first = 0, stop = 0, alike = 0, n = offsets.shape[0] - 1
        cdef idx_t key
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
                    first, stop = i, min(n, i + KEYS_AT_ONCE)
                    alike = hash_texts(&self.index, start, &offsets[first], stop - first, hashes)
                    self._fetch(hashes, stop - first)
                if valid is not None and not valid[i]:
                    ids[i] = self._null()
                    continue
                if 0 < i - first < alike and (valid is None or valid[first]):
                    ids[i] = ids[first]
                    continue
                text = start + offsets[i]
                length = offsets[i + 1] - offsets[i]
                key = self._find_text(hashes[i - first], text, length)
                if key == NONE:
                    self.walked += reserve_text_bytes(&self.texts, length)
                    key = self._add(hashes[i - first])
                    put_text(&self.texts, key, hashes[i - first], text, length)
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

        Raises ValueError for a table of int64 keys, IndexError for an id that was never handed out."""
        if not self.is_bytes:
            raise ValueError("KeyTable: holds int64 keys, asked for bytes keys")
        check_ids("ids", ids, self.top)
        cdef Py_ssize_t n = ids.shape[0]
        ends = np.empty(n + 1, dtype=np.int64)
        cdef int64_t[::1] offsets = ends
        with nogil:
            add_lengths(&self.texts, &ids[0] if n else NULL, n, &offsets[0])
        out = np.empty(ends[n], dtype=np.uint8)
        cdef uint8_t[::1] data = out
        if data.shape[0]:
            copy_texts(&self.texts, &ids[0], n, &offsets[0], &data[0])
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
        """Counts one row less for each id, see the class. Raises IndexError for an id that no row holds."""
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
            self._free_arrays()
            free_index(&self.index)
            free_texts(&self.texts)

    def ids(self):
        """Returns the ids in use, ascending: int32[len]. O(ids ever used)."""
        if self.top == 0:
            return np.empty(0, dtype=np.int32)
        return np.flatnonzero(np.asarray(<int32_t[:self.top]> self.refs) != FREE_ID).astype(np.int32)

    def _farthest(self):
        """Returns how many keys are passed over, at most, before one is found. O(keys)."""
        return farthest(&self.index, sizeof(idx_t), hash_in_place, <void*> self)

    def _check(self):
        """Raises AssertionError where an invariant does not hold. O(keys)."""
        cdef idx_t key, live = 0, gone, new, unsettled = 0
        cdef Py_ssize_t at, indexed = count_places(&self.index, sizeof(idx_t))
        for key in range(self.top):
            if self.refs[key] == FREE_ID:
                continue
            live += 1
            unsettled += self.chain[key] != SETTLED
            assert self.refs[key] > 0 or self.chain[key] != SETTLED, f"key {key}: settled, but no row holds it"
            if key == self.null_id:
                continue
            at = first_place(&self.index, self.hash_of(key))
            while self.id_at(at) != key:
                assert self.id_at(at) != NONE, f"key {key} cannot be found"
                at = next_place(&self.index, at)
        gone, new = self._chained(self.free), self._chained(self.newest)
        assert live == self.live, f"{live} keys are live, counted {self.live}"
        assert live + gone == self.top <= self.capacity, f"{live} live and {gone} free keys, top {self.top}"
        assert new == unsettled, f"{new} new keys are chained, {unsettled} are not settled"
        assert indexed == live - (self.null_id != NONE), f"{indexed} of {live} keys are in the index"
        check_texts(&self.texts)
