"""Descriptions of user-written parts that are the same in every process: for the fingerprint of a spec, and to read."""

from __future__ import annotations

import dataclasses
import functools
import types
from enum import Enum
from typing import Any

__all__ = ["describe"]

_DEPTH = 6
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, type)


def describe(value: Any, depth: int = _DEPTH) -> str:
    """Returns a part's qualified name, arguments and declared version; never an address.

    Functions and classes are told by their qualified names, other objects by their class, its attribute
    ``version`` and what they hold.
    """
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return repr(value)
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
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
    if isinstance(value, list | tuple):
        return f"[{', '.join(describe(part, depth - 1) for part in value)}]"
    if isinstance(value, set | frozenset):
        return f"{{{', '.join(sorted(describe(part, depth - 1) for part in value))}}}"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{describe(k, depth - 1)}: {describe(v, depth - 1)}' for k, v in value.items())}}}"
    return _object(value, depth)


def _object(value: Any, depth: int) -> str:
    kind = type(value)
    built_in = kind.__module__.split(".")[0] == "fastwin"
    name = kind.__qualname__ if built_in else f"{kind.__module__}.{kind.__qualname__}"
    if dataclasses.is_dataclass(value):
        held = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        # What a user's subclass holds beyond the fields counts as well.
        held |= {} if built_in else dict(sorted(item for item in vars(value).items() if item[0] not in held))
    elif built_in or kind.__module__.split(".")[0] in ("pyarrow", "numpy", "datetime"):
        return str(value) if not hasattr(value, "__dict__") else f"{name}({_items(vars(value), depth)})"
    else:
        held = dict(sorted(getattr(value, "__dict__", {}).items()))
    version = getattr(value, "version", None)
    items = _items(held, depth)
    if version is not None and "version" not in held:
        items = f"{items}, version={version!r}" if items else f"version={version!r}"
    return f"{name}({items})"


def _items(held: dict[str, Any], depth: int) -> str:
    return ", ".join(f"{name}={describe(part, depth - 1)}" for name, part in held.items())
