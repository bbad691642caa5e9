"""GroupTable: the accumulators of every (key, pane) of a bounded table, in rows that are only appended."""

import numpy as np

from libc.stdint cimport INT64_MIN
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memmove

from fastwin.core.typedefs cimport NONE, idx_t, int64_t, ts_t, uint8_t, uint64_t
from fastwin.core.accumulators.accumulator_set cimport AccumulatorSet
from fastwin.core.accumulators.exchange import renumber_rows
from fastwin.core.keys.keyblocks cimport (
    KeyColumn, PackedKeys, are_keys, hold_keys, is_one_key, next_texts, pack_keys, record_bytes)
from fastwin.core.memory.equal cimport are_one
from fastwin.core.memory.hashindex cimport seed_index
from fastwin.core.memory.pages cimport ask_large_pages
from fastwin.core.memory.tagindex cimport (
    CACHED, empty_tags, first_slots, move_tags, no_entry, slot_in)
from fastwin.core.panes.recentgroups cimport (
    find_recent, forget_groups, free_groups, keep_group, may_be_recent, note_missed, number_panes, pane_in,
    recent_bytes)
from fastwin.core.panes.slices cimport Slicer, slice_of, slicer_over, slices_of
from fastwin.core.rows.appended cimport clear_rows, close_gaps, new_slots
from fastwin.core.rows.rowstore cimport HEAD_CELLS
from fastwin.core.timemath cimport MAX_TIME, TIME_BITS, check_duration
from fastwin.core.wide cimport int_bounds

cdef enum:
    FIRST_PLACES = 2048         # of the index
    ROOMY = 32768               # places of an index that may be nearly empty
    STEADY = 16                 # elements for each that is the first of its group, or nearly


def head_cells(texts):
    """Returns how many cells a row of a GroupTable begins with, for AccumulatorSet. texts: see GroupTable."""
    words = sum(not text for text in texts) + any(texts)
    return HEAD_CELLS + max(words - 1, 0)


