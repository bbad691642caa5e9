# Records of a few words each, which have a text elsewhere or a time: how they are compared, sorted, and made one. Those
# of numbers alone are in firstwords.pxd.
from libc.string cimport memcmp, memcpy

from fastwin.core.typedefs cimport int64_t, uint8_t
from fastwin.core.bags.firstwords cimport MOST_WORDS, put_record, sort_by_first
from fastwin.core.memory.radixsort cimport FEW_RECORDS, radix_sort

cdef enum:
    SORTED_BY_HAND = 16         # records sorted by insertion before they are merged

cdef struct Shape:
    Py_ssize_t words            # of a record
    Py_ssize_t keys             # of them, at the front, say where it belongs; they are compared as int64
    Py_ssize_t text             # the word that holds the offset of its text; the length is the next one. 0: no text
    bint compares               # text where the keys are equal, by its bytes
    bint turned                 # larger text comes first
    bint distinct               # equal records become one,
    Py_ssize_t counts           # with the sum of this word of both; 0: there is nothing to add
    int64_t limit               # so many first records are kept; INT64_MAX: all


cdef inline int compare_texts(const uint8_t* a, int64_t n, const uint8_t* b, int64_t m) noexcept nogil:
    cdef int found = memcmp(a, b, min(n, m)) if n and m else 0
    return found if found else <int> (n > m) - <int> (n < m)


cdef inline int compare(const Shape* shape, const int64_t* a, const uint8_t* a_texts, const int64_t* b,
                        const uint8_t* b_texts) noexcept nogil:
    """Tells whether a record comes before another, negative, behind it, or is its equal."""
    cdef Py_ssize_t i = shape.text
    cdef int found
    if a[0] != b[0]:
        return 1 if a[0] > b[0] else -1
    if shape.keys == 2 and a[1] != b[1]:
        return 1 if a[1] > b[1] else -1
    if not shape.compares:
        return 0
    found = compare_texts(a_texts + a[i], a[i + 1], b_texts + b[i], b[i + 1])
    return -found if shape.turned else found


cdef inline bint ascends(const int64_t* records, Py_ssize_t n, const uint8_t* texts, const Shape* shape) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(1, n):
        if compare(shape, records + (i - 1) * shape.words, texts, records + i * shape.words, texts) > 0:
            return False
    return True


cdef inline void insertion_sort(int64_t* records, Py_ssize_t n, const uint8_t* texts,
                                const Shape* shape) noexcept nogil:
    cdef Py_ssize_t words = shape.words, i, k
    cdef int64_t[MOST_WORDS] record
    for i in range(1, n):
        put_record(record, records + i * words, words)
        k = i
        while k > 0 and compare(shape, record, texts, records + (k - 1) * words, texts) < 0:
            put_record(records + k * words, records + (k - 1) * words, words)
            k -= 1
        put_record(records + k * words, record, words)


cdef inline void merge_sort(int64_t* records, int64_t* spare, Py_ssize_t n, const uint8_t* texts,
                            const Shape* shape) noexcept nogil:
    """Sorts records; spare: room for as many."""
    cdef Py_ssize_t words = shape.words, width = SORTED_BY_HAND, at = 0, i, k, out, i_end, k_end
    cdef int64_t* source = records
    cdef int64_t* target = spare
    while at < n:
        insertion_sort(records + at * words, min(width, n - at), texts, shape)
        at += width
    while width < n:
        at = 0
        while at < n:
            i, i_end = at, min(at + width, n)
            k, k_end = i_end, min(at + 2 * width, n)
            for out in range(at, k_end):
                if k == k_end or (i < i_end and compare(shape, source + i * words, texts, source + k * words,
                                                        texts) <= 0):
                    put_record(target + out * words, source + i * words, words)
                    i += 1
                else:
                    put_record(target + out * words, source + k * words, words)
                    k += 1
            at = k_end
        source, target = target, source
        width *= 2
    if source != records:
        memcpy(records, source, n * words * 8)


cdef inline bint sort_records(int64_t* records, int64_t* spare, Py_ssize_t n, const uint8_t* texts,
                              const Shape* shape) noexcept nogil:
    """Sorts records; spare: room for as many. Returns whether there was memory."""
    cdef Py_ssize_t[2] fields
    cdef Py_ssize_t words = shape.words, i = 0, k
    if ascends(records, n, texts, shape):
        return True
    if shape.keys == 2 and n < FEW_RECORDS:
        insertion_sort(records, n, texts, shape)
        return True
    if shape.keys == 2:
        fields[0], fields[1] = 8, 0
        return radix_sort(records, n, 8 * words, fields, 2)
    if not (sort_by_first(records, spare, n, 3) if words == 3 else sort_by_first(records, spare, n, 4)):
        return False
    while i < n:                # text decides among those whose first words are equal
        k = i + 1
        while k < n and records[k * words] == records[i * words]:
            k += 1
        if not ascends(records + i * words, k - i, texts, shape):
            merge_sort(records + i * words, spare, k - i, texts, shape)
        i = k
    return True


cdef inline Py_ssize_t unite(int64_t* records, Py_ssize_t n, const uint8_t* texts, const Shape* shape) noexcept nogil:
    """Makes equal records, which lie side by side, one. Returns how many are left."""
    cdef Py_ssize_t words = shape.words, left = 0, i
    for i in range(n):
        if left and compare(shape, records + (left - 1) * words, texts, records + i * words, texts) == 0:
            if shape.counts:
                records[(left - 1) * words + shape.counts] += records[i * words + shape.counts]
            continue
        if left != i:
            put_record(records + left * words, records + i * words, words)
        left += 1
    return left
