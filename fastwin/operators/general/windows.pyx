"""OpenWindows: the rows of windows: found or opened for an element, merged, and let go when they are over."""

from operator import index

import numpy as np

from fastwin.core.typedefs cimport NONE, idx_t, ts_t, uint32_t
from fastwin.core.timemath cimport add_overflows
from fastwin.core.windows.timerservice cimport TimerService
from fastwin.core.windows.windowtable cimport (
    CLEANED, EMPTIES, HAS_CONTENTS, IN_SET, ON_TIME, SAVED, TOUCHED, KeyWindows, Window, last_ms,
)
from fastwin.errors import SpecError
from fastwin.operators.general.assigners cimport AssignerNode
from fastwin.operators.general.contents cimport Contents
from fastwin.operators.general.contexts cimport RowHost
from fastwin.operators.general.firing cimport Firing
from fastwin.triggers.trigger cimport Trigger
from fastwin.windows.timewindow import TimeWindow


cdef class OpenWindows:
    """Knows which rows there are for the windows of one operator, and when a row is over."""

    def __init__(self, RowHost host not None, AssignerNode assigner not None, Trigger trigger not None,
                 Contents contents not None, Firing firing not None):
        self.host = host
        self.timers = host.timers
        self.elements = host.elements
        self.state = host.state
        self.table = host.timers.table
        self.assigner = assigner
        self.trigger = trigger
        self.contents = contents
        self.firing = firing

    cdef idx_t place(self, idx_t key, ts_t start, ts_t end, uint32_t hash, idx_t known) except? -1:
        """Returns the row of an element's window, merged where windows merge; NONE if the window is late.

        hash: of the three, which merging windows have no need of. known: the row, where it has been found; else NONE.
        """
        cdef Window window
        cdef idx_t slot
        if self.assigner.merging:
            slot = self._add_merging(key, start, end)
            if self.timers.passed(self.table.at(slot)):
                self.retire(slot)
                self.let_go(slot)
                return NONE
            return slot
        if self.timers.event_time:
            window.head.start = start
            window.end = end
            if self.timers.passed(&window):
                return NONE
        if known == NONE:
            slot = self.table.ensure_hashed(key, start, end, hash)
        else:
            slot = known
            self.table.rows.mark(slot)
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
        self.host.hold_merged(windows.slots + at, n)
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
        cdef const idx_t[::1] held
        new = self.elements.window_object(start, end)
        there = [self.elements.window_of(windows.slots[i]) for i in range(windows.n)]
        where = f"key {self.elements.key_text(key)}, {new}"
        for merged, cover in self._ask_merges(there, new, where):
            if new in merged:
                merged.remove(new)
                start, end = cover.start, cover.end
            if merged and merged != [cover]:
                held = np.array([self._open_one(key, window) for window in merged], dtype=np.int32)
                self.host.hold_merged(&held[0], held.shape[0])
                self._merge(key, cover.start, cover.end)
        return self._open(key, start, end)

    def _open_one(self, idx_t key, window):
        """Returns the row of a window that is merged. Raises SpecError if it is not one of its key's any more."""
        cdef idx_t slot = self.table.find(key, window.start, window.end)
        if slot == NONE or not self.table.at(slot).flags & IN_SET:
            raise SpecError(
                f"{self.assigner.name}.merge_windows: {window} is no window of key {self.elements.key_text(key)}"
            )
        return slot

    cdef idx_t _merge(self, idx_t key, ts_t start, ts_t end) except? -1:
        """Merges the held windows into one, in Flink's order: trigger, timers, contents. Returns its row."""
        cdef TimerService timers = self.timers
        cdef RowHost host = self.host
        cdef idx_t slot, other
        cdef Window* window
        cdef Py_ssize_t i
        cdef ts_t time
        cdef int panes = 0
        cdef unsigned int flags = 0
        slot = self._open(key, start, end)
        window = self.table.at(slot)
        # A sum past int64 wraps here, as in Flink, which refuses the window then.
        add_overflows(last_ms(window), timers.lateness, &time)
        if (time <= timers.watermark) if timers.event_time else (last_ms(window) <= timers.clock):
            now = f"watermark {timers.watermark}" if timers.event_time else f"processing time {timers.clock}"
            raise SpecError(
                f"window: {self.elements.window_of(slot)} of key {self.elements.key_text(key)} would, merged, end "
                f"before the {now}"
            )
        host.move_to(slot)
        self.trigger.c_on_merge()
        for i in range(host.merged_n):
            host.move_to(host.merged[i])
            timers.delete_cleanup(host.merged[i])       # first: a trigger that deletes it would leave the window alone
            self.trigger.c_clear()
            timers.delete_cleanup(host.merged[i])
        for i in range(host.merged_n):
            other = host.merged[i]
            window = self.table.at(other)
            panes = max(panes, window.panes)
            flags |= window.flags & (ON_TIME | TOUCHED | EMPTIES)
            if other != slot:
                self.firing.withdraw(other)
                self.contents.merge(slot, other)
                self.retire(other)
                self.contents.clear(other)
                self.let_go(other)
        window = self.table.at(slot)
        window.panes = max(panes, window.panes)
        if timers.event_time and last_ms(window) <= timers.watermark:
            window.flags |= flags & ON_TIME
            if flags & TOUCHED:
                self.firing.touch(slot, flags & EMPTIES)
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
        cdef list states = self.state.windows
        if window.timers or window.flags & (HAS_CONTENTS | IN_SET):
            return 0
        if not window.flags & CLEANED:
            self.host.move_to(slot)
            if self.trigger.c_keeps() or (slot < len(states) and states[slot]):
                return 0
            if window.panes and self.firing.tells_firings:
                return 0
            if self.timers.passed(window):
                window.flags &= ~<unsigned int> SAVED       # the watermark tells that it is gone
        if slot < len(states):
            states[slot] = None
        self.contents.forget(slot)
        return self.table.release(slot)

    cdef int fire_last(self, idx_t slot, ts_t time) except -1:
        """Fires a window whose trigger keeps nothing, and frees its row."""
        cdef list states = self.state.windows
        self.firing.fire_last(slot, time)
        if slot < len(states):
            states[slot] = None
        self.contents.forget(slot)
        self.table.empty(self.table.at(slot))
        return self.table.release(slot)

    def _ask_merges(self, there, new, where):
        """Returns what a user-written ``merge_windows`` merges: windows, each once, and what they become."""
        found, used = [], set()
        known = {window: window for window in [*there, new] if isinstance(window, TimeWindow)}

        def callback(merged, result):
            merged = list(dict.fromkeys(merged))
            for window in merged:
                if window not in known:
                    raise SpecError(f"callback: {window} is none of the windows to merge")
                if window in used:
                    raise SpecError(f"callback: {window} has been merged already; each window can become one other")
            if not isinstance(result, TimeWindow) or not -2**63 <= index(result.start) < index(result.end) < 2**63:
                raise SpecError(
                    f"callback: the merged window must be a TimeWindow of int64 ms, end above start, got {result!r}"
                )
            used.update(merged, [result])
            found.append(([known[window] for window in merged], result))

        try:
            self.assigner.merge_windows([*there, new], callback)
        except Exception as problem:
            raise self.elements.blame(f"{self.assigner.name}.merge_windows", where, problem) from problem
        return found

    def passed_slots(self):
        """Returns the rows whose time has passed, for a restore: the watermark tells that they are gone."""
        cdef idx_t slot
        if not self.timers.event_time:
            return []
        return [slot for slot in self.table.rows.slots() if not self.table.at(slot).flags & CLEANED
                and self.timers.passed(self.table.at(slot))]

    def drop(self, idx_t slot):
        """Frees a row that has no timers any more, with all that belongs to it, for a restore."""
        self.contents.clear(slot)
        self.table.at(slot).flags &= ~<unsigned int> SAVED
        self.retire(slot)
        self.let_go(slot)
