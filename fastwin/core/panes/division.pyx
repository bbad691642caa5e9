"""Division: the elements of a table in shares, each with all elements of some (key, pane) pairs, side by side.

So the rows of accumulators of a share stay in the cache, in whatever order the elements came; and shares are in the
order of their panes. This is the partitioning step of a radix join (Manegold, Boncz, Kersten: Optimizing Main-Memory
Join on Modern Hardware, 2002).
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
    CELLS = 4096                # of time, each with few bands

most_shares = MOST_SHARES

ctypedef fused cell:
    int64_t
    uint8_t

cdef struct Band:
    ts_t edge
    uint32_t first, width       # of its shares


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
    """Divides elements into shares by their panes, and those of a pane of many by the hash of the key: all parts alike.

    texts: bool a key column, see GroupTable. edges: int64[bands + 1], ascending, ms: a band has the panes that start at
    its edge or later, and before the next one. widths: int64[bands], how many shares each has, of up to most_shares in
    all. The shares of a band come before those of the next; panes outside of the bands are in none.
    """

    cdef tuple texts
    cdef readonly Py_ssize_t shares
    cdef Py_ssize_t bands
    cdef bint wide                  # whether a band has several shares
    cdef Band* found
    cdef uint16_t[CELLS + 1] before     # how many of the edges between bands are in cells before each
    cdef ts_t first                 # these edges; cells are as long as each other, and have them all
    cdef double per_ms
    cdef HashIndex seed             # what hashes begin with; it has no places

    def __cinit__(self, texts, const int64_t[::1] edges not None, const int64_t[::1] widths not None):
        cdef Py_ssize_t bands = widths.shape[0], band, cell = 0, total = 0
        if not 1 <= bands <= MOST_SHARES or edges.shape[0] != bands + 1:
            raise ValueError(f"edges: must be one more than widths, which are 1 to {MOST_SHARES}; got {edges.shape[0]} "
                             f"and {bands}")
        for band in range(bands):
            if edges[band] >= edges[band + 1]:
                raise ValueError(f"edges: must ascend, got {edges[band]} before {edges[band + 1]}")
            if not 1 <= widths[band] <= MOST_SHARES - total:
                raise ValueError(f"widths: must be at least 1, and {MOST_SHARES} in all at most, got {widths[band]} "
                                 f"behind {total}")
            total += widths[band]
        self.texts, self.shares, self.bands, self.wide = tuple(map(bool, texts)), total, bands, total > bands
        self.found = <Band*> malloc((bands + 1) * sizeof(Band))
        if self.found == NULL:
            raise MemoryError(f"Divider: no memory for {bands} bands")
        total = 0
        for band in range(bands):
            self.found[band].edge, self.found[band].first = edges[band], <uint32_t> total
            self.found[band].width = <uint32_t> widths[band]
            total += widths[band]
        self.found[bands].edge, self.found[bands].first, self.found[bands].width = edges[bands], <uint32_t> total, 0
        self.first = edges[1]
        self.per_ms = <double> CELLS / (<double> edges[max(bands - 1, <Py_ssize_t> 1)] - <double> edges[1] + 1.0)
        for band in range(1, bands):
            while cell <= self._cell(edges[band]):
                self.before[cell] = <uint16_t> (band - 1)
                cell += 1
        for cell in range(cell, CELLS + 1):
            self.before[cell] = <uint16_t> (bands - 1)
        seed_index(&self.seed)

    def __dealloc__(self):
        free(self.found)

    def divide(self, list keys not None, const int64_t[::1] times not None, int64_t slide, int64_t offset,
               const int64_t[::1] bounds=None):
        """Returns the Division of a part of a table.

        keys, times, slide, offset, bounds: see GroupTable.feed. Raises ValueError for what does not suit. O(n).
        """
        cdef Py_ssize_t n = times.shape[0], width = len(self.texts)
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
                self._number(columns, width, &slicer, &times[0], n, found.numbers, &counts[0])
        finally:
            free(columns)
        return found

    cdef Py_ssize_t _cell(self, ts_t start) noexcept nogil:
        """Returns the cell of a pane's start. A later one has no earlier cell."""
        cdef double place = (<double> start - <double> self.first) * self.per_ms
        return <Py_ssize_t> min(max(place, 0.0), <double> (CELLS - 1))

    cdef Py_ssize_t _band(self, ts_t start) noexcept nogil:
        """Returns the last band whose edge is not behind a pane's start, or the first one."""
        cdef Py_ssize_t cell = self._cell(start), low = self.before[cell], high = self.before[cell + 1], middle
        while low < high:
            middle = (low + high + 1) // 2
            if self.found[middle].edge <= start:
                low = middle
            else:
                high = middle - 1
        return low

    cdef void _number(self, const KeyColumn* columns, Py_ssize_t width, Slicer* slicer, const ts_t* times, Py_ssize_t n,
                      uint16_t* numbers, int64_t* counts) noexcept nogil:
        """Fills in the shares of elements, and counts them."""
        cdef Py_ssize_t at = 0, m, i
        cdef ts_t first = self.found[0].edge, last = self.found[self.bands].edge
        cdef Band band
        cdef ts_t[BLOCK] starts
        cdef uint64_t[BLOCK] hashes
        while at < n:
            m = min(<Py_ssize_t> BLOCK, n - at)
            slices_of(slicer, times + at, m, starts)
            if self.wide:
                for i in range(m):
                    hashes[i] = stir(self.seed.start, <uint64_t> starts[i], self.seed.factor)
                hash_keys(columns, width, at, m, self.seed.factor, hashes)
                for i in range(m):
                    band = self.found[self._band(starts[i])]
                    numbers[at + i] = <uint16_t> (
                        band.first + ((<uint64_t> <uint32_t> hashes[i] * band.width) >> 32)
                    )
            else:
                for i in range(m):
                    numbers[at + i] = <uint16_t> self._band(starts[i])
            for i in range(m):
                if not first <= starts[i] < last:
                    numbers[at + i] = <uint16_t> self.shares
            for i in range(m):
                counts[numbers[at + i]] += 1
            at += m
