# Loops over many ints, each compiled twice: as any processor takes them, and for those that take four at a time.
from fastwin.core.typedefs cimport int64_t, uint64_t

cdef extern from *:
    """
    #include <stddef.h>
    #include <stdint.h>
    #if defined(__GNUC__)
    #define FASTWIN_ALWAYS_INLINE inline __attribute__((always_inline))
    #else
    #define FASTWIN_ALWAYS_INLINE inline
    #endif
    #if defined(__GNUC__) && defined(__x86_64__)
    #define FASTWIN_WIDE __attribute__((target("avx2"), noinline, unused))
    #define FASTWIN_IS_WIDE __builtin_cpu_supports("avx2")
    #else
    #define FASTWIN_WIDE FASTWIN_ALWAYS_INLINE
    #define FASTWIN_IS_WIDE 0
    #endif
    #define FASTWIN_MANY 16         /* fewer are not worth the call */

    static FASTWIN_ALWAYS_INLINE void fastwin_bounds(const int64_t *values, ptrdiff_t n, int64_t *low, int64_t *high) {
        int64_t lowest = *low, highest = *high;
        for (ptrdiff_t i = 0; i < n; i++) {
            lowest = values[i] < lowest ? values[i] : lowest;
            highest = values[i] > highest ? values[i] : highest;
        }
        *low = lowest, *high = highest;
    }
    FASTWIN_WIDE static void fastwin_wide_bounds(const int64_t *values, ptrdiff_t n, int64_t *low, int64_t *high) {
        fastwin_bounds(values, n, low, high);
    }
    static inline void fastwin_int_bounds(const int64_t *values, ptrdiff_t n, int64_t *low, int64_t *high) {
        if (n >= FASTWIN_MANY && FASTWIN_IS_WIDE)
            fastwin_wide_bounds(values, n, low, high);
        else
            fastwin_bounds(values, n, low, high);
    }

    /* One of two differences is negative beyond a limit. Without comparisons, several are looked at together. */
    static FASTWIN_ALWAYS_INLINE int fastwin_within(const int64_t *values, ptrdiff_t n, int64_t first, int64_t last) {
        uint64_t signs = 0;
        for (ptrdiff_t i = 0; i < n; i++)
            signs |= ((uint64_t)values[i] - (uint64_t)first) | ((uint64_t)last - (uint64_t)values[i]);
        return signs >> 63 == 0;
    }
    FASTWIN_WIDE static int fastwin_wide_within(const int64_t *values, ptrdiff_t n, int64_t first, int64_t last) {
        return fastwin_within(values, n, first, last);
    }
    static inline int fastwin_lie_within(const int64_t *values, ptrdiff_t n, int64_t first, int64_t last) {
        return n >= FASTWIN_MANY && FASTWIN_IS_WIDE ? fastwin_wide_within(values, n, first, last)
                                                    : fastwin_within(values, n, first, last);
    }

    static FASTWIN_ALWAYS_INLINE int fastwin_equal(const int64_t *values, ptrdiff_t n, int64_t one) {
        int64_t other = 0;
        for (ptrdiff_t i = 0; i < n; i++)
            other |= values[i] ^ one;
        return other == 0;
    }
    FASTWIN_WIDE static int fastwin_wide_equal(const int64_t *values, ptrdiff_t n, int64_t one) {
        return fastwin_equal(values, n, one);
    }
    static inline int fastwin_all_are(const int64_t *values, ptrdiff_t n, int64_t one) {
        return n >= FASTWIN_MANY && FASTWIN_IS_WIDE ? fastwin_wide_equal(values, n, one)
                                                    : fastwin_equal(values, n, one);
    }

    static FASTWIN_ALWAYS_INLINE void fastwin_halves(const int64_t *values, ptrdiff_t n, uint64_t *low,
                                                     uint64_t *high) {
        uint64_t lows = 0, highs = 0;
        for (ptrdiff_t i = 0; i < n; i++) {
            const uint64_t value = (uint64_t)values[i] ^ UINT64_C(1) << 63;
            lows += value & UINT64_C(0xFFFFFFFF);
            highs += value >> 32;
        }
        *low = lows, *high = highs;
    }
    FASTWIN_WIDE static void fastwin_wide_halves(const int64_t *values, ptrdiff_t n, uint64_t *low, uint64_t *high) {
        fastwin_halves(values, n, low, high);
    }
    static inline void fastwin_add_halves(const int64_t *values, ptrdiff_t n, uint64_t *low, uint64_t *high) {
        if (n >= FASTWIN_MANY && FASTWIN_IS_WIDE)
            fastwin_wide_halves(values, n, low, high);
        else
            fastwin_halves(values, n, low, high);
    }
    """
    # Lowers the lowest and raises the highest by n more.
    void int_bounds "fastwin_int_bounds"(const int64_t* values, Py_ssize_t n, int64_t* low,
                                         int64_t* high) noexcept nogil
    # Whether all are in [first, last], which are less than 2**63 apart.
    bint lie_within "fastwin_lie_within"(const int64_t* values, Py_ssize_t n, int64_t first,
                                         int64_t last) noexcept nogil
    # Whether all are one.
    bint all_are "fastwin_all_are"(const int64_t* values, Py_ssize_t n, int64_t one) noexcept nogil
    # Sums of the halves of up to 2**31 ints, each 2**63 more: they do not carry, so that several are added at a time.
    void add_halves "fastwin_add_halves"(const int64_t* values, Py_ssize_t n, uint64_t* low,
                                         uint64_t* high) noexcept nogil
