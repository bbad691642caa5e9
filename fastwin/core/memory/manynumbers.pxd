# The sum of many ints, the lowest and the highest of many floats, several at a time.
cimport cython

from fastwin.core.memory.int128 cimport int128
from fastwin.core.typedefs cimport int64_t, uint64_t
from fastwin.core.wide cimport add_halves

cdef extern from *:
    """
    /* Returns 0 where a value is not finite, or where the lowest or the highest is a zero, whose sign would count.
       Four at a time, so that they do not wait for each other. */
    static inline int fastwin_float_bounds(const double *values, ptrdiff_t n, double *low, double *high) {
        double lowest[4], highest[4], none[4];
        ptrdiff_t i = 0;
        for (int k = 0; k < 4; k++)
            lowest[k] = *low, highest[k] = *high, none[k] = 0.0;
        for (; i + 4 <= n; i += 4)
            for (int k = 0; k < 4; k++) {
                const double value = values[i + k];
                lowest[k] = value < lowest[k] ? value : lowest[k];
                highest[k] = value > highest[k] ? value : highest[k];
                none[k] += value - value;       /* NaN from then on */
            }
        for (; i < n; i++) {
            lowest[0] = values[i] < lowest[0] ? values[i] : lowest[0];
            highest[0] = values[i] > highest[0] ? values[i] : highest[0];
            none[0] += values[i] - values[i];
        }
        for (int k = 1; k < 4; k++) {
            lowest[0] = lowest[k] < lowest[0] ? lowest[k] : lowest[0];
            highest[0] = highest[k] > highest[0] ? highest[k] : highest[0];
            none[0] += none[k];
        }
        if (none[0] != 0.0 || lowest[0] == 0.0 || highest[0] == 0.0)
            return 0;
        *low = lowest[0], *high = highest[0];
        return 1;
    }
    """
    # The same for finite floats, if low and high are; returns whether it was done, and not where a zero is one of them.
    bint float_bounds "fastwin_float_bounds"(const double* values, Py_ssize_t n, double* low,
                                             double* high) noexcept nogil


@cython.overflowcheck(False)        # of 128 bits, which Cython cannot check
cdef inline int128 int_total(const int64_t* values, Py_ssize_t n) noexcept nogil:
    """Returns the sum of up to 2**31 ints."""
    cdef uint64_t low, high
    add_halves(values, n, &low, &high)
    return (<int128> high << 32) + <int128> low - (<int128> n << 63)
