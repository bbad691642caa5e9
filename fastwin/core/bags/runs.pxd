# Runs: records of a few words each, in the block of a cell (see memory/owned.pxd). The first ones are in order; what
# arrives is put behind them. When the block is full, these are sorted and merged into the others. So an element costs
# a copy and its part of a sort, and two runs are merged in one pass. What is kept depends on no order of arrival.
#
# The text of values lies in a second block, of the next cell; a record has its offset and length.
cimport cython
from libc.stdint cimport INT64_MAX
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memmove

from fastwin.core.typedefs cimport int64_t, uint8_t
from fastwin.core.bags.firstwords cimport MOST_WORDS, merge_apart, put_record, take_in
from fastwin.core.bags.records cimport Shape, compare, sort_records, unite
from fastwin.core.memory.owned cimport Block, block_in, bytes_in, drop_block, put_block, reserve_block, size_in

cdef enum:
    FIRST_RECORDS = 4           # there is room for
    FEW_BYTES = 256             # of a block that grows before its records are put in order
    MUCH_LARGER = 8             # than another run: it takes the records of that one singly
    SPARE_TEXT = 256            # bytes of text that no record has any more, beside as many as they have
    FEW_SPARE = 256             # words that need no memory of their own while records are put in order

cdef struct Run:                # a run as it lies in its blocks
    int64_t* records
    const uint8_t* texts
    Py_ssize_t n
    Py_ssize_t ordered          # of them


cdef inline int64_t* sorted_in(const char* cell) noexcept nogil:
    """Returns where a block that is not empty says how many records are in order."""
    return <int64_t*> bytes_in(cell)


@cython.cdivision(True)
cdef inline Run run_in(const char* cell, const Shape* shape) noexcept nogil:
    cdef Run run
    run.records = NULL
    run.texts = NULL
    run.n = run.ordered = 0
    if size_in(cell):
        run.records = sorted_in(cell) + 1
        run.n = (size_in(cell) - 8) // (8 * shape.words)
        run.ordered = sorted_in(cell)[0]
        if shape.text and block_in(cell + 8) != NULL:
            run.texts = bytes_in(cell + 8)
    return run


cdef inline int64_t used_text(const Run* run, const Shape* shape) noexcept nogil:
    """Returns the bytes of text that records have."""
    cdef int64_t used = 0
    cdef Py_ssize_t i
    for i in range(run.n):
        used += run.records[i * shape.words + shape.text + 1]
    return used


cdef inline bint tidy_texts(char* cell, const Shape* shape) noexcept nogil:
    """Drops text that no record has, where there is much. Returns whether there was memory."""
    cdef Run run = run_in(cell, shape)
    return size_in(cell + 8) <= 2 * used_text(&run, shape) + SPARE_TEXT or order_texts(cell, shape)


cdef inline bint order_texts(char* cell, const Shape* shape) noexcept nogil:
    """Puts texts into the order of their records, and drops others. Returns whether there was memory. O(text), or
    O(records) where they are so already."""
    cdef Run run = run_in(cell, shape)
    cdef int64_t used = 0
    cdef Py_ssize_t i
    cdef int64_t* place
    cdef char* none = NULL
    cdef char* fresh = <char*> &none
    cdef bint in_order = True
    for i in range(run.n):
        place = run.records + i * shape.words + shape.text
        in_order &= place[0] == used
        used += place[1]
    if in_order and used == size_in(cell + 8):
        return True
    if used and not reserve_block(fresh, used):
        return False
    used = 0
    for i in range(run.n):
        place = run.records + i * shape.words + shape.text
        if place[1]:
            memcpy(bytes_in(fresh) + used, run.texts + place[0], place[1])
        place[0] = used
        used += place[1]
    if used:
        block_in(fresh).size = used
    drop_block(cell + 8)
    (<Block**> (cell + 8))[0] = block_in(fresh)
    return True


cdef inline bint has_numbers(const Shape* shape) noexcept nogil:
    """Whether records are numbers, or a number each and how often it occurs."""
    return shape.keys == 1 and shape.text == 0


cdef inline bint settle(char* cell, const Shape* shape) noexcept nogil:
    """Puts all records in order. Returns whether there was memory; without, it holds what it held. Amortised O(log n)
    for each record that has arrived, and O(1) where they arrived in order."""
    cdef Run run = run_in(cell, shape)
    cdef Py_ssize_t tail = run.n - run.ordered, words = tail * shape.words * (1 if has_numbers(shape) else 2)
    cdef int64_t[FEW_SPARE] few
    cdef int64_t* spare = few
    if tail == 0:
        return True
    if words > FEW_SPARE:
        spare = <int64_t*> malloc(words * 8)
        if spare == NULL:
            return False
    if not has_numbers(shape):
        tail = settle_texts(&run, tail, spare, shape)
    elif shape.words == 1 and shape.distinct:       # each of these is compiled for what it is
        tail = take_in(run.records, run.ordered, tail, spare, 1, True)
    elif shape.words == 1:
        tail = take_in(run.records, run.ordered, tail, spare, 1, False)
    else:
        tail = take_in(run.records, run.ordered, tail, spare, 2, True)
    if spare != few:
        free(spare)
    if tail < 0:
        return False
    run.n = min(tail, shape.limit)
    sorted_in(cell)[0] = run.n
    block_in(cell).size = 8 + run.n * shape.words * 8
    return tidy_texts(cell, shape) if shape.text else True


