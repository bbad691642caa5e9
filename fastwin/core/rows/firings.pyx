"""Rows of windows that fire together: which are picked, and which belong to which, told by places alone."""

import numpy as np

from libc.stdint cimport int8_t

from fastwin.core.typedefs cimport idx_t, int64_t
from fastwin.core.memory.bounds cimport check_int64, check_length

__all__ = ["best_of", "groups_of_sides", "pairs_between", "sides_apart"]


def best_of(const int64_t[::1] groups not None, const int64_t[::1] values not None, Py_ssize_t n, bint last=False):
    """Returns the places of the rows with the n least values of each group, the least first: int64. Groups stay in
    their order. Of equal values the first row comes first, or the last one: ``last``.

    groups: a number of each row, those of a group side by side: int64[rows]. values: int64[rows]. Raises ValueError for
    values of another length, or an n below 1. O(rows) for values in no order, at most O(n * rows).
    """
    cdef Py_ssize_t rows = groups.shape[0], i, k, first = 0, held = 0
    cdef int64_t value
    check_length("values", values.shape[0], rows)
    check_int64("groups", groups)
    check_int64("values", values)
    if n < 1:
        raise ValueError(f"n: must be at least 1, got {n}")
    out = np.empty(rows, dtype=np.int64)
    cdef int64_t[::1] best = out        # those of a group so far: best[first:first + held]
    with nogil:
        for i in range(rows):
            if i and groups[i] != groups[i - 1]:
                first += held
                held = 0
            value, k = values[i], first + held
            if held == n:
                k -= 1
                if value > values[best[k]] or (value == values[best[k]] and not last):
                    continue
            else:
                held += 1
            while k > first and (value < values[best[k - 1]] or (last and value == values[best[k - 1]])):
                best[k] = best[k - 1]
                k -= 1
            best[k] = i
    return out[: first + held]


def sides_apart(const int64_t[::1] groups not None, const int8_t[::1] sides not None):
    """Returns ``(order, begins, rights)`` of rows of two sides, the left one, 0, and the right one.

    order: places, in each group those of the left side first: int64[rows]. begins: where each group begins, and the
    end: int64[groups + 1]. rights: how many of its rows are of the right side: int64[groups].
    groups: a number of each row, those of a group side by side: int64[rows]. sides: int8[rows]. Raises ValueError for
    sides of another length. Stable, O(rows).
    """
    cdef Py_ssize_t rows = groups.shape[0], i, at, left, right, count = 0, found = 0
    check_length("sides", sides.shape[0], rows)
    check_int64("groups", groups)
    with nogil:
        for i in range(rows):
            count += i == 0 or groups[i] != groups[i - 1]
    out, out_begins, out_rights = (np.empty(some, dtype=np.int64) for some in (rows, count + 1, count))
    cdef int64_t[::1] order = out, begins = out_begins, rights = out_rights
    with nogil:
        at = 0
        while at < rows:
            right = at
            i = at
            while i < rows and groups[i] == groups[at]:
                right += sides[i] == 0
                i += 1
            begins[found], rights[found] = at, i - right
            found += 1
            left, i = at, at
            while i < rows and groups[i] == groups[at]:
                if sides[i] == 0:
                    order[left] = i
                    left += 1
                else:
                    order[right] = i
                    right += 1
                i += 1
            at = i
        begins[count] = rows
    return out, out_begins, out_rights


