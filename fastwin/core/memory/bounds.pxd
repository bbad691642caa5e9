# Checks of what callers hand in, so that a wrong id or length is an error and never a crash.
from libc.stdint cimport int32_t, int64_t, uint32_t

from fastwin.core.typedefs cimport idx_t

ctypedef fused offset_t:
    int32_t
    int64_t


cdef inline int check_length(str name, Py_ssize_t got, Py_ssize_t wanted) except -1:
    """Raises ValueError for an array of another length than the one it goes with."""
    if got != wanted:
        raise ValueError(f"{name}: needs {wanted} values, one for each row, got {got}")
    return 0


cdef inline int check_aligned(str name, const void* first, size_t size) except -1:
    """Raises ValueError for numbers of ``size`` bytes that lie at no multiple of it: loops over them may crash."""
    if <size_t> first % size:
        raise ValueError(f"{name}: numbers of {size} bytes must lie at a multiple of {size}, pass an aligned copy")
    return 0


cdef inline int check_int64(str name, const int64_t[::1] values) except -1:
    """Raises ValueError for values that are not aligned."""
    return check_aligned(name, &values[0], sizeof(int64_t)) if values.shape[0] else 0


cdef inline int check_ids(str name, const idx_t[::1] ids, idx_t limit) except -1:
    """Raises IndexError unless all ids, of keys or slots, are in [0, limit)."""
    cdef Py_ssize_t i
    cdef uint32_t highest = 0           # negative ones become the highest
    if ids.shape[0]:
        check_aligned(name, &ids[0], sizeof(idx_t))
    for i in range(ids.shape[0]):
        highest = max(highest, <uint32_t> ids[i])
    if ids.shape[0] and highest >= <uint32_t> limit:
        raise IndexError(f"{name}: must be at least 0 and below {limit}, got {<idx_t> highest}")
    return 0


cdef inline int check_offsets(const offset_t[::1] offsets, Py_ssize_t size) except -1:
    """Raises ValueError unless there are offsets, and they ascend within [0, size]."""
    cdef Py_ssize_t i
    cdef bint falls = False
    if offsets.shape[0] == 0:
        raise ValueError("offsets: needs one more than there are values, got none")
    check_aligned("offsets", &offsets[0], sizeof(offset_t))
    for i in range(offsets.shape[0] - 1):
        falls |= offsets[i + 1] < offsets[i]
    if falls:
        raise ValueError("offsets: must ascend")
    if offsets[0] < 0 or offsets[offsets.shape[0] - 1] > size:
        raise ValueError(f"offsets: must lie within {size} bytes, got [{offsets[0]}, {offsets[offsets.shape[0] - 1]}]")
    return 0
