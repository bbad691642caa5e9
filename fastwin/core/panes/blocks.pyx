"""The blocks of memory in which a table of panes lies."""

from libc.stdint cimport int32_t, int64_t

from fastwin.core.typedefs cimport idx_t
from fastwin.core.keys.keytable cimport KeyTable
from fastwin.core.panes.panetable cimport PaneTable
from fastwin.core.rows.rowstore cimport RowStore

__all__ = ["blocks_of"]


def blocks_of(PaneTable panes not None):
    """Returns the blocks of panes, rows and keys: pairs of an address and bytes.

    What cells own, and the bytes of keys that are texts, is not among them. O(panes).
    """
    cdef RowStore rows = panes.rows
    cdef KeyTable keys = panes.keys
    cdef Py_ssize_t i, size
    found = [(<size_t> rows.data, rows.capacity * rows.stride), (<size_t> rows.dirty, rows.capacity // 8)]
    found.append((<size_t> keys.index.places, keys.index.size * <Py_ssize_t> sizeof(idx_t)))
    found.append((<size_t> keys.refs, keys.capacity * <Py_ssize_t> sizeof(int32_t)))
    found.append((<size_t> keys.chain, keys.capacity * <Py_ssize_t> sizeof(idx_t)))
    if not keys.is_bytes:
        found.append((<size_t> keys.ints, keys.capacity * <Py_ssize_t> sizeof(int64_t)))
    for i in range(panes.known.count):
        size = panes.known.panes[i].index_size * <Py_ssize_t> sizeof(idx_t)
        found.append((<size_t> panes.known.panes[i].index, size))
    return [(at, nbytes) for at, nbytes in found if nbytes > 0]
