"""Exact: a value of a column that Python has no object for, or none that is the same."""

import pyarrow as pa

cimport cython

from fastwin.columns.buffers import int64_values
from fastwin.errors import BadRowError

__all__ = ["Exact"]


# Windows may keep millions: what they hold makes no circles.
@cython.no_gc
@cython.final
cdef class Exact:
    """A value that Python has no object for, or none that is the same. User code never sees it, but what it shows.

    shown: what Python code sees of a time with a part of a microsecond: the time without it. stored: how many
    nanoseconds it is. For a value of which Python code can see nothing, an array of it alone; shown is None then.
    """

    def __init__(self, shown, stored not None):
        self.shown = shown
        self.stored = stored

    cdef object show(self, object name):
        if self.shown is None:
            raise BadRowError(f"column {name!r}: Python has no object for {self._text()}: {_limit(self.stored)}")
        return self.shown

    def shown_as(self, name):
        """Returns what Python code sees. name: of the column. Raises BadRowError, which names it, for nothing."""
        return self.show(name)

    def _text(self):
        kind = self.stored.type
        if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
            return f"{int64_values(self.stored)[0]} of {kind}"
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            return f"the text {self.stored.view(_bytes_of(kind))[0].as_py()!r}"
        return f"a value of {kind}"

    def __repr__(self):
        return self._text() if self.shown is None else repr(self.shown)

    def __reduce__(self):
        return Exact, (self.shown, self.stored)


cdef object _bytes_of(object kind):
    return pa.binary() if pa.types.is_string(kind) else pa.large_binary()


cdef object _limit(object value):
    """Returns in words why Python has no object for the value of an array of one."""
    kind = value.type
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        try:
            value.to_pylist()
        except LookupError:
            return f"this machine does not know the zone {kind.tz!r}"
        except Exception:
            pass
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return "it has the years 1 to 9999"
    if pa.types.is_duration(kind):
        return "it has up to 999999999 days"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "text must be UTF-8"
    try:
        value.to_pylist()
    except Exception as problem:
        return str(problem)
    return "it is not read"
