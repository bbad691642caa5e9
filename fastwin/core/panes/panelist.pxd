# Panes: found by their starts through an index, and put in order only when somebody asks for the order.
cimport cython
from libc.stdlib cimport free, qsort, realloc
from libc.string cimport memcpy, memmove, memset

from fastwin.core.typedefs cimport idx_t, int64_t, ts_t, uint64_t
from fastwin.core.memory.hashindex cimport (
    HashIndex, empty_index, empty_place, first_place, free_index, is_empty, next_place, place_index, resize_index, stir,
    take_out)
from fastwin.core.memory.regions cimport bytes_in_file, free_region, placed_region

cdef enum:
    FIRST_PLACES = 16
    RECENT = 256                # a power of two

cdef struct Pane:
    ts_t start
    idx_t* index                # slots by key id: directly, or by open addressing
    Py_ssize_t index_size
    bint direct                 # index[key]; else a power of two of places
    idx_t newest                # its rows are chained by `link`, newest first
    idx_t count

cdef struct PanePlace:          # of the index
    Pane* pane
    ts_t start

cdef struct PaneList:
    Pane** block                # as allocated
    Pane** panes                # in it, behind the places of those that were freed
    Py_ssize_t count
    Py_ssize_t ordered          # how many of them are by start, ascending; the others follow as they came
    Py_ssize_t capacity         # of the block
    int64_t moved               # how many panes have changed their places so far
    Py_ssize_t indexed          # places in the indexes of all panes
    HashIndex index
    Pane* recent[RECENT]        # panes found lately, by their starts, stirred; NULL: none


cdef inline uint64_t hash_start(const HashIndex* index, ts_t start) noexcept nogil:
    return stir(index.start, <uint64_t> start, index.factor)


cdef inline uint64_t hash_in_place(const void* index, const void* place) noexcept nogil:
    return hash_start(<const HashIndex*> index, (<const PanePlace*> place).start)


cdef inline Py_ssize_t place_of(const HashIndex* index, ts_t start) noexcept nogil:
    """Returns which place has the pane that starts at ``start``; -1: none."""
    cdef PanePlace* places = <PanePlace*> index.places
    cdef Py_ssize_t at
    if index.size == 0:
        return -1
    at = first_place(index, hash_start(index, start))
    while not is_empty(places + at):
        if places[at].start == start:
            return at
        at = next_place(index, at)
    return -1


@cython.overflowcheck(False)
cdef inline Py_ssize_t recent_place(ts_t start) noexcept nogil:
    return <Py_ssize_t> ((<uint64_t> start * <uint64_t> 0x9E3779B97F4A7C15) >> 32) & (RECENT - 1)


cdef inline Pane* pane_at(PaneList* known, ts_t start) noexcept nogil:
    """Returns the pane that starts at ``start``, or NULL."""
    cdef Pane** likely = known.recent + recent_place(start)
    cdef Py_ssize_t at
    if likely[0] != NULL and likely[0].start == start:
        return likely[0]
    at = place_of(&known.index, start)
    if at < 0:
        return NULL
    likely[0] = (<PanePlace*> known.index.places)[at].pane
    return likely[0]


@cython.overflowcheck(False)        # with it, Cython takes a difference of pointers for one of bytes
cdef inline bint reserve_panes(PaneList* known) noexcept nogil:
    """Makes room for one more pane, and for putting them in order. Returns whether there was memory."""
    cdef Py_ssize_t need = 2 * known.count - known.ordered + 2, size = known.index.size
    cdef void* moved
    if known.panes - known.block + need > known.capacity:
        if known.panes != known.block:
            memmove(known.block, known.panes, known.count * sizeof(Pane*))
            known.panes = known.block
            known.moved += known.count
        if 2 * need > known.capacity:           # as much room again as there is need for, or this would come soon again
            moved = realloc(known.block, (2 * need + FIRST_PLACES) * sizeof(Pane*))
            if moved == NULL:
                return False
            known.block = known.panes = <Pane**> moved
            known.capacity = 2 * need + FIRST_PLACES
    if 2 * (known.count + 1) <= size:
        return True
    return resize_index(&known.index, sizeof(PanePlace), max(2 * size, FIRST_PLACES), hash_in_place, &known.index)


cdef inline bint follows_all(const PaneList* known, ts_t start) noexcept nogil:
    """Whether a start lies behind those of all panes, and these are in order."""
    return known.ordered == known.count and (known.count == 0 or known.panes[known.count - 1].start < start)


