"""Variance over the cells of rows, in one pass and without cancellation."""

cimport cython
from libc.math cimport sqrt
from libc.string cimport memcpy

from fastwin._typedefs cimport idx_t, int64_t, uint8_t
from fastwin.core.accumulator_set cimport NULL_VALUE, VALUE, Accumulator as Base, Column, Merge, Take
from fastwin.core.accumulator_set cimport has, into, taken, wanted

__all__ = ["Variance"]

cdef extern from *:
    ctypedef long long int128 "__int128"

cdef struct Moments:
    int64_t count
    int64_t origin              # the first value, or the bits of a double; the others are told from it
    double mean                 # of the differences to the origin
    double squares              # the sum of squared differences to the mean


@cython.cdivision(True)
cdef inline void add_value(Moments* to, double value) noexcept nogil:
    # Welford, "Note on a method for calculating corrected sums of squares and products" (1962).
    cdef double apart = value - to.mean
    to.count += 1
    to.mean += apart / <double> to.count
    to.squares += apart * (value - to.mean)


@cython.overflowcheck(False)
cdef inline double difference(int64_t a, int64_t b, bint is_float) noexcept nogil:
    # Exact for ints; for floats that lie close together as well, and so they lose nothing to lying far from zero.
    cdef double x, y
    if is_float:
        memcpy(&x, &a, 8)
        memcpy(&y, &b, 8)
        return x - y
    return <double> (<int128> a - <int128> b)


@cython.cdivision(True)
cdef inline void add_moments(Moments* to, const Moments* other, bint is_float) noexcept nogil:
    # Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances" (1979).
    cdef double apart, share
    if other.count == 0:
        return
    if to.count == 0:
        to[0] = other[0]
        return
    apart = difference(other.origin, to.origin, is_float) + other.mean - to.mean
    share = <double> other.count / <double> (to.count + other.count)
    to.squares += other.squares + apart * apart * share * <double> to.count
    to.mean += apart * share
    to.count += other.count


@cython.final
cdef class Variance(Base):
    """The variance, or its square root, as float64. Cells: four.

    ddof: what the number of values is lessened by in the denominator; with no more values than that the result is null.
    root: whether results are square roots.
    """

    cdef readonly int64_t ddof
    cdef readonly bint root

    def __cinit__(self, dtype="int64", int column=0, int64_t ddof=1, bint root=False):
        if ddof < 0:
            raise ValueError(f"Variance: ddof must be at least 0, got {ddof}")
        self.cells = sizeof(Moments) // 8
        self.gives_float = True
        self.ddof = ddof
        self.root = root

    cdef void add(self, char* rows, Py_ssize_t stride, const idx_t* slots, Py_ssize_t n, Column column) noexcept nogil:
        cdef Py_ssize_t i
        cdef Moments* moments
        cdef const int64_t* values = <const int64_t*> column.values
        for i in range(n):
            if has(column.valid, i):
                moments = <Moments*> (rows + slots[i] * stride + self.at)
                if moments.count == 0:
                    moments.origin = values[i]
                add_value(moments, difference(values[i], moments.origin, self.is_float))

    cdef void merge(self, Merge pairs) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(pairs.n):
            add_moments(<Moments*> (into(&pairs, i) + self.at), <const Moments*> (taken(&pairs, i) + self.at),
                        self.is_float)

    @cython.cdivision(True)
    cdef void take(self, const Take* rows, void* values, uint8_t* marks) noexcept nogil:
        cdef Py_ssize_t i
        cdef const Moments* moments
        cdef double found
        for i in range(rows.n):
            moments = <const Moments*> (wanted(rows, i) + self.at)
            found = 0.0
            marks[i] = VALUE if moments.count > self.ddof else NULL_VALUE
            if marks[i] == VALUE:
                found = moments.squares / <double> (moments.count - self.ddof)
            (<double*> values)[i] = sqrt(found) if self.root else found
