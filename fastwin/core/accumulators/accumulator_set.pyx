"""AccumulatorSet: the accumulators of a row side by side; Accumulator, what each of them can do."""

import numpy as np

from cpython.ref cimport PyObject
from libc.stdlib cimport calloc, free, malloc

from fastwin.core.typedefs cimport idx_t, int64_t, uint8_t, uint64_t
from fastwin.core.memory.bounds cimport check_ids, check_length, check_offsets
from fastwin.core.memory.equal cimport differing
from fastwin.core.memory.pages cimport prefetch
from fastwin.core.accumulators.feeding cimport PICKED_BYTES, add_fused, merge_fused, pick_columns
from fastwin.core.accumulators.fused cimport AT_ONCE, COUNT, MEAN, OTHER, Lane, lane_of
from fastwin.core.rows.rowstore cimport HEAD_CELLS, MEMBER_BITS, RowStore

cdef enum:
    BLOCK = 512

cdef uint8_t no_text = 0        # where texts without a byte begin: only a column of numbers has NULL


cdef int check_array(str name, array, tuple dtypes, Py_ssize_t n) except -1:
    if array is None:
        return 0
    if not isinstance(array, np.ndarray) or array.dtype not in dtypes:
        kind = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
        raise ValueError(f"{name}: must be of {' or '.join(dtype.__name__ for dtype in dtypes)}, got {kind}")
    return check_length(name, len(array), n)


cdef int check_column(Accumulator member, list held, int index, str dtype) except -1:
    """Raises ValueError unless a column is there and holds what ``dtype`` says: int64, float64 or text."""
    values, _, text = held[index]
    if values is None or ("t" if text is not None else values.dtype.kind) != dtype[0]:
        raise ValueError(f"columns: column {index} does not suit {type(member).__name__}")
    return 0


cdef class Accumulator:
    """What one aggregate keeps in each row. The base of all others; it is not used by itself.

    dtype: ``"int64"`` or ``"float64"``, the type of the values it takes.
    column: index of the input column that feeds it; -1 for none, where it takes no values.

    Null values are skipped, as SQL does; a result without a value is null. Raises ValueError for
    another dtype or column.
    """

    dtypes = ("int64", "float64")

    def __cinit__(self, dtype="int64", int column=0, *args, **kwargs):
        if dtype not in self.dtypes:
            raise ValueError(f"{type(self).__name__}: dtype must be one of {self.dtypes}, got {dtype!r}")
        if column < -1:
            raise ValueError(f"{type(self).__name__}: column must be at least -1, got {column}")
        self.is_float = self.gives_float = dtype == "float64"
        self.column = column
        self.arrival = -1
        self.cells = 1
        self.takes_values = True
        self.owned = self.columns = ()

    cdef void blank(self, char* row) noexcept nogil:
        pass

    cdef void add(self, char* rows, Py_ssize_t stride, const idx_t* slots, Py_ssize_t n, Column column) noexcept nogil:
        pass

    cdef void merge(self, Merge pairs) noexcept nogil:
        pass

    cdef void take(self, const Take* rows, void* values, uint8_t* marks) noexcept nogil:
        """Writes the results of some rows, and a mark for each; marks come in with the rows' `seen` bits."""

    cdef int fail(self) except -1:
        """Raises for a result marked NO_VALUE."""

    cdef tuple blobs(self, RowStore rows, const idx_t[::1] slots):
        """Returns the results of one that gives_bytes: ``(offsets, data, valid)``."""
        raise NotImplementedError

    cdef int check_columns(self, list held) except -1:
        """Raises ValueError where the columns do not suit; held: ``(values, valid, text)`` of each."""
        if self.takes_values:
            check_column(self, held, self.column, "float64" if self.is_float else "int64")
        return 0

    cdef bint sound(self, const char* row) noexcept nogil:
        """Tells whether a row's block from a saved state can be this accumulator's; asked only if it owns one."""
        return True

    cdef int64_t arrived(self, const char* row) noexcept nogil:
        """Returns a number above those of all elements whose arrival a row remembers, for one that does; 0 for none."""
        return 0

    cdef bint tidy(self, char* row) noexcept nogil:
        """Puts what a row owns into the form that follows from its values alone. Returns whether there was memory."""
        return True

    cdef void shift(self, char* row, int64_t by) noexcept nogil:
        """Moves the arrivals that a row remembers."""


