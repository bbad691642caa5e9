# Byte strings by id, one after another in an arena. The bytes of those dropped are won back as it grows.
from libc.string cimport memcmp, memcpy

from fastwin.core.typedefs cimport idx_t, int64_t, uint8_t, uint32_t, uint64_t
from fastwin.core.memory.bounds cimport offset_t
from fastwin.core.memory.hashindex cimport HashIndex, stir
from fastwin.core.memory.regions cimport bytes_in_file, free_region, new_region, placed_region, resized_region
from fastwin.core.keys.hashing cimport last_word

cdef enum:
    ABSENT = -1                 # length of an id without text
    FIRST_BYTES = 1024

cdef struct Text:
    uint64_t hash
    int64_t at                  # in the arena
    int64_t length

cdef struct TextStore:
    Text* texts                 # by id
    uint8_t* arena
    int64_t used, capacity, garbage
    Py_ssize_t ids              # texts[:ids] are there


cdef inline Py_ssize_t text_bytes(const TextStore* store) noexcept nogil:
    """Returns how many bytes are allocated."""
    return store.ids * <Py_ssize_t> sizeof(Text) + store.capacity


cdef inline int64_t text_length(const TextStore* store, idx_t key) noexcept nogil:
    return max(store.texts[key].length, <int64_t> 0)


cdef inline const uint8_t* text_start(const TextStore* store, idx_t key) noexcept nogil:
    return store.arena + store.texts[key].at


cdef inline bint same_bytes(const uint8_t* a, int64_t length, const uint8_t* b, int64_t other) noexcept nogil:
    """Whether two texts are equal. Short ones by loads of fixed sizes that overlap: a call would cost more."""
    cdef uint64_t x, y, differ = 0
    cdef uint32_t u, v
    cdef int64_t at = 0
    if length != other:
        return False
    if length > 64:
        return memcmp(a, b, length) == 0
    if length >= 8:
        while at + 8 < length:
            memcpy(&x, a + at, 8)
            memcpy(&y, b + at, 8)
            differ |= x ^ y
            at += 8
        memcpy(&x, a + length - 8, 8)
        memcpy(&y, b + length - 8, 8)
        return (differ | (x ^ y)) == 0
    if length >= 4:
        memcpy(&u, a, 4)
        memcpy(&v, b, 4)
        differ = u ^ v
        memcpy(&u, a + length - 4, 4)
        memcpy(&v, b + length - 4, 4)
        return (differ | (u ^ v)) == 0
    return length <= 0 or (a[0] == b[0] and a[length >> 1] == b[length >> 1] and a[length - 1] == b[length - 1])


cdef inline bint text_equals(const TextStore* store, idx_t key, uint64_t h, const uint8_t* text,
                             int64_t length) noexcept nogil:
    cdef const Text* own = store.texts + key
    return own.hash == h and same_bytes(store.arena + own.at, own.length, text, length)


cdef inline uint64_t stir_text(uint64_t h, uint64_t factor, const uint8_t* data, Py_ssize_t n) noexcept nogil:
    # Words of eight, the last one padded with zeros; the length tells them apart.
    cdef uint64_t word
    cdef Py_ssize_t at = 0
    h = stir(h, <uint64_t> n, factor)
    while at + 8 <= n:
        memcpy(&word, data + at, 8)
        h = stir(h, word, factor)
        at += 8
    return stir(h, last_word(data, n), factor) if at < n else h


cdef inline uint64_t hash_in_index(const HashIndex* index, const uint8_t* data, Py_ssize_t n) noexcept nogil:
    return stir_text(index.start, index.factor, data, n)


cdef inline Py_ssize_t count_alike(const uint8_t* data, const offset_t* offsets, Py_ssize_t n) noexcept nogil:
    """Returns how many of n texts are as the first one, up to one that is not; n: at least one."""
    cdef Py_ssize_t i
    cdef int64_t length = offsets[1] - offsets[0]
    for i in range(1, n):
        if not same_bytes(data + offsets[0], length, data + offsets[i], offsets[i + 1] - offsets[i]):
            return i
    return n


cdef inline Py_ssize_t hash_texts(const HashIndex* index, const uint8_t* data, const offset_t* offsets, Py_ssize_t n,
                                  uint64_t* hashes) noexcept nogil:
    """Fills in the hashes of n texts; returns how many of them are as the first one, up to one that is not."""
    cdef Py_ssize_t i, alike = count_alike(data, offsets, n)
    for i in range(n):
        hashes[i] = hashes[0] if 0 < i < alike else hash_in_index(index, data + offsets[i], offsets[i + 1] - offsets[i])
    return alike


