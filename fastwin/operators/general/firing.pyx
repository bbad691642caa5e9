"""Firing: from a window that fires to result rows, and what user functions have to say about it."""

from itertools import islice
from types import GeneratorType

import numpy as np
import pyarrow as pa

from fastwin.core.timemath cimport NO_TIME
from fastwin.core.typedefs cimport idx_t, int64_t, ts_t
from fastwin.columns.buffers import from_values
from fastwin.core.memory.references cimport PyObject, references
from fastwin.core.rows.rowstore cimport HEAD_CELLS, RowStore
from fastwin.core.windows.windowtable cimport EMPTIES, FIRED, HAS_CONTENTS, ON_TIME, PUBLISHED, TOUCHED, Window, last_ms
from fastwin.core.windows.windowtable import END_CELL
from fastwin.errors import SpecError
from fastwin.functions.process import KeylessFunction, ProcessWindowFunction
from fastwin.operators.general.contents cimport Contents
from fastwin.operators.general.elements cimport Elements
from fastwin.operators.general.eviction cimport Eviction
from fastwin.operators.general.sideoutput cimport SideOutput
from fastwin.operators.config import DELETE, INSERT, UPDATE
from fastwin.operators.general.config import PANE_FIELDS, made_names
from fastwin.operators.general.returned import check_rows, first_unsuited, row_maker, to_arrays, with_changes
from fastwin.operators.general.contexts cimport WindowContext
from fastwin.operators.general.userstate cimport UserState
from fastwin.columns.row cimport TimedRow, new_row
from fastwin.columns.row import exact_items, row_type
from fastwin.columns.windowrows cimport WindowRows
from fastwin.columns.windowrows import window_rows
from fastwin.columns.pythonvalues import exact_values

cdef Py_ssize_t FLUSH_ROWS = 1 << 17
cdef Py_ssize_t FLUSH_BYTES = 1 << 26   # of lists and sketches that fired rows own


