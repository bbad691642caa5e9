# Count, Sum, Min, Max and Mean of a column, at most one of each: one visit to a row for all of them, where the other
# members of a set take their turns and visit it once each. What stands in the cells is the same.
cimport cython
from libc.math cimport isfinite, isnan, signbit
from libc.string cimport memcmp, memcpy

from fastwin.core.typedefs cimport idx_t, int64_t, uint8_t, uint64_t
from fastwin.core.accumulators.totals cimport add_float, add_floats
from fastwin.core.memory.int128 cimport add_int, add_total, int128
from fastwin.core.memory.manynumbers cimport float_bounds, int_total
from fastwin.core.wide cimport int_bounds

cdef enum:
    OTHER = 0                   # in no fused loop
    COUNT = 1
    TOTAL = 2
    LOWEST = 3
    HIGHEST = 4
    MEAN = 5
    ROLES = 6
    LANES = 4                   # columns with a loop of their own; members of more take their turns
    AT_ONCE = 512               # elements that are looked at together

ctypedef fused number:
    int64_t
    double

cdef struct Lane:               # the members of one column
    int column
    bint is_float
    Py_ssize_t[ROLES] at        # byte offset of their cells in a row; 0: there is none
    uint64_t seen               # bits of those that have seen a value

cdef struct Fused:
    Lane[LANES] lanes
    int n
    Py_ssize_t rows             # byte offset of the cell that counts elements, nulls or not; 0: there is none
    bint steady                 # that rows have been visited often, so that hardly a value is a new extreme


cdef inline Lane* lane_of(Fused* fused, int column) noexcept nogil:
    """Returns the lane of a column, a new one if need be; NULL where there are too many."""
    cdef int i
    for i in range(fused.n):
        if fused.lanes[i].column == column:
            return &fused.lanes[i]
    if fused.n == LANES:
        return NULL
    fused.lanes[fused.n].column = column
    fused.n += 1
    return &fused.lanes[fused.n - 1]


cdef inline bint below(number a, number b) noexcept nogil:
    # NaN is above all other values, as in Spark and PostgreSQL, and -0.0 is below 0.0.
    if number is double:
        return a < b or (isnan(b) and not isnan(a)) or (a == b and signbit(a) and not signbit(b))
    else:
        return a < b


cdef inline void keep_lowest(number* cell, number value) noexcept nogil:
    if number is double:
        if not value > cell[0] and below(value, cell[0]):       # mostly it is above
            cell[0] = value
    else:
        cell[0] = min(cell[0], value)


cdef inline void keep_highest(number* cell, number value) noexcept nogil:
    if number is double:
        if not value < cell[0] and below(cell[0], value):
            cell[0] = value
    else:
        cell[0] = max(cell[0], value)


cdef inline void add_value(char* cells, number value) noexcept nogil:
    if number is double:
        add_float(cells, value)
    else:
        add_int(cells, value)


cdef inline void visit(const Lane* lane, Py_ssize_t count, bint extremes, bint steady, char* rows, Py_ssize_t stride,
                       const idx_t* slots, Py_ssize_t n, const number* values) noexcept nogil:
    """Adds values to rows. count: the offset of a count, or 0. extremes: that total, lowest and highest are there.
    steady: see Fused; what stays as it is is not written again then."""
    cdef Py_ssize_t i, total = lane.at[TOTAL], lowest = lane.at[LOWEST], highest = lane.at[HIGHEST]
    cdef Py_ssize_t mean = 0 if extremes else lane.at[MEAN]
    cdef uint64_t seen = lane.seen
    cdef number value
    cdef char* row
    for i in range(n):
        row = rows + slots[i] * stride
        value = values[i]
        if not steady or (<uint64_t*> row)[0] & seen != seen:
            (<uint64_t*> row)[0] |= seen
        if count:
            (<int64_t*> (row + count))[0] += 1
        if extremes or total:
            add_value(row + total, value)
        if (extremes or lowest) and (number is double or not steady or value < (<number*> (row + lowest))[0]):
            keep_lowest(<number*> (row + lowest), value)
        if (extremes or highest) and (number is double or not steady or value > (<number*> (row + highest))[0]):
            keep_highest(<number*> (row + highest), value)
        if mean:
            add_value(row + mean, value)
            (<int64_t*> (row + mean))[2] += 1


cdef inline void visit_one(const Lane* lane, Py_ssize_t count, char* row, Py_ssize_t n,
                           const number* values) noexcept nogil:
    """Adds values to one row; n: at least one."""
    cdef Py_ssize_t i
    cdef number lowest = values[0], highest = values[0]
    (<uint64_t*> row)[0] |= lane.seen
    if count:
        (<int64_t*> (row + count))[0] += n
    if lane.at[TOTAL] or lane.at[MEAN]:
        add_run(row + lane.at[TOTAL] if lane.at[TOTAL] else NULL, row + lane.at[MEAN] if lane.at[MEAN] else NULL, n,
                values)
    if lane.at[MEAN]:
        (<int64_t*> (row + lane.at[MEAN]))[2] += n
    if not (lane.at[LOWEST] or lane.at[HIGHEST]):
        return
    if number is int64_t:
        int_bounds(values, n, &lowest, &highest)
    elif not float_bounds(values, n, &lowest, &highest):
        for i in range(n):
            keep_lowest(&lowest, values[i])
            keep_highest(&highest, values[i])
    if lane.at[LOWEST]:
        keep_lowest(<number*> (row + lane.at[LOWEST]), lowest)
    if lane.at[HIGHEST]:
        keep_highest(<number*> (row + lane.at[HIGHEST]), highest)


