# Count, Sum, Min and Max of one int64 column without nulls, at most one of each: one visit to a row for all of them,
# where the other members of a set take their turns and visit it once each. What stands in the cells is the same.
cimport cython

from fastwin.core.typedefs cimport idx_t, int64_t, uint64_t
from fastwin.core.memory.equal cimport are_one
from fastwin.core.memory.int128 cimport add_int, add_total, int128

cdef enum:
    OTHER = 0                   # in no fused loop
    COUNT = 1
    TOTAL = 2
    LOWEST = 3
    HIGHEST = 4
    ROLES = 5

cdef struct Fused:
    bint on
    int column                  # -1: there are only counts
    Py_ssize_t[ROLES] at        # byte offset of its cells in a row; 0: there is none
    uint64_t seen               # bits of those that have seen a value


cdef inline void add_one(const Fused* fused, char* row, int64_t value) noexcept nogil:
    if fused.at[COUNT]:
        (<int64_t*> (row + fused.at[COUNT]))[0] += 1
    if fused.at[TOTAL]:
        add_int(row + fused.at[TOTAL], value)
    if fused.at[LOWEST] and value < (<int64_t*> (row + fused.at[LOWEST]))[0]:
        (<int64_t*> (row + fused.at[LOWEST]))[0] = value
    if fused.at[HIGHEST] and value > (<int64_t*> (row + fused.at[HIGHEST]))[0]:
        (<int64_t*> (row + fused.at[HIGHEST]))[0] = value
    (<uint64_t*> row)[0] |= fused.seen


cdef inline void add_all_four(const Fused* fused, char* rows, Py_ssize_t stride, const idx_t* slots, Py_ssize_t n,
                              const int64_t* values) noexcept nogil:
    # The commonest set, without a branch.
    cdef Py_ssize_t i, count = fused.at[COUNT], total = fused.at[TOTAL]
    cdef Py_ssize_t lowest = fused.at[LOWEST], highest = fused.at[HIGHEST]
    cdef uint64_t seen = fused.seen
    cdef int64_t value
    cdef int64_t* cell
    cdef char* row
    for i in range(n):
        row = rows + slots[i] * stride
        value = values[i]
        (<uint64_t*> row)[0] |= seen
        (<int64_t*> (row + count))[0] += 1
        add_int(row + total, value)
        cell = <int64_t*> (row + lowest)
        cell[0] = min(cell[0], value)
        cell = <int64_t*> (row + highest)
        cell[0] = max(cell[0], value)


@cython.overflowcheck(False)
cdef inline void add_run(const Fused* fused, char* row, Py_ssize_t n, const int64_t* values) noexcept nogil:
    """Adds values to one row."""
    cdef int64_t lowest = values[0], highest = values[0]
    cdef int128 total = 0
    cdef Py_ssize_t i
    for i in range(n):
        total += values[i]
        lowest = min(lowest, values[i])
        highest = max(highest, values[i])
    add_one(fused, row, lowest)
    if fused.at[COUNT]:
        (<int64_t*> (row + fused.at[COUNT]))[0] += n - 1
    if fused.at[TOTAL]:
        (<int128*> (row + fused.at[TOTAL]))[0] += total - lowest
    if fused.at[HIGHEST] and highest > (<int64_t*> (row + fused.at[HIGHEST]))[0]:
        (<int64_t*> (row + fused.at[HIGHEST]))[0] = highest


cdef inline void add_fused(const Fused* fused, char* rows, Py_ssize_t stride, const idx_t* slots, Py_ssize_t n,
                           const int64_t* values) noexcept nogil:
    cdef Py_ssize_t i
    if n > 1 and values != NULL and are_one(slots, n):
        add_run(fused, rows + slots[0] * stride, n, values)
        return
    if fused.at[COUNT] and fused.at[TOTAL] and fused.at[LOWEST] and fused.at[HIGHEST]:
        add_all_four(fused, rows, stride, slots, n, values)
        return
    for i in range(n):
        add_one(fused, rows + slots[i] * stride, 0 if values == NULL else values[i])


cdef inline void merge_one(const Fused* fused, char* row, const char* other) noexcept nogil:
    cdef Py_ssize_t at = fused.at[COUNT]
    if at:
        (<int64_t*> (row + at))[0] += (<const int64_t*> (other + at))[0]
    at = fused.at[TOTAL]
    if at:
        add_total(row + at, other + at)
    at = fused.at[LOWEST]
    if at:
        (<int64_t*> (row + at))[0] = min((<int64_t*> (row + at))[0], (<const int64_t*> (other + at))[0])
    at = fused.at[HIGHEST]
    if at:
        (<int64_t*> (row + at))[0] = max((<int64_t*> (row + at))[0], (<const int64_t*> (other + at))[0])
    (<uint64_t*> row)[0] |= (<const uint64_t*> other)[0]
