"""Row: an element as user code sees it, read-only: ``e.price``, ``e["price"]``, ``e[0]``."""

from sys import intern
from weakref import WeakValueDictionary

import numpy as np
import pyarrow as pa

cimport cython
from libc.stdlib cimport calloc, free

from fastwin.columns.exact cimport Exact
from fastwin.core.timemath cimport NO_TIME
from fastwin.core.typedefs cimport int64_t, uint8_t

from fastwin.columns.buffers import aligned, stored, validity
from fastwin.columns.decoding import take_column
from fastwin.columns.pythonvalues import decodes_later, exact_array, exact_values, time_counts

cdef enum:
    FIRST = 8                   # columns that are tried by identity before a name is looked up

cdef tuple NUMBERS = (pa.int64(), pa.float64())
# What numpy has a type for, other than objects.
cdef frozenset PLAIN = frozenset([
    pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
    pa.float16(), pa.float32(), pa.float64()])

__all__ = ["Row", "RowType", "Rows", "TimedRow", "exact_items", "row_of", "row_type", "rows_to_arrays"]

cdef object TYPES = WeakValueDictionary()


def row_type(names):
    """Returns the type of rows with these columns: in a process always the same, so that pickles of rows are, too."""
    names = tuple([intern(name) for name in names])
    found = TYPES.get(names)
    if found is None:
        found = TYPES[names] = RowType(names)
    return found


cdef class RowType:
    """The column names that rows share."""

    def __init__(self, names):
        self.names = tuple(names)
        self.index = {name: j for j, name in enumerate(self.names)}

    def __reduce__(self):
        return row_type, (self.names,)


