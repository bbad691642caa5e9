"""WindowSlider: the merge of each key's panes in a window, kept up while the window slides."""

cimport cython
from libc.stdint cimport INT64_MAX, INT64_MIN
from libc.string cimport memset

from fastwin.core.typedefs cimport NONE, idx_t, int64_t, ts_t
from fastwin.core.memory.bounds cimport check_ids, check_length
from fastwin.core.memory.pages cimport prefetch
from fastwin.core.memory.regions cimport bytes_in_file, free_region, placed_region, resized_region
from fastwin.core.panes.panetable cimport PaneTable
from fastwin.core.rows.rowstore cimport RowStore
from fastwin.core.timemath cimport check_duration, floor_to


@cython.final
cdef class WindowSlider:
    """Fires windows ``[start, end)`` one after another, both bounds ascending, for all keys at once.

    panes: where the windows' panes are read from; they are not changed.
    slide: ms by which starts advance. offset: ms; starts are offset + k * slide. blocks: how many slides make a block;
    two of them are blocks and blocks of blocks.

    Two stacks (Tangwongsan, Hirzel, Schneider, "In-Order Sliding-Window Aggregation in Worst-Case Constant Time",
    2021), their front divided: it holds rows for the blocks of a window and for the slides of one block, not for all
    slides. A pane is merged once for the back and once for each part of the front, however many windows cover it, and
    a fired row is merged from as many rows. So firing is O(1) amortised for a (key, window), whatever the aggregates;
    keys without a pane in the window are not touched. Merging alone is needed, and nothing is ever subtracted: float
    sums do not drift. The rows held beside the panes are fewest with one kind of blocks near the root of the slides in
    a window, or with two near the powers of its cube root.

    All of it is derived from the panes. It follows late elements by add() and absorb().
    """

    def __cinit__(self, PaneTable panes not None, int64_t slide, int64_t offset=0, tuple blocks=()):
        cdef int i
        check_duration("slide", slide, 1)
        if len(blocks) >= STACKS:
            raise ValueError(f"blocks: at most {STACKS - 1} kinds, got {blocks}")
        self.panes = panes
        self.rows = panes.accumulators.new_rows()
        self._parts = panes.accumulators.new_rows()
        self.stacks, self.offset = len(blocks) + 1, offset
        self.groups[0] = slide
        for i in range(1, self.stacks):
            if blocks[i - 1] < 1 or blocks[i - 1] % (blocks[i - 2] if i > 1 else 1):
                raise ValueError(f"blocks: each at least 1 and a multiple of the one before, got {blocks}")
            check_duration("blocks * slide", min(blocks[i - 1] * slide, INT64_MAX), 1)
            self.groups[i] = blocks[i - 1] * slide
        self.start = self.end = INT64_MIN
        for i in range(STACKS):
            self.ends[i] = INT64_MIN

    def __dealloc__(self):
        free_region(self.runs)
        free_region(self.active)

    @property
    def nbytes(self):
        """Bytes allocated."""
        return self.rows.nbytes + self.capacity * <Py_ssize_t> (sizeof(Run) + sizeof(idx_t))

    def place(self, bint in_file):
        """Moves all rows and runs to files or back to memory, see memory/regions; returns their bytes in files.

        O(bytes) where they move.
        """
        cdef size_t n = self.capacity, total = self.rows.place(in_file) + self._parts.place(in_file)
        with nogil:
            self.active = <idx_t*> placed_region(self.active, n * sizeof(idx_t), n * sizeof(idx_t), in_file)
            self.runs = <Run*> placed_region(self.runs, n * sizeof(Run), n * sizeof(Run), in_file)
            total += bytes_in_file(self.active) + bytes_in_file(self.runs)
        return total

    cdef int _reserve(self) except -1:
        cdef Py_ssize_t need = self.panes.keys.capacity
        cdef size_t old
        cdef void* moved
        if need > self.capacity:
            old = self.capacity * sizeof(idx_t)
            moved = resized_region(self.active, old, old, need * sizeof(idx_t))
            if moved == NULL:
                raise MemoryError(f"WindowSlider: no memory for {need} keys")
            self.active = <idx_t*> moved
            old = self.capacity * sizeof(Run)
            moved = resized_region(self.runs, old, old, need * sizeof(Run))
            if moved == NULL:
                raise MemoryError(f"WindowSlider: no memory for {need} keys")
            self.runs = <Run*> moved
            memset(self.runs + self.capacity, 0xFF, (need - self.capacity) * sizeof(Run))
            self.capacity = need
        return 0

    cdef void _restart(self, ts_t start) noexcept:
        """Empties the window, which goes on at ``start``."""
        cdef idx_t i
        cdef int part
        cdef Run* run
        for i in range(self.active_n):
            run = self.runs + self.active[i]
            for part in range(self.stacks):
                self._pop(&run.parts[part], self.ends[part])
            if run.parts[BACK] != NONE:
                self.rows.release(run.parts[BACK])
            run.parts[BACK] = run.place = NONE
        self.active_n = 0
        self.rows.trim()
        self.start = self.end = start
        for part in range(self.stacks):
            self.ends[part] = start

    cdef int _move(self, ts_t start, ts_t end) except -1:
        self._reserve()
        if start >= self.end:
            self._restart(start)
        self._enter(max(self.end, start), end)
        self.end = end
        if start > self.start:
            self._leave(start, end)
        return 0

    cdef int _leave(self, ts_t start, ts_t end) except -1:
        """Moves the start, with all panes up to ``end`` entered."""
        cdef ts_t[STACKS + 1] begins    # of the stacks, as they will be
        cdef ts_t next_end
        cdef int built = 0, i           # how many stacks have been passed, and are built anew
        begins[0] = start
        while built < self.stacks and begins[built] > self.ends[built]:
            next_end = max(floor_to(end, self.groups[built], self.offset), begins[built])
            if built + 1 < self.stacks:
                next_end = min(self._ceil(begins[built], self.groups[built + 1]), next_end)
            built += 1
            begins[built] = next_end
        self._shed(begins, min(built + 1, self.stacks))
        self.start = start
        for i in range(built):
            self.ends[i] = begins[i + 1]
        for i in range(min(built, self.stacks - 1)):
            self._stack(i, begins[i], begins[i + 1])
        if built == self.stacks:
            self._turn_over(begins[built - 1], end)
        return 0

    cdef void _shed(self, const ts_t* begins, int stacks) noexcept:
        """Drops what the first ``stacks`` stacks hold from before their begins."""
        cdef Py_ssize_t at = self.panes.lower_bound(self.start), n, i
        cdef idx_t[BLOCK] keys, slots
        cdef idx_t slot
        cdef int part
        with nogil:
            while at < self.panes.known.count and self.panes.known.panes[at].start < begins[stacks - 1]:
                slot = self.panes.known.panes[at].newest
                while slot != NONE:
                    n = self._gather(&slot, slots, keys)
                    for i in range(n):
                        for part in range(stacks):
                            self._pop(&self.runs[keys[i]].parts[part], begins[part])
                        self._deactivate(keys[i])
                at += 1

    cdef int _turn_over(self, ts_t start, ts_t end) except -1:
        """The last stack is empty: makes one of the back."""
        cdef int last = self.stacks - 1
        cdef idx_t i
        cdef Run* run
        for i in range(self.active_n):
            run = self.runs + self.active[i]
            if run.parts[BACK] != NONE:
                self.rows.release(run.parts[BACK])
                run.parts[BACK] = NONE
        self._stack(last, start, self.ends[last])
        self._enter(self.ends[last], end)
        i = self.active_n
        while i > 0:
            i -= 1
            self._deactivate(self.active[i])
        self.rows.trim()
        return 0

    cdef int _enter(self, ts_t start, ts_t end) except -1:
        """Merges the panes in ``[start, end)`` into the keys' backs."""
        cdef Py_ssize_t at = self.panes.lower_bound(start), n, i
        cdef idx_t[BLOCK] into, slots
        cdef idx_t slot, key
        cdef Run* run
        while at < self.panes.known.count and self.panes.known.panes[at].start < end:
            slot = self.panes.known.panes[at].newest
            while slot != NONE:
                with nogil:
                    self.rows.reserve(BLOCK)
                    n = self._gather(&slot, slots, into)
                    for i in range(n):
                        key = into[i]
                        run = self.runs + key
                        if run.parts[BACK] == NONE:
                            run.parts[BACK] = self.rows.alloc(key, start)
                            self._activate(key)
                        else:
                            prefetch(self.rows.head(run.parts[BACK]))
                        into[i] = run.parts[BACK]
                self.panes.accumulators.merge(self.rows, into, self.panes.rows, slots, n)
            at += 1
        return 0

    cdef int _stack(self, int stack, ts_t start, ts_t end) except -1:
        """Builds the keys' stacks of a kind over the panes in ``[start, end)``, from the last one back."""
        cdef Py_ssize_t at = self.panes.lower_bound(end), n, i, fresh
        cdef idx_t[BLOCK] into, slots, target, source
        cdef idx_t slot, key, row
        cdef idx_t* first
        cdef ts_t begin
        while at > 0 and self.panes.known.panes[at - 1].start >= start:
            at -= 1
            begin = floor_to(self.panes.known.panes[at].start, self.groups[stack], self.offset)
            slot = self.panes.known.panes[at].newest
            while slot != NONE:
                fresh = 0
                with nogil:
                    self.rows.reserve(BLOCK)
                    n = self._gather(&slot, slots, into)
                    for i in range(n):
                        key = into[i]
                        first = &self.runs[key].parts[stack]
                        row = first[0]
                        if row == NONE or self.rows.head(row).start != begin:
                            row = self.rows.alloc(key, begin)
                            self.rows.head(row).link = first[0]
                            if first[0] != NONE:
                                target[fresh] = row
                                source[fresh] = first[0]
                                fresh += 1
                            first[0] = row
                        self._activate(key)
                        into[i] = row
                self.panes.accumulators.merge(self.rows, target, self.rows, source, fresh)
                self.panes.accumulators.merge(self.rows, into, self.panes.rows, slots, n)
        return 0

    def fire(self, int64_t start, int64_t end, RowStore fired not None):
        """Moves the window to ``[start, end)`` and adds a row of each key with a pane in it to ``fired``.

        fired: rows of the panes' layout, which get the merge of the key's panes and ``start``. Returns how many rows
        were added. Raises ValueError for a window that goes back, or for rows of another layout. Amortised O(rows in
        the panes that enter and leave + rows fired).
        """
        cdef Py_ssize_t n, at = 0, count
        cdef idx_t[BLOCK * PARTS] target, source
        cdef idx_t row
        cdef idx_t* part
        cdef int k
        if start < self.start or end < self.end or end <= start:
            raise ValueError(f"window: [{start}, {end}) does not follow [{self.start}, {self.end})")
        if fired.stride != self.rows.stride:
            raise ValueError(f"fired: rows of {fired.stride} bytes, the panes' have {self.rows.stride}")
        self._move(start, end)
        while at < self.active_n:
            n = min(BLOCK, self.active_n - at)
            count = 0
            with nogil:
                fired.reserve(n)
                for at in range(at, at + n):
                    row = fired.alloc(self.active[at], start)
                    part = self.runs[self.active[at]].parts
                    for k in range(PARTS):
                        if part[k] != NONE:
                            prefetch(self.rows.head(part[k]))
                            target[count] = row
                            source[count] = part[k]
                            count += 1
            at += 1
            self.panes.accumulators.merge(fired, target, self.rows, source, count)
        return self.active_n

    def leave(self, int64_t start):
        """Takes the panes before ``start``, a start of windows, out of the window: they may be dropped then."""
        if start > self.start:
            self._move(start, max(self.end, start))

    def add(self, const idx_t[::1] keys not None, const int64_t[::1] starts not None, list columns not None):
        """Follows elements that were added to panes in the window: element i to (keys[i], starts[i]).

        keys: ids in use. starts: pane starts, ms; what is not in the window does not matter. columns: see
        AccumulatorSet.add_rows. Raises as PaneTable.add() does. O(1) for an element at the end of the window, at
        worst O(blocks).
        """
        cdef Py_ssize_t n = keys.shape[0], at = 0, m, i
        cdef idx_t[BLOCK] slots
        check_length("starts", starts.shape[0], n)
        check_ids("keys", keys, self.panes.keys.top)
        _held = self.panes.accumulators.hold(columns, n)
        while at < n:
            m = min(BLOCK, n - at)
            with nogil:
                self._parts.reserve(m)
                for i in range(m):
                    slots[i] = self._parts.alloc(keys[at + i], starts[at + i])
            self.panes.accumulators.add(self._parts, slots, m, at)
            self.absorb(self._parts, <idx_t[:m]> slots)
            for i in range(m):
                self._parts.release(slots[i])
            at += m

    def absorb(self, RowStore others not None, const idx_t[::1] slots not None):
        """Follows rows that were merged into panes in the window: each into the pane of its own key and start.

        others: rows of the panes' layout. slots: of live rows. Raises IndexError for a slot that was never used,
        ValueError for rows of another layout.
        """
        cdef Py_ssize_t i, count = 0
        cdef idx_t[BLOCK] into, source
        cdef idx_t key
        cdef ts_t start
        cdef int part
        cdef Run* run
        if others.stride != self.rows.stride:
            raise ValueError(f"others: rows of {others.stride} bytes, the panes' have {self.rows.stride}")
        check_ids("slots", slots, others.top)
        self._reserve()
        for i in range(slots.shape[0]):
            key, start = others.head(slots[i]).key, others.head(slots[i]).start
            if not self.start <= start < self.end:
                continue
            self.rows.reserve(2)
            run = self.runs + key
            self._activate(key)
            part = self._part_of(start)
            if part != BACK:
                start = floor_to(start, self.groups[part], self.offset)
                self._thread(key, start, &run.parts[part], others, slots[i])
            else:
                if run.parts[BACK] == NONE:
                    run.parts[BACK] = self.rows.alloc(key, start)
                into[count], source[count] = run.parts[BACK], slots[i]
                count += 1
                if count == BLOCK:
                    self.panes.accumulators.merge(self.rows, into, others, source, count)
                    count = 0
        self.panes.accumulators.merge(self.rows, into, others, source, count)

    cdef int _thread(self, idx_t key, ts_t start, idx_t* first, RowStore others, idx_t slot) except -1:
        """Merges a row into all rows of a stack that hold its time, one of them new if need be."""
        cdef idx_t row = first[0], before = NONE, fresh
        while row != NONE and self.rows.head(row).start <= start:
            self.panes.accumulators.merge(self.rows, &row, others, &slot, 1)
            before, row = row, self.rows.head(row).link
        if before != NONE and self.rows.head(before).start == start:
            return 0
        fresh = self.rows.alloc(key, start)
        if before == NONE:
            first[0] = fresh
        else:
            self.rows.head(before).link = fresh
        self.rows.head(fresh).link = row
        if row != NONE:
            self.panes.accumulators.merge(self.rows, &fresh, self.rows, &row, 1)
        self.panes.accumulators.merge(self.rows, &fresh, others, &slot, 1)
        return 0

    def _check(self):
        """Raises AssertionError where an invariant does not hold. O(keys + rows)."""
        cdef idx_t key, active = 0, slot
        cdef Py_ssize_t held = 0, part
        cdef Run* run
        self.rows._check()
        bounds = [self.start, *(self.ends[part] for part in range(self.stacks)), self.end]
        assert bounds == sorted(bounds), f"the parts of the window are out of order: {bounds}"
        for key in range(self.capacity):
            run = self.runs + key
            filled = any(run.parts[part] != NONE for part in range(PARTS))
            assert filled == (run.place != NONE), f"key {key}: its place among the active ones is {run.place}"
            if not filled:
                continue
            active += 1
            assert self.active[run.place] == key, f"key {key} is not where it should be"
            held += run.parts[BACK] != NONE
            for part in range(self.stacks):
                slot = run.parts[part]
                begin, end = bounds[part], bounds[part + 1]
                while slot != NONE:
                    start = self.rows.head(slot).start
                    assert begin <= start < end, f"key {key}: a row of [{start}, ...) outside [{begin}, {end})"
                    assert self.rows.head(slot).key == key, f"key {key}: a row of another key"
                    begin = start + 1
                    held += 1
                    slot = self.rows.head(slot).link
        assert active == self.active_n, f"{active} keys are active, counted {self.active_n}"
        assert held == self.rows.live, f"{held} rows belong to keys, {self.rows.live} are held"
