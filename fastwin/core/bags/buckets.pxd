# The buckets of a quantile: each is 2 * error / (1 - error) wider than the one before it. A bucket's number is 0 for
# numbers nearer to zero than SMALLEST, from 1 up for larger ones, below for negative ones; and these.
cimport cython
from libc.math cimport ceil, fabs, isnan, log, log1p

from fastwin.core.typedefs cimport int64_t
# Its block of C comes before the one here, which needs what is defined there.
from fastwin.core.wide cimport int_bounds  # no-cython-lint

cdef extern from *:
    """
    #include <float.h>
    #include <string.h>
    #define FASTWIN_FRACTION UINT64_C(0x000FFFFFFFFFFFFF)
    #define FASTWIN_LEAST UINT64_C(0x3FE6A09E667F3BCD)          /* the root of 1/2 */
    #define FASTWIN_TO_ONE UINT64_C(0x00095F619980C433)         /* from there to 1 */
    #define FASTWIN_WHOLE UINT64_C(0x4330000000000000)          /* 2**52: the last bits are a whole number */
    #define FASTWIN_BIAS 4503599627371519.0                     /* 2**52 + 1023 */

    /* middle + log(size) * scale. A size is 2**e * m, m from the root of 1/2 to that of 2; log(m) is a series in
       s = (m - 1) / (m + 1). Without tables and branches, several are taken together. */
    static FASTWIN_ALWAYS_INLINE void fastwin_places(const double *values, ptrdiff_t n, double scale, double octave,
                                                     double middle, double *places) {
        for (ptrdiff_t i = 0; i < n; i++) {
            uint64_t bits, whole;
            double exponent, m, s, z, sum;
            memcpy(&bits, values + i, 8);
            bits = (bits & (UINT64_MAX >> 1)) + FASTWIN_TO_ONE;
            whole = (bits >> 52) | FASTWIN_WHOLE;
            memcpy(&exponent, &whole, 8);
            bits = (bits & FASTWIN_FRACTION) + FASTWIN_LEAST;
            memcpy(&m, &bits, 8);
            s = (m - 1) / (m + 1);
            z = s * s;
            sum = z * (1.0 / 17) + 1.0 / 15;
            sum = z * sum + 1.0 / 13;
            sum = z * sum + 1.0 / 11;
            sum = z * sum + 1.0 / 9;
            sum = z * sum + 1.0 / 7;
            sum = z * sum + 1.0 / 5;
            sum = z * sum + 1.0 / 3;
            sum = z * sum + 1;
            places[i] = (exponent - FASTWIN_BIAS) * octave + middle + 2 * s * sum * scale;
        }
    }
    FASTWIN_WIDE static void fastwin_wide_places(const double *values, ptrdiff_t n, double scale, double octave,
                                                 double middle, double *places) {
        fastwin_places(values, n, scale, octave, middle, places);
    }
    static inline void fastwin_all_places(const double *values, ptrdiff_t n, double scale, double octave,
                                          double middle, double *places) {
        if (n >= FASTWIN_MANY && FASTWIN_IS_WIDE)
            fastwin_wide_places(values, n, scale, octave, middle, places);
        else
            fastwin_places(values, n, scale, octave, middle, places);
    }
    """
    void all_places "fastwin_all_places"(const double* values, Py_ssize_t n, double scale, double octave, double middle,
                                         double* places) noexcept nogil
    const double SMALLEST "DBL_MIN"
    const double LARGEST "DBL_MAX"
    const int64_t NAN_BUCKET "INT64_MAX"
    const int64_t HIGHEST_BUCKET "(INT64_MAX - 1)"      # infinity
    const int64_t LOWEST_BUCKET "INT64_MIN"             # and minus infinity

cdef enum:
    HIGHEST_EXPONENT = 710      # of e, what a double has

cdef struct Scale:
    double scale                # buckets for a factor of e
    double octave               # buckets for a factor of 2
    int64_t middle              # what is added to the number of a bucket of values above 0
    double doubt                # so near to a bound of a bucket, the logarithm of libm decides


@cython.cdivision(True)
cdef inline void set_scale(Scale* scale, double error) noexcept nogil:
    scale.scale = 1 / log1p(2 * error / (1 - error))
    scale.octave = log(2.0) * scale.scale
    scale.middle = <int64_t> ceil(HIGHEST_EXPONENT * scale.scale)
    scale.doubt = 1e-11 * scale.scale           # what is computed is off by less than a tenth of this


cdef inline int64_t bucket_at(const Scale* scale, double size, double place) noexcept nogil:
    """The bucket of a finite number from SMALLEST up, ``middle + ceil(log(size) * scale)``. place: by all_places()."""
    cdef int64_t found = <int64_t> place
    cdef double rest = place - <double> found
    if scale.doubt < rest < 1 - scale.doubt:
        return found + 1
    return scale.middle + <int64_t> ceil(log(size) * scale.scale)


cdef inline void find_buckets(const Scale* scale, const double* values, Py_ssize_t n, double* places,
                              int64_t* buckets) noexcept nogil:
    """Writes the buckets of some values. places: room for a number for each."""
    cdef Py_ssize_t i
    cdef double size
    all_places(values, n, scale.scale, scale.octave, <double> scale.middle, places)
    for i in range(n):
        size = fabs(values[i])
        if SMALLEST <= size <= LARGEST:
            buckets[i] = bucket_at(scale, size, places[i])
            if values[i] < 0:
                buckets[i] = -buckets[i]
        elif isnan(size):
            buckets[i] = NAN_BUCKET
        elif size > LARGEST:
            buckets[i] = HIGHEST_BUCKET if values[i] > 0 else LOWEST_BUCKET
        else:
            buckets[i] = 0
