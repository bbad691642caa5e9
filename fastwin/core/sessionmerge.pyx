"""Sessions that were put together elsewhere, merged into those of a SessionTable."""

import numpy as np

from fastwin._typedefs cimport NONE, idx_t, int64_t
from fastwin.core.bounds cimport check_length
from fastwin.core.rows cimport RowStore
from fastwin.core.sessions cimport FETCHED, SessionTable
from fastwin.core.timemath cimport is_past

__all__ = ["absorb"]


def absorb(SessionTable table not None, const idx_t[::1] keys not None, const int64_t[::1] starts not None,
           const int64_t[::1] ends not None, int64_t watermark, int64_t lateness,
           RowStore others not None, const idx_t[::1] from_slots not None):
    """Merges sessions from elsewhere: ``[starts[i], ends[i])``, not empty, with row ``from_slots[i]`` of others.

    Each may join any number of sessions here. The rest is as in SessionTable.add().
    """
    cdef Py_ssize_t n = keys.shape[0], i, armed_n = 0, done = 0, taken_n = 0
    cdef idx_t slot, older, none = NONE
    cdef bint arm
    table._check_keys(keys, "starts", starts)
    check_length("ends", ends.shape[0], n)
    check_length("from_slots", from_slots.shape[0], n)
    table.accumulators._check_rows(others, from_slots)
    out, armed_out = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
    cdef idx_t[::1] slots = out, armed = armed_out
    cdef idx_t[::1] into = np.empty(n + 1, dtype=np.int32), taken = np.empty(n + 1, dtype=np.int32)
    table._reserve(n)
    for i in range(n):
        if i % FETCHED == 0:
            table._fetch(&keys[i], min(n - i, FETCHED))
        slot = table._latest_until(keys[i], ends[i])
        if slot == none or table.at(slot).end < starts[i]:
            if is_past(ends[i] - 1, lateness, watermark):
                slots[i] = NONE
                continue
            slot = table._insert(keys[i], starts[i], ends[i], slot)
            arm = True
        else:
            arm = ends[i] > table.at(slot).end and table.at(slot).end - 1 <= watermark
            table.at(slot).end = max(ends[i], table.at(slot).end)
            table.at(slot).head.start = min(starts[i], table.at(slot).head.start)
            table.rows.mark(slot)
            older = table.at(slot).head.link
            while older != none and table.at(older).end >= table.at(slot).head.start:
                table.accumulators.merge(table.rows, &into[done], others, &taken[done], taken_n - done)
                done = taken_n              # the older one may have waited for values
                table.at(slot).head.start = min(table.at(older).head.start, table.at(slot).head.start)
                table._unlink(older)
                table._reserve(1)
                table.accumulators.merge(table.rows, &slot, table.rows, &older, 1)
                table._retire(older)
                older = table.at(slot).head.link
        if arm:
            armed[armed_n] = slot
            armed_n += 1
        table.cursor[keys[i]] = slots[i] = into[taken_n] = slot
        taken[taken_n] = from_slots[i]
        taken_n += 1
    table.accumulators.merge(table.rows, &into[done], others, &taken[done], taken_n - done)
    armed_out = armed_out[:armed_n]
    return out, armed_out[table.rows.live_marks(armed_out)]
