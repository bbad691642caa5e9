"""Eviction: what evictors leave of the elements that a window keeps, and what built-in aggregates make of them.

What windows hold as they fire is noted column by column, and accumulated for many firings at once.
"""

from operator import attrgetter, index

import numpy as np
import pyarrow as pa

from fastwin.columns.buffers import from_values
from fastwin.columns.pythonvalues import exact_array
from fastwin.columns.row cimport AT_HAND, Numbers, Row, TimedRow
from fastwin.core.accumulators.accumulator_set cimport AccumulatorSet
from fastwin.core.rows.rowstore cimport RowStore
from fastwin.core.timemath cimport MAX_TIME, NO_TIME
from fastwin.core.typedefs cimport idx_t, int64_t, ts_t
from fastwin.functions.evictors import CountEvictor, TimeEvictor
from fastwin.operators.general.contents cimport Contents
from fastwin.operators.general.contexts cimport Clocks
from fastwin.operators.general.elements cimport Elements
from fastwin.operators.general.lookahead cimport PyObject, fetch_timed, items_of

cdef enum:
    ROOM = 65536                # elements that are noted before they are accumulated


cdef object as_index(object i, Py_ssize_t n):
    """Returns an index that an evictor has named; raises TypeError for what is none of n elements."""
    told = i
    if not isinstance(i, (bool, np.bool_)):     # a mask is no list of indices
        try:
            i = index(i)
            if 0 <= i < n:
                return i
        except TypeError:
            pass
    raise TypeError(f"must return indices of the {n} elements, returned {told!r}")


_arrival = attrgetter("arrival")


cdef class NotedColumn:
    """A column of the elements that are noted. kind: its Arrow type. place: of the column in their rows."""

    def __init__(self, Py_ssize_t place, kind):
        self.place = place
        self.kind = kind
        self.floats = pa.types.is_float32(kind) or pa.types.is_float64(kind)
        self.numbers = self.floats or (pa.types.is_integer(kind) and not pa.types.is_uint64(kind))
        self.at_hand = -1
        self.objects = []

    cdef int fit(self, Py_ssize_t room) except -1:
        """Makes room for so many elements, none of which is noted yet."""
        if self.numbers:
            self.values_array, self.valid_array = np.zeros(room, dtype=np.int64), np.zeros(room, dtype=np.uint8)
            self.values, self.valid = self.values_array, self.valid_array
        return 0

    cdef int put(self, Py_ssize_t at, list elements) except -1:
        """Notes the values of elements, from place ``at`` on."""
        cdef const Numbers* numbers
        cdef PyObject** items = items_of(<PyObject*> elements)
        cdef Py_ssize_t i, n = len(elements)
        cdef TimedRow timed
        cdef Row row
        cdef bint there
        if not self.numbers:
            for element in elements:
                self.objects.append((<Row> (<TimedRow> element).value).exact(self.place))
            return 0
        for i in range(n):
            fetch_timed(items, i, n, -1 if self.at_hand >= 0 else self.place)
            timed = <TimedRow> elements[i]
            if timed.known and self.at_hand >= 0:
                there = timed.there >> self.at_hand & 1
                self.values[at] = timed.values[self.at_hand]
                self.valid[at] = there
                self.nulls |= not there
                at += 1
                continue
            row = <Row> timed.value
            numbers = NULL if row.values is not None else row.rows.numbers + self.place
            if numbers != NULL and numbers.values != NULL:
                there = numbers.valid == NULL or numbers.valid[row.i]
                if there:
                    self.values[at] = (<const int64_t*> numbers.values)[row.i]
            else:
                value = row.exact(self.place)
                there = value is not None
                if there and self.floats:
                    (<double*> &self.values[at])[0] = value
                elif there:
                    self.values[at] = value
            self.valid[at] = there
            self.nulls |= not there
            at += 1
        return 0

    def take(self, Py_ssize_t begin, Py_ssize_t end):
        """Returns what is noted, as an Arrow array of its type."""
        if not self.numbers:
            return exact_array(self.objects[begin:end], self.kind)
        valid = self.valid_array[begin:end].view(np.bool_) if self.nulls else None
        values = self.values_array[begin:end].view(np.float64 if self.floats else np.int64)
        return from_values(values, valid, pa.float64() if self.floats else pa.int64()).cast(self.kind)

    def forget(self):
        """Drops what is noted."""
        self.objects.clear()
        self.nulls = False