cdef class Rows:
    """The rows of a record batch; columns are decoded when first asked for, once, or read where they are.

    Rows that are kept beyond their call read from it as long as they are many. A few get values of their own: what was
    read with them shall not live as long as they do.
    """

    def __init__(self, RowType type not None, batch):
        self.type = type
        self.arrays = [batch.column(j) for j in range(batch.num_columns)]
        self.decoded = [None] * len(self.arrays)
        self.kinds = [array.type for array in self.arrays]
        self.n = batch.num_rows
        self.numbers = <Numbers*> calloc(max(len(self.arrays), 1), sizeof(Numbers))
        if self.numbers == NULL:
            raise MemoryError(f"Rows: no memory for {len(self.arrays)} columns")
        self._look_into()

    def __dealloc__(self):
        free(self.held)
        free(self.numbers)

    def _look_into(self):
        """Finds the columns that are numbers of 64 bits: a window reads few of many, and in its own order."""
        cdef const int64_t[::1] values
        cdef const uint8_t[::1] valid
        cdef Py_ssize_t j
        self.views = []
        for j in range(len(self.arrays)):
            array = self.arrays[j]
            if self.n == 0 or array is None or array.type not in NUMBERS:
                continue
            values = numbers = aligned(stored(array, np.int64))
            self.numbers[j].values = <const char*> &values[0]
            self.numbers[j].floats = array.type == pa.float64()
            marks = validity(array)
            if marks is not None:
                valid = marks
                self.numbers[j].valid = &valid[0]
            self.views += [numbers, marks]

    cdef list column(self, Py_ssize_t j):
        values = self.decoded[j]
        if values is None:
            values = exact_values(self.arrays[j])
            self.decoded[j] = values
            self.arrays[j] = None
        return <list> values

    cdef object value(self, Py_ssize_t j, Py_ssize_t i):
        """Returns what Python code sees of row i in a column."""
        found = self.exact(j, i)
        return (<Exact> found).show(self.type.names[j]) if type(found) is Exact else found

    cdef object exact(self, Py_ssize_t j, Py_ssize_t i):
        """Returns what is there: an Exact where Python code sees something else, or nothing."""
        cdef const Numbers* numbers = self.numbers + j
        if numbers.values == NULL:
            return self.column(j)[i]
        self.latest = j
        if numbers.valid != NULL and not numbers.valid[i]:
            return None
        if numbers.floats:
            return (<const double*> numbers.values)[i]
        return (<const int64_t*> numbers.values)[i]

    cdef list counts(self, Py_ssize_t j):
        """Returns a column of times as ints, which are in their order; None for null."""
        if self.counted is None:
            self.counted = {}
        if j not in self.counted:
            array = exact_array(self.decoded[j], self.kinds[j]) if self.arrays[j] is None else self.arrays[j]
            self.counted[j] = time_counts(array)
        return <list> self.counted[j]

    cdef Row row(self, Py_ssize_t i):
        cdef Row row = Row.__new__(Row)
        row.type = self.type
        row.rows = self
        row.i = i
        return row

    cdef int hold(self, Row row) except -1:
        """Remembers a row that somebody keeps, until it goes."""
        if self.held == NULL:
            self.held = <void**> calloc(self.n, sizeof(void*))
            if self.held == NULL:
                raise MemoryError(f"Rows: no memory to remember {self.n} rows")
        if row.held:
            return 0
        if self.held[row.i] != NULL:        # another one of the same element
            row.values = tuple([row.exact(j) for j in range(len(self.arrays))])
            row.rows = None
            return 0
        self.held[row.i] = <void*> row
        row.held = True
        self.live += 1
        return 0

    cdef int close(self, list sparse) except -1:
        """Ends the call. sparse: gets these rows once so few are left that they shall scatter()."""
        cdef Py_ssize_t j
        if self.live + self.kept == 0:
            return 0
        if self.kept == 0 and (self.n < FEWEST_ROWS or 2 * self.live < self.n):
            return self.scatter()
        for j in range(len(self.arrays)):
            if self.arrays[j] is not None:
                if decodes_later(self.arrays[j].type):
                    self.arrays[j] = pa.concat_arrays([self.arrays[j], self.arrays[j][:0]])     # without its batch
                else:
                    self.column(j)
        self.wholes = None
        self._look_into()
        self.sparse = sparse
        if 2 * (self.live + self.kept) < self.n:
            self.sparse.append(self)
            self.sparse = None
        return 0

    cdef int thin_out(self) except -1:
        """Is told that there is less of these rows, and says so if few are left."""
        if self.sparse is not None and 4 * (self.live + self.kept) < self.n:
            self.sparse.append(self)
            self.sparse = None
        return 0

    cdef list values_at(self, object places):
        """Returns the values of rows as exact tuples, which hold nothing else of these rows. places: int64[n]."""
        cdef Py_ssize_t j
        cdef list columns = []
        for j in range(len(self.arrays)):
            if self.decoded[j] is None:
                columns.append(exact_values(take_column(self.arrays[j], pa.array(places))))
            else:
                columns.append([self.decoded[j][i] for i in places])
        return list(zip(*columns)) if columns else [()] * len(places)

    cdef int scatter(self) except -1:
        """Gives the rows that are held values of their own."""
        cdef Py_ssize_t i
        cdef Row row
        if self.live == 0:
            return 0
        cdef list rows = [<Row> self.held[i] for i in range(self.n) if self.held[i] != NULL]
        places = np.array([(<Row> row).i for row in rows], dtype=np.int64)
        for row, values in zip(rows, self.values_at(places)):
            self.held[row.i] = NULL
            row.held = False
            row.values = values
            row.rows = None
        self.live = 0
        return 0

    cdef object whole(self, Py_ssize_t j):
        """Returns a column as an array[n], read-only; None where only lists can say what is in it."""
        if self.wholes is None:
            self.wholes = {}
        if j not in self.wholes:
            array, found = self.arrays[j], None
            if array is not None and array.type in PLAIN and not array.null_count:
                found = array.to_numpy(zero_copy_only=False)
                found.flags.writeable = False
            self.wholes[j] = found
        return self.wholes[j]

    def __len__(self):
        return self.n

    def __getitem__(self, Py_ssize_t i):
        return self.row(i)


cdef Row new_row(RowType type, tuple values):
    cdef Row row = Row.__new__(Row)
    row.type = type
    row.values = values
    return row


cdef tuple exact_tuple(Row row):
    return tuple([row.exact(j) for j in range(len(row.type.names))])


def exact_items(Row row not None):
    """Returns what a row has as a dict, with Exact where Python code sees something else, or nothing."""
    return dict(zip(row.type.names, exact_tuple(row)))


