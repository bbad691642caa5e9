"""Sketch: one HyperLogLog by itself, to and from the string that Redis keeps under a key."""

import numpy as np

cimport cython
from libc.string cimport memcpy, memset

from fastwin._typedefs cimport int64_t, uint8_t, uint32_t, uint64_t
from fastwin.core.blocks cimport block_in, bytes_in, drop_block, reserve_block, size_in
from fastwin.core.registers cimport HASH_BITS, REGISTERS, cardinality, count_values, index_of, is_table, merge_registers
from fastwin.core.registers cimport places_in, raise_register, value_of
from fastwin.errors import SketchError

__all__ = ["Sketch"]

cdef enum:
    SPARSE_BYTES = 3000         # as in Redis, where more make a string dense
    SPARSE_VALUE = 32           # the largest that a run can tell


cdef void expand(const char* cell, uint8_t* registers) noexcept nogil:
    """Writes all registers, one byte each."""
    cdef const uint32_t* table = <const uint32_t*> bytes_in(cell)
    cdef Py_ssize_t i
    memset(registers, 0, REGISTERS)
    if size_in(cell) == 0:
        return
    if not is_table(cell):
        memcpy(registers, bytes_in(cell), REGISTERS)
        return
    for i in range(places_in(cell)):
        if table[1 + i]:
            registers[(table[1 + i] >> 8) & (REGISTERS - 1)] = table[1 + i] & 0xff


cdef int64_t write_sparse(const uint8_t* registers, uint8_t* out, int64_t room) noexcept nogil:
    """Writes runs of equal registers; returns their bytes, or 0 where runs cannot tell it within ``room``."""
    cdef int64_t at = 0, i = 0, run
    cdef uint64_t word
    cdef uint8_t value
    while i < REGISTERS:
        value, run = registers[i], 1
        if value > SPARSE_VALUE or at + 2 > room:
            return 0
        if value:
            while run < 4 and i + run < REGISTERS and registers[i + run] == value:
                run += 1
            out[at] = <uint8_t> (0x80 | (value - 1) << 2 | (run - 1))
            at += 1
        else:
            while i + run < REGISTERS:
                if (i + run) % 8 == 0:
                    memcpy(&word, registers + i + run, 8)
                    if word == 0:
                        run += 8
                        continue
                if registers[i + run]:
                    break
                run += 1
            if run > 64:
                out[at] = <uint8_t> (0x40 | (run - 1) >> 8)
                out[at + 1] = <uint8_t> ((run - 1) & 0xff)
                at += 2
            else:
                out[at] = <uint8_t> (run - 1)
                at += 1
        i += run
    return at


