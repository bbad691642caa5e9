"""Triggers made of other triggers at C level: a tree of nodes. What each does is told by ``fastwin.combinators``."""

from fastwin._typedefs cimport idx_t, int64_t, ts_t
from fastwin.core.windowtable cimport last_ms
from fastwin.operators.keeper cimport NO_TIME, Keeper, plus
from fastwin.operators.triggernodes cimport CONTINUE, FIRE, FIRE_AND_PURGE, PURGE, TriggerNode, cell_of


cdef class _Nesting(TriggerNode):
    """A trigger that asks others."""

    cdef readonly list inner
    cdef Py_ssize_t own

    def __init__(self, inner):
        self.inner = list(inner)
        self.cells = self.own
        for node in self.inner:
            self.cells += (<TriggerNode> node).cells

    def bind(self, Keeper keeper not None, Py_ssize_t cell):
        self.keeper = keeper
        self.cell = cell
        cell += self.own
        for node in self.inner:
            cell = node.bind(keeper, cell)
        return cell

    def blank(self):
        return self._blank_own() + [cell for node in self.inner for cell in node.blank()]

    def _blank_own(self):
        return [0] * self.own

    cdef int on_merge(self, idx_t slot) except -1:
        cdef TriggerNode node
        for node in self.inner:
            node.on_merge(slot)
        return 0

    cdef int clear(self, idx_t slot) except -1:
        cdef TriggerNode node
        for node in self.inner:
            node.clear(slot)
        return 0

    cdef bint keeps(self, idx_t slot) except -1:
        cdef TriggerNode node
        for node in self.inner:
            if node.keeps(slot):
                return True
        return False

    cdef TriggerNode first(self):
        return <TriggerNode> self.inner[0]


cdef class PurgingNode(_Nesting):
    """PurgingTrigger."""

    cdef int on_element(self, idx_t slot, Py_ssize_t i, ts_t time) except -1:
        cdef int result = self.first().on_element(slot, i, time)
        return FIRE_AND_PURGE if result & FIRE else result

    cdef int on_event_time(self, idx_t slot, ts_t time) except -1:
        cdef int result = self.first().on_event_time(slot, time)
        return FIRE_AND_PURGE if result & FIRE else result

    cdef int on_processing_time(self, idx_t slot, ts_t time) except -1:
        cdef int result = self.first().on_processing_time(slot, time)
        return FIRE_AND_PURGE if result & FIRE else result


cdef class TimeoutNode(_Nesting):
    """ProcessingTimeoutTrigger. Own cell: when the timeout is; NO_TIME: not set."""

    cdef ts_t timeout
    cdef bint resets, clears

    def __init__(self, inner, ts_t timeout, bint resets, bint clears):
        self.own = 1
        super().__init__(inner)
        self.timeout = timeout
        self.resets = resets
        self.clears = clears

    def _blank_own(self):
        return [NO_TIME]

    cdef int on_element(self, idx_t slot, Py_ssize_t i, ts_t time) except -1:
        cdef int result = self.first().on_element(slot, i, time)
        cdef int64_t* cell
        if result & FIRE:
            self.clear(slot)
            return result
        cell = cell_of(self, slot)
        if cell[0] != NO_TIME and self.resets:
            self.keeper.delete_processing(slot, cell[0])
            cell[0] = NO_TIME
        if cell[0] == NO_TIME:
            cell[0] = plus(self.keeper.clock, self.timeout)
            self.keeper.register_processing(slot, cell[0])
        return result

    cdef int _timed_out(self, idx_t slot, int result) except -1:
        if self.clears:
            self.clear(slot)
        return FIRE | (result & PURGE)

    cdef int on_event_time(self, idx_t slot, ts_t time) except -1:
        return self._timed_out(slot, self.first().on_event_time(slot, time))

    cdef int on_processing_time(self, idx_t slot, ts_t time) except -1:
        return self._timed_out(slot, self.first().on_processing_time(slot, time))

    cdef int clear(self, idx_t slot) except -1:
        cdef ts_t time = cell_of(self, slot)[0]
        if time != NO_TIME:
            self.keeper.delete_processing(slot, time)
            cell_of(self, slot)[0] = NO_TIME
        return self.first().clear(slot)

    cdef bint keeps(self, idx_t slot) except -1:
        return cell_of(self, slot)[0] != NO_TIME or self.first().keeps(slot)


cdef class AnyOfNode(_Nesting):
    """any_of: every trigger is asked, and their answers are joined."""

    cdef int on_element(self, idx_t slot, Py_ssize_t i, ts_t time) except -1:
        cdef TriggerNode node
        cdef int result = CONTINUE
        for node in self.inner:
            result |= node.on_element(slot, i, time)
        return result

    cdef int on_event_time(self, idx_t slot, ts_t time) except -1:
        cdef TriggerNode node
        cdef int result = CONTINUE
        for node in self.inner:
            result |= node.on_event_time(slot, time)
        return result

    cdef int on_processing_time(self, idx_t slot, ts_t time) except -1:
        cdef TriggerNode node
        cdef int result = CONTINUE
        for node in self.inner:
            result |= node.on_processing_time(slot, time)
        return result


