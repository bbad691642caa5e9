"""Firsts: which elements are the first of their kind, told while they are added to a PaneTable."""

import numpy as np

from fastwin.core.typedefs cimport NONE, idx_t, int64_t, ts_t, uint8_t
from fastwin.core.memory.bounds cimport check_ids, check_length
from fastwin.core.panes.panelist cimport Pane
from fastwin.core.panes.panetable cimport PaneTable
from fastwin.core.rows.rowstore cimport HEAD_CELLS
from fastwin.core.timemath cimport check_duration, check_times, floor_to

cdef enum:
    BLOCK = 512


def add_firsts(PaneTable panes not None, const idx_t[::1] keys not None, const int64_t[::1] starts not None):
    """Adds a row for each (keys[i], starts[i]) that has none; returns which elements did: bool[n].

    keys: ids in use. starts: of panes, ms. Rows that are there already stay as they are, and are not marked. Raises
    ValueError for starts of another length, IndexError for an id that was never handed out. O(n) expected.
    """
    cdef Py_ssize_t n = keys.shape[0], i
    cdef Pane* pane = NULL
    check_length("starts", starts.shape[0], n)
    check_ids("keys", keys, panes.keys.top)
    out = np.zeros(n, dtype=np.uint8)
    cdef uint8_t[::1] firsts = out
    with nogil:
        for i in range(n):
            if i % BLOCK == 0:
                panes.rows.reserve(min(BLOCK, n - i))
            if pane == NULL or pane.start != starts[i]:
                pane = panes.ensure_pane(starts[i])
            if panes.find_row(pane, keys[i]) == NONE:
                panes.ensure_row(pane, keys[i])
                firsts[i] = 1
    return out.view(np.bool_)


cdef inline int64_t* time_of(PaneTable panes, idx_t key, ts_t start) noexcept nogil:
    """Returns the time of the key's row in the pane at ``start``; NULL: it has none."""
    cdef idx_t slot = panes.slot_of(key, start)
    return NULL if slot == NONE else (<int64_t*> panes.rows.head(slot)) + HEAD_CELLS


def add_apart(PaneTable panes not None, const idx_t[::1] keys not None, const int64_t[::1] times not None,
              int64_t within):
    """Adds elements that lie at least ``within`` ms from all that were added of their key; tells which: bool[n].

    keys: ids in use. times: ms, within +-2**61. within: 1 to 2**61 ms, the same in every call. The time is in the first
    cell of a row; its pane begins at a multiple of ``within``, so that a pane holds one row of a key at most.

    Raises ValueError for what is out of bounds, IndexError for an id that was never handed out. O(n) expected.
    """
    cdef Py_ssize_t n = keys.shape[0], i
    cdef Pane* pane = NULL
    cdef ts_t start
    cdef idx_t slot
    cdef int64_t* near
    check_length("times", times.shape[0], n)
    check_ids("keys", keys, panes.keys.top)
    check_duration("within", within, 1)
    check_times("times", times)
    if panes.rows.stride < 8 * (HEAD_CELLS + 1):
        raise ValueError("panes: its rows have no cell for the time")
    out = np.zeros(n, dtype=np.uint8)
    cdef uint8_t[::1] apart = out
    with nogil:
        for i in range(n):
            if i % BLOCK == 0:
                panes.rows.reserve(min(BLOCK, n - i))
            start = floor_to(times[i], within, 0)
            if time_of(panes, keys[i], start) != NULL:
                continue
            near = time_of(panes, keys[i], start - within)
            if near != NULL and times[i] - near[0] < within:
                continue
            near = time_of(panes, keys[i], start + within)
            if near != NULL and near[0] - times[i] < within:
                continue
            pane = panes.ensure_pane(start)
            slot = panes.ensure_row(pane, keys[i])
            (<int64_t*> panes.rows.head(slot))[HEAD_CELLS] = times[i]
            apart[i] = 1
    return out.view(np.bool_)
