"""Columns of keys: their stable hashes, rows grouped by these, several columns as one bytes key and back."""

import numpy as np

from libc.string cimport memcpy

from fastwin.core.typedefs cimport int32_t, int64_t, uint8_t, uint64_t
from fastwin.core.memory.bounds cimport check_aligned, check_int64, check_length, check_offsets, offset_t
from fastwin.core.keys.hashing cimport hash_bytes, mix

# Several columns as one bytes key. A fixed column takes nine bytes a row, a tag and an int64; a variable one a tag,
# four bytes of length and its bytes. The tag is 0 for null (the rest zero or of length 0) and 1 otherwise.
cdef enum:
    FIXED = 9
    PREFIX = 5


def hash_int64(const int64_t[::1] values not None, const uint8_t[::1] valid=None):
    """Returns the stable hash of int64 keys: uint64[n]; null (valid[i] == 0) hashes to 0.

    Raises ValueError for a valid of another length. O(n).
    """
    cdef Py_ssize_t i, n = values.shape[0]
    check_int64("values", values)
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
    if n:
        check_aligned("hashes", &hashes[0], sizeof(uint64_t))
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
    if n:
        check_aligned("codes", &codes[0], sizeof(int32_t))
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


cdef int check_fixed(Py_ssize_t n, const int64_t[::1] values, const uint8_t[::1] valid) except -1:
    check_int64("key columns", values)
    check_length("key columns", values.shape[0], n)
    if valid is not None:
        check_length("key columns: valid", valid.shape[0], n)
    return 0


cdef int count_bytes(int64_t[::1] ends, const offset_t[::1] offsets, const uint8_t[::1] data,
                     const uint8_t[::1] valid) except -1:
    cdef Py_ssize_t i
    cdef int64_t length, longest = 0
    check_offsets(offsets, data.shape[0])
    check_length("key columns", offsets.shape[0] - 1, ends.shape[0] - 1)
    if valid is not None:
        check_length("key columns: valid", valid.shape[0], ends.shape[0] - 1)
    with nogil:
        for i in range(ends.shape[0] - 1):
            length = offsets[i + 1] - offsets[i] if valid is None or valid[i] else 0
            longest = max(longest, length)
            ends[i + 1] += PREFIX + length
    if longest > 0x7fffffff:
        raise ValueError(f"key columns: a value has {longest} bytes, at most 2**31 - 1")
    return 0


cdef void write_bytes(uint8_t[::1] out, int64_t[::1] at, const offset_t[::1] offsets, const uint8_t[::1] data,
                      const uint8_t[::1] valid) noexcept:
    cdef Py_ssize_t i
    cdef int32_t length
    with nogil:
        for i in range(at.shape[0]):
            length = 0
            out[at[i]] = valid is None or valid[i]
            if out[at[i]]:
                length = <int32_t> (offsets[i + 1] - offsets[i])
            memcpy(&out[at[i] + 1], &length, 4)
            if length:
                memcpy(&out[at[i] + PREFIX], &data[offsets[i]], length)
            at[i] += PREFIX + length


cdef void write_fixed(uint8_t[::1] out, int64_t[::1] at, const int64_t[::1] values,
                      const uint8_t[::1] valid) noexcept:
    cdef Py_ssize_t i
    cdef int64_t value
    with nogil:
        for i in range(at.shape[0]):
            out[at[i]] = valid is None or valid[i]
            value = values[i] if out[at[i]] else 0
            memcpy(&out[at[i] + 1], &value, 8)
            at[i] += FIXED


def encode_rows(list columns not None, Py_ssize_t n):
    """Returns ``(offsets, data)`` of the encoded rows: int64[n + 1], uint8[bytes].

    columns: ``(values, valid)`` or ``(offsets, data, valid)`` a column, as KeyTable takes them.
    Raises ValueError for a value of 2**31 bytes or more, columns of another length than n, or offsets
    that do not ascend within the data. O(bytes).
    """
    ends = np.zeros(n + 1, dtype=np.int64)
    cdef int64_t[::1] end = ends
    for column in columns:
        if len(column) == 2:
            values, valid = column
            check_fixed(n, values, valid)
            ends[1:] += FIXED
            continue
        offsets, data, valid = column
        if offsets.dtype == np.int32:
            count_bytes[int32_t](end, offsets, data, valid)
        else:
            count_bytes[int64_t](end, offsets, data, valid)
    np.cumsum(ends, out=ends)
    out = np.empty(ends[n], dtype=np.uint8)
    if n == 0:
        return ends, out
    at = ends[:n].copy()
    for column in columns:
        if len(column) == 2:
            values, valid = column
            write_fixed(out, at, values, valid)
            continue
        offsets, data, valid = column
        if offsets.dtype == np.int32:
            write_bytes[int32_t](out, at, offsets, data, valid)
        else:
            write_bytes[int64_t](out, at, offsets, data, valid)
    return ends, out


def decode_rows(const int64_t[::1] offsets not None, const uint8_t[::1] data not None, list fixed not None):
    """Returns the columns of rows that encode_rows() gave.

    fixed: bool a column, whether it is an int64 one.
    Returns ``(values, valid)`` or ``(offsets, data, valid)`` a column; valid is bool[n], never None.
    Raises ValueError if the rows do not hold these columns, or offsets do not ascend within data. O(bytes).
    """
    cdef Py_ssize_t n = offsets.shape[0] - 1, i
    cdef int64_t total
    cdef int32_t length
    check_offsets(offsets, data.shape[0])
    where = np.asarray(offsets)[:n].copy()
    cdef int64_t[::1] at = where
    cdef int64_t[::1] values, ends
    cdef uint8_t[::1] valid, text
    found = []
    for is_fixed in fixed:
        marks = np.empty(n, dtype=np.uint8)
        valid = marks
        if is_fixed:
            out = np.empty(n, dtype=np.int64)
            values = out
            for i in range(n):
                if at[i] + FIXED > offsets[i + 1]:
                    raise ValueError(f"key row {i}: ends within a column")
                valid[i] = data[at[i]] != 0
                memcpy(&values[i], &data[at[i] + 1], 8)
                at[i] += FIXED
            found.append((out, marks.view(np.bool_)))
            continue
        ends_out = np.empty(n + 1, dtype=np.int64)
        ends = ends_out
        total = 0
        for i in range(n):
            if at[i] + PREFIX > offsets[i + 1]:
                raise ValueError(f"key row {i}: ends within a column")
            valid[i] = data[at[i]] != 0
            memcpy(&length, &data[at[i] + 1], 4)
            if length < 0 or at[i] + PREFIX + length > offsets[i + 1]:
                raise ValueError(f"key row {i}: a value of {length} bytes goes beyond its end")
            ends[i] = total
            total += length
        ends[n] = total
        text_out = np.empty(total, dtype=np.uint8)
        text = text_out
        for i in range(n):
            length = <int32_t> (ends[i + 1] - ends[i])
            if length:
                memcpy(&text[ends[i]], &data[at[i] + PREFIX], length)
            at[i] += PREFIX + length
        found.append((ends_out, text_out, marks.view(np.bool_)))
    for i in range(n):
        if at[i] != offsets[i + 1]:
            raise ValueError(f"key row {i}: goes on for {offsets[i + 1] - at[i]} bytes behind its last column")
    return found
