"""Large regions of memory that may lie in files, so that the system can take what is not touched out of memory.

Nothing lies in a file unless use_files() has named a folder. A file has no name and belongs to one region, so it goes
with it, or with the process, however that ends.
"""

import errno
import os

from libc.stdint cimport INT64_MAX
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy

from fastwin.core.memory.pages cimport ask_large_pages
from fastwin.core.memory.regionfiles cimport (
    FASTWIN_LIES_IN_MEMORY,
    FASTWIN_SMALLEST,
    fastwin_allow,
    fastwin_folder,
    fastwin_in_file,
    fastwin_in_files,
    fastwin_is_foreign,
    fastwin_leave_memory,
    fastwin_mapped,
    fastwin_may_grow,
    fastwin_take_problem,
    fastwin_unmap,
    fastwin_use_files,
)

__all__ = ["SMALLEST", "allow_memory", "files_folder", "in_files", "take_problem", "use_files"]

SMALLEST = FASTWIN_SMALLEST     # bytes: what is smaller stays in memory


cdef void* new_region(const void* like, size_t nbytes) noexcept nogil:
    cdef void* region = NULL
    if fastwin_in_file(like) or not fastwin_may_grow(nbytes, nbytes):
        region = fastwin_mapped(nbytes)
    if region == NULL:
        region = malloc(nbytes)
        if region != NULL:
            ask_large_pages(region, nbytes)
    return region


cdef void* resized_region(void* region, size_t used, size_t old, size_t nbytes) noexcept nogil:
    cdef void* moved = NULL
    cdef bint in_file = fastwin_in_file(region) > 0
    if in_file or not fastwin_may_grow(nbytes, nbytes - old if nbytes > old else 0):
        moved = fastwin_mapped(nbytes)
    if moved == NULL and not in_file:
        return realloc(region, nbytes)
    if moved == NULL:
        moved = malloc(nbytes)
        if moved == NULL:
            return NULL
    if region != NULL:
        memcpy(moved, region, min(used, nbytes))
        free_region(region)
    return moved


cdef void* placed_region(void* region, size_t used, size_t nbytes, bint in_file) noexcept nogil:
    cdef size_t length = fastwin_in_file(region)
    cdef void* moved
    if region == NULL or (length > 0) == in_file:
        if in_file and length:
            fastwin_leave_memory(region, length)
        return region
    moved = fastwin_mapped(nbytes) if in_file else malloc(nbytes)
    if moved == NULL:
        return region
    if not in_file:
        ask_large_pages(moved, nbytes)
    memcpy(moved, region, used)
    free_region(region)
    if in_file:
        fastwin_leave_memory(moved, nbytes)
    return moved


cdef void free_region(void* region) noexcept nogil:
    if not fastwin_unmap(region):
        free(region)


cdef size_t bytes_in_file(const void* region) noexcept nogil:
    return fastwin_in_file(region)


cdef bint is_foreign(const void* region) noexcept nogil:
    return fastwin_is_foreign(region)


def use_files(folder):
    """Names the folder, on a disk, in which regions may lie; None: none goes to a file from now on.

    Raises OSError where no file can be made there, or it lies in memory or is nearly full; then none goes to a file.
    """
    cdef bytes path = b"" if folder is None else os.fsencode(folder)
    cdef int problem = fastwin_use_files(path, len(path))
    if problem:
        raise OSError(problem if problem > 0 else errno.EOPNOTSUPP, said_of(problem), folder)


def files_folder():
    """Returns the folder in which regions may lie; empty: none."""
    return os.fsdecode(<bytes> fastwin_folder)


def allow_memory(nbytes):
    """Says by how many bytes regions in memory may grow in all before they, and new ones, go to files. None: any."""
    fastwin_allow(INT64_MAX if nbytes is None else max(0, min(nbytes, INT64_MAX - 1)))


def in_files():
    """Returns how many regions of this process lie in files, and their bytes. O(regions in files)."""
    cdef size_t n
    cdef size_t total = fastwin_in_files(&n)
    return n, total


def take_problem():
    """Returns what kept the last region from going to a file since the last call; None: nothing did."""
    cdef int problem = fastwin_take_problem()
    return said_of(problem) if problem else None


cdef str said_of(int problem):
    return "it lies in memory" if problem == FASTWIN_LIES_IN_MEMORY else os.strerror(problem)
