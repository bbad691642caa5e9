"""Contents: what a window of the general operator holds, how elements get in and out, and what comes of them."""

import numpy as np

from fastwin.core.typedefs cimport NONE, idx_t, ts_t
from fastwin.core.accumulators.accumulator_set cimport AccumulatorSet
from fastwin.core.memory.references cimport give_back, set_apart, untrack
from fastwin.core.windows.windowtable cimport FIRED, HAS_CONTENTS, Window
from fastwin.operators.general.elements cimport Elements
from fastwin.operators.general.returned import reduced_maker, row_maker
from fastwin.operators.general.runs cimport Run, Runs
from fastwin.columns.row cimport FEWEST_ROWS, Numbers, Rows, TimedRow
from fastwin.columns.rowrun cimport Picked
from fastwin.columns.handedrows cimport HandedRows
from fastwin.columns.windowrows cimport WindowRows, new_window_rows
from fastwin.columns.rowkeeping import move_out
from fastwin.columns.row import row_type
from fastwin.functions.aggregate import adds_many

cdef enum:
    FEWEST = 2                  # elements of a run; fewer are added one by one
    LINE = 64                   # empty places that are passed over while one element is looked at

cdef object UNMADE = object()   # in the place of an accumulator, until the first elements are handed over


cdef class Contents:
    """The contents of all windows.

    elements: of the current call. accumulators: of the built-in aggregates. program: what else there is.
    """

    def __init__(self, Elements elements not None, AccumulatorSet accumulators not None, program, config):
        self.elements = elements
        self.table = elements.table
        self.objects = []
        self.saved_lists = {}
        self.accumulators = accumulators
        self.folds = bool(program.aggregates or config.results or program.reduce is not None)
        self.keeps_rows = program.evictor is not None or not self.folds
        self.timed = program.evictor is not None
        self.numbered = self.timed and accumulators.remembers
        self.keeps_places = self.keeps_rows and not self.timed
        if self.keeps_rows:
            self.handed = elements.handed = HandedRows(row_type(program.rows.names), program.rows.types)
        self.built_in = len(accumulators.members) > 0 and not self.keeps_rows
        self.reduce = None if program.reduce is None else program.reduce.reduce
        self.adds = [part.function.add for part in program.aggregates]
        self.creates = [part.function.create_accumulator for part in program.aggregates]
        self.gives = [part.function.get_result for part in program.aggregates]
        if len(self.adds) == 1:
            self.only_add, self.only_create, self.only_give = self.adds[0], self.creates[0], self.gives[0]
        self.manys = [part.function.add_many if adds_many(part.function) else None for part in program.aggregates]
        self.takes_runs = not self.keeps_rows and any(self.manys)
        self.runs = Runs()
        self.merges = [part.function.merge for part in program.aggregates]
        self.whats = [type(part.function).__qualname__ for part in program.aggregates]
        self.makers = [row_maker(part.names, f"{what}.get_result")
                       for part, what in zip(program.aggregates, self.whats)]
        self.in_python = bool(self.adds) or self.reduce is not None or self.keeps_rows
        if self.reduce is not None:
            what = getattr(program.reduce, "name", f"{type(program.reduce).__qualname__}.reduce")
            self.whats = [what]
            self.reduced = reduced_maker(row_type(program.rows.names), what)

    cdef int number(self, Py_ssize_t n, object order) except -1:
        """Numbers the n elements of a call as they have arrived. order: in which they are taken; None: likewise."""
        if self.numbered:
            arrivals = np.arange(self.accumulators.arrived, self.accumulators.arrived + n)
            self.arrivals = arrivals if order is None else arrivals[order]
            self.accumulators.arrived += n
        return 0

    cdef void keep_at_hand(self, TimedRow timed, Py_ssize_t i) noexcept:
        """Lets a timed row, of element i, have numbers that its window will be asked for."""
        cdef const Numbers* numbers
        cdef Py_ssize_t k
        for k in range(self.at_hand_n):
            numbers = self.elements.rows.numbers + self.at_hand[k]
            if numbers.values == NULL:
                return
            if numbers.valid == NULL or numbers.valid[i]:
                timed.there |= 1 << k
            timed.values[k] = (<const int64_t*> numbers.values)[i]
        timed.known = True

    cdef int fit(self) except -1:
        """Makes the list by slot long enough."""
        cdef Py_ssize_t more = self.table.rows.capacity - len(self.objects)
        if more > 0:
            self.objects.extend([None] * more)
        return 0

    def __del__(self):
        for at in range(len(self.objects) if self.in_python else 0):
            self._drop(at)

    cdef int _drop(self, Py_ssize_t at) except -1:
        """Drops what a window held, which others may hold still."""
        held = self.objects[at]
        self.objects[at] = None
        give_back(held, 1)
        return 0

    def fit_all(self):
        """Makes the list by slot long enough for all rows."""
        self.fit()

    cdef int forget(self, idx_t slot) except -1:
        """Drops the Python objects of a window."""
        if slot < len(self.objects):
            self._drop(slot)
            if self.saved_lists:
                self.saved_lists.pop(slot, None)
        return 0

    cdef int add(self, idx_t slot, Py_ssize_t i, ts_t time) except -1:
        """Adds element i; built-in accumulators are fed apart."""
        cdef Window* window = self.table.at(slot)
        cdef bint first = not window.flags & HAS_CONTENTS
        cdef list contents
        cdef TimedRow timed
        self.table.fill(window)
        if not self.in_python:
            return 0
        if slot >= len(self.objects):
            self.fit()
        contents = self.objects
        if self.takes_runs:
            if first:
                contents[slot] = UNMADE
            return self.runs.note(window, slot, i)
        if self.keeps_places:
            return self._keep_place(slot, i, first)
        row = self.elements.element(i)
        if self.keeps_rows:
            timed = TimedRow.__new__(TimedRow)
            timed.value, timed.time, timed.arrival = row, time, self.arrivals[i] if self.numbered else -1
            self.keep_at_hand(timed, i)
            if first:
                kept = [timed]
                untrack(<void*> kept)       # rows make no circles, and there may be millions of such lists
                contents[slot] = kept
            else:
                (<list> contents[slot]).append(timed)
            return 0
        if self.reduce is not None:
            contents[slot] = row if first else self._reduce(contents[slot], row, slot)
            return 0
        return self._fold(slot, row, first)

    cdef int _keep_place(self, idx_t slot, Py_ssize_t i, bint first) except -1:
        """Adds an element to those that a window keeps as places. first: it has none yet."""
        cdef Rows rows = self.elements.rows
        cdef WindowRows kept
        if first:
            kept = new_window_rows(self.handed)
            self.objects[slot] = kept
        else:
            kept = self.objects[slot]
        return kept.add_row(self.elements.element(i)) if rows.n < FEWEST_ROWS else kept.add(rows, <idx_t> i)

    cdef int settle(self) except -1:
        """Lets go of calls of which windows keep few elements.

        Amortised O(1) an element: it waits until these calls have had as many as windows and their parts, at all of
        which it looks, and one for each line of places in the list of objects.
        """
        cdef list thin = self.elements.thin
        cdef Py_ssize_t looked_at = self.table.filled
        cdef Rows rows
        self.arrivals = None
        if not thin:
            return 0
        if self.keeps_places:
            looked_at = max(looked_at + self.handed.parts, len(self.objects) // LINE)
        if self.elements.thin_n < looked_at:
            return 0
        if self.keeps_places:
            move_out(self.objects, thin)
        for rows in thin:
            rows.scatter()
        thin.clear()
        self.elements.thin_n = 0
        return 0

    cdef int _fold(self, idx_t slot, object row, bint first) except -1:
        """Adds an element to the accumulators of a window. first: it has none yet."""
        cdef list contents = self.objects, parts
        cdef Py_ssize_t j = 0
        try:
            if self.only_add is not None:
                held = self.only_create() if first else contents[slot]
                self._keep(slot, held, self.only_add(row, held), first)
                return 0
            parts = [create() for create in self.creates] if first else contents[slot]
            for j in range(len(parts)):
                parts[j] = self.adds[j](row, parts[j])
            contents[slot] = parts
            if first:
                untrack(<void*> parts)      # nobody else sees it
        except Exception as problem:
            raise self.elements.blame(f"{self.whats[j]}.add", slot, problem) from problem
        return 0

    cdef int _keep(self, idx_t slot, object held, object got, bint first) except -1:
        """Makes what a function has returned the accumulator of a window. held: what it was handed."""
        if first or got is not held:
            self.objects[slot] = got
            set_apart(got)
            if not first:
                give_back(held, 1)
        return 0

    cdef int hand_over(self, idx_t slot) except -1:
        """Hands elements that a window has got to the functions, if these wait for more."""
        cdef Py_ssize_t run = self.table.at(slot).run
        return self._hand_over(run - 1, run) if run else 0

    cdef int hand_over_all(self) except -1:
        """The same for all windows, at the end of a call."""
        self._hand_over(0, self.runs.runs_n)
        self.runs.done()
        return 0

    cdef int _hand_over(self, Py_ssize_t begin, Py_ssize_t end) except -1:
        cdef Picked picked = None
        cdef Py_ssize_t r, n, at = 0
        cdef idx_t place, slot
        cdef Run* run
        for r in range(begin, end):
            run = self.runs.runs + r
            n, slot, place = run.n, run.slot, run.first
            if n == 0:
                continue
            if n >= FEWEST and picked is None:
                picked, at = self.runs.pick(self.elements.rows, r, end), 0
            run.n = self.table.at(slot).run = 0
            if n >= FEWEST:
                self._fold_run(slot, picked, at, n)
            else:
                while place != NONE:
                    self._fold(slot, self.elements.element(self.runs.noted[place].i), self.objects[slot] is UNMADE)
                    place = self.runs.noted[place].next
            at += n
        return 0

    cdef int _fold_run(self, idx_t slot, Picked picked, Py_ssize_t at, Py_ssize_t n) except -1:
        """Adds n of the picked elements, from ``at`` on, to the accumulators of a window."""
        cdef list parts
        cdef Py_ssize_t j = 0, k
        cdef bint first = self.objects[slot] is UNMADE
        try:
            if self.only_add is not None:
                held = self.only_create() if first else self.objects[slot]
                got = self.manys[0](self.runs.handed(picked, at, n), held)
                self.runs.taken_back()
                self._keep(slot, held, got, first)
                return 0
            parts = [create() for create in self.creates] if first else self.objects[slot]
            for j in range(len(parts)):
                if self.manys[j] is not None:
                    parts[j] = self.manys[j](self.runs.handed(picked, at, n), parts[j])
                    self.runs.taken_back()
                else:
                    for k in range(at, at + n):
                        parts[j] = self.adds[j](self.elements.element(picked.places[k]), parts[j])
            self.objects[slot] = parts
            if first:
                untrack(<void*> parts)
        except Exception as problem:
            what = "add" if self.manys[j] is None else "add_many"
            raise self.elements.blame(f"{self.whats[j]}.{what}", slot, problem) from problem
        return 0

    cdef object _reduce(self, object a, object b, idx_t slot):
        try:
            return self.reduced(self.reduce(a, b))
        except Exception as problem:
            raise self.elements.blame(self.whats[0], slot, problem) from problem

    cdef int leave(self, idx_t slot, list elements, Py_ssize_t n) except -1:
        """Leaves these elements of a window that had n."""
        if not elements:
            self.clear(slot)
        elif len(elements) < n:
            if elements is not self.objects[slot]:
                self.objects[slot] = elements
            elif slot in self.saved_lists:
                self.saved_lists[slot] = (None, 0)      # what was saved is no beginning of it
        return 0

    cdef int clear(self, idx_t slot) except -1:
        """Empties a window."""
        cdef Window* window = self.table.at(slot)
        if window.run:
            self.hand_over(slot)
        self.table.rows.mark(slot)
        if self.built_in:
            self.table.rows.reset(slot, self.accumulators.head_cells)
        if self.in_python:
            self.forget(slot)
        self.table.empty(window)
        window.flags &= ~<unsigned int> FIRED
        return 0

    cdef int merge(self, idx_t slot, idx_t other) except -1:
        """Moves the contents of ``other`` to those of ``slot``."""
        cdef bint first = not self.table.at(slot).flags & HAS_CONTENTS
        cdef Py_ssize_t j
        if not self.table.at(other).flags & HAS_CONTENTS:
            return 0
        if self.built_in:
            self.accumulators.merge(self.table.rows, &slot, self.table.rows, &other, 1)
        if self.in_python:
            self.fit()
            if first:
                self.runs.move(self.table.at(other), self.table.at(slot), slot)
            else:
                self.hand_over(slot)
                self.hand_over(other)
            a, b = self.objects[slot], self.objects[other]
            if first:
                a = b
            elif self.keeps_places:
                (<WindowRows> a).extend(b)
            elif self.keeps_rows:
                a = a + b
            elif self.reduce is not None:
                a = self._reduce(a, b, slot)
            else:
                j = 0
                try:
                    if len(self.adds) == 1:
                        a = self.merges[0](a, b)
                        self._drop(slot)
                        set_apart(a)
                    else:
                        for j in range(len(a)):
                            a[j] = self.merges[j](a[j], b[j])
                except Exception as problem:
                    raise self.elements.blame(f"{self.whats[j]}.merge", slot, problem) from problem
            self.objects[slot] = a
        self.table.fill(self.table.at(slot))
        self.table.at(slot).flags |= self.table.at(other).flags & FIRED
        return 0

    cdef object held(self, idx_t slot):
        """Returns the Python contents of a window."""
        self.hand_over(slot)
        return self.objects[slot] if self.in_python else None

    cdef object python_results(self, idx_t slot, object held):
        """Returns the values of the Python aggregates, in the order of their columns: a list or a tuple."""
        cdef list values = []
        cdef Py_ssize_t j
        if self.only_give is not None:
            try:
                return self.makers[0](self.only_give(held))
            except Exception as problem:
                raise self.elements.blame(f"{self.whats[0]}.get_result", slot, problem) from problem
        for j in range(len(self.gives)):
            try:
                values.extend(self.makers[j](self.gives[j](held if len(self.gives) == 1 else held[j])))
            except Exception as problem:
                raise self.elements.blame(f"{self.whats[j]}.get_result", slot, problem) from problem
        return values

    cdef object of_elements(self, list elements, idx_t slot):
        """Returns what elements that are kept come to in Python: a reduced row (None for none), or accumulators."""
        cdef Py_ssize_t j
        if self.reduce is None and not self.creates:
            return None
        rows = [(<TimedRow> element).value for element in elements]
        if self.reduce is not None:
            if not rows:
                return None
            total = rows[0]
            for row in rows[1:]:
                total = self._reduce(total, row, slot)
            return total
        parts = [create() for create in self.creates]
        j = 0
        try:
            for j in range(len(parts)):
                for row in rows:
                    parts[j] = self.adds[j](row, parts[j])
        except Exception as problem:
            raise self.elements.blame(f"{self.whats[j]}.add", slot, problem) from problem
        return parts[0] if len(parts) == 1 else parts