cdef inline Py_ssize_t settle_texts(Run* run, Py_ssize_t tail, int64_t* spare, const Shape* shape) noexcept nogil:
    """Puts the last records of a run of texts, or of elements, in order. spare: room for twice as many. Returns how
    many there are then, -1 without memory."""
    cdef Py_ssize_t words = shape.words, i, k, out, n
    cdef int found
    memcpy(spare, run.records + run.ordered * words, tail * words * 8)
    if not sort_records(spare, spare + tail * words, tail, run.texts, shape):
        return -1
    if shape.distinct:
        tail = unite(spare, tail, run.texts, shape)
    # From the back: what is written never reaches what is still to be read.
    i, k, out = run.ordered - 1, tail - 1, run.ordered + tail
    while k >= 0 and i >= 0:
        found = compare(shape, run.records + i * words, run.texts, spare + k * words, run.texts)
        out -= 1
        if found > 0:
            put_record(run.records + out * words, run.records + i * words, words)
            i -= 1
            continue
        if found == 0 and shape.distinct:
            if shape.counts:
                spare[k * words + shape.counts] += run.records[i * words + shape.counts]
            i -= 1
        put_record(run.records + out * words, spare + k * words, words)
        k -= 1
    while k >= 0:
        out -= 1
        put_record(run.records + out * words, spare + k * words, words)
        k -= 1
    i += 1
    n = run.ordered + tail - (out - i)
    if out > i:
        memmove(run.records + i * words, run.records + out * words, (n - i) * words * 8)
    return n


cdef inline bint make_room(char* cell, int64_t more) noexcept nogil:
    """Makes room for more bytes in a block, which grows by its own size at least. Returns whether there was memory."""
    cdef int64_t need = size_in(cell) + more
    if block_in(cell) != NULL and need <= block_in(cell).capacity:
        return True
    return reserve_block(cell, max(need, 2 * block_in(cell).capacity) if block_in(cell) != NULL else need)


cdef inline bint put_text(char* cell, int64_t* place, const uint8_t* text) noexcept nogil:
    """Puts a text into the block of texts of a run. place: its length comes in the second word, its offset is written
    to the first. Returns whether there was memory."""
    place[0] = size_in(cell + 8)
    if place[1] == 0:
        return True
    if not make_room(cell + 8, place[1]):
        return False
    memcpy(bytes_in(cell + 8) + place[0], text, place[1])
    block_in(cell + 8).size += place[1]
    return True


cdef inline bint open_run(char* cell, const Shape* shape) noexcept nogil:
    """Makes an empty run of an empty cell. Returns whether there was memory."""
    if not reserve_block(cell, 8 + FIRST_RECORDS * shape.words * 8):
        return False
    block_in(cell).size = 8
    sorted_in(cell)[0] = 0
    return True


cdef inline bint enlarge(char* cell, int64_t width) noexcept nogil:
    """Makes a run, of which much is in use, twice as large as that; so there is room for ``width`` more bytes. Returns
    whether there was memory."""
    return reserve_block(cell, size_in(cell) + max(size_in(cell), width))


cdef inline const uint8_t* end_of(const char* cell) noexcept nogil:
    """Returns where the bytes of a block end; NULL: there is none."""
    return bytes_in(cell) + size_in(cell) if block_in(cell) != NULL else NULL


cdef inline int64_t* free_place(const char* cell, int64_t width) noexcept nogil:
    """Returns where the next record of a run goes; NULL: there is no room for ``width`` bytes, or no run."""
    cdef Block* block = block_in(cell)
    if block == NULL or block.size == 0 or block.size + width > block.capacity:
        return NULL
    block.size += width
    return <int64_t*> (<char*> (block + 1) + block.size - width)


cdef inline const uint8_t* no_text() noexcept nogil:
    """Returns where the text of a record without text begins."""
    return <const uint8_t*> <const char*> b""


cdef inline bint add_record(char* cell, const Shape* shape, int64_t* record, const uint8_t* text) noexcept nogil:
    """Adds a record, whose text has its length in the record and begins at ``text``. Returns whether there was memory.
    The offset of the text in the record is written here. Amortised O(log n)."""
    cdef int64_t width = shape.words * 8
    cdef Run run
    if size_in(cell) == 0 and not open_run(cell, shape):
        return False
    if shape.limit != INT64_MAX and sorted_in(cell)[0] >= shape.limit:
        run = run_in(cell, shape)
        if shape.text:
            record[shape.text] = 0
        if compare(shape, record, text, run.records + (run.ordered - 1) * shape.words, run.texts) >= 0:
            return True             # all that are kept come before it
    if size_in(cell) + width > block_in(cell).capacity:
        if size_in(cell) > FEW_BYTES and not settle(cell, shape):
            return False
        if not enlarge(cell, width):
            return False
    if shape.text and not put_text(cell, record + shape.text, text):
        return False
    put_record(<int64_t*> (bytes_in(cell) + size_in(cell)), record, shape.words)
    block_in(cell).size += width
    return True


