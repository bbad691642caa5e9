# Rows found lately, by key and number of pane: a table of fixed size, in which the one found last takes a place. Where
# there are few groups, nearly each element finds its row here, for one multiplication and without a guess.
cimport cython
from libc.stdlib cimport malloc
from libc.string cimport memset

from fastwin.core.panes.slices cimport NEAR, Slicer, near_zero, slice_of
from fastwin.core.typedefs cimport NONE, idx_t, int64_t, ts_t, uint64_t

cdef extern from *:
    """
    #include <stddef.h>
    #include <stdint.h>
    #define FASTWIN_RECENT_BITS 14
    typedef struct {
        int64_t key;
        int32_t pane, slot;     /* both are -1 where nothing is: no pane has that number */
    } fastwin_recent;

    static inline size_t fastwin_recent_place(int64_t key, int32_t pane) {
        const uint64_t mixed = (uint64_t)key * UINT64_C(0x9E3779B97F4A7C15)
                               + (uint64_t)(uint32_t)pane * UINT64_C(0xD6E8FEB86659FD93);
        return (size_t)(mixed >> (64 - FASTWIN_RECENT_BITS));
    }
    /* Fills the slots that were found, and which of n are missing; returns how many. */
    static inline ptrdiff_t fastwin_find_recent(const fastwin_recent *groups, const int64_t *keys, const int32_t *panes,
                                                ptrdiff_t n, int32_t *slots, int32_t *missing) {
        ptrdiff_t count = 0;
        for (ptrdiff_t i = 0; i < n; i++) {
            const fastwin_recent *group = groups + fastwin_recent_place(keys[i], panes[i]);
            slots[i] = group->slot;
            missing[count] = (int32_t)i;
            count += (group->key != keys[i]) | (group->pane != panes[i]);
        }
        return count;
    }
    /* The same where all are in one pane. */
    static inline ptrdiff_t fastwin_find_in_pane(const fastwin_recent *groups, const int64_t *keys, int32_t pane,
                                                 ptrdiff_t n, int32_t *slots, int32_t *missing) {
        ptrdiff_t count = 0;
        for (ptrdiff_t i = 0; i < n; i++) {
            const fastwin_recent *group = groups + fastwin_recent_place(keys[i], pane);
            slots[i] = group->slot;
            missing[count] = (int32_t)i;
            count += (group->key != keys[i]) | (group->pane != pane);
        }
        return count;
    }
    """
    enum:
        RECENT_BITS "FASTWIN_RECENT_BITS"
    ctypedef struct Recent "fastwin_recent":
        int64_t key
        idx_t pane, slot
    size_t recent_place "fastwin_recent_place"(int64_t key, idx_t pane) noexcept nogil
    Py_ssize_t find_recent "fastwin_find_recent"(const Recent* groups, const int64_t* keys, const idx_t* panes,
                                                 Py_ssize_t n, idx_t* slots, idx_t* missing) noexcept nogil
    Py_ssize_t find_in_pane "fastwin_find_in_pane"(const Recent* groups, const int64_t* keys, idx_t pane, Py_ssize_t n,
                                                   idx_t* slots, idx_t* missing) noexcept nogil

cdef enum:
    PANES = 1073741824          # that are numbered: half of them before that of the first element
    PATIENCE = 4096             # elements that were missing, beyond a quarter of all, until it does not pay
    PAUSE = 64                  # blocks until it is tried again; twice as many each time
    LONGEST_PAUSE = 65536

cdef struct RecentGroups:
    Recent* groups              # NULL: none has been found yet
    bint is_empty
    ts_t slide, offset          # the grid of the panes
    ts_t base, span             # the start of pane 0, and how long all that are numbered are
    int64_t missed              # by how much too many
    Py_ssize_t waiting, pause   # blocks


cdef inline void forget_groups(RecentGroups* recent) noexcept nogil:
    """Empties all places: rows have moved."""
    if recent.groups != NULL and not recent.is_empty:
        memset(recent.groups, 0xFF, sizeof(Recent) << RECENT_BITS)
        recent.is_empty = True


cdef inline bint may_be_recent(RecentGroups* recent, Slicer* slicer, ts_t first) noexcept nogil:
    """Whether rows are to be looked up here, for elements of a block, the first of which is at ``first``."""
    if recent.waiting:
        recent.waiting -= 1
        return False
    if slicer.bounds != NULL or slicer.rest:
        return False
    if recent.groups == NULL:
        recent.groups = <Recent*> malloc(sizeof(Recent) << RECENT_BITS)
        if recent.groups == NULL:
            recent.waiting = LONGEST_PAUSE
            return False
        recent.is_empty, recent.pause, recent.slide = False, PAUSE, 0
    if recent.slide != slicer.slide or recent.offset != slicer.offset:
        recent.slide, recent.offset = slicer.slide, slicer.offset
        recent.span = min(<ts_t> PANES, (<ts_t> NEAR) // slicer.slide) * slicer.slide
        recent.base = slice_of(slicer, first) - recent.span // slicer.slide // 2 * slicer.slide
        forget_groups(recent)
    return recent.span > 0


cdef inline idx_t pane_in(const RecentGroups* recent, ts_t start) noexcept nogil:
    """Returns the number of the pane that starts at a time; NONE: it has no number."""
    if not recent.base <= start < recent.base + recent.span:
        return NONE
    return <idx_t> ((start - recent.base) // recent.slide)


@cython.overflowcheck(False)
cdef inline bint number_panes(const RecentGroups* recent, const ts_t* times, Py_ssize_t n, idx_t* panes) noexcept nogil:
    """Numbers the panes of n times within the bounds of timemath; returns whether all of them are numbered."""
    cdef uint64_t signs = 0
    cdef Py_ssize_t i
    cdef ts_t base = recent.base, last = recent.base + recent.span - 1
    cdef double per_ms = 1.0 / <double> recent.slide
    for i in range(n):
        signs |= <uint64_t> (times[i] - base) | <uint64_t> (last - times[i])
    if signs >> 63:
        return False
    # From the middle of a millisecond on: no rounding reaches the next pane.
    for i in range(n):
        panes[i] = <idx_t> ((near_zero(times[i] - base) + 0.5) * per_ms)
    return True


cdef inline void note_missed(RecentGroups* recent, Py_ssize_t missed, Py_ssize_t n) noexcept nogil:
    """Gives up for a while where too many were missing."""
    recent.missed = max(recent.missed + missed - n // 4, <int64_t> 0)
    if recent.missed > PATIENCE:
        recent.missed = PATIENCE // 2
        recent.waiting = recent.pause
        recent.pause = min(2 * recent.pause, <Py_ssize_t> LONGEST_PAUSE)


cdef inline void keep_group(RecentGroups* recent, int64_t key, idx_t pane, idx_t slot) noexcept nogil:
    cdef Recent* group = recent.groups + recent_place(key, pane)
    group.key, group.pane, group.slot = key, pane, slot
    recent.is_empty = False
