"""Bag: the values of a row in a run. Distinct counts and sums them, Listed and Ranked give them back."""

import numpy as np

cimport cython
from libc.stdint cimport INT64_MAX
from libc.string cimport memcpy

from fastwin.core.typedefs cimport idx_t, int64_t, uint8_t
from fastwin.core.accumulators.accumulator_set cimport NO_VALUE, NULL_VALUE, VALUE, Accumulator as Base, Column, Merge
from fastwin.core.accumulators.accumulator_set cimport Take, bits_of, check_column, has, into, number_behind
from fastwin.core.accumulators.accumulator_set cimport taken, values_at, wanted
from fastwin.core.accumulators.totals cimport add_float, float_sum
from fastwin.core.bags.adding cimport add_numbers
from fastwin.core.bags.codes cimport code_of_float, code_of_text, float_of_code
from fastwin.core.bags.firstwords cimport MOST_WORDS
from fastwin.core.bags.records cimport compare_texts
from fastwin.core.bags.runs cimport Run, add_record, has_numbers, is_run, merge_runs, order_texts, run_in, settle
from fastwin.core.keys.hashing cimport hash_bytes
from fastwin.core.memory.bounds cimport check_ids
from fastwin.core.memory.int128 cimport int128
from fastwin.core.rows.rowstore cimport RowStore
from fastwin.errors import AggregateOverflowError

__all__ = ["Distinct", "DistinctSum", "Listed", "Ranked"]

cdef dict KINDS = {"int64": NUMBER, "float64": FLOAT, "text": TEXT}
cdef tuple KEEPS = ("all", "distinct", "hashed", "counts", "elements")


