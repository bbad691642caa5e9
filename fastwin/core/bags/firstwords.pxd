# Records in the order of their first words: sorted, made one, and merged. Few branches depend on what the words are:
# to guess wrong costs more than to move a record. words: of a record, the same number wherever it is called, so that it
# is compiled for that.
cimport cython
from libc.string cimport memcpy, memmove, memset

from fastwin.core.typedefs cimport int64_t, uint64_t
from fastwin.core.memory.radixsort cimport radix_sort

cdef enum:
    MOST_WORDS = 5              # of a record
    BY_INSERTION = 32           # fewer records are sorted so
    DIGIT = 8                   # bits at most that one pass sorts by
    MOST_DIGITS = 4
    MORE_BITS = 4               # than the number of records has: so many tell most of them apart
    MOST_MOVES = 8              # of each record, to its place from one nearby

cdef extern from *:
    int leading_zeros "__builtin_clzll"(uint64_t word) noexcept nogil


cdef inline void put_record(int64_t* target, const int64_t* record, Py_ssize_t words) noexcept nogil:
    # Not a loop: there are few, and as many each time.
    target[0] = record[0]
    if words > 1:
        target[1] = record[1]
    if words > 2:
        target[2] = record[2]
    if words > 3:
        target[3] = record[3]
    if words > 4:
        target[4] = record[4]


cdef inline bint insert_each(int64_t* records, Py_ssize_t n, Py_ssize_t words, Py_ssize_t moves) noexcept nogil:
    """Sorts by insertion, stable. Returns whether so many moves, or a few more, were enough."""
    cdef Py_ssize_t i, k
    cdef int64_t[MOST_WORDS] record
    for i in range(1, n):
        if records[(i - 1) * words] <= records[i * words]:
            continue
        put_record(record, records + i * words, words)
        k = i
        while k > 0 and record[0] < records[(k - 1) * words]:
            put_record(records + k * words, records + (k - 1) * words, words)
            k -= 1
        put_record(records + k * words, record, words)
        moves -= i - k
        if moves < 0:
            return False
    return True


@cython.overflowcheck(False)        # unsigned: what is above the least word is below 2**64
cdef inline void sort_by_digits(int64_t* records, int64_t* spare, Py_ssize_t n, Py_ssize_t words, int64_t least,
                                int shift, int digit, int passes) noexcept nogil:
    """Sorts by how far words are above the least one, without its last ``shift`` bits: that has so many digits."""
    cdef Py_ssize_t[MOST_DIGITS << DIGIT] counts
    cdef Py_ssize_t* before
    cdef Py_ssize_t i, total, count, kinds = <Py_ssize_t> 1 << digit
    cdef int64_t* source = records
    cdef int64_t* target = spare
    cdef uint64_t bits, mask = <uint64_t> kinds - 1
    cdef int k
    memset(counts, 0, passes * kinds * sizeof(Py_ssize_t))
    for i in range(n):
        bits = (<uint64_t> records[i * words] - <uint64_t> least) >> shift
        for k in range(passes):
            counts[k * kinds + <Py_ssize_t> (bits & mask)] += 1
            bits >>= digit
    for k in range(passes):
        before, total = counts + k * kinds, 0
        for i in range(kinds):
            count = before[i]
            before[i] = total
            total += count
        for i in range(n):
            bits = (<uint64_t> source[i * words] - <uint64_t> least) >> shift & mask
            put_record(target + before[bits] * words, source + i * words, words)
            before[bits] += 1
        shift += digit
        source, target = target, source
    if source != records:
        memcpy(records, source, n * words * 8)


