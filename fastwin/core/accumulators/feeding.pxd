# Columns on their way into the fused loops of a set: its columns in turn, and some of their values picked out.
from fastwin.core.accumulators.accumulator_set cimport Column
from fastwin.core.accumulators.fused cimport (
    AT_ONCE, COUNT, HIGHEST, LOWEST, MEAN, TOTAL, Fused, Lane, add_lane, add_valid, count_rows, merge_lane)
from fastwin.core.memory.equal cimport are_one
from fastwin.core.typedefs cimport idx_t, int64_t, uint8_t, uint64_t

cdef enum:
    PICKED_BYTES = 4608         # behind each column, for pick_columns(): AT_ONCE values of 8 bytes and their marks


cdef inline void add_fused(const Fused* fused, const Column* columns, char* rows, Py_ssize_t stride,
                           const idx_t* slots, Py_ssize_t n, Py_ssize_t offset) noexcept nogil:
    """Adds up to AT_ONCE values from ``offset`` on to rows, for all members that are fused."""
    cdef bint one = are_one(slots, n)
    cdef Py_ssize_t i, count, uncounted = fused.rows
    cdef const Lane* lane
    cdef const Column* column
    cdef const uint8_t* valid
    for i in range(fused.n):
        lane = &fused.lanes[i]
        column = columns + lane.column
        valid = column.valid
        if valid != NULL:
            valid += offset
        count = lane.at[COUNT]
        if not (lane.at[TOTAL] or lane.at[LOWEST] or lane.at[HIGHEST] or lane.at[MEAN]):
            count_rows(count, rows, stride, slots, n, one, valid)
            continue
        if valid == NULL and count == 0 and uncounted:      # elements are counted on the way
            count, uncounted = uncounted, 0
        if lane.is_float and valid == NULL:
            add_lane(lane, count, rows, stride, slots, n, one, fused.steady, <const double*> column.values + offset)
        elif lane.is_float:
            add_valid(lane, rows, stride, slots, n, one, fused.steady, <const double*> column.values + offset, valid)
        elif valid == NULL:
            add_lane(lane, count, rows, stride, slots, n, one, fused.steady, <const int64_t*> column.values + offset)
        else:
            add_valid(lane, rows, stride, slots, n, one, fused.steady, <const int64_t*> column.values + offset, valid)
    if uncounted:
        count_rows(uncounted, rows, stride, slots, n, one, NULL)


cdef inline void merge_fused(const Fused* fused, char* row, const char* other) noexcept nogil:
    """Merges the cells of all members that are fused, and all bits."""
    cdef int i
    (<uint64_t*> row)[0] |= (<const uint64_t*> other)[0]
    if fused.rows:
        (<int64_t*> (row + fused.rows))[0] += (<const int64_t*> (other + fused.rows))[0]
    for i in range(fused.n):
        merge_lane(&fused.lanes[i], row, other)


cdef inline void pick_columns(Column* some, const Column* held, Py_ssize_t columns, Py_ssize_t offset,
                              const idx_t* picked, Py_ssize_t n) noexcept nogil:
    """Copies the values at ``offset + picked[i]`` of columns, none of text; n: at most AT_ONCE.

    some: room for as many columns, and PICKED_BYTES behind them for each.
    """
    cdef uint64_t* values = <uint64_t*> (some + columns)
    cdef uint8_t* valid = <uint8_t*> (values + columns * AT_ONCE)
    cdef Py_ssize_t i, c
    for c in range(columns):
        some[c] = held[c]
        if held[c].values != NULL:
            for i in range(n):
                values[i] = (<const uint64_t*> held[c].values)[offset + picked[i]]
            some[c].values = values
        if held[c].valid != NULL:
            for i in range(n):
                valid[i] = held[c].valid[offset + picked[i]]
            some[c].valid = valid
        values += AT_ONCE
        valid += AT_ONCE
