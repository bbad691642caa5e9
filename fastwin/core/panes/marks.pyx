"""Marks: which windows each key has had, told while they fire: so that the ones in between, without elements, show."""

import numpy as np

from libc.stdint cimport INT64_MIN

from fastwin.core.typedefs cimport NONE, idx_t, int64_t, ts_t
from fastwin.core.memory.bounds cimport check_ids, check_length
from fastwin.core.panes.panelist cimport Pane
from fastwin.core.panes.panetable cimport PaneTable
from fastwin.core.rows.rowstore cimport HEAD_CELLS
from fastwin.core.timemath cimport floor_to

MARK_CELLS = 3
"""Cells that a mark has behind the head of its row."""
MOST_GAP = 2**60
"""The longest gap, ms, that is looked for: sums of a few such and of the end of a window stay in int64."""

cdef enum:
    BLOCK = 512
    LAST = 0                    # cells of a mark, see pass_windows()
    FIRST = 1
    BEFORE = 2
    NEAR_PANES = 4              # that may hold a mark that is near to a window: from the one behind its own on back
    OWN = 1

cdef struct Near:               # panes of marks that are near to windows of one pane; NULL: there is none
    bint known
    ts_t start                  # of this pane
    Pane* panes[NEAR_PANES]


cdef inline int64_t* cells_of(PaneTable marks, idx_t slot) noexcept nogil:
    return (<int64_t*> marks.rows.head(slot)) + HEAD_CELLS


cdef inline idx_t mark_of(Near* near, PaneTable marks, idx_t key, ts_t end, int64_t gap) noexcept nogil:
    """Returns the slot of the key's newest mark that is near to a window, or NONE.

    near: the panes around it, found anew unless they are those of the window before.
    """
    cdef idx_t slot = NONE
    cdef int i
    if not near.known or not near.start <= end < near.start + gap:
        near.known, near.start = True, floor_to(end, gap, 0)
        for i in range(NEAR_PANES):
            near.panes[i] = marks.find_pane(near.start + (OWN - i) * gap)
    for i in range(NEAR_PANES):
        if near.panes[i] != NULL:
            slot = marks.find_row(near.panes[i], key)
            if slot != NONE:
                return slot
    return slot


def pass_windows(PaneTable marks not None, const idx_t[::1] keys not None, const int64_t[::1] ends not None,
                 int64_t gap):
    """Takes the windows that fire, of keys[i] up to ends[i], and returns the gaps that they end.

    marks: with MARK_CELLS cells in a row: the ends of the last and of the first window of a run, in which no two
        windows with elements are more than ``gap`` apart, and that of the last window of the run before, int64 min for
        none. The pane of a mark begins at a multiple of ``gap``. Of the marks of one key the newest counts.
    keys: ids in use. ends: ms, within +-2**62. gap: 1 to MOST_GAP, the same in every call.

    Windows before the first of a run, which fire late, must be less than ``gap`` before its last one. Windows of one
    call are best in order of their ends: then none of them is in a gap that is returned.

    Returns three int64[gaps]: which element ended the gap, and the ends of the windows on both sides of it. There may
    be no window in between. Raises ValueError for what is out of bounds, IndexError for an id that was never handed
    out. O(n) expected.
    """
    cdef Py_ssize_t n = keys.shape[0], i, j, found = 0, skipped = 0
    cdef int64_t limit = (<int64_t> 1) << 62
    cdef ts_t end, last, first, before
    cdef idx_t slot
    cdef int64_t* cells
    cdef Near near
    check_length("ends", ends.shape[0], n)
    check_ids("keys", keys, marks.keys.top)
    if not 1 <= gap <= MOST_GAP:
        raise ValueError(f"gap: must be at least 1 ms and at most 2**60 ms, got {gap}")
    for i in range(n):
        if not -limit <= ends[i] <= limit:
            raise ValueError(f"ends: must be within +-2**62 ms, got {ends[i]}")
    if marks.rows.stride < 8 * (HEAD_CELLS + MARK_CELLS):
        raise ValueError("marks: their rows have too few cells")
    places, over = np.empty(2 * n, dtype=np.int64), np.empty(n, dtype=np.int64)
    afters, untils = np.empty_like(places), np.empty_like(places)
    cdef int64_t[::1] place = places, after = afters, until = untils, behind = over
    near.known = False
    with nogil:
        for i in range(n):
            if i % BLOCK == 0:
                marks.rows.reserve(min(BLOCK, n - i))
            end = ends[i]
            slot = mark_of(&near, marks, keys[i], end, gap)
            first, before = end, INT64_MIN
            if slot != NONE:
                cells = cells_of(marks, slot)
                last = cells[LAST]
                if end <= last:     # within the run, or before it: see below
                    behind[skipped] = i
                    skipped += 1
                    continue
                if end - last > gap:
                    before = last
                else:
                    first, before = cells[FIRST], cells[BEFORE]
                    place[found], after[found], until[found] = i, last, end
                    found += 1
            if near.panes[OWN] == NULL:
                near.panes[OWN] = marks.ensure_pane(near.start)
            if slot == NONE or marks.rows.head(slot).start != near.start:
                slot = marks.ensure_row(near.panes[OWN], keys[i])
            else:
                marks.rows.mark(slot)
            cells = cells_of(marks, slot)
            cells[LAST], cells[FIRST], cells[BEFORE] = end, first, before
        for j in range(skipped - 1, -1, -1):
            i = behind[j]
            end = ends[i]
            slot = mark_of(&near, marks, keys[i], end, gap)
            cells = cells_of(marks, slot)
            first = cells[FIRST]
            if cells[BEFORE] < end < first and first - end <= gap:
                place[found], after[found], until[found] = i, end, first
                found += 1
                cells[FIRST] = end
                marks.rows.mark(slot)
        for j in range(skipped - 1, -1, -1):    # two runs join behind the earliest window between them
            i = behind[j]
            end = ends[i]
            slot = mark_of(&near, marks, keys[i], end, gap)
            cells = cells_of(marks, slot)
            before = cells[BEFORE]
            if end == cells[FIRST] and before != INT64_MIN and end - before <= gap:
                place[found], after[found], until[found] = i, before, end
                found += 1
                cells[FIRST], cells[BEFORE] = before, INT64_MIN
                marks.rows.mark(slot)
    return places[:found], afters[:found], untils[:found]
