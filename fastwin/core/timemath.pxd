# Floor division of times: C's own is wrong before 1970, and a zero divisor kills the process.
from fastwin._typedefs cimport ts_t


cdef inline ts_t floor_to(ts_t t, ts_t step, ts_t offset) noexcept nogil:
    # The largest offset + k * step <= t; step > 0, and t - offset does not overflow.
    cdef ts_t rest = (t - offset) % step
    return t - rest - (step if rest < 0 else 0)
