# Arrays with an entry for each key.
from fastwin.core.memory.regions cimport resized_region


cdef inline void* resized(void* array, Py_ssize_t old, Py_ssize_t n, size_t size) except NULL nogil:
    """Returns where an array of ``old`` entries of ``size`` bytes is, once it has room for ``n``."""
    cdef void* moved = resized_region(array, old * size, old * size, n * size)
    if moved == NULL:
        with gil:
            raise MemoryError(f"KeyTable: no memory for {n} keys")
    return moved
