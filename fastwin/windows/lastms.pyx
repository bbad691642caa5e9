"""TimeWindow.max_timestamp: triggers that are written in Python ask for it with every element, some of them twice."""

from cpython.tuple cimport PyTuple_Check, PyTuple_GET_ITEM, PyTuple_GET_SIZE


def max_timestamp(self):
    """Returns the largest timestamp inside the window: ``end - 1``."""
    if not PyTuple_Check(self) or PyTuple_GET_SIZE(self) != 2:
        raise TypeError(f"max_timestamp: must be asked of a TimeWindow, got {self!r}")
    return (<object> PyTuple_GET_ITEM(self, 1)) - 1
