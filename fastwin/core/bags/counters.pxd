# Counters: the buckets of a quantile side by side, in the block of a cell, where they take no more room than a run of
# those that have a value: so a value is one addition. What is saved is a run; see to_run().
cimport cython
from libc.stdint cimport INT64_MAX, UINT32_MAX
from libc.string cimport memcpy, memset

from fastwin.core.typedefs cimport int64_t, uint32_t, uint64_t, uint8_t
from fastwin.core.bags.buckets cimport HIGHEST_BUCKET, LOWEST_BUCKET, NAN_BUCKET
from fastwin.core.bags.firstwords cimport MOST_WORDS
from fastwin.core.bags.records cimport Shape
from fastwin.core.bags.runs cimport (
    FEW_BYTES, FIRST_RECORDS, Run, add_record, end_of, enlarge, merge_runs, no_text, run_in, settle, sorted_in)
from fastwin.core.memory.owned cimport Block, block_in, bytes_in, drop_block, put_block, reserve_block, size_in

cdef enum:
    COUNTED = -1                # where a run says how many records are in order
    MOST_BYTES = 32             # for each bucket that has a value
    SLACK = 8                   # counters at either end for buckets to come, and more where there are many

cdef extern from *:
    const int64_t MOST_VALUES "(INT64_C(1) << 53)"    # of a saved row: of more, a double does not tell each rank

cdef struct Counters:           # uint32[span] for numbers above zero follow, and if need be as many for those below
    int64_t mark                # COUNTED
    int64_t first               # the bucket of the first counter
    int64_t span
    int64_t both                # 1: there are counters for numbers below zero too
    int64_t lowest              # how many minus infinities there are,
    int64_t zeros
    int64_t highest             # infinities
    int64_t nans


cdef inline bint is_counted(const char* cell) noexcept nogil:
    return block_in(cell) != NULL and block_in(cell).size > 0 and sorted_in(cell)[0] == COUNTED


cdef inline Counters* counters_in(const char* cell) noexcept nogil:
    return <Counters*> bytes_in(cell)


cdef inline uint32_t* tallies_of(const Counters* counters) noexcept nogil:
    return <uint32_t*> (counters + 1)


@cython.overflowcheck(False)
cdef inline const uint8_t* place_of(const char* cell, int64_t bucket) noexcept nogil:
    """Returns where a bucket above zero is likely to be counted: it is fetched, and not read."""
    if not is_counted(cell):
        return end_of(cell)
    return <const uint8_t*> (<uint64_t> tallies_of(counters_in(cell)) + 4 * (
        <uint64_t> bucket - <uint64_t> counters_in(cell).first))


@cython.overflowcheck(False)
cdef inline bint count_values(Counters* counters, int64_t bucket, int64_t n) noexcept nogil:
    """Counts n values of a bucket, at least one, if there is a counter for it, and that is not full then."""
    cdef uint64_t at = (<uint64_t> bucket if bucket > 0 else 0 - <uint64_t> bucket) - <uint64_t> counters.first
    cdef uint32_t* tally
    if at < <uint64_t> counters.span and (bucket > 0 or counters.both):
        tally = tallies_of(counters) + at + (0 if bucket > 0 else counters.span)
        if <int64_t> tally[0] + n > <int64_t> UINT32_MAX:
            return False
        tally[0] += <uint32_t> n
    elif bucket == 0:
        counters.zeros += n
    elif bucket == NAN_BUCKET:
        counters.nans += n
    elif bucket == HIGHEST_BUCKET:
        counters.highest += n
    elif bucket == LOWEST_BUCKET:
        counters.lowest += n
    else:
        return False
    return True


cdef inline Py_ssize_t count_kinds(const Counters* counters) noexcept nogil:
    """Returns how many buckets have a value."""
    cdef const uint32_t* tallies = tallies_of(counters)
    cdef Py_ssize_t i
    cdef uint32_t found = 0
    for i in range(counters.span * (1 + counters.both)):
        found += tallies[i] != 0
    return found + (counters.lowest != 0) + (counters.zeros != 0) + (counters.highest != 0) + (counters.nans != 0)


cdef inline bint pays(int64_t span, int64_t both, int64_t kinds) noexcept nogil:
    """Whether counters take no more room than a run may. Any span: none is multiplied that is too large."""
    return span <= MOST_BYTES * kinds and (
        <int64_t> sizeof(Counters) + 4 * span * (1 + both) <= MOST_BYTES * kinds)


