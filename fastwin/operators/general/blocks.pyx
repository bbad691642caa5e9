"""Block: a few elements at once, so that what is known of their windows comes into the cache while others are taken."""

from fastwin.core.typedefs cimport NONE, idx_t, int64_t, ts_t, uint32_t, uint64_t
from fastwin.core.windows.windowtable cimport Window, WindowTable, last_ms
from fastwin.operators.general.assigners cimport AssignerNode


cdef class Block:
    """The windows of some elements. table: of their rows. assigner: one that may be asked in advance, or none is."""

    def __init__(self, WindowTable table not None, AssignerNode assigner not None):
        self.table = table
        self.assigner = assigner

    cdef int foresee(self, const idx_t* ids, const int64_t* times, Py_ssize_t first, Py_ssize_t n) except -1:
        """Looks for the rows of n elements, the first of which is number ``first``, and fetches them."""
        cdef WindowTable table = self.table
        cdef AssignerNode assigner = self.assigner
        cdef ts_t start = 0, end = 0
        cdef uint64_t hash = 0
        cdef bint known = False
        cdef Py_ssize_t k
        for k in range(n):
            if not (known and assigner.single and start <= times[k] < end):
                known = assigner.assign(first + k, times[k], ids[k]) > 0
                if known:
                    start, end = assigner.starts[0], assigner.ends[0]
                    hash = table.hash_window(start, end)
            self.starts[k], self.ends[k] = start, end
            self.hashes[k] = table.hash_key(hash, ids[k])
            table.soon(self.hashes[k])
        for k in range(n):
            self.slots[k] = table.sooner(self.hashes[k])
        return 0

    cdef idx_t known(self, Py_ssize_t k, idx_t key) noexcept:
        """Returns the row of an element's window if it was found in advance, and is there still; else NONE."""
        cdef idx_t slot = self.slots[k]
        cdef const Window* window = NULL if slot == NONE else self.table.living(slot)
        if (window == NULL or window.head.key != key or window.head.start != self.starts[k]
                or window.end != self.ends[k]):
            return NONE
        return slot

    cdef bint is_settled(self, Py_ssize_t k, idx_t key, uint32_t flags, ts_t watermark) noexcept:
        """Tells whether an element goes into a row with all these flags that is not over yet; marks the row dirty."""
        cdef idx_t slot = self.slots[k]
        cdef const Window* window
        if slot == NONE:
            return False
        window = self.table.at(slot)
        if (window.flags & flags != flags or window.head.key != key or window.head.start != self.starts[k]
                or window.end != self.ends[k] or last_ms(window) <= watermark):
            return False
        self.table.rows.mark(slot)
        return True
