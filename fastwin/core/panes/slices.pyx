"""Slices: the intervals between the starts and ends of aligned windows, which overlapping windows share."""

import numpy as np

from libc.stdint cimport INT64_MAX, uint16_t
from libc.stdlib cimport free, malloc

from fastwin.core.typedefs cimport int64_t, ts_t, uint8_t
from fastwin.core.wide cimport int_bounds
from fastwin.core.timemath cimport are_within, check_duration, check_time, check_times

cdef enum:
    BLOCK = 512
    MOST_SLICES = 65536         # that order_by_slice() counts

most_slices = MOST_SLICES


def all_within(const int64_t[::1] times not None, int64_t first, int64_t last):
    """Tells whether all times are in [first, last]. Raises ValueError for limits 2**63 or more apart. O(n).

    >>> all_within(np.array([3, -7]), -7, 3), all_within(np.array([3, 4]), -7, 3)
    (True, False)
    """
    if first > last or first < 0 <= last and last > INT64_MAX + first:
        raise ValueError(f"first, last: must ascend, less than 2**63 apart, got {first} and {last}")
    cdef bint found
    with nogil:
        found = are_within(times, first, last)
    return found


def extent(const int64_t[::1] times not None):
    """Returns the first and the last of times, ms, at least one. Raises ValueError for none. O(n), one look at each.

    >>> extent(np.array([3, -7, 5]))
    (-7, 5)
    """
    if not times.shape[0]:
        raise ValueError("times: at least one, got none")
    cdef int64_t first = times[0], last = times[0]
    with nogil:
        int_bounds(&times[0], times.shape[0], &first, &last)
    return first, last


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


def order_by_slice(const int64_t[::1] times not None, int64_t first, int64_t slide, Py_ssize_t count):
    """Returns the order of elements by their slices, those of a slice as they come, and where each slice ends there.

    times: int64[n], ms, within ``count`` slices of ``slide`` ms, which begin at ``first``. count: 1 to most_slices.
    Returns ``(places, ends)``: int64[n] and int64[count]. Raises ValueError for what is out of bounds. O(n + count).

    >>> [found.tolist() for found in order_by_slice(np.array([25, 3, 21, 9]), 0, 10, 3)]
    [[1, 3, 0, 2], [2, 2, 4]]
    """
    cdef Py_ssize_t n = times.shape[0], at = 0, m, i
    cdef int64_t before = 0, place
    cdef ts_t[BLOCK] starts
    cdef double per_ms
    cdef Slicer slicer
    cdef uint16_t* numbers
    check_duration("slide", slide, 1)
    check_time("first", first)
    if not 1 <= count <= MOST_SLICES:
        raise ValueError(f"count: must be 1 to {MOST_SLICES}, got {count}")
    check_times("times", times)
    # In Python's numbers: a slide may be as long as half of all times.
    if n and not are_within(times, first, min(int(first) + int(slide) * count - 1, (1 << 61))):
        raise ValueError("times: must be within the slices")
    places_out, ends_out = np.empty(n, dtype=np.int64), np.zeros(count, dtype=np.int64)
    cdef int64_t[::1] places = places_out, ends = ends_out
    numbers = <uint16_t*> malloc(max(n, 1) * sizeof(uint16_t))
    if numbers == NULL:
        raise MemoryError(f"order_by_slice: no memory for {n} elements")
    slicer = slicer_on(slide, 0, first % slide)
    with nogil:
        per_ms = 1.0 / <double> slide
        while at < n:
            m = min(n - at, <Py_ssize_t> BLOCK)
            slices_of(&slicer, &times[at], m, starts)
            for i in range(m):
                numbers[at + i] = <uint16_t> (<double> (starts[i] - first) * per_ms + 0.5)
                ends[numbers[at + i]] += 1
            at += m
        for i in range(count):
            before += ends[i]
            ends[i] = before - ends[i]
        for i in range(n):
            place = ends[numbers[i]]
            ends[numbers[i]] = place + 1
            places[place] = i
    free(numbers)
    return places_out, ends_out
