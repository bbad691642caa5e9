"""Descriptions of user-written parts that are the same in every process: for the fingerprint of a spec, and to read."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import re
import types
from collections import deque
from decimal import Decimal
from enum import Enum
from operator import attrgetter, itemgetter, methodcaller
from typing import Any, Literal
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.functions.named import name_of
from fastwin.spec.codes import code_of, has_own_name

__all__ = ["attributes_of", "describe", "shown"]

_DEPTH = 6
_CLOSURE_DEPTH = 3
# Texts of longer arrays, and of tables of more rows, leave values out.
_NUMPY_TOLD, _ARROW_TOLD = 1_000, 10
_NUMPY_OPTIONS: dict[str, Any] = {  # numpy's own defaults
    "precision": 8, "threshold": _NUMPY_TOLD, "edgeitems": 3, "linewidth": 75, "suppress": False, "nanstr": "nan",
    "infstr": "inf", "sign": "-", "formatter": None, "legacy": False,
}  # fmt: skip
_FUNCTIONS = (types.BuiltinFunctionType, types.MethodType, type)
# What they hold is in no attribute, and their text tells it whole.
_TOLD_BY_TEXT = (Decimal, ZoneInfo, range, slice, bytearray, attrgetter, itemgetter, methodcaller)


def describe(value: Any, depth: int = _DEPTH) -> str:
    """Returns a part's qualified name, arguments and declared version; never an address.

    Functions and classes are told by their qualified names, other objects by their class, its attribute
    ``version`` and what they hold. A function that was given a name by ``named`` is told by that one; one without a
    name of its own, such as a lambda, by a hash of its code as well. Fields of a dataclass whose metadata says
    ``describe=False`` are left out, and those that say ``"if set"`` where they have their default.
    """
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return repr(value)
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, types.FunctionType):
        return _function(value, depth)
    if isinstance(value, _FUNCTIONS):
        module = getattr(value, "__module__", None)
        owner = getattr(value, "__self__", None)
        name = f"{module}.{value.__qualname__}" if module and module != "builtins" else value.__qualname__
        return f"{describe(owner, depth - 1)}.{value.__name__}" if isinstance(value, types.MethodType) else name
    if depth == 0:
        return type(value).__qualname__
    if isinstance(value, functools.partial):
        parts = [describe(part, depth - 1) for part in (value.func, *value.args)]
        parts += [f"{name}={describe(part, depth - 1)}" for name, part in value.keywords.items()]
        return f"partial({', '.join(parts)})"
    if isinstance(value, deque):
        return f"deque({describe(list(value), depth)})"
    if isinstance(value, list | tuple):
        return f"[{', '.join(describe(part, depth - 1) for part in value)}]"
    if isinstance(value, set | frozenset):
        return f"{{{', '.join(sorted(describe(part, depth - 1) for part in value))}}}"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{describe(k, depth - 1)}: {describe(v, depth - 1)}' for k, v in value.items())}}}"
    return _object(value, depth)


def shown(part: Any) -> str:
    """Returns the text of a part, to read: its own, or its description where it has none but Python's address."""
    kind = type(part)
    return describe(part) if kind.__str__ is object.__str__ and kind.__repr__ is object.__repr__ else str(part)


def _function(function: types.FunctionType, depth: int) -> str:
    name = name_of(function)
    if name is not None:
        return f"named({name!r})"
    full = f"{function.__module__}.{function.__qualname__}" if function.__module__ else function.__qualname__
    if has_own_name(function):
        return full
    inner = min(depth - 1, _CLOSURE_DEPTH)  # a function may be in its own closure
    return full + code_of(function, (lambda held: describe(held, inner)) if depth > 0 else None)


