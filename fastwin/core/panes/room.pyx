"""Room for rows that are about to be loaded: what grows step by step is built anew with each step."""

from fastwin.core.typedefs cimport int64_t
from fastwin.core.memory.bounds cimport check_length
from fastwin.core.panes.panelist cimport Pane
from fastwin.core.panes.panetable cimport PaneTable

__all__ = ["make_room"]


def make_room(PaneTable panes not None, Py_ssize_t keys, const int64_t[::1] starts not None,
              const int64_t[::1] counts not None):
    """Makes room for so many keys in all, and for ``counts[i]`` rows in the pane that starts at ``starts[i]``, ms.

    Panes are made if need be, so each has to get a row. starts, counts: int64[panes]. Raises ValueError for unequal
    lengths, MemoryError where there is no memory.
    """
    cdef Py_ssize_t i, rows = 0
    cdef Pane* pane
    check_length("counts", counts.shape[0], starts.shape[0])
    if keys > panes.keys.live:
        panes.keys._reserve(keys - panes.keys.live)
    for i in range(starts.shape[0]):
        rows += counts[i]
    if rows > panes.rows.live:
        panes.rows.reserve(rows - panes.rows.live)
    for i in range(starts.shape[0]):
        pane = panes.ensure_pane(starts[i])
        if counts[i] > pane.count:
            panes.resize_index(pane, counts[i])
