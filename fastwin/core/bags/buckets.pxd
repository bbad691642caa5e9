# The buckets of a quantile: each is 2 * error / (1 - error) wider than the one before it. A bucket's number is 0 for
# numbers nearer to zero than SMALLEST, from 1 up for larger ones, below for negative ones; and these.
cimport cython
from libc.math cimport ceil, fabs, isnan, log, log1p
from libc.string cimport memcpy

from fastwin.core.typedefs cimport int64_t, uint64_t

cdef extern from *:
    """
    #include <float.h>
    #include <stdint.h>
    #define FASTWIN_FRACTION UINT64_C(0x000FFFFFFFFFFFFF)
    #define FASTWIN_ONE UINT64_C(0x3FF0000000000000)
    """
    const double SMALLEST "DBL_MIN"
    const double LARGEST "DBL_MAX"
    const int64_t NAN_BUCKET "INT64_MAX"
    const int64_t HIGHEST_BUCKET "(INT64_MAX - 1)"      # infinity
    const int64_t LOWEST_BUCKET "INT64_MIN"             # and minus infinity
    const uint64_t FRACTION "FASTWIN_FRACTION"
    const uint64_t ONE "FASTWIN_ONE"

cdef enum:
    HIGHEST_EXPONENT = 710      # of e, what a double has
    PART_BITS = 7
    PARTS = 128                 # of the numbers from 1 to 2

cdef struct Scale:
    double scale                # buckets for a factor of e
    int64_t middle              # what is added to the number of a bucket of values above 0
    double octave               # buckets for a factor of 2
    double doubt                # so near to a bound of a bucket, the logarithm decides
    double[PARTS] inverse       # of the middle of each part,
    double[PARTS] place         # where that one is, in buckets, ``middle`` added


@cython.cdivision(True)
cdef inline void set_scale(Scale* scale, double error) noexcept nogil:
    cdef int i
    scale.scale = 1 / log1p(2 * error / (1 - error))
    scale.middle = <int64_t> ceil(HIGHEST_EXPONENT * scale.scale)
    scale.octave = log(2.0) * scale.scale
    scale.doubt = 1e-11 * scale.scale           # what is computed is off by less than a tenth of this
    for i in range(PARTS):
        scale.inverse[i] = 1 / (1 + (i + 0.5) / PARTS)
        scale.place[i] = <double> scale.middle - log(scale.inverse[i]) * scale.scale


@cython.overflowcheck(False)
cdef inline int64_t bucket_of_size(const Scale* scale, double size) noexcept nogil:
    """The bucket of a finite number, SMALLEST or above: ``middle + ceil(log(size) * scale)``, in fewer steps."""
    cdef uint64_t bits
    cdef int64_t found, part
    cdef double rest, place
    memcpy(&bits, &size, 8)
    part = <int64_t> (bits >> (52 - PART_BITS)) & (PARTS - 1)
    place = <double> (<int64_t> (bits >> 52) - 1023) * scale.octave + scale.place[part]
    bits = (bits & FRACTION) | ONE
    memcpy(&rest, &bits, 8)
    rest = rest * scale.inverse[part] - 1       # within 1 / 256: four terms of its logarithm are right to 2e-13
    place += rest * (1 - rest * (0.5 - rest * (1.0 / 3 - rest * 0.25))) * scale.scale
    found = <int64_t> place
    rest = place - <double> found
    if scale.doubt < rest < 1 - scale.doubt:
        return found + 1
    return scale.middle + <int64_t> ceil(log(size) * scale.scale)


cdef inline int64_t bucket_of(const Scale* scale, double value) noexcept nogil:
    cdef double size = fabs(value)
    if SMALLEST <= size <= LARGEST:
        return bucket_of_size(scale, size) if value > 0 else -bucket_of_size(scale, size)
    if isnan(value):
        return NAN_BUCKET
    if size > LARGEST:
        return HIGHEST_BUCKET if value > 0 else LOWEST_BUCKET
    return 0
