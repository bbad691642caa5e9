"""HyperLogLog: how many distinct values there are, with the registers, the hash and the estimate of Redis.

The hashes of columns; HyperLogLog, the accumulator over rows; Sketch, one by itself, to and from the string of Redis.
"""
import numpy as np

cimport cython

from cpython.mem cimport PyMem_Free
from libc.string cimport memset, strlen

from fastwin.core.typedefs cimport idx_t, int64_t, uint8_t, uint32_t, uint64_t
from fastwin.core.accumulators.accumulator_set cimport VALUE, Accumulator as Base, Column, Merge, Take
from fastwin.core.accumulators.accumulator_set cimport has, into, taken, wanted
from fastwin.core.memory.bounds cimport check_ids, check_offsets, offset_t
from fastwin.core.memory.owned cimport block_in, bytes_in, drop_block, reserve_block, size_in
from fastwin.core.memory.pages cimport prefetch
from fastwin.core.rows.rowstore cimport RowStore
from fastwin.core.sketches.entries cimport FIRST_PLACES, MOST_LISTED, MOST_PLACES, REGISTERS
from fastwin.core.sketches.redis_hash cimport hash_of_number, murmur
from fastwin.core.sketches.redis_string cimport CUT_OFF, MOST_BYTES, NO_SKETCH, ODD_ENCODING, ODD_SIZE, ODD_VALUE
from fastwin.core.sketches.redis_string cimport READ_ALL, READ_RUN, TOO_LONG, Reading, Run
from fastwin.core.sketches.redis_string cimport begin_reading, expand, next_run, write_sketch
from fastwin.core.sketches.registers cimport HASH_BITS, LISTED, cardinality, count_values, entries_in, entry_of
from fastwin.core.sketches.registers cimport index_of, is_all, is_list, is_table, merge_registers, place_of
from fastwin.core.sketches.registers cimport raise_at_once, raise_register, save_form
from fastwin.errors import SketchError

__all__ = ["HyperLogLog", "Sketch", "redis_hash_float64", "redis_hash_int64", "redis_hash_text", "redis_hash_uint64"]

cdef enum:
    AHEAD = 8

cdef extern from "Python.h":
    int Py_DTSF_ADD_DOT_0
    char* PyOS_double_to_string(double value, char form, int precision, int flags, int* found) except NULL


def redis_hash_text(const offset_t[::1] offsets not None, const uint8_t[::1] data not None):
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


def redis_hash_int64(const int64_t[::1] values not None):
    """Returns the hash of the decimal text of each value as Redis has it: int64[n]. O(n)."""
    cdef Py_ssize_t i, n = values.shape[0]
    cdef uint64_t size
    out = np.empty(n, dtype=np.int64)
    cdef int64_t[::1] view = out
    with nogil:
        for i in range(n):
            size = <uint64_t> values[i]
            if values[i] < 0:
                size = ~size + 1        # also right for the lowest int64
            view[i] = <int64_t> hash_of_number(size, values[i] < 0)
    return out


def redis_hash_uint64(const uint64_t[::1] values not None):
    """Returns the hash of the decimal text of each value as Redis has it: int64[n]. O(n)."""
    cdef Py_ssize_t i, n = values.shape[0]
    out = np.empty(n, dtype=np.int64)
    cdef int64_t[::1] view = out
    with nogil:
        for i in range(n):
            view[i] = <int64_t> hash_of_number(values[i], False)
    return out


def redis_hash_float64(const double[::1] values not None):
    """Returns the hash of the shortest text that reads back as each value, Python's repr, as Redis has it: int64[n].

    O(n). Raises MemoryError where there is no room for a text.
    """
    cdef Py_ssize_t i, n = values.shape[0]
    cdef char* text
    out = np.empty(n, dtype=np.int64)
    cdef int64_t[::1] view = out
    for i in range(n):
        text = PyOS_double_to_string(values[i], b"r", 0, Py_DTSF_ADD_DOT_0, NULL)  # what repr() calls
        view[i] = <int64_t> murmur(<const uint8_t*> text, <int64_t> strlen(text))
        PyMem_Free(text)
    return out