def _object(value: Any, depth: int) -> str:
    kind = type(value)
    built_in = kind.__module__.split(".")[0] == "fastwin"
    name = kind.__qualname__ if built_in else f"{kind.__module__}.{kind.__qualname__}"
    told = _data(value)
    if told is not None:
        return f"{name}({told})"
    if dataclasses.is_dataclass(value):
        fields = [field for field in dataclasses.fields(value) if _is_told(field, value)]
        held = {field.name: getattr(value, field.name) for field in fields}
        # What a user's subclass holds beyond the fields counts as well.
        known = {field.name for field in dataclasses.fields(value)}
        held |= {} if built_in else dict(sorted(item for item in attributes_of(value).items() if item[0] not in known))
    elif isinstance(value, np.ndarray):
        return _array_text(value)
    elif built_in or kind.__module__.split(".")[0] in ("pyarrow", "numpy", "datetime"):
        return str(value) if not hasattr(value, "__dict__") else f"{name}({_items(vars(value), depth)})"
    else:
        held = dict(sorted(attributes_of(value).items()))
    version = getattr(value, "version", None)
    items = _items(held, depth)
    if version is not None and "version" not in held:
        items = f"{items}, version={version!r}" if items else f"version={version!r}"
    return f"{name}({items})"


def _is_told(field: dataclasses.Field[Any], value: Any) -> bool:
    told = field.metadata.get("describe", True)
    return getattr(value, field.name) != field.default if told == "if set" else bool(told)


def attributes_of(value: Any) -> dict[str, Any]:
    """Returns what an object holds, in its ``__dict__`` and in slots."""
    held = {}
    for kind in reversed(type(value).__mro__):
        slots = vars(kind).get("__slots__", ())
        for slot in [slots] if isinstance(slots, str) else slots:
            hidden = slot.startswith("__") and not slot.endswith("__")
            attribute = f"_{kind.__name__.lstrip('_')}{slot}" if hidden else slot
            if slot not in ("__dict__", "__weakref__") and hasattr(value, attribute):
                held[attribute] = getattr(value, attribute)
    own = getattr(value, "__dict__", {})
    return held | own if isinstance(own, dict) else held


def _data(value: Any) -> str | None:
    """Returns a text for data whose own text, or attributes, would not tell it from other data; None for all else."""
    if type(value) in _TOLD_BY_TEXT or type(value).__module__.startswith("pandas._libs."):  # of times
        return repr(value)
    if isinstance(value, re.Pattern):
        return f"{value.pattern!r}, {value.flags}"
    if isinstance(value, np.ndarray):
        if value.size <= _NUMPY_TOLD and _text_tells_all(value):
            return None
        objects = value.dtype.hasobject  # bytes and texts of these may have addresses
        text = "" if objects or value.size > _NUMPY_TOLD else f"{_array_text(value)}, "
        what = describe(value.tolist()).encode() if objects else value.tobytes()
        return f"{text}{value.dtype}, {value.shape}, {_digest(what)}"
    if type(value).__module__.split(".")[0] == "pandas" and hasattr(value, "index"):
        value = pa.Table.from_pandas(value if hasattr(value, "columns") else value.to_frame())
    elif not isinstance(value, pa.Array | pa.ChunkedArray | pa.RecordBatch | pa.Table) or len(value) <= _ARROW_TOLD:
        return None
    if isinstance(value, pa.Array | pa.ChunkedArray):
        value = pa.table({"": value})
    table = (pa.Table.from_batches([value]) if isinstance(value, pa.RecordBatch) else value).combine_chunks()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return f"{len(table)} rows, {_digest(sink.getvalue())}"


def _array_text(array: NDArray[Any], floatmode: Literal["maxprec", "unique"] = "maxprec") -> str:
    """Returns the text of an array, whatever ``np.set_printoptions`` has been told."""
    with np.printoptions(**_NUMPY_OPTIONS, floatmode=floatmode):
        return str(array)


def _text_tells_all(array: NDArray[Any]) -> bool:
    """Whether no other array has the text of this one: it has all digits, and Python's values have that type."""
    if type(array) is not np.ndarray or array.dtype.kind not in "bifcUS":
        return False
    again = np.array(array.tolist())
    if (again.dtype, again.shape) != (array.dtype, array.shape):
        return False
    return array.dtype.kind not in "fc" or _array_text(array) == _array_text(array, "unique")


def _digest(data: Any) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def _items(held: dict[str, Any], depth: int) -> str:
    return ", ".join(f"{name}={describe(part, depth - 1)}" for name, part in held.items())
