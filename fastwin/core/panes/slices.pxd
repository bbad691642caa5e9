# Which slice a time is in.
cimport cython
from libc.string cimport memmove, memset

from fastwin.core.timemath cimport are_within, floor_to
from fastwin.core.typedefs cimport idx_t, int64_t, ts_t, uint64_t
from fastwin.core.wide cimport lie_within, places_of

cdef enum:
    NEAR_BITS = 51
    NEAR = 1125899906842624     # 2**50 ms
    NEAR_SLICES = 32            # that number_slices() tells apart
    SHORT = 35184372088832      # 2**45 ms, a slide: so many of them are near
    AT_ONCE = 512               # numbers that divide() takes
    FEW_SLICES = 6              # that it looks for one by one
    LANES = 4                   # parts of them that it takes in turns
    LANE = 128                  # AT_ONCE of LANES

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    /* Numbers near zero as doubles and back, by adding 2**52 + 2**51: several at a time, where the processor's own
       conversions would go one by one. To add and take away this much rounds to a whole number. */
    #define FASTWIN_MIDDLE 6755399441055744.0
    static inline double fastwin_near(int64_t number) {
        double found;
        number += INT64_C(0x4338000000000000);
        memcpy(&found, &number, 8);
        return found - FASTWIN_MIDDLE;
    }
    static inline int64_t fastwin_whole(double number) {
        int64_t found;
        number += FASTWIN_MIDDLE;
        memcpy(&found, &number, 8);
        return found - INT64_C(0x4338000000000000);
    }
    static inline double fastwin_rounded(double number) {
        return (number + FASTWIN_MIDDLE) - FASTWIN_MIDDLE;
    }
    """
    double near_zero "fastwin_near"(int64_t number) noexcept nogil
    int64_t whole "fastwin_whole"(double number) noexcept nogil
    double rounded "fastwin_rounded"(double number) noexcept nogil

cdef struct Slicer:
    ts_t slide, offset
    ts_t rest                   # where in a slide a window ends; 0 where none does in between
    ts_t start, end             # the slice found last
    const ts_t* bounds          # of irregular slices, ascending; NULL: they are on the grid
    Py_ssize_t at, last         # where in `bounds` the slice found last starts, and the last one
    double per_ms               # how many of them a millisecond has, on average


cdef inline Slicer slicer_on(ts_t slide, ts_t rest, ts_t offset) noexcept:
    """Returns a slicer of a grid."""
    cdef Slicer slicer
    slicer.slide, slicer.rest, slicer.offset = slide, rest, offset
    slicer.bounds = NULL
    slicer.start = slicer.end = slicer.at = slicer.last = 0
    slicer.per_ms = 0
    return slicer


cdef inline Slicer slicer_of(const int64_t[::1] bounds) noexcept:
    """Returns a slicer of irregular slices. bounds: at least two, ascending; they outlive it."""
    cdef Slicer slicer
    cdef Py_ssize_t last = bounds.shape[0] - 1
    slicer.slide, slicer.offset, slicer.rest, slicer.start, slicer.end, slicer.at = 1, 0, 0, 0, 0, 0
    slicer.bounds, slicer.last = &bounds[0], last - 1
    slicer.per_ms = <double> last / (<double> bounds[last] - <double> bounds[0])
    return slicer


cdef inline Slicer slicer_over(const int64_t[::1] times, ts_t slide, ts_t rest, ts_t offset,
                               const int64_t[::1] bounds) except *:
    """Returns a slicer for these times: of a grid, or of irregular slices if ``bounds`` is not None.

    Raises ValueError for times outside of the bounds.
    """
    if bounds is None or not times.shape[0]:
        return slicer_on(slide, rest, offset)
    if bounds.shape[0] < 2 or not are_within(times, bounds[0], bounds[bounds.shape[0] - 1] - 1):
        raise ValueError("bounds: there are times before the first or behind the last one")
    return slicer_of(bounds)


cdef inline ts_t slice_in(Slicer* slicer, ts_t t) noexcept nogil:
    """Returns the start of the irregular slice of a time: nearly where it would be if all were equally long.

    From there the steps double, and what they leap over is halved: O(1), and O(log slices) where some are far longer.
    """
    cdef Py_ssize_t at = <Py_ssize_t> ((<double> t - <double> slicer.bounds[0]) * slicer.per_ms)
    cdef Py_ssize_t last = slicer.last, reach = 1, behind, middle
    at = max(<Py_ssize_t> 0, min(at, last))
    behind = at + 1
    while at > 0 and slicer.bounds[at] > t:
        behind, at = at, max(<Py_ssize_t> 0, at - reach)
        reach += reach
    while behind <= last and slicer.bounds[behind] <= t:
        at, behind = behind, min(last + 1, behind + reach)
        reach += reach
    while behind - at > 1:
        middle = (at + behind) >> 1
        if slicer.bounds[middle] <= t:
            at = middle
        else:
            behind = middle
    slicer.at, slicer.start, slicer.end = at, slicer.bounds[at], slicer.bounds[at + 1]
    return slicer.start


cdef inline ts_t slice_of(Slicer* slicer, ts_t t) noexcept nogil:
    """Returns the start of the slice of a time within the bounds of timemath."""
    if slicer.start <= t < slicer.end:      # mostly the slice of the element before
        return slicer.start
    if slicer.bounds != NULL:
        return slice_in(slicer, t)
    slicer.start = floor_to(t, slicer.slide, slicer.offset)
    slicer.end = slicer.start + slicer.slide
    if slicer.rest:
        if t >= slicer.start + slicer.rest:
            slicer.start = slicer.start + slicer.rest
        else:
            slicer.end = slicer.start + slicer.rest
    return slicer.start


cdef inline bint are_in_one(const Slicer* slicer, const ts_t* times, Py_ssize_t n) noexcept nogil:
    """Whether all times are in the slice found last."""
    return slicer.start < slicer.end and lie_within(times, n, slicer.start, slicer.end - 1)


@cython.overflowcheck(False)
cdef inline bint are_near(const Slicer* slicer, const ts_t* times, Py_ssize_t n) noexcept nogil:
    """Whether a double holds how far each time is from the offset."""
    cdef uint64_t beyond = 0
    cdef Py_ssize_t i
    for i in range(n):
        beyond |= <uint64_t> (times[i] - slicer.offset + NEAR) >> NEAR_BITS
    return beyond == 0


cdef inline void slices_of(Slicer* slicer, const ts_t* times, Py_ssize_t n, ts_t* starts) noexcept nogil:
    """Fills in the starts of the slices of n times within the bounds of timemath; n: at least one."""
    cdef Py_ssize_t i
    cdef ts_t slide = slicer.slide, offset = slicer.offset
    cdef double per_ms, length, near, rest
    if are_in_one(slicer, times, n):
        for i in range(n):
            starts[i] = slicer.start
        return
    if slicer.bounds != NULL or slicer.rest or slide > <ts_t> NEAR or not are_near(slicer, times, n):
        for i in range(n):
            starts[i] = slice_of(slicer, times[i])
        return
    # Without a division and without a branch: times that jump between slices would have both mispredicted.
    length = <double> slide
    per_ms = 1.0 / length
    for i in range(n):
        near = near_zero(times[i] - offset)
        rest = near - rounded(near * per_ms) * length       # from the nearest start, which may be the next one
        rest = rest + (length if rest < 0.0 else 0.0)
        starts[i] = times[i] - whole(rest)
    slicer.start = starts[n - 1]
    slicer.end = slicer.start + slide


cdef struct Numbered:           # slices of some times, by numbers below NEAR_SLICES
    idx_t first, last           # the numbers of the first and of the last one
    ts_t[NEAR_SLICES] starts    # of those that have times


@cython.cdivision(True)
@cython.overflowcheck(False)
cdef inline bint number_slices(Slicer* slicer, const ts_t* times, Py_ssize_t n, ts_t low, ts_t high, idx_t* numbers,
                               Numbered* found) noexcept nogil:
    """Numbers n times by their slices, if these are NEAR_SLICES neighbours or fewer; returns whether they are.

    times: within the bounds of timemath, from low to high; n: at least one.
    """
    cdef Py_ssize_t i, first
    cdef ts_t begin = slice_of(slicer, times[0]), span
    cdef double per_ms
    if slicer.bounds != NULL:
        found.first, found.last = NEAR_SLICES - 1, 0
        first = max(slicer.at - NEAR_SLICES // 2, <Py_ssize_t> 0)
        for i in range(n):
            slice_of(slicer, times[i])
            if not first <= slicer.at < first + NEAR_SLICES:
                return False
            numbers[i] = <idx_t> (slicer.at - first)
            found.starts[numbers[i]] = slicer.start
            found.first, found.last = min(found.first, numbers[i]), max(found.last, numbers[i])
        return True
    if slicer.rest or slicer.slide > <ts_t> SHORT:
        return False
    span = slicer.slide * NEAR_SLICES
    begin -= span // 2
    if low < begin or high >= begin + span:
        return False
    # From the middle of a millisecond on: no rounding reaches the next slice.
    per_ms = 1.0 / <double> slicer.slide
    for i in range(n):
        numbers[i] = <idx_t> ((near_zero(times[i] - begin) + 0.5) * per_ms)
    for i in range(NEAR_SLICES):
        found.starts[i] = begin + i * slicer.slide
    found.first = <idx_t> ((near_zero(low - begin) + 0.5) * per_ms)
    found.last = <idx_t> ((near_zero(high - begin) + 0.5) * per_ms)
    return True


cdef inline void divide(const idx_t* numbers, Py_ssize_t n, idx_t first, idx_t last, idx_t[AT_ONCE]* picked,
                        idx_t* counts) noexcept nogil:
    """Lists the places of each of some numbers, from ``first`` to ``last``, among up to AT_ONCE, and counts them."""
    cdef idx_t[NEAR_SLICES][LANES] found
    cdef Py_ssize_t part = (n + LANES - 1) // LANES, lane, i, at
    cdef idx_t number, count
    if last - first < FEW_SLICES:
        for number in range(first, last + 1):
            counts[number] = <idx_t> places_of(numbers, n, number, picked[number])
        return
    # In turns for each part, because a place would wait for the count that the one before has left.
    memset(found, 0, sizeof(found))
    for i in range(part):
        for lane in range(LANES):
            at = lane * part + i
            if at < n:
                number = numbers[at]
                count = found[number][lane]
                picked[number][lane * LANE + count] = <idx_t> at
                found[number][lane] = count + 1
    for number in range(first, last + 1):
        count = found[number][0]
        for lane in range(1, LANES):
            if found[number][lane]:
                memmove(&picked[number][count], &picked[number][lane * LANE], found[number][lane] * sizeof(idx_t))
                count += found[number][lane]
        counts[number] = count
