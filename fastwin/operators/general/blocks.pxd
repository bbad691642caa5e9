# Elements of which the rows are fetched together.
from fastwin.core.typedefs cimport idx_t, int64_t, ts_t, uint32_t
from fastwin.core.windows.windowtable cimport WindowTable
from fastwin.operators.general.assigners cimport AssignerNode

cdef enum:
    BLOCK = 32                  # elements of one


cdef class Block:
    cdef WindowTable table
    cdef AssignerNode assigner
    cdef ts_t[BLOCK] starts, ends       # of the latest window of each element; of single windows only
    cdef uint32_t[BLOCK] hashes         # of it and the key
    cdef idx_t[BLOCK] slots             # its row, as far as that can be told by the hash; NONE for none

    cdef int foresee(self, const idx_t* ids, const int64_t* times, Py_ssize_t first, Py_ssize_t n) except -1
    cdef idx_t known(self, Py_ssize_t k, idx_t key) noexcept
    cdef bint is_settled(self, Py_ssize_t k, idx_t key, uint32_t flags, ts_t watermark) noexcept
