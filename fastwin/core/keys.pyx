"""KeyTable: key values to dense ids and back; the ids of keys that no row holds any more are used again."""

import numpy as np

from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcmp, memcpy

from fastwin._typedefs cimport NONE, idx_t, int32_t, int64_t, uint8_t, uint64_t
from fastwin.core.hashing cimport hash_bytes, mix

cdef enum:
    FIRST_CAPACITY = 64
    FREE_ID = -1                # in refs
    MAX_KEYS = 2147483584

ctypedef fused offset_t:
    int32_t
    int64_t


def hash_int64(const int64_t[::1] values not None, const uint8_t[::1] valid=None):
    """Returns the stable hash of int64 keys: uint64[n]; null (valid[i] == 0) hashes to 0."""
    cdef Py_ssize_t i, n = values.shape[0]
    out = np.empty(n, dtype=np.uint64)
    cdef uint64_t[::1] view = out
    with nogil:
        for i in range(n):
            view[i] = mix(<uint64_t> values[i]) if valid is None or valid[i] else 0
    return out


def hash_text(const offset_t[::1] offsets not None, const uint8_t[::1] data not None, const uint8_t[::1] valid=None):
    """Returns the stable hash of bytes keys ``data[offsets[i]:offsets[i + 1]]``: uint64[n]; null hashes to 0."""
    cdef Py_ssize_t i, n = offsets.shape[0] - 1
    out = np.empty(max(n, 0), dtype=np.uint64)
    cdef uint64_t[::1] view = out
    cdef const uint8_t* start = &data[0] if data.shape[0] else NULL
    with nogil:
        for i in range(n):
            view[i] = hash_bytes(start + offsets[i], offsets[i + 1] - offsets[i]) if valid is None or valid[i] else 0
    return out


def group_rows(const uint64_t[::1] hashes not None, int groups):
    """Returns ``(order, bounds)``: rows sorted by group ``hash % groups``, keeping their order within a group.

    order: int64[n]; the rows of group g are ``order[bounds[g]:bounds[g + 1]]``. O(n + groups).
    """
    cdef Py_ssize_t i, n = hashes.shape[0]
    if groups < 1:
        raise ValueError(f"groups: at least 1, got {groups}")
    out, ends, group_of = np.empty(n, np.int64), np.zeros(groups + 1, np.int64), np.empty(n, np.int32)
    cdef int64_t[::1] order = out, bounds = ends, at
    cdef int32_t[::1] group = group_of
    with nogil:
        for i in range(n):
            group[i] = <int32_t> (hashes[i] % <uint64_t> groups)
            bounds[group[i] + 1] += 1
        for i in range(groups):
            bounds[i + 1] += bounds[i]
    starts = ends[:-1].copy()
    at = starts
    with nogil:
        for i in range(n):
            order[at[group[i]]] = i
            at[group[i]] += 1
    return out, ends


