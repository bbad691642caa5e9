"""HyperLogLog over rows: how many distinct values there are, with the registers, the hash and the estimate of Redis."""

import numpy as np

cimport cython

from fastwin._typedefs cimport idx_t, int64_t, uint8_t, uint32_t, uint64_t
from fastwin.core.accumulator_set cimport VALUE, Accumulator as Base, Column, Merge, Take, has, into, taken, wanted
from fastwin.core.blocks cimport bytes_in, size_in
from fastwin.core.bounds cimport check_ids, check_offsets, offset_t
from fastwin.core.redishll cimport MOST_BYTES, write_sketch
from fastwin.core.registers cimport FIRST_PLACES, MOST_PLACES, REGISTERS, cardinality, count_values, index_of
from fastwin.core.registers cimport merge_registers, murmur, places_in, raise_register, value_of
from fastwin.core.rows cimport RowStore

__all__ = ["HyperLogLog", "hash_int64", "hash_text", "hash_uint64"]


cdef inline int64_t write_digits(uint8_t* end, uint64_t size, bint negative) noexcept nogil:
    """Writes decimal text that ends before ``end``; returns its length."""
    cdef uint8_t* at = end
    while True:
        at -= 1
        at[0] = <uint8_t> (48 + size % 10)
        size = size // 10
        if size == 0:
            break
    if negative:
        at -= 1
        at[0] = 45
    return end - at


def hash_text(const offset_t[::1] offsets not None, const uint8_t[::1] data not None):
    """Returns the hash of the byte strings ``data[offsets[i]:offsets[i + 1]]`` as Redis has it: int64[n].

    Raises ValueError for offsets that do not ascend within data. O(bytes).
    """
    cdef Py_ssize_t i, n = offsets.shape[0] - 1
    cdef const uint8_t* start = &data[0] if data.shape[0] else NULL
    check_offsets(offsets, data.shape[0])
    out = np.empty(n, dtype=np.int64)
    cdef int64_t[::1] view = out
    with nogil:
        for i in range(n):
            view[i] = <int64_t> murmur(start + offsets[i], offsets[i + 1] - offsets[i])
    return out


def hash_int64(const int64_t[::1] values not None):
    """Returns the hash of the decimal text of each value as Redis has it: int64[n]. O(n)."""
    cdef Py_ssize_t i, n = values.shape[0]
    cdef uint8_t[32] text
    cdef int64_t length
    cdef uint64_t size
    out = np.empty(n, dtype=np.int64)
    cdef int64_t[::1] view = out
    with nogil:
        for i in range(n):
            size = <uint64_t> values[i]
            if values[i] < 0:
                size = ~size + 1        # also right for the lowest int64
            length = write_digits(&text[0] + 32, size, values[i] < 0)
            view[i] = <int64_t> murmur(&text[0] + 32 - length, length)
    return out


def hash_uint64(const uint64_t[::1] values not None):
    """Returns the hash of the decimal text of each value as Redis has it: int64[n]. O(n)."""
    cdef Py_ssize_t i, n = values.shape[0]
    cdef uint8_t[32] text
    cdef int64_t length
    out = np.empty(n, dtype=np.int64)
    cdef int64_t[::1] view = out
    with nogil:
        for i in range(n):
            length = write_digits(&text[0] + 32, values[i], False)
            view[i] = <int64_t> murmur(&text[0] + 32 - length, length)
    return out


@cython.final
cdef class HyperLogLog(Base):
    """Counts distinct values by their hashes, about. Cells: the block of registers.

    column: of hashes, as hash_text() and its like give them. output: ``"estimate"``, how many distinct values, or
    ``"sketch"``, the registers as the string that Redis keeps.
    """

    cdef bint gives_estimate

    def __cinit__(self, dtype="int64", int column=0, output="estimate"):
        if dtype != "int64":
            raise ValueError(f"HyperLogLog: takes int64 hashes, got {dtype!r}")
        if output not in ("estimate", "sketch"):
            raise ValueError(f"HyperLogLog: output must be 'estimate' or 'sketch', got {output!r}")
        self.owned = (0,)
        self.gives_estimate = output == "estimate"
        self.gives_bytes = output == "sketch"

    cdef void add(self, char* rows, Py_ssize_t stride, const idx_t* slots, Py_ssize_t n, Column column) noexcept nogil:
        cdef Py_ssize_t i
        cdef const uint64_t* hashes = <const uint64_t*> column.values
        for i in range(n):
            if has(column.valid, i):
                if not raise_register(rows + slots[i] * stride + self.at, index_of(hashes[i]), value_of(hashes[i])):
                    self.starved = True

    cdef void merge(self, Merge pairs) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(pairs.n):
            if not merge_registers(into(&pairs, i) + self.at, taken(&pairs, i) + self.at):
                self.starved = True

    cdef void take(self, const Take* rows, void* values, uint8_t* marks) noexcept nogil:
        cdef Py_ssize_t i, k
        cdef int64_t[64] counts
        for i in range(rows.n):
            for k in range(64):
                counts[k] = 0
            count_values(wanted(rows, i) + self.at, &counts[0])
            (<int64_t*> values)[i] = cardinality(&counts[0])
            marks[i] = VALUE            # a count is never null

    cdef tuple blobs(self, RowStore rows, const idx_t[::1] slots):
        cdef Py_ssize_t i, n = slots.shape[0]
        cdef int64_t total = 0
        check_ids("slots", slots, rows.top)
        ends_out = np.empty(n + 1, dtype=np.int64)
        cdef int64_t[::1] ends = ends_out
        cdef uint8_t[::1] data
        out = np.empty(max(n, 1) * 64, dtype=np.uint8)
        for i in range(n):
            ends[i] = total
            if total + MOST_BYTES > len(out):
                out = np.concatenate([out[:total], np.empty(total + MOST_BYTES, dtype=np.uint8)])
            data = out
            total += write_sketch(<char*> rows.head(slots[i]) + self.at, &data[total])
        ends[n] = total
        return ends_out, out[:total].copy(), None

    cdef bint sound(self, const char* row) noexcept nogil:
        cdef Py_ssize_t places = places_in(row + self.at), i, found = 0
        cdef const uint32_t* table = <const uint32_t*> bytes_in(row + self.at)
        if size_in(row + self.at) in (0, REGISTERS):
            return True
        if not FIRST_PLACES <= places <= MOST_PLACES or places & (places - 1) or size_in(row + self.at) % 4:
            return False
        for i in range(places):
            found += table[1 + i] != 0
            if table[1 + i] >> 8 >= REGISTERS:
                return False
        return found == table[0] and found < places
