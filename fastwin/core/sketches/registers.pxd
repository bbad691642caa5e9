# The registers of a HyperLogLog in a block of bytes (see memory/owned.pxd): a list or a table of those that are not
# zero as long as there are few (see entries.pxd), one byte each otherwise. What they count, and the hash they count it
# of, is Redis's.
#
# What arrives is put at the end of a list: of all places in memory only its end is touched. When the block is full,
# the list keeps the highest entry of each register, and becomes a table if that leaves much fewer. A table is what is
# saved: a row that was saved goes on with it.
cimport cython
from libc.math cimport INFINITY, llround, sqrt
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from fastwin.core.typedefs cimport int64_t, uint8_t, uint32_t, uint64_t
from fastwin.core.memory.owned cimport Block, block_in, bytes_in, drop_block, put_block, reserve_block, size_in
from fastwin.core.sketches.entries cimport FIRST_PLACES, MOST_LISTED, MOST_PLACES, REGISTERS
from fastwin.core.sketches.entries cimport places_for, put_entry, unite_entries

cdef enum:
    FEW_PLACES = 128            # for which one array of counts does
    REGISTER_BITS = 14
    HASH_BITS = 50              # of the hash, behind those that choose the register
    FIRST_BYTES = 24            # of the block of a list: five entries, and no more memory than four would take
    MOST_BYTES_LISTED = 8184    # of that block: the mark and MOST_LISTED entries
    MOST_TAKEN = 1536           # places of the largest table

# A list begins with a uint32 of which the highest bit is set; the others say how many of its entries are of different
# registers, from the first one on. So large is no number of places taken, with which a table begins.
cdef extern from *:
    """
    #define FASTWIN_LISTED 0x80000000u
    """
    uint32_t LISTED "FASTWIN_LISTED"
    int trailing_zeros "__builtin_ctzll"(uint64_t word) noexcept nogil


cdef inline bint is_all(const char* cell) noexcept nogil:
    """Whether a cell holds all registers."""
    return size_in(cell) == REGISTERS


cdef inline bint is_list(const char* cell) noexcept nogil:
    """Whether a cell, which is not empty, holds a list."""
    return size_in(cell) != REGISTERS and (<const uint32_t*> bytes_in(cell))[0] & LISTED != 0


cdef inline bint is_table(const char* cell) noexcept nogil:
    """Whether a cell, which is not empty, holds a table."""
    return size_in(cell) != REGISTERS and (<const uint32_t*> bytes_in(cell))[0] & LISTED == 0


cdef inline Py_ssize_t entries_in(const char* cell) noexcept nogil:
    """Returns how many entries follow the first word of a list, or places that of a table; none in an empty cell."""
    return size_in(cell) // 4 - 1 if size_in(cell) else 0


cdef inline uint32_t index_of(uint64_t h) noexcept nogil:
    return <uint32_t> (h & (REGISTERS - 1))


cdef inline uint8_t value_of(uint64_t h) noexcept nogil:
    # The position of the lowest bit that is set among the others, from 1.
    return <uint8_t> (trailing_zeros((h >> REGISTER_BITS) | ((<uint64_t> 1) << HASH_BITS)) + 1)


cdef inline uint32_t entry_of(uint64_t h) noexcept nogil:
    return index_of(h) << 8 | value_of(h)


cdef inline void raise_in_all(uint8_t* registers, uint32_t entry) noexcept nogil:
    cdef uint8_t value = <uint8_t> (entry & 0xff)
    registers[entry >> 8] = max(registers[entry >> 8], value)


cdef inline bint to_all(char* cell) noexcept nogil:
    """Makes all registers of a list or a table. Returns whether there was memory; without, all stays."""
    cdef char* none = NULL
    cdef char* larger = <char*> &none
    cdef const uint32_t* entries = <const uint32_t*> bytes_in(cell) + 1
    cdef Py_ssize_t i
    if not reserve_block(larger, REGISTERS):
        return False
    block_in(larger).size = REGISTERS
    memset(bytes_in(larger), 0, REGISTERS)
    for i in range(entries_in(cell)):       # a place that is not taken is an entry that raises nothing
        raise_in_all(bytes_in(larger), entries[i])
    drop_block(cell)
    (<void**> cell)[0] = (<void**> larger)[0]
    return True