@cython.cdivision(True)
@cython.overflowcheck(False)        # as above
cdef inline bint sort_by_first(int64_t* records, int64_t* spare, Py_ssize_t n, Py_ssize_t words) noexcept nogil:
    """Sorts records by their first word, stable. spare: room for as many. Returns whether there was memory. O(n): most
    are told apart by the first bits in which any differ, and the others by insertion, unless there are many."""
    cdef int64_t least, most, before, word
    cdef Py_ssize_t field = 0, i
    cdef bint ordered = True
    cdef int width, bits, passes
    if n < BY_INSERTION:
        return insert_each(records, n, words, n * n)
    least = most = before = records[0]
    for i in range(n):
        word = records[i * words]
        ordered &= before <= word
        before = word
        least, most = min(least, word), max(most, word)
    if ordered:
        return True
    width = 64 - leading_zeros(<uint64_t> most - <uint64_t> least)
    bits = min(width, 64 - leading_zeros(<uint64_t> n) + MORE_BITS, MOST_DIGITS * DIGIT)
    passes = (bits + DIGIT - 1) // DIGIT
    if width <= passes * DIGIT:
        bits = width
    sort_by_digits(records, spare, n, words, least, width - bits, (bits + passes - 1) // passes, passes)
    if bits < width and not insert_each(records, n, words, MOST_MOVES * n):
        return radix_sort(records, n, 8 * words, &field, 1)
    return True


cdef inline Py_ssize_t unite_by_first(int64_t* records, Py_ssize_t n, Py_ssize_t words) noexcept nogil:
    """Makes records one whose first words are equal, side by side, with the sum of their second words, if they have
    any. n: at least 1. Returns how many are left."""
    cdef int64_t before = records[0], total = records[1] if words == 2 else 0, same
    cdef Py_ssize_t left = 0, i
    for i in range(1, n):
        same = -<int64_t> (records[i * words] == before)
        before = records[i * words]
        left += 1 + same
        if words == 2:
            total = records[i * words + 1] + (total & same)
            records[left * words + 1] = total
        records[left * words] = before
    return left + 1


cdef inline Py_ssize_t merge_behind(int64_t* records, Py_ssize_t n, const int64_t* more, Py_ssize_t m,
                                    Py_ssize_t words, bint distinct) noexcept nogil:
    """Merges m records in order into n in order, which have room for all behind them. distinct: equal ones become one,
    as in unite_by_first(); in neither is a word twice. Returns how many there are then."""
    cdef Py_ssize_t i = n - 1, k = m - 1, out = n + m
    cdef int64_t one, other, mine, theirs
    # From the back: what is written never reaches what is still to be read.
    while i >= 0 and k >= 0:
        one, other = records[i * words], more[k * words]
        mine = -<int64_t> (one >= other if distinct else one > other)
        theirs = -<int64_t> (other >= one)
        out -= 1
        if words == 2:
            records[out * words + 1] = (records[i * words + 1] & mine) + (more[k * words + 1] & theirs)
        records[out * words] = (one & mine) | (other & theirs)
        i += mine
        k += theirs
    i, k = i + 1, k + 1
    out -= k
    memcpy(records + out * words, more, k * words * 8)
    if out > i:
        memmove(records + i * words, records + out * words, (n + m - out) * words * 8)
    return i + n + m - out


cdef inline Py_ssize_t merge_apart(int64_t* target, const int64_t* records, Py_ssize_t n, const int64_t* more,
                                   Py_ssize_t m, Py_ssize_t words, bint distinct) noexcept nogil:
    """Writes two runs in order as one, see merge_behind(). Returns how many there are."""
    cdef Py_ssize_t i = 0, k = 0, out = 0
    cdef int64_t one, other, mine, theirs
    while i < n and k < m:
        one, other = records[i * words], more[k * words]
        mine = -<int64_t> (one <= other)
        theirs = -<int64_t> (other <= one if distinct else other < one)
        if words == 2:
            target[out * words + 1] = (records[i * words + 1] & mine) + (more[k * words + 1] & theirs)
        target[out * words] = (one & mine) | (other & theirs)
        out += 1
        i -= mine
        k -= theirs
    memcpy(target + out * words, records + i * words, (n - i) * words * 8)
    out += n - i
    memcpy(target + out * words, more + k * words, (m - k) * words * 8)
    return out + m - k


cdef inline Py_ssize_t take_in(int64_t* records, Py_ssize_t ordered, Py_ssize_t tail, int64_t* spare, Py_ssize_t words,
                               bint distinct) noexcept nogil:
    """Puts ``tail`` records behind those in order among them; see merge_behind(). spare: room for as many. Returns how
    many there are then, -1 without memory."""
    cdef int64_t* behind = records + ordered * words
    if not sort_by_first(behind, spare, tail, words):
        return -1
    if distinct:
        tail = unite_by_first(behind, tail, words)
    if ordered == 0 or records[(ordered - 1) * words] < behind[0]:
        return ordered + tail
    memcpy(spare, behind, tail * words * 8)
    return merge_behind(records, ordered, spare, tail, words, distinct)
