"""Blocks of memory that lie in a file: the system writes to the disk what is not touched, and reads it when it is."""

import os

__all__ = ["is_in_memory", "leave_memory", "pages_in", "put_on_file"]

cdef extern from *:
    """
    #include <errno.h>
    #include <fcntl.h>
    #include <stdint.h>
    #include <sys/mman.h>
    #include <unistd.h>
    #if defined(__linux__)
    #include <sys/vfs.h>
    #endif

    /* What the allocator keeps before a block stays in memory. And a block that it has mapped by itself consists of two
       mappings then, so it copies it when it grows. */
    static int64_t fastwin_pages(size_t at, size_t bytes, size_t *first) {
        const size_t page = (size_t)sysconf(_SC_PAGESIZE);
        size_t end = (at + bytes) / page * page;
        *first = (at + page - 1) / page * page + page;
        return end > *first ? (int64_t)(end - *first) : 0;
    }

    /* Returns how many bytes lie in the file now, or -errno; then all is as it was. */
    static int64_t fastwin_put_on_file(size_t at, size_t bytes, int file, int64_t offset) {
    #if defined(__linux__)
        int64_t size = (int64_t)bytes, done = 0;
        int failed = size ? posix_fallocate(file, offset, size) : 0;   /* a full disk is no signal later */
        if (failed)
            return -failed;
        while (done < size) {
            ssize_t wrote = pwrite(file, (char *)at + done, (size_t)(size - done), offset + done);
            if (wrote < 0 && errno != EINTR)
                return -errno;
            done += wrote > 0 ? wrote : 0;
        }
        if (size == 0)
            return 0;
        void *there = mmap((void *)at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, offset);
        return there == MAP_FAILED ? -errno : size;
    #else
        (void)at, (void)bytes, (void)file, (void)offset;
        return -ENOTSUP;
    #endif
    }

    static int fastwin_leave_memory(size_t at, size_t bytes) {
        return madvise((void *)at, bytes, MADV_DONTNEED) ? -errno : 0;
    }

    static int fastwin_is_in_memory(int file) {
    #if defined(__linux__)
        struct statfs told;
        if (fstatfs(file, &told))
            return -errno;
        return told.f_type == 0x01021994 || (unsigned int)told.f_type == 0x858458f6u;     /* tmpfs, ramfs */
    #else
        (void)file;
        return -ENOTSUP;
    #endif
    }
    """
    long long fastwin_pages(size_t at, size_t bytes, size_t* first) nogil
    long long fastwin_put_on_file(size_t at, size_t bytes, int file, long long offset) nogil
    int fastwin_leave_memory(size_t at, size_t bytes) nogil
    int fastwin_is_in_memory(int file) nogil


cdef long long checked(long long done) except -1:
    if done < 0:
        raise OSError(-done, os.strerror(-done))
    return done


def pages_in(size_t at, size_t nbytes):
    """Returns where the whole pages of a block begin but its first one, and how many bytes they have."""
    cdef size_t first
    cdef long long size = fastwin_pages(at, nbytes, &first)
    return first, size


def put_on_file(size_t at, size_t nbytes, int file, long long offset):
    """Moves whole pages, as pages_in() tells them, to a file from ``offset`` on; they keep their address.

    Returns their bytes.

    Nobody else may write to the block meanwhile. Raises OSError where that cannot be; then all is as it was.
    """
    cdef long long done
    with nogil:
        done = fastwin_put_on_file(at, nbytes, file, offset)
    return checked(done)


def leave_memory(size_t at, size_t nbytes):
    """Lets go of pages that lie in a file: the next touch fetches them. Those of no file would be lost."""
    checked(fastwin_leave_memory(at, nbytes))


def is_in_memory(int file):
    """Whether the file lies in a file system that is memory itself. Raises OSError where that is not known."""
    return checked(fastwin_is_in_memory(file)) > 0
