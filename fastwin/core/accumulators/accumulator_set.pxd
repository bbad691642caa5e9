# Accumulators: how the cells of a row take values, merge, and give a result.
cimport cython
from libc.string cimport memset
from cpython.ref cimport PyObject

from fastwin.core.typedefs cimport idx_t, int64_t, uint8_t, uint64_t
from fastwin.core.accumulators.fused cimport Fused
from fastwin.core.rows.rowstore cimport MEMBER_BITS, RowStore

cdef struct Column:
    const void* values          # int64_t or double, as the accumulator says, or the offsets of text; NULL: none
    const uint8_t* valid        # one byte a value, 0 for null; NULL: no nulls
    const uint8_t* text         # bytes that int64_t offsets point into, one more than there are values; else NULL
    const Column* all           # all columns of the set, for accumulators that read several,
    Py_ssize_t offset           # whose first value is this one; the three above begin there already
    int64_t arrived             # how many elements the set had been fed before the first value

cdef struct Merge:              # row from_slots[i] of from_rows goes into row slots[i] of rows, in order of i
    char* rows
    const char* from_rows
    const idx_t* slots
    const idx_t* from_slots
    Py_ssize_t stride           # of both
    Py_ssize_t n

cdef struct Take:               # the rows whose results are wanted: rows[slots[0]], ...
    const char* rows
    const idx_t* slots
    Py_ssize_t stride
    Py_ssize_t n

cdef enum:                      # marks of results
    NULL_VALUE = 0
    VALUE = 1
    NO_VALUE = 2                # there is one, but it cannot be told: fail()

cdef class Accumulator:
    cdef readonly Py_ssize_t cells      # how many cells of a row it takes
    cdef readonly bint is_float
    cdef readonly bint gives_float      # its results are float64, else int64
    cdef readonly bint gives_bytes      # its results are byte strings: blobs() instead of take()
    cdef readonly tuple owned           # which of its cells own a block, see memory/owned.pxd
    cdef bint remembers                 # when elements arrived: see arrived() and shift()
    cdef bint fallible                  # add() and merge() may fail: by `starved`, or with a `problem`
    cdef bint starved                   # set where memory for a block was missing; what was added is lost
    cdef object problem                 # what Python code has raised
    cdef readonly bint takes_values     # or only whether they are null
    cdef readonly int column            # which column feeds it; -1: none
    cdef readonly tuple columns         # the columns it reads, where they are several
    cdef int arrival                    # which of them tells when elements arrived; -1: none, they come in order
    cdef Py_ssize_t at                  # byte offset of its first cell; 0 as long as it belongs to no set
    cdef uint64_t seen                  # its bit in the head: a value has arrived
    cdef int role                       # in a fused loop

    cdef void blank(self, char* row) noexcept nogil
    cdef void add(self, char* rows, Py_ssize_t stride, const idx_t* slots, Py_ssize_t n, Column column) noexcept nogil
    cdef void merge(self, Merge pairs) noexcept nogil
    cdef void take(self, const Take* rows, void* values, uint8_t* marks) noexcept nogil
    cdef int fail(self) except -1
    cdef tuple blobs(self, RowStore rows, const idx_t[::1] slots)
    cdef int check_columns(self, list held) except -1
    cdef bint sound(self, const char* row) noexcept nogil
    cdef int64_t arrived(self, const char* row) noexcept nogil
    cdef bint tidy(self, char* row) noexcept nogil
    cdef void shift(self, char* row, int64_t by) noexcept nogil


cdef int check_column(Accumulator member, list held, int index, str dtype) except -1


