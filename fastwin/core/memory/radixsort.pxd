# Stable sorting: of records by int64 fields, byte by byte (bytes that are all alike are passed over); of words by some
# of their bits; and of numbers, or of what has a time and 8 bytes more, which are often in order already.
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from fastwin.core.typedefs cimport int64_t, ts_t, uint64_t

cdef enum:
    FEW_RECORDS = 48            # always sorted by insertion
    FEW_WORDS = 16384           # fewer are sorted by short digits: their counts cost less
    SHORT_DIGIT = 8
    LONG_DIGIT = 11

cdef struct Timed:
    ts_t time
    int64_t at

ctypedef fused mostly_sorted:
    Timed
    int64_t


cdef inline uint64_t digits_of(const char* record, Py_ssize_t field) noexcept nogil:
    # The sign turned, so that it sorts as unsigned.
    return <uint64_t> (<const int64_t*> (record + field))[0] ^ ((<uint64_t> 1) << 63)


cdef inline bint radix_sort(void* records, Py_ssize_t n, Py_ssize_t size, const Py_ssize_t* fields,
                            int fields_n) noexcept nogil:
    """Sorts n records of ``size`` bytes by the int64 that begin ``fields`` bytes into each, the least significant
    first. Returns whether there was memory. O(n)."""
    cdef char* spare = <char*> malloc(n * size)
    cdef char* source = <char*> records
    cdef char* target = spare
    cdef const char* record
    cdef Py_ssize_t[8][256] counts      # of each byte of a field
    cdef Py_ssize_t* before
    cdef Py_ssize_t i, total, count
    cdef int k, byte, digit
    cdef uint64_t digits
    if spare == NULL:
        return False
    for k in range(fields_n):
        memset(counts, 0, sizeof(counts))
        for i in range(n):
            digits = digits_of(source + i * size, fields[k])
            for byte in range(8):
                counts[byte][digits >> 8 * byte & 255] += 1
        for byte in range(8):
            before = counts[byte]
            if n and before[digits_of(source, fields[k]) >> 8 * byte & 255] == n:
                continue                # all alike
            total = 0
            for digit in range(256):
                count = before[digit]
                before[digit] = total
                total += count
            for i in range(n):
                record = source + i * size
                digit = <int> (digits_of(record, fields[k]) >> 8 * byte & 255)
                memcpy(target + before[digit] * size, record, size)
                before[digit] += 1
            source, target = target, source
    if source != records:
        memcpy(records, source, n * size)
    free(spare)
    return True


cdef inline bint sort_words(uint64_t* words, Py_ssize_t n, int first, int width) noexcept nogil:
    """Sorts words by ``width`` bits, those from bit ``first`` on, above which there are none. Stable. Returns whether
    there was memory. O(n)."""
    cdef int longest = SHORT_DIGIT if n < FEW_WORDS else LONG_DIGIT
    cdef int passes = max((width + longest - 1) // longest, 1)
    cdef int digit = (width + passes - 1) // passes, k, shift
    cdef uint64_t mask = ((<uint64_t> 1) << digit) - 1, word
    cdef Py_ssize_t kinds = <Py_ssize_t> mask + 1, i, total, count
    cdef uint64_t* spare = <uint64_t*> malloc(n * sizeof(uint64_t) + passes * kinds * sizeof(Py_ssize_t))
    cdef uint64_t* source = words
    cdef uint64_t* target = spare
    cdef Py_ssize_t* counts
    cdef Py_ssize_t* before
    if spare == NULL:
        return False
    counts = <Py_ssize_t*> (spare + n)
    memset(counts, 0, passes * kinds * sizeof(Py_ssize_t))
    for i in range(n):
        word = words[i] >> first
        for k in range(passes):
            counts[k * kinds + <Py_ssize_t> (word & mask)] += 1
            word >>= digit
    for k in range(passes):
        before, shift, total = counts + k * kinds, first + k * digit, 0
        for i in range(kinds):
            count = before[i]
            before[i] = total
            total += count
        for i in range(n):
            word = source[i] >> shift & mask
            target[before[word]] = source[i]
            before[word] += 1
        source, target = target, source
    if source != words:
        memcpy(words, source, n * sizeof(uint64_t))
    free(spare)
    return True


cdef inline bint is_before(mostly_sorted a, mostly_sorted b) noexcept nogil:
    if mostly_sorted is Timed:
        return a.time < b.time
    else:
        return a < b


cdef inline bint sort_in_place(mostly_sorted* records, Py_ssize_t n) noexcept nogil:
    """Sorts by time, or numbers. Returns whether there was memory. O(n) for records nearly in order, and for many."""
    cdef Py_ssize_t field = 0, i, k, moves = 0
    cdef mostly_sorted record
    for i in range(1, n):
        record = records[i]
        k = i
        while k > 0 and is_before(record, records[k - 1]):
            records[k] = records[k - 1]
            k -= 1
        records[k] = record
        moves += i - k
        if n >= FEW_RECORDS and moves > 4 * n:  # far out of order: stable, so that what is done does no harm
            return radix_sort(records, n, sizeof(record), &field, 1)
    return True
