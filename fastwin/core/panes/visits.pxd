# Ways through the rows of panes. Rows lie anywhere, so what comes next is fetched while others have their turn.
cimport cython

from fastwin.core.typedefs cimport NONE, idx_t, uint64_t
from fastwin.core.memory.pages cimport prefetch
from fastwin.core.panes.panelist cimport Pane, PaneList
from fastwin.core.rows.rowstore cimport RowStore

cdef enum:
    AHEAD = 16                  # places of an index whose rows are fetched before their turn
    CHAINS = 16                 # panes that are followed side by side: in a chain each row tells only the next one

cdef struct Chains:
    idx_t[CHAINS] slots         # of each the row that comes next; NONE: no more
    Py_ssize_t n


@cython.overflowcheck(False)
cdef inline Py_ssize_t place(idx_t key, Py_ssize_t size) noexcept nogil:
    # Fibonacci hashing: ids are dense, this spreads them.
    return <Py_ssize_t> ((<uint64_t> key * <uint64_t> 0x9E3779B97F4A7C15) >> 32) & (size - 1)


cdef inline bint lie_together(const Pane* pane, RowStore rows) noexcept nogil:
    """Whether a pane's newest rows are neighbours, as where elements come in order: then the processor looks ahead."""
    cdef idx_t slot = pane.newest
    cdef int _i
    for _i in range(AHEAD):
        if slot == NONE:
            return True
        slot = rows.head(slot).link
    return slot == NONE or -2 * AHEAD <= pane.newest - slot <= 2 * AHEAD


cdef inline void put(idx_t* index, Py_ssize_t size, bint direct, idx_t slot, RowStore rows) noexcept nogil:
    """Puts a row into an index that has room for it."""
    cdef idx_t key = rows.head(slot).key
    cdef Py_ssize_t at = key if direct else place(key, size)
    while index[at] != NONE:
        at = (at + 1) & (size - 1)
    index[at] = slot


cdef inline void fill_index(idx_t* index, Py_ssize_t size, bint direct, const Pane* pane, RowStore rows) noexcept nogil:
    """Puts a pane's rows into another index, an empty one."""
    cdef Py_ssize_t i
    cdef idx_t slot = pane.newest
    if lie_together(pane, rows):
        while slot != NONE:
            put(index, size, direct, slot, rows)
            slot = rows.head(slot).link
        return
    for i in range(pane.index_size):
        if i + AHEAD < pane.index_size and pane.index[i + AHEAD] != NONE:
            prefetch(rows.head(pane.index[i + AHEAD]))
        if pane.index[i] != NONE:
            put(index, size, direct, pane.index[i], rows)


cdef inline Chains chains_of(const PaneList* known, Py_ssize_t first, Py_ssize_t last, RowStore rows) noexcept nogil:
    """Returns where the chains begin of panes ``first`` to before ``last``, or of fewer: at most CHAINS, and one whose
    rows lie together is followed alone."""
    cdef Chains chains
    cdef Py_ssize_t i
    chains.n = 1 if lie_together(known.panes[first], rows) else min(last - first, CHAINS)
    for i in range(chains.n):
        chains.slots[i] = known.panes[first + i].newest
    return chains


cdef inline idx_t follow(Chains* chains, Py_ssize_t i, RowStore rows) noexcept nogil:
    """Returns the next row of a chain, NONE for no more; its link is not needed afterwards."""
    cdef idx_t slot = chains.slots[i]
    if slot != NONE:
        chains.slots[i] = rows.head(slot).link
        if chains.slots[i] != NONE:
            prefetch(rows.head(chains.slots[i]))
    return slot


cdef inline void list_rows(const PaneList* known, Py_ssize_t first, Py_ssize_t last, RowStore rows,
                           idx_t* slots) noexcept nogil:
    """Writes the slots of the rows of panes ``first`` to before ``last``, pane by pane, oldest first."""
    cdef Py_ssize_t[CHAINS] ends
    cdef Py_ssize_t i, n = 0
    cdef idx_t slot, longest = 0, _row
    cdef Chains chains
    while first < last:
        chains = chains_of(known, first, last, rows)
        for i in range(chains.n):
            ends[i] = n = n + known.panes[first + i].count
            longest = max(longest, known.panes[first + i].count)
        for _row in range(longest):
            for i in range(chains.n):
                slot = follow(&chains, i, rows)
                if slot != NONE:
                    ends[i] -= 1
                    slots[ends[i]] = slot
        first += chains.n