cdef inline int reserve_texts(TextStore* store, Py_ssize_t ids) except -1 nogil:
    """Makes room for ids below ``ids``; new ones have no text."""
    cdef Py_ssize_t i
    cdef size_t old = store.ids * sizeof(Text)
    cdef void* moved = resized_region(store.texts, old, old, ids * sizeof(Text))
    if moved == NULL:
        with gil:
            raise MemoryError(f"KeyTable: no memory for {ids} texts")
    store.texts = <Text*> moved
    for i in range(store.ids, ids):
        store.texts[i].length = ABSENT
    store.ids = ids
    return 0


cdef inline Py_ssize_t reserve_text_bytes(TextStore* store, int64_t extra) except -1 nogil:
    """Makes room for ``extra`` bytes; what was dropped is left behind. Amortised O(extra).

    Returns how many ids it had to pass for that.
    """
    cdef int64_t capacity, used = 0
    cdef uint8_t* arena
    cdef Text* text
    cdef Py_ssize_t i
    if store.used + extra <= store.capacity:
        return 0
    # Not less than a byte an id, so that passing all of them is rare where few of them have a text.
    capacity = max(2 * (store.used - store.garbage + extra), <int64_t> FIRST_BYTES, <int64_t> store.ids)
    arena = <uint8_t*> new_region(store.arena, capacity)
    if arena == NULL:
        with gil:
            raise MemoryError(f"KeyTable: no memory for {capacity} bytes of text")
    for i in range(store.ids):
        text = store.texts + i
        if text.length > 0:
            memcpy(arena + used, store.arena + text.at, text.length)
            text.at = used
            used += text.length
    free_region(store.arena)
    store.arena = arena
    store.used = used
    store.garbage = 0
    store.capacity = capacity
    return store.ids


cdef inline size_t place_texts(TextStore* store, bint in_file) noexcept nogil:
    """Moves all texts to a file or back to memory, see placed_region(); returns their bytes in a file."""
    cdef size_t size = store.ids * sizeof(Text)
    store.texts = <Text*> placed_region(store.texts, size, size, in_file)
    store.arena = <uint8_t*> placed_region(store.arena, store.used, store.capacity, in_file)
    return bytes_in_file(store.texts) + bytes_in_file(store.arena)


cdef inline void put_text(TextStore* store, idx_t key, uint64_t h, const uint8_t* text, int64_t length) noexcept nogil:
    """Stores a text for an id that has none, where both have room."""
    store.texts[key].hash = h
    store.texts[key].at = store.used
    store.texts[key].length = length
    if length:
        memcpy(store.arena + store.used, text, length)
        store.used += length


cdef inline void add_lengths(const TextStore* store, const idx_t* ids, Py_ssize_t n, int64_t* ends) noexcept nogil:
    """Writes where the texts of n ids begin and end, one after another."""
    cdef Py_ssize_t i
    ends[0] = 0
    for i in range(n):
        ends[i + 1] = ends[i] + text_length(store, ids[i])


cdef inline void copy_texts(const TextStore* store, const idx_t* ids, Py_ssize_t n, const int64_t* ends,
                            uint8_t* out) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        if ends[i + 1] > ends[i]:
            memcpy(&out[ends[i]], text_start(store, ids[i]), ends[i + 1] - ends[i])


cdef inline void drop_text(TextStore* store, idx_t key) noexcept nogil:
    store.garbage += text_length(store, key)
    store.texts[key].length = ABSENT


cdef inline void free_texts(TextStore* store) noexcept nogil:
    """Gives all memory back."""
    free_region(store.texts)
    free_region(store.arena)
    store.texts = NULL
    store.arena = NULL
    store.ids = store.used = store.garbage = store.capacity = 0


cdef inline int check_texts(const TextStore* store) except -1:
    """Raises AssertionError where an invariant does not hold. O(ids)."""
    cdef int64_t total = 0
    cdef Py_ssize_t i
    for i in range(store.ids):
        if store.texts[i].length > 0:
            total += store.texts[i].length
            assert 0 <= store.texts[i].at <= store.used - store.texts[i].length, f"text {i} lies outside the arena"
    assert total == store.used - store.garbage, f"{total} bytes of text, counted {store.used} - {store.garbage}"
    assert store.used <= store.capacity, f"{store.used} bytes used of {store.capacity}"
    return 0
