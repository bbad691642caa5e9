# The registers of a HyperLogLog in a block of bytes (see memory/owned.pxd): a hash table of those that are not zero as
# long as there are few, one byte each otherwise. What the registers count, and the hash they count it of, is Redis's.
cimport cython
from libc.math cimport INFINITY, llround, sqrt
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from fastwin.core.typedefs cimport int64_t, uint8_t, uint32_t, uint64_t
from fastwin.core.memory.owned cimport Block, block_in, bytes_in, put_block, reserve_block, size_in
from fastwin.core.keys.hashing cimport last_word

cdef enum:
    FEW_PLACES = 128            # for which one array of counts does
    REGISTER_BITS = 14
    REGISTERS = 16384           # 2**14
    HASH_BITS = 50              # of the hash, behind those that choose the register
    FIRST_PLACES = 4
    MOST_PLACES = 2048          # of a table: half the bytes of all registers

# A table begins with how many of its places are taken, uint32; a place holds index << 8 | value, uint32, 0 for none.


cdef extern from *:
    int trailing_zeros "__builtin_ctzll"(uint64_t word) noexcept nogil


cdef inline Py_ssize_t places_in(const char* cell) noexcept nogil:
    return size_in(cell) // 4 - 1


cdef inline bint is_table(const char* cell) noexcept nogil:
    return size_in(cell) != REGISTERS


@cython.overflowcheck(False)
cdef inline uint64_t murmur(const uint8_t* text, int64_t n) noexcept nogil:
    # MurmurHash64A (Austin Appleby, public domain) with the seed that Redis gives it.
    cdef uint64_t by = <uint64_t> 0xc6a4a7935bd1e995, word
    cdef uint64_t h = <uint64_t> 0xadc83b19 ^ (<uint64_t> n * by)
    cdef int64_t at = 0
    while at + 8 <= n:
        memcpy(&word, text + at, 8)
        word *= by
        word ^= word >> 47
        h = (h ^ (word * by)) * by
        at += 8
    if at < n:
        h = (h ^ last_word(text, n)) * by
    h = (h ^ (h >> 47)) * by
    return h ^ (h >> 47)


cdef inline uint32_t index_of(uint64_t h) noexcept nogil:
    return <uint32_t> (h & (REGISTERS - 1))


cdef inline uint8_t value_of(uint64_t h) noexcept nogil:
    # The position of the lowest bit that is set among the others, from 1.
    return <uint8_t> (trailing_zeros((h >> REGISTER_BITS) | ((<uint64_t> 1) << HASH_BITS)) + 1)


cdef inline bint new_table(char* cell, uint32_t places) noexcept nogil:
    """Makes an empty table of what an empty cell holds. Returns whether there was memory."""
    if not reserve_block(cell, 4 * (<int64_t> places + 1)):
        return False
    block_in(cell).size = 4 * (<int64_t> places + 1)
    memset(bytes_in(cell), 0, 4 * (<size_t> places + 1))
    return True


cdef inline void put_entry(uint32_t* table, Py_ssize_t places, uint32_t index, uint8_t value) noexcept nogil:
    """Raises a register in a table that has a free place."""
    cdef Py_ssize_t at = index & (places - 1)
    while table[1 + at] and table[1 + at] >> 8 != index:
        at = (at + 1) & (places - 1)
    if table[1 + at] == 0:
        table[0] += 1
    if table[1 + at] & 0xff < value:
        table[1 + at] = index << 8 | value


cdef inline bint make_room(char* cell) noexcept nogil:
    """Makes a table twice as large, or all registers of a large one. Returns whether there was memory."""
    cdef char* none = NULL
    cdef char* larger = <char*> &none
    cdef Py_ssize_t places = places_in(cell), i
    cdef const uint32_t* table = <const uint32_t*> bytes_in(cell)
    cdef Block* old = block_in(cell)
    if places < MOST_PLACES:
        if not new_table(larger, <uint32_t> (2 * places)):
            return False
        for i in range(places):
            if table[1 + i]:
                put_entry(<uint32_t*> bytes_in(larger), 2 * places, table[1 + i] >> 8, table[1 + i] & 0xff)
    else:
        if not reserve_block(larger, REGISTERS):
            return False
        block_in(larger).size = REGISTERS
        memset(bytes_in(larger), 0, REGISTERS)
        for i in range(places):
            if table[1 + i]:
                bytes_in(larger)[table[1 + i] >> 8] = table[1 + i] & 0xff
    (<void**> cell)[0] = (<void**> larger)[0]
    free(old)
    return True


cdef inline bint raise_register(char* cell, uint32_t index, uint8_t value) noexcept nogil:
    """Makes a register at least ``value``. Returns whether there was memory. O(1) expected."""
    cdef uint32_t* table
    cdef Py_ssize_t places
    if size_in(cell) == 0 and not new_table(cell, FIRST_PLACES):
        return False
    if is_table(cell):
        table = <uint32_t*> bytes_in(cell)
        places = places_in(cell)
        if 4 * (<Py_ssize_t> table[0] + 1) <= 3 * places:
            put_entry(table, places, index, value)
            return True
        return make_room(cell) and raise_register(cell, index, value)
    if bytes_in(cell)[index] < value:
        bytes_in(cell)[index] = value
    return True


