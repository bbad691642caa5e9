"""Unions of sketches over sliding windows, each sketch read at most twice however many windows it lies in."""
import numpy as np

from libc.stdlib cimport calloc, free
from libc.string cimport memset

from fastwin.core.typedefs cimport int64_t, uint8_t, uint32_t
from fastwin.core.memory.bounds cimport check_length, check_offsets
from fastwin.core.sketches.entries cimport REGISTERS
from fastwin.core.sketches.hyperloglog import Sketch
from fastwin.core.sketches.redis_string cimport MOST_BYTES, READ_ALL, READ_RUN, Reading, Run
from fastwin.core.sketches.redis_string cimport begin_reading, next_run, write_registers
from fastwin.core.sketches.registers cimport cardinality

__all__ = ["union_windows"]

cdef enum:
    VALUES = 64                 # a register holds less

cdef struct Union:
    # Of the sketches in a window: registers, and how many of them hold each value. Sketches are known by their numbers,
    # from 1. Invariant: a value of a register is in the window if the last sketch that had it is.
    uint8_t* registers
    uint32_t* last              # by register and value
    int64_t[VALUES] counts


cdef void clear(Union* union) noexcept nogil:
    memset(union.registers, 0, REGISTERS)
    memset(union.counts, 0, sizeof(union.counts))
    union.counts[0] = REGISTERS


cdef inline void put(Union* union, int64_t index, uint8_t value) noexcept nogil:
    union.counts[union.registers[index]] -= 1
    union.counts[value] += 1
    union.registers[index] = value


cdef int add(Union* union, const uint8_t* text, int64_t size, int64_t number, bint leaves) noexcept nogil:
    """Adds a sketch; returns READ_ALL, or what is wrong with its string. leaves: whether remove() will be called."""
    cdef Reading reading
    cdef Run run
    cdef int64_t i
    cdef int found = begin_reading(&reading, text, size)
    while found == READ_RUN:
        found = next_run(&reading, &run)
        if found == READ_RUN:
            for i in range(run.index, run.index + run.length):
                if leaves:
                    union.last[i * VALUES + run.value] = <uint32_t> number
                if run.value > union.registers[i]:
                    put(union, i, run.value)
    return found


cdef void remove(Union* union, const uint8_t* text, int64_t size, int64_t number, int64_t first) noexcept nogil:
    """Removes a sketch that was added, the first of the window; the next one is ``first``."""
    cdef Reading reading
    cdef Run run
    cdef int64_t i
    cdef uint8_t value
    cdef const uint32_t* last
    begin_reading(&reading, text, size)
    while next_run(&reading, &run) == READ_RUN:
        for i in range(run.index, run.index + run.length):
            last = union.last + i * VALUES
            if union.registers[i] == run.value and last[run.value] == number:
                value = run.value - 1
                while value and last[value] < first:
                    value -= 1
                put(union, i, value)


def union_windows(const int64_t[::1] offsets not None, const uint8_t[::1] data not None,
                  const int64_t[::1] firsts not None, const int64_t[::1] ends not None, bint counted):
    """Returns the union of the sketches ``firsts[i]`` to ``ends[i]``, exclusive, of each window.

    offsets, data: the sketches as strings of Redis, sketch k is ``data[offsets[k]:offsets[k + 1]]``. firsts, ends:
    neither goes back, int64[n].
    Returns what the unions count, int64[n], or, unless ``counted``, their strings: ``(offsets, data)``. Over no sketch
    that is 0, or the string of none. Raises SketchError for a string that is none, ValueError for windows that are no
    such ranges. O(registers that are not 0, of each sketch, + windows).
    """
    cdef Py_ssize_t n = firsts.shape[0], i
    cdef int64_t first = 0, end = 0, total = 0, k
    cdef int64_t[::1] counts, bounds
    cdef uint8_t[::1] strings
    cdef const uint8_t* texts = &data[0] if data.shape[0] else NULL
    cdef Union union
    cdef bint slides = False         # whether a sketch is in several windows
    cdef int found
    check_offsets(offsets, data.shape[0])
    check_length("ends", ends.shape[0], n)
    if offsets.shape[0] > 1 << 31:
        raise ValueError(f"offsets: at most {1 << 31} of them, got {offsets.shape[0]}")
    for i in range(n):
        if not first <= firsts[i] <= ends[i] < offsets.shape[0] or ends[i] < end:
            raise ValueError(
                f"window {i}: must go on from [{first}, {end}), within {offsets.shape[0] - 1} sketches, got "
                f"[{firsts[i]}, {ends[i]})"
            )
        first, end = firsts[i], ends[i]
        slides |= i > 0 and first < ends[i - 1]
    out = np.zeros(n, dtype=np.int64)
    counts = out
    bounds_out = np.zeros(n + 1, dtype=np.int64)
    bounds = bounds_out
    text_out = np.empty(0 if counted else max(n, 1) * 64, dtype=np.uint8)
    union.registers = <uint8_t*> calloc(REGISTERS, 1)
    union.last = <uint32_t*> calloc(REGISTERS * VALUES, sizeof(uint32_t)) if slides else NULL
    try:
        if union.registers == NULL or (slides and union.last == NULL):
            raise MemoryError("union_windows: no memory for its registers")
        first = end = -1
        for i in range(n):
            if firsts[i] >= end:
                clear(&union)
                first = end = firsts[i]
            for k in range(end, ends[i]):
                found = add(&union, texts + offsets[k], offsets[k + 1] - offsets[k], k + 1, slides)
                if found != READ_ALL:
                    Sketch().merge_string(data[offsets[k]:offsets[k + 1]])      # which raises
            end = ends[i]
            for k in range(first, firsts[i]):
                remove(&union, texts + offsets[k], offsets[k + 1] - offsets[k], k + 1, firsts[i] + 1)
            first = firsts[i]
            if counted:
                counts[i] = cardinality(&union.counts[0])
                continue
            if total + MOST_BYTES > len(text_out):
                text_out = np.concatenate([text_out[:total], np.empty(total + MOST_BYTES, dtype=np.uint8)])
            strings = text_out
            total += write_registers(union.registers, &strings[total])
            bounds[i + 1] = total
    finally:
        free(union.registers)
        free(union.last)
    return out if counted else (bounds_out, text_out[:total].copy())