cdef inline char* new_counters(char** fresh, int64_t first, int64_t span, int64_t both) noexcept nogil:
    """Makes counters of a cell that has no block, all 0. Returns the cell; NULL: there was no memory."""
    cdef char* cell = <char*> fresh
    cdef int64_t size = <int64_t> sizeof(Counters) + 4 * span * (1 + both)
    fresh[0] = NULL
    if not reserve_block(cell, size):
        return NULL
    block_in(cell).size = size
    memset(bytes_in(cell), 0, size)
    counters_in(cell).mark = COUNTED
    counters_in(cell).first, counters_in(cell).span, counters_in(cell).both = first, span, both
    return cell


cdef inline bint widen(char* cell, int64_t bucket, int64_t kinds) noexcept nogil:
    """Makes counters for more buckets, up to a size that has none, if they pay, where so many buckets at least have a
    value soon. Returns whether they are there."""
    cdef Counters* old = counters_in(cell)
    cdef Counters* wide
    cdef int64_t size = bucket if bucket > 0 else -bucket, first = old.first, end = old.first + old.span, slack
    cdef char* block
    cdef char* fresh
    if first <= size < end or size > INT64_MAX // 2 or (bucket < 0 and not old.both):
        return False
    slack = SLACK + old.span // 4
    if size < first:
        first = max(size - slack, 1)
    else:
        end = size + slack + 1
    if not pays(end - first, old.both, max(kinds, count_kinds(old))):
        return False
    fresh = new_counters(&block, first, end - first, old.both)
    if fresh == NULL:
        return False
    wide = counters_in(fresh)
    wide.lowest, wide.zeros, wide.highest, wide.nans = old.lowest, old.zeros, old.highest, old.nans
    memcpy(tallies_of(wide) + (old.first - first), tallies_of(old), old.span * 4)
    if old.both:
        memcpy(tallies_of(wide) + wide.span + (old.first - first), tallies_of(old) + old.span, old.span * 4)
    drop_block(cell)
    (<Block**> cell)[0] = block_in(fresh)
    return True


cdef inline bint merge_counters(char* cell, const char* other) noexcept nogil:
    """Adds the counts of other counters, if there is, or can be, a counter for each that is not full then. Returns
    whether; else nothing has been added."""
    cdef const Counters* theirs = counters_in(other)
    cdef const uint32_t* more = tallies_of(theirs)
    cdef Counters* mine = counters_in(cell)
    cdef uint32_t* tallies
    cdef uint64_t all_bits = 0
    cdef Py_ssize_t i, sign
    cdef int64_t end = theirs.first + theirs.span
    if theirs.both and not mine.both:
        return False
    if theirs.first < mine.first and not widen(cell, theirs.first, count_kinds(theirs)):
        return False
    mine = counters_in(cell)
    if end > mine.first + mine.span and not widen(cell, end - 1, count_kinds(theirs)):
        return False
    mine = counters_in(cell)
    for sign in range(1 + theirs.both):
        tallies = tallies_of(mine) + sign * mine.span + (theirs.first - mine.first)
        for i in range(theirs.span):
            all_bits |= <uint64_t> tallies[i] + more[sign * theirs.span + i]
    if all_bits > UINT32_MAX:
        return False
    for sign in range(1 + theirs.both):
        tallies = tallies_of(mine) + sign * mine.span + (theirs.first - mine.first)
        for i in range(theirs.span):
            tallies[i] += more[sign * theirs.span + i]
    mine.lowest += theirs.lowest
    mine.zeros += theirs.zeros
    mine.highest += theirs.highest
    mine.nans += theirs.nans
    return True


