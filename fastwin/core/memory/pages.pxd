# What kernels ask of the machine's memory.
from libc.stdlib cimport realloc
from libc.string cimport memmove

cdef enum:
    CACHE_LINE = 64

cdef extern from *:
    """
    #if defined(__linux__)
    #include <stdint.h>
    #include <sys/mman.h>
    #endif

    static inline void fastwin_prefetch(const void *address) { __builtin_prefetch(address); }
    static inline void fastwin_prefetch_to_write(void *address) { __builtin_prefetch(address, 1); }

    /* Rows and tables are visited at random: with pages of 2 MiB the processor finds them without walking page tables.
       A hint: where it is not taken, nothing changes. */
    static inline void fastwin_large_pages(void *block, size_t bytes) {
    #if defined(__linux__) && defined(MADV_HUGEPAGE)
        const uintptr_t page = (uintptr_t)1 << 21;
        uintptr_t first = ((uintptr_t)block + 4095) / 4096 * 4096, end = ((uintptr_t)block + bytes) / 4096 * 4096;
        if (bytes >= 2 * page && first < end)
            (void)madvise((void *)first, end - first, MADV_HUGEPAGE);
    #else
        (void)block, (void)bytes;
    #endif
    }
    """
    void prefetch "fastwin_prefetch"(const void* address) noexcept nogil
    void prefetch_to_write "fastwin_prefetch_to_write"(void* address) noexcept nogil
    void ask_large_pages "fastwin_large_pages"(void* block, size_t bytes) noexcept nogil


cdef inline bint resize_lines(char** block, char** data, Py_ssize_t used, Py_ssize_t size) noexcept nogil:
    """Moves ``used`` bytes at ``data``, which begins with the first cache line in ``block``, to a block for ``size``.

    Returns whether there was memory; without, all stays.
    """
    cdef Py_ssize_t shift = data[0] - block[0]
    cdef char* moved = <char*> realloc(block[0], size + CACHE_LINE)
    if moved == NULL:
        return False
    ask_large_pages(moved, size)
    block[0] = moved
    data[0] = moved + (CACHE_LINE - <size_t> moved % CACHE_LINE) % CACHE_LINE
    if data[0] - moved != shift:        # large blocks move by whole pages: no memmove
        memmove(data[0], moved + shift, used)
    return True
