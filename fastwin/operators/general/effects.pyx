"""Effects: what elements and timers do to the windows of the general operator, one after the other in Flink's order.

The way of an element: assigners (its windows) -> windows (the row of each; merges) -> contents (adds it) -> triggers
(FIRE? through RowHost: timers, clocks, cells) -> firing (result rows) -> contents (PURGE) -> timers (cleaning).
The way of a timer: TimerService (the next one that is due) -> triggers -> firing -> contents, and at the window's
cleaning -> triggers, functions (clear) -> windows (lets the row go).
What user code is handed on these ways: elements (rows, keys, windows) and contexts (timers, state). Saved by: state.
"""

from fastwin.core.timemath cimport NO_TIME, add_overflows
from fastwin.core.timers.timer cimport Timer
from fastwin.core.timers.timerqueue cimport TimerQueue
from fastwin.core.typedefs cimport NONE, idx_t, int64_t, ts_t, uint8_t, uint32_t
from fastwin.core.windows.timerservice cimport TimerService, slot_of
from fastwin.core.windows.windowtable cimport CLEANUP_TIMER, END_TIMER, FIRED, HAS_CONTENTS, IN_SET
from fastwin.core.windows.windowtable cimport Window, WindowTable, last_ms
from fastwin.core.windows.windowtable import HEAD_CELLS
from fastwin.operators.general.assigners cimport AssignerNode
from fastwin.operators.general.assigners import assigner_node
from fastwin.operators.general.blocks cimport BLOCK, Block
from fastwin.operators.general.contents cimport Contents
from fastwin.operators.general.contexts cimport RowHost
from fastwin.operators.general.elements cimport Elements
from fastwin.operators.general.firing cimport BY_ELEMENT, BY_EVENT_TIMER, BY_PROCESSING_TIMER, Firing
from fastwin.operators.general.lookahead cimport fetch_all, fetch_due, fetch_due_rows
from fastwin.operators.general.userstate cimport UserState
from fastwin.operators.general.windows cimport OpenWindows
from fastwin.operators.protocol import Counters
from fastwin.triggers.builtin cimport bound
from fastwin.triggers.plain import EventTimeTrigger
from fastwin.triggers.trigger cimport CONTINUE, FIRE, PURGE, TriggerHost


