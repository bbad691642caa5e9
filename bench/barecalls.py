"""The bare calls of user functions in Python (barecalls.c), compiled when they are needed and called through ctypes."""

import ctypes
import sysconfig
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

import fastwin as fw
from bench.floor import compiled
from bench.peers import WINDOW_COLUMNS, canonical
from bench.race import Contender, Unavailable

__all__ = ["bare_calls"]

_METHODS = (
    *((fw.Trigger, name) for name in ("on_element", "on_event_time", "clear")),
    *((fw.AggregateFunction, name) for name in ("create_accumulator", "add", "get_result")),
    (fw.ProcessWindowFunction, "process"),
)


class _Row:
    __slots__ = ("value",)

    def __init__(self, value: int) -> None:
        self.value = value


class _Window:
    """Answers by a built-in method, which no class in Python does faster."""

    __slots__ = ("end", "max_timestamp", "start")

    def __init__(self, start: int, end: int) -> None:
        self.start, self.end, self.max_timestamp = start, end, (end - 1).conjugate


class _Context:
    """The same: ``hash`` takes a time and does nothing with it."""

    __slots__ = ("delete_event_time_timer", "get_current_watermark", "register_event_time_timer")

    def __init__(self) -> None:
        self.get_current_watermark = fw.MIN_TIMESTAMP.conjugate
        self.register_event_time_timer = self.delete_event_time_timer = hash


@cache
def _library() -> Callable[..., list] | Unavailable:
    found = compiled("barecalls.c", f"-I{sysconfig.get_path('include')}", how=ctypes.PyDLL)
    if isinstance(found, Unavailable):
        return found
    call = found.bare_calls
    call.restype = ctypes.py_object
    each = ctypes.py_object
    call.argtypes = [each, ctypes.c_void_p, ctypes.c_ssize_t, each, each, each, each, each, each]
    return call


def bare_calls(table: pa.Table, size_ms: int, *functions: Any) -> Contender | Unavailable:
    """Returns a contender that calls functions for the tumbling windows of a table of key, ts and value."""
    call = _library()
    if isinstance(call, Unavailable):
        return call
    methods = tuple(
        next((getattr(one, name) for one in functions if isinstance(one, kind)), None) for kind, name in _METHODS
    )
    key, time = table["key"].to_numpy(), table["ts"].to_numpy().astype(np.int64)
    pairs = np.rec.fromarrays([time // size_ms, key], names=["window", "key"])
    found, first, number = np.unique(pairs, return_index=True, return_inverse=True)
    order = np.lexsort((first, found["window"]))
    found, window_of = found[order], np.argsort(order).astype(np.int32)[number]
    starts = found["window"] * size_ms
    windows = {start: _Window(start, start + size_ms) for start in np.unique(starts).tolist()}
    arguments = (
        list(map(_Row, table["value"].to_pylist())),
        time.tolist(),
        [windows[start] for start in starts.tolist()],
        (starts + size_ms - 1).tolist(),
        found["key"].tolist(),
        _Context(),
    )

    def answer(results: list) -> pa.Table:
        columns = [found["key"], starts, *map(pa.array, zip(*results, strict=True))]
        return canonical(WINDOW_COLUMNS)(pa.table(columns, names=WINDOW_COLUMNS))

    def run() -> list:
        return call(methods, window_of.ctypes.data, len(window_of), *arguments)

    return Contender(run, answer=answer, attempts=3)
