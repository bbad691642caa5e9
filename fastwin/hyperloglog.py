"""Sketches of distinct values outside of windows: the strings that Redis keeps for PFADD, PFCOUNT and PFMERGE.

``HyperLogLog(column, output="sketch")`` gives one for each window. Several of them, of other windows, keys or
machines, merge into one that counts what is in any of them:

>>> import pyarrow as pa
>>> from fastwin import hyperloglog
>>> monday, tuesday = hyperloglog.sketch(pa.array(["ann", "bob"])), hyperloglog.sketch(pa.array(["bob", "cid"]))
>>> hyperloglog.estimate(monday), hyperloglog.estimate(hyperloglog.merge([monday, tuesday]))
(2, 3)

What is hashed of a value is what one would hand to PFADD. Text and bytes are themselves; integers, decimal text
(``-5``); booleans, ``1`` and ``0``; decimals with all digits of their scale (``1.50``, ``0.00000001``); floats, the
shortest text that reads back as the same float64, as Python's repr and redis-py write it (``0.1``, ``1.0``, ``1e+16``,
``nan``), -0.0 as 0.0; dates, ``2024-12-31``; times, timestamps and durations, decimal text of their microseconds since
midnight or since 1970 in UTC, with three digits behind a point if there are nanoseconds. So neither the width of a
column nor its unit or time zone matters. Nulls are skipped.
"""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.columns.decoding import taken
from fastwin.columns.values import can_hash, check_scale, value_column
from fastwin.core.sketches.hyperloglog import Sketch
from fastwin.errors import SketchError, SpecError

__all__ = ["estimate", "merge", "registers", "sketch"]

_Bytes = bytes | bytearray | memoryview


def sketch(values: pa.Array | pa.ChunkedArray) -> bytes:
    """Returns the sketch of an Arrow array's values; nulls are skipped. O(n).

    The string is sparse up to 3,000 bytes and else dense, 12,304 bytes, as Redis has it, with the cached count marked
    as not valid: Redis counts when it is first asked. Raises SpecError for values that cannot be hashed, such as lists.
    """
    if not isinstance(values, pa.Array | pa.ChunkedArray) or not can_hash(values.type):
        kind = values.type if isinstance(values, pa.Array | pa.ChunkedArray) else type(values).__name__
        raise SpecError(f"values: must be an Arrow array of numbers, text, bytes, booleans or times, got {kind}")
    check_scale(values.type, "hash", "values")
    found = Sketch()
    for chunk in values.chunks if isinstance(values, pa.ChunkedArray) else [values]:
        hashes, valid = value_column(taken(chunk), "hash")
        assert hashes is not None
        found.add_hashes(hashes if valid is None else hashes[valid])
    return found.to_bytes()


def merge(sketches: Iterable[_Bytes | None]) -> bytes:
    """Returns the sketch of all values of all sketches: what PFMERGE makes. None is skipped; of none, an empty one.

    sketches: dense or sparse strings of Redis. Raises SketchError for anything else. O(sketches).
    """
    return _read(sketches).to_bytes()


def estimate(sketch: _Bytes | Iterable[_Bytes | None]) -> int:
    """Returns how many distinct values a sketch, or several taken together, have seen: what PFCOUNT gives.

    Raises SketchError for what is no sketch.
    """
    return _read([sketch] if isinstance(sketch, _Bytes) else sketch).estimate()


def registers(sketch: _Bytes) -> NDArray[np.uint8]:
    """Returns the registers of a sketch: uint8[16384]. Raises SketchError for bytes that are no sketch."""
    if sketch is None:
        raise SketchError("sketch: must be bytes, got NoneType")
    return _read([sketch]).registers()


def _read(sketches: Iterable[_Bytes | None]) -> Sketch:
    try:
        each = iter(sketches)
    except TypeError:
        raise SketchError(f"sketch: must be bytes or several, got {type(sketches).__name__}") from None
    found = Sketch()
    for one in each:
        if one is None:
            continue
        if not isinstance(one, _Bytes):
            raise SketchError(f"sketch: must be bytes, got {type(one).__name__}")
        found.merge_string(bytes(one))
    return found
