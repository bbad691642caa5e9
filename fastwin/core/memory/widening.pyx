"""Puts whole numbers together again of the few bytes that they were kept in."""

import numpy as np

cimport cython

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

__all__ = ["widen"]

cdef enum:
    BLOCK = 2048                # numbers that stay in the cache from piece to piece

ctypedef fused piece_t:
    uint8_t
    uint16_t
    uint32_t

ctypedef fused number_t:
    uint32_t
    uint64_t


cdef void add_piece(const piece_t[::1] piece, Py_ssize_t at, Py_ssize_t n, int shift, uint64_t* block) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        block[i] |= <uint64_t> piece[at + i] << shift


@cython.overflowcheck(False)
cdef void finish(uint64_t* block, Py_ssize_t n, uint64_t least, bint steps, uint64_t* last, number_t[::1] out,
                 Py_ssize_t at) noexcept nogil:
    """Adds ``least`` to each number and, where they are ``steps``, the number before it; it may wrap around."""
    cdef Py_ssize_t i
    cdef uint64_t value = last[0]
    if not steps:
        for i in range(n):
            out[at + i] = <number_t> (block[i] + least)
        return
    for i in range(n):
        value += block[i] + least
        out[at + i] = <number_t> value
    last[0] = value


cdef int fill(number_t[::1] out, list pieces, uint64_t least, bint steps, uint64_t start) except -1:
    cdef uint64_t[BLOCK] block
    cdef Py_ssize_t n = out.shape[0], at = 0, m, i
    cdef uint64_t last = start
    cdef int shift
    cdef const uint8_t[::1] bytes_
    cdef const uint16_t[::1] pairs
    cdef const uint32_t[::1] fours
    while at < n:
        m = min(BLOCK, n - at)
        shift = 0
        for i in range(m):
            block[i] = 0
        for piece in pieces:
            if piece.itemsize == 1:
                bytes_ = piece
                add_piece(bytes_, at, m, shift, block)
            elif piece.itemsize == 2:
                pairs = piece
                add_piece(pairs, at, m, shift, block)
            else:
                fours = piece
                add_piece(fours, at, m, shift, block)
            shift += 8 * piece.itemsize
        finish(block, m, least, steps, &last, out, at)
        at += m
    return 0


def widen(list pieces not None, int size, least, first):
    """Returns numbers of ``size`` bytes, int32[n] or int64[n], out of their distances from ``least``. O(n).

    pieces: unsigned numbers, lowest bytes first, each an array of n. first: None; else the distances are those of the
    steps from each number to the next, of which the first one leads to ``first`` whatever it is.
    Raises ValueError for other sizes or arrays.
    """
    cdef uint64_t step = least & 0xFFFFFFFFFFFFFFFF, start = 0
    if size not in (4, 8) or not pieces:
        raise ValueError(f"size: must be 4 or 8, got {size} and {len(pieces)} pieces")
    if len({len(piece) for piece in pieces}) != 1 or sum(piece.itemsize for piece in pieces) > size:
        raise ValueError(f"pieces: must be of one length and {size} bytes in all")
    out = np.empty(len(pieces[0]), dtype=np.uint32 if size == 4 else np.uint64)
    cdef uint32_t[::1] small
    cdef uint64_t[::1] large
    if first is not None and len(out):
        lowest = sum(int(piece[0]) << 8 * sum(one.itemsize for one in pieces[:i]) for i, piece in enumerate(pieces))
        start = (first - least - lowest) & 0xFFFFFFFFFFFFFFFF
    if size == 4:
        small = out
        fill(small, pieces, step, first is not None, start)
        return out.view(np.int32)
    large = out
    fill(large, pieces, step, first is not None, start)
    return out.view(np.int64)
