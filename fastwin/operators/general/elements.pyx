"""Elements: the rows of the current call, their keys and their windows, as user code sees them."""

import numpy as np

from fastwin.columns.exact cimport Exact
from fastwin.columns.pythonvalues import exact_values
from fastwin.columns.row cimport Row, Rows
from fastwin.core.memory.ordering import unique
from fastwin.core.memory.references cimport PyObject, references
from fastwin.core.timers.timerqueue cimport TimerQueue
from fastwin.core.typedefs cimport NONE, idx_t, ts_t
from fastwin.core.windows.timerservice cimport TimerService
from fastwin.core.windows.windowtable cimport Window
from fastwin.errors import UserFunctionError
from fastwin.windows.timewindow import GlobalWindow, TimeWindow

cdef object NEW_TUPLE = tuple.__new__

cdef enum:
    KEYS_AHEAD = 4096           # keys that are looked up at once, of timers whose turn comes soon


cdef class Elements:
    """What user code is handed of one general operator, and the errors that blame it.

    timers: of its windows. codec: of its keys.
    """

    def __init__(self, TimerService timers not None, codec):
        self.timers = timers
        self.table = timers.table
        self.codec = codec
        self.key_values = {}
        self.sparse, self.thin = [], []
        self.row_at = NONE

    def begin(self, Rows rows):
        """Makes rows (None: none) the current elements, and forgets what was looked up for others.

        Rows that windows or user code have kept go on without the batch that they came with.
        """
        cdef Rows few
        if self.row is not None:
            self._leave_row()
        if self.handed is not None:
            self.handed.settle()
        if self.rows is not None:
            self.rows.close(self.sparse)
        while self.sparse:
            few = self.sparse.pop()
            if few.kept:
                self.thin.append(few)
                self.thin_n += few.n
            else:
                few.scatter()
        self.rows = rows
        self.row_at = NONE
        self.key_values = {}
        self.coming = None

    def leave(self, Rows rows not None):
        """Ends the call of rows that windows have got apart from the others."""
        rows.close(self.sparse)

    cdef Row element(self, Py_ssize_t i):
        """Returns the row of element i."""
        if i != self.row_at:
            if self.row is not None and references(<PyObject*> self.row) == 1:
                self.row.i = i          # nobody has kept the one before
            else:
                if self.row is not None:
                    self._leave_row()
                self.row = self.rows.row(i)
            self.row_at = i
        return self.row

    cdef int _leave_row(self) except -1:
        """Goes on from the current row, which somebody may have kept."""
        if references(<PyObject*> self.row) > 1:
            self.rows.hold(self.row)
        self.row = None
        return 0

    cdef object window_object(self, ts_t start, ts_t end):
        """Returns the window as user code sees it."""
        if self.cached_window is None or start != self.cached_start or end != self.cached_end:
            # As TimeWindow(start, end), which goes through a function in Python.
            self.cached_window = GlobalWindow() if start == end else NEW_TUPLE(TimeWindow, (start, end))
            self.cached_start = start
            self.cached_end = end
        return self.cached_window

    cdef object window_of(self, idx_t slot):
        cdef Window* window = self.table.at(slot)
        return self.window_object(window.head.start, window.end)

    def known_keys(self, ids):
        """Looks up the values of many keys at once; ids: int32[n]."""
        ids = unique(ids)
        columns = [exact_values(column) for column in self.codec.decode(self.table.keys, ids)]
        values = columns[0] if len(columns) == 1 else list(zip(*columns)) if columns else [()] * len(ids)
        self.key_values.update(zip(ids.tolist(), values))

    cdef object key_value(self, idx_t key):
        """Returns the value of a key as user code sees it, a tuple for several columns."""
        value = self.exact_key(key)
        if type(value) is Exact:
            return (<Exact> value).show(self.codec.fields[0].name)
        if type(value) is tuple:
            for one in <tuple> value:
                if type(one) is Exact:
                    return tuple([(<Exact> part).show(field.name) if type(part) is Exact else part
                                  for part, field in zip(value, self.codec.fields)])
        return value

    def key_text(self, idx_t key):
        """Returns the value of a key in words, also where user code sees nothing of it."""
        return repr(self.exact_key(key))

    cdef object exact_key(self, idx_t key):
        """Returns the value of a key, a tuple for several columns, with Exact where user code sees something else."""
        cdef TimerQueue timers
        cdef Py_ssize_t i
        cdef list ids
        value = self.key_values.get(key, self)
        if value is self and self.coming is not None:
            self.known_keys(self.coming)
            self.coming = None
            value = self.key_values.get(key, self)
        if value is self:
            ids = [key]
            for timers in (self.timers.event_timers, self.timers.processing_timers):
                for i in range(min(timers.due_n - timers.due_at, KEYS_AHEAD)):
                    if timers.is_there(timers.due + timers.due_at + i):     # else its key may be gone
                        ids.append(timers.due[timers.due_at + i].key)
            self.known_keys(np.array(ids, dtype=np.int32))
            value = self.key_values[key]
        return value

    cdef object blame(self, object what, object where, problem):
        """Returns the error to raise for a problem in user code; where: the slot of the window, or words."""
        if isinstance(problem, UserFunctionError):
            return problem
        if isinstance(where, int):
            where = self.where(where)
        return UserFunctionError(f"{what}: for {where}: {type(problem).__name__}: {problem}")

    def key_and_window(self, idx_t slot):
        """Returns the key and the window of a row as user code sees them."""
        return self.key_value(self.table.at(slot).head.key), self.window_of(slot)

    def where(self, idx_t slot):
        """Returns the key and the window of a row in words."""
        return f"key {self.key_text(self.table.at(slot).head.key)}, {self.window_of(slot)}"
