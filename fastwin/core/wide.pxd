# Loops over many ints, each compiled twice: as any processor takes them, and for those that take four at a time.
from fastwin.core.typedefs cimport idx_t, int64_t, uint64_t

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
    #include <immintrin.h>
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

    /* Where a number is among n others, in order; returns how often. Writes a place for each: to guess which ones are
       to be written would cost more. */
    static FASTWIN_ALWAYS_INLINE ptrdiff_t fastwin_where_from(ptrdiff_t i, ptrdiff_t count, const int32_t *numbers,
                                                              ptrdiff_t n, int32_t number, int32_t *places) {
        for (; i < n; i++) {
            places[count] = (int32_t)i;
            count += numbers[i] == number;
        }
        return count;
    }
    #if defined(__GNUC__) && defined(__x86_64__)
    FASTWIN_WIDE static ptrdiff_t fastwin_wide_where(const int32_t *numbers, ptrdiff_t n, int32_t number,
                                                      int32_t *places) {
        /* Which of four there are, a byte each, by their marks. */
        static const uint32_t some[16] = {
            0, 0x00, 0x01, 0x0100, 0x02, 0x0200, 0x0201, 0x020100,
            0x03, 0x0300, 0x0301, 0x030100, 0x0302, 0x030200, 0x030201, 0x03020100};
        static const uint8_t counts[16] = {0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4};
        const __m128i sought = _mm_set1_epi32(number);
        ptrdiff_t i = 0, count = 0;
        for (; i + 4 <= n; i += 4) {
            const __m128i four = _mm_loadu_si128((const __m128i *)(numbers + i));
            const int marks = _mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(four, sought)));
            const __m128i found = _mm_cvtepu8_epi32(_mm_cvtsi32_si128((int)some[marks]));
            _mm_storeu_si128((__m128i *)(places + count), _mm_add_epi32(found, _mm_set1_epi32((int)i)));
            count += counts[marks];
        }
        return fastwin_where_from(i, count, numbers, n, number, places);
    }
    #else
    #define fastwin_wide_where(numbers, n, number, places) fastwin_where_from(0, 0, numbers, n, number, places)
    #endif
    static inline ptrdiff_t fastwin_where(const int32_t *numbers, ptrdiff_t n, int32_t number, int32_t *places) {
        return FASTWIN_IS_WIDE ? fastwin_wide_where(numbers, n, number, places)
                               : fastwin_where_from(0, 0, numbers, n, number, places);
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
    # Fills in where a number is among n, in order, and returns how often. There is room for n places.
    Py_ssize_t places_of "fastwin_where"(const idx_t* numbers, Py_ssize_t n, idx_t number,
                                         idx_t* places) noexcept nogil
    # Whether all are in [first, last], which are less than 2**63 apart.
    bint lie_within "fastwin_lie_within"(const int64_t* values, Py_ssize_t n, int64_t first,
                                         int64_t last) noexcept nogil
    # Whether all are one.
    bint all_are "fastwin_all_are"(const int64_t* values, Py_ssize_t n, int64_t one) noexcept nogil
    # Sums of the halves of up to 2**31 ints, each 2**63 more: they do not carry, so that several are added at a time.
    void add_halves "fastwin_add_halves"(const int64_t* values, Py_ssize_t n, uint64_t* low,
                                         uint64_t* high) noexcept nogil