cdef inline bint merge_ordered(char* cell, const char* other, const Shape* shape) noexcept nogil:
    """Merges two runs that are in order into the first one, in one pass. Returns whether there was memory."""
    cdef Run mine = run_in(cell, shape), theirs = run_in(other, shape)
    cdef Py_ssize_t words = shape.words, i = 0, k = 0, n = 0
    cdef int64_t moved = 0
    cdef int64_t* out
    cdef int found
    cdef char* none = NULL
    cdef char* fresh = <char*> &none
    if shape.text and size_in(other + 8):
        moved = size_in(cell + 8)       # where the other texts go
        if not make_room(cell + 8, size_in(other + 8)):
            return False
        memcpy(bytes_in(cell + 8) + moved, theirs.texts, size_in(other + 8))
        block_in(cell + 8).size += size_in(other + 8)
        mine.texts = bytes_in(cell + 8)
    if not reserve_block(fresh, 8 + (mine.n + theirs.n) * words * 8):
        return False
    out = sorted_in(fresh) + 1
    if has_numbers(shape) and shape.limit == INT64_MAX:
        if shape.words == 2:
            n = merge_apart(out, mine.records, mine.n, theirs.records, theirs.n, 2, True)
        elif shape.distinct:
            n = merge_apart(out, mine.records, mine.n, theirs.records, theirs.n, 1, True)
        else:
            n = merge_apart(out, mine.records, mine.n, theirs.records, theirs.n, 1, False)
        i, k = mine.n, theirs.n
    while n < shape.limit and (i < mine.n or k < theirs.n):
        if i == mine.n:
            found = 1
        elif k == theirs.n:
            found = -1
        else:
            found = compare(shape, mine.records + i * words, mine.texts, theirs.records + k * words, theirs.texts)
        if found <= 0:
            put_record(out, mine.records + i * words, words)
            if found == 0 and shape.distinct:
                if shape.counts:
                    out[shape.counts] += theirs.records[k * words + shape.counts]
                k += 1
            i += 1
        else:
            put_record(out, theirs.records + k * words, words)
            if shape.text:
                out[shape.text] += moved
            k += 1
        out += words
        n += 1
    block_in(fresh).size = 8 + n * words * 8
    sorted_in(fresh)[0] = n
    drop_block(cell)
    (<Block**> cell)[0] = block_in(fresh)
    return tidy_texts(cell, shape) if shape.text else True


cdef inline bint merge_runs(char* cell, char* other, const Shape* shape) noexcept nogil:
    """Adds all records of another run, which is put in order. Returns whether there was memory. O(records of both), or
    of the other one alone where it is much smaller, amortised and but for logarithms."""
    cdef Run theirs = run_in(other, shape)
    cdef int64_t[MOST_WORDS] record
    cdef Py_ssize_t i
    if theirs.n == 0:
        return True
    if size_in(cell) <= 8:
        return put_block(cell, bytes_in(other), size_in(other)) and (
            not shape.text or put_block(cell + 8, bytes_in(other + 8), size_in(other + 8)))
    if MUCH_LARGER * theirs.n > run_in(cell, shape).n:
        return settle(other, shape) and settle(cell, shape) and merge_ordered(cell, other, shape)
    for i in range(theirs.n):
        put_record(record, theirs.records + i * shape.words, shape.words)
        if not add_record(cell, shape, record, theirs.texts + record[shape.text] if shape.text else NULL):
            return False
    return True


@cython.cdivision(True)
cdef inline bint is_run(const char* cell, const Shape* shape) noexcept nogil:
    """Tells whether what a cell holds, from a saved state, can be a run of this shape."""
    cdef Run run
    cdef int64_t size = size_in(cell), texts = size_in(cell + 8) if shape.text else 0
    cdef const int64_t* place
    cdef Py_ssize_t i
    if size == 0:
        return texts == 0
    if size < 8 or (size - 8) % (8 * shape.words):
        return False
    run = run_in(cell, shape)
    if not 0 <= run.ordered <= run.n:
        return False
    for i in range(run.n):
        place = run.records + i * shape.words
        if shape.text and not (0 <= place[shape.text] <= texts and 0 <= place[shape.text + 1] <= texts
                               and place[shape.text] + place[shape.text + 1] <= texts):
            return False
        if shape.counts and place[shape.counts] < 1:
            return False
    for i in range(1, run.ordered):
        place = run.records + i * shape.words
        if compare(shape, place - shape.words, run.texts, place, run.texts) >= (1 if not shape.distinct else 0):
            return False
    return True
