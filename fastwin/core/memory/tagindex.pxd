# An index of rows that are only appended: places of 8 bytes, the first 32 bits of a row's hash above its slot. The bits
# say the place too, so entries move to a larger index in their order, and other rows are mostly told apart unseen.
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from fastwin.core.memory.pages cimport ask_large_pages, prefetch
from fastwin.core.typedefs cimport NONE, idx_t, ts_t, uint32_t, uint64_t

cdef enum:
    CACHED = 262144             # bytes that need no fetching

cdef struct TagIndex:
    uint64_t* places
    Py_ssize_t size             # a power of two, or 0
    int shift                   # of a hash, to its place


cdef inline uint64_t no_entry() noexcept nogil:
    return ~<uint64_t> 0


cdef inline idx_t slot_in(uint64_t entry) noexcept nogil:
    return <idx_t> <uint32_t> entry


cdef inline uint64_t entry_of(uint64_t h, idx_t slot) noexcept nogil:
    return h >> 32 << 32 | <uint64_t> <uint32_t> slot


cdef inline void first_slots(const TagIndex* index, const uint64_t* hashes, Py_ssize_t n, const char* rows,
                             Py_ssize_t stride, const ts_t* starts, idx_t* slots) noexcept nogil:
    """Fills the slots of the first entries with the tags of hashes, NONE where there is none: nearly always theirs.

    rows: of ``stride`` bytes, each is fetched as soon as its slot is found, with its place in ``starts`` where there
    are any; NULL: they are in the cache.
    """
    cdef const uint64_t* places = index.places
    cdef Py_ssize_t i, place, mask = index.size - 1
    cdef int shift = index.shift
    cdef uint64_t entry
    if index.size * <Py_ssize_t> sizeof(uint64_t) > CACHED:
        for i in range(n):
            prefetch(places + (hashes[i] >> shift))
    for i in range(n):
        place = <Py_ssize_t> (hashes[i] >> shift)
        entry = places[place]
        while (entry ^ hashes[i]) >> 32 != 0 and entry != no_entry():
            place = (place + 1) & mask
            entry = places[place]
        slots[i] = slot_in(entry)       # NONE where there is no entry
        if rows != NULL:                # NONE: what lies before the first row, and nobody reads it
            prefetch(rows + slots[i] * stride)
            if stride > 64:
                prefetch(rows + slots[i] * stride + stride - 1)
            if starts != NULL:
                prefetch(starts + slots[i])


cdef inline void empty_tags(TagIndex* index) noexcept nogil:
    """Empties all places."""
    memset(index.places, 0xFF, index.size * sizeof(uint64_t))


cdef inline bint move_tags(TagIndex* index, Py_ssize_t size, const idx_t* moved) noexcept nogil:
    """Moves the entries to ``size`` places, a power of two. Returns whether there was memory; without, all stays.

    moved: where the rows have gone, by slot; NONE: nowhere. NULL: they have stayed.
    """
    cdef uint64_t* places = <uint64_t*> malloc(size * sizeof(uint64_t))
    cdef uint64_t entry
    cdef Py_ssize_t i, at
    cdef int shift = 64
    cdef idx_t slot
    if places == NULL:
        return False
    ask_large_pages(places, size * sizeof(uint64_t))
    memset(places, 0xFF, size * sizeof(uint64_t))
    at = size
    while at > 1:
        shift -= 1
        at >>= 1
    for i in range(index.size):
        entry = index.places[i]
        if entry == no_entry():
            continue
        slot = slot_in(entry) if moved == NULL else moved[slot_in(entry)]
        if slot == NONE:
            continue
        at = <Py_ssize_t> (entry >> shift)
        while places[at] != no_entry():
            at = (at + 1) & (size - 1)
        places[at] = entry_of(entry, slot)
    free(index.places)
    index.places, index.size, index.shift = places, size, shift
    return True
