"""NumpyAccumulator: states that functions of a user make, combine and read, many rows at a time, in numpy."""

import numpy as np

cimport cython

from fastwin.core.typedefs cimport idx_t, int64_t, uint8_t
from fastwin.core.accumulators.accumulator_set cimport NO_VALUE, NULL_VALUE, VALUE, Accumulator as Base, Column, Merge
from fastwin.core.accumulators.accumulator_set cimport Take
from fastwin.core.accumulators.accumulator_set cimport bits_of, check_column, has, valid_at, values_at
from fastwin.errors import UserFunctionError

__all__ = ["NumpyAccumulator"]

cdef object INT64_MAX = np.uint64(2**63 - 1)


@cython.final
cdef class NumpyAccumulator(Base):
    """Keeps a state of several numbers a row. Cells: one that tells whether there is a state, and one for each number.

    user: has ``lift(*columns)``, ``combine(a, b)`` and ``lower(state)`` over arrays; see ``fastwin.NumpyAggregate``.
    reads: ``(index, dtype)`` of each column. state: dtypes of the numbers. result: dtype of the results. All are
    int64 or float64.
    """

    cdef object user, problem_in_take
    cdef tuple reads, state

    def __cinit__(self, dtype="int64", int column=0, user=None, reads=(), state=(), result="float64"):
        self.user, self.reads, self.state = user, tuple(reads), tuple(state)
        self.columns = tuple([index for index, _ in self.reads])
        self.cells = 1 + len(self.state)
        self.gives_float = result == "float64"
        self.takes_values = False
        self.fallible = True

    cdef int check_columns(self, list held) except -1:
        for index, dtype in self.reads:
            check_column(self, held, index, dtype)
        return 0

    cdef void add(self, char* rows, Py_ssize_t stride, const idx_t* slots, Py_ssize_t n, Column column) noexcept nogil:
        with gil:
            try:
                if self.problem is None:
                    self._add(rows, stride, slots, n, &column)
            except BaseException as problem:
                self.problem = problem

    cdef void merge(self, Merge pairs) noexcept nogil:
        with gil:
            try:
                if self.problem is None:
                    self._merge(&pairs)
            except BaseException as problem:
                self.problem = problem

    cdef void take(self, const Take* rows, void* values, uint8_t* marks) noexcept nogil:
        cdef Py_ssize_t i
        with gil:
            try:
                self._take(rows, values, marks)
            except BaseException as problem:
                self.problem_in_take = problem
                for i in range(rows.n):
                    marks[i] = NO_VALUE

    cdef int fail(self) except -1:
        problem, self.problem_in_take = self.problem_in_take, None
        raise problem

    cdef int _add(self, char* rows, Py_ssize_t stride, const idx_t* slots, Py_ssize_t n,
                  const Column* column) except -1:
        cdef Py_ssize_t i, m = 0
        cdef int index
        cdef const uint8_t* valid
        cdef const int64_t* values
        kept, found = np.ones(n, dtype=np.uint8), np.empty(n, dtype=np.int32)
        cdef uint8_t[::1] keep = kept
        cdef idx_t[::1] into = found
        cdef int64_t[::1] view
        for index in self.columns:
            valid = valid_at(column, index)
            for i in range(n):
                keep[i] &= has(valid, i)
        for i in range(n):
            if keep[i]:
                into[m] = slots[i]
                m += 1
        if m == 0:
            return 0
        arrays = []
        for index, dtype in self.reads:
            bits = np.empty(m, dtype=np.int64)
            view, values, m = bits, <const int64_t*> values_at(column, index), 0
            for i in range(n):
                if keep[i]:
                    view[m] = values[i]
                    m += 1
            arrays.append(bits.view(dtype))
        self._fold(rows, stride, found[:m], self._call("lift", self.user.lift, arrays, m))
        return 0

    cdef int _merge(self, const Merge* pairs) except -1:
        cdef Py_ssize_t i
        cdef Py_ssize_t first = 0
        cdef set changed = set()
        from_slots, slots = np.empty(pairs.n, dtype=np.int32), np.empty(pairs.n, dtype=np.int32)
        cdef idx_t[::1] origin = from_slots, into = slots
        for i in range(pairs.n):
            origin[i], into[i] = pairs.from_slots[i], pairs.slots[i]
            if pairs.rows == pairs.from_rows:
                # A row that has just been merged into goes on into another: what is before it has to be done first.
                if pairs.from_slots[i] in changed:
                    self._merge_some(pairs, from_slots[first:i], slots[first:i])
                    changed.clear()
                    first = i
                changed.add(pairs.slots[i])
        return self._merge_some(pairs, from_slots[first:], slots[first:])

    cdef int _merge_some(self, const Merge* pairs, from_slots, slots) except -1:
        held = self._held(pairs.from_rows, pairs.stride, from_slots)
        if held.any():
            states = self._states(pairs.from_rows, pairs.stride, from_slots[held])
            self._fold(pairs.rows, pairs.stride, slots[held], states)
        return 0

    cdef int _take(self, const Take* rows, void* values, uint8_t* marks) except -1:
        cdef Py_ssize_t i
        cdef int64_t[::1] view
        cdef uint8_t[::1] found
        slots = np.empty(rows.n, dtype=np.int32)
        cdef idx_t[::1] wanted = slots
        for i in range(rows.n):
            wanted[i] = rows.slots[i]
        held = self._held(rows.rows, rows.stride, slots)
        for i in range(rows.n):
            marks[i] = NULL_VALUE
            (<int64_t*> values)[i] = 0
        if not held.any():
            return 0
        states = self._states(rows.rows, rows.stride, slots[held])
        where = np.flatnonzero(held)
        dtype = "float64" if self.gives_float else "int64"
        result = self._call("lower", self.user.lower, (states,), len(where), (dtype,))
        present = ~np.ma.getmaskarray(result[0])
        bits = np.zeros(rows.n, dtype=np.int64)
        bits[where] = np.ascontiguousarray(np.ma.getdata(result[0])).view(np.int64)
        given = np.zeros(rows.n, dtype=np.uint8)
        given[where] = present
        view, found = bits, given
        for i in range(rows.n):
            (<int64_t*> values)[i] = view[i]
            marks[i] = VALUE if found[i] else NULL_VALUE
        return 0

    cdef object _call(self, str what, function, arguments, Py_ssize_t n, dtypes=None):
        """Calls a function of the user; returns arrays of n values, of the dtypes that it must give."""
        cdef str name = f"{type(self.user).__qualname__}.{what}"
        dtypes = self.state if dtypes is None else dtypes
        try:
            found = function(*arguments)
            if what == "lower" or not isinstance(found, (tuple, list)):
                found = (found,)
            if len(found) != len(dtypes):
                raise TypeError(f"must return {len(dtypes)} arrays, as `state` says, returned {len(found)}")
            out = []
            for array, dtype in zip(found, dtypes):
                array = np.ma.asanyarray(array) if isinstance(array, np.ma.MaskedArray) else np.asarray(array)
                if array.shape != (n,):
                    raise TypeError(f"must return arrays of {n} values, returned shape {array.shape}")
                if what != "lower" and isinstance(array, np.ma.MaskedArray) and np.ma.getmaskarray(array).any():
                    masked = np.ma.count_masked(array)
                    raise ValueError(f"must mask nothing, as only `lower` may, masked {masked} of {n}")
                if dtype == "int64" and array.dtype.kind == "u" and (array > INT64_MAX).any():
                    raise OverflowError(f"must return integers below 2**63, returned {array.max()}")
                out.append(array.astype(dtype, casting="same_kind", copy=False))
            return out
        except Exception as problem:
            raise UserFunctionError(f"{name}: {type(problem).__name__}: {problem}") from problem

    cdef object _held(self, const char* rows, Py_ssize_t stride, slots):
        """Tells which rows have a state: bool[n]."""
        cdef const idx_t[::1] wanted = slots
        cdef Py_ssize_t i
        marks = np.empty(len(slots), dtype=np.uint8)
        cdef uint8_t[::1] view = marks
        for i in range(wanted.shape[0]):
            view[i] = (<const int64_t*> (rows + wanted[i] * stride + self.at))[0] != 0
        return marks.view(np.bool_)

    cdef list _states(self, const char* rows, Py_ssize_t stride, slots):
        """Returns the states of rows that have one: an array for each number."""
        cdef const idx_t[::1] wanted = slots
        cdef int64_t[::1] view
        cdef Py_ssize_t i, k
        states = []
        for k in range(len(self.state)):
            bits = np.empty(len(slots), dtype=np.int64)
            view = bits
            for i in range(wanted.shape[0]):
                view[i] = (<const int64_t*> (rows + wanted[i] * stride + self.at))[1 + k]
            states.append(bits.view(self.state[k]))
        return states

    cdef int _fold(self, char* rows, Py_ssize_t stride, slots, list states) except -1:
        """Combines states with those of rows; a row may be named more than once. O(n log n)."""
        cdef const idx_t[::1] into
        cdef const int64_t[::1] view
        cdef Py_ssize_t i, k
        cdef char* row
        order = np.argsort(slots, kind="stable")
        slots, states = slots[order], [array[order] for array in states]
        while True:                     # neighbours of one row become one, until each row is named once
            first = np.concatenate([[True], slots[1:] != slots[:len(slots) - 1]])
            if first.all():
                break
            place = np.arange(len(slots))
            odd = (place - np.maximum.accumulate(np.where(first, place, 0))) % 2 == 1
            right = np.flatnonzero(odd)
            both = ([array[right - 1] for array in states], [array[right] for array in states])
            for array, made in zip(states, self._call("combine", self.user.combine, both, len(right))):
                array[right - 1] = made
            slots, states = slots[~odd], [array[~odd] for array in states]
        held = self._held(rows, stride, slots)
        if held.any():
            old = self._states(rows, stride, slots[held])
            new = self._call("combine", self.user.combine, (old, [array[held] for array in states]), len(old[0]))
            for array, made in zip(states, new):
                array[held] = made
        into = slots
        for k in range(len(self.state)):
            view = states[k].view(np.int64)
            for i in range(into.shape[0]):
                (<int64_t*> (rows + into[i] * stride + self.at))[1 + k] = view[i]
        for i in range(into.shape[0]):
            row = rows + into[i] * stride
            (<int64_t*> (row + self.at))[0] = 1
            bits_of(row)[0] |= self.seen
        return 0
