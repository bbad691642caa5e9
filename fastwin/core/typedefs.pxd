# The one home of the C types that the kernels share.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

ctypedef int64_t ts_t       # event time or duration: milliseconds
ctypedef int32_t idx_t      # dense key id, or slot of a row

cdef enum:
    NONE = -1               # no key, no slot
