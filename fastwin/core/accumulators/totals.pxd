# Sums and means that the order of values and large values in between do not spoil: ints in 128 bits, floats in a pair
# of cells.
cimport cython
from libc.math cimport NAN, fabs, isfinite, isinf, isnan, ldexp
from libc.string cimport memcpy

from fastwin.core.memory.int128 cimport int128, uint128
from fastwin.core.typedefs cimport int64_t, uint64_t

cdef extern from *:
    """
    #include <stdint.h>
    #define FASTWIN_DOWN 0x1p-64
    #define FASTWIN_UP 0x1p+64
    /* A NaN whose last 51 bits and sign tell a number. */
    #define FASTWIN_BOX UINT64_C(0x7FF8000000000000)
    #define FASTWIN_BOXED UINT64_C(0x0007FFFFFFFFFFFF)
    #define FASTWIN_SIGN UINT64_C(0x8000000000000000)
    """
    const double DOWN "FASTWIN_DOWN"
    const double UP "FASTWIN_UP"
    const uint64_t BOX "FASTWIN_BOX"
    const uint64_t BOXED "FASTWIN_BOXED"
    const uint64_t SIGN "FASTWIN_SIGN"
    int leading_zeros "__builtin_clzll"(uint64_t word) noexcept nogil

# How the two cells of a float sum are to be read:
# - The first is finite: the sum is first + second. The second gathers what rounding took from the first.
# - The first is a NaN, the second finite: all values were finite, and the sum is too large for a double. The second is
#   the sum times 2**-64, so that it can come back. What rounding took from it is in the NaN, with 41 bits.
# - Else a value was NaN or infinite: the first is the result.

cdef struct Wide:
    double high                 # times 2**64
    double low                  # what rounding has taken from it


cdef inline bint has_lost(const double* total) noexcept nogil:
    """Whether a value was not finite."""
    return isinf(total[0]) or (isnan(total[0]) and not isfinite(total[1]))


@cython.overflowcheck(False)
cdef inline Wide widen(const double* total) noexcept nogil:
    """Reads the cells of a sum of finite values."""
    cdef Wide wide
    cdef uint64_t bits
    if isfinite(total[0]):
        # So small a number would lose bits when it is scaled.
        wide.high = total[0] * DOWN if fabs(total[0]) >= ldexp(1.0, -900) else 0.0
        wide.low = total[1] if wide.high != 0.0 else total[1] + total[0]
        return wide
    memcpy(&bits, total, 8)
    bits = (bits & SIGN) | (bits & BOXED) << 12
    memcpy(&wide.low, &bits, 8)
    wide.high = total[1]
    return wide


cdef inline void store_wide(double* total, Wide wide) noexcept nogil:
    cdef uint64_t bits
    if fabs(wide.high) < ldexp(1.0, 960):
        total[0], total[1] = wide.high * UP, wide.low
        return
    memcpy(&bits, &wide.low, 8)
    bits = (bits & SIGN) | BOX | (bits >> 12 & BOXED)
    memcpy(total, &bits, 8)
    total[1] = wide.high


cdef inline void add_beyond(double* total, const double* other) noexcept nogil:
    """Adds a sum where the plain one is not finite."""
    cdef Wide sum, more
    cdef double after, part
    if has_lost(total) or has_lost(other):
        total[0] = (total[0] if has_lost(total) else 0.0) + (other[0] if has_lost(other) else 0.0)
        total[1] = NAN
        return
    sum, more = widen(total), widen(other)
    after = sum.high + more.high
    part = after - sum.high
    sum.low += more.low + ((sum.high - (after - part)) + (more.high - part)) * UP
    sum.high = after
    store_wide(total, sum)


cdef inline void add_float(char* cells, double value) noexcept nogil:
    # Knuth's two-sum.
    cdef double* total = <double*> cells
    cdef double before = total[0], after = before + value, part = after - before
    cdef double[2] other
    if isfinite(part):          # so is the sum
        total[0] = after
        total[1] += (before - (after - part)) + (value - part)
    else:
        other[0], other[1] = value, 0.0 if isfinite(value) else NAN
        add_beyond(total, other)


cdef inline void add_floats(char* cells, const char* others) noexcept nogil:
    """Adds the two cells of another sum."""
    cdef double* total = <double*> cells
    cdef const double* other = <const double*> others
    cdef double before = total[0], value = other[0], after = before + value, part = after - before
    if isfinite(part):          # so is the sum
        total[0] = after
        total[1] += other[1] + ((before - (after - part)) + (value - part))
    else:
        add_beyond(total, other)


cdef inline double float_sum(const char* cells) noexcept nogil:
    cdef const double* total = <const double*> cells
    cdef Wide wide
    if isfinite(total[0]):
        return total[0] + total[1]
    if has_lost(total):
        return total[0]
    wide = widen(total)
    return (wide.high + wide.low * DOWN) * UP


@cython.cdivision(True)
cdef inline double float_mean(const char* cells, int64_t count) noexcept nogil:
    """The sum over the count, which is not 0; it may be finite where the sum is too large for a double."""
    cdef double found = float_sum(cells)
    cdef Wide wide
    if isfinite(found) or has_lost(<const double*> cells):
        return found / <double> count
    wide = widen(<const double*> cells)
    return (wide.high + wide.low * DOWN) / <double> count * UP


cdef inline int bits_in(uint128 number) noexcept nogil:
    """How many bits a number has that is not 0."""
    cdef uint64_t high = <uint64_t> (number >> 64)
    return 128 - leading_zeros(high) if high else 64 - leading_zeros(<uint64_t> number)


@cython.cdivision(True)
@cython.overflowcheck(False)
cdef inline double int_mean(int128 total, uint64_t count) noexcept nogil:
    """The double nearest to the quotient, of two as near the even one. count: not 0."""
    cdef bint negative = total < 0
    cdef uint128 size = <uint128> 0 - <uint128> total if negative else <uint128> total, whole
    cdef int shift
    cdef double found
    if size >> 53 == 0 and count >> 53 == 0:    # both are doubles: dividing them rounds once
        return <double> <int64_t> total / <double> count
    # 55 bits of quotient or more; what is behind them makes the last one odd. So the conversion alone rounds.
    shift = max(55 + bits_in(count) - bits_in(size), 0) if size else 0
    size = size << shift
    whole = size // count
    if whole * count != size:
        whole = whole | 1
    found = ldexp(<double> whole, -shift)
    return -found if negative else found
