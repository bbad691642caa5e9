# Regions of memory that lie in files: a list of them, and what makes, finds and ends them. The list belongs to one
# module, so this file is for regions.pyx alone.
from libc.stdint cimport int64_t

cdef extern from *:
    """
    #include <errno.h>
    #include <fcntl.h>
    #include <pthread.h>
    #include <stdint.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <unistd.h>

    enum { FASTWIN_SMALLEST = 1 << 16, FASTWIN_MOST_FILES = 1 << 14, FASTWIN_LIES_IN_MEMORY = -1 };

    #if defined(__linux__)
    #include <sys/mman.h>
    #include <sys/statvfs.h>
    #include <sys/vfs.h>

    #ifndef MAP_FIXED_NOREPLACE
    #define MAP_FIXED_NOREPLACE 0x100000
    #endif

    typedef struct { char *at; size_t length; int foreign; } fastwin_region;

    static pthread_mutex_t fastwin_guard = PTHREAD_MUTEX_INITIALIZER;
    static fastwin_region *fastwin_regions;      /* those in files, by address; under the guard, as what follows */
    static size_t fastwin_regions_n, fastwin_regions_room;
    static char fastwin_folder[4000];                   /* empty: no region goes to a file */
    static int64_t fastwin_allowed = INT64_MAX;         /* bytes by which large regions in memory may grow yet */
    static int fastwin_problem;                         /* an errno, or FASTWIN_LIES_IN_MEMORY; 0: none */
    static size_t fastwin_page;

    /* Returns where a region is listed, or is to be. */
    static size_t fastwin_rank(const void *at) {
        size_t low = 0, high = fastwin_regions_n;
        while (low < high) {
            size_t middle = (low + high) / 2;
            if (fastwin_regions[middle].at < (const char *)at)
                low = middle + 1;
            else
                high = middle;
        }
        return low;
    }

    static int fastwin_listed(size_t rank, const void *at) {
        return rank < fastwin_regions_n && fastwin_regions[rank].at == (const char *)at;
    }

    /* Whether something may be a region in a file: they begin with a page. Without any, nobody waits for the guard. */
    static int fastwin_may_be(const void *at) {
        return at != NULL && ((uintptr_t)at & 4095) == 0 && __atomic_load_n(&fastwin_regions_n, __ATOMIC_ACQUIRE) > 0;
    }

    static size_t fastwin_in_file(const void *at) {
        size_t rank, length = 0;
        if (!fastwin_may_be(at))
            return 0;
        pthread_mutex_lock(&fastwin_guard);
        rank = fastwin_rank(at);
        if (fastwin_listed(rank, at))
            length = fastwin_regions[rank].length;
        pthread_mutex_unlock(&fastwin_guard);
        return length;
    }

    static int fastwin_is_foreign(const void *at) {
        size_t rank;
        int foreign = 0;
        if (!fastwin_may_be(at))
            return 0;
        pthread_mutex_lock(&fastwin_guard);
        rank = fastwin_rank(at);
        if (fastwin_listed(rank, at))
            foreign = fastwin_regions[rank].foreign;
        pthread_mutex_unlock(&fastwin_guard);
        return foreign;
    }

    /* A fork: the child does not get the regions. Where they were, it gets pages that nobody may touch, so that nothing
       else of the child comes to lie there, and be freed with the child's copy of an owner. */
    static void fastwin_before_fork(void) { pthread_mutex_lock(&fastwin_guard); }
    static void fastwin_after_fork(void) { pthread_mutex_unlock(&fastwin_guard); }

    static void fastwin_in_child(void) {
        size_t i;
        for (i = 0; i < fastwin_regions_n; i++) {
            fastwin_region *region = fastwin_regions + i;
            if (!region->foreign) {
                void *at = mmap(region->at, region->length, PROT_NONE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
                if (at != region->at) {                 /* a handler before this one was quicker: nothing to unmap */
                    if (at != MAP_FAILED)
                        munmap(at, region->length);
                    region->length = 0;
                }
            }
            region->foreign = 1;
        }
        pthread_mutex_unlock(&fastwin_guard);
    }

    /* Returns a file without a name, or -1. */
    static int fastwin_open(const char *folder) {
        char path[sizeof(fastwin_folder) + 24];
        int file = -1;
    #ifdef O_TMPFILE
        file = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
            return file;
    #endif
        snprintf(path, sizeof(path), "%s/.fastwin-XXXXXX", folder);
        file = mkostemp(path, O_CLOEXEC);
        if (file >= 0 && unlink(path)) {
            int problem = errno;
            close(file);
            errno = problem;
            return -1;
        }
        return file;
    }

    /* Gives a file its bytes on the disk, for what cannot be written later would kill the process. A twentieth of the
       disk is left to others. Returns 0, or what is in the way. */
    static int fastwin_fill(int file, size_t length) {
        struct statfs kind;
        struct statvfs room;
        int problem;
        if (fstatfs(file, &kind) || fstatvfs(file, &room))
            return errno;
        if (kind.f_type == 0x01021994 || (uint32_t)kind.f_type == 0x858458f6u)     /* tmpfs, ramfs */
            return FASTWIN_LIES_IN_MEMORY;
        if ((uint64_t)length / room.f_frsize + 1 + room.f_blocks / 20 > room.f_bavail)
            return ENOSPC;
        do
            problem = posix_fallocate(file, 0, (off_t)length);
        while (problem == EINTR);
        return problem;
    }

    /* Returns a region in a file that is listed, or NULL, and what was in the way is noted. The guard is held. */
    static void *fastwin_map(size_t nbytes) {
        size_t length, rank;
        void *at = MAP_FAILED;
        int file, problem = 0;
        if (fastwin_folder[0] == 0)
            return NULL;
        length = (nbytes + fastwin_page - 1) / fastwin_page * fastwin_page;
        if (fastwin_regions_n >= FASTWIN_MOST_FILES) {
            fastwin_problem = ENFILE;
            return NULL;
        }
        if (fastwin_regions_n == fastwin_regions_room) {
            size_t room = 2 * fastwin_regions_room + 64;
            void *moved = realloc(fastwin_regions, room * sizeof(fastwin_region));
            if (moved == NULL) {
                fastwin_problem = ENOMEM;
                return NULL;
            }
            fastwin_regions = (fastwin_region *)moved;
            fastwin_regions_room = room;
        }
        file = fastwin_open(fastwin_folder);
        if (file < 0) {
            fastwin_problem = errno;
            return NULL;
        }
        problem = fastwin_fill(file, length);
        if (problem == 0) {
            at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
            if (at == MAP_FAILED)
                problem = errno;
            else if (madvise(at, length, MADV_DONTFORK)) {
                problem = errno;
                munmap(at, length);
            }
        }
        close(file);                                     /* the mapping keeps it */
        if (problem) {
            fastwin_problem = problem;
            return NULL;
        }
        rank = fastwin_rank(at);
        if (fastwin_listed(rank, at)) {                  /* of a parent, see fastwin_in_child() */
            munmap(at, length);
            fastwin_problem = EEXIST;
            return NULL;
        }
        memmove(fastwin_regions + rank + 1, fastwin_regions + rank,
                (fastwin_regions_n - rank) * sizeof(fastwin_region));
        fastwin_regions[rank].at = (char *)at;
        fastwin_regions[rank].length = length;
        fastwin_regions[rank].foreign = 0;
        __atomic_store_n(&fastwin_regions_n, fastwin_regions_n + 1, __ATOMIC_RELEASE);
        return at;
    }

    static void *fastwin_mapped(size_t nbytes) {
        void *at;
        if (nbytes < FASTWIN_SMALLEST)
            return NULL;
        pthread_mutex_lock(&fastwin_guard);
        at = fastwin_map(nbytes);
        pthread_mutex_unlock(&fastwin_guard);
        return at;
    }

    /* Returns whether a region was in a file, and is gone. */
    static int fastwin_unmap(void *at) {
        size_t rank, length;
        if (!fastwin_may_be(at))
            return 0;
        pthread_mutex_lock(&fastwin_guard);
        rank = fastwin_rank(at);
        if (!fastwin_listed(rank, at)) {
            pthread_mutex_unlock(&fastwin_guard);
            return 0;
        }
        length = fastwin_regions[rank].length;
        __atomic_store_n(&fastwin_regions_n, fastwin_regions_n - 1, __ATOMIC_RELEASE);
        memmove(fastwin_regions + rank, fastwin_regions + rank + 1,
                (fastwin_regions_n - rank) * sizeof(fastwin_region));
        if (length)
            munmap(at, length);          /* under the guard: nobody is given the address before it is off the list */
        pthread_mutex_unlock(&fastwin_guard);
        return 1;
    }

    /* Whether a region in memory may grow by so much. */
    static int fastwin_may_grow(size_t nbytes, size_t more) {
        int may;
        if (nbytes < FASTWIN_SMALLEST)
            return 1;
        pthread_mutex_lock(&fastwin_guard);
        may = fastwin_folder[0] == 0 || fastwin_allowed == INT64_MAX || (uint64_t)fastwin_allowed >= more;
        if (may && fastwin_allowed != INT64_MAX && fastwin_folder[0] != 0)
            fastwin_allowed -= (int64_t)more;
        pthread_mutex_unlock(&fastwin_guard);
        return may;
    }

    static void fastwin_leave_memory(void *at, size_t length) { (void)madvise(at, length, MADV_DONTNEED); }

    /* Returns 0, or what is in the way. */
    static int fastwin_use_files(const char *folder, size_t length) {
        static int knows_forks = 0;
        int file, problem = 0;
        if (length >= sizeof(fastwin_folder))
            return ENAMETOOLONG;
        pthread_mutex_lock(&fastwin_guard);
        fastwin_page = (size_t)sysconf(_SC_PAGESIZE);
        if (length) {
            file = fastwin_open(folder);
            problem = file < 0 ? errno : fastwin_fill(file, FASTWIN_SMALLEST);
            if (file >= 0)
                close(file);
            if (problem == 0 && !knows_forks)
                problem = pthread_atfork(fastwin_before_fork, fastwin_after_fork, fastwin_in_child);
            knows_forks |= problem == 0;
        }
        memcpy(fastwin_folder, folder, problem ? 0 : length);
        fastwin_folder[problem ? 0 : length] = 0;
        fastwin_problem = 0;
        pthread_mutex_unlock(&fastwin_guard);
        return problem;
    }

    static void fastwin_allow(int64_t nbytes) {
        pthread_mutex_lock(&fastwin_guard);
        fastwin_allowed = nbytes;
        pthread_mutex_unlock(&fastwin_guard);
    }

    static int fastwin_take_problem(void) {
        int problem;
        pthread_mutex_lock(&fastwin_guard);
        problem = fastwin_problem;
        fastwin_problem = 0;
        pthread_mutex_unlock(&fastwin_guard);
        return problem;
    }

    static size_t fastwin_in_files(size_t *n) {
        size_t total = 0, i;
        pthread_mutex_lock(&fastwin_guard);
        *n = 0;
        for (i = 0; i < fastwin_regions_n; i++)
            if (!fastwin_regions[i].foreign) {
                *n += 1;
                total += fastwin_regions[i].length;
            }
        pthread_mutex_unlock(&fastwin_guard);
        return total;
    }
    #else       /* elsewhere all regions are memory */
    static char fastwin_folder[1];
    static size_t fastwin_in_file(const void *at) { (void)at; return 0; }
    static int fastwin_is_foreign(const void *at) { (void)at; return 0; }
    static void *fastwin_mapped(size_t nbytes) { (void)nbytes; return NULL; }
    static int fastwin_unmap(void *at) { (void)at; return 0; }
    static int fastwin_may_grow(size_t nbytes, size_t more) { (void)nbytes, (void)more; return 1; }
    static void fastwin_leave_memory(void *at, size_t length) { (void)at, (void)length; }
    static int fastwin_use_files(const char *folder, size_t length) { (void)folder; return length ? ENOTSUP : 0; }
    static void fastwin_allow(int64_t nbytes) { (void)nbytes; }
    static int fastwin_take_problem(void) { return 0; }
    static size_t fastwin_in_files(size_t *n) { *n = 0; return 0; }
    #endif
    """
    int FASTWIN_SMALLEST, FASTWIN_LIES_IN_MEMORY
    char* fastwin_folder
    size_t fastwin_in_file(const void* at) noexcept nogil
    bint fastwin_is_foreign(const void* at) noexcept nogil
    void* fastwin_mapped(size_t nbytes) noexcept nogil
    bint fastwin_unmap(void* at) noexcept nogil
    bint fastwin_may_grow(size_t nbytes, size_t more) noexcept nogil
    void fastwin_leave_memory(void* at, size_t length) noexcept nogil
    int fastwin_use_files(const char* folder, size_t length) nogil
    void fastwin_allow(int64_t nbytes) nogil
    int fastwin_take_problem() nogil
    size_t fastwin_in_files(size_t* n) nogil
