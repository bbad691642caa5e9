# Removals: the starts of sessions that were saved once and have been merged into others since, chained by key.
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from fastwin.core.typedefs cimport NONE, idx_t, int64_t, ts_t

cdef struct Removal:
    ts_t start
    idx_t key                   # which it keeps retained; NONE: the place is free
    idx_t next                  # the key's removal before this one; of a free place, the next free one

cdef struct Removals:
    Removal* places             # those ever used are [0, top)
    idx_t* newest               # by key id: the removal that the key's chain begins with, or NONE
    Py_ssize_t n                # how many there are
    Py_ssize_t top, capacity, keys
    int64_t looked              # how many have been looked at so far, to forget them
    idx_t free                  # the first free place; NONE, as it has to be from the beginning: there is none


cdef inline void free_removals(Removals* removals) noexcept nogil:
    free(removals.places)
    free(removals.newest)


cdef inline Py_ssize_t bytes_of_removals(const Removals* removals) noexcept nogil:
    """Returns how many bytes are allocated."""
    return removals.capacity * sizeof(Removal) + removals.keys * sizeof(idx_t)


cdef inline bint reserve_removals(Removals* removals, Py_ssize_t extra, Py_ssize_t keys) noexcept nogil:
    """Makes room for so many more, of keys with ids below ``keys``. Returns whether there was memory."""
    cdef Py_ssize_t room = 2 * (removals.n + extra)
    cdef void* moved
    if keys > removals.keys:
        moved = realloc(removals.newest, keys * sizeof(idx_t))
        if moved == NULL:
            return False
        removals.newest = <idx_t*> moved
        memset(removals.newest + removals.keys, 0xFF, (keys - removals.keys) * sizeof(idx_t))
        removals.keys = keys
    if removals.n + extra > removals.capacity:
        moved = realloc(removals.places, room * sizeof(Removal))
        if moved == NULL:
            return False
        removals.places = <Removal*> moved
        removals.capacity = room
    return True


cdef inline void put_removal(Removals* removals, idx_t key, ts_t start) noexcept nogil:
    """Adds one; reserve_removals() has made room."""
    cdef idx_t at = removals.free
    if at != NONE:
        removals.free = removals.places[at].next
    else:
        at = <idx_t> removals.top
        removals.top += 1
    removals.places[at].start, removals.places[at].key = start, key
    removals.places[at].next = removals.newest[key]
    removals.newest[key] = at
    removals.n += 1


cdef inline bint drop_removal(Removals* removals, idx_t key) noexcept nogil:
    """Forgets the newest one of a key. Returns whether there was one."""
    cdef idx_t at = removals.newest[key]
    removals.looked += 1
    if at == NONE:
        return False
    removals.newest[key] = removals.places[at].next
    removals.places[at].key, removals.places[at].next = NONE, removals.free
    removals.free = at
    removals.n -= 1
    return True