cdef class AllOfNode(_Nesting):
    """all_of. Own cell: which triggers have fired (two bits each: fired, and asked to purge)."""

    def __init__(self, inner):
        self.own = 1
        super().__init__(inner)

    cdef int _joined(self, idx_t slot, Py_ssize_t j, int result, int so_far) except -1:
        if result & FIRE:
            cell_of(self, slot)[0] |= <int64_t> result << <int> (2 * j)
        elif result & PURGE:
            so_far |= PURGE
        return so_far

    cdef int _answer(self, idx_t slot, int result) except -1:
        cdef int64_t* cell = cell_of(self, slot)
        cdef int64_t fired = 0x5555555555555555 & (((<int64_t> 1) << <int> (2 * len(self.inner))) - 1)
        if cell[0] & fired == fired:
            result |= FIRE
            if cell[0] & (fired << 1):
                result |= PURGE
            cell[0] = 0
        return result

    cdef int on_element(self, idx_t slot, Py_ssize_t i, ts_t time) except -1:
        cdef Py_ssize_t j
        cdef int result = CONTINUE
        for j in range(len(self.inner)):
            result = self._joined(slot, j, (<TriggerNode> self.inner[j]).on_element(slot, i, time), result)
        return self._answer(slot, result)

    cdef int on_event_time(self, idx_t slot, ts_t time) except -1:
        cdef Py_ssize_t j
        cdef int result = CONTINUE
        for j in range(len(self.inner)):
            result = self._joined(slot, j, (<TriggerNode> self.inner[j]).on_event_time(slot, time), result)
        return self._answer(slot, result)

    cdef int on_processing_time(self, idx_t slot, ts_t time) except -1:
        cdef Py_ssize_t j
        cdef int result = CONTINUE
        for j in range(len(self.inner)):
            result = self._joined(slot, j, (<TriggerNode> self.inner[j]).on_processing_time(slot, time), result)
        return self._answer(slot, result)

    cdef int on_merge(self, idx_t slot) except -1:
        cdef Py_ssize_t i
        for i in range(self.keeper.merged_n):
            cell_of(self, slot)[0] |= cell_of(self, self.keeper.merged[i])[0]
            cell_of(self, self.keeper.merged[i])[0] = 0
        return _Nesting.on_merge(self, slot)

    cdef int clear(self, idx_t slot) except -1:
        cell_of(self, slot)[0] = 0
        return _Nesting.clear(self, slot)

    cdef bint keeps(self, idx_t slot) except -1:
        return cell_of(self, slot)[0] != 0 or _Nesting.keeps(self, slot)


cdef class AfterWatermarkNode(_Nesting):
    """after_watermark; inner: early and late. Own cell: 1 when the watermark has passed the end."""

    def __init__(self, inner):
        self.own = 1
        super().__init__(inner)

    cdef TriggerNode _now(self, idx_t slot):
        return <TriggerNode> self.inner[cell_of(self, slot)[0] != 0]

    cdef int on_element(self, idx_t slot, Py_ssize_t i, ts_t time) except -1:
        cdef ts_t last = last_ms(self.keeper.at(slot))
        if last > self.keeper.watermark:
            self.keeper.register_event(slot, last)
        elif cell_of(self, slot)[0] == 0:
            self._pass(slot)
        return self._now(slot).on_element(slot, i, time)

    cdef int _pass(self, idx_t slot) except -1:
        cell_of(self, slot)[0] = 1
        return (<TriggerNode> self.inner[0]).clear(slot)

    cdef int on_event_time(self, idx_t slot, ts_t time) except -1:
        if time == last_ms(self.keeper.at(slot)) and cell_of(self, slot)[0] == 0:
            self._pass(slot)
            return FIRE
        return self._now(slot).on_event_time(slot, time)

    cdef int on_processing_time(self, idx_t slot, ts_t time) except -1:
        return self._now(slot).on_processing_time(slot, time)

    cdef int on_merge(self, idx_t slot) except -1:
        cdef Py_ssize_t i
        cdef ts_t last = last_ms(self.keeper.at(slot))
        for i in range(self.keeper.merged_n):
            cell_of(self, self.keeper.merged[i])[0] = 0
        _Nesting.on_merge(self, slot)
        cell_of(self, slot)[0] = last <= self.keeper.watermark
        if last > self.keeper.watermark:
            self.keeper.register_event(slot, last)
            return (<TriggerNode> self.inner[1]).clear(slot)
        return (<TriggerNode> self.inner[0]).clear(slot)

    cdef int clear(self, idx_t slot) except -1:
        cell_of(self, slot)[0] = 0
        self.keeper.delete_event(slot, last_ms(self.keeper.at(slot)))
        return _Nesting.clear(self, slot)

    cdef bint keeps(self, idx_t slot) except -1:
        return cell_of(self, slot)[0] != 0 or _Nesting.keeps(self, slot)
