"""RowStore: fixed-width rows with a free list and dirty marks, one allocation for all of them."""

import numpy as np

from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memset

from fastwin.core.typedefs cimport NONE, idx_t, int64_t, ts_t, uint8_t, uint64_t
from fastwin.core.memory.bits cimport clear_bit, count_bits, has_bit, list_bits
from fastwin.core.memory.owned cimport allocated_in, bytes_in, copy_blocks, drop_blocks, put_block, size_in
from fastwin.core.memory.bounds cimport check_ids, check_length, check_offsets
from fastwin.core.memory.lines cimport place_lines, resize_lines
from fastwin.core.memory.pages cimport CACHE_LINE, prefetch
from fastwin.core.memory.regions cimport bytes_in_file, free_region, is_foreign

cdef enum:
    FIRST_CAPACITY = 64
    KEPT_CAPACITY = 65536       # an empty store keeps no more than this
    MAX_ROWS = 2147483584       # below 2**31, a multiple of 64
    AT_ONCE = 512               # rows that stay in the cache from one cell to the next


cdef class RowStore:
    """Rows of ``cells`` 8-byte cells, addressed by slot.

    cells: int64[cells], what a fresh row holds; the first three cells are the head.
    owned: which cells hold a pointer to a block of bytes of the row, see memory/owned.pxd; a fresh row has none.

    A slot is stable while its row lives. Raises ValueError if the head does not fit, IndexError for no such cell.
    """

    def __cinit__(self, cells, owned=()):
        cdef const int64_t[::1] given = np.ascontiguousarray(cells, dtype=np.int64)
        if given.shape[0] < HEAD_CELLS:
            raise ValueError(f"cells: a row has at least {HEAD_CELLS}, got {given.shape[0]}")
        self.stride = given.shape[0] * 8
        self.blank = <char*> malloc(self.stride)
        if self.blank == NULL:
            raise MemoryError(f"RowStore: no memory for a row of {self.stride} bytes")
        memcpy(self.blank, &given[0], self.stride)
        self.free = NONE
        self.owned = <Py_ssize_t*> malloc((len(owned) + 1) * sizeof(Py_ssize_t))
        if self.owned == NULL:
            raise MemoryError("RowStore: no memory for its layout")
        for cell in owned:
            if not HEAD_CELLS <= cell < self.stride // 8:
                raise IndexError(f"owned: cell {cell} is not behind the head of a row of {self.stride // 8}")
            (<int64_t*> self.blank)[cell] = 0
            self.owned[self.owned_n] = 8 * <Py_ssize_t> cell
            self.owned_n += 1

    def __dealloc__(self):
        cdef idx_t slot
        if self.owned_n and not is_foreign(self.block):
            for slot in range(self.top):
                if self.is_live(slot):
                    drop_blocks(<char*> self.head(slot), self.owned, self.owned_n)
        free(self.owned)
        free_region(self.block)
        free(self.dirty)
        free(self.blank)

    def __len__(self):
        return self.live

    @property
    def nbytes(self):
        """Bytes allocated. O(rows) where rows own blocks."""
        cdef Py_ssize_t total = self.capacity * self.stride + self.capacity // 8, i, slot
        for slot in range(self.top if self.owned_n else 0):
            for i in range(self.owned_n if self.is_live(slot) else 0):
                total += allocated_in(<char*> self.head(slot) + self.owned[i])
        return total

    def place(self, bint in_file):
        """Moves the rows, not what they own, to a file or to memory; returns their bytes in a file. O(bytes)."""
        with nogil:
            place_lines(&self.block, &self.data, self.top * self.stride, self.capacity * self.stride, in_file)
        return bytes_in_file(self.block)

    cdef int _resize(self, Py_ssize_t capacity) except -1 nogil:
        cdef void* moved
        if capacity > MAX_ROWS:
            with gil:
                raise MemoryError(f"RowStore: at most {MAX_ROWS} rows, asked for {capacity}")
        moved = realloc(self.dirty, capacity // 8)
        if moved == NULL:
            with gil:
                raise MemoryError(f"RowStore: no memory for the marks of {capacity} rows")
        self.dirty = <uint64_t*> moved
        # Rows of 64 bytes shall take one cache line, not parts of two.
        if not resize_lines(&self.block, &self.data, self.top * self.stride, self.capacity * self.stride,
                            capacity * self.stride):
            with gil:
                raise MemoryError(f"RowStore: no memory for {capacity} rows of {self.stride} bytes")
        memset(<char*> self.dirty + self.capacity // 8, 0, (capacity - self.capacity) // 8)
        self.capacity = <idx_t> capacity
        return 0

    cdef int reserve(self, Py_ssize_t extra) except -1 nogil:
        """Makes room so that the next ``extra`` calls of alloc() succeed."""
        cdef Py_ssize_t need = self.live + extra, capacity = self.capacity
        if need <= capacity:
            return 0
        capacity = FIRST_CAPACITY if capacity == 0 else capacity
        while capacity < need:
            capacity *= 2
        return self._resize(min(capacity, MAX_ROWS) if need <= MAX_ROWS else need)

    cdef idx_t alloc(self, idx_t key, ts_t start) noexcept nogil:
        """Returns the slot of a fresh row, marked dirty; reserve() has made room for it."""
        cdef idx_t slot = self.free
        cdef Head* head
        if slot != NONE:
            head = self.head(slot)
            self.free = head.link
        else:
            slot = self.top
            self.top += 1
            head = self.head(slot)
        memcpy(head, self.blank, self.stride)
        head.bits |= live_mask()
        head.start = start
        head.key = key
        head.link = NONE
        self.live += 1
        self.mark(slot)
        return slot

    cdef int append(self, Py_ssize_t n) except -1 nogil:
        """Adds rows, marked dirty, behind all others, to a store that has released none. What they hold is blank."""
        cdef idx_t slot
        self.reserve(n)
        for slot in range(self.top, self.top + <idx_t> n):
            memcpy(self.head(slot), self.blank, self.stride)
            self.head(slot).bits |= live_mask()
            self.head(slot).link = NONE
            self.mark(slot)
        self.top += <idx_t> n
        self.live += <idx_t> n
        return 0

    cdef void release(self, idx_t slot) noexcept nogil:
        """Frees a live row and its blocks; its cells stay readable until trim() or alloc()."""
        cdef Head* head = self.head(slot)
        if self.owned_n:
            drop_blocks(<char*> self.head(slot), self.owned, self.owned_n)
        head.bits = 0
        head.link = self.free
        self.free = slot
        clear_bit(self.dirty, slot)
        self.live -= 1
        self.released += 1
        if self.live == 0:              # start over from the front
            self.top = self.released = 0
            self.free = NONE

    cdef void reset(self, idx_t slot, Py_ssize_t first) noexcept nogil:
        """Gives a live row what a fresh one holds, from cell ``first`` on, which lies behind the head, and no bits."""
        drop_blocks(<char*> self.head(slot), self.owned, self.owned_n)
        self.head(slot).bits = live_mask()
        memcpy(<char*> self.head(slot) + 8 * first, self.blank + 8 * first, self.stride - 8 * first)

    cdef int copy(self, idx_t slot, RowStore store, idx_t from_slot, Py_ssize_t first) except -1 nogil:
        """Overwrites a row's bits, and its cells from ``first`` on, with those of a row of a store of the same layout.

        first: behind the head, at most the first cell that owns a block. O(bytes).
        """
        cdef char* row = <char*> self.head(slot)
        cdef const char* other = <const char*> store.head(from_slot)
        drop_blocks(<char*> self.head(slot), self.owned, self.owned_n)
        self.head(slot).bits = store.head(from_slot).bits
        memcpy(row + 8 * first, other + 8 * first, self.stride - 8 * first)
        if not copy_blocks(row, other, self.owned, self.owned_n):
            with gil:
                raise MemoryError("RowStore: no memory for what a row owns")
        return 0

    cdef void trim(self) noexcept nogil:
        """Gives memory back if no row is left; to be called after the last release() of many. O(1) for each of them."""
        if self.live == 0 and self.capacity > KEPT_CAPACITY:
            free_region(self.block)
            free(self.dirty)
            self.block = self.data = NULL
            self.dirty = NULL
            self.capacity = 0
        elif self.released > self.top // 4 and not bytes_in_file(self.block):   # there it would touch all rows
            self._order_free()

    cdef void _order_free(self) noexcept nogil:
        """Links free rows by their slots, so that new rows lie side by side and not where the last ones happened to."""
        cdef idx_t slot
        self.released = 0
        self.free = NONE
        for slot in range(self.top - 1, -1, -1):
            if not self.is_live(slot):
                self.head(slot).link = self.free
                self.free = slot

    def fresh(self, const idx_t[::1] keys not None, const int64_t[::1] starts not None):
        """Makes a row for each key id and start, ms; returns their slots: int32[n].

        Raises ValueError for unequal lengths.
        """
        cdef Py_ssize_t i, n = keys.shape[0]
        check_length("starts", starts.shape[0], n)
        out = np.empty(n, dtype=np.int32)
        cdef idx_t[::1] view = out
        with nogil:
            self.reserve(n)
            for i in range(n):
                view[i] = self.alloc(keys[i], starts[i])
        return out

    def slots(self):
        """Returns the slots in use, ascending: int32[len]. O(rows ever used)."""
        out = np.empty(self.live, dtype=np.int32)
        cdef idx_t[::1] view = out
        cdef idx_t slot, n = 0
        with nogil:
            for slot in range(self.top):
                if self.is_live(slot):
                    view[n] = slot
                    n += 1
        return out

    def dirty_slots(self):
        """Returns the slots of live rows changed since clear_dirty(), ascending: int32[n]. O(rows / 64 + n)."""
        out = np.empty(count_bits(self.dirty, self.top), dtype=np.int32)
        cdef idx_t[::1] view = out
        if view.shape[0]:
            list_bits(self.dirty, self.top, &view[0])
        return out

    def clear_dirty(self):
        """Forgets all dirty marks."""
        if self.capacity:
            memset(self.dirty, 0, self.capacity // 8)

    def live_marks(self, const idx_t[::1] slots not None):
        """Tells which slots hold a row: bool[n]; those that no row has ever used do not."""
        out = np.empty(slots.shape[0], dtype=np.uint8)
        cdef uint8_t[::1] view = out
        cdef Py_ssize_t i
        with nogil:
            for i in range(slots.shape[0]):
                view[i] = 0 <= slots[i] < self.top and self.is_live(slots[i])
        return out.view(np.bool_)

    def keys(self, const idx_t[::1] slots not None):
        """Returns the key ids of the rows: int32[n]. Raises IndexError for a slot that was never used."""
        check_ids("slots", slots, self.top)
        out = np.empty(slots.shape[0], dtype=np.int32)
        cdef idx_t[::1] view = out
        cdef Py_ssize_t i
        with nogil:
            for i in range(slots.shape[0]):
                view[i] = self.head(slots[i]).key
        return out

    def starts(self, const idx_t[::1] slots not None):
        """Returns the start times of the rows, in ms: int64[n]. Raises IndexError as keys() does."""
        return self.cells(slots, 1)

    def cells(self, const idx_t[::1] slots not None, Py_ssize_t cell):
        """Returns one cell of each row, as int64[n]. Raises IndexError for a slot or cell that is not there."""
        if not 0 <= cell < self.stride // 8:
            raise IndexError(f"cell: must be at least 0 and below {self.stride // 8}, got {cell}")
        return self.gather(slots, np.array([cell], dtype=np.int32))[0]

    def gather(self, const idx_t[::1] slots not None, const idx_t[::1] cells not None):
        """Returns cells of each row: int64[cells, n]. Raises IndexError for a slot or cell that is not there."""
        cdef Py_ssize_t n = slots.shape[0], at = 0, stop, i, k
        check_ids("slots", slots, self.top)
        check_ids("cells", cells, <idx_t> (self.stride // 8))
        out = np.empty((cells.shape[0], n), dtype=np.int64)
        cdef int64_t[:, ::1] view = out
        with nogil:
            while at < n:
                stop = min(n, at + AT_ONCE)
                for i in range(at, stop):
                    prefetch(self.head(slots[i]))
                for k in range(cells.shape[0]):
                    for i in range(at, stop):
                        view[k, i] = (<int64_t*> self.head(slots[i]))[cells[k]]
                at = stop
        return out

    def set_cells(self, const idx_t[::1] slots not None, const idx_t[::1] cells not None, list columns not None):
        """Overwrites cells behind the head of each row, in one pass over the rows: the way back for what gather() gave.

        columns: int64[n] for each cell. Raises IndexError for a slot or cell that is not there, ValueError for another
        number of columns or values.
        """
        cdef Py_ssize_t n = slots.shape[0], at = 0, stop, i, k
        cdef const int64_t[::1] values
        check_ids("slots", slots, self.top)
        check_length("columns", len(columns), cells.shape[0])
        for k in range(cells.shape[0]):
            if not HEAD_CELLS <= cells[k] < self.stride // 8:
                raise IndexError(f"cell: must be at least {HEAD_CELLS}, below {self.stride // 8}, got {cells[k]}")
            values = columns[k]
            check_length("values", values.shape[0], n)
        while at < n:
            stop = min(n, at + AT_ONCE)
            for k in range(cells.shape[0]):
                values = columns[k]
                with nogil:
                    for i in range(at, stop):
                        (<int64_t*> self.head(slots[i]))[cells[k]] = values[i]
            at = stop

    @property
    def owned_cells(self):
        """The cells that own blocks: a tuple of int."""
        cdef Py_ssize_t i
        return tuple([self.owned[i] // 8 for i in range(self.owned_n)])

    def _check_owned(self, Py_ssize_t cell):
        if cell not in self.owned_cells:
            raise IndexError(f"cell: {cell} owns no blocks, those that do are {self.owned_cells}")

    def blobs(self, const idx_t[::1] slots not None, Py_ssize_t cell):
        """Returns what an owned cell of each row holds: ``(offsets, data)``, int64[n + 1] and uint8[bytes].

        Value i is ``data[offsets[i]:offsets[i + 1]]``. Raises IndexError for a slot never used or a cell not owned.
        """
        cdef Py_ssize_t i, n = slots.shape[0]
        cdef int64_t total = 0
        cdef const char* at
        check_ids("slots", slots, self.top)
        self._check_owned(cell)
        out = np.empty(n + 1, dtype=np.int64)
        cdef int64_t[::1] ends = out
        for i in range(n):
            ends[i] = total
            total += size_in(<char*> self.head(slots[i]) + 8 * cell)
        ends[n] = total
        data = np.empty(total, dtype=np.uint8)
        cdef uint8_t[::1] view = data
        for i in range(n):
            at = <char*> self.head(slots[i]) + 8 * cell
            if size_in(at):
                memcpy(&view[ends[i]], bytes_in(at), size_in(at))
        return out, data

    def set_blobs(self, const idx_t[::1] slots not None, Py_ssize_t cell, const int64_t[::1] offsets not None,
                  const uint8_t[::1] data not None):
        """Overwrites what an owned cell of each row holds: the way back for what blobs() gave.

        Raises IndexError for a slot that holds no row or a cell not owned, ValueError for offsets of another length
        or outside the data.
        """
        cdef Py_ssize_t i
        cdef const uint8_t* start = &data[0] if data.shape[0] else NULL
        check_offsets(offsets, data.shape[0])
        check_length("offsets", offsets.shape[0] - 1, slots.shape[0])
        self._check_owned(cell)
        check_ids("slots", slots, self.top)
        for i in range(slots.shape[0]):
            if not self.is_live(slots[i]):
                raise IndexError(f"slots: {slots[i]} holds no row")
            if not put_block(<char*> self.head(slots[i]) + 8 * cell, start + offsets[i], offsets[i + 1] - offsets[i]):
                raise MemoryError(f"RowStore: no memory for {offsets[i + 1] - offsets[i]} bytes of a row")

    def bits(self, const idx_t[::1] slots not None):
        """Returns the accumulators' bits of each row, without the live bit: int64[n]."""
        return self.cells(slots, 0) & np.int64(2**63 - 1)

    def set_bits(self, const idx_t[::1] slots not None, const int64_t[::1] values not None):
        """Overwrites the accumulators' bits of each row; the rows stay live.

        Raises IndexError for a slot that holds no row, ValueError for another number of values.
        """
        cdef Py_ssize_t i
        check_ids("slots", slots, self.top)
        check_length("values", values.shape[0], slots.shape[0])
        for i in range(slots.shape[0]):
            if not self.is_live(slots[i]):
                raise IndexError(f"slots: {slots[i]} holds no row")
            self.head(slots[i]).bits = <uint64_t> values[i] | live_mask()

    def _check(self):
        """Raises AssertionError where an invariant does not hold. O(rows)."""
        cdef idx_t slot, live = 0, free_rows = 0
        for slot in range(self.top):
            if self.is_live(slot):
                live += 1
            else:
                assert not has_bit(self.dirty, slot), f"free row {slot} is marked dirty"
        slot = self.free
        while slot != NONE:
            assert 0 <= slot < self.top, f"free list leads to {slot}"
            assert not self.head(slot).bits, f"row {slot} is free and live"
            free_rows += 1
            assert free_rows <= self.top, "the free list runs in a circle"
            slot = self.head(slot).link
        assert live == self.live, f"{live} rows are live, counted {self.live}"
        assert live + free_rows == self.top <= self.capacity, f"{live} live, {free_rows} free, top {self.top}"
        assert <size_t> self.data % CACHE_LINE == 0, "rows do not begin at a cache line"
