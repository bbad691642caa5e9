# A cell that owns memory: it holds NULL or a pointer to a block of bytes, for what has no fixed width.
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

from fastwin.core.typedefs cimport int64_t, uint8_t

cdef struct Block:
    int64_t size                # bytes in use; they follow the struct
    int64_t capacity


cdef inline Block* block_in(const char* cell) noexcept nogil:
    return (<Block* const*> cell)[0]


cdef inline uint8_t* bytes_in(const char* cell) noexcept nogil:
    return <uint8_t*> ((<Block* const*> cell)[0] + 1)


cdef inline int64_t size_in(const char* cell) noexcept nogil:
    cdef const Block* block = block_in(cell)
    return 0 if block == NULL else block.size


cdef inline int64_t allocated_in(const char* cell) noexcept nogil:
    """Returns how many bytes the cell owns, those that only hold the block included."""
    cdef const Block* block = block_in(cell)
    return 0 if block == NULL else <int64_t> sizeof(Block) + block.capacity


cdef inline bint reserve_block(char* cell, int64_t capacity) noexcept nogil:
    """Makes room for ``capacity`` bytes; those in use stay. Returns whether there was memory for it."""
    cdef Block* block = block_in(cell)
    cdef Block* moved
    if block != NULL and block.capacity >= capacity:
        return True
    moved = <Block*> realloc(block, sizeof(Block) + capacity)
    if moved == NULL:
        return False
    if block == NULL:
        moved.size = 0
    moved.capacity = capacity
    (<Block**> cell)[0] = moved
    return True


cdef inline void drop_block(char* cell) noexcept nogil:
    free(block_in(cell))
    (<Block**> cell)[0] = NULL


cdef inline bint put_block(char* cell, const uint8_t* data, int64_t size) noexcept nogil:
    """Overwrites what the cell holds. Returns whether there was memory for it."""
    if size == 0:
        if block_in(cell) != NULL:
            block_in(cell).size = 0
        return True
    if not reserve_block(cell, size):
        return False
    memcpy(bytes_in(cell), data, size)
    block_in(cell).size = size
    return True


cdef inline void drop_blocks(char* row, const Py_ssize_t* owned, Py_ssize_t n) noexcept nogil:
    """Drops the blocks of n cells, ``owned`` bytes into the row."""
    cdef Py_ssize_t i
    for i in range(n):
        drop_block(row + owned[i])


cdef inline bint copy_blocks(char* row, const char* other, const Py_ssize_t* owned, Py_ssize_t n) noexcept nogil:
    """Gives n cells copies of the blocks of another row, whatever they hold. Returns whether there was memory."""
    cdef Py_ssize_t i
    for i in range(n):
        (<Block**> (row + owned[i]))[0] = NULL
    for i in range(n):
        if not put_block(row + owned[i], bytes_in(other + owned[i]), size_in(other + owned[i])):
            return False
    return True
