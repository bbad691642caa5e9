# Registers as the string that Redis keeps under a key: a header, and then all registers (dense) or runs (sparse).
from libc.string cimport memcmp, memcpy, memset

from fastwin.core.typedefs cimport int64_t, uint8_t, uint32_t, uint64_t
from fastwin.core.memory.owned cimport bytes_in
from fastwin.core.sketches.entries cimport REGISTERS
from fastwin.core.sketches.registers cimport HASH_BITS, entries_in, is_all, raise_in_all

cdef enum:
    HEADER_BYTES = 16
    MOST_BYTES = 12304          # of a string: 16384 registers of 6 bits behind the header
    SPARSE_BYTES = 3000         # as in Redis, where more make a string dense
    SPARSE_VALUE = 32           # the largest that a run can tell


cdef inline void expand(const char* cell, uint8_t* registers) noexcept nogil:
    """Writes all registers, one byte each."""
    cdef const uint32_t* entries = <const uint32_t*> bytes_in(cell) + 1
    cdef Py_ssize_t i
    if is_all(cell):
        memcpy(registers, bytes_in(cell), REGISTERS)
        return
    memset(registers, 0, REGISTERS)
    for i in range(entries_in(cell)):
        raise_in_all(registers, entries[i])


cdef inline int64_t write_sparse(const uint8_t* registers, uint8_t* out, int64_t room) noexcept nogil:
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


cdef inline int64_t write_sketch(const char* cell, uint8_t* out) noexcept nogil:
    """Writes the string of a cell, of at most MOST_BYTES bytes; returns how many."""
    cdef uint8_t[REGISTERS] registers
    expand(cell, &registers[0])
    return write_registers(&registers[0], out)


cdef inline int64_t write_registers(const uint8_t* registers, uint8_t* out) noexcept nogil:
    """Writes the string of all registers, of at most MOST_BYTES bytes; returns how many. Redis counts anew when it is
    asked."""
    cdef int64_t size, i, k
    cdef uint32_t four
    memcpy(out, b"HYLL", 4)
    memset(out + 4, 0, HEADER_BYTES - 4)
    out[4] = 1
    out[HEADER_BYTES - 1] = 0x80        # the number kept beside the registers is not valid
    size = write_sparse(registers, out + HEADER_BYTES, SPARSE_BYTES - HEADER_BYTES)
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


cdef struct Reading:                # of a string: from where on, up to where, and which register comes next
    const uint8_t* text
    int64_t size
    int64_t at
    int64_t index
    bint is_dense

cdef struct Run:                    # registers from `index` on that are all `value`, which is not 0
    int64_t index
    int64_t length
    uint8_t value

cdef enum:
    READ_ALL = 0                    # what next_run() returns
    READ_RUN = 1
    NO_SKETCH = 2                   # errors
    ODD_ENCODING = 3
    ODD_SIZE = 4
    ODD_VALUE = 5
    CUT_OFF = 6
    TOO_LONG = 7
    TOO_SHORT = 8


cdef inline int begin_reading(Reading* reading, const uint8_t* text, int64_t size) noexcept nogil:
    """Begins to read a string, dense or sparse; returns READ_RUN, or what is wrong with it."""
    reading.text, reading.size, reading.at, reading.index = text, size, HEADER_BYTES, 0
    reading.is_dense = False
    if size < HEADER_BYTES or memcmp(text, b"HYLL", 4) != 0:
        return NO_SKETCH
    if text[4] > 1:
        return ODD_ENCODING
    reading.is_dense = text[4] == 0
    return ODD_SIZE if reading.is_dense and size != MOST_BYTES else READ_RUN


cdef inline int next_run(Reading* reading, Run* run) noexcept nogil:
    """Reads the next run of registers that are not 0; returns READ_RUN, READ_ALL behind the last, or an error."""
    cdef const uint8_t* text = reading.text
    cdef int64_t at, length
    cdef uint8_t value
    if reading.is_dense:
        while reading.index < REGISTERS:
            at = HEADER_BYTES + 3 * (reading.index >> 2)
            value = <uint8_t> ((<uint32_t> text[at] | <uint32_t> text[at + 1] << 8 | <uint32_t> text[at + 2] << 16)
                               >> <uint32_t> (6 * (reading.index & 3)) & 0x3f)
            reading.index += 1
            if value:
                run.index, run.length, run.value = reading.index - 1, 1, value
                return READ_RUN if value <= HASH_BITS + 1 else ODD_VALUE
        return READ_ALL
    while reading.at < reading.size:
        value = 0
        at = reading.at
        if text[at] & 0x80:
            value = ((text[at] >> 2) & 0x1f) + 1
            length = (text[at] & 0x3) + 1
        elif text[at] & 0x40:
            at += 1
            if at == reading.size:
                return CUT_OFF
            length = ((<int64_t> text[at - 1] & 0x3f) << 8 | text[at]) + 1
        else:
            length = (text[at] & 0x3f) + 1
        reading.at = at + 1
        run.index, run.length, run.value = reading.index, length, value
        reading.index += length
        if reading.index > REGISTERS:
            return TOO_LONG
        if value:
            return READ_RUN
    return READ_ALL if reading.index == REGISTERS else TOO_SHORT
