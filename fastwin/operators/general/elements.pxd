# Elements, keys and windows as user code sees them.
from fastwin.columns.row cimport Row, Rows
from fastwin.columns.handedrows cimport HandedRows
from fastwin.core.typedefs cimport idx_t, ts_t
from fastwin.core.windows.timerservice cimport TimerService
from fastwin.core.windows.windowtable cimport Window, WindowTable

cdef class Elements:
    cdef readonly WindowTable table
    cdef TimerService timers
    cdef object codec
    cdef dict key_values
    cdef object coming              # the ids of the keys of the current call, int32[n], until one of them is asked for
    cdef Rows rows
    cdef Py_ssize_t row_at
    cdef Row row
    cdef HandedRows handed          # what windows make rows with; None: they make none
    cdef list sparse                # Rows of earlier calls of which few are left
    cdef list thin                  # those among them of which windows keep some
    cdef Py_ssize_t thin_n          # how many rows they have
    cdef ts_t cached_start, cached_end
    cdef object cached_window

    cdef Row element(self, Py_ssize_t i)
    cdef int _leave_row(self) except -1
    cdef object window_of(self, idx_t slot)
    cdef object window_object(self, ts_t start, ts_t end)
    cdef object key_value(self, idx_t key)
    cdef object exact_key(self, idx_t key)
    cdef object blame(self, object what, object where, problem)