def row_of(RowType type not None, values):
    """Returns a Row of these values, one for each name: Python's, or as ``exact_values`` gives them."""
    values = tuple(values)
    if len(values) != len(type.names):
        raise ValueError(f"row: {len(values)} values for the columns {', '.join(type.names)}")
    return new_row(type, values)


# Windows may keep millions of rows; looking for circles among them would take longer than all else. Values that come
# from Arrow make none.
@cython.no_gc
cdef class Row:
    """A read-only row: values by attribute, by name, or by position, in the order of the columns.

    ``_fields``, ``_asdict()`` and ``_replace(**changes)`` are as a namedtuple has them.
    """

    def __dealloc__(self):
        if not self.held:
            return
        self.rows.held[self.i] = NULL
        self.rows.live -= 1
        self.rows.thin_out()

    cdef object value(self, Py_ssize_t j):
        """Returns what Python code sees in a column."""
        if self.values is None:
            return self.rows.value(j, self.i)
        found = self.values[j]
        return (<Exact> found).show(self.type.names[j]) if type(found) is Exact else found

    cdef object exact(self, Py_ssize_t j):
        """Returns what is there; see Rows.exact()."""
        return self.rows.exact(j, self.i) if self.values is None else self.values[j]

    def __getattribute__(self, str name):
        cdef tuple names = self.type.names
        cdef Py_ssize_t at
        for at in range(min(len(names), FIRST)):
            if names[at] is name:       # code and row_type() have one and the same string for a name
                return self.value(at)
        j = self.type.index.get(name)
        if j is not None:
            return self.value(j)
        if name in ("_fields", "_asdict", "_replace") or name.startswith("__"):
            return object.__getattribute__(self, name)
        raise AttributeError(f"the row has no column {name!r}; it has {', '.join(self.type.names)}")

    def __getitem__(self, name):
        if isinstance(name, str):
            j = self.type.index.get(name)
            if j is None:
                raise KeyError(f"the row has no column {name!r}; it has {', '.join(self.type.names)}")
            return self.value(j)
        if isinstance(name, slice):
            return tuple(self)[name]
        return self.value(range(len(self.type.names))[name])

    def __len__(self):
        return len(self.type.names)

    def __iter__(self):
        return iter([self.value(j) for j in range(len(self.type.names))])

    def __eq__(self, other):
        if isinstance(other, Row):
            return self.type.names == (<Row> other).type.names and tuple(self) == tuple(other)
        return NotImplemented

    def __hash__(self):
        return hash(tuple(self))

    def __repr__(self):
        return f"Row({', '.join(f'{name}={value!r}' for name, value in zip(self.type.names, self))})"

    def __reduce__(self):
        return row_of, (self.type, exact_tuple(self))

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    @property
    def _fields(self):
        """The column names."""
        return self.type.names

    def _asdict(self):
        """Returns the values by name."""
        return dict(zip(self.type.names, self))

    def _replace(self, **changes):
        """Returns a row with some values changed.

        A value must not refer to the row itself: rows are no part of Python's search for circles, which would stay in
        memory for good.
        """
        unknown = changes.keys() - self.type.index.keys()
        if unknown:
            raise ValueError(f"the row has no column {', '.join(sorted(unknown))}")
        return new_row(self.type, tuple([changes.get(n, v) for n, v in zip(self.type.names, exact_tuple(self))]))


@cython.no_gc
@cython.freelist(64)
cdef class TimedRow:
    """An element as evictors see it: its row and its timestamp, ms, None for none."""

    def __init__(self, value, timestamp, arrival=-1):
        self.value = value
        self.time = NO_TIME if timestamp is None else timestamp
        self.arrival = arrival

    @property
    def timestamp(self):
        """The timestamp, ms, None for none."""
        return None if self.time == NO_TIME else self.time

    def __repr__(self):
        return f"TimedRow({self.value!r}, timestamp={self.timestamp})"

    def __reduce__(self):
        return TimedRow, (self.value, self.timestamp, self.arrival)


def rows_to_arrays(rows, schema):
    """Returns rows as Arrow arrays of a schema, column by column."""
    columns = zip(*[exact_tuple(row) for row in rows]) if rows else [[] for _ in schema]
    return [exact_array(values, field.type) for field, values in zip(schema, columns)]