@cython.final
cdef class HyperLogLog(Base):
    """Counts distinct values by their hashes, about. Cells: the block of registers.

    column: of hashes, as redis_hash_text() and its like give them. output: ``"estimate"``, how many distinct values, or
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
        # A row, its block and the place in it are three misses of the cache, each of which needs the one before: they
        # are asked for some elements ahead.
        cdef Py_ssize_t i
        cdef const uint64_t* hashes = <const uint64_t*> column.values
        cdef char* cell
        for i in range(n):
            if i + 3 * AHEAD < n:
                prefetch(rows + slots[i + 3 * AHEAD] * stride + self.at)
            if i + 2 * AHEAD < n:
                prefetch(block_in(rows + slots[i + 2 * AHEAD] * stride + self.at))
            if i + AHEAD < n:
                prefetch(place_of(rows + slots[i + AHEAD] * stride + self.at, index_of(hashes[i + AHEAD])))
            if not has(column.valid, i):
                continue
            cell = rows + slots[i] * stride + self.at
            if not raise_at_once(cell, entry_of(hashes[i])) and not raise_register(cell, entry_of(hashes[i])):
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
            count_values(<char*> wanted(rows, i) + self.at, &counts[0])
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

    cdef bint tidy(self, char* row) noexcept nogil:
        return save_form(row + self.at)

    cdef bint sound(self, const char* row) noexcept nogil:
        # States hold tables, partial results lists as well.
        cdef Py_ssize_t n = entries_in(row + self.at), i, found = 0
        cdef const uint32_t* entries = <const uint32_t*> bytes_in(row + self.at)
        if size_in(row + self.at) in (0, REGISTERS):
            return True
        if size_in(row + self.at) % 4 or n < 0:
            return False
        for i in range(1, n + 1):
            found += entries[i] != 0
            if entries[i] >> 8 >= REGISTERS:
                return False
        if is_list(row + self.at):
            return n <= MOST_LISTED and entries[0] - LISTED <= <uint32_t> n
        return FIRST_PLACES <= n <= MOST_PLACES and n & (n - 1) == 0 and found == entries[0] and found < n


cdef str _fault(int found, Reading reading, Run run):
    """Returns what is wrong with a string."""
    if found == NO_SKETCH:
        return f"sketch: {reading.size} bytes that do not begin as a HyperLogLog of Redis does, with 'HYLL'"
    if found == ODD_ENCODING:
        return f"sketch: encoding {<int> reading.text[4]}, known are 0 (dense) and 1 (sparse)"
    if found == ODD_SIZE:
        return f"sketch: a dense one has {MOST_BYTES} bytes, got {reading.size}"
    if found == ODD_VALUE:
        return f"sketch: register {run.index} is {<int> run.value}, at most {HASH_BITS + 1} is possible"
    if found == CUT_OFF:
        return "sketch: cut off within a run"
    if found == TOO_LONG:
        return f"sketch: runs of more than {REGISTERS} registers"
    return f"sketch: runs of {reading.index} registers, needs {REGISTERS}"


@cython.final
cdef class Sketch:
    """One HyperLogLog by itself. Use ``fastwin.hyperloglog``."""

    cdef void* block

    def __dealloc__(self):
        drop_block(<char*> &self.block)

    cdef int _raise(self, uint32_t entry) except -1:
        if not raise_register(<char*> &self.block, entry):
            raise MemoryError("Sketch: no memory for its registers")
        return 0

    def add_hashes(self, const int64_t[::1] hashes not None):
        """Adds values by their hashes; see redis_hash_text(). O(n)."""
        cdef Py_ssize_t i
        for i in range(hashes.shape[0]):
            self._raise(entry_of(<uint64_t> hashes[i]))

    def merge(self, Sketch other not None):
        """Makes each register at least what it is in another sketch."""
        if not merge_registers(<char*> &self.block, <const char*> &other.block):
            raise MemoryError("Sketch: no memory for its registers")

    def merge_string(self, const uint8_t[::1] text not None):
        """Merges a string of Redis, dense or sparse. Raises SketchError for any other; nothing has changed then."""
        cdef Sketch other = Sketch()
        cdef Reading reading
        cdef Run run = Run(index=0, length=0, value=0)      # told of where no run was read
        cdef int64_t i
        cdef int found = begin_reading(&reading, &text[0] if text.shape[0] else NULL, text.shape[0])
        if found == READ_RUN and reading.is_dense:
            if not reserve_block(<char*> &other.block, REGISTERS):
                raise MemoryError("Sketch: no memory for its registers")
            memset(bytes_in(<char*> &other.block), 0, REGISTERS)
            block_in(<char*> &other.block).size = REGISTERS
        while found == READ_RUN:
            found = next_run(&reading, &run)
            if found == READ_RUN:
                for i in range(run.index, run.index + run.length):
                    other._raise(<uint32_t> i << 8 | run.value)
        if found != READ_ALL:
            raise SketchError(_fault(found, reading, run))
        self.merge(other)

    def registers(self):
        """Returns the registers: uint8[16384]."""
        out = np.empty(REGISTERS, dtype=np.uint8)
        cdef uint8_t[::1] view = out
        expand(<const char*> &self.block, &view[0])
        return out

    def estimate(self):
        """Returns how many distinct values there are, about."""
        cdef int64_t[64] counts
        memset(&counts, 0, sizeof(counts))
        count_values(<char*> &self.block, &counts[0])
        return cardinality(&counts[0])

    def to_bytes(self):
        """Returns the string that Redis keeps: sparse up to 3,000 bytes, else dense."""
        cdef uint8_t[MOST_BYTES] out
        cdef int64_t n = write_sketch(<const char*> &self.block, &out[0])
        return (<char*> &out[0])[:n]

    def _check(self):
        """Raises AssertionError where an invariant does not hold."""
        cdef const char* cell
        registers = self.registers()
        assert registers.max() <= HASH_BITS + 1, "a register is too large"
        cell = <const char*> &self.block
        if size_in(cell) and not is_all(cell):
            first, held = (<const uint32_t*> bytes_in(cell))[0], np.count_nonzero(registers)
            if is_table(cell):
                assert held == first, f"{held} registers, counted {first}"
            else:
                assert first - LISTED <= held <= entries_in(cell), f"{held} registers, {first - LISTED} settled"
