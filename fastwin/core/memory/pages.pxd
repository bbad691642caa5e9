# What kernels ask of the machine's memory.
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
