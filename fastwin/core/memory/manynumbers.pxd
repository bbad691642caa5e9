# The sum, the lowest and the highest of many numbers, several at a time.
cimport cython

from fastwin.core.memory.int128 cimport int128
from fastwin.core.typedefs cimport int64_t, uint64_t

cdef extern from *:
    """
    #include <stdint.h>
    #if defined(__GNUC__)
    #define FASTWIN_ALWAYS_INLINE inline __attribute__((always_inline))
    #else
    #define FASTWIN_ALWAYS_INLINE inline
    #endif

    static FASTWIN_ALWAYS_INLINE void fastwin_int_bounds(const int64_t *values, ptrdiff_t n, int64_t *low,
                                                         int64_t *high) {
        int64_t lowest = *low, highest = *high;
        for (ptrdiff_t i = 0; i < n; i++) {
            lowest = values[i] < lowest ? values[i] : lowest;
            highest = values[i] > highest ? values[i] : highest;
        }
        *low = lowest, *high = highest;
    }
    static inline void fastwin_narrow_bounds(const int64_t *values, ptrdiff_t n, int64_t *low, int64_t *high) {
        fastwin_int_bounds(values, n, low, high);
    }
    #if defined(__GNUC__) && defined(__x86_64__)
    /* Four at a time, which not each processor of its kind can compare. */
    __attribute__((target("avx2"), noinline, unused))
    static void fastwin_wide_bounds(const int64_t *values, ptrdiff_t n, int64_t *low, int64_t *high) {
        fastwin_int_bounds(values, n, low, high);
    }
    #define FASTWIN_IS_WIDE __builtin_cpu_supports("avx2")
    #else
    #define FASTWIN_IS_WIDE 0
    #define fastwin_wide_bounds fastwin_narrow_bounds
    #endif
    static inline void fastwin_widen_bounds(const int64_t *values, ptrdiff_t n, int64_t *low, int64_t *high) {
        if (n >= 16 && FASTWIN_IS_WIDE)
            fastwin_wide_bounds(values, n, low, high);
        else
            fastwin_narrow_bounds(values, n, low, high);
    }

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
    # Lowers the lowest and raises the highest of ints by n more.
    void int_bounds "fastwin_widen_bounds"(const int64_t* values, Py_ssize_t n, int64_t* low,
                                           int64_t* high) noexcept nogil
    # The same for finite floats, if low and high are; returns whether it was done, and not where a zero is one of them.
    bint float_bounds "fastwin_float_bounds"(const double* values, Py_ssize_t n, double* low,
                                             double* high) noexcept nogil


@cython.overflowcheck(False)
cdef inline int128 int_total(const int64_t* values, Py_ssize_t n) noexcept nogil:
    """Returns the sum of up to 2**31 ints: halves that do not carry, so that several are added at a time."""
    cdef uint64_t low = 0, high = 0, value
    cdef Py_ssize_t i
    for i in range(n):
        value = <uint64_t> values[i] ^ (<uint64_t> 1 << 63)
        low += value & <uint64_t> 0xFFFFFFFF
        high += value >> 32
    return (<int128> high << 32) + <int128> low - (<int128> n << 63)
