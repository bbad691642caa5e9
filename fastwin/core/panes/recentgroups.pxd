# Rows found lately, by key and number of pane: a table of fixed size, in which the one found last takes a place. Where
# there are few groups, nearly each element finds its row here, without a guess and without a look at the row. A key is
# one word or two, see pack_keys().
cimport cython
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from fastwin.core.keys.keyblocks cimport PackedKeys
from fastwin.core.panes.slices cimport NEAR, Slicer, near_zero, slice_of
from fastwin.core.typedefs cimport NONE, idx_t, int64_t, ts_t, uint64_t

cdef extern from *:
    """
    #include <stddef.h>
    #include <stdint.h>
    #define FASTWIN_RECENT_BITS 14
    typedef struct {
        int64_t word;           /* the key's first */
        int32_t pane, slot;     /* both are -1 where nothing is: no pane has that number */
    } fastwin_recent;

    static inline size_t fastwin_recent_place(int64_t word, int64_t other, int32_t pane) {
        const uint64_t mixed = (uint64_t)word * UINT64_C(0x9E3779B97F4A7C15)
                               + (uint64_t)other * UINT64_C(0xC2B2AE3D27D4EB4F)
                               + (uint64_t)(uint32_t)pane * UINT64_C(0xD6E8FEB86659FD93);
        return (size_t)(mixed >> (64 - FASTWIN_RECENT_BITS));
    }
    /* A loop of its own for each set of arguments that are NULL. */
    static inline __attribute__((always_inline)) ptrdiff_t fastwin_find_with(
        const fastwin_recent *groups, const int64_t *seconds, const int64_t *words, const int64_t *others,
        const int32_t *panes, int32_t pane, ptrdiff_t n, int32_t *slots, int32_t *missing) {
        ptrdiff_t count = 0;
        for (ptrdiff_t i = 0; i < n; i++) {
            const int64_t other = others ? others[i] : 0;
            const int32_t own = panes ? panes[i] : pane;
            const size_t place = fastwin_recent_place(words[i], other, own);
            slots[i] = groups[place].slot;
            missing[count] = (int32_t)i;
            count += (groups[place].word != words[i]) | (groups[place].pane != own)
                     | (others ? seconds[place] != other : 0);
        }
        return count;
    }
    /* Fills the slots that were found, and which of n are missing; returns how many. panes: NULL: all are in one. */
    static inline ptrdiff_t fastwin_find_recent(
        const fastwin_recent *groups, const int64_t *seconds, const int64_t *words, const int64_t *others,
        const int32_t *panes, int32_t pane, ptrdiff_t n, int32_t *slots, int32_t *missing) {
        if (others && panes)
            return fastwin_find_with(groups, seconds, words, others, panes, pane, n, slots, missing);
        if (others)
            return fastwin_find_with(groups, seconds, words, others, NULL, pane, n, slots, missing);
        if (panes)
            return fastwin_find_with(groups, NULL, words, NULL, panes, pane, n, slots, missing);
        return fastwin_find_with(groups, NULL, words, NULL, NULL, pane, n, slots, missing);
    }
    """
    enum:
        RECENT_BITS "FASTWIN_RECENT_BITS"
    ctypedef struct Recent "fastwin_recent":
        int64_t word
        idx_t pane, slot
    size_t recent_place "fastwin_recent_place"(int64_t word, int64_t other, idx_t pane) noexcept nogil
    Py_ssize_t fastwin_find_recent(const Recent* groups, const int64_t* seconds, const int64_t* words,
                                   const int64_t* others, const idx_t* panes, idx_t pane, Py_ssize_t n, idx_t* slots,
                                   idx_t* missing) noexcept nogil

cdef enum:
    PANES = 1073741824          # that are numbered: half of them before that of the first element
    PATIENCE = 4096             # elements that were missing, beyond a quarter of all, until it does not pay
    PAUSE = 64                  # blocks until it is tried again; twice as many each time
    LONGEST_PAUSE = 65536

cdef struct RecentGroups:
    Recent* groups              # NULL: none has been found yet
    int64_t* seconds            # words of the keys in the same places; NULL as well, and where a key has one word
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


cdef inline void free_groups(RecentGroups* recent) noexcept nogil:
    free(recent.groups)
    free(recent.seconds)
    recent.groups = NULL
    recent.seconds = NULL


cdef inline Py_ssize_t recent_bytes(const RecentGroups* recent) noexcept nogil:
    """Returns how many bytes are allocated."""
    cdef Py_ssize_t each = 0
    if recent.groups != NULL:
        each += sizeof(Recent)
    if recent.seconds != NULL:
        each += sizeof(int64_t)
    return each << RECENT_BITS


cdef inline bint may_be_recent(RecentGroups* recent, Slicer* slicer, ts_t first, bint two_words) noexcept nogil:
    """Whether rows are to be looked up here, for elements of a block, the first of which is at ``first``."""
    if recent.waiting:
        recent.waiting -= 1
        return False
    if slicer.bounds != NULL or slicer.rest:
        return False
    if recent.groups == NULL:
        recent.groups = <Recent*> malloc(sizeof(Recent) << RECENT_BITS)
        recent.seconds = <int64_t*> malloc(sizeof(int64_t) << RECENT_BITS) if two_words else NULL
        if recent.groups == NULL or two_words and recent.seconds == NULL:
            free_groups(recent)
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


cdef inline Py_ssize_t find_recent(const RecentGroups* recent, const PackedKeys* keys, const idx_t* panes, idx_t pane,
                                   Py_ssize_t n, idx_t* slots, idx_t* missing) noexcept nogil:
    """Fills the slots of n keys that were found, and which of them are missing; returns how many. panes: by key; NULL:
    all are in ``pane``."""
    return fastwin_find_recent(
        recent.groups, recent.seconds, keys.words, keys.others, panes, pane, n, slots, missing)


cdef inline void keep_group(RecentGroups* recent, const PackedKeys* keys, Py_ssize_t i, idx_t pane,
                            idx_t slot) noexcept nogil:
    """Notes the slot of key i in a pane."""
    cdef size_t place = recent_place(keys.words[i], 0 if keys.others == NULL else keys.others[i], pane)
    recent.groups[place].word, recent.groups[place].pane, recent.groups[place].slot = keys.words[i], pane, slot
    if keys.others != NULL:
        recent.seconds[place] = keys.others[i]
    recent.is_empty = False