@cython.final
cdef class AccumulatorSet:
    cdef readonly tuple members
    cdef readonly Py_ssize_t head_cells
    cdef readonly Py_ssize_t cells      # of a row, the head's and the members'
    cdef readonly tuple owned           # the cells of a row that own a block, for RowStore
    cdef readonly Py_ssize_t columns    # how many columns the members read
    cdef public int64_t arrived         # how many elements have been fed so far
    cdef readonly bint remembers        # whether rows know when theirs did
    cdef int _arrival                   # the column that tells when elements arrived; -1: none
    cdef int64_t _before                # what `arrived` was before the columns that are held
    cdef bint fallible
    cdef PyObject* _kernels[MEMBER_BITS]    # the members, borrowed, for loops without the GIL
    cdef Py_ssize_t _n                  # how many
    cdef Column* _column
    cdef Fused _fused
    cdef PyObject* _apart[MEMBER_BITS]      # those that the fused loop does not feed
    cdef Py_ssize_t _apart_n
    cdef Column* _picked            # where add_some() gathers them

    cdef int _fuse(self) except -1
    cdef list hold(self, list columns, Py_ssize_t n)
    cdef int add(self, RowStore rows, const idx_t* slots, Py_ssize_t n, Py_ssize_t offset) except -1 nogil
    cdef int merge(self, RowStore rows, const idx_t* slots, RowStore others, const idx_t* from_slots,
                   Py_ssize_t n) except -1 nogil
    cdef int _merge_each(self, RowStore rows, const idx_t* slots, RowStore others, const idx_t* from_slots,
                         Py_ssize_t n) except -1 nogil
    cdef int _check_failures(self) except -1 nogil
    cdef int add_some(self, RowStore rows, const idx_t* slots, Py_ssize_t n, Py_ssize_t offset,
                      const idx_t* picked) except -1 nogil

    cdef inline void expect(self, bint steady) noexcept nogil:
        """Says whether the rows of add() have been visited often: it is done in less time then."""
        self._fused.steady = steady

    cdef inline bint holds_text(self) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(self.columns):
            if self._column[i].text != NULL:
                return True
        return False


cdef inline const void* values_at(const Column* column, Py_ssize_t i) noexcept nogil:
    return <const char*> column.all[i].values + 8 * column.offset


cdef inline const uint8_t* valid_at(const Column* column, Py_ssize_t i) noexcept nogil:
    cdef const uint8_t* valid = column.all[i].valid
    return valid + column.offset if valid != NULL else valid


cdef inline uint64_t* bits_of(char* row) noexcept nogil:
    return <uint64_t*> row


cdef inline char* into(const Merge* pairs, Py_ssize_t i) noexcept nogil:
    return pairs.rows + pairs.slots[i] * pairs.stride


cdef inline const char* taken(const Merge* pairs, Py_ssize_t i) noexcept nogil:
    return pairs.from_rows + pairs.from_slots[i] * pairs.stride


cdef inline const char* wanted(const Take* take, Py_ssize_t i) noexcept nogil:
    return take.rows + take.slots[i] * take.stride


cdef inline bint has(const uint8_t* valid, Py_ssize_t i) noexcept nogil:
    return valid == NULL or valid[i]


cdef inline int64_t number_behind(int64_t arrived) noexcept nogil:
    # A number above that of an element; one that a spoilt state tells of stays far from the bounds of int64.
    return min(arrived, (<int64_t> 1) << 62) + 1


cdef inline uint64_t common_bits(const Take* rows) noexcept nogil:
    """The bits that all rows have."""
    cdef uint64_t found = ~<uint64_t> 0
    cdef Py_ssize_t i
    for i in range(rows.n):
        found &= (<const uint64_t*> wanted(rows, i))[0]
    return found


cdef inline void mark_seen(const Take* rows, uint64_t seen, uint64_t common, uint8_t* marks) noexcept nogil:
    """Marks the rows that have a bit. common: those that all have."""
    cdef Py_ssize_t i
    if seen & common:           # mostly all have a value
        memset(marks, VALUE, rows.n)
        return
    for i in range(rows.n):
        marks[i] = VALUE if (<const uint64_t*> wanted(rows, i))[0] & seen else NULL_VALUE
