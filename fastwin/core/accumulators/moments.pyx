"""Moments of one column, and of two together: variance, skewness, kurtosis, covariance, correlation."""

cimport cython
from libc.math cimport sqrt

from fastwin.core.typedefs cimport idx_t, int64_t, uint8_t
from fastwin.core.accumulators.accumulator_set cimport NULL_VALUE, VALUE, Accumulator as Base, Column, Merge, Take
from fastwin.core.accumulators.accumulator_set cimport check_column, has, into, taken, valid_at, values_at, wanted
from fastwin.core.accumulators.differences cimport difference

__all__ = ["Comoment", "Shape", "Variance"]

# All values are told from the first one, so that values far from zero cost nothing.

cdef struct Spread:
    int64_t count
    int64_t origin              # the first value, or the bits of a double; the others are told from it
    double mean                 # of the differences to the origin
    double second               # the sum of squared differences to the mean

cdef struct Moments:
    int64_t count               # as in Spread
    int64_t origin
    double mean
    double second
    double third                # sums of further powers of the differences to the mean
    double fourth

ctypedef fused spread:
    Spread
    Moments

cdef struct Comoments:
    int64_t count
    int64_t[2] origin
    double[2] mean
    double[2] squares           # sums of squared differences to the means
    double product              # the sum of their products


@cython.cdivision(True)
cdef inline void add_value(spread* to, double value) noexcept nogil:
    cdef double before, n, apart, part, squared, term
    if spread is Spread:
        # Welford, "Note on a method for calculating corrected sums of squares and products" (1962).
        apart = value - to.mean
        to.count += 1
        to.mean += apart / <double> to.count
        to.second += apart * (value - to.mean)
    else:
        # Pebay, "Formulas for robust, one-pass parallel computation of covariances and arbitrary-order statistical
        # moments", Sandia report SAND2008-6212 (2008).
        before = <double> to.count
        n = before + 1.0
        apart = value - to.mean
        part = apart / n
        squared = part * part
        term = apart * part * before
        to.count += 1
        to.mean += part
        to.fourth += term * squared * (n * n - 3.0 * n + 3.0) + 6.0 * squared * to.second - 4.0 * part * to.third
        to.third += term * part * (n - 2.0) - 3.0 * part * to.second
        to.second += term


@cython.cdivision(True)
cdef inline void add_others(spread* to, const spread* other, bint is_float) noexcept nogil:
    cdef double a = <double> to.count, b = <double> other.count, n = a + b, apart, part, squared
    if other.count == 0:
        return
    if to.count == 0:
        to[0] = other[0]
        return
    apart = difference(other.origin, to.origin, is_float) + other.mean - to.mean
    if spread is Spread:
        # Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances" (1979).
        part = b / n
        to.second += other.second + apart * apart * part * a
        to.mean += apart * part
    else:
        part = apart / n
        squared = part * part
        to.fourth += (other.fourth + apart * squared * part * a * b * (a * a - a * b + b * b)
                      + 6.0 * squared * (a * a * other.second + b * b * to.second)
                      + 4.0 * part * (a * other.third - b * to.third))
        to.third += other.third + apart * squared * a * b * (a - b) + 3.0 * part * (a * other.second - b * to.second)
        to.second += other.second + apart * part * a * b
        to.mean += part * b
    to.count += other.count


cdef void add_column(spread* _kind, Base self, char* rows, Py_ssize_t stride, const idx_t* slots, Py_ssize_t n,
                     const Column* column) noexcept nogil:
    cdef const int64_t* values = <const int64_t*> column.values
    cdef spread* to
    cdef Py_ssize_t i
    for i in range(n):
        if has(column.valid, i):
            to = <spread*> (rows + slots[i] * stride + self.at)
            if to.count == 0:
                to.origin = values[i]
            add_value(to, difference(values[i], to.origin, self.is_float))


cdef void merge_pairs(spread* _kind, Base self, const Merge* pairs) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(pairs.n):
        add_others(<spread*> (into(pairs, i) + self.at), <const spread*> (taken(pairs, i) + self.at), self.is_float)


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
        self.cells = sizeof(Spread) // 8
        self.gives_float = True
        self.ddof = ddof
        self.root = root

    cdef void add(self, char* rows, Py_ssize_t stride, const idx_t* slots, Py_ssize_t n, Column column) noexcept nogil:
        add_column(<Spread*> NULL, self, rows, stride, slots, n, &column)

    cdef void merge(self, Merge pairs) noexcept nogil:
        merge_pairs(<Spread*> NULL, self, &pairs)

    @cython.cdivision(True)
    cdef void take(self, const Take* rows, void* values, uint8_t* marks) noexcept nogil:
        cdef Py_ssize_t i
        cdef const Spread* moments
        cdef double found
        for i in range(rows.n):
            moments = <const Spread*> (wanted(rows, i) + self.at)
            found = 0.0
            marks[i] = VALUE if moments.count > self.ddof else NULL_VALUE
            if marks[i] == VALUE:
                found = moments.second / <double> (moments.count - self.ddof)
            (<double*> values)[i] = sqrt(found) if self.root else found


