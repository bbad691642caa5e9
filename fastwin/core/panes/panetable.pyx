"""PaneTable: the accumulators of every (key, pane), grouped by pane so that panes fire and go as one."""

import numpy as np

from libc.stdlib cimport calloc
from libc.string cimport memset

from fastwin.core.typedefs cimport NONE, idx_t, int64_t, ts_t, uint8_t
from fastwin.core.accumulators.accumulator_set cimport AccumulatorSet
from fastwin.core.memory.bounds cimport check_ids, check_length
from fastwin.core.memory.equal cimport are_one
from fastwin.core.memory.hashindex cimport seed_index
from fastwin.core.keys.keytable cimport KeyTable
from fastwin.core.memory.pages cimport prefetch
from fastwin.core.memory.regions cimport new_region
from fastwin.core.panes.panelist cimport (
    append_pane, bytes_of_panes, follows_all, free_first_panes, free_panes, give_index, order_panes, place_panes,
    reserve_panes)
from fastwin.core.panes.visits cimport Chains, chains_of, fill_index, follow, list_rows, place, put
from fastwin.core.panes.slices cimport Slicer, slicer_over, slices_of
from fastwin.core.timemath cimport TIME_BITS, are_within, check_duration, check_times

cdef enum:
    BLOCK = 512                 # rows found, then updated, while they are in the cache
    FIRST_INDEX = 16
    CACHED = 262144             # bytes of rows that need no fetching

NOTHING = np.empty(0, dtype=np.int64)