cdef inline bint to_table(char* cell, Py_ssize_t places) noexcept nogil:
    """Makes a table of a list without equals, or of a smaller table. Returns whether there was memory; without, all
    stays."""
    cdef char* none = NULL
    cdef char* larger = <char*> &none
    cdef const uint32_t* entries = <const uint32_t*> bytes_in(cell) + 1
    cdef Py_ssize_t i
    if not reserve_block(larger, 4 * (places + 1)):
        return False
    block_in(larger).size = 4 * (places + 1)
    memset(bytes_in(larger), 0, 4 * (<size_t> places + 1))
    for i in range(entries_in(cell)):
        if entries[i]:
            put_entry(<uint32_t*> bytes_in(larger), places, entries[i])
    drop_block(cell)
    (<void**> cell)[0] = (<void**> larger)[0]
    return True


cdef inline bint begin_list(char* cell) noexcept nogil:
    """Makes an empty list of what an empty cell holds. Returns whether there was memory."""
    if block_in(cell) != NULL and block_in(cell).capacity > MOST_BYTES_LISTED:
        drop_block(cell)
    if not reserve_block(cell, FIRST_BYTES):
        return False
    (<uint32_t*> bytes_in(cell))[0] = LISTED
    block_in(cell).size = 4
    return True


cdef inline void settle_list(char* cell) noexcept nogil:
    """Leaves one entry of each register in a list. O(entries), and O(1) where none has come since the last call."""
    cdef uint32_t* list = <uint32_t*> bytes_in(cell)
    cdef Py_ssize_t n = entries_in(cell)
    if list[0] != (LISTED | <uint32_t> n):
        n = unite_entries(list + 1, n)
        list[0] = LISTED | <uint32_t> n
        block_in(cell).size = 4 * (n + 1)


cdef inline bint widen_list(char* cell) noexcept nogil:
    """Makes room in a list whose block is full; one of many registers becomes all of them. Returns whether there was
    memory. Where a quarter or more of the entries were of equal registers, a table finds them sooner."""
    cdef int64_t capacity = min(block_in(cell).capacity, <int64_t> MOST_BYTES_LISTED)
    settle_list(cell)
    if 4 * block_in(cell).size <= 3 * capacity:
        return save_form(cell)
    if capacity == MOST_BYTES_LISTED:
        return to_all(cell)
    # Twice as much; what the allocator adds to a block is used up.
    return reserve_block(cell, min(2 * capacity + 8, <int64_t> MOST_BYTES_LISTED))


