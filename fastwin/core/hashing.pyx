"""Stable hashes of keys, rows grouped by them, and the codes of dictionaries."""

import numpy as np

from fastwin._typedefs cimport int32_t, int64_t, uint8_t, uint64_t
from fastwin.core.bounds cimport check_length, check_offsets, offset_t


def hash_int64(const int64_t[::1] values not None, const uint8_t[::1] valid=None):
    """Returns the stable hash of int64 keys: uint64[n]; null (valid[i] == 0) hashes to 0.

    Raises ValueError for a valid of another length. O(n).
    """
    cdef Py_ssize_t i, n = values.shape[0]
    if valid is not None:
        check_length("valid", valid.shape[0], n)
    out = np.empty(n, dtype=np.uint64)
    cdef uint64_t[::1] view = out
    with nogil:
        for i in range(n):
            view[i] = mix(<uint64_t> values[i]) if valid is None or valid[i] else 0
    return out


def hash_text(const offset_t[::1] offsets not None, const uint8_t[::1] data not None, const uint8_t[::1] valid=None):
    """Returns the stable hash of bytes keys ``data[offsets[i]:offsets[i + 1]]``: uint64[n]; null hashes to 0.

    Raises ValueError for offsets that do not ascend within data, or a valid of another length. O(bytes).
    """
    cdef Py_ssize_t i, n = offsets.shape[0] - 1
    check_offsets(offsets, data.shape[0])
    if valid is not None:
        check_length("valid", valid.shape[0], n)
    out = np.empty(n, dtype=np.uint64)
    cdef uint64_t[::1] view = out
    cdef const uint8_t* start = &data[0] if data.shape[0] else NULL
    with nogil:
        for i in range(n):
            view[i] = hash_bytes(start + offsets[i], offsets[i + 1] - offsets[i]) if valid is None or valid[i] else 0
    return out


def group_rows(const uint64_t[::1] hashes not None, int32_t groups):
    """Returns ``(order, bounds)``: rows sorted by group ``hash % groups``, keeping their order within a group.

    order: int64[n]; the rows of group g are ``order[bounds[g]:bounds[g + 1]]``. O(n + groups).
    Raises ValueError for groups below 1.

    >>> order, bounds = group_rows(np.array([5, 2, 3, 8], dtype=np.uint64), 3)
    >>> order.tolist(), bounds.tolist()
    ([2, 0, 1, 3], [0, 1, 1, 4])
    """
    cdef Py_ssize_t i, n = hashes.shape[0]
    cdef uint64_t modulus
    if groups < 1:
        raise ValueError(f"groups: at least 1, got {groups}")
    modulus = <uint64_t> groups
    out, ends, group_of = np.empty(n, np.int64), np.zeros(groups + 1, np.int64), np.empty(n, np.int32)
    cdef int64_t[::1] order = out, bounds = ends, at
    cdef int32_t[::1] group = group_of
    with nogil:
        for i in range(n):
            group[i] = <int32_t> (hashes[i] % modulus)
            bounds[group[i] + 1] += 1
        for i in range(groups):
            bounds[i + 1] += bounds[i]
    starts = ends[:groups].copy()
    at = starts
    with nogil:
        for i in range(n):
            order[at[group[i]]] = i
            at[group[i]] += 1
    return out, ends


def first_seen(const int32_t[::1] codes not None, int32_t size):
    """Returns ``(ranks, used)``: each element's place among the codes in order of their first appearance, and these.

    codes: into a dictionary of ``size`` values. ranks: int32[n]; used: int32[distinct codes], so that
    ``used[ranks]`` equals ``codes``. O(n + size). Raises ValueError for a code outside the dictionary.

    >>> ranks, used = first_seen(np.array([4, 1, 4, 0], dtype=np.int32), 5)
    >>> ranks.tolist(), used.tolist()
    ([0, 1, 0, 2], [4, 1, 0])
    """
    cdef Py_ssize_t i, n = codes.shape[0], outside = -1
    cdef int32_t code, found = 0
    out, seen, place_of = np.empty(n, np.int32), np.empty(max(size, 0), np.int32), np.full(max(size, 0), -1, np.int32)
    cdef int32_t[::1] ranks = out, used = seen, place = place_of
    with nogil:
        for i in range(n):
            code = codes[i]
            if code < 0 or code >= size:
                outside = i
                break
            if place[code] < 0:
                place[code] = found
                used[found] = code
                found += 1
            ranks[i] = place[code]
    if outside >= 0:
        raise ValueError(f"codes[{outside}] is {codes[outside]}, outside a dictionary of {size} values")
    return out, seen[:found]