cdef class PaneTable:
    """Rows of accumulators by (key id, pane start).

    keys: the KeyTable whose ids the rows hold and retain.
    accumulators: what each row carries.
    """

    def __cinit__(self, KeyTable keys not None, AccumulatorSet accumulators not None):
        self.keys = keys
        self.accumulators = accumulators
        self.rows = accumulators.new_rows()
        seed_index(&self.known.index)

    def __dealloc__(self):
        free_panes(&self.known)

    def __len__(self):
        return self.rows.live

    @property
    def count(self):
        """How many panes there are."""
        return self.known.count

    @property
    def moved(self):
        """How many panes have changed their places in the list of all so far, to keep it in order."""
        return self.known.moved

    @property
    def nbytes(self):
        """Bytes allocated, the keys left out."""
        return self.rows.nbytes + bytes_of_panes(&self.known)

    def place(self, bint in_file):
        """Moves rows and indexes, not the keys, to files or to memory; returns their bytes in files. O(bytes)."""
        cdef size_t total = self.rows.place(in_file)
        with nogil:
            total += place_panes(&self.known, in_file)
        return total

    cdef Pane* ensure_pane(self, ts_t start) except NULL nogil:
        """Returns the pane, made if need be."""
        cdef Pane* pane = self.find_pane(start)
        cdef Py_ssize_t likely = 0
        if pane != NULL:
            return pane
        if self.known.count:     # likely it will hold as many rows as the pane before it, or else as others do
            likely = self.rows.live // self.known.count
            if follows_all(&self.known, start):
                likely = self.known.panes[self.known.count - 1].count
        pane = <Pane*> calloc(1, sizeof(Pane)) if reserve_panes(&self.known) else NULL
        if pane == NULL:
            with gil:
                raise MemoryError(f"PaneTable: no memory for {self.known.count + 1} panes")
        pane.start = start
        pane.newest = NONE
        append_pane(&self.known, pane)
        if likely > FIRST_INDEX:
            self.resize_index(pane, likely)
        return pane

    cdef int resize_index(self, Pane* pane, Py_ssize_t rows) except -1 nogil:
        """Makes the index anew for ``rows`` rows: by key id where that takes no more memory than hashing does."""
        cdef Py_ssize_t size = FIRST_INDEX
        cdef idx_t* index
        cdef bint direct
        while 5 * size < 8 * rows:
            size *= 2
        direct = self.keys.capacity <= size
        if direct:
            size = self.keys.capacity
        index = <idx_t*> new_region(self.rows.block, size * sizeof(idx_t))
        if index == NULL:
            with gil:
                raise MemoryError(f"PaneTable: no memory for an index of {size}")
        memset(index, 0xFF, size * sizeof(idx_t))
        fill_index(index, size, direct, pane, self.rows)
        give_index(&self.known, pane, index, size, direct)
        return 0

    cdef idx_t ensure_row(self, Pane* pane, idx_t key) except -1 nogil:
        """Returns the slot of the row, made if need be, and marks it dirty; rows.reserve() has made room."""
        cdef idx_t slot = self.find_row(pane, key)
        if slot != NONE:
            self.rows.mark(slot)
            return slot
        if key >= pane.index_size if pane.direct else 8 * (<Py_ssize_t> pane.count + 1) > 5 * pane.index_size:
            self.resize_index(pane, pane.count + 1)
        slot = self.rows.alloc(key, pane.start)
        self.rows.head(slot).link = pane.newest
        pane.newest = slot
        pane.count += 1
        self.keys.retain(key)
        put(pane.index, pane.index_size, pane.direct, slot, self.rows)
        return slot

    cdef int ensure_in_pane(self, Pane* pane, const idx_t* keys, Py_ssize_t n, idx_t* slots) except -1 nogil:
        """Fills the slots of up to BLOCK rows of one pane; rows.reserve() has made room."""
        cdef Py_ssize_t i, at
        cdef idx_t slot
        cdef bint far = self.rows.top * self.rows.stride > CACHED
        if are_one(keys, n):
            slot = self.ensure_row(pane, keys[0])
            for i in range(n):
                slots[i] = slot
            return 0
        if far:
            for i in range(n):
                prefetch(pane.index + (keys[i] if pane.direct else place(keys[i], pane.index_size)))
        if not pane.direct:
            for i in range(n if far else 0):
                at = place(keys[i], pane.index_size)
                if at < pane.index_size and pane.index[at] != NONE:
                    prefetch(self.rows.head(pane.index[at]))
            for i in range(n):
                slots[i] = self.ensure_row(pane, keys[i])
            return 0
        for i in range(n):
            # A row made on the way may have turned the index into a hashed one.
            slot = pane.index[keys[i]] if pane.direct and keys[i] < pane.index_size else <idx_t> NONE
            if slot == NONE:
                slot = self.ensure_row(pane, keys[i])
            else:
                self.rows.mark(slot)
                if far:
                    prefetch(self.rows.head(slot))
                    prefetch(<char*> self.rows.head(slot) + self.rows.stride - 1)
            slots[i] = slot
        return 0

    cdef int ensure_rows(self, const idx_t* keys, const ts_t* starts, Py_ssize_t n, idx_t* slots) except -1 nogil:
        """Fills the slots of up to BLOCK rows. What will be looked at is fetched first: the cache misses overlap."""
        cdef Pane* panes[BLOCK]
        cdef Pane* pane
        cdef Py_ssize_t i, at
        cdef bint far = self.rows.top * self.rows.stride > CACHED
        self.rows.reserve(n)
        if are_one(starts, n):
            return self.ensure_in_pane(self.ensure_pane(starts[0]), keys, n, slots)
        for i in range(n):
            pane = self.find_pane(starts[i])
            panes[i] = pane = self.ensure_pane(starts[i]) if pane == NULL else pane
            if far:
                at = keys[i] if pane.direct else place(keys[i], pane.index_size)
                prefetch(pane.index + at)
        if far:
            for i in range(n):
                pane = panes[i]
                at = keys[i] if pane.direct else place(keys[i], pane.index_size)
                if at < pane.index_size and pane.index[at] != NONE:
                    prefetch(self.rows.head(pane.index[at]))
        for i in range(n):
            slots[i] = self.find_row(panes[i], keys[i])
            if slots[i] == NONE:
                slots[i] = self.ensure_row(panes[i], keys[i])
            else:
                self.rows.mark(slots[i])
        return 0

    def add(self, const idx_t[::1] keys not None, const int64_t[::1] starts not None, list columns not None):
        """Adds element i to the row of (keys[i], starts[i]); returns the slots: int32[n].

        keys: ids in use, of ``self.keys``. starts: pane starts, ms. columns: see AccumulatorSet.add_rows.
        Raises ValueError for columns that do not suit or starts of another length, IndexError for
        an id that was never handed out. O(n) expected.
        """
        cdef Py_ssize_t n = keys.shape[0], at = 0, m
        check_length("starts", starts.shape[0], n)
        check_ids("keys", keys, self.keys.top)
        _held = self.accumulators.hold(columns, n)
        out = np.empty(n, dtype=np.int32)
        cdef idx_t[::1] slots = out
        with nogil:
            while at < n:
                m = min(BLOCK, n - at)
                self.ensure_rows(&keys[at], &starts[at], m, &slots[at])
                self.accumulators.add(self.rows, &slots[at], m, at)
                at += m
        return out

    def feed(self, const idx_t[::1] ids, const int64_t[::1] values, const uint8_t[::1] valid,
             const int64_t[::1] times not None, int64_t first, int64_t slide, int64_t rest, int64_t offset,
             list columns not None, const int64_t[::1] bounds=None):
        """Adds element i to the row of its key and of the slice of times[i]: all steps of ingestion block by block.

        ids: of the keys, in use; or None, and ``values`` are int64 keys with ``valid``, see KeyTable.intern_int64.
        times: ms, within +-2**61. first: elements before it are passed over.
        slide, rest, offset: slices start at offset + k * slide and, unless rest is 0, at offset + k * slide + rest.
        columns: see AccumulatorSet.add_rows. bounds: of slices that are on no grid, ascending, with all times in
        between; None: they are on the grid. Returns the indices of what was passed over, ascending: int64[]. Raises as
        add() and assign_slices() do.
        """
        cdef Py_ssize_t n = times.shape[0], at = 0, skipped = 0, m
        cdef idx_t[BLOCK] keys, slots
        cdef ts_t[BLOCK] starts
        cdef const idx_t* given
        cdef const uint8_t* marks = NULL
        cdef Slicer slicer
        cdef int64_t limit = (<int64_t> 1) << TIME_BITS
        check_duration("slide", slide, 1)
        if not 0 <= rest < slide or not -slide < offset < slide:
            raise ValueError(f"rest, offset: must be below slide={slide}, got rest={rest} offset={offset}")
        cdef const int64_t[::1] over = NOTHING
        if first > limit or not are_within(times, max(first, -limit), limit):   # one look at each, if all is well
            check_times("times", times)
            over = np.flatnonzero(np.asarray(times) < first)
        if ids is not None:
            check_length("ids", ids.shape[0], n)
            check_ids("ids", ids, self.keys.top)
        elif values is None or self.keys.is_bytes:
            raise ValueError("values: needed where there are no ids, and for a table of int64 keys only")
        else:
            check_length("values", values.shape[0], n)
        if valid is not None:
            check_length("valid", valid.shape[0], n)
        _held = self.accumulators.hold(columns, n)
        slicer = slicer_over(times, slide, rest, offset, bounds)
        with nogil:
            while at < n:
                m = min(BLOCK, (over[skipped] if skipped < over.shape[0] else n) - at)
                if m == 0:
                    skipped, at = skipped + 1, at + 1
                    continue
                if ids is not None:
                    given = &ids[at]
                else:
                    if valid is not None:
                        marks = &valid[at]
                    self.keys.intern_few(&values[at], marks, m, keys)
                    given = keys
                slices_of(&slicer, &times[at], m, starts)
                self.ensure_rows(given, starts, m, slots)
                self.accumulators.add(self.rows, slots, m, at)
                at += m
        return NOTHING if over.shape[0] == 0 else np.asarray(over)

    def starts(self):
        """Returns the starts of the panes that hold rows, ascending: int64[panes]."""
        out = np.empty(self.known.count, dtype=np.int64)
        cdef int64_t[::1] view = out
        cdef Py_ssize_t i
        order_panes(&self.known)
        for i in range(self.known.count):
            view[i] = self.known.panes[i].start
        return out

    def first_start(self, ts_t at_least):
        """Returns the first pane start at or after ``at_least`` in ms, or None. O(log panes)."""
        cdef Py_ssize_t at = self.lower_bound(at_least)
        return None if at == self.known.count else self.known.panes[at].start

    def slots_of(self, ts_t start):
        """Returns the slots of the rows of the pane at ``start``, if there is one, oldest first: int32[rows]."""
        return self.slots_from(start, start, 0)

    def slots_from(self, ts_t first, ts_t last, Py_ssize_t most):
        """Returns the slots of the rows of the panes at ``first`` to ``last``, pane by pane, oldest first: int32[rows].

        most: of the panes behind the first one, so many that they have no more rows than that together with it.
        """
        cdef Py_ssize_t at = self.lower_bound(first), stop = at, n = 0
        while stop < self.known.count and self.known.panes[stop].start <= last:
            if n and n + self.known.panes[stop].count > most:
                break
            n += self.known.panes[stop].count
            stop += 1
        out = np.empty(n, dtype=np.int32)
        cdef idx_t[::1] view = out
        if n:
            list_rows(&self.known, at, stop, self.rows, &view[0])
        return out

    def ensure(self, const idx_t[::1] keys not None, const int64_t[::1] starts not None):
        """Returns the slots of (keys[i], starts[i]), new ones where there was none, dirty: int32[n]. As add()."""
        cdef Py_ssize_t n = keys.shape[0], at = 0
        check_length("starts", starts.shape[0], n)
        check_ids("keys", keys, self.keys.top)
        out = np.empty(n, dtype=np.int32)
        cdef idx_t[::1] slots = out
        with nogil:
            while at < n:
                self.ensure_rows(&keys[at], &starts[at], min(BLOCK, n - at), &slots[at])
                at += BLOCK
        return out

    def drop_before(self, ts_t start):
        """Frees the panes that start before ``start``, and the keys that no row holds any more. O(rows freed)."""
        cdef Py_ssize_t gone = self.lower_bound(start), at = 0, i
        cdef Chains chains
        cdef idx_t slot
        cdef bint more
        if gone == 0:
            return
        with nogil:
            while at < gone:
                chains, more = chains_of(&self.known, at, gone, self.rows), True
                at += chains.n
                while more:
                    more = False
                    for i in range(chains.n):
                        slot = follow(&chains, i, self.rows)
                        if slot != NONE:
                            self.keys.release_later(self.rows.head(slot).key)
                            self.rows.release(slot)
                            more = True
            free_first_panes(&self.known, gone)
            self.keys.bury()
            self.rows.trim()

    def _check(self):
        """Raises AssertionError where an invariant does not hold. O(rows)."""
        cdef Py_ssize_t i, places = 0
        cdef idx_t slot, total = 0, rows
        cdef Pane* pane
        self.rows._check()
        self.keys._check()
        order_panes(&self.known)
        for i in range(self.known.count):
            pane = self.known.panes[i]
            assert self.find_pane(pane.start) == pane, f"pane {pane.start} cannot be found"
            assert i == 0 or self.known.panes[i - 1].start < pane.start, "panes are out of order"
            assert pane.count, f"pane {pane.start} holds no row"
            rows, slot = 0, pane.newest
            while slot != NONE:
                assert self.rows.head(slot).start == pane.start, f"row {slot} is in another pane"
                assert self.find_row(pane, self.rows.head(slot).key) == slot, f"row {slot} cannot be found"
                rows += 1
                slot = self.rows.head(slot).link
            assert rows == pane.count, f"pane {pane.start}: {rows} rows, not {pane.count}"
            total += rows
            places += pane.index_size
        assert total == self.rows.live, f"{total} rows in panes, {self.rows.live} in the store"
        assert places == self.known.indexed, f"{places} places in indexes, counted {self.known.indexed}"
