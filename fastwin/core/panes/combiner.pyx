"""WindowCombiner: the rows of single (key, window)s put together from the panes they cover, for late firings."""

cimport cython
from libc.stdlib cimport free, realloc

from fastwin.core.typedefs cimport NONE, idx_t, int64_t, ts_t
from fastwin.core.memory.bounds cimport check_ids, check_length
from fastwin.core.panes.panetable cimport PaneTable
from fastwin.core.rows.rowstore cimport RowStore

cdef enum:
    BLOCK = 512


@cython.final
cdef class WindowCombiner:
    """Collects fired windows, one row for each (key, window), in a store of their own.

    panes: where the windows' panes are read from. shared: whether windows share panes; else each is the one pane that
    starts with it, which is found without the order of panes.
    """

    cdef readonly PaneTable panes
    cdef readonly bint shared
    cdef readonly RowStore rows
    cdef RowStore stack         # rows that hold a pane of the key at hand and all behind it
    cdef idx_t* found           # the panes of the key at hand, in time order
    cdef idx_t* stacked         # and their rows of the stack
    cdef Py_ssize_t capacity

    def __cinit__(self, PaneTable panes not None, bint shared=True):
        self.panes = panes
        self.shared = shared
        self.rows = panes.accumulators.new_rows()
        self.stack = panes.accumulators.new_rows()

    def __dealloc__(self):
        free(self.found)
        free(self.stacked)

    def fire(self, const idx_t[::1] keys not None, const int64_t[::1] starts not None,
             const int64_t[::1] ends not None):
        """Adds a row for each (key, window) ``(keys[i], [starts[i], ends[i]))``, the merge of its panes.

        Windows of one key that stand together, both bounds descending, share the work: O(panes between the earliest
        start and the latest end + windows), after all panes are put in order. A row without a pane is as a fresh one.
        Rows take the next slots in the order given. Raises ValueError for unequal lengths, IndexError for an id that
        was never handed out.
        """
        cdef Py_ssize_t n = keys.shape[0], at = 0, until
        check_length("starts", starts.shape[0], n)
        check_length("ends", ends.shape[0], n)
        check_ids("keys", keys, self.panes.keys.top)
        while at < n:
            until = at + 1
            while until < n and keys[until] == keys[at]:
                until += 1
            self._fire_key(keys[at], &starts[at], &ends[at], until - at)
            at = until

    def add_firing(self, const idx_t[::1] keys not None, const int64_t[::1] panes not None, list columns not None,
                   const int64_t[::1] counts not None, const int64_t[::1] starts not None,
                   const int64_t[::1] ends not None):
        """Adds elements to the panes one by one, and fires windows of the element's key after each.

        keys, panes, columns: as PaneTable.add() takes them. counts: how many windows each element fires.
        starts, ends: bounds of all these windows, in the order of firing. Raises as PaneTable.add() and fire() do.
        """
        cdef Py_ssize_t i, n = keys.shape[0], at = 0
        cdef int64_t total = 0
        cdef idx_t slot
        check_length("panes", panes.shape[0], n)
        check_length("counts", counts.shape[0], n)
        check_ids("keys", keys, self.panes.keys.top)
        for i in range(n):
            total += counts[i]
            if counts[i] < 0:
                raise ValueError(f"counts: must not be negative, got {counts[i]}")
        check_length("starts", starts.shape[0], total)
        check_length("ends", ends.shape[0], total)
        _held = self.panes.accumulators.hold(columns, n)
        for i in range(n):
            self.panes.ensure_rows(&keys[i], &panes[i], 1, &slot)
            self.panes.accumulators.add(self.panes.rows, &slot, 1, i)
            if counts[i]:
                self._fire_key(keys[i], &starts[at], &ends[at], counts[i])
                at += counts[i]

    cdef int _fire_key(self, idx_t key, const int64_t* starts, const int64_t* ends, Py_ssize_t n) except -1:
        """Fires n windows of a key; those whose bounds descend together."""
        cdef Py_ssize_t at = 0, until
        while at < n and not self.shared:
            self._fire_pane(key, starts[at])
            at += 1
        while at < n:
            until = at + 1
            while until < n and starts[until] <= starts[until - 1] and ends[until] <= ends[until - 1]:
                until += 1
            self._fire_descending(key, starts + at, ends + at, until - at)
            at = until
        return 0

    cdef int _fire_pane(self, idx_t key, ts_t start) except -1:
        """Fires a window that is one pane. O(1) expected, and it asks for no order of panes."""
        cdef idx_t row, slot = self.panes.slot_of(key, start)
        self.rows.reserve(1)
        row = self.rows.alloc(key, start)
        if slot != NONE:
            self.panes.accumulators.merge(self.rows, &row, self.panes.rows, &slot, 1)
        return 0

    cdef int _fire_descending(self, idx_t key, const int64_t* starts, const int64_t* ends, Py_ssize_t n) except -1:
        """Fires n windows of a key, the latest first: two stacks, as in WindowSlider, the earliest window first."""
        cdef Py_ssize_t count = self._find(key, starts[n - 1], ends[0])
        cdef Py_ssize_t first = 0, last = 0, turn = 0, until, i
        cdef idx_t row = self.rows.top, back = NONE
        self.rows.reserve(n)
        for i in range(n):
            self.rows.alloc(key, starts[i])
        i = n - 1
        while i >= 0:
            until = last
            while until < count and self._start(until) < ends[i]:
                until += 1
            if until > last:
                if back == NONE:
                    self.stack.reserve(1)
                    back = self.stack.alloc(key, 0)
                self._merge_panes(back, last, until)
                last = until
            while first < last and self._start(first) < starts[i]:
                if first == turn:
                    self._stack_up(key, first, last, starts[0])
                    turn = last
                    self.stack.release(back)
                    back = NONE
                self.stack.release(self.stacked[first])
                first += 1
            if first < turn:
                self._merge_into(row + <idx_t> i, self.stacked[first])
            if back != NONE:
                self._merge_into(row + <idx_t> i, back)
            i -= 1
        if back != NONE:
            self.stack.release(back)
        while first < turn and self.stacked[first] != NONE:
            self.stack.release(self.stacked[first])
            first += 1
        return 0

    cdef inline ts_t _start(self, Py_ssize_t at) noexcept nogil:
        return self.panes.rows.head(self.found[at]).start

    cdef inline int _merge_into(self, idx_t row, idx_t source) except -1:
        self.panes.accumulators.merge(self.rows, &row, self.stack, &source, 1)
        return 0

    cdef int _merge_panes(self, idx_t row, Py_ssize_t first, Py_ssize_t last) except -1:
        """Merges found[first:last] into a row of the stack."""
        cdef idx_t[BLOCK] into
        cdef Py_ssize_t i, m
        for i in range(min(BLOCK, last - first)):
            into[i] = row
        while first < last:
            m = min(BLOCK, last - first)
            self.panes.accumulators.merge(self.stack, into, self.panes.rows, self.found + first, m)
            first += m
        return 0

    cdef int _stack_up(self, idx_t key, Py_ssize_t first, Py_ssize_t last, ts_t stays) except -1:
        """Gives each pane of found[first:last] that starts before ``stays`` a row that holds it and all behind it, and
        the others one row together."""
        cdef Py_ssize_t i = last
        cdef idx_t row = NONE, behind
        while i > first and self._start(i - 1) >= stays:
            i -= 1
        self.stack.reserve(i - first + 1)
        if i < last:
            row = self.stack.alloc(key, 0)
            self._merge_panes(row, i, last)
            self.stacked[i] = row
            if i + 1 < last:
                self.stacked[i + 1] = NONE
        while i > first:
            i -= 1
            behind = row
            row = self.stack.alloc(key, 0)
            self._merge_panes(row, i, i + 1)
            if behind != NONE:
                self.panes.accumulators.merge(self.stack, &row, self.stack, &behind, 1)
            self.stacked[i] = row
        return 0

    cdef Py_ssize_t _find(self, idx_t key, ts_t start, ts_t end) except -1:
        """Lists the key's rows in the panes of ``[start, end)`` in ``found``; returns how many there are."""
        cdef Py_ssize_t at = self.panes.lower_bound(start), until = self.panes.lower_bound(end), n = 0
        cdef idx_t slot
        cdef void* moved
        if until - at > self.capacity:
            moved = realloc(self.found, (until - at) * sizeof(idx_t))
            if moved == NULL:
                raise MemoryError(f"WindowCombiner: no memory for {until - at} panes")
            self.found = <idx_t*> moved
            moved = realloc(self.stacked, (until - at) * sizeof(idx_t))
            if moved == NULL:
                raise MemoryError(f"WindowCombiner: no memory for {until - at} panes")
            self.stacked = <idx_t*> moved
            self.capacity = until - at
        with nogil:
            for at in range(at, until):
                slot = self.panes.find_row(self.panes.known.panes[at], key)
                if slot != NONE:
                    self.found[n] = slot
                    n += 1
        return n

    def clear(self):
        """Forgets the rows collected so far."""
        self.rows = self.panes.accumulators.new_rows()
