"""Looks through what user code keeps, before it is pickled: what is in it says how."""

import datetime
import types
import uuid
from collections import deque
from decimal import Decimal
from enum import Enum

import numpy as np

__all__ = ["NUMBERS", "OBJECTS", "SETS", "kind_of"]

cdef enum:
    DEEPEST = 40
    MOST = 16777216                 # objects that are looked at

_FLAT = (
    complex, bytearray, Decimal, uuid.UUID, datetime.date, datetime.time, datetime.timedelta, datetime.tzinfo, Enum,
    np.generic, np.dtype,
)
"""Types whose values have no others but in fields."""

_HOLDING = (dict, list, tuple, set, frozenset, deque)

NUMBERS, OBJECTS, SETS = range(3)
cdef enum:
    _NUMBERS, _OBJECTS, _SETS


def kind_of(value):
    """Returns what is in a value, in containers and in the fields of objects.

    NUMBERS: dicts of numbers, None, tuples and lists by number, no list or dict twice: they are told by their values
    alone.
    SETS: there are sets, or it is not known. OBJECTS: all else. O(objects), each counted as often as it is reached.
    """
    cdef Look look = Look()
    look.seen = set()
    look.left = MOST
    look.over(value, 0)
    return look.found


cdef class Look:
    cdef set seen                   # ids of lists and dicts
    cdef Py_ssize_t left
    cdef int found

    cdef int over(self, object value, int depth) except -1:
        """Looks at a value and all that is in it, until a set is found."""
        cdef object item
        kind = type(value)
        if kind is int or kind is float or value is None or kind is bool:
            return 0
        self.left -= 1
        if depth > DEEPEST or self.left < 0 or kind is set or kind is frozenset:
            self.found = _SETS
        elif kind is str or kind is bytes:
            self.found = max(self.found, _OBJECTS)
        elif kind is tuple:
            for item in <tuple> value:
                self.over(item, depth + 1)
        elif kind is list or kind is dict:
            if id(value) in self.seen:
                self.found = max(self.found, _OBJECTS)
                return 0
            self.seen.add(id(value))
            if kind is list:
                self._over_all(value, depth)
                return 0
            for key, item in (<dict> value).items():
                self.over(key, depth + 1)
                self.over(item, depth + 1)
                if self.found == _SETS:
                    break
        else:
            self.found = max(self.found, _OBJECTS)
            self._over_fields(value, kind, depth)
        return 0

    cdef int _over_all(self, object values, int depth) except -1:
        for item in values:
            if self.found == _SETS:
                break
            self.over(item, depth + 1)
        return 0

    cdef int _over_fields(self, object value, object kind, int depth) except -1:
        if isinstance(value, type):
            return 0
        if isinstance(value, _HOLDING):
            self._over_all(value.items() if isinstance(value, dict) else value, depth)
        elif isinstance(value, np.ndarray):
            if value.dtype.hasobject:
                self.found = _SETS
        elif not isinstance(value, _FLAT) and not _is_plain(kind):
            self.found = _SETS
            return 0
        fields = getattr(value, "__dict__", None)
        if type(fields) is dict:
            self.over(fields, depth + 1)
        for owner in kind.__mro__:
            slots = owner.__dict__.get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if name.startswith("__") and not name.endswith("__"):       # a private name has its class in it
                    name = f"_{owner.__name__.lstrip('_')}{name}"
                self.over(getattr(value, name, None), depth + 1)
        return 0


cdef bint _is_plain(object kind) except -1:
    """Tells whether a class is pickled by the fields of its objects, or is one of fastwin's, which hold no sets."""
    if kind.__module__.startswith("fastwin."):
        return True
    return (kind.__reduce_ex__ is object.__reduce_ex__ and kind.__reduce__ is object.__reduce__
            and kind.__getstate__ is object.__getstate__ and not issubclass(kind, types.FunctionType))