cdef class Firing:
    """Collects what windows fire, one row for each result, and turns it into record batches."""

    def __init__(self, Elements elements not None, UserState state not None, Contents contents not None, program,
                 config, counters, bint merging, blank):
        self.elements = elements
        self.table = elements.table
        self.timers = elements.timers
        self.contents = contents
        self.program = program
        self.config = config
        self.counters = counters
        self.blank = blank
        self.names = made_names(config, program)
        self.pane_info, self.changelog = program.pane_info, program.changelog
        self.tells_firings = self.pane_info or self.changelog
        self.keeps_rows = contents.keeps_rows
        if self.keeps_rows:
            self.eviction = Eviction(elements, contents.accumulators, program, config)
            self.eviction.tell(contents)
        self.ctx = WindowContext(elements, state, merging, program.side)
        self.needs_keys = program.process is not None and not isinstance(program.process, KeylessFunction)
        if program.process is not None:
            self.what = f"{type(program.process).__qualname__}.process"
            self.what_clears = f"{type(program.process).__qualname__}.clear"
            self.process = program.process.process
            if getattr(program.process.clear, "__func__", None) is not ProcessWindowFunction.clear:
                self.process_clear = program.process.clear
            self.result_row = row_type([column.name for column in config.results]
                                       + [name for part in program.aggregates for name in part.names])
        if program.output is not None:
            self.maker = row_maker(tuple(program.output.names), self.what or "output")
        self._renew()
        self._batches, self.touched = [], []

    def _renew(self):
        self.fired = RowStore(*self.blank)
        self.held = 0
        self.values = None if self.program.output is None else [[] for _ in self.program.output]
        self.panes, self.changes = [], []
        self.causes = None if self.causes is None else []

    cdef int fire(self, idx_t slot, ts_t time, int by_timer) except -1:
        """Emits what a window with contents holds. time: of the timer that has fired it, if ``by_timer`` says so."""
        cdef Window* window = self.table.at(slot)
        cdef tuple pane = self._pane(slot, time, by_timer) if self.pane_info else None
        cdef list elements = None
        cdef Py_ssize_t n = 0
        cdef idx_t row
        cdef int64_t before = self.held
        window.flags |= FIRED
        window.panes += 1
        self.change = UPDATE if window.flags & PUBLISHED else INSERT
        window.flags |= PUBLISHED
        self.table.rows.mark(slot)
        held = self.contents.held(slot)
        if self.contents.keeps_places:
            self._process(slot, held if self.leaving else (<WindowRows> held).copied(), time, by_timer, pane)
        elif self.keeps_rows:
            elements, n = held, len(held)
            if not self.leaving and not self.eviction.in_place:
                elements = list(held)
            self.eviction.evict(elements, slot, True)
            if self.contents.folds:
                held = self.contents.of_elements(elements, slot)
            else:
                held = window_rows([(<TimedRow> element).value for element in elements], self.contents.handed)
                self._process(slot, held, time, by_timer, pane)
        if self.contents.folds:
            row = self._row(slot, time, by_timer, pane)
            if self.keeps_rows and len(self.config.results):
                if not self.eviction.has_room(len(elements)):
                    self._accumulate()
                self.eviction.note(row, elements)
            if self.process is not None:
                self._accumulate()
                result = self._result(slot, row, held)
                self._take_back(row)
                self.held = before          # what the row owned went with it
                self._process(slot, [result], time, by_timer, pane)
            elif self.program.reduce is not None:
                told = {} if held is None else exact_items(held)
                self._put([told.get(name) for name in self.program.output.names])
            elif self.values is not None:
                self._put(self.contents.python_results(slot, held))
        if elements is not None:
            self.eviction.evict(elements, slot, False)
            self.contents.leave(slot, elements, n)
        if len(self.fired) >= FLUSH_ROWS or (self.held >= FLUSH_BYTES and len(self.fired)):
            self._flush()
        return 0

    cdef int fire_last(self, idx_t slot, ts_t time) except -1:
        """Emits what a window holds that goes next: a list of elements goes out as it is."""
        self.leaving = True
        try:
            self.fire(slot, time, BY_EVENT_TIMER)
            self.clear(slot)
        finally:
            self.leaving = False
        return 0

    cdef bint moves(self):
        """Tells whether all that a window fires is its row, so that one which fires and goes may move()."""
        return self.program.output is None and not self.tells_firings and self.causes is None

    cdef int move(self, idx_t slot) except -1:
        """Emits what a window holds that nothing keeps any more, and frees its row."""
        cdef Window* window = self.table.at(slot)
        cdef idx_t row
        self.fired.reserve(1)
        row = self.fired.alloc(window.head.key, window.head.start)
        self.fired.copy(row, self.table.rows, slot, HEAD_CELLS)
        self.table.keys.retain(window.head.key)
        self.table.empty(window)
        self.table.release(slot)
        self._weigh(row)
        if len(self.fired) >= FLUSH_ROWS or self.held >= FLUSH_BYTES:
            self._flush()
        return 0

    cdef int touch(self, idx_t slot, bint empties) except -1:
        """Has a window fire once at the end of the call, however many late elements it gets.

        empties: what it holds goes then.
        """
        cdef Window* window = self.table.at(slot)
        if empties:
            window.flags |= EMPTIES
        if not window.flags & TOUCHED:
            window.flags |= TOUCHED
            self.touched.append(slot)
        return 0

    def fire_touched(self):
        """Fires the windows that late elements have touched in this call, in order of their ends."""
        cdef idx_t slot
        # A row that was merged away may have come back for another window: it is there twice.
        touched = [slot for slot in dict.fromkeys(self.touched) if self.table.at(slot).flags & TOUCHED]
        self.touched = []
        touched.sort(key=lambda s: (self.table.at(s).end, self.table.at(s).head.start, self.table.at(s).head.key))
        for slot in touched:
            self.fire_touched_one(slot)

    cdef int fire_touched_one(self, idx_t slot) except -1:
        """Fires a window now that was to fire at the end of the call; nothing happens if it was not."""
        cdef unsigned int flags = self.table.at(slot).flags
        self.table.at(slot).flags &= ~<unsigned int> (TOUCHED | EMPTIES)
        if not flags & TOUCHED or not flags & HAS_CONTENTS:
            return 0
        self.fire(slot, NO_TIME, BY_ELEMENT)
        if flags & EMPTIES:
            self.contents.clear(slot)
        return 0

    cdef int withdraw(self, idx_t slot) except -1:
        """Takes the result of a window back that has become part of another one."""
        cdef Window* window = self.table.at(slot)
        cdef idx_t row
        if not self.changelog or not window.flags & PUBLISHED:
            return 0
        window.flags &= ~<unsigned int> PUBLISHED
        self.table.rows.mark(slot)
        self.fired.reserve(1)
        row = self.fired.alloc(window.head.key, window.head.start)
        (<Window*> self.fired.head(row)).end = window.end
        self.table.keys.retain(window.head.key)
        self.changes.append(DELETE)
        if self.causes is not None:
            self.causes.append(None)
        if self.pane_info:
            self.panes.append((None,) * len(PANE_FIELDS))
        if self.values is not None:
            self._put([None] * len(self.values))
        return 0

    cdef idx_t _row(self, idx_t slot, ts_t time, int by_timer, tuple pane) except -1:
        """Copies a window's row to those that have fired; its key is retained until they leave."""
        cdef Window* window = self.table.at(slot)
        cdef idx_t row
        self.fired.reserve(1)
        row = self.fired.alloc(window.head.key, window.head.start)
        if self.keeps_rows:
            (<Window*> self.fired.head(row)).end = window.end
        else:
            self.fired.copy(row, self.table.rows, slot, HEAD_CELLS)
            self._weigh(row)
        self.table.keys.retain(window.head.key)
        if self.causes is not None:
            self.causes.append(time if by_timer else None)
        if pane is not None:
            self.panes.append(pane)
        if self.changelog:
            self.changes.append(self.change)
        return row

    cdef int _put(self, object values) except -1:
        """Adds the values of a row, a list or a tuple, to the Python columns. By column: a tuple for each row would
        keep Python's garbage collector at work."""
        cdef Py_ssize_t i = 0
        if type(values) is tuple:
            for i in range(len(<tuple> values)):
                (<list> self.values[i]).append((<tuple> values)[i])
            return 0
        for value in values:
            (<list> self.values[i]).append(value)
            i += 1
        return 0

    def _take_back(self, idx_t row):
        """Removes the newest fired row again."""
        self.table.keys.release(self.fired.head(row).key)
        self.fired.release(row)
        if self.causes is not None:
            self.causes.pop()
        if self.pane_info:
            self.panes.pop()

    def _result(self, idx_t slot, idx_t row, held):
        """Returns what a function behind aggregates is handed: their result."""
        cdef list values
        if self.program.reduce is not None:
            return held
        values = []
        if self.config.results:
            slots = np.array([row], dtype=np.int32)
            for array in self.config.values_of(self.contents.accumulators, self.fired, slots):
                values.append(exact_values(array)[0])
        elif len(self.program.aggregates) == 1 and self.program.aggregates[0].names == ("",):
            try:
                return self.program.aggregates[0].function.get_result(held)
            except Exception as problem:
                name = type(self.program.aggregates[0].function).__qualname__
                raise self.elements.blame(f"{name}.get_result", slot, problem) from problem
        values.extend(self.contents.python_results(slot, held))
        return new_row(self.result_row, tuple(values))

    cdef WindowContext _enter(self, idx_t slot, str function):
        """Begins a call; returns the context to hand over. What user code has kept of an earlier call stays closed."""
        if references(<PyObject*> self.ctx) > 1:
            self.ctx = self.ctx.again()
        self.ctx.enter(slot, self.elements.window_of(slot), function)
        return self.ctx

    cdef int _process(self, idx_t slot, object elements, ts_t time, int by_timer, tuple pane) except -1:
        key = self.elements.key_value(self.table.at(slot).head.key) if self.needs_keys else None
        cdef WindowContext ctx = self._enter(slot, self.what)
        try:
            results = self.process(key, ctx, elements)
            if results is None:
                return 0
            if type(results) is not GeneratorType and type(results) is not list:
                check_rows(results)
            for value in results:
                if type(value) is not tuple or len(<tuple> value) != len(self.values):
                    value = self.maker(value)
                self._row(slot, time, by_timer, pane)
                self._put(value)
        except Exception as problem:
            raise self.elements.blame(self.what, slot, problem) from problem
        finally:
            ctx.leave()
        return 0

    cdef int clear(self, idx_t slot) except -1:
        """Tells the user's function that a window goes."""
        cdef WindowContext ctx
        if self.process_clear is None:
            return 0
        ctx = self._enter(slot, self.what_clears)
        try:
            self.process_clear(ctx)
        except Exception as problem:
            raise self.elements.blame(self.what_clears, slot, problem) from problem
        finally:
            ctx.leave()
        return 0

    cdef int _accumulate(self) except -1:
        """Computes the built-in aggregates of the elements that fired windows have kept."""
        cdef idx_t row
        if self.eviction is None or not self.eviction.noted_n:
            return 0
        self.eviction.accumulate(self.fired)
        for row in range(self.eviction.first_row, self.eviction.last_row + 1):
            self._weigh(row)
        return 0

    cdef tuple _pane(self, idx_t slot, ts_t time, int by_timer):
        """Says which firing of its window this is."""
        cdef Window* window = self.table.at(slot)
        cdef ts_t last = last_ms(window)
        cdef bint event = self.timers.event_time
        cdef bint same = by_timer == (BY_EVENT_TIMER if event else BY_PROCESSING_TIMER)     # the window's own clock
        timing = "LATE"
        if (self.timers.watermark if event else self.timers.clock) < last or (same and time < last):
            timing = "EARLY"
        elif by_timer and not window.flags & ON_TIME:
            timing = "ON_TIME"
            window.flags |= ON_TIME
        return window.panes, timing, same and time == self.timers.cleanup_time(window)

    def _flush(self):
        """Turns the rows that have fired into a record batch."""
        cdef idx_t slot
        cdef Py_ssize_t n = len(self.fired)
        cdef RowStore fired = self.fired
        self._accumulate()
        slots = np.arange(n, dtype=np.int32)
        self.counters.fired += n
        starts, ends = fired.starts(slots), fired.cells(slots, END_CELL)
        bounded = starts != ends
        valid = None if bounded.all() else bounded
        columns = self.config.codec.decode(self.table.keys, fired.keys(slots))
        columns += [from_values(bound, valid, self.config.bound_type) for bound in (starts, ends)]
        parts = []
        if self.process is None:
            parts = [found for _, found in self.config.values_in_parts(self.contents.accumulators, fired, slots)]
            columns += parts[0] if len(parts) == 1 else [pa.chunked_array(pieces) for pieces in zip(*parts)]
        if self.values is not None:
            columns += self._python_columns()
        if self.pane_info:
            columns += to_arrays(zip(*self.panes), pa.schema(PANE_FIELDS), "pane")
        if self.changelog:
            columns = with_changes(columns, self.changes, len(self.config.codec.fields) + 2)
        if len(parts) > 1:
            table = pa.Table.from_arrays(columns, names=self.names).select(self.config.main_names)
            batches, causes = table.to_batches(), iter(self.causes or [])
            self._batches += [(batch, list(islice(causes, batch.num_rows))) for batch in batches]
        else:
            batch = pa.RecordBatch.from_arrays(columns, names=self.names)
            self._batches.append((batch.select(self.config.main_names), self.causes))
        for slot in range(n):
            self.table.keys.release_later(self.fired.head(slot).key)
        self.table.keys.bury()
        self._renew()

    def _python_columns(self):
        """Returns the columns that Python code has filled; blames the key and window of a value that does not suit."""
        what = self.what or ", ".join(self.contents.whats) or "output"
        try:
            return to_arrays(self.values, self.program.output, what)
        except SpecError as problem:
            unsuited = first_unsuited(self.values, self.program.output, what)
            if unsuited is None:
                raise
            head = <Window*> self.fired.head(unsuited[0])
            where = f"key {self.elements.key_text(head.head.key)}, "
            where += str(self.elements.window_object(head.head.start, head.end))
            raise self.elements.blame(what, where, ValueError(unsuited[1][len(what) + 2:])) from problem

    def flush(self, results):
        """Appends the record batches of all that has fired to ``results``."""
        if len(self.fired):
            self._flush()
        results.extend([batch for batch, _ in self._batches])
        if self.causes is not None:
            self.causes.extend([cause for _, causes in self._batches for cause in causes])
        self._batches = []

    def take_side(self):
        """Returns the side outputs since the last call: record batches by tag."""
        cdef SideOutput side
        return {tag: side.take(self.elements) for tag, side in self.ctx.side.items() if len(side)}
