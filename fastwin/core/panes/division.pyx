"""Division: the elements of a table in shares, each with all elements of some (key, pane) pairs, side by side.

So the rows of accumulators of a share stay in the cache, in whatever order the elements came. This is the partitioning
step of a radix join (Manegold, Boncz, Kersten: Optimizing Main-Memory Join on Modern Hardware, 2002).
"""

import numpy as np

from libc.stdint cimport uint16_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

from fastwin.core.keys.keyblocks cimport KeyColumn, hash_keys, hold_keys
from fastwin.core.memory.bounds cimport check_int64, check_length, check_offsets
from fastwin.core.memory.hashindex cimport HashIndex, seed_index, stir
from fastwin.core.panes.slices cimport Slicer, slicer_over, slices_of
from fastwin.core.timemath cimport check_duration, check_times
from fastwin.core.typedefs cimport int64_t, ts_t, uint8_t, uint32_t, uint64_t

__all__ = ["Divider", "Division", "most_shares"]

cdef enum:
    BLOCK = 512
    MOST_SHARES = 4096          # streams that are written at the same time

    EARLIEST = -4611686018427387904     # 2**62 ms: no pane starts before, or behind LATEST
    LATEST = 4611686018427387904

most_shares = MOST_SHARES

ctypedef fused cell:
    int64_t
    uint8_t


cdef class Division:
    """In which share each of n elements is. Made by Divider.

    counts: int64[shares + 1], the elements of each share, and of none.
    """

    cdef uint16_t* numbers          # by element; ``shares``: in none
    cdef Py_ssize_t n
    cdef readonly Py_ssize_t shares
    cdef readonly object counts

    def __cinit__(self, Py_ssize_t n, Py_ssize_t shares):
        self.n, self.shares = n, shares
        self.counts = np.zeros(shares + 1, dtype=np.int64)
        self.numbers = <uint16_t*> malloc(max(n, 1) * sizeof(uint16_t))
        if self.numbers == NULL:
            raise MemoryError(f"Division: no memory for {n} elements")

    def __dealloc__(self):
        free(self.numbers)

    cdef object _places(self, const int64_t[::1] starts, Py_ssize_t room):
        """Returns where the next element of each share goes; those of no share go nowhere."""
        check_length("starts", starts.shape[0], self.shares)
        places = np.zeros(self.shares + 1, dtype=np.int64)
        places[:self.shares] = starts
        if places.min() < 0 or (places > room - self.counts)[:self.shares].any():
            raise ValueError(f"starts: elements must be within {room} places")
        return places

    def spread(self, const cell[::1] values not None, const int64_t[::1] starts not None, cell[::1] into not None):
        """Copies the values of elements to where their shares are: those of share s from ``starts[s]`` on, in order.

        values: int64[n] or uint8[n]. starts: int64[shares]. Raises ValueError for other lengths, or where ``into`` has
        no room. O(n).
        """
        cdef Py_ssize_t i
        cdef int64_t place
        cdef uint16_t number
        cdef uint16_t none = <uint16_t> self.shares
        check_length("values", values.shape[0], self.n)
        if cell is int64_t:
            check_int64("values", values)
            check_int64("into", into)
        cdef int64_t[::1] places = self._places(starts, into.shape[0])
        with nogil:
            for i in range(self.n):
                number = self.numbers[i]
                if number != none:
                    place = places[number]
                    places[number] = place + 1
                    into[place] = values[i]

    def text_bytes(self, const int64_t[::1] offsets not None):
        """Returns how many bytes the texts of each share have, and of none: int64[shares + 1].

        offsets: int64[n + 1], of the texts of elements, ascending. Raises ValueError for other lengths.
        """
        cdef Py_ssize_t i
        check_length("offsets", offsets.shape[0] - 1, self.n)
        out = np.zeros(self.shares + 1, dtype=np.int64)
        cdef int64_t[::1] total = out
        with nogil:
            for i in range(self.n):
                total[self.numbers[i]] += offsets[i + 1] - offsets[i]
        return out

    def spread_texts(self, const int64_t[::1] offsets not None, const uint8_t[::1] data not None,
                     const int64_t[::1] starts not None, const int64_t[::1] first_bytes not None,
                     int64_t[::1] into_offsets not None, uint8_t[::1] into_data not None):
        """Copies texts as ``spread`` does numbers, and writes where each begins to ``into_offsets``.

        offsets, data: texts of the elements, as KeyTable takes them. first_bytes: int64[shares], where in ``into_data``
        the texts of each share begin. Raises ValueError for what does not suit.
        """
        cdef Py_ssize_t i
        cdef int64_t place, length, byte
        cdef uint16_t number
        cdef uint16_t none = <uint16_t> self.shares
        check_offsets[int64_t](offsets, data.shape[0])
        cdef int64_t[::1] places = self._places(starts, into_offsets.shape[0])
        check_length("first_bytes", first_bytes.shape[0], self.shares)
        bytes_out = np.append(first_bytes, 0)
        if bytes_out.min() < 0 or (bytes_out > into_data.shape[0] - self.text_bytes(offsets))[:self.shares].any():
            raise ValueError(f"first_bytes: texts must be within {into_data.shape[0]} bytes")
        cdef int64_t[::1] next_bytes = bytes_out
        with nogil:
            for i in range(self.n):
                number = self.numbers[i]
                if number == none:
                    continue
                place, byte = places[number], next_bytes[number]
                length = offsets[i + 1] - offsets[i]
                places[number] = place + 1
                next_bytes[number] = byte + length
                into_offsets[place] = byte
                if length:
                    memcpy(&into_data[byte], &data[offsets[i]], length)


