"""TextStore: byte strings by id, one after another in an arena; the bytes of those dropped are won back as it grows."""

from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy

from fastwin._typedefs cimport idx_t, int64_t, uint8_t, uint64_t

cdef enum:
    FIRST_CAPACITY = 1024


cdef class TextStore:
    """Byte strings by id. Used by KeyTable, at C level."""

    def __dealloc__(self):
        self.clear()

    @property
    def nbytes(self):
        """Bytes allocated."""
        return self.ids * <Py_ssize_t> sizeof(Text) + self.capacity

    cdef int reserve_ids(self, Py_ssize_t ids) except -1 nogil:
        """Makes room for ids below ``ids``; new ones have no text."""
        cdef Py_ssize_t i
        cdef void* moved = realloc(self.texts, ids * sizeof(Text))
        if moved == NULL:
            with gil:
                raise MemoryError(f"TextStore: no memory for {ids} texts")
        self.texts = <Text*> moved
        for i in range(self.ids, ids):
            self.texts[i].length = ABSENT
        self.ids = ids
        return 0

    cdef int reserve(self, int64_t extra) except -1 nogil:
        """Makes room for ``extra`` bytes; what was dropped is left behind. Amortised O(extra)."""
        cdef int64_t capacity, used = 0
        cdef uint8_t* arena
        cdef Text* text
        cdef Py_ssize_t i
        if self.used + extra <= self.capacity:
            return 0
        capacity = max(2 * (self.used - self.garbage + extra), <int64_t> FIRST_CAPACITY)
        arena = <uint8_t*> malloc(capacity)
        if arena == NULL:
            with gil:
                raise MemoryError(f"TextStore: no memory for {capacity} bytes")
        for i in range(self.ids):
            text = self.texts + i
            if text.length > 0:
                memcpy(arena + used, self.arena + text.at, text.length)
                text.at = used
                used += text.length
        free(self.arena)
        self.arena = arena
        self.used = used
        self.garbage = 0
        self.capacity = capacity
        return 0

    cdef void put(self, idx_t key, uint64_t h, const uint8_t* text, int64_t length) noexcept nogil:
        """Stores a text for an id that has none; reserve() has made room for both."""
        self.texts[key].hash = h
        self.texts[key].at = self.used
        self.texts[key].length = length
        if length:
            memcpy(self.arena + self.used, text, length)
            self.used += length

    cdef void drop(self, idx_t key) noexcept nogil:
        self.garbage += self.length(key)
        self.texts[key].length = ABSENT

    cdef void clear(self) noexcept nogil:
        """Gives all memory back."""
        free(self.texts)
        free(self.arena)
        self.texts = NULL
        self.arena = NULL
        self.ids = self.used = self.garbage = self.capacity = 0

    def _check(self):
        """Raises AssertionError where an invariant does not hold. O(ids)."""
        cdef int64_t total = 0
        cdef Py_ssize_t i
        for i in range(self.ids):
            if self.texts[i].length > 0:
                total += self.texts[i].length
                assert 0 <= self.texts[i].at <= self.used - self.texts[i].length, f"text {i} lies outside the arena"
        assert total == self.used - self.garbage, f"{total} bytes of text, counted {self.used} - {self.garbage}"
        assert self.used <= self.capacity, f"{self.used} bytes used of {self.capacity}"
