# Which slice a time is in.
from fastwin.core.timemath cimport floor_to

from fastwin._typedefs cimport ts_t

cdef struct Slicer:
    ts_t slide, offset
    ts_t rest                   # where in a slide a window ends; 0 where none does in between
    ts_t start, end             # the slice found last


cdef inline ts_t slice_of(Slicer* slicer, ts_t t) noexcept nogil:
    """Returns the start of the slice of a time within the bounds of timemath."""
    if slicer.start <= t < slicer.end:      # mostly the slice of the element before
        return slicer.start
    slicer.start = floor_to(t, slicer.slide, slicer.offset)
    slicer.end = slicer.start + slicer.slide
    if slicer.rest:
        if t >= slicer.start + slicer.rest:
            slicer.start = slicer.start + slicer.rest
        else:
            slicer.end = slicer.start + slicer.rest
    return slicer.start