@cython.overflowcheck(False)
cdef inline void add_run(char* cells, char* others, Py_ssize_t n, const number* values) noexcept nogil:
    """Adds values to the cells of one or two sums, NULL for none, in their order: floats as add_float() does, but in
    registers."""
    cdef Py_ssize_t i
    cdef int128 total
    cdef double[2] sum
    cdef double after, part
    if number is int64_t:
        total = int_total(values, n)
        if cells != NULL:
            (<int128*> cells)[0] += total
        if others != NULL:
            (<int128*> others)[0] += total
    else:
        if cells == NULL:
            cells, others = others, NULL
        if others != NULL and memcmp(cells, others, sizeof(sum)) != 0:
            add_run(others, NULL, n, values)
            others = NULL
        sum[0], sum[1] = (<double*> cells)[0], (<double*> cells)[1]
        for i in range(n):
            after = sum[0] + values[i]
            part = after - sum[0]
            if isfinite(part):
                sum[1] += (sum[0] - (after - part)) + (values[i] - part)
                sum[0] = after
            else:
                add_float(<char*> sum, values[i])
        memcpy(cells, sum, sizeof(sum))
        if others != NULL:
            memcpy(others, sum, sizeof(sum))


cdef inline void add_lane(const Lane* lane, Py_ssize_t count, char* rows, Py_ssize_t stride, const idx_t* slots,
                          Py_ssize_t n, bint one, bint steady, const number* values) noexcept nogil:
    """Adds values to rows. one: that all are the same row. steady: see Fused."""
    if one:
        visit_one(lane, count, rows + slots[0] * stride, n, values)
    elif not (lane.at[TOTAL] and lane.at[LOWEST] and lane.at[HIGHEST]) or lane.at[MEAN]:
        visit(lane, count, False, False, rows, stride, slots, n, values)
    elif count and steady:      # the commonest ones, without a branch
        visit(lane, count, True, True, rows, stride, slots, n, values)
    elif count:
        visit(lane, count, True, False, rows, stride, slots, n, values)
    elif steady:
        visit(lane, 0, True, True, rows, stride, slots, n, values)
    else:
        visit(lane, 0, True, False, rows, stride, slots, n, values)


cdef inline void add_valid(const Lane* lane, char* rows, Py_ssize_t stride, const idx_t* slots, Py_ssize_t n, bint one,
                           bint steady, const number* values, const uint8_t* valid) noexcept nogil:
    """Adds those of up to AT_ONCE values that are not null. They are picked first: guessing which are costs more."""
    cdef idx_t[AT_ONCE] some
    cdef number[AT_ONCE] picked
    cdef Py_ssize_t i, found = 0
    for i in range(n):
        some[found], picked[found] = slots[i], values[i]
        found += valid[i] != 0
    if found:
        add_lane(lane, lane.at[COUNT], rows, stride, some, found, one, steady, picked)


cdef inline void count_rows(Py_ssize_t count, char* rows, Py_ssize_t stride, const idx_t* slots, Py_ssize_t n,
                            bint one, const uint8_t* valid) noexcept nogil:
    """Counts elements, or only those that are not null."""
    cdef Py_ssize_t i
    if one and valid == NULL:
        (<int64_t*> (rows + slots[0] * stride + count))[0] += n
        return
    for i in range(n):
        (<int64_t*> (rows + slots[i] * stride + count))[0] += valid == NULL or valid[i] != 0


cdef inline void merge_total(bint is_float, char* cells, const char* other) noexcept nogil:
    if is_float:
        add_floats(cells, other)
    else:
        add_total(cells, other)


cdef inline void merge_lane(const Lane* lane, char* row, const char* other) noexcept nogil:
    cdef Py_ssize_t at = lane.at[COUNT]
    if at:
        (<int64_t*> (row + at))[0] += (<const int64_t*> (other + at))[0]
    at = lane.at[TOTAL]
    if at:
        merge_total(lane.is_float, row + at, other + at)
    at = lane.at[MEAN]
    if at:
        merge_total(lane.is_float, row + at, other + at)
        (<int64_t*> (row + at))[2] += (<const int64_t*> (other + at))[2]
    at = lane.at[LOWEST]
    if at and lane.is_float:
        keep_lowest(<double*> (row + at), (<const double*> (other + at))[0])
    elif at:
        keep_lowest(<int64_t*> (row + at), (<const int64_t*> (other + at))[0])
    at = lane.at[HIGHEST]
    if at and lane.is_float:
        keep_highest(<double*> (row + at), (<const double*> (other + at))[0])
    elif at:
        keep_highest(<int64_t*> (row + at), (<const int64_t*> (other + at))[0])
