"""Row: an element as user code sees it, read-only: ``e.price``, ``e["price"]``, ``e[0]``."""

cimport cython
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New

from sys import intern
from weakref import WeakValueDictionary

import numpy as np
import pyarrow as pa

from fastwin.columns.buffers import validity
from fastwin.columns.decoding import decoded, from_objects

cdef extern from *:
    """
    #ifdef Py_LIMITED_API
    #define fastwin_set_item(values, at, value) ((void)PyTuple_SetItem(values, at, value))
    #else
    #define fastwin_set_item(values, at, value) PyTuple_SET_ITEM(values, at, value)
    #endif
    """
    void set_item "fastwin_set_item"(tuple values, Py_ssize_t at, object value)     # takes the reference to the value

__all__ = ["Row", "RowType", "Rows", "TimedRow", "decode_column", "row_of", "row_type", "rows_to_arrays"]

cdef object TYPES = WeakValueDictionary()


def decode_column(array):
    """Returns the values of an Arrow array as a list of Python objects; nanoseconds are cut to microseconds."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    array = decoded(array)
    kind = array.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        if array.null_count == 0:
            return array.to_numpy(zero_copy_only=False).tolist()
        values = array.fill_null(0).to_numpy(zero_copy_only=False).tolist()
        for i in np.flatnonzero(validity(array) == 0).tolist():
            values[i] = None
        return values
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return array.to_numpy(zero_copy_only=False).tolist()
    if (pa.types.is_timestamp(kind) or pa.types.is_duration(kind)) and kind.unit == "ns":
        tz = getattr(kind, "tz", None)
        array = array.cast(pa.timestamp("us", tz) if pa.types.is_timestamp(kind) else pa.duration("us"), safe=False)
    elif pa.types.is_time64(kind) and kind.unit == "ns":
        array = array.cast(pa.time64("us"), safe=False)
    return array.to_pylist()


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
    """The rows of a record batch; columns are decoded when first asked for, once."""

    def __init__(self, RowType type not None, batch):
        self.type = type
        self.arrays = [batch.column(j) for j in range(batch.num_columns)]
        self.decoded = [None] * len(self.arrays)
        self.n = batch.num_rows

    cdef list column(self, Py_ssize_t j):
        values = self.decoded[j]
        if values is None:
            values = decode_column(self.arrays[j])
            self.decoded[j] = values
            self.arrays[j] = None
        return <list> values

    cdef Row row(self, Py_ssize_t i):
        cdef Row row = Row.__new__(Row)
        row.type = self.type
        row.rows = self
        row.i = i
        return row

    def __len__(self):
        return self.n

    def __getitem__(self, Py_ssize_t i):
        return self.row(i)


cdef Row new_row(RowType type, tuple values):
    cdef Row row = Row.__new__(Row)
    row.type = type
    row.values = values
    return row


def row_of(RowType type not None, values):
    """Returns a Row of these values, one for each name."""
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

    cdef object value(self, Py_ssize_t j):
        if self.values is not None:
            return self.values[j]
        return self.rows.column(j)[self.i]

    cdef Row detached(self):
        """Returns the row with values of its own, so that its batch can go."""
        if self.values is None:
            return new_row(self.type, self.own_values())
        return self

    cdef int cut_loose(self) except -1:
        """Gives this very row values of its own."""
        if self.values is None:
            self.values = self.own_values()
            self.rows = None
        return 0

    cdef tuple own_values(self):
        cdef Py_ssize_t j, n = len(self.type.names)
        cdef tuple values
        cdef object value
        for j in range(n):
            self.rows.column(j)     # decodes, before there is a tuple with gaps
        values = PyTuple_New(n)
        for j in range(n):
            value = (<list> self.rows.decoded[j])[self.i]
            Py_INCREF(value)
            set_item(values, j, value)
        return values

    def __getattribute__(self, str name):
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
        return tuple(self)[name]

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
        return row_of, (self.type, tuple(self))

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
        return new_row(self.type, tuple([changes.get(n, v) for n, v in zip(self.type.names, self)]))


@cython.no_gc
cdef class TimedRow:
    """An element as evictors see it: its row and its timestamp, ms, None for none."""

    def __init__(self, value, timestamp):
        self.value = value
        self.timestamp = timestamp

    def __repr__(self):
        return f"TimedRow({self.value!r}, timestamp={self.timestamp})"

    def __reduce__(self):
        return TimedRow, (self.value, self.timestamp)


def rows_to_arrays(rows, schema):
    """Returns rows as Arrow arrays of a schema, column by column."""
    columns = zip(*rows) if rows else [[] for _ in schema]
    arrays = []
    for field, values in zip(schema, columns):
        arrays.append(from_objects(list(values), field.type))
    return arrays