cdef class Bag(Base):
    """The base of aggregates that keep values. Cells: a block of records, and for text another one.

    dtype, column: of the values: int64, float64 or text. Null values are passed over.
    """

    dtypes = ("int64", "float64", "text")

    def __cinit__(self, dtype="int64", int column=0, *args, **kwargs):
        self.kind = KINDS[dtype]
        self.time = -1
        if column < 0:
            raise ValueError(f"Bag: needs a column of values, got {column}")

    cdef int _lay_out(self, str keeps, object limit, bint largest, Bag source) except -1:
        """Says what is kept: "all" values or "distinct" ones, in their order; "hashed", distinct ones in any order, or
        their "counts"; or "elements" in the order of times. limit: so many of the first. largest: comes first.
        source: another member of the set with the same shape, whose cells are read; then it has none of its own."""
        cdef bint in_time = keeps == "elements", is_text = self.kind == TEXT
        if keeps not in KEEPS:
            raise ValueError(f"keeps: one of {KEEPS}, got {keeps!r}")
        if limit is not None and limit < 1:
            raise ValueError(f"limit: at least 1, got {limit}")
        self.hashed = keeps in ("hashed", "counts")
        self.shape.keys = 2 if in_time else 1
        self.shape.text = self.shape.keys if is_text else 0
        self.shape.words = self.shape.keys + (2 if is_text else <int> in_time)
        self.shape.counts = self.shape.words if keeps == "counts" else 0
        self.shape.words += keeps == "counts"
        self.shape.compares = is_text and not in_time
        self.shape.distinct = keeps in ("distinct", "hashed", "counts")
        self.shape.turned = largest
        self.shape.limit = INT64_MAX if limit is None else limit
        self.cells = 2 if is_text else 1
        self.owned = tuple([0, 1] if is_text else [0])
        if source is not None:
            self.source, self.reads = source, True
            self.takes_values, self.column = False, -1
            self.cells, self.owned, self.fallible = 0, (), True
        return 0

    cdef int check_columns(self, list held) except -1:
        if not self.reads:
            check_column(self, held, self.column, self.dtypes[self.kind])
            if self.time >= 0:
                check_column(self, held, self.time, "int64")
        return 0

    cdef void add(self, char* rows, Py_ssize_t stride, const idx_t* slots, Py_ssize_t n, Column column) noexcept nogil:
        cdef const int64_t* values = <const int64_t*> column.values
        cdef const int64_t* times = NULL
        cdef const uint8_t* text = NULL
        cdef int64_t[MOST_WORDS] record
        cdef Py_ssize_t at = self.shape.keys - 1 if self.time < 0 else 2, i
        cdef int64_t length
        cdef bint floats = self.kind == FLOAT and self.time < 0
        cdef char* row
        if self.reads:
            return
        if n and has_numbers(&self.shape) and self.shape.limit == INT64_MAX:
            self.starved |= not add_numbers(rows, stride, self.at, self.seen, slots, n, &column, floats, &self.shape)
            return
        if self.time >= 0:
            times = <const int64_t*> values_at(&column, self.time)
        for i in range(n):
            if not has(column.valid, i):
                continue
            row = rows + slots[i] * stride
            if self.kind == TEXT:
                text, length = column.text + values[i], values[i + 1] - values[i]
                if self.hashed:
                    record[0] = <int64_t> hash_bytes(text, length)
                elif self.time < 0:
                    record[0] = code_of_text(text, length)
                record[self.shape.text + 1] = length
            else:
                # What is not compared stays as it is.
                record[at] = code_of_float((<const double*> values)[i]) if floats else values[i]
            if self.time >= 0:
                record[0], record[1] = times[i], column.arrived + i
            elif self.shape.turned:
                record[0] = ~record[0]
            if self.shape.counts:
                record[self.shape.counts] = 1
            if not add_record(row + self.at, &self.shape, record, text):
                self.starved = True
            bits_of(row)[0] |= self.seen

    cdef void merge(self, Merge pairs) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(0 if self.reads else pairs.n):
            # Putting the other run in order changes nothing of what it holds.
            if not merge_runs(into(&pairs, i) + self.at, <char*> taken(&pairs, i) + self.at, &self.shape):
                self.starved = True

    cdef bint tidy(self, char* row) noexcept nogil:
        cdef char* cell = row + self.at
        return settle(cell, &self.shape) and (not self.shape.text or order_texts(cell, &self.shape))

    cdef bint sound(self, const char* row) noexcept nogil:
        return is_run(row + self.at, &self.shape)

    cdef int64_t arrived(self, const char* row) noexcept nogil:
        cdef Run run = run_in(row + self.at, &self.shape)
        cdef int64_t last = 0
        cdef Py_ssize_t i
        for i in range(run.n if self.time >= 0 else 0):
            last = max(last, number_behind(run.records[i * self.shape.words + 1]))
        return last

    cdef void shift(self, char* row, int64_t by) noexcept nogil:
        cdef Run run = run_in(row + self.at, &self.shape)
        cdef Py_ssize_t i
        for i in range(run.n if self.time >= 0 else 0):
            run.records[i * self.shape.words + 1] += by


@cython.final
cdef class Distinct(Bag):
    """How many distinct values there are, exactly. source: another Distinct or DistinctSum whose values it counts."""

    def __cinit__(self, dtype="int64", int column=0, Bag source=None):
        self._lay_out("hashed", None, False, source)
        self.gives_float = False

    cdef void take(self, const Take* rows, void* values, uint8_t* marks) noexcept nogil:
        cdef Py_ssize_t i
        cdef char* cell
        for i in range(rows.n):
            cell = self.cell(wanted(rows, i))
            marks[i] = VALUE if settle(cell, &self.shape) else NO_VALUE
            (<int64_t*> values)[i] = run_in(cell, &self.shape).n

    cdef int fail(self) except -1:
        raise MemoryError("CountDistinct: no memory to put the values of a window in order")


