"""Placing: from an element's window to its row; merging windows, and letting go of rows that are over."""

from fastwin._typedefs cimport NONE, idx_t, ts_t
from fastwin.core.windowtable cimport (
    CLEANED, HAS_CONTENTS, IN_SET, ON_TIME, SAVED, KeyWindows, Window, last_ms,
)
from fastwin.errors import SpecError
from fastwin.operators import generalparts
from fastwin.operators.assigning cimport AssignerNode
from fastwin.operators.contents cimport Contents
from fastwin.operators.keeper cimport Keeper
from fastwin.operators.triggernodes cimport TriggerNode

cdef extern from *:
    bint add_overflows "__builtin_add_overflow"(ts_t a, ts_t b, ts_t* total) noexcept


cdef class Placing:
    """Knows which rows there are for the windows of one operator, and when a row is over."""

    def __init__(self, Keeper keeper not None, AssignerNode assigner not None, TriggerNode trigger not None,
                 Contents contents not None, bint pane_info):
        self.keeper = keeper
        self.table = keeper.table
        self.assigner = assigner
        self.trigger = trigger
        self.contents = contents
        self.pane_info = pane_info

    cdef idx_t place(self, idx_t key, ts_t start, ts_t end) except? -1:
        """Returns the row of an element's window, merged where windows merge; NONE if the window is late."""
        cdef Window window
        cdef idx_t slot
        if self.assigner.merging:
            slot = self._add_merging(key, start, end)
            if self.keeper.passed(self.table.at(slot)):
                self.retire(slot)
                self.let_go(slot)
                return NONE
            return slot
        if self.keeper.event_time:
            window.head.start = start
            window.end = end
            if self.keeper.passed(&window):
                return NONE
        slot = self.table.ensure(key, start, end)
        self.table.at(slot).flags &= ~<unsigned int> CLEANED
        return slot

    cdef idx_t _add_merging(self, idx_t key, ts_t start, ts_t end) except? -1:
        """Adds a window to its key's; returns the row of what it has become."""
        cdef KeyWindows* windows = self.table.key_windows(key)
        cdef Py_ssize_t at, n = 0
        cdef idx_t slot
        cdef ts_t first = start, last = end
        if self.assigner.merge_windows is not None:
            return self._add_by_user(key, start, end)
        at = self.table.first_touching(key, start)
        while at + n < windows.n and self.table.at(windows.slots[at + n]).head.start <= end:
            slot = windows.slots[at + n]
            first = min(first, self.table.at(slot).head.start)
            last = max(last, self.table.at(slot).end)
            n += 1
        if n == 0:
            return self._open(key, start, end)
        if n == 1 and self.table.at(slot).head.start == first and self.table.at(slot).end == last:
            self.table.rows.mark(slot)
            return slot
        self.keeper.hold_merged(windows.slots + at, n)
        return self._merge(key, first, last)

    cdef idx_t _open(self, idx_t key, ts_t start, ts_t end) except? -1:
        cdef idx_t slot = self.table.ensure(key, start, end)
        if not self.table.at(slot).flags & IN_SET:
            self.table.at(slot).flags &= ~<unsigned int> CLEANED
            self.table.set_add(slot)
        return slot

    def _add_by_user(self, idx_t key, ts_t start, ts_t end):
        """The same, where the assigner has a ``merge_windows`` of its own."""
        cdef KeyWindows* windows = self.table.key_windows(key)
        cdef Py_ssize_t i
        cdef idx_t slot
        new = self.keeper.window_object(start, end)
        there = [self.keeper.window_of(windows.slots[i]) for i in range(windows.n)]
        where = f"key {self.keeper.key_value(key)!r}, {new}"
        result, joined, merges = new, False, generalparts.ask_merges(self.keeper, self.assigner, there, new, where)
        for merged, cover in merges:
            if new in merged:
                merged.remove(new)
                joined, result = True, cover
            if merged and merged != [cover]:
                self.keeper.hold_slots([self.table.find(key, w.start, w.end) for w in merged])
                self._merge(key, cover.start, cover.end)
        if not merges or (result == new and not joined):
            return self._open(key, result.start, result.end)
        slot = self.table.find(key, result.start, result.end)
        return slot if slot != NONE else self._open(key, result.start, result.end)

    cdef idx_t _merge(self, idx_t key, ts_t start, ts_t end) except? -1:
        """Merges the held windows into one, in Flink's order: trigger, timers, contents. Returns its row."""
        cdef Keeper keeper = self.keeper
        cdef idx_t slot, other
        cdef Window* window
        cdef Py_ssize_t i
        cdef ts_t time
        cdef int panes = 0
        cdef unsigned int flags = 0
        slot = self._open(key, start, end)
        window = self.table.at(slot)
        # A sum past int64 wraps here, as in Flink, which refuses the window then.
        add_overflows(last_ms(window), keeper.lateness, &time)
        if (time <= keeper.watermark) if keeper.event_time else (last_ms(window) <= keeper.clock):
            now = f"watermark {keeper.watermark}" if keeper.event_time else f"processing time {keeper.clock}"
            raise SpecError(
                f"window: {keeper.window_of(slot)} of key {keeper.key_value(key)!r} would, merged, end before the {now}"
            )
        self.trigger.on_merge(slot)
        for i in range(keeper.merged_n):
            self.trigger.clear(keeper.merged[i])
            keeper.delete_cleanup(keeper.merged[i])
        for i in range(keeper.merged_n):
            other = keeper.merged[i]
            window = self.table.at(other)
            panes = max(panes, window.panes)
            flags |= window.flags & ON_TIME
            if other != slot:
                self.contents.merge(slot, other)
                self.retire(other)
                self.contents.clear(other)
                self.let_go(other)
        window = self.table.at(slot)
        window.panes = max(panes, window.panes)
        if keeper.event_time and last_ms(window) <= keeper.watermark:
            window.flags |= flags
        return slot

    cdef void retire(self, idx_t slot) noexcept:
        """Takes a window out of its key's; timers that its trigger left behind stay."""
        cdef Window* window = self.table.at(slot)
        if window.flags & IN_SET:
            self.table.set_remove(slot)
        window.flags |= CLEANED

    cdef int let_go(self, idx_t slot) except -1:
        """Frees a row that nothing is known about any more."""
        cdef Window* window = self.table.at(slot)
        cdef list states = self.keeper.states
        if window.timers or window.flags & (HAS_CONTENTS | IN_SET):
            return 0
        if not window.flags & CLEANED:
            if self.trigger.keeps(slot) or (slot < len(states) and states[slot]) or (window.panes and self.pane_info):
                return 0
            if self.keeper.passed(window):
                window.flags &= ~<unsigned int> SAVED       # the watermark tells that it is gone
        if slot < len(states):
            states[slot] = None
            self.keeper.contents[slot] = None
            if self.keeper.saved_lists:
                self.keeper.saved_lists.pop(slot, None)
        return self.table.release(slot)