cdef inline const void* place_of(const char* cell, uint32_t index) noexcept nogil:
    """Returns where a register is looked for first; NULL in an empty cell."""
    cdef const Block* block = block_in(cell)
    if block == NULL:
        return NULL
    if block.size == REGISTERS:
        return bytes_in(cell) + index
    return bytes_in(cell) + 4 + 4 * (<Py_ssize_t> index & (block.size // 4 - 2))


cdef inline bint raise_at_once(char* cell, uint32_t index, uint8_t value) noexcept nogil:
    """Makes a register at least ``value`` where that takes no more room. Returns whether it did."""
    cdef const Block* block = block_in(cell)
    cdef uint32_t* table
    cdef Py_ssize_t last, at
    if block == NULL or block.size == 0:
        return False
    if block.size == REGISTERS:
        if bytes_in(cell)[index] < value:
            bytes_in(cell)[index] = value
        return True
    table = <uint32_t*> bytes_in(cell)
    last = block.size // 4 - 2
    at = index & last
    while table[1 + at] >> 8 != index or table[1 + at] == 0:
        if table[1 + at] == 0:
            if 4 * (<Py_ssize_t> table[0] + 1) > 3 * (last + 1):
                return False
            table[0] += 1
            break
        at = (at + 1) & last
    if table[1 + at] & 0xff < value:
        table[1 + at] = index << 8 | value
    return True


cdef inline bint merge_registers(char* cell, const char* other) noexcept nogil:
    """Makes each register at least what it is in ``other``. Returns whether there was memory."""
    cdef Py_ssize_t i
    cdef const uint32_t* table
    cdef uint8_t* mine
    cdef const uint8_t* theirs
    if size_in(other) == 0:
        return True
    if size_in(cell) == 0:
        return put_block(cell, bytes_in(other), size_in(other))
    if is_table(other):
        table = <const uint32_t*> bytes_in(other)
        for i in range(places_in(other)):
            if table[1 + i] and not raise_register(cell, table[1 + i] >> 8, table[1 + i] & 0xff):
                return False
        return True
    while is_table(cell):
        # Through the last table: it becomes registers.
        if not make_room(cell):
            return False
    mine, theirs = bytes_in(cell), bytes_in(other)
    for i in range(REGISTERS):
        mine[i] = mine[i] if mine[i] >= theirs[i] else theirs[i]
    return True


cdef inline void count_values(const char* cell, int64_t* counts) noexcept nogil:
    """Counts how many registers hold each value: counts[0] to counts[HASH_BITS + 1], which come in as zeros."""
    cdef Py_ssize_t i
    cdef const uint32_t* table = <const uint32_t*> bytes_in(cell)
    cdef const uint8_t* values = bytes_in(cell)
    cdef int64_t[4][64] parts
    if size_in(cell) == 0:
        counts[0] = REGISTERS
    elif is_table(cell):                        # no branch: whether a place is taken cannot be foretold
        if places_in(cell) <= FEW_PLACES:
            for i in range(places_in(cell)):
                counts[table[1 + i] & 0x3f] += 1
        else:
            memset(&parts, 0, sizeof(parts))
            for i in range(0, places_in(cell), 4):
                parts[0][table[1 + i] & 0x3f] += 1
                parts[1][table[2 + i] & 0x3f] += 1
                parts[2][table[3 + i] & 0x3f] += 1
                parts[3][table[4 + i] & 0x3f] += 1
            for i in range(1, 64):
                counts[i] = parts[0][i] + parts[1][i] + parts[2][i] + parts[3][i]
        counts[0] = REGISTERS - <int64_t> table[0]
    else:
        memset(&parts, 0, sizeof(parts))
        for i in range(0, REGISTERS, 4):        # equal neighbours would wait for each other in one array
            parts[0][values[i] & 0x3f] += 1
            parts[1][values[i + 1] & 0x3f] += 1
            parts[2][values[i + 2] & 0x3f] += 1
            parts[3][values[i + 3] & 0x3f] += 1
        for i in range(64):
            counts[i] = parts[0][i] + parts[1][i] + parts[2][i] + parts[3][i]


@cython.cdivision(True)
cdef inline double sigma(double x) noexcept nogil:
    cdef double y = 1.0, z = x, before
    if x == 1.0:
        return INFINITY
    while True:
        x *= x
        before = z
        z += x * y
        y += y
        if z == before:
            return z


@cython.cdivision(True)
cdef inline double tau(double x) noexcept nogil:
    cdef double y = 1.0, z = 1.0 - x, before
    if x == 0.0 or x == 1.0:
        return 0.0
    while True:
        x = sqrt(x)
        before = z
        y *= 0.5
        z -= (1.0 - x) * (1.0 - x) * y
        if z == before:
            return z / 3.0


@cython.cdivision(True)
cdef inline int64_t cardinality(const int64_t* counts) noexcept nogil:
    """The improved estimator of Ertl, "New cardinality estimation algorithms for HyperLogLog sketches" (2017),
    algorithm 6, in the order of operations of Redis, so that both round alike."""
    cdef double m = REGISTERS
    cdef double z = m * tau((m - <double> counts[HASH_BITS + 1]) / m)
    cdef Py_ssize_t k
    for k in range(HASH_BITS, 0, -1):
        z = (z + <double> counts[k]) * 0.5
    z += m * sigma(<double> counts[0] / m)
    return <int64_t> llround(0.721347520444481703680 * m * m / z)       # 1 / (2 ln 2)
