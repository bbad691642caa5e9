"""Python objects of user code to bytes and back, so that a restored object is of the class that the code means.

cloudpickle writes a class of ``__main__`` or of a notebook by value: read in another process, it is another class, and
``isinstance`` and the ``==`` of dataclasses fail. Classes that the spec's own code refers to are written by name.
"""

from __future__ import annotations

import io
import pickle
import sys
import types
from collections.abc import Iterable
from typing import Any

from fastwin.errors import StateError

__all__ = ["Classes", "dumps", "loads"]

Name = tuple[str, str]


class Classes:
    """The classes that some objects' code refers to and that cannot be imported, by module and qualified name.

    parts: the objects, such as triggers and functions. Those that share a name with another are left out.
    """

    def __init__(self, parts: Iterable[Any]) -> None:
        self.by_name: dict[Name, type] = {}
        self._seen: set[int] = set()
        ambiguous: set[Name] = set()
        waiting = list(parts)
        while waiting:
            found = waiting.pop()
            if id(found) in self._seen:
                continue
            self._seen.add(id(found))
            if isinstance(found, type) and _is_foreign(found):
                name = (found.__module__, found.__qualname__)
                if self.by_name.setdefault(name, found) is not found:
                    ambiguous.add(name)
            waiting += _referred(found)
        for name in ambiguous:
            del self.by_name[name]
        self.names = {found: name for name, found in self.by_name.items()}


def _is_foreign(found: Any) -> bool:
    """Whether a class or a function cannot be imported by its name in another process."""
    if found.__module__ == "__main__":
        return True
    home: Any = sys.modules.get(found.__module__)
    for name in found.__qualname__.split("."):
        home = getattr(home, name, None)
    return home is not found


def _referred(found: Any) -> list[Any]:
    """Returns what a class, a function or an object refers to, as far as classes may be behind it."""
    if isinstance(found, type | types.FunctionType) and not _is_foreign(found):
        return []  # what can be imported refers to what can be imported
    if isinstance(found, type):
        return [*found.__bases__, *vars(found).values()]
    if isinstance(found, types.FunctionType):
        cells = [_content(cell) for cell in found.__closure__ or ()]
        named = [found.__globals__[name] for name in _names(found.__code__) if name in found.__globals__]
        return [*named, *cells, *(found.__defaults__ or ()), *(found.__kwdefaults__ or {}).values()]
    if isinstance(found, staticmethod | classmethod | types.MethodType):
        return [found.__func__, getattr(found, "__self__", None)]
    if isinstance(found, property):
        return [found.fget, found.fset]
    if isinstance(found, list | tuple | set | frozenset):
        return list(found)
    if isinstance(found, dict):
        return [*found, *found.values()]
    if isinstance(found, types.ModuleType) or type(found).__module__ == "builtins":
        return []
    held = getattr(found, "__dict__", {})
    partial = [getattr(found, "func", None), getattr(found, "args", None)]  # of functools
    return [type(found), *(held.values() if isinstance(held, dict) else []), *partial]


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def _names(code: types.CodeType) -> set[str]:
    inner = [_names(constant) for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return set(code.co_names).union(*inner)


def dumps(value: Any, classes: Classes) -> bytes:
    """Returns objects as bytes, with these classes by name."""
    import cloudpickle

    class Pickler(cloudpickle.Pickler):
        def reducer_override(self, found: Any) -> Any:
            if isinstance(found, type) and found in classes.names:
                return _class_named, classes.names[found]
            return super().reducer_override(found)

    sink = io.BytesIO()
    Pickler(sink, protocol=5).dump(value)
    return sink.getvalue()


def _class_named(module: str, name: str) -> type:
    """Stands in bytes for looking up a class; ``loads`` puts a function that knows them in its place."""
    raise StateError(f"state: it holds objects of the class {module}.{name}; read it with the spec")


def loads(data: bytes, classes: Classes) -> Any:
    """Returns what ``dumps`` was given. Raises StateError for bytes that cannot be read, or a class that is gone."""

    def lookup(module: str, name: str) -> type:
        found = classes.by_name.get((module, name))
        if found is None:
            raise StateError(
                f"state: it holds objects of the class {module}.{name}, which the spec's code no longer refers to"
            )
        return found

    class Unpickler(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            if (module, name) == (__name__, _class_named.__name__):
                return lookup
            return super().find_class(module, name)

    try:
        return Unpickler(io.BytesIO(data)).load()
    except StateError:
        raise
    except Exception as problem:
        raise StateError(f"state: Python objects cannot be read: {type(problem).__name__}: {problem}") from problem