cdef inline bint to_counters(char* cell, const Shape* shape) noexcept nogil:
    """Makes counters of a run in order, if they pay. Returns whether they are there."""
    cdef Run run = run_in(cell, shape)
    cdef int64_t bucket, size, least = INT64_MAX, most = 0, both = 0, slack
    cdef const int64_t* record
    cdef Counters* counters
    cdef Py_ssize_t i
    cdef char* block
    cdef char* fresh
    for i in range(run.n):
        bucket = run.records[2 * i]
        if bucket in (LOWEST_BUCKET, 0, HIGHEST_BUCKET, NAN_BUCKET):
            continue
        if not 0 < run.records[2 * i + 1] <= <int64_t> UINT32_MAX:
            return False
        size = bucket if bucket > 0 else -bucket
        least, most, both = min(least, size), max(most, size), both | (bucket < 0)
    if most == 0 or most > INT64_MAX // 2 or not pays(most - least + 1, both, run.n):
        return False
    slack = SLACK + (most - least) // 8
    least, most = max(least - slack, 1), most + slack
    fresh = new_counters(&block, least, most - least + 1, both) if pays(most - least + 1, both, run.n) else NULL
    if fresh == NULL:
        return False
    counters = counters_in(fresh)
    for i in range(run.n):
        record = run.records + 2 * i
        if record[0] == LOWEST_BUCKET:
            counters.lowest = record[1]
        elif record[0] == 0:
            counters.zeros = record[1]
        elif record[0] == HIGHEST_BUCKET:
            counters.highest = record[1]
        elif record[0] == NAN_BUCKET:
            counters.nans = record[1]
        elif record[0] > 0:
            tallies_of(counters)[record[0] - least] = <uint32_t> record[1]
        else:
            tallies_of(counters)[counters.span - record[0] - least] = <uint32_t> record[1]
    drop_block(cell)
    (<Block**> cell)[0] = block_in(fresh)
    return True


cdef inline int64_t* put_count(int64_t* place, int64_t bucket, int64_t count) noexcept nogil:
    """Writes a record; returns where the next one goes, the same place where nothing was counted."""
    place[0], place[1] = bucket, count
    return place + 2 * (count != 0)


cdef inline bint copy_run(const Counters* counters, char* fresh, bint doubled) noexcept nogil:
    """Makes a run in order of counters, in a cell that has no block. doubled: with room for as many records again, else
    for a few. Returns whether there was memory. O(span)."""
    cdef const uint32_t* tallies = tallies_of(counters)
    cdef Py_ssize_t n = count_kinds(counters), i
    cdef int64_t* place
    if not reserve_block(fresh, 8 + 16 * (n + (n + 1 if doubled else FIRST_RECORDS))):
        return False
    place = put_count(sorted_in(fresh) + 1, LOWEST_BUCKET, counters.lowest)
    for i in range(counters.span - 1 if counters.both else -1, -1, -1):
        place = put_count(place, -counters.first - i, tallies[counters.span + i])
    place = put_count(place, 0, counters.zeros)
    for i in range(counters.span):
        place = put_count(place, counters.first + i, tallies[i])
    place = put_count(place, HIGHEST_BUCKET, counters.highest)
    put_count(place, NAN_BUCKET, counters.nans)
    sorted_in(fresh)[0] = n
    block_in(fresh).size = 8 + 16 * n
    return True


cdef inline bint to_run(char* cell, bint doubled) noexcept nogil:
    """Makes a run in order of the counters of a cell, see copy_run()."""
    cdef char* none = NULL
    cdef char* fresh = <char*> &none
    if not copy_run(counters_in(cell), fresh, doubled):
        return False
    drop_block(cell)
    (<Block**> cell)[0] = block_in(fresh)
    return True


cdef inline bint settle_counts(char* cell, const Shape* shape) noexcept nogil:
    """Makes a cell a run in order. Returns whether there was memory."""
    return to_run(cell, False) if is_counted(cell) else settle(cell, shape)


cdef inline bint settle_full(char* cell, const Shape* shape) noexcept nogil:
    """Puts a run in order that has no room, and makes counters of it, or room. Returns whether there was memory."""
    return settle(cell, shape) and (to_counters(cell, shape) or enlarge(cell, 16))


cdef inline bint add_bucket(char* cell, int64_t bucket, int64_t n, const Shape* shape) noexcept nogil:
    """Adds n values of a bucket, at least one. Returns whether there was memory. Amortised O(1) where there are
    counters, else O(log buckets)."""
    cdef int64_t[MOST_WORDS] record
    if not is_counted(cell) and size_in(cell) > FEW_BYTES and size_in(cell) + 16 > block_in(cell).capacity and (
            not settle_full(cell, shape)):
        return False
    if is_counted(cell):
        if count_values(counters_in(cell), bucket, n) or (
                widen(cell, bucket, 0) and count_values(counters_in(cell), bucket, n)):
            return True
        if not to_run(cell, True):
            return False
    record[0], record[1] = bucket, n
    return add_record(cell, shape, record, no_text())