def groups_of_sides(const int64_t[::1] left_starts not None, const idx_t[::1] left_keys not None,
                    const int64_t[::1] right_starts not None, const idx_t[::1] right_keys not None,
                    bint left_alone, bint right_alone):
    """Returns ``(starts, keys, left_begins, lefts, right_begins, rights)`` of the groups of two sides' rows, in their
    order: where the rows of each begin on either side, and how many there are. int64[groups], keys int32[groups].

    A group is all rows with the same start and key, in whose order the rows of each side are. left_alone, right_alone:
    whether groups of that side alone count. Raises ValueError for keys of another length. O(rows).
    """
    cdef Py_ssize_t n = left_starts.shape[0], m = right_starts.shape[0], i = 0, j = 0, found = 0
    cdef Py_ssize_t left, right
    cdef int64_t start
    cdef idx_t key
    check_length("left_keys", left_keys.shape[0], n)
    check_length("right_keys", right_keys.shape[0], m)
    check_int64("left_starts", left_starts)
    check_int64("right_starts", right_starts)
    most = (n if left_alone else min(n, m)) + (m if right_alone else 0)
    out = [np.empty(most, dtype=np.int64) for _ in range(5)]
    out.insert(1, np.empty(most, dtype=np.int32))
    cdef int64_t[::1] starts = out[0], left_begins = out[2], lefts = out[3], right_begins = out[4], rights = out[5]
    cdef idx_t[::1] keys = out[1]
    with nogil:
        while i < n or j < m:
            if j == m or (i < n and (left_starts[i] < right_starts[j] or (
                    left_starts[i] == right_starts[j] and left_keys[i] <= right_keys[j]))):
                start, key = left_starts[i], left_keys[i]
            else:
                start, key = right_starts[j], right_keys[j]
            left, right = i, j
            while i < n and left_keys[i] == key and left_starts[i] == start:
                i += 1
            while j < m and right_keys[j] == key and right_starts[j] == start:
                j += 1
            if (left < i or right_alone) and (right < j or left_alone):
                starts[found], keys[found] = start, key
                left_begins[found], lefts[found] = left, i - left
                right_begins[found], rights[found] = right, j - right
                found += 1
    return tuple([column[:found] for column in out])


def pairs_between(const int64_t[::1] left_begins not None, const int64_t[::1] lefts not None,
                  const int64_t[::1] right_begins not None, const int64_t[::1] rights not None,
                  const int64_t[::1] ends not None, Py_ssize_t first, Py_ssize_t last):
    """Returns ``(groups, lefts, rights)`` of the pairs ``[first, last)`` of a left and a right row of the same group:
    of which one they are, and places of rows, int64[last - first] each. -1: the side has no row.

    left_begins, lefts, right_begins, rights: where the rows of each group begin on either side, and how many there are.
    ends: how many pairs there are up to the end of each; a side without rows counts as one row if the group has any
    pairs: int64[groups]. Pairs go group by group, and by their left row. Raises ValueError for other lengths,
    IndexError for pairs that are not there. O(last - first + log groups), and the groups between them.
    """
    cdef Py_ssize_t count = ends.shape[0], group, i = 0, n, wide, left, right
    cdef int64_t before
    check_int64("ends", ends)
    for name, column in [("left_begins", left_begins), ("lefts", lefts), ("right_begins", right_begins),
                         ("rights", rights)]:
        check_length(name, len(column), count)
        check_int64(name, column)
    if not 0 <= first <= last <= (ends[count - 1] if count else 0):
        raise IndexError(f"pairs: there are {ends[count - 1] if count else 0}, got [{first}, {last})")
    out, out_lefts, out_rights = (np.empty(last - first, dtype=np.int64) for _ in range(3))
    cdef int64_t[::1] groups = out, of_left = out_lefts, of_right = out_rights
    group = np.searchsorted(ends, first, side="right")
    with nogil:
        while first < last:
            before = ends[group - 1] if group else 0
            wide = max(rights[group], 1)
            left, right = (first - before) // wide, (first - before) % wide
            n = min(last, ends[group]) - first
            first += n
            while n > 0:
                groups[i] = group
                of_left[i] = left_begins[group] + left if lefts[group] else -1
                of_right[i] = right_begins[group] + right if rights[group] else -1
                i, n, right = i + 1, n - 1, right + 1
                if right == wide:
                    left, right = left + 1, 0
            group += 1
    return out, out_lefts, out_rights
