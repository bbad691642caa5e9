"""SideOutput: rows that user code puts beside its results, until they are handed out."""

import pyarrow as pa

from fastwin.errors import SpecError
from fastwin.operators.general.elements cimport Elements
from fastwin.operators.general.returned import first_unsuited, row_maker, to_arrays


cdef class SideOutput:
    """The rows of one side output since they were last taken, and of each the function, key and window it is of."""

    def __init__(self, str tag not None, schema):
        self.schema = schema
        self.what = f"side output {tag!r}"
        self.make = row_maker(tuple(schema.names), self.what)
        self._renew()

    def _renew(self):
        self.columns = [[] for _ in self.schema]
        self.functions, self.keys, self.windows = [], [], []

    def __len__(self):
        return len(self.keys)

    cdef int add(self, object value, str function, object key, object window) except -1:
        """Adds a row as it is now: the caller may go on to change it. Raises SpecError unless it has these columns."""
        cdef tuple row = self.make(value)
        cdef Py_ssize_t i
        for i in range(len(row)):
            (<list> self.columns[i]).append(row[i])
        self.functions.append(function)
        self.keys.append(key)
        self.windows.append(window)
        return 0

    def take(self, Elements elements not None):
        """Returns the rows as a record batch. Raises UserFunctionError for a value that does not suit its column."""
        try:
            arrays = to_arrays(self.columns, self.schema, self.what)
        except SpecError as problem:
            row, said = first_unsuited(self.columns, self.schema, self.what) or (0, str(problem))
            where = f"key {self.keys[row]!r}, {self.windows[row]}"
            raise elements.blame(self.functions[row], where, ValueError(said)) from problem
        self._renew()
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)