cdef int64_t write_sketch(const char* cell, uint8_t* out) noexcept nogil:
    """Writes the string, of at most MOST_BYTES bytes; returns how many. Redis counts anew when it is asked."""
    cdef uint8_t[REGISTERS] registers
    cdef int64_t size, i, k
    cdef uint32_t four
    expand(cell, &registers[0])
    memcpy(out, b"HYLL", 4)
    memset(out + 4, 0, HEADER_BYTES - 4)
    out[4] = 1
    out[HEADER_BYTES - 1] = 0x80        # the number kept beside the registers is not valid
    size = write_sparse(&registers[0], out + HEADER_BYTES, SPARSE_BYTES - HEADER_BYTES)
    if size:
        return HEADER_BYTES + size
    out[4] = 0
    for i in range(REGISTERS // 4):     # four registers of six bits, the lowest bits first
        four = 0
        for k in range(4):
            four |= <uint32_t> (registers[4 * i + k] & 0x3f) << <uint32_t> (6 * k)
        for k in range(3):
            out[HEADER_BYTES + 3 * i + k] = <uint8_t> (four >> <uint32_t> (8 * k) & 0xff)
    return MOST_BYTES


@cython.final
cdef class Sketch:
    """One HyperLogLog. Use ``fastwin.hyperloglog``."""

    cdef void* block

    def __dealloc__(self):
        drop_block(<char*> &self.block)

    cdef int _raise(self, uint32_t index, uint8_t value) except -1:
        if not raise_register(<char*> &self.block, index, value):
            raise MemoryError("Sketch: no memory for its registers")
        return 0

    def add_hashes(self, const int64_t[::1] hashes not None):
        """Adds values by their hashes; see ``core.hyperloglog``. O(n)."""
        cdef Py_ssize_t i
        for i in range(hashes.shape[0]):
            self._raise(index_of(<uint64_t> hashes[i]), value_of(<uint64_t> hashes[i]))

    def merge(self, Sketch other not None):
        """Makes each register at least what it is in another sketch."""
        if not merge_registers(<char*> &self.block, <const char*> &other.block):
            raise MemoryError("Sketch: no memory for its registers")

    def merge_string(self, const uint8_t[::1] text not None):
        """Merges a string of Redis, dense or sparse. Raises SketchError for any other; nothing has changed then."""
        cdef Sketch other = Sketch()
        cdef int64_t n = text.shape[0]
        if n < HEADER_BYTES or bytes(text[:4]) != b"HYLL":
            raise SketchError(f"sketch: {n} bytes that do not begin as a HyperLogLog of Redis does, with 'HYLL'")
        if text[4] == 0:
            other._read_dense(text)
        elif text[4] == 1:
            other._read_sparse(text)
        else:
            raise SketchError(f"sketch: encoding {text[4]}, known are 0 (dense) and 1 (sparse)")
        self.merge(other)

    cdef int _read_dense(self, const uint8_t[::1] text) except -1:
        cdef Py_ssize_t i, at
        cdef uint8_t value
        cdef uint8_t* registers
        if text.shape[0] != MOST_BYTES:
            raise SketchError(f"sketch: a dense one has {MOST_BYTES} bytes, got {text.shape[0]}")
        if not reserve_block(<char*> &self.block, REGISTERS):
            raise MemoryError("Sketch: no memory for its registers")
        registers = bytes_in(<char*> &self.block)
        memset(registers, 0, REGISTERS)
        block_in(<char*> &self.block).size = REGISTERS
        for i in range(REGISTERS):
            at = HEADER_BYTES + 3 * (i // 4)
            value = <uint8_t> ((text[at] | text[at + 1] << 8 | text[at + 2] << 16) >> (6 * (i % 4)) & 0x3f)
            if value > HASH_BITS + 1:
                raise SketchError(f"sketch: register {i} is {value}, at most {HASH_BITS + 1} is possible")
            registers[i] = value
        return 0

    cdef int _read_sparse(self, const uint8_t[::1] text) except -1:
        cdef int64_t at = HEADER_BYTES, index = 0, run, i
        cdef uint8_t value
        while at < text.shape[0]:
            value = 0
            if text[at] & 0x80:
                value = ((text[at] >> 2) & 0x1f) + 1
                run = (text[at] & 0x3) + 1
            elif text[at] & 0x40:
                if at + 1 == text.shape[0]:
                    raise SketchError("sketch: cut off within a run")
                run = ((text[at] & 0x3f) << 8 | text[at + 1]) + 1
                at += 1
            else:
                run = (text[at] & 0x3f) + 1
            at += 1
            if index + run > REGISTERS:
                raise SketchError(f"sketch: runs of more than {REGISTERS} registers")
            if value:
                for i in range(index, index + run):
                    self._raise(<uint32_t> i, value)
            index += run
        if index != REGISTERS:
            raise SketchError(f"sketch: runs of {index} registers, needs {REGISTERS}")
        return 0

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
        count_values(<const char*> &self.block, &counts[0])
        return cardinality(&counts[0])

    def to_bytes(self):
        """Returns the string that Redis keeps: sparse up to 3,000 bytes, else dense."""
        cdef uint8_t[MOST_BYTES] out
        cdef int64_t n = write_sketch(<const char*> &self.block, &out[0])
        return (<char*> &out[0])[:n]

    def _check(self):
        """Raises AssertionError where an invariant does not hold."""
        registers = self.registers()
        assert registers.max() <= HASH_BITS + 1, "a register is too large"
        if size_in(<const char*> &self.block) and is_table(<const char*> &self.block):
            taken = (<const uint32_t*> bytes_in(<const char*> &self.block))[0]
            assert taken == np.count_nonzero(registers), f"{np.count_nonzero(registers)} registers, counted {taken}"
