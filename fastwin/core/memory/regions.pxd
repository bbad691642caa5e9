# Large regions of memory: from the allocator, or each from a file of its own that the system reads and writes as it is
# touched. The allocator never hears of those in files, and no file is ever laid over memory of the allocator.
#
# What lies in a region moves when it grows, as with realloc(). Only its owner asks for it, grows or frees it.

# Returns memory, in a file if ``like`` lies in one; NULL: there is none.
cdef void* new_region(const void* like, size_t nbytes) noexcept nogil

# Returns where a region for ``nbytes`` is now; its first ``used`` bytes stay. NULL: no memory, and all is as it was.
# old: bytes that it had; NULL may grow, too.
cdef void* resized_region(void* region, size_t used, size_t old, size_t nbytes) noexcept nogil

# Returns where a region of ``nbytes`` is after it was put into a file, or into memory again; its first ``used`` bytes
# stay. Where that cannot be, or it is there, or it is small, all is as it was. One in a file leaves the memory.
cdef void* placed_region(void* region, size_t used, size_t nbytes, bint in_file) noexcept nogil

cdef void free_region(void* region) noexcept nogil

# Returns how many bytes of a file a region takes; 0: it is in memory.
cdef size_t bytes_in_file(const void* region) noexcept nogil


cdef inline size_t place_array(void** array, size_t nbytes, bint in_file) noexcept nogil:
    """Moves a whole region to a file or back to memory, see placed_region(); returns its bytes in a file."""
    array[0] = placed_region(array[0], nbytes, nbytes, in_file)
    return bytes_in_file(array[0])


# Whether a region lay in a file of the process that this one was forked from: it must not be touched here.
cdef bint is_foreign(const void* region) noexcept nogil
