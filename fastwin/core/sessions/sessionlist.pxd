# The sessions of a key: a list in order of time, and of a long one a guide, so that a search need not pass all of them.
from libc.stdlib cimport free, realloc

from fastwin.core.typedefs cimport NONE, idx_t, ts_t
from fastwin.core.rows.rowstore cimport Head, RowStore

cdef enum:
    NEAR = 64                   # sessions that a search passes before it asks the guide
    APART = 32                  # sessions from one stop of a guide to the next
    FAR = 256                   # what a search passes from a stop on, at most, before the guide is made anew

cdef struct Session:
    Head head                   # link: the key's session before this one
    ts_t end
    ts_t saved                  # start at the last snapshot or delta; INT64_MIN: in none of them
    idx_t later                 # the key's session after this one
    idx_t guide                 # the number of the key's guide; 0: it has none, or the session has left the list

cdef struct Stop:               # a session, if it still begins there
    ts_t start
    idx_t slot

cdef struct Guide:              # to the sessions of a key, as they were when it was made
    Stop* stops                 # in order of start
    Py_ssize_t n                # of one that is free: the number of the next free one

cdef struct Guides:
    Guide* all                  # number 1 and those after it
    idx_t n, capacity
    idx_t free                  # the number of the first free one; 0: none
    Py_ssize_t stops_n          # in all of them


cdef inline Session* session_at(RowStore rows, idx_t slot) noexcept nogil:
    return <Session*> rows.head(slot)


cdef inline Guide* guide_at(Guides* guides, idx_t number) noexcept nogil:
    return guides.all + number - 1


cdef inline void free_guides(Guides* guides) noexcept nogil:
    cdef idx_t i
    for i in range(guides.n):
        free(guides.all[i].stops)
    free(guides.all)


cdef inline idx_t new_guide(Guides* guides) noexcept nogil:
    """Returns the number of a guide without stops; 0 where there is no memory. Amortised O(1)."""
    cdef idx_t number = guides.free, capacity = 2 * guides.capacity + 8
    cdef void* moved
    if number:
        guides.free = <idx_t> guide_at(guides, number).n
    else:
        if guides.n == guides.capacity:
            moved = realloc(guides.all, capacity * sizeof(Guide))
            if moved == NULL:
                return 0
            guides.all = <Guide*> moved
            guides.capacity = capacity
        guides.n += 1
        number = guides.n
    guide_at(guides, number).stops = NULL
    guide_at(guides, number).n = 0
    return number


cdef inline bint resize_guide(Guides* guides, idx_t number, Py_ssize_t n) noexcept nogil:
    """Makes room for n stops, which the caller fills. Returns whether there was memory; without, all stays."""
    cdef Guide* guide = guide_at(guides, number)
    cdef void* moved = realloc(guide.stops, n * sizeof(Stop))
    if moved == NULL:
        return False
    guides.stops_n += n - guide.n
    guide.stops = <Stop*> moved
    guide.n = n
    return True


cdef inline void drop_guide(Guides* guides, idx_t number) noexcept nogil:
    cdef Guide* guide = guide_at(guides, number)
    guides.stops_n -= guide.n
    free(guide.stops)
    guide.stops = NULL
    guide.n = guides.free
    guides.free = number


cdef inline bint is_there(RowStore rows, const Stop* stop, idx_t number) noexcept nogil:
    """Whether a stop of a guide still names a session of its key, by the start that it has."""
    cdef const Session* session = session_at(rows, stop.slot)
    return stop.slot < rows.top and session.guide == number and session.head.start == stop.start


cdef inline void make_guide(RowStore rows, Guides* guides, idx_t slot) noexcept nogil:
    """Makes the guide of a session's key anew; without memory for it, all stays. O(sessions of the key)."""
    cdef idx_t first, number = session_at(rows, slot).guide
    cdef Py_ssize_t i, n = 0
    cdef Session* session
    while session_at(rows, slot).head.link != NONE:
        slot = session_at(rows, slot).head.link
    first = slot
    while slot != NONE:
        slot = session_at(rows, slot).later
        n += 1
    if number == 0:
        number = new_guide(guides)
    if number == 0 or not resize_guide(guides, number, (n - 1) // APART + 1):
        return
    slot = first
    for i in range(n):
        session = session_at(rows, slot)
        session.guide = number
        if i % APART == 0:
            guide_at(guides, number).stops[i // APART].start = session.head.start
            guide_at(guides, number).stops[i // APART].slot = slot
        slot = session.later


cdef inline idx_t search_far(RowStore rows, Guides* guides, idx_t slot, ts_t end) noexcept nogil:
    """Goes from a session of a key to the latest one that starts at or before ``end``, or else to the first one.

    O(log(sessions of the key) + FAR), and amortised over new sessions O(FAR) for each of them.
    """
    cdef idx_t number = session_at(rows, slot).guide
    cdef Guide* guide = guide_at(guides, number)
    cdef Py_ssize_t low = 0, high = guide.n if number else 0, n = high, passed = 0, at
    while low < high:                   # how many stops are at or before the end
        at = (low + high) >> 1
        if guide.stops[at].start <= end:
            low = at + 1
        else:
            high = at
    at = low
    while at > 0 and not is_there(rows, guide.stops + at - 1, number):
        at -= 1
        passed += 1
    if at > 0:
        slot = guide.stops[at - 1].slot
    else:
        while low < n and not is_there(rows, guide.stops + low, number):
            low += 1
            passed += 1
        if low < n:
            slot = guide.stops[low].slot
    while session_at(rows, slot).head.start > end and session_at(rows, slot).head.link != NONE:
        slot = session_at(rows, slot).head.link
        passed += 1
    while session_at(rows, slot).later != NONE and session_at(rows, session_at(rows, slot).later).head.start <= end:
        slot = session_at(rows, slot).later
        passed += 1
    if passed > FAR + (n >> 3):         # more of them in a longer list, as making the guide takes longer
        make_guide(rows, guides, slot)
    return slot