cdef inline bint add_counts(char* cell, const char* other, const Shape* shape) noexcept nogil:
    """Adds each record of a run to a cell that has counters: these stay, or are made anew, where they pay. Returns
    whether there was memory. Amortised O(records) where there are counters for all, else O(span) beside that."""
    cdef Run theirs = run_in(other, shape)
    cdef Py_ssize_t i
    for i in range(theirs.n):
        if not add_bucket(cell, theirs.records[2 * i], theirs.records[2 * i + 1], shape):
            return False
    if not is_counted(cell):
        if not settle(cell, shape):
            return False
        to_counters(cell, shape)
    return True


cdef inline bint merge_counts(char* cell, char* other, const Shape* shape) noexcept nogil:
    """Adds what another cell holds; that stays, maybe in order now. Returns whether there was memory. O(span) of the
    counters of both, at most eight times as many as have a value; of runs as merge_runs()."""
    cdef char* none = NULL
    cdef char* fresh = <char*> &none
    cdef bint well
    if size_in(other) <= 8:             # no block, or a run of no records
        return True
    if size_in(cell) <= 8:
        return put_block(cell, bytes_in(other), size_in(other))
    if is_counted(other):
        if is_counted(cell) and merge_counters(cell, other):
            return True
        well = copy_run(counters_in(other), fresh, False) and merge_counts(cell, fresh, shape)
        drop_block(fresh)
        return well
    if is_counted(cell):
        return add_counts(cell, other, shape)
    if not merge_runs(cell, other, shape):
        return False
    if size_in(cell) > FEW_BYTES and sorted_in(cell)[0] == run_in(cell, shape).n:
        to_counters(cell, shape)        # what has been written anew: it costs no more than that
    return True


cdef inline int64_t values_in(const char* cell, const Shape* shape) noexcept nogil:
    """Returns how many values a cell holds. O(records), or O(span)."""
    cdef Run run
    cdef const Counters* counters
    cdef int64_t total = 0
    cdef Py_ssize_t i
    if is_counted(cell):
        counters = counters_in(cell)
        for i in range(counters.span * (1 + counters.both)):
            total += <int64_t> tallies_of(counters)[i]
        return total + counters.lowest + counters.zeros + counters.highest + counters.nans
    run = run_in(cell, shape)
    for i in range(run.n):
        total += run.records[2 * i + 1]
    return total


cdef inline int64_t bucket_of_rank(const char* cell, const Shape* shape, int64_t rank) noexcept nogil:
    """Returns the bucket of the value with ``rank`` values before it, below values_in(), of counters, or of a run in
    order, which stay as they are. O(span), or O(records)."""
    cdef Run run
    cdef const Counters* counters
    cdef const uint32_t* tallies
    cdef Py_ssize_t i = 0
    if not is_counted(cell):
        run = run_in(cell, shape)
        while i < run.n - 1 and run.records[2 * i + 1] <= rank:
            rank -= run.records[2 * i + 1]
            i += 1
        return run.records[2 * i]
    counters = counters_in(cell)
    tallies = tallies_of(counters)
    rank -= counters.lowest
    if rank < 0:
        return LOWEST_BUCKET
    for i in range(counters.span - 1 if counters.both else -1, -1, -1):
        rank -= <int64_t> tallies[counters.span + i]
        if rank < 0:
            return -counters.first - i
    rank -= counters.zeros
    if rank < 0:
        return 0
    for i in range(counters.span):
        rank -= <int64_t> tallies[i]
        if rank < 0:
            return counters.first + i
    return HIGHEST_BUCKET if rank < counters.highest else NAN_BUCKET


cdef inline bint is_countable(const char* cell, const Shape* shape) noexcept nogil:
    """Tells whether the records of a run count as many values as there can be, so that those of many can be added."""
    cdef Run run = run_in(cell, shape)
    cdef int64_t left = MOST_VALUES
    cdef Py_ssize_t i
    for i in range(run.n):
        if run.records[2 * i + 1] > left:
            return False
        left -= run.records[2 * i + 1]
    return True
