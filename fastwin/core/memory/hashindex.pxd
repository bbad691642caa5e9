# A hash index: open addressing, linear probing, and gaps that close when something is taken out.
#
# What lies in its places is the owner's: ids, records or pointers, all of one width. A place whose first four bytes
# are all ones is empty. To find something, the owner hashes it with stir(), begins at first_place(), compares, and goes
# on with next_place() until a place is empty.
from libc.stdint cimport int32_t, uint64_t
from libc.string cimport memcpy, memset

from fastwin.core.memory.regions cimport bytes_in_file, free_region, new_region, placed_region

cdef extern from *:
    """
    /* The halves of the long product, folded: each bit of the result knows all bits of h ^ word. */
    static inline uint64_t fastwin_stir(uint64_t h, uint64_t word, uint64_t factor) {
        unsigned __int128 product = (unsigned __int128)(h ^ word) * factor;
        return (uint64_t)(product >> 64) ^ (uint64_t)product;
    }
    """
    uint64_t stir "fastwin_stir"(uint64_t h, uint64_t word, uint64_t factor) noexcept nogil

cdef struct HashIndex:
    char* places
    Py_ssize_t size             # a power of two, or 0
    uint64_t start, factor      # what a hash begins with, and what each word of it is multiplied by

# Returns the hash of what lies in a place.
ctypedef uint64_t (*hash_in)(const void* owner, const void* place) noexcept nogil


cdef inline int seed_index(HashIndex* index) except -1:
    """Draws the numbers that hashes are made with. They differ in each index, so that nobody can choose keys that all
    lie in one place. Nothing that leaves the process may depend on them."""
    import os
    drawn = os.urandom(16)
    index.start = int.from_bytes(drawn[:8], "little")
    index.factor = int.from_bytes(drawn[8:], "little") | 1
    return 0


cdef inline bint is_empty(const void* place) noexcept nogil:
    return (<const int32_t*> place)[0] == -1


cdef inline Py_ssize_t first_place(const HashIndex* index, uint64_t h) noexcept nogil:
    return <Py_ssize_t> (h & <uint64_t> (index.size - 1))


cdef inline Py_ssize_t next_place(const HashIndex* index, Py_ssize_t at) noexcept nogil:
    return (at + 1) & (index.size - 1)


cdef inline Py_ssize_t empty_place(const HashIndex* index, Py_ssize_t width, uint64_t h) noexcept nogil:
    """Returns where something with this hash goes; the owner puts it there. There must be an empty place."""
    cdef Py_ssize_t at = first_place(index, h)
    while not is_empty(index.places + at * width):
        at = next_place(index, at)
    return at


cdef inline bint renew_index(HashIndex* index, Py_ssize_t width, Py_ssize_t size) noexcept nogil:
    """Makes all places anew, ``size`` empty ones. Returns whether there was memory; without, the old ones stay."""
    cdef char* places = <char*> new_region(index.places, size * width)
    if places == NULL:
        return False
    memset(places, 0xFF, size * width)
    free_region(index.places)
    index.places = places
    index.size = size
    return True


cdef inline void empty_index(HashIndex* index, Py_ssize_t width) noexcept nogil:
    """Empties all places."""
    if index.size:
        memset(index.places, 0xFF, index.size * width)


cdef inline void free_index(HashIndex* index) noexcept nogil:
    free_region(index.places)
    index.places = NULL
    index.size = 0


cdef inline size_t place_index(HashIndex* index, Py_ssize_t width, bint in_file) noexcept nogil:
    """Moves all places to a file or back to memory, see placed_region(); returns their bytes in a file."""
    index.places = <char*> placed_region(index.places, index.size * width, index.size * width, in_file)
    return bytes_in_file(index.places)


cdef inline bint resize_index(HashIndex* index, Py_ssize_t width, Py_ssize_t size, hash_in hash_of,
                              const void* owner) noexcept nogil:
    """Moves everything to ``size`` places, a power of two. Returns whether there was memory; without, all stays."""
    cdef HashIndex old = index[0]
    cdef const char* place
    cdef Py_ssize_t i
    index.places = <char*> new_region(old.places, size * width)
    if index.places == NULL:
        index[0] = old
        return False
    index.size = size
    memset(index.places, 0xFF, size * width)
    for i in range(old.size):
        place = old.places + i * width
        if not is_empty(place):
            memcpy(index.places + width * empty_place(index, width, hash_of(owner, place)), place, width)
    free_region(old.places)
    return True


cdef inline void take_out(HashIndex* index, Py_ssize_t width, Py_ssize_t at, hash_in hash_of,
                          const void* owner) noexcept nogil:
    """Empties a place, and moves back what probing would no longer reach."""
    cdef Py_ssize_t mask = index.size - 1, gap = at, home
    while True:
        at = (at + 1) & mask
        if is_empty(index.places + at * width):
            break
        home = first_place(index, hash_of(owner, index.places + at * width))
        if ((at - home) & mask) >= ((at - gap) & mask):
            memcpy(index.places + gap * width, index.places + at * width, width)
            gap = at
    memset(index.places + gap * width, 0xFF, width)


cdef inline Py_ssize_t count_places(const HashIndex* index, Py_ssize_t width) noexcept nogil:
    """Returns how many places are not empty. O(size)."""
    cdef Py_ssize_t i, n = 0
    for i in range(index.size):
        n += not is_empty(index.places + i * width)
    return n


cdef inline Py_ssize_t farthest(const HashIndex* index, Py_ssize_t width, hash_in hash_of,
                                const void* owner) noexcept nogil:
    """Returns how many places lie before the one where the longest search ends. O(size)."""
    cdef Py_ssize_t i, found = 0
    for i in range(index.size):
        if not is_empty(index.places + i * width):
            found = max(found, (i - first_place(index, hash_of(owner, index.places + i * width))) & (index.size - 1))
    return found