cdef class Divider:
    """Divides elements into ``shares`` by the hash of key and pane: all parts of a table alike.

    texts: bool a key column, see GroupTable. shares: 1 to most_shares.
    """

    cdef tuple texts
    cdef uint32_t shares
    cdef HashIndex seed             # what hashes begin with; it has no places

    def __cinit__(self, texts, Py_ssize_t shares):
        if not 1 <= shares <= MOST_SHARES:
            raise ValueError(f"shares: must be 1 to {MOST_SHARES}, got {shares}")
        self.texts, self.shares = tuple(map(bool, texts)), <uint32_t> shares
        seed_index(&self.seed)

    def divide(self, list keys not None, const int64_t[::1] times not None, int64_t slide, int64_t offset,
               const int64_t[::1] bounds=None, since=None, until=None):
        """Returns the Division of a part of a table.

        keys, times, slide, offset, bounds: see GroupTable.feed. since, until: panes that start before or from there on
        are passed over; None: all are taken. Raises ValueError for what does not suit. O(n).
        """
        cdef Py_ssize_t n = times.shape[0], width = len(self.texts)
        cdef ts_t first = EARLIEST if since is None else since, last = LATEST if until is None else until
        cdef Division found = Division(n, self.shares)
        cdef int64_t[::1] counts = found.counts
        cdef KeyColumn* columns
        cdef Slicer slicer
        check_duration("slide", slide, 1)
        if not -slide < offset < slide:
            raise ValueError(f"offset: must be below slide={slide}, got {offset}")
        check_times("times", times)
        if not n:
            return found
        slicer = slicer_over(times, slide, 0, offset, bounds)
        columns = <KeyColumn*> calloc(max(width, 1), sizeof(KeyColumn))
        if columns == NULL:
            raise MemoryError("Divider: no memory for the columns")
        try:
            _keys = hold_keys(columns, self.texts, keys, n)
            with nogil:
                self._number(columns, width, &slicer, &times[0], n, first, last, found.numbers, &counts[0])
        finally:
            free(columns)
        return found

    cdef void _number(self, const KeyColumn* columns, Py_ssize_t width, Slicer* slicer, const ts_t* times, Py_ssize_t n,
                      ts_t first, ts_t last, uint16_t* numbers, int64_t* counts) noexcept nogil:
        """Fills in the shares of elements in panes that start at ``first`` or later and before ``last``; counts all."""
        cdef Py_ssize_t at = 0, m, i
        cdef uint32_t shares = self.shares
        cdef ts_t[BLOCK] starts
        cdef uint64_t[BLOCK] hashes
        while at < n:
            m = min(<Py_ssize_t> BLOCK, n - at)
            slices_of(slicer, times + at, m, starts)
            for i in range(m):
                hashes[i] = stir(self.seed.start, <uint64_t> starts[i], self.seed.factor)
            hash_keys(columns, width, at, m, self.seed.factor, hashes)
            for i in range(m):
                numbers[at + i] = <uint16_t> ((<uint64_t> <uint32_t> hashes[i] * shares) >> 32)
            if first > EARLIEST or last < LATEST:
                for i in range(m):
                    if not first <= starts[i] < last:
                        numbers[at + i] = <uint16_t> shares
            for i in range(m):
                counts[numbers[at + i]] += 1
            at += m