cdef class Eviction:
    """The evictor of one operator, if it has one.

    accumulators: of the built-in aggregates, which are computed anew at each firing. program: what else there is.
    """

    def __init__(self, Elements elements not None, AccumulatorSet accumulators not None, program, config):
        self.elements = elements
        self.evictor = program.evictor
        self.clocks = Clocks(elements.timers)
        kind = type(self.evictor)       # a subclass may evict something else
        if kind is CountEvictor or kind is TimeEvictor:
            most = self.evictor.max_count if kind is CountEvictor else self.evictor.size_ms
            if most <= MAX_TIME:
                self.kind = BY_COUNT if kind is CountEvictor else BY_TIME
                self.most = most
                self.after = self.evictor.do_evict_after
                self.in_place = bool(config.results) and not program.aggregates and program.reduce is None
        self.columns = []
        if len(accumulators.members):
            self.scratch = config.new_accumulators(accumulators.head_cells)
            self.inputs = program.inputs
            names = self.inputs.names
            if self.inputs.computed:
                names = names or program.rows.names[:1]     # of which an expression learns how many rows there are
            self.read = pa.schema([program.rows.field(name) for name in names])
            for name, kind in zip(self.read.names, self.read.types):
                self.columns.append(NotedColumn(program.rows.names.index(name), kind))

    cdef int tell(self, Contents contents) except -1:
        """Tells which numbers timed rows are to have by themselves."""
        cdef NotedColumn column
        for column in self.columns:
            if contents.at_hand_n < AT_HAND and column.kind in (pa.int64(), pa.float64()):
                column.at_hand = contents.at_hand_n
                contents.at_hand[contents.at_hand_n] = column.place
                contents.at_hand_n += 1
        return 0

    cdef int evict(self, list elements, idx_t slot, bint before) except -1:
        """Removes what the evictor does not leave of elements, which are in order of arrival.

        before: the function that is handed them has yet to run.
        """
        if self.kind == ASKED:
            self._ask(elements, slot, before)
        elif self.after == before:
            pass
        elif self.kind == BY_TIME:
            self._evict_by_time(elements, slot)
        elif len(elements) > self.most:
            del elements[:len(elements) - self.most]
        return 0

    cdef int _evict_by_time(self, list elements, idx_t slot) except -1:
        cdef ts_t time, newest = NO_TIME, oldest = MAX_TIME
        if not elements or (<TimedRow> elements[0]).time == NO_TIME:
            return 0
        for element in elements:
            time = (<TimedRow> element).time
            if time == NO_TIME:
                return self._ask(elements, slot, not self.after)        # which says what is wrong with it
            newest = max(newest, time)
            oldest = min(oldest, time)
        if newest < NO_TIME + self.most or oldest > newest - self.most:
            return 0
        elements[:] = [element for element in elements if (<TimedRow> element).time > newest - self.most]
        return 0

    def _ask(self, list elements not None, idx_t slot, bint before):
        """Asks an evictor that is written in Python; removes what it names."""
        method = self.evictor.evict_before if before else self.evictor.evict_after
        what = f"{type(self.evictor).__qualname__}.{'evict_before' if before else 'evict_after'}"
        try:
            gone = method(tuple(elements), len(elements), self.elements.window_of(slot), self.clocks)
            if gone is None:
                return 0
            gone = {as_index(i, len(elements)) for i in gone}
        except Exception as problem:
            raise self.elements.blame(what, slot, problem) from problem
        if gone:
            elements[:] = [element for i, element in enumerate(elements) if i not in gone]
        return 0

    cdef bint has_room(self, Py_ssize_t n):
        """Tells whether so many elements more can be noted; if not, those that are have to be accumulated."""
        return not self.noted_n or self.noted_n + n <= ROOM

    cdef int note(self, idx_t row, list elements) except -1:
        """Notes elements that are to be accumulated in a row of those that have fired."""
        cdef NotedColumn column
        cdef Py_ssize_t n = len(elements), at = self.noted_n
        if at + n > self.room:
            self._fit(max(n, ROOM))     # whoever calls has asked has_room(), so nothing is noted here
        if self.scratch.remembers:      # windows that merge have theirs one behind the other
            elements = sorted(elements, key=_arrival)
        if not self.noted_n:
            self.first_row = row
        self.last_row = row
        for column in self.columns:
            column.put(at, elements)
        for element in elements:
            self.times[at] = (<TimedRow> element).time
            self.noted_rows[at] = row
            at += 1
        self.noted_n = at
        return 0

    def _fit(self, Py_ssize_t room):
        """Makes room for so many elements, none of which is noted yet."""
        cdef NotedColumn column
        self.times_array, self.rows_array = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int32)
        self.times, self.noted_rows = self.times_array, self.rows_array
        for column in self.columns:
            column.fit(room)
        self.room = room

    cdef int accumulate(self, RowStore store) except -1:
        """Computes the built-in aggregates of the elements that are noted, in fresh rows of the store."""
        cdef NotedColumn column
        cdef Py_ssize_t begin, end, n = self.noted_n
        self.noted_n = 0
        try:
            for begin in range(0, n, ROOM):
                end = min(begin + ROOM, n)
                arrays = [(<NotedColumn> column).take(begin, end) for column in self.columns]
                batch = pa.RecordBatch.from_arrays(arrays, schema=self.read)
                fed = self.inputs.read(batch, self.times_array[begin:end])
                self.scratch.add_rows(store, self.rows_array[begin:end], fed)
        finally:
            for column in self.columns:
                column.forget()
            if self.room > ROOM:
                self._fit(ROOM)
        return 0