cdef class GroupTable:
    """Rows of accumulators by (key, pane start), for elements that are all at hand.

    No row goes as long as others of its time are needed: ``drop_before`` forgets whole panes. So there are no ids, no
    free rows, and one search finds the row of a key in a pane.

    accumulators: what each row carries; its head has ``head_cells(texts)`` cells. texts: bool a key column, whether it
    is text or int64; null there is none.
    """

    def __cinit__(self, AccumulatorSet accumulators not None, texts):
        self.texts = tuple(map(bool, texts))
        if accumulators.head_cells != head_cells(self.texts):
            raise ValueError(
                f"accumulators: {head_cells(self.texts)} cells of a head are needed, got {accumulators.head_cells}")
        self.accumulators = accumulators
        self.rows = accumulators.new_rows()
        self.width, self.numbers = len(self.texts), self.texts.count(False)
        self.ascending, self.dropped = True, INT64_MIN
        self.columns = <KeyColumn*> calloc(max(self.width, 1), sizeof(KeyColumn))
        if self.columns == NULL:
            raise MemoryError("GroupTable: no memory for its columns")
        seed_index(&self.seed)

    def __dealloc__(self):
        free(self.columns)
        free(self.starts)
        free(self.arena)
        free(self.index.places)
        free_groups(&self.recent)

    def __len__(self):
        return self.rows.top

    @property
    def nbytes(self):
        """Bytes allocated."""
        cdef Py_ssize_t found = 8 * <Py_ssize_t> (self.capacity + self.index.size) + recent_bytes(&self.recent)
        return self.rows.nbytes + found + self.room

    def reserve_rows(self, Py_ssize_t n):
        """Makes room for n new rows, so that the table need not grow again and again until then. O(rows)."""
        self.reserve(n, 0)

    cdef int reserve(self, Py_ssize_t n, int64_t text) except -1 nogil:
        """Makes room for n new rows, and for as many bytes of text in their records."""
        cdef Py_ssize_t need = self.rows.top + n, size = max(self.index.size, <Py_ssize_t> FIRST_PLACES)
        cdef void* moved
        if need > self.rows.capacity:
            self.rows.reserve(n)
        if self.capacity < self.rows.capacity:
            moved = realloc(self.starts, self.rows.capacity * sizeof(ts_t))
            if moved == NULL:
                with gil:
                    raise MemoryError(f"GroupTable: no memory for {self.rows.capacity} rows")
            self.starts = <ts_t*> moved
            self.capacity = self.rows.capacity
        # Collisions cost more than memory, as long as the index stays in the cache.
        while size < max(2 * need, min(16 * need, <Py_ssize_t> ROOMY)):
            size *= 2
        if size != self.index.size and not move_tags(&self.index, size, NULL):
            with gil:
                raise MemoryError(f"GroupTable: no memory for an index of {size}")
        if text > self.room - self.used:
            moved = realloc(self.arena, 2 * (self.used + text))
            if moved == NULL:
                with gil:
                    raise MemoryError(f"GroupTable: no memory for {self.used + text} bytes of text")
            self.arena = <uint8_t*> moved
            self.room = 2 * (self.used + text)
            ask_large_pages(self.arena, self.room)
        return 0

    cdef void find_block(self, Py_ssize_t at, const idx_t* picked, Py_ssize_t n, const ts_t* starts,
                         const uint64_t* hashes, idx_t* slots) noexcept nogil:
        """Fills the slots of up to BLOCK rows, of the keys ``at + picked[i]``; reserve() has made room. starts: of
        their panes; NULL: a key has one row, and a new one starts at NO_TIME."""
        cdef Py_ssize_t i, stride = self.rows.stride
        cdef char* data = self.rows.data
        cdef const char* row
        cdef const int64_t* values = self.columns[0].values if self.width == 1 else NULL
        cdef bint guess = values == NULL and n > 1      # by hash and pane; keys are compared afterwards, all at once
        cdef uint8_t[BLOCK] others
        first_slots(&self.index, hashes, n, data if self.rows.top * stride > CACHED else NULL, stride,
                    self.starts if starts == NULL else NULL, slots)
        for i in range(n):
            if slots[i] != NONE:
                row = data + slots[i] * stride
                if (starts == NULL or (<const ts_t*> row)[1] == starts[i]) and (
                        guess if values == NULL else (<const int64_t*> row)[2] == values[at + picked[i]]):
                    continue
            slots[i] = self.find_one(at + picked[i], starts + i if starts != NULL else NULL, hashes[i], guess)
        if guess and not are_keys(self.columns, self.width, at, picked, n, data + WORD, stride, slots, self.arena,
                                  others):
            for i in range(n):
                if others[i]:       # another key of the same hash, as rare as one in 2**32
                    slots[i] = self.find_one(at + picked[i], starts + i if starts != NULL else NULL, hashes[i], False)

    cdef int find(self, Py_ssize_t at, Py_ssize_t n, bint one, const ts_t* starts, const idx_t* picked,
                  idx_t* slots) except -1 nogil:
        """Fills the slots of n keys. one: that all are the same. picked: 0, 1, 2 and so on."""
        cdef uint64_t[BLOCK] hashes
        cdef Py_ssize_t i, few = 1 if one and are_one(starts, n) else n
        self.reserve(n, self.text_bytes(at, n))
        self.hash_block(at, few, starts, hashes)
        self.find_block(at, picked, few, starts, hashes, slots)
        for i in range(few, n):
            slots[i] = slots[0]
        return 0

    cdef Py_ssize_t find_lately(self, Py_ssize_t at, Py_ssize_t n, Slicer* slicer, const ts_t* times, bint inside,
                                idx_t* slots) except -1 nogil:
        """Fills the slots of n keys, most of them from those that were found lately, if that pays; returns whether it
        did. inside: that all times are in the slice found last."""
        cdef PackedKeys keys
        cdef idx_t[BLOCK] panes, missing, found
        cdef ts_t[BLOCK] starts
        cdef uint64_t[BLOCK] hashes
        cdef idx_t pane = NONE
        cdef Py_ssize_t i, count
        if not may_be_recent(&self.recent, slicer, times[0], self.numbers != 1 or self.width != 1):
            return False
        if inside:
            pane = pane_in(&self.recent, slicer.start)
        if (pane == NONE) if inside else not number_panes(&self.recent, times, n, panes):
            return False
        if not pack_keys(self.columns, self.width, at, n, &keys):
            note_missed(&self.recent, n, n)
            return False
        count = find_recent(&self.recent, &keys, NULL if inside else panes, pane, n, slots, missing)
        if not inside:
            slice_of(slicer, times[n - 1])
        note_missed(&self.recent, count, n)
        self.accumulators.expect(STEADY * count < n)
        if count:
            self.reserve(count, self.text_bytes(at, n))
            for i in range(count):
                starts[i] = self.recent.base + (pane if inside else panes[missing[i]]) * slicer.slide
                self.hash_block(at + missing[i], 1, starts + i, hashes + i)
            self.find_block(at, missing, count, starts, hashes, found)
            for i in range(count):
                slots[missing[i]] = found[i]
                keep_group(&self.recent, &keys, missing[i], pane if inside else panes[missing[i]], found[i])
        return True

    def feed(self, list keys not None, const int64_t[::1] times not None, int64_t slide, int64_t offset,
             list columns not None, const int64_t[::1] bounds=None, tuple within=None):
        """Adds element i to the row of its key and of the pane of times[i]; returns the first and the last of times.

        keys: ``(values, None)`` or ``(offsets, data, None)`` a column, as KeyTable takes them. times: ms, from
        the first to the last of ``within``, by default within +-2**61. slide, offset: panes start at offset + k *
        slide. columns: see AccumulatorSet.add_rows. bounds: of panes that are on no grid, see PaneTable.feed. Returns
        None where there are no elements. Raises ValueError for what does not suit; elements before a time that is out
        of bounds may have been added then. O(n) expected.
        """
        cdef Py_ssize_t n = times.shape[0], at = 0, m
        cdef idx_t[BLOCK] picked, slots
        cdef idx_t i, slot, last = NONE     # the one that all slots are
        cdef ts_t[BLOCK] starts
        cdef ts_t least = -((<ts_t> 1) << TIME_BITS), most = (<ts_t> 1) << TIME_BITS
        cdef ts_t low, high, lowest = MAX_TIME, highest = INT64_MIN
        cdef Slicer slicer
        cdef bint one, divided, inside, lately
        check_duration("slide", slide, 1)
        if within is not None:
            least, most = max(least, within[0]), min(most, within[1])
        if not -slide < offset < slide:
            raise ValueError(f"offset: must be below slide={slide}, got {offset}")
        _keys = hold_keys(self.columns, self.texts, keys, n)
        _held = self.accumulators.hold(columns, n)
        slicer = slicer_over(times, slide, 0, offset, bounds)
        divided = not self.accumulators.holds_text()
        lately = 1 <= self.width <= 2
        for i in range(BLOCK):
            picked[i] = i
        with nogil:
            while at < n:
                m = min(BLOCK, n - at)
                low = high = times[at]
                int_bounds(&times[at], m, &low, &high)
                if low < least or high > most:
                    break
                lowest, highest = min(lowest, low), max(highest, high)
                inside = slicer.start <= low and high < slicer.end
                one = is_one_key(self.columns, self.width, at, m)
                if one and divided and not inside and self.feed_key(at, m, &slicer, &times[at], low, high):
                    at += m
                    continue
                if one and inside:
                    slot = self.slot_of(at, slicer.start)
                    if slot != last:
                        for i in range(BLOCK):
                            slots[i] = slot
                        last = slot
                    self.accumulators.add(self.rows, slots, m, at)
                    at += m
                    continue
                last = NONE
                if not (lately and self.find_lately(at, m, &slicer, &times[at], inside, slots)):
                    self.accumulators.expect(False)
                    slices_of(&slicer, &times[at], m, starts)
                    self.find(at, m, one, starts, picked, slots)
                self.accumulators.add(self.rows, slots, m, at)
                at += m
        if at < n:
            raise ValueError(f"times: must be from {least} to {most} ms, got {low if low < least else high}")
        return (lowest, highest) if n else None

    def ensure(self, list keys not None, const int64_t[::1] starts not None):
        """Returns the slots of (key i, pane starts[i]), new ones where there was none: int32[n]. keys: as in feed()."""
        cdef Py_ssize_t n = starts.shape[0], at = 0, m, i
        cdef idx_t[BLOCK] picked
        cdef ts_t[BLOCK] some
        _keys = hold_keys(self.columns, self.texts, keys, n)
        out = np.empty(n, dtype=np.int32)
        cdef idx_t[::1] slots = out
        for i in range(BLOCK):
            picked[i] = <idx_t> i
        with nogil:
            while at < n:
                m = min(BLOCK, n - at)
                for i in range(m):
                    some[i] = starts[at + i]
                self.find(at, m, False, some, picked, &slots[at])
                at += m
        return out

    def absorb(self, GroupTable other not None, ts_t first=0, ts_t last=0):
        """Merges the rows of another table with the same accumulators, whose elements came later, but for those of its
        panes that start from ``first`` on and before ``last``. O(its rows)."""
        slots = np.arange(other.rows.top, dtype=np.int32)
        starts = other.rows.starts(slots)
        if first < last:
            slots = slots[(starts < first) | (starts >= last)]
            starts = other.rows.starts(slots)
        here = self.ensure(other.keys(slots), starts)
        renumber_rows(self.accumulators, other.rows, slots)
        self.accumulators.merge_rows(self.rows, here, other.rows, slots)

    def slots_before(self, ts_t start, ts_t since=INT64_MIN):
        """Returns the rows of the panes from ``since`` on and before ``start`` that are not dropped, in order of slots,
        and when their panes start: ``(slots, starts)``, int32[n] and int64[n]. O(rows)."""
        cdef ts_t first = max(self.dropped, since)
        cdef idx_t slot, n = 0
        with nogil:
            for slot in range(self.rows.top):
                n += first <= self.starts[slot] < start
        out, when = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int64)
        cdef idx_t[::1] slots = out
        cdef int64_t[::1] starts = when
        n = 0
        with nogil:
            for slot in range(self.rows.top):
                if first <= self.starts[slot] < start:
                    slots[n], starts[n] = slot, self.starts[slot]
                    n += 1
        return out, when

    def keys(self, const idx_t[::1] slots not None):
        """Returns the key columns of rows, as feed() takes them. Raises IndexError for a slot that is not in use."""
        return self.keys_in(list(self.rows.gather(slots, self.cells_from(WORD // 8))))

    cdef object cells_from(self, int first):
        """Returns the cells of a row's head from ``first`` to the last word of its key: int32[n]."""
        return np.arange(first, WORD // 8 + self.numbers + (self.numbers < self.width), dtype=np.int32)

    cdef list keys_in(self, list words):
        """Returns the key columns of rows whose words are given, int64[n] each."""
        numbers = iter(words)
        keys = [None if text else (next(numbers), None) for text in self.texts]
        for c in range(self.width):
            if self.texts[c]:
                keys[c] = next_texts(self.arena, words[self.numbers])
        return keys

    def clear(self):
        """Forgets all panes, and keeps the memory. O(size of the index)."""
        clear_rows(self.rows)
        empty_tags(&self.index)
        forget_groups(&self.recent)
        self.used, self.ascending = 0, True

    def drop_before(self, ts_t start):
        """Forgets the panes before ``start``. O(rows), and amortised O(1) for each row that goes."""
        cdef idx_t slot, left = 0
        cdef idx_t* moved
        self.dropped = max(self.dropped, start)
        with nogil:
            for slot in range(self.rows.top):
                left += self.starts[slot] >= self.dropped
        if 2 * left > self.rows.top:
            return
        if left == 0:
            self.clear()
            return
        moved = <idx_t*> malloc(self.rows.top * sizeof(idx_t))
        if moved == NULL:
            raise MemoryError(f"GroupTable: no memory to close the gaps of {self.rows.top} rows")
        try:
            with nogil:
                self.close_up(moved)
        finally:
            free(moved)

    cdef int close_up(self, idx_t* moved) except -1 nogil:
        """Moves the rows that are left, and their texts, to where those that are gone were."""
        cdef Py_ssize_t word = WORD // 8 + self.numbers
        cdef idx_t slot
        cdef int64_t size, used = 0
        cdef int64_t* at
        forget_groups(&self.recent)
        new_slots(self.rows, self.starts, self.dropped, moved)
        for slot in range(self.rows.top):
            if moved[slot] != NONE:
                self.starts[moved[slot]] = self.starts[slot]
        if not move_tags(&self.index, self.index.size, moved):
            with gil:
                raise MemoryError(f"GroupTable: no memory for an index of {self.index.size}")
        close_gaps(self.rows, moved)
        self.ascending = True
        for slot in range(self.rows.top):
            self.ascending = self.ascending and (slot == 0 or self.starts[slot - 1] <= self.starts[slot])
            if self.numbers < self.width:
                at = <int64_t*> self.rows.head(slot) + word
                size = record_bytes(self.width - self.numbers, self.arena + at[0])
                memmove(self.arena + used, self.arena + at[0], size)
                at[0] = used
                used += size
        self.used = used
        return 0

    def _check(self):
        """Raises AssertionError where an invariant does not hold. O(rows)."""
        cdef idx_t slot
        self.rows._check()
        assert len(self.rows) == self.rows.top <= self.capacity or not self.rows.top, "rows are missing"
        entries = [slot_in(self.index.places[i]) for i in range(self.index.size) if self.index.places[i] != no_entry()]
        assert sorted(entries) == list(range(self.rows.top)), "the index does not hold each row once"
        starts = [self.starts[slot] for slot in range(self.rows.top)]
        slots = np.arange(self.rows.top, dtype=np.int32)
        assert self.rows.starts(slots).tolist() == starts, "starts differ from those in the rows"
        assert not self.ascending or starts == sorted(starts), "rows are not in order"
        found = self.ensure(self.keys(slots), np.array(starts, np.int64))
        assert found.tolist() == slots.tolist() and self.rows.top == len(starts), "rows are not found"
