"""Slices: the intervals between the starts and ends of aligned windows, which overlapping windows share."""

import numpy as np

from fastwin._typedefs cimport int64_t, ts_t, uint8_t
from fastwin.core.timemath cimport floor_to


def assign_slices(const int64_t[::1] times not None, int64_t size, int64_t slide, int64_t offset):
    """Returns the start of each element's slice, and which elements no window takes.

    times: int64[n], ms, within +-2**61. size, slide > 0, offset: ms.
    Returns ``(starts, outside)``: int64[n], and bool[n] marking elements in the gaps of windows with
    slide > size, or None where there are none. Raises ValueError for a size or slide below 1. O(n).

    Slices start where a window starts or ends: at offset + k * slide and, when size is no
    multiple of slide, at offset + size + k * slide.

    >>> assign_slices(np.array([-1, 0, 5, 9, 10]), 20, 10, 0)[0]
    array([-10,   0,   0,   0,  10])
    """
    cdef Py_ssize_t i, n = times.shape[0], skipped = 0
    cdef int64_t rest, start = 0, end = 0, t
    if size < 1 or slide < 1:
        raise ValueError(f"size and slide: at least 1 ms, got {size} and {slide}")
    rest = size % slide
    out, gaps = np.empty(n, dtype=np.int64), None
    cdef int64_t[::1] starts = out
    cdef uint8_t[::1] gap
    with nogil:
        for i in range(n):
            t = times[i]
            if not start <= t < end:        # else the slice of the element before
                start = floor_to(t, slide, offset)
                end = start + slide
                if size >= slide and rest:
                    if t < start + rest:
                        end = start + rest
                    else:
                        start = start + rest
            starts[i] = start
    if slide > size:
        gaps = np.empty(n, dtype=np.uint8)
        gap = gaps
        for i in range(n):
            gap[i] = times[i] - starts[i] >= size
            skipped += gap[i]
        gaps = gaps.view(np.bool_) if skipped else None
    return out, gaps
