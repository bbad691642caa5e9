"""Looks through what user code keeps, before it is pickled: what is in it says how."""

__all__ = ["NUMBERS", "OBJECTS", "SETS", "kind_of"]

cdef enum:
    DEEPEST = 40
    MOST = 16777216                 # objects that are looked at

NUMBERS, OBJECTS, SETS = range(3)
cdef enum:
    _NUMBERS, _OBJECTS, _SETS


def kind_of(value):
    """Returns what is in a value, in containers and in the fields of objects.

    NUMBERS: dicts of numbers, None, tuples and lists by number, no list twice: they are told by their values alone.
    SETS: there are sets, or it is not known. OBJECTS: all else. O(objects), each counted as often as it is reached.
    """
    cdef Look look = Look()
    look.lists = set()
    look.left = MOST
    look.over(value, 0)
    return look.found


cdef class Look:
    cdef set lists                  # ids of those that were seen
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
        elif kind is list:
            if id(value) in self.lists:
                self.found = max(self.found, _OBJECTS)
            else:
                self.lists.add(id(value))
                self._over_all(value, depth)
        elif kind is dict:
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
        if isinstance(value, (dict, list, tuple, set, frozenset)):
            self._over_all(value.items() if isinstance(value, dict) else value, depth)
        fields = getattr(value, "__dict__", None)
        if type(fields) is dict:
            self.over(fields, depth + 1)
        for owner in kind.__mro__:
            slots = owner.__dict__.get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                self.over(getattr(value, name, None), depth + 1)
        return 0