cdef int raise_failure(Accumulator member) except -1:
    """Raises what adding or merging has left behind."""
    if member.starved:
        member.starved = False
        raise MemoryError(f"{type(member).__name__}: no memory for what its rows hold")
    problem, member.problem = member.problem, None
    raise problem


cdef class AccumulatorSet:
    """The accumulators of a row, side by side.

    members: the accumulators, in the order of their cells; each belongs to one set only.
    head_cells: how many cells of a row are taken in front of them, at least three.

    Raises ValueError for more than MEMBER_BITS members, or for one of another set.
    """

    def __cinit__(self, members, Py_ssize_t head_cells=HEAD_CELLS):
        cdef Accumulator member
        self.members, self._arrival = tuple(members), -1
        self.head_cells = self.cells = head_cells
        if head_cells < HEAD_CELLS:
            raise ValueError(f"head_cells: at least {HEAD_CELLS}, got {head_cells}")
        if len(self.members) > MEMBER_BITS:
            raise ValueError(f"aggregates: at most {MEMBER_BITS} in one spec, got {len(self.members)}")
        owned = []
        for i, one in enumerate(self.members):
            if not isinstance(one, Accumulator):
                raise TypeError(f"members: accumulators, got {one!r}")
            member = one
            if member.at:
                raise ValueError(f"members: {type(one).__name__} number {i} belongs to a set already")
            if member.takes_values and member.column < 0:
                raise ValueError(f"members: {type(one).__name__} number {i} reads no column")
            self._kernels[i] = <PyObject*> one
            member.at = self.cells * 8
            member.seen = (<uint64_t> 1) << <int> i
            owned += [self.cells + cell for cell in member.owned]
            self.remembers |= member.remembers
            self.cells += member.cells
            self.columns = max(self.columns, member.column + 1, *(index + 1 for index in member.columns))
            self._arrival = max(self._arrival, member.arrival)
            self.fallible |= member.fallible or len(member.owned) > 0
        self.owned = tuple(owned)
        self._n = len(self.members)
        self._column = <Column*> calloc(max(self.columns, 1), sizeof(Column))
        if self._column == NULL:
            raise MemoryError("AccumulatorSet: no memory for the columns")
        self._fuse()

    def __dealloc__(self):
        free(self._column)
        free(self._picked)

    cdef int _fuse(self) except -1:
        """Finds the members that loops of a column each can feed; the others stay apart."""
        cdef Accumulator member
        cdef Lane* lane
        for member in self.members:
            if member.role == COUNT and member.column < 0 and not self._fused.rows:
                self._fused.rows = member.at
                continue
            lane = NULL
            if member.role != OTHER and member.column >= 0:
                lane = lane_of(&self._fused, member.column)
            if lane == NULL or lane.at[member.role]:
                self._apart[self._apart_n] = <PyObject*> member
                self._apart_n += 1
                continue
            lane.at[member.role] = member.at
            if member.role != COUNT:
                lane.is_float = member.is_float
                lane.seen |= 0 if member.role == MEAN else member.seen
        return 0

    def blank(self):
        """Returns what a fresh row holds: int64[cells]."""
        out = np.zeros(self.cells, dtype=np.int64)
        cdef int64_t[::1] view = out
        cdef Accumulator member
        for member in self.members:
            member.blank(<char*> &view[0])
        return out

    cdef list hold(self, list columns, Py_ssize_t n):
        """Points to the columns that add() reads next, see add_rows; good as long as the list returned."""
        cdef const int64_t[::1] ints
        cdef const double[::1] floats
        cdef const uint8_t[::1] valid
        cdef Accumulator member
        cdef Py_ssize_t i
        held = []
        if len(columns) != self.columns:
            raise ValueError(f"columns: the accumulators read {self.columns}, got {len(columns)}")
        for i in range(self.columns):
            self._column[i].values = self._column[i].valid = self._column[i].text = NULL
            if len(columns[i]) == 3:
                values, text, mask = columns[i]
                values = values.astype(np.int64, copy=False)
                check_offsets[int64_t](values, text.shape[0])
                check_length(f"columns: column {i}", values.shape[0] - 1, n)
                valid = text
                self._column[i].text = &valid[0] if valid.shape[0] else &no_text
            else:
                text = None
                values, mask = columns[i]
                check_array(f"columns: column {i}", values, (np.int64, np.float64), n)
            held.append((values, mask, text))
            check_array(f"columns: mask of column {i}", mask, (np.bool_, np.uint8), n)
            if values is not None and n and values.dtype.kind == "f":
                floats = values
                self._column[i].values = &floats[0]
            elif values is not None and n:
                ints = values
                self._column[i].values = &ints[0]
            if mask is not None and n:
                valid = mask.view(np.uint8)
                self._column[i].valid = &valid[0]
        for member in self.members:
            member.check_columns(held)
        self._before = self.arrived
        self.arrived += n
        if self._arrival >= 0 and n:
            self.arrived = max(self.arrived, held[self._arrival][0].max() + 1)
        return held

    cdef int add(self, RowStore rows, const idx_t* slots, Py_ssize_t n, Py_ssize_t offset) except -1 nogil:
        """Adds values [offset, offset + n) of the held columns to the rows."""
        cdef Py_ssize_t i, at = 0
        cdef Column column
        cdef int read
        while at < n and self._apart_n < self._n:
            add_fused(&self._fused, self._column, rows.data, rows.stride, slots + at, min(n - at, <Py_ssize_t> AT_ONCE),
                      offset + at)
            at += AT_ONCE
        for i in range(self._apart_n):
            column.values = NULL
            column.valid = column.text = NULL
            read = (<Accumulator> self._apart[i]).column
            if read >= 0:
                column = self._column[read]
                if column.values != NULL:
                    column.values = <const char*> column.values + offset * 8
                if column.valid != NULL:
                    column.valid = column.valid + offset
            column.all = self._column
            column.offset = offset
            column.arrived = self._before + offset
            (<Accumulator> self._apart[i]).add(rows.data, rows.stride, slots, n, column)
        return self._check_failures()

    cdef int add_some(self, RowStore rows, const idx_t* slots, Py_ssize_t n, Py_ssize_t offset,
                      const idx_t* picked) except -1 nogil:
        """Adds the values at ``offset + picked[i]`` of the held columns, none of text; n: at most AT_ONCE."""
        cdef Column* held = self._column
        cdef Column* some = self._picked
        cdef int64_t before = self._before
        if some == NULL:
            some = self._picked = <Column*> malloc(max(self.columns, 1) * (sizeof(Column) + PICKED_BYTES))
            if some == NULL:
                with gil:
                    raise MemoryError("AccumulatorSet: no memory for the columns")
        pick_columns(some, held, self.columns, offset, picked, n)
        self._column, self._before = some, before + offset
        try:
            return self.add(rows, slots, n, 0)
        finally:
            self._column, self._before = held, before

    cdef int merge(self, RowStore rows, const idx_t* slots, RowStore others, const idx_t* from_slots,
                   Py_ssize_t n) except -1 nogil:
        """Merges rows of others into rows, in order; both stores have the layout of this set."""
        cdef Py_ssize_t i
        if self._apart_n == 0:
            for i in range(n):
                merge_fused(&self._fused, rows.data + slots[i] * rows.stride,
                            others.data + from_slots[i] * rows.stride)
            return 0
        return self._merge_each(rows, slots, others, from_slots, n)

    cdef int _merge_each(self, RowStore rows, const idx_t* slots, RowStore others, const idx_t* from_slots,
                         Py_ssize_t n) except -1 nogil:
        cdef Merge pairs
        cdef Py_ssize_t i
        pairs.rows = rows.data
        pairs.from_rows = others.data
        pairs.slots = slots
        pairs.from_slots = from_slots
        pairs.stride = rows.stride
        pairs.n = n
        for i in range(n):
            bits_of(into(&pairs, i))[0] |= (<const uint64_t*> taken(&pairs, i))[0]
        for i in range(self._n):
            (<Accumulator> self._kernels[i]).merge(pairs)
        return self._check_failures()

    cdef int _check_failures(self) except -1 nogil:
        cdef Py_ssize_t i
        cdef PyObject* one
        if self.fallible:
            for i in range(self._n):
                one = self._kernels[i]
                if (<Accumulator> one).starved or (<Accumulator> one).problem is not None:
                    with gil:
                        raise_failure(<Accumulator> one)
        return 0

    def new_rows(self):
        """Returns an empty store for rows of this set."""
        return RowStore(self.blank(), self.owned)

    def check_rows(self, RowStore rows not None, const idx_t[::1] slots not None):
        """Raises ValueError for rows of another layout, IndexError for slots that were never used."""
        if rows.stride != self.cells * 8:
            raise ValueError(f"rows: of {rows.stride} bytes, but the set has {self.cells * 8}")
        check_ids("slots", slots, rows.top)

    def add_rows(self, RowStore rows not None, const idx_t[::1] slots not None, list columns not None):
        """Adds one value a slot.

        columns: ``(values, valid)`` a column: int64[n] or float64[n] (None where only nulls are
            counted) and bool[n], False for null (None: no nulls); or ``(offsets, data, valid)`` for text: int64[n + 1]
            and uint8[bytes].
        Raises ValueError if the columns do not suit the members, or for rows of another layout;
        IndexError for a slot that was never used.
        """
        self.check_rows(rows, slots)
        _held = self.hold(columns, slots.shape[0])
        if slots.shape[0]:
            self.add(rows, &slots[0], slots.shape[0], 0)

    def merge_rows(self, RowStore rows not None, const idx_t[::1] slots not None,
                   RowStore others not None, const idx_t[::1] from_slots not None):
        """Merges row ``from_slots[i]`` of others into row ``slots[i]``, in order of i.

        Raises ValueError for unequal lengths or rows of another layout, IndexError for a slot never used.
        """
        check_length("from_slots", from_slots.shape[0], slots.shape[0])
        self.check_rows(rows, slots)
        self.check_rows(others, from_slots)
        if slots.shape[0]:
            self.merge(rows, &slots[0], others, &from_slots[0], slots.shape[0])

    def results(self, RowStore rows not None, const idx_t[::1] slots not None):
        """Returns the results of each member: ``(values, valid)``, int64[n] or float64[n], and bool[n] or None where no
        value is null; of one that gives_bytes ``(offsets, data, valid)``, int64[n + 1] and uint8[bytes].

        Changes nothing. Goes by blocks, so that a row is fetched once for all members. Raises IndexError for a slot
        that was never used, ValueError for rows of another layout, and whatever an accumulator says of itself.
        """
        cdef Accumulator member
        cdef Py_ssize_t n = slots.shape[0], at = 0, i, k, kernels = 0
        cdef uint64_t common
        cdef uint8_t other
        cdef uint8_t[::1] marks
        cdef int64_t[::1] ints
        cdef PyObject* kernel[MEMBER_BITS]
        cdef void* values[MEMBER_BITS]
        cdef uint8_t* valid[MEMBER_BITS]
        cdef Take take
        self.check_rows(rows, slots)
        found = []
        for member in self.members:
            if member.gives_bytes:
                continue
            out, out_marks = np.empty(n, np.float64 if member.gives_float else np.int64), np.empty(n, np.uint8)
            found.append((out, out_marks))
            if n:
                ints, marks = out.view(np.int64), out_marks
                kernel[kernels], values[kernels], valid[kernels] = <PyObject*> member, &ints[0], &marks[0]
                kernels += 1
        take.rows, take.stride = rows.data, rows.stride
        with nogil:
            while at < n:
                take.slots, take.n = &slots[at], min(n - at, BLOCK)
                for i in range(take.n):
                    prefetch(wanted(&take, i))
                    prefetch(wanted(&take, i) + take.stride - 1)
                common = common_bits(&take)
                for k in range(kernels):
                    mark_seen(&take, (<Accumulator> kernel[k]).seen, common, valid[k] + at)
                    (<Accumulator> kernel[k]).take(&take, <char*> values[k] + 8 * at, valid[k] + at)
                at += take.n
        results, given = [], iter(found)
        for member in self.members:
            if member.gives_bytes:
                results.append(member.blobs(rows, slots))
                continue
            out, out_marks = next(given)
            marks = out_marks
            other = differing(&marks[0], n, VALUE) if n else 0
            if other & NO_VALUE:
                member.fail()
            results.append((out, out_marks.view(np.bool_) if other else None))
        return results