cdef inline void append_pane(PaneList* known, Pane* pane) noexcept nogil:
    """Adds a pane that is not there yet; reserve_panes() has made room."""
    cdef Py_ssize_t at = empty_place(&known.index, sizeof(PanePlace), hash_start(&known.index, pane.start))
    (<PanePlace*> known.index.places)[at].pane = pane
    (<PanePlace*> known.index.places)[at].start = pane.start
    known.ordered += follows_all(known, pane.start)
    known.panes[known.count] = known.recent[recent_place(pane.start)] = pane
    known.count += 1


cdef inline void give_index(PaneList* known, Pane* pane, idx_t* index, Py_ssize_t size, bint direct) noexcept nogil:
    """Replaces the index of a pane. NULL and 0: it has none then."""
    free_region(pane.index)
    known.indexed += size - pane.index_size
    pane.index, pane.index_size, pane.direct = index, size, direct


cdef inline int compare_starts(const void* a, const void* b) noexcept nogil:
    cdef ts_t first = (<Pane**> a)[0].start, second = (<Pane**> b)[0].start
    return (first > second) - (first < second)


cdef inline void order_panes(PaneList* known) noexcept nogil:
    """Puts all panes in order. O(n log panes) for n that are not, and those behind the first of these move."""
    cdef Pane** panes = known.panes
    cdef Pane** others = panes + known.count         # there is room for them once more
    cdef Py_ssize_t left = known.ordered, more = known.count - left, low, high, middle
    if more == 0:
        return
    qsort(panes + left, more, sizeof(Pane*), compare_starts)
    memcpy(others, panes + left, more * sizeof(Pane*))
    known.moved += more
    while more > 0:
        low, high = 0, left                 # of those in order, the ones behind the last of the others move in one go
        while low < high:
            middle = (low + high) >> 1
            if panes[middle].start < others[more - 1].start:
                low = middle + 1
            else:
                high = middle
        memmove(panes + low + more, panes + low, (left - low) * sizeof(Pane*))
        known.moved += left - low
        left = low
        more -= 1
        panes[left + more] = others[more]
    known.ordered = known.count


cdef inline void free_first_panes(PaneList* known, Py_ssize_t n) noexcept nogil:
    """Frees the first n panes, which are in order, and their indexes. Amortised O(n): no others are moved."""
    cdef HashIndex* index = &known.index
    cdef Py_ssize_t i
    if n == known.count:
        empty_index(index, sizeof(PanePlace))
    for i in range(n):
        if n < known.count:
            take_out(index, sizeof(PanePlace), place_of(index, known.panes[i].start), hash_in_place, index)
        give_index(known, known.panes[i], NULL, 0, False)
        free(known.panes[i])
    known.count -= n
    known.ordered = known.count
    memset(known.recent, 0, sizeof(known.recent))
    known.panes = known.panes + n if known.count else known.block
    if index.size > FIRST_PLACES and 16 * known.count < index.size:
        # Without memory for a smaller index, this one does as well.
        resize_index(index, sizeof(PanePlace), max(index.size // 4, FIRST_PLACES), hash_in_place, index)


cdef inline void free_panes(PaneList* known) noexcept nogil:
    """Frees all. No index is read: in a forked child one that lies in a file cannot be."""
    cdef Py_ssize_t i
    for i in range(known.count):
        free_region(known.panes[i].index)
        free(known.panes[i])
    free_index(&known.index)
    free(known.block)


cdef inline size_t place_panes(PaneList* known, bint in_file) noexcept nogil:
    """Moves all indexes to files or back to memory, see placed_region(); returns their bytes in files."""
    cdef size_t size, total = place_index(&known.index, sizeof(PanePlace), in_file)
    cdef Py_ssize_t i
    cdef Pane* pane
    for i in range(known.count):
        pane = known.panes[i]
        size = pane.index_size * sizeof(idx_t)
        pane.index = <idx_t*> placed_region(pane.index, size, size, in_file)
        total += bytes_in_file(pane.index)
    return total


cdef inline Py_ssize_t bytes_of_panes(const PaneList* known) noexcept nogil:
    """Returns how many bytes are allocated. O(1)."""
    return (known.capacity * sizeof(Pane*) + known.index.size * sizeof(PanePlace)
            + known.count * sizeof(Pane) + known.indexed * sizeof(idx_t))
