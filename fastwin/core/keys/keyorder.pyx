"""KeyOrder: all elements of a table by key, and those of a key by time."""

import numpy as np

from libc.stdint cimport INT64_MIN
from libc.stdlib cimport free, malloc

from fastwin.core.typedefs cimport idx_t, int64_t, ts_t
from fastwin.core.memory.bits cimport bit_length
from fastwin.core.memory.bounds cimport check_ids, check_int64, check_length
from fastwin.core.memory.pages cimport ask_large_pages, prefetch_to_write
from fastwin.core.memory.radixsort cimport sort_in_place
from fastwin.core.timemath cimport between, check_duration, check_time

cdef enum:
    NUMBER_BITS = 63            # for a time and an element's number together
    AHEAD = 16                  # elements whose places are fetched before it is their turn


cdef class KeyOrder:
    """Elements by key, and those of a key by time and arrival.

    ids: of the keys, below ``top``. times: ms. Raises ValueError for another length or a negative top, IndexError for
    other ids, MemoryError.
    O(n + top), as long as keys are not far out of order and the times of n elements lie within 2**63 / n ms; beyond
    that they are sorted once more. 8 bytes an element.
    """

    def __cinit__(self, const idx_t[::1] ids not None, const int64_t[::1] times not None, idx_t top):
        cdef Py_ssize_t i
        self.n = ids.shape[0]
        check_length("times", times.shape[0], self.n)
        check_int64("times", times)
        if top < 0:
            raise ValueError(f"top: must be at least 0, got {top}")
        check_ids("ids", ids, top)
        out = np.zeros(top + 1, dtype=np.int64)
        cdef int64_t[::1] bounds = out
        self.first = self.last = times[0] if self.n else 0
        with nogil:
            for i in range(self.n):
                self.first = min(self.first, times[i])
                self.last = max(self.last, times[i])
                bounds[ids[i] + 1] += 1
        self.bits = bit_length(self.n)
        self.ranked = bit_length(between(self.first, self.last)) + self.bits > NUMBER_BITS
        if self.ranked:
            self.distinct, ranks = np.unique(times, return_inverse=True)
            times = ranks
        self.base = 0 if self.ranked else self.first
        self.packed = <int64_t*> malloc(self.n * sizeof(int64_t) + 1)
        if self.packed == NULL:
            raise MemoryError(f"KeyOrder: no memory to order {self.n} elements")
        ask_large_pages(self.packed, self.n * sizeof(int64_t))
        self._group(ids, times, bounds)
        out.flags.writeable = False         # kernels trust them
        self.bounds = out

    def __dealloc__(self):
        free(self.packed)

    cdef int _group(self, const idx_t[::1] ids, const int64_t[::1] times, int64_t[::1] bounds) except -1:
        cdef Py_ssize_t i, key, top = bounds.shape[0] - 1
        cdef int64_t at
        with nogil:
            for key in range(top):          # how many a key has, until here
                bounds[key + 1] += bounds[key]
            for i in range(self.n):         # moves each bound to the next one's place
                if i + AHEAD < self.n:
                    prefetch_to_write(&self.packed[bounds[ids[i + AHEAD]]])
                at = bounds[ids[i]]
                self.packed[at] = (times[i] - self.base) << self.bits | i
                bounds[ids[i]] = at + 1
            for key in range(top, 0, -1):
                bounds[key] = bounds[key - 1]
            bounds[0] = 0
            for key in range(top):
                if not sort_in_place(self.packed + bounds[key], bounds[key + 1] - bounds[key]):
                    with gil:
                        raise MemoryError("KeyOrder: no memory to sort the elements of a key")
        return 0

    def slice(self, Py_ssize_t begin, Py_ssize_t end):
        """Returns ``(numbers, times)`` of the elements at places ``[begin, end)``: which they are, and ms; int64 each.

        Raises IndexError for places that are not there. O(end - begin).
        """
        cdef Py_ssize_t i
        if not 0 <= begin <= end <= self.n:
            raise IndexError(f"slice: must lie within [0, {self.n}), got [{begin}, {end})")
        out, out_times = np.empty(end - begin, dtype=np.int64), np.empty(end - begin, dtype=np.int64)
        cdef int64_t[::1] numbers = out, times = out_times
        with nogil:
            for i in range(begin, end):
                numbers[i - begin] = self.number(i)
                times[i - begin] = self.time(i)
        return out, out_times

    cdef int check_sessions(self, int64_t gap) except -1:
        """Raises ValueError for a gap that is not 1 to 2**61 ms, or times beyond +-2**61 ms."""
        check_duration("gap", gap, 1)
        check_time("times", self.first)
        check_time("times", self.last)
        return 0

    def parts(self, Py_ssize_t least):
        """Divides the keys into ranges that have at least so many elements, but the last one: int32[parts + 1].

        Part i are the keys ``[parts[i], parts[i + 1])``. A range of keys without elements is none. O(top).
        """
        cdef const int64_t[::1] bounds = self.bounds
        cdef Py_ssize_t key, begin = 0
        found = [0]
        for key in range(1, bounds.shape[0]):
            if bounds[key] - begin >= max(least, 1):
                found.append(key)
                begin = bounds[key]
        if begin < self.n:
            found.append(bounds.shape[0] - 1)
        return np.array(found, dtype=np.int32)

    def session_ends(self, int64_t gap):
        """Returns the ends of the sessions that the elements make, and where each key's begin.

        gap: 1 to 2**61 ms, and times are within +-2**61: ValueError for others. ms, int64 each; those of key k are
        ``ends[begins[k]:begins[k + 1]]``, by time. O(n).
        """
        cdef const int64_t[::1] bounds = self.bounds
        cdef Py_ssize_t key, i, found = -1
        cdef ts_t end
        self.check_sessions(gap)
        out, out_begins = np.empty(self.n, dtype=np.int64), np.empty(bounds.shape[0], dtype=np.int64)
        cdef int64_t[::1] ends = out, begins = out_begins
        with nogil:
            for key in range(bounds.shape[0] - 1):
                begins[key] = found + 1
                end = INT64_MIN
                for i in range(bounds[key], bounds[key + 1]):
                    found += self.time(i) > end
                    end = self.time(i) + gap
                    ends[found] = end
            begins[bounds.shape[0] - 1] = found + 1
        return out[: found + 1], out_begins
