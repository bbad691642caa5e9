# Integers of 128 bits, and sums of int64 in them that cannot overflow: two cells.
cimport cython

from fastwin.core.typedefs cimport int64_t, uint64_t

cdef extern from *:
    """
    /* Rows are aligned to 8 bytes only. */
    typedef __int128 fastwin_int128 __attribute__((aligned(8)));
    typedef unsigned __int128 fastwin_uint128 __attribute__((aligned(8)));
    """
    ctypedef long long int128 "fastwin_int128"
    ctypedef unsigned long long uint128 "fastwin_uint128"


@cython.overflowcheck(False)        # 128 bits hold more sums of int64 than fit into any machine
cdef inline void add_int(char* cells, int64_t value) noexcept nogil:
    (<int128*> cells)[0] += value


@cython.overflowcheck(False)
cdef inline void add_unsigned(char* cells, uint64_t value) noexcept nogil:
    (<int128*> cells)[0] += value


@cython.overflowcheck(False)
cdef inline void add_total(char* cells, const char* other) noexcept nogil:
    (<int128*> cells)[0] += (<const int128*> other)[0]
