"""Slices: the intervals between the starts and ends of aligned windows, which overlapping windows share."""

import numpy as np

from libc.stdint cimport INT64_MAX

from fastwin.core.typedefs cimport int64_t, uint8_t
from fastwin.core.timemath cimport are_within, check_duration, check_times


def all_within(const int64_t[::1] times not None, int64_t first, int64_t last):
    """Tells whether all times are in [first, last]. Raises ValueError for limits 2**63 or more apart. O(n).

    >>> all_within(np.array([3, -7]), -7, 3), all_within(np.array([3, 4]), -7, 3)
    (True, False)
    """
    if first > last or first < 0 <= last and last > INT64_MAX + first:
        raise ValueError(f"first, last: must ascend, less than 2**63 apart, got {first} and {last}")
    return are_within(times, first, last)


def assign_slices(const int64_t[::1] times not None, int64_t size, int64_t slide, int64_t offset):
    """Returns the start of each element's slice, and which elements no window takes.

    times: int64[n], ms, within +-2**61. size, slide: 1 to 2**61 ms. offset: ms, below slide either way.
    Returns ``(starts, outside)``: int64[n], and bool[n] marking elements in the gaps of windows with
    slide > size, or None where there are none. Raises ValueError for what is out of bounds. O(n).

    Slices start where a window starts or ends: at offset + k * slide and, when size is no
    multiple of slide, at offset + size + k * slide.

    >>> assign_slices(np.array([-1, 0, 5, 9, 10]), 20, 10, 0)[0].tolist()
    [-10, 0, 0, 0, 10]
    """
    cdef Py_ssize_t i, n = times.shape[0], skipped = 0
    cdef Slicer slicer
    check_duration("size", size, 1)
    check_duration("slide", slide, 1)
    if not -slide < offset < slide:
        raise ValueError(f"offset: must be below slide, {slide}, and above -{slide}, got {offset}")
    slicer = slicer_on(slide, size % slide if size > slide else 0, offset)
    out, gaps = np.empty(n, dtype=np.int64), None
    cdef int64_t[::1] starts = out
    cdef uint8_t[::1] gap
    check_times("times", times)
    if n:
        with nogil:
            slices_of(&slicer, &times[0], n, &starts[0])
    if slide > size:
        gaps = np.empty(n, dtype=np.uint8)
        gap = gaps
        with nogil:
            for i in range(n):
                gap[i] = times[i] - starts[i] >= size
                skipped += gap[i]
        gaps = gaps.view(np.bool_) if skipped else None
    return out, gaps
