# Numbers on their way into the runs of rows, of which all are kept.
from fastwin.core.typedefs cimport idx_t, int64_t, uint64_t
from fastwin.core.accumulators.accumulator_set cimport Column, bits_of, has
from fastwin.core.bags.codes cimport code_of_float
from fastwin.core.bags.firstwords cimport MOST_WORDS
from fastwin.core.bags.records cimport Shape
from fastwin.core.bags.runs cimport add_record, end_of, free_place, no_text
from fastwin.core.memory.equal cimport are_one
from fastwin.core.memory.owned cimport block_in
from fastwin.core.memory.pages cimport prefetch_to_write

cdef enum:
    AHEAD = 8                   # elements


cdef inline void fetch_cells(char* rows, Py_ssize_t stride, const idx_t* slots, Py_ssize_t at) noexcept nogil:
    """Asks for the cell of an element ahead of the first slot, and for the block of one for whose cell it asked before.

    A row, its block and the end of that are three misses of the cache, each of which needs the one before: the last one
    is asked for by the caller, AHEAD. There are 3 * AHEAD slots and one more."""
    prefetch_to_write(rows + slots[3 * AHEAD] * stride + at)
    prefetch_to_write(block_in(rows + slots[2 * AHEAD] * stride + at))


cdef inline bint add_numbers(char* rows, Py_ssize_t stride, Py_ssize_t at, uint64_t seen, const idx_t* slots,
                             Py_ssize_t n, const Column* column, bint floats, const Shape* shape) noexcept nogil:
    """Adds at least one number, each to its row, or null. at: of their cell. Returns whether there was memory."""
    cdef const int64_t* values = <const int64_t*> column.values
    cdef int64_t width = 8 * shape.words, flip = -<int64_t> shape.turned
    cdef bint one = are_one(slots, n), well = True
    cdef int64_t[MOST_WORDS] record
    cdef int64_t* place
    cdef char* row
    cdef Py_ssize_t i
    record[1] = 1               # the count, where there is one
    for i in range(n):
        if not one and i + 3 * AHEAD < n:
            fetch_cells(rows, stride, slots + i, at)
            prefetch_to_write(<void*> end_of(rows + slots[i + AHEAD] * stride + at))
        if not has(column.valid, i):
            continue
        row = rows + slots[i] * stride
        record[0] = (code_of_float((<const double*> values)[i]) if floats else values[i]) ^ flip
        place = free_place(row + at, width)
        if place != NULL:
            place[0] = record[0]
            if width == 16:
                place[1] = 1
        else:
            well &= add_record(row + at, shape, record, no_text())
        bits_of(row)[0] |= seen
    return well