@cython.final
cdef class DistinctSum(Bag):
    """The sum of the distinct values; see Sum. source: another Distinct or DistinctSum whose values it adds up.

    unsigned: whether values are those of uint64 less 2**63, as they are read to be put in order, and sums uint64.
    """

    dtypes = ("int64", "float64")

    cdef bint null_on_overflow, starves, unsigned
    cdef readonly str name

    def __cinit__(self, dtype="int64", int column=0, on_overflow="raise", name="Sum", Bag source=None,
                  bint unsigned=False):
        if on_overflow not in ("raise", "null"):
            raise ValueError(f"Sum: on_overflow must be 'raise' or 'null', got {on_overflow!r}")
        self.null_on_overflow, self.name, self.unsigned = on_overflow == "null", name, unsigned
        self._lay_out("hashed", None, False, source)

    @cython.overflowcheck(False)        # 128 bits hold more sums of int64 than fit into any machine
    cdef void take(self, const Take* rows, void* values, uint8_t* marks) noexcept nogil:
        cdef Py_ssize_t i, k
        cdef char* cell
        cdef Run run
        cdef int128 total
        cdef double[2] sum
        for i in range(rows.n):
            cell = self.cell(wanted(rows, i))
            if not settle(cell, &self.shape):
                self.starves = True
                marks[i] = NO_VALUE
                continue
            run = run_in(cell, &self.shape)
            marks[i] = VALUE if run.n else NULL_VALUE
            if self.kind == FLOAT:
                sum[0] = sum[1] = 0.0
                for k in range(run.n):
                    add_float(<char*> sum, float_of_code(run.records[k]))
                (<double*> values)[i] = float_sum(<const char*> sum)
                continue
            total = 0
            for k in range(run.n):
                total += run.records[k]
            if self.unsigned:
                total += <int128> run.n << 63
            (<int64_t*> values)[i] = <int64_t> total
            if total >> 64 != 0 if self.unsigned else (<int64_t*> values)[i] != total:
                marks[i] = NULL_VALUE if self.null_on_overflow else NO_VALUE

    cdef int fail(self) except -1:
        if self.starves:
            self.starves = False
            raise MemoryError(f"{self.name}: no memory to put the values of a window in order")
        raise AggregateOverflowError(
            f"{self.name}: the sum of a window is outside {'uint64' if self.unsigned else 'int64'}; use "
            "Sum(..., on_overflow='null') or a float column"
        )


cdef class Giving(Bag):
    """The base of those that give values back. Their results: ``(offsets, counts, values, data)``, the values of row i
    being those from offsets[i] to offsets[i + 1]; counts: int64[values] or None; values: int64[values] or
    float64[values], and data None, or for text its offsets, int64[values + 1], and its bytes."""

    cdef Py_ssize_t choose(self, const Run* run, int64_t* chosen) noexcept nogil:
        """Writes which of the records in order are given, if anywhere; returns how many, -1 without memory."""
        cdef Py_ssize_t i
        for i in range(run.n if chosen != NULL else 0):
            chosen[i] = i
        return run.n

    cdef tuple blobs(self, RowStore rows, const idx_t[::1] slots):
        cdef Py_ssize_t n = slots.shape[0], i, k
        cdef int64_t total = 0, size = 0
        cdef bint starved = False
        cdef int64_t* record
        cdef char* cell
        cdef Run run
        check_ids("slots", slots, rows.top)
        offsets_out = np.empty(n + 1, dtype=np.int64)
        cdef int64_t[::1] offsets = offsets_out
        with nogil:
            for i in range(n):
                offsets[i] = total
                cell = self.cell(<const char*> rows.head(slots[i]))
                starved |= not settle(cell, &self.shape)
                run = run_in(cell, &self.shape)
                total += self.choose(&run, NULL)
            offsets[n] = total
        chosen_out = np.empty(total, dtype=np.int64)
        counts_out = np.empty(total if self.shape.counts else 0, dtype=np.int64)
        values_out = np.empty(total + (self.kind == TEXT), dtype=np.float64 if self.kind == FLOAT else np.int64)
        cdef int64_t[::1] chosen = chosen_out, counts = counts_out, values = values_out.view(np.int64)
        with nogil:
            for i in range(n if not starved else 0):
                run = run_in(self.cell(<const char*> rows.head(slots[i])), &self.shape)
                if offsets[i + 1] > offsets[i] and self.choose(&run, &chosen[offsets[i]]) < 0:
                    starved = True
                    break
                for k in range(offsets[i], offsets[i + 1]):
                    record = run.records + chosen[k] * self.shape.words
                    if self.shape.counts:
                        counts[k] = record[self.shape.counts]
                    if self.kind == TEXT:
                        values[k] = size
                        size += record[self.shape.text + 1]
                    else:
                        values[k] = self.value_of(record)
        if starved:
            raise MemoryError(f"{type(self).__name__}: no memory to put the values of a window in order")
        found = counts_out if self.shape.counts else None
        if self.kind != TEXT:
            return offsets_out, found, values_out, None
        values[total] = size
        data_out = np.empty(size, dtype=np.uint8)
        cdef uint8_t[::1] data = data_out
        with nogil:
            for i in range(n):
                run = run_in(self.cell(<const char*> rows.head(slots[i])), &self.shape)
                for k in range(offsets[i], offsets[i + 1]):
                    record = run.records + chosen[k] * self.shape.words + self.shape.text
                    if record[1]:
                        memcpy(&data[values[k]], run.texts + record[0], record[1])
        return offsets_out, found, values_out, data_out

    cdef inline int64_t value_of(self, const int64_t* record) noexcept nogil:
        """The value of a record that has no text: a number, or the bits of a double."""
        cdef int64_t word = ~record[0] if self.shape.turned else record[0]
        cdef double value
        if self.time >= 0:
            return record[2]
        if self.kind == FLOAT:
            value = float_of_code(word)
            memcpy(&word, &value, 8)
        return word


