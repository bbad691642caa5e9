# Registers that are not zero as entries, index << 8 | value: in a hash table, or in a list as they arrive.
from libc.string cimport memset

from fastwin.core.typedefs cimport uint8_t, uint32_t

cdef enum:
    REGISTERS = 16384           # 2**14
    FIRST_PLACES = 4
    MOST_PLACES = 2048          # of a table: half the bytes of all registers
    MOST_LISTED = 2045          # entries of a list, which takes no more than the largest table does
    FEW_LISTED = 128            # for which a small table is quicker than all registers

# A table begins with how many of its places are taken, uint32; a place holds an entry, uint32, 0 for none. Entries
# whose indices want the same place take the next one that is free.


cdef inline void put_entry(uint32_t* table, Py_ssize_t places, uint32_t entry) noexcept nogil:
    """Raises a register in a table that has a free place."""
    cdef Py_ssize_t at = (entry >> 8) & (places - 1)
    while table[1 + at] and (table[1 + at] ^ entry) >> 8:
        at = (at + 1) & (places - 1)
    if table[1 + at] == 0:
        table[0] += 1
    if table[1 + at] < entry:
        table[1 + at] = entry


cdef inline Py_ssize_t places_for(Py_ssize_t n) noexcept nogil:
    """Returns the places of the smallest table in which n entries leave a quarter free."""
    cdef Py_ssize_t places = FIRST_PLACES
    while 4 * n > 3 * places:
        places *= 2
    return places


cdef inline Py_ssize_t unite_entries(uint32_t* entries, Py_ssize_t n) noexcept nogil:
    """Leaves the highest one of each register among n <= MOST_LISTED entries; returns how many are left. O(n)."""
    cdef uint32_t[1 + 4 * FEW_LISTED] table
    cdef uint8_t[REGISTERS] highest
    cdef Py_ssize_t places, i, k = 0
    cdef uint32_t index
    cdef uint8_t value
    if n <= FEW_LISTED:
        places = 2 * places_for(n)          # few meet in one place
        memset(&table[0], 0, 4 * (<size_t> places + 1))
        for i in range(n):
            put_entry(&table[0], places, entries[i])
        for i in range(1, places + 1):      # no branch: whether a place is taken cannot be foretold
            entries[k] = table[i]
            k += table[i] != 0
            if k == n:
                break
        return <Py_ssize_t> table[0]
    memset(&highest[0], 0, REGISTERS)
    for i in range(n):
        index, value = entries[i] >> 8, <uint8_t> (entries[i] & 0xff)
        highest[index] = max(highest[index], value)
    for i in range(n):
        index = entries[i] >> 8
        value = highest[index]
        entries[k] = index << 8 | value
        k += value != 0
        highest[index] = 0
    return k