cdef class KeyTable:
    """Hands out an int32 id for each distinct key, int64 or bytes; null is a key of its own.

    kind: ``"int64"`` or ``"bytes"``.

    Rows retain and release the ids; an id that the last row released is handed out again later.
    """

    def __cinit__(self, kind):
        if kind not in ("int64", "bytes"):
            raise ValueError(f"kind: must be 'int64' or 'bytes', got {kind!r}")
        self.is_bytes = kind == "bytes"
        self.free = NONE
        self.null_id = NONE

    def __dealloc__(self):
        free(self.ints)
        free(self.texts)
        free(self.refs)
        free(self.next_free)
        free(self.index)
        free(self.arena)
        free(self.fresh)

    def __len__(self):
        return self.live

    @property
    def nbytes(self):
        """Bytes allocated."""
        cdef Py_ssize_t one = sizeof(int32_t) + sizeof(idx_t) + (sizeof(Text) if self.is_bytes else sizeof(int64_t))
        return self.capacity * one + self.index_size * sizeof(idx_t) + self.arena_capacity

    cdef int _reserve(self, Py_ssize_t extra) except -1 nogil:
        """Makes room for ``extra`` new keys."""
        cdef Py_ssize_t need = self.live + extra, capacity = self.capacity, size = self.index_size
        cdef void* moved[4]
        if self.fresh_n + extra > self.fresh_capacity:
            self.fresh_capacity = 2 * (self.fresh_n + extra)
            moved[0] = realloc(self.fresh, self.fresh_capacity * sizeof(idx_t))
            if moved[0] == NULL:
                self.fresh_capacity = self.fresh_n
                with gil:
                    raise MemoryError(f"KeyTable: no memory for {extra} new keys")
            self.fresh = <idx_t*> moved[0]
        if need > capacity:
            capacity = FIRST_CAPACITY if capacity == 0 else capacity
            while capacity < need:
                capacity *= 2
            if capacity > MAX_KEYS:
                with gil:
                    raise MemoryError(f"KeyTable: at most {MAX_KEYS} keys at a time")
            if self.is_bytes:
                moved[0] = realloc(self.texts, capacity * sizeof(Text))
                if moved[0] != NULL:
                    self.texts = <Text*> moved[0]
            else:
                moved[0] = realloc(self.ints, capacity * sizeof(int64_t))
                if moved[0] != NULL:
                    self.ints = <int64_t*> moved[0]
            moved[1] = realloc(self.refs, capacity * sizeof(int32_t))
            if moved[1] != NULL:
                self.refs = <int32_t*> moved[1]
            moved[2] = realloc(self.next_free, capacity * sizeof(idx_t))
            if moved[2] != NULL:
                self.next_free = <idx_t*> moved[2]
            if moved[0] == NULL or moved[1] == NULL or moved[2] == NULL:
                with gil:
                    raise MemoryError(f"KeyTable: no memory for {capacity} keys")
            self.capacity = <idx_t> capacity
        size = 2 * FIRST_CAPACITY if size == 0 else size
        while size < 2 * need:
            size *= 2
        if size != self.index_size:
            return self._rehash(size)
        return 0

    cdef int _rehash(self, Py_ssize_t size) except -1 nogil:
        cdef idx_t* index = <idx_t*> malloc(size * sizeof(idx_t))
        cdef Py_ssize_t i, at
        cdef idx_t key
        if index == NULL:
            with gil:
                raise MemoryError(f"KeyTable: no memory for an index of {size}")
        for i in range(size):
            index[i] = NONE
        for key in range(self.top):
            if self.refs[key] != FREE_ID and key != self.null_id:
                at = <Py_ssize_t> (self._hash_of(key) & <uint64_t> (size - 1))
                while index[at] != NONE:
                    at = (at + 1) & (size - 1)
                index[at] = key
        free(self.index)
        self.index = index
        self.index_size = size
        return 0

    cdef int _reserve_arena(self, int64_t extra) except -1 nogil:
        cdef int64_t capacity, at = 0
        cdef uint8_t* arena
        cdef idx_t key
        if self.arena_size + extra <= self.arena_capacity:
            return 0
        # Leave behind the text of keys that are gone.
        capacity = 2 * (self.arena_size - self.arena_garbage + extra)
        arena = <uint8_t*> malloc(max(capacity, 1024))
        if arena == NULL:
            with gil:
                raise MemoryError(f"KeyTable: no memory for {capacity} bytes of keys")
        for key in range(self.top):
            if self.refs[key] != FREE_ID and key != self.null_id:
                memcpy(arena + at, self.arena + self.texts[key].at, self.texts[key].length)
                self.texts[key].at = at
                at += self.texts[key].length
        free(self.arena)
        self.arena = arena
        self.arena_size = at
        self.arena_garbage = 0
        self.arena_capacity = max(capacity, 1024)
        return 0

    cdef idx_t _new_id(self) noexcept nogil:
        cdef idx_t key = self.free
        if key != NONE:
            self.free = self.next_free[key]
        else:
            key = self.top
            self.top += 1
        self.refs[key] = 0
        self.live += 1
        self.fresh[self.fresh_n] = key
        self.fresh_n += 1
        return key

    cdef uint64_t _hash_of(self, idx_t key) noexcept nogil:
        return self.texts[key].hash if self.is_bytes else mix(<uint64_t> self.ints[key])

    cdef idx_t _null(self) noexcept nogil:
        if self.null_id == NONE:
            self.null_id = self._new_id()
            if self.is_bytes:
                self.texts[self.null_id].length = 0
                self.texts[self.null_id].at = 0
            else:
                self.ints[self.null_id] = 0
        return self.null_id

    cdef void _forget(self, idx_t key) noexcept nogil:
        cdef Py_ssize_t at, gap, home, mask = self.index_size - 1
        if key == self.null_id:
            self.null_id = NONE
        else:
            at = <Py_ssize_t> (self._hash_of(key) & <uint64_t> mask)
            while self.index[at] != key:
                at = (at + 1) & mask
            gap = at
            while True:         # close the gap: move back what probing would no longer reach
                at = (at + 1) & mask
                if self.index[at] == NONE:
                    break
                home = <Py_ssize_t> (self._hash_of(self.index[at]) & <uint64_t> mask)
                if ((at - home) & mask) >= ((at - gap) & mask):
                    self.index[gap] = self.index[at]
                    gap = at
            self.index[gap] = NONE
            if self.is_bytes:
                self.arena_garbage += self.texts[key].length
        self.refs[key] = FREE_ID
        self.next_free[key] = self.free
        self.free = key
        self.live -= 1

    def intern_int64(self, const int64_t[::1] values not None, const uint8_t[::1] valid=None):
        """Returns the ids of int64 keys, new ids for new keys: int32[n].

        values: int64[n]. valid: uint8[n], 0 marks null; None: no nulls. Amortised O(n).
        Raises ValueError for a table of bytes keys.
        """
        cdef Py_ssize_t i, at, mask, n = values.shape[0]
        cdef idx_t key
        cdef int64_t value
        if self.is_bytes:
            raise ValueError("KeyTable: holds bytes keys, got int64 keys")
        if valid is not None and valid.shape[0] != n:
            raise ValueError(f"valid: {valid.shape[0]} marks for {n} keys")
        out = np.empty(n, dtype=np.int32)
        cdef idx_t[::1] ids = out
        with nogil:
            self._reserve(1)
            mask = self.index_size - 1
            for i in range(n):
                if valid is not None and not valid[i]:
                    self._reserve(1)
                    mask = self.index_size - 1
                    ids[i] = self._null()
                    continue
                value = values[i]
                at = <Py_ssize_t> (mix(<uint64_t> value) & <uint64_t> mask)
                key = self.index[at]
                while key != NONE and self.ints[key] != value:
                    at = (at + 1) & mask
                    key = self.index[at]
                if key == NONE:
                    self._reserve(1)
                    if mask != self.index_size - 1:
                        mask = self.index_size - 1
                        at = <Py_ssize_t> (mix(<uint64_t> value) & <uint64_t> mask)
                        while self.index[at] != NONE:
                            at = (at + 1) & mask
                    key = self._new_id()
                    self.ints[key] = value
                    self.index[at] = key
                ids[i] = key
        return out

    def intern_bytes(self, const offset_t[::1] offsets not None, const uint8_t[::1] data not None,
                     const uint8_t[::1] valid=None):
        """Returns the ids of bytes keys ``data[offsets[i]:offsets[i + 1]]``: int32[n].

        offsets: int32 or int64[n + 1], ascending, within data. valid: uint8[n], 0 marks null.
        Amortised O(n + bytes). Raises ValueError for a table of int64 keys.
        """
        cdef Py_ssize_t i, at, mask, n = offsets.shape[0] - 1
        cdef idx_t key
        cdef uint64_t h
        cdef int64_t length
        cdef const uint8_t* text
        cdef const uint8_t* start = &data[0] if data.shape[0] else NULL
        if not self.is_bytes:
            raise ValueError("KeyTable: holds int64 keys, got bytes keys")
        if n < 0:
            raise ValueError("offsets: at least one is needed, got none")
        if offsets[0] < 0 or offsets[n] > data.shape[0]:
            raise ValueError(f"offsets: [{offsets[0]}, {offsets[n]}] lie outside {data.shape[0]} bytes")
        if valid is not None and valid.shape[0] != n:
            raise ValueError(f"valid: {valid.shape[0]} marks for {n} keys")
        out = np.empty(n, dtype=np.int32)
        cdef idx_t[::1] ids = out
        with nogil:
            self._reserve(1)
            mask = self.index_size - 1
            for i in range(n):
                if valid is not None and not valid[i]:
                    self._reserve(1)
                    mask = self.index_size - 1
                    ids[i] = self._null()
                    continue
                text = start + offsets[i]
                length = offsets[i + 1] - offsets[i]
                h = hash_bytes(text, length)
                at = <Py_ssize_t> (h & <uint64_t> mask)
                key = self.index[at]
                while key != NONE and not (
                    self.texts[key].hash == h and self.texts[key].length == length
                    and memcmp(self.arena + self.texts[key].at, text, length) == 0
                ):
                    at = (at + 1) & mask
                    key = self.index[at]
                if key == NONE:
                    self._reserve(1)
                    self._reserve_arena(length)
                    if mask != self.index_size - 1:
                        mask = self.index_size - 1
                        at = <Py_ssize_t> (h & <uint64_t> mask)
                        while self.index[at] != NONE:
                            at = (at + 1) & mask
                    key = self._new_id()
                    self.texts[key].hash = h
                    self.texts[key].at = self.arena_size
                    self.texts[key].length = length
                    if length:
                        memcpy(self.arena + self.arena_size, text, length)
                    self.arena_size += length
                    self.index[at] = key
                ids[i] = key
        return out

    def take_int64(self, const idx_t[::1] ids not None):
        """Returns ``(values, valid)`` of ids: int64[n] and bool[n], or None where no key is null."""
        cdef Py_ssize_t i, n = ids.shape[0]
        out = np.empty(n, dtype=np.int64)
        cdef int64_t[::1] view = out
        with nogil:
            for i in range(n):
                view[i] = self.ints[ids[i]]
        return out, self._valid(ids)

    def take_bytes(self, const idx_t[::1] ids not None):
        """Returns ``(offsets, data, valid)`` of ids: int64[n + 1], uint8[bytes], bool[n] or None."""
        cdef Py_ssize_t i, n = ids.shape[0]
        cdef int64_t total = 0
        ends = np.empty(n + 1, dtype=np.int64)
        cdef int64_t[::1] offsets = ends
        for i in range(n):
            offsets[i] = total
            total += self.texts[ids[i]].length
        offsets[n] = total
        out = np.empty(total, dtype=np.uint8)
        cdef uint8_t[::1] data = out
        cdef Text text
        with nogil:
            for i in range(n):
                text = self.texts[ids[i]]
                if text.length:
                    memcpy(&data[offsets[i]], self.arena + text.at, text.length)
        return ends, out, self._valid(ids)

    def _valid(self, const idx_t[::1] ids):
        if self.null_id == NONE:
            return None
        valid = np.asarray(ids) != self.null_id
        return None if valid.all() else valid

    def retain_ids(self, const idx_t[::1] ids not None):
        """Counts one more row for each id."""
        for i in range(ids.shape[0]):
            self.retain(ids[i])

    def release_ids(self, const idx_t[::1] ids not None):
        """Counts one row less for each id; an id without rows is forgotten."""
        for i in range(ids.shape[0]):
            if self.refs[ids[i]] < 1:
                raise ValueError(f"ids: {ids[i]} is not retained")
            self.release(ids[i])

    def sweep(self):
        """Forgets the keys interned since the last sweep that no row retained. O(such keys)."""
        cdef Py_ssize_t i
        for i in range(self.fresh_n):
            if self.refs[self.fresh[i]] == 0:
                self._forget(self.fresh[i])
        self.fresh_n = 0

    def ids(self):
        """Returns the ids in use, ascending: int32[len]."""
        return np.array([key for key in range(self.top) if self.refs[key] != FREE_ID], dtype=np.int32)

    def _check(self):
        """Raises AssertionError where an invariant does not hold. O(keys)."""
        cdef idx_t key, live = 0, gone = 0
        cdef Py_ssize_t at, indexed = 0, mask = self.index_size - 1
        for key in range(self.top):
            if self.refs[key] == FREE_ID:
                continue
            live += 1
            if key == self.null_id:
                continue
            at = <Py_ssize_t> (self._hash_of(key) & <uint64_t> mask)
            while self.index[at] != key:
                assert self.index[at] != NONE, f"key {key} cannot be found"
                at = (at + 1) & mask
        for at in range(self.index_size):
            indexed += self.index[at] != NONE
        key = self.free
        while key != NONE:
            assert self.refs[key] == FREE_ID, f"id {key} is free and in use"
            gone += 1
            assert gone <= self.top, "the free list runs in a circle"
            key = self.next_free[key]
        assert live == self.live, f"{live} keys are live, counted {self.live}"
        assert live + gone == self.top, f"{live} live and {gone} free keys, top {self.top}"
        assert indexed == live - (self.null_id != NONE), f"{indexed} of {live} keys are in the index"