@cython.final
cdef class Listed(Giving):
    """The values themselves.

    keeps: ``"all"`` in their order; ``"distinct"`` ones likewise; ``"hashed"``, those in any order; or ``"elements"``,
    all in order of the event times in column ``time``, and of arrival. limit: how many of the first ones; None: no
    limit. largest: whether the largest comes first.
    """

    def __cinit__(self, dtype="int64", int column=0, str keeps="all", limit=None, bint largest=False, int time=-1):
        if keeps == "counts" or (keeps == "elements") != (time >= 0):
            raise ValueError(f"Listed: keeps no counts, and elements go with times, got {keeps!r} and {time}")
        self._lay_out(keeps, limit, largest, None)
        self.gives_bytes = True
        if time >= 0:
            self.time, self.remembers = time, True
            self.columns = (column, time)


@cython.final
cdef class Ranked(Giving):
    """The most frequent values, k at most, and how often each occurs; of equally frequent ones the smallest first.
    source: another Ranked over the same values."""

    cdef Py_ssize_t k

    def __cinit__(self, dtype="int64", int column=0, Py_ssize_t k=1, Bag source=None):
        if k < 1:
            raise ValueError(f"Ranked: k must be at least 1, got {k}")
        self.k = k
        self._lay_out("counts", None, False, source)
        self.gives_bytes = True

    cdef inline bint behind(self, const Run* run, int64_t i, int64_t k) noexcept nogil:
        """Whether the i-th record ranks behind the k-th."""
        cdef const int64_t* one = run.records + i * self.shape.words
        cdef const int64_t* other = run.records + k * self.shape.words
        cdef Py_ssize_t at = self.shape.text
        if one[self.shape.counts] != other[self.shape.counts]:
            return one[self.shape.counts] < other[self.shape.counts]
        if self.kind != TEXT:
            return one[0] > other[0]
        return compare_texts(run.texts + one[at], one[at + 1], run.texts + other[at], other[at + 1]) > 0

    cdef void sink(self, const Run* run, int64_t* heap, Py_ssize_t at, Py_ssize_t n) noexcept nogil:
        """Lets what stands at a place of the heap, whose root ranks last, sink to where it belongs."""
        cdef Py_ssize_t child = 2 * at + 1
        cdef int64_t one = heap[at]
        while child < n:
            if child + 1 < n and self.behind(run, heap[child + 1], heap[child]):
                child += 1
            if not self.behind(run, heap[child], one):
                break
            heap[at] = heap[child]
            at, child = child, 2 * child + 1
        heap[at] = one

    cdef Py_ssize_t choose(self, const Run* run, int64_t* chosen) noexcept nogil:
        cdef Py_ssize_t n = min(self.k, run.n), i
        if chosen == NULL:
            return n
        for i in range(n):
            chosen[i] = i
        for i in range(n // 2 - 1, -1, -1):
            self.sink(run, chosen, i, n)
        for i in range(n, run.n):
            if self.behind(run, chosen[0], i):
                chosen[0] = i
                self.sink(run, chosen, 0, n)
        for i in range(n - 1, 0, -1):
            chosen[0], chosen[i] = chosen[i], chosen[0]
            self.sink(run, chosen, 0, i)
        return n
