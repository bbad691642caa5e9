# Regions whose data begins with a cache line.
from libc.string cimport memmove

from fastwin.core.memory.pages cimport CACHE_LINE, ask_large_pages
from fastwin.core.memory.regions cimport bytes_in_file, placed_region, resized_region


cdef inline void settle_lines(char** region, char** data, char* moved, Py_ssize_t used) noexcept nogil:
    """Takes a region that was moved with the ``used`` bytes at ``data``, and lets them begin with a cache line."""
    cdef Py_ssize_t shift = data[0] - region[0]
    region[0] = moved
    data[0] = moved + (CACHE_LINE - <size_t> moved % CACHE_LINE) % CACHE_LINE
    if data[0] - moved != shift:        # large regions move by whole pages: no memmove
        memmove(data[0], moved + shift, used)


cdef inline bint resize_lines(char** region, char** data, Py_ssize_t used, Py_ssize_t old,
                              Py_ssize_t size) noexcept nogil:
    """Moves ``used`` bytes at ``data``, the first cache line of a region for ``old``, to a region for ``size``.

    Returns whether there was memory; without, all stays.
    """
    cdef char* moved = <char*> resized_region(region[0], data[0] - region[0] + used, old, size + CACHE_LINE)
    if moved == NULL:
        return False
    if not bytes_in_file(moved):
        ask_large_pages(moved, size)
    settle_lines(region, data, moved, used)
    return True


cdef inline void place_lines(char** region, char** data, Py_ssize_t used, Py_ssize_t size, bint in_file) noexcept nogil:
    """Moves a region for ``size`` bytes to a file or back to memory, see placed_region()."""
    cdef char* moved
    if region[0] == NULL:
        return
    moved = <char*> placed_region(region[0], data[0] - region[0] + used, size + CACHE_LINE, in_file)
    if moved != region[0]:
        settle_lines(region, data, moved, used)