cdef inline bint raise_at_once(char* cell, uint32_t entry) noexcept nogil:
    """Makes a register at least what an entry says where that takes no more room. Returns whether it did."""
    cdef Block* block = block_in(cell)
    cdef uint32_t* table
    cdef Py_ssize_t last, at
    if block == NULL or block.size == 0:
        return False
    if block.size == REGISTERS:
        raise_in_all(bytes_in(cell), entry)
        return True
    table = <uint32_t*> bytes_in(cell)
    if table[0] & LISTED:
        if block.size + 4 > min(block.capacity, <int64_t> MOST_BYTES_LISTED):
            return False
        table[block.size // 4] = entry
        block.size += 4
        return True
    last = block.size // 4 - 2
    at = (entry >> 8) & last
    while table[1 + at] == 0 or (table[1 + at] ^ entry) >> 8:
        if table[1 + at] == 0:
            if 4 * (<Py_ssize_t> table[0] + 1) > 3 * (last + 1):
                return False
            table[0] += 1
            break
        at = (at + 1) & last
    table[1 + at] = max(table[1 + at], entry)
    return True


cdef inline bint raise_register(char* cell, uint32_t entry) noexcept nogil:
    """Makes a register at least what an entry says. Returns whether there was memory. O(1) expected, amortised."""
    if raise_at_once(cell, entry):
        return True
    if size_in(cell) == 0:
        return begin_list(cell) and raise_register(cell, entry)
    if is_list(cell):
        return widen_list(cell) and raise_register(cell, entry)
    if entries_in(cell) < MOST_PLACES:
        return to_table(cell, 2 * entries_in(cell)) and raise_register(cell, entry)
    return to_all(cell) and raise_register(cell, entry)


cdef inline const void* place_of(const char* cell, uint32_t index) noexcept nogil:
    """Returns where a register is looked for first, or where a list goes on; NULL in an empty cell."""
    cdef const Block* block = block_in(cell)
    if block == NULL:
        return NULL
    if block.size == REGISTERS:
        return bytes_in(cell) + index
    if is_list(cell):
        return bytes_in(cell) + block.size
    return bytes_in(cell) + 4 + 4 * (<Py_ssize_t> index & (block.size // 4 - 2))


cdef inline bint save_form(char* cell) noexcept nogil:
    """Makes a table of a list, or all registers of a long one. Returns whether there was memory."""
    if size_in(cell) == 0 or not is_list(cell):
        return True
    settle_list(cell)
    if entries_in(cell) > MOST_TAKEN:
        return to_all(cell)
    return to_table(cell, places_for(entries_in(cell)))


cdef inline bint merge_registers(char* cell, const char* other) noexcept nogil:
    """Makes each register at least what it is in ``other``. Returns whether there was memory."""
    cdef Py_ssize_t i
    cdef const uint32_t* entries
    cdef uint8_t* mine
    cdef const uint8_t* theirs
    if size_in(other) == 0 or block_in(other) == block_in(cell):
        return True
    if size_in(cell) == 0:
        return put_block(cell, bytes_in(other), size_in(other))
    if not is_all(other):
        entries = <const uint32_t*> bytes_in(other) + 1
        for i in range(entries_in(other)):
            if entries[i] and not raise_register(cell, entries[i]):
                return False
        return True
    if not is_all(cell) and not to_all(cell):
        return False
    mine, theirs = bytes_in(cell), bytes_in(other)
    for i in range(REGISTERS):
        mine[i] = mine[i] if mine[i] >= theirs[i] else theirs[i]
    return True


cdef inline void count_values(char* cell, int64_t* counts) noexcept nogil:
    """Counts how many registers hold each value: counts[0] to counts[HASH_BITS + 1], which come in as zeros.

    Puts a list in order; nothing changes of what it holds.
    """
    cdef Py_ssize_t i, n = 0
    cdef const uint32_t* entries
    cdef const uint8_t* values
    cdef int64_t[4][64] parts
    if size_in(cell) == 0:
        counts[0] = REGISTERS
        return
    if is_list(cell):
        settle_list(cell)
    if not is_all(cell):                        # no branch: whether a place is taken cannot be foretold
        entries, n = <const uint32_t*> bytes_in(cell) + 1, entries_in(cell)
        if n <= FEW_PLACES:
            for i in range(n):
                counts[entries[i] & 0x3f] += 1
        else:
            memset(&parts, 0, sizeof(parts))
            for i in range(0, n - 3, 4):        # equal neighbours would wait for each other in one array
                parts[0][entries[i] & 0x3f] += 1
                parts[1][entries[i + 1] & 0x3f] += 1
                parts[2][entries[i + 2] & 0x3f] += 1
                parts[3][entries[i + 3] & 0x3f] += 1
            for i in range(n - n % 4, n):
                parts[0][entries[i] & 0x3f] += 1
            for i in range(1, 64):
                counts[i] = parts[0][i] + parts[1][i] + parts[2][i] + parts[3][i]
        counts[0] = REGISTERS - <int64_t> ((<const uint32_t*> bytes_in(cell))[0] & ~LISTED)
        return
    values = bytes_in(cell)
    memset(&parts, 0, sizeof(parts))
    for i in range(0, REGISTERS, 4):
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
