# Arithmetic on times that neither overflows nor goes wrong before 1970.
cimport cython

from fastwin.core.typedefs cimport int64_t, ts_t, uint64_t
from fastwin.core.wide cimport lie_within

cdef enum:
    TIME_BITS = 61              # kernels take times and durations within +-2**61 ms: sums of two stay in int64

cdef extern from *:
    """
    #define FASTWIN_MAX_TIME INT64_MAX
    #define FASTWIN_NO_TIME INT64_MIN
    """
    const ts_t MAX_TIME "FASTWIN_MAX_TIME"      # the end of a window without an end, and the last watermark
    const ts_t NO_TIME "FASTWIN_NO_TIME"        # no watermark yet, no timestamp
    bint add_overflows "__builtin_add_overflow"(ts_t a, ts_t b, ts_t* total) noexcept nogil


cdef inline bint is_in_bounds(int64_t t) noexcept nogil:
    return -((<int64_t> 1) << TIME_BITS) <= t <= (<int64_t> 1) << TIME_BITS


cdef inline bint are_within(const int64_t[::1] times, int64_t first, int64_t last) noexcept nogil:
    """Whether all times are in [first, last], which are less than 2**63 apart."""
    return not times.shape[0] or lie_within(&times[0], times.shape[0], first, last)


cdef inline bint are_times(const ts_t* times, Py_ssize_t n) noexcept nogil:
    """Whether all of n times are within +-2**61 ms."""
    return lie_within(times, n, -((<int64_t> 1) << TIME_BITS), (<int64_t> 1) << TIME_BITS)


cdef inline int check_time(str name, int64_t time) except -1:
    """Raises ValueError unless a time is within +-2**61 ms."""
    if not is_in_bounds(time):
        raise ValueError(f"{name}: must be within +-2**{TIME_BITS} ms, got {time}")
    return 0


cdef inline int check_times(str name, const int64_t[::1] times) except -1:
    """Raises ValueError unless all times are within +-2**61 ms."""
    cdef Py_ssize_t i
    if not are_within(times, -((<int64_t> 1) << TIME_BITS), (<int64_t> 1) << TIME_BITS):
        for i in range(times.shape[0]):
            check_time(name, times[i])
    return 0


cdef inline int check_duration(str name, int64_t ms, int64_t least) except -1:
    """Raises ValueError unless a duration is at least ``least`` and at most 2**61 ms."""
    if not least <= ms <= (<int64_t> 1) << TIME_BITS:
        raise ValueError(f"{name}: must be at least {least} ms and at most 2**{TIME_BITS} ms, got {ms}")
    return 0


@cython.overflowcheck(False)
cdef inline uint64_t between(ts_t first, ts_t last) noexcept nogil:
    # last - first, where that may be beyond int64; first <= last.
    return <uint64_t> last - <uint64_t> first


cdef inline ts_t floor_to(ts_t t, ts_t step, ts_t offset) noexcept nogil:
    # The largest offset + k * step <= t; step > 0. C's own division is wrong before 1970.
    cdef ts_t rest = (t - offset) % step
    return t - rest - (step if rest < 0 else 0)


@cython.overflowcheck(False)
cdef inline bint is_past(ts_t last, ts_t lateness, ts_t watermark) noexcept nogil:
    # last + lateness <= watermark, where the sum may be beyond int64; lateness >= 0.
    return watermark >= last and <uint64_t> watermark - <uint64_t> last >= <uint64_t> lateness
