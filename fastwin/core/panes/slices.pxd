# Which slice a time is in.
from fastwin.core.timemath cimport floor_to

from fastwin.core.typedefs cimport int64_t, ts_t

cdef struct Slicer:
    ts_t slide, offset
    ts_t rest                   # where in a slide a window ends; 0 where none does in between
    ts_t start, end             # the slice found last
    const ts_t* bounds          # of irregular slices, ascending; NULL: they are on the grid
    Py_ssize_t at, last         # where in `bounds` the slice found last starts, and the last one
    double per_ms               # how many of them a millisecond has, on average


cdef inline Slicer slicer_of(const int64_t[::1] bounds) noexcept:
    """Returns a slicer of irregular slices. bounds: at least two, ascending; they outlive it."""
    cdef Slicer slicer
    cdef Py_ssize_t last = bounds.shape[0] - 1
    slicer.slide, slicer.offset, slicer.rest, slicer.start, slicer.end, slicer.at = 1, 0, 0, 0, 0, 0
    slicer.bounds, slicer.last = &bounds[0], last - 1
    slicer.per_ms = <double> last / (<double> bounds[last] - <double> bounds[0])
    return slicer


cdef inline ts_t slice_in(Slicer* slicer, ts_t t) noexcept nogil:
    """Returns the start of the irregular slice of a time: nearly where it would be if all were equally long."""
    cdef Py_ssize_t at = <Py_ssize_t> ((<double> t - <double> slicer.bounds[0]) * slicer.per_ms)
    at = max(<Py_ssize_t> 0, min(at, slicer.last))
    while at > 0 and slicer.bounds[at] > t:
        at -= 1
    while at < slicer.last and slicer.bounds[at + 1] <= t:
        at += 1
    slicer.at, slicer.start, slicer.end = at, slicer.bounds[at], slicer.bounds[at + 1]
    return slicer.start


cdef inline ts_t slice_of(Slicer* slicer, ts_t t) noexcept nogil:
    """Returns the start of the slice of a time within the bounds of timemath."""
    if slicer.start <= t < slicer.end:      # mostly the slice of the element before
        return slicer.start
    if slicer.bounds != NULL:
        return slice_in(slicer, t)
    slicer.start = floor_to(t, slicer.slide, slicer.offset)
    slicer.end = slicer.start + slicer.slide
    if slicer.rest:
        if t >= slicer.start + slicer.rest:
            slicer.start = slicer.start + slicer.rest
        else:
            slicer.end = slicer.start + slicer.rest
    return slicer.start
