# Rows of a store that releases none: they go in bulk, and those behind them move up.
from libc.string cimport memcpy, memset

from fastwin.core.memory.owned cimport drop_blocks
from fastwin.core.rows.rowstore cimport RowStore
from fastwin.core.typedefs cimport NONE, idx_t, ts_t


cdef inline void clear_rows(RowStore rows) noexcept nogil:
    """Drops all rows, and keeps the memory. O(rows / 8), and O(rows) where they own blocks."""
    cdef idx_t slot
    for slot in range(rows.top if rows.owned_n else 0):
        drop_blocks(<char*> rows.head(slot), rows.owned, rows.owned_n)
    memset(rows.dirty, 0, rows.capacity // 8)
    rows.top = rows.live = 0


cdef inline void new_slots(RowStore rows, const ts_t* times, ts_t first, idx_t* moved) noexcept nogil:
    """Fills the slots that rows will have when those of times before ``first`` are gone; NONE for these. O(rows)."""
    cdef idx_t slot, left = 0
    for slot in range(rows.top):
        if times[slot] < first:
            moved[slot] = NONE
        else:
            moved[slot] = left
            left += 1


cdef inline void close_gaps(RowStore rows, const idx_t* moved) noexcept nogil:
    """Drops rows, and moves others up, as ``new_slots`` has said. O(bytes)."""
    cdef idx_t slot, left = 0
    for slot in range(rows.top):
        if moved[slot] == NONE:
            drop_blocks(<char*> rows.head(slot), rows.owned, rows.owned_n)
            continue
        if left != slot:
            memcpy(rows.head(left), rows.head(slot), rows.stride)
        left += 1
    memset(rows.dirty, 0, rows.capacity // 8)
    rows.top = rows.live = left
