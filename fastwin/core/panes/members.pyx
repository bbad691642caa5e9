"""Members: what lies elsewhere, numbered, and belongs to rows of a PaneTable. Each knows the one before it in its row.

A row has its newest member's number, plus one, in its bits: 0 says that it has none. So the rows carry no accumulators.
"""

import numpy as np

from fastwin.core.typedefs cimport NONE, idx_t, int64_t, uint64_t
from fastwin.core.memory.bounds cimport check_ids, check_length
from fastwin.core.panes.panetable cimport PaneTable
from fastwin.core.rows.rowstore cimport RowStore, live_mask


cdef inline idx_t newest_of(RowStore rows, idx_t slot) noexcept nogil:
    """Returns a row's newest member, NONE: it has none."""
    return <idx_t> (rows.head(slot).bits & ~live_mask()) - 1


cdef inline void set_newest(RowStore rows, idx_t slot, idx_t member) noexcept nogil:
    rows.head(slot).bits = live_mask() | <uint64_t> (member + 1)


cdef int check_rows(RowStore rows, const idx_t[::1] slots) except -1:
    cdef Py_ssize_t i
    check_ids("slots", slots, rows.top)
    for i in range(slots.shape[0]):
        if not rows.is_live(slots[i]):
            raise IndexError(f"slots: {slots[i]} holds no row")
    return 0


def link(PaneTable panes not None, const idx_t[::1] slots not None, const idx_t[::1] members not None,
         idx_t[::1] before not None):
    """Makes member i the newest one of the row at slots[i].

    members: of no row so far. before: int32[members ever], takes the one before each; it is the caller's to keep.
    Raises ValueError for slots of another length, IndexError for a slot without a row or a member without a place.
    """
    cdef Py_ssize_t i
    check_length("slots", slots.shape[0], members.shape[0])
    check_rows(panes.rows, slots)
    check_ids("members", members, <idx_t> before.shape[0])
    with nogil:
        for i in range(members.shape[0]):
            before[members[i]] = newest_of(panes.rows, slots[i])
            set_newest(panes.rows, slots[i], members[i])


def unlink(PaneTable panes not None, const idx_t[::1] slots not None, const idx_t[::1] before not None):
    """Takes all members away from some rows: ``(members, slots)``, int32[n] each, row by row, the oldest first.

    slots: a row may be there several times. before: as link() has filled it. Raises IndexError for a slot without a
    row, or members without a place. O(slots + n).
    """
    cdef RowStore rows = panes.rows
    cdef Py_ssize_t i, at, n = 0
    cdef idx_t member
    check_rows(rows, slots)
    found = np.empty(slots.shape[0], dtype=np.int32)
    cdef idx_t[::1] newest = found
    for i in range(slots.shape[0]):
        newest[i] = newest_of(rows, slots[i])
        set_newest(rows, slots[i], NONE)
        member = newest[i]
        while member != NONE:
            if member >= before.shape[0]:
                raise IndexError(f"before: must have a place for member {member}, has {before.shape[0]}")
            n += 1
            member = before[member]
    members, theirs = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
    cdef idx_t[::1] out = members, of = theirs
    with nogil:
        at = n
        for i in range(slots.shape[0] - 1, -1, -1):
            member = newest[i]
            while member != NONE:
                at -= 1
                out[at] = member
                of[at] = slots[i]
                member = before[member]
    return members, theirs


def members_of(PaneTable panes not None, const idx_t[::1] keys not None, const int64_t[::1] starts not None,
               const idx_t[::1] before not None):
    """Returns the members of the rows of some keys and starts: int32[n], row by row, each row's newest first.

    before: as link() has filled it. What has no row has no members; a row that is there twice gives them twice. Raises
    ValueError for starts of another length, IndexError for members without a place. O(keys + n).
    """
    cdef Py_ssize_t i, n = 0
    cdef idx_t slot, member
    check_length("starts", starts.shape[0], keys.shape[0])
    found = np.empty(keys.shape[0], dtype=np.int32)
    cdef idx_t[::1] newest = found
    for i in range(keys.shape[0]):
        slot = panes.slot_of(keys[i], starts[i])
        newest[i] = member = <idx_t> NONE if slot == NONE else newest_of(panes.rows, slot)
        while member != NONE:
            if member >= before.shape[0]:
                raise IndexError(f"before: must have a place for member {member}, has {before.shape[0]}")
            n += 1
            member = before[member]
    members = np.empty(n, dtype=np.int32)
    cdef idx_t[::1] out = members
    n = 0
    for i in range(keys.shape[0]):
        member = newest[i]
        while member != NONE:
            out[n] = member
            n += 1
            member = before[member]
    return members