cdef class Effects:
    """The parts of one operator, and how they act on each other. config, program: what to run."""

    def __init__(self, config, program):
        cdef TriggerHost needs = TriggerHost()
        bound(program.trigger, needs)
        cells = [blank for _, blank, _ in needs.kept]
        self.accumulators = config.new_accumulators(HEAD_CELLS + len(cells))
        blank = self.accumulators.blank()
        blank[HEAD_CELLS : HEAD_CELLS + len(cells)] = cells
        self.keys = config.codec.new_table()
        self.table = WindowTable(self.keys, blank, self.accumulators.owned)
        self.config, self.program = config, program
        self.counters = Counters()
        self.timer_service = TimerService(self.table, config.lateness_ms, program.assigner.is_event_time())
        self.elements = Elements(self.timer_service, config.codec)
        self.state = UserState(self.table)
        self.host = RowHost(self.timer_service, self.elements, self.state)
        self.trigger = bound(program.trigger, self.host)
        self.assigner = assigner_node(self.elements, program.assigner)
        self.merging, self.arrival, self.coalesce = self.assigner.merging, program.arrival, config.coalesce
        self.contents = Contents(self.elements, self.accumulators, program, config)
        self.firing = Firing(self.elements, self.state, self.contents, program, config, self.counters, self.merging,
                             (blank, self.accumulators.owned))
        self.windows = OpenWindows(self.host, self.assigner, self.trigger, self.contents, self.firing)
        self.feeds, self.block = self.contents.built_in, Block(self.table, self.assigner)
        self.rests = (self.assigner.single and type(self.trigger) is EventTimeTrigger and program.evictor is None
                      and (program.process is None or config.lateness_ms == 0))
        self.settled = HAS_CONTENTS | CLEANUP_TIMER | (END_TIMER if config.lateness_ms else 0)

    cdef int take(self, idx_t[::1] ids, const int64_t[::1] times, uint8_t[::1] late, list columns) except -1:
        """Takes elements, one after the other. late: gets marks of those that no window took.

        ids: of their keys. columns: what built-in aggregates read.
        """
        cdef Py_ssize_t i, j, k = 0, windows, n = ids.shape[0]
        cdef idx_t slot
        cdef bint taken, deferred = False, event = self.timer_service.event_time
        cdef AssignerNode assigner = self.assigner
        cdef RowHost host = self.host
        cdef TimerService timers = self.timer_service
        cdef Block block = self.block
        cdef uint32_t hash = 0
        cdef Window* window
        cdef ts_t time
        cdef int result
        if self.feeds:
            self._held = self.accumulators.hold(columns, n)
            self.fed = 0
        for i in range(n):
            k = i % BLOCK
            if k == 0:
                if deferred:
                    self._feed(i)       # while the rows are at hand
                if assigner.plain:
                    block.foresee(&ids[i], &times[i], i, min(n - i, BLOCK))
                    if self.contents.in_python and not self.contents.takes_runs:
                        fetch_all(self.contents.objects, block.slots, min(n - i, BLOCK))
            if self.rests and block.is_settled(k, ids[i], self.settled, timers.watermark):
                self.pending[k], deferred = block.slots[k], self.feeds
                if self.contents.in_python:
                    self.contents.add(block.slots[k], i, times[i])
                continue
            if assigner.single:
                windows = 1
                assigner.starts[0], assigner.ends[0], hash = block.starts[k], block.ends[k], block.hashes[k]
            else:
                windows = assigner.assign(i, times[i], ids[i])
            taken = False
            deferred = self.feeds and windows == 1 and not self.merging
            if self.feeds and not deferred:
                self._feed(i)
                self.fed = i + 1
            for j in range(windows):
                if not (assigner.single or self.merging):
                    hash = self.table.hashed(ids[i], assigner.starts[j], assigner.ends[j])
                slot = block.known(k, ids[i]) if assigner.single else NONE
                slot = self.windows.place(ids[i], assigner.starts[j], assigner.ends[j], hash, slot)
                if slot == NONE:
                    continue
                taken = True
                if deferred:
                    self.pending[k] = slot
                elif self.feeds:
                    self.accumulators.add(self.table.rows, &slot, 1, i)
                self.contents.add(slot, i, times[i])
                host.i = i
                host.move_to(slot)
                result = self.trigger.c_on_element(times[i])
                if result != CONTINUE:
                    if self.feeds:
                        self._feed(i + 1)
                    self._answer(slot, result)
                timers.register_cleanup(slot)
                window = self.table.at(slot)
                if not window.timers and not window.flags & (HAS_CONTENTS | IN_SET):
                    self.windows.let_go(slot)
            if not taken:
                if deferred:
                    self._feed(i)
                    self.fed = i + 1
                # Late by its own time, or no window wants it.
                if event and (NO_TIME < times[i] <= timers.cleaned or (
                        not add_overflows(times[i], timers.lateness, &time) and time <= timers.watermark)):
                    late[i] = 1
                else:
                    self.counters.unassigned += 1
        if self.feeds:
            self._feed(n)
            self._held = None
        return self.contents.hand_over_all()

    cdef int _feed(self, Py_ssize_t until) except -1:
        """Feeds the built-in accumulators with the elements up to ``until`` that they have not got yet."""
        if self.fed < until:
            self.accumulators.add(self.table.rows, &self.pending[self.fed % BLOCK], until - self.fed, self.fed)
            self.fed = until
        return 0

    cdef int _answer(self, idx_t slot, int result) except -1:
        """Does what the trigger said for an element."""
        cdef bint waits = (self.coalesce and self.timer_service.event_time
                           and last_ms(self.table.at(slot)) <= self.timer_service.watermark)
        if result & FIRE and self.table.at(slot).flags & HAS_CONTENTS:
            if waits:
                return self.firing.touch(slot, result & PURGE)
            self.firing.fire(slot, NO_TIME, BY_ELEMENT)
        if result & PURGE:
            if waits:
                self.firing.fire_touched_one(slot)
            self.contents.clear(slot)
        return 0

    cdef int run_timers(self, bint event, ts_t until, bint final) except -1:
        """Does what timers up to ``until`` ask for, in order of time; see advance_processing_time() for ``final``."""
        cdef Timer timer
        cdef idx_t slot
        cdef const Window* window
        cdef bint goes = event and self.rests and self.timer_service.lateness == 0     # a window that fires
        cdef bint moves = goes and not self.contents.in_python and self.firing.moves()
        cdef TimerQueue timers = self.timer_service.event_timers if event else self.timer_service.processing_timers
        self.elements.begin(None)
        self.timer_service.final = final
        while self.timer_service.take_due(event, until, &timer):
            fetch_due_rows(timers, self.table)
            if not moves:
                fetch_due(timers, self.contents.objects, self.state.windows)
            window = self.table.at(slot_of(&timer))
            if not (goes and window.flags & HAS_CONTENTS and not window.timers and timer.time == last_ms(window)):
                self._on_timer(slot_of(&timer), timer.time, event)
            elif moves:
                self.firing.move(slot_of(&timer))       # it fires and goes, and nothing else happens
            else:
                self.windows.fire_last(slot_of(&timer), timer.time)
        self.timer_service.final = False
        slot = self.timer_service.next_forsaken(event, until)
        while slot != NONE:
            self._clean(slot)
            self.windows.let_go(slot)
            slot = self.timer_service.next_forsaken(event, until)
        self.state.expire(event, until)
        return 0

    cdef int _on_timer(self, idx_t slot, ts_t time, bint event) except -1:
        cdef int result
        cdef Window* window = self.table.at(slot)
        if self.merging and not window.flags & IN_SET:
            return self.windows.let_go(slot)       # merged away: what its trigger left behind means nothing
        self.host.move_to(slot)
        result = self.trigger.c_on_event_time(time) if event else self.trigger.c_on_processing_time(time)
        if result & FIRE and self.table.at(slot).flags & HAS_CONTENTS:
            self.firing.fire(slot, time, BY_EVENT_TIMER if event else BY_PROCESSING_TIMER)
        if result & PURGE:
            self.contents.clear(slot)
        window = self.table.at(slot)
        if event == self.timer_service.event_time and time == self.timer_service.cleanup_time(window):
            self._clean(slot)
        return self.windows.let_go(slot)

    cdef int _clean(self, idx_t slot) except -1:
        """Clears a window that has passed."""
        cdef const Window* window = self.table.at(slot)
        if window.flags & HAS_CONTENTS and not window.flags & FIRED:
            self.counters.unfired += 1
        self.contents.clear(slot)
        self.host.move_to(slot)
        self.trigger.c_clear()
        self.firing.clear(slot)
        self.windows.retire(slot)
        return 0