cdef class Shape(Base):
    """The skewness, or the excess kurtosis, of values taken for the whole, as float64. Cells: six.

    fourth: whether it is the kurtosis. Without a value, or where all are the same, the result is null.
    """

    cdef readonly bint fourth

    def __cinit__(self, dtype="int64", int column=0, bint fourth=False):
        self.cells = sizeof(Moments) // 8
        self.gives_float = True
        self.fourth = fourth

    cdef void add(self, char* rows, Py_ssize_t stride, const idx_t* slots, Py_ssize_t n, Column column) noexcept nogil:
        add_column(<Moments*> NULL, self, rows, stride, slots, n, &column)

    cdef void merge(self, Merge pairs) noexcept nogil:
        merge_pairs(<Moments*> NULL, self, &pairs)

    @cython.cdivision(True)
    cdef void take(self, const Take* rows, void* values, uint8_t* marks) noexcept nogil:
        cdef const Moments* moments
        cdef double n, found
        cdef Py_ssize_t i
        for i in range(rows.n):
            moments = <const Moments*> (wanted(rows, i) + self.at)
            found, n = 0.0, <double> moments.count
            marks[i] = NULL_VALUE if moments.count == 0 or moments.second == 0.0 else VALUE
            if marks[i] == VALUE:
                if self.fourth:
                    found = n * moments.fourth / (moments.second * moments.second) - 3.0
                else:
                    found = sqrt(n) * moments.third / (moments.second * sqrt(moments.second))
            (<double*> values)[i] = found


@cython.cdivision(True)
cdef inline void add_pair(Comoments* to, double x, double y) noexcept nogil:
    cdef double n = <double> to.count + 1.0, apart_x = x - to.mean[0], apart_y = y - to.mean[1]
    to.count += 1
    to.mean[0] += apart_x / n
    to.mean[1] += apart_y / n
    to.product += apart_x * (y - to.mean[1])
    to.squares[0] += apart_x * (x - to.mean[0])
    to.squares[1] += apart_y * (y - to.mean[1])


@cython.cdivision(True)
cdef inline void add_comoments(Comoments* to, const Comoments* other, bint float_x, bint float_y) noexcept nogil:
    cdef double a = <double> to.count, b = <double> other.count, share, apart_x, apart_y
    if other.count == 0:
        return
    if to.count == 0:
        to[0] = other[0]
        return
    apart_x = difference(other.origin[0], to.origin[0], float_x) + other.mean[0] - to.mean[0]
    apart_y = difference(other.origin[1], to.origin[1], float_y) + other.mean[1] - to.mean[1]
    share = b / (a + b)
    to.product += other.product + apart_x * apart_y * share * a
    to.squares[0] += other.squares[0] + apart_x * apart_x * share * a
    to.squares[1] += other.squares[1] + apart_y * apart_y * share * a
    to.mean[0] += apart_x * share
    to.mean[1] += apart_y * share
    to.count += other.count


cdef class Comoment(Base):
    """The covariance, or the correlation, of two columns, as float64. Cells: eight.

    other_dtype, other: of the second column. ddof: what the number of pairs is lessened by in the denominator of the
    covariance; with no more pairs than that the result is null. scaled: whether it is the correlation, null where one
    of the columns has one value alone. Elements in which a value is null are passed over.
    """

    cdef readonly int64_t ddof
    cdef readonly bint scaled
    cdef int other
    cdef bint other_float

    def __cinit__(self, dtype="int64", int column=0, other_dtype="int64", int other=-1, int64_t ddof=1,
                  bint scaled=False):
        if other < 0 or ddof < 0 or other_dtype not in self.dtypes:
            raise ValueError(f"Comoment: needs a second column, and a ddof of at least 0, got {other} and {ddof}")
        self.cells = sizeof(Comoments) // 8
        self.gives_float = True
        self.ddof, self.scaled, self.other = ddof, scaled, other
        self.other_float = other_dtype == "float64"
        self.columns = (column, other)

    cdef int check_columns(self, list held) except -1:
        check_column(self, held, self.column, "float64" if self.is_float else "int64")
        return check_column(self, held, self.other, "float64" if self.other_float else "int64")

    cdef void add(self, char* rows, Py_ssize_t stride, const idx_t* slots, Py_ssize_t n, Column column) noexcept nogil:
        cdef const int64_t* xs = <const int64_t*> column.values
        cdef const int64_t* ys = <const int64_t*> values_at(&column, self.other)
        cdef const uint8_t* valid = valid_at(&column, self.other)
        cdef Comoments* moments
        cdef Py_ssize_t i
        for i in range(n):
            if has(column.valid, i) and has(valid, i):
                moments = <Comoments*> (rows + slots[i] * stride + self.at)
                if moments.count == 0:
                    moments.origin[0], moments.origin[1] = xs[i], ys[i]
                add_pair(moments, difference(xs[i], moments.origin[0], self.is_float),
                         difference(ys[i], moments.origin[1], self.other_float))

    cdef void merge(self, Merge pairs) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(pairs.n):
            add_comoments(<Comoments*> (into(&pairs, i) + self.at), <const Comoments*> (taken(&pairs, i) + self.at),
                          self.is_float, self.other_float)

    @cython.cdivision(True)
    cdef void take(self, const Take* rows, void* values, uint8_t* marks) noexcept nogil:
        cdef const Comoments* moments
        cdef double found
        cdef Py_ssize_t i
        for i in range(rows.n):
            moments = <const Comoments*> (wanted(rows, i) + self.at)
            found, marks[i] = 0.0, NULL_VALUE
            if self.scaled:
                if moments.count and moments.squares[0] != 0.0 and moments.squares[1] != 0.0:
                    # A root of each: their product may leave the range of float64.
                    found, marks[i] = moments.product / sqrt(moments.squares[0]) / sqrt(moments.squares[1]), VALUE
                    found = min(max(found, -1.0), 1.0) if found == found else found
            elif moments.count > self.ddof:
                found, marks[i] = moments.product / <double> (moments.count - self.ddof), VALUE
            (<double*> values)[i] = found
