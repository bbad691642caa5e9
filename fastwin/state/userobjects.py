"""Python objects of user code to bytes and back, so that a restored object is of the class that the code means.

cloudpickle writes a class of ``__main__`` or of a notebook by value: read in another process, it is another class, and
``isinstance`` and the ``==`` of dataclasses fail. Classes that the spec's own code refers to are written by name.
"""

from __future__ import annotations

import contextlib
import datetime
import gc
import io
import pickle
import sys
import types
import uuid
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from fastwin.errors import StateError
from fastwin.spec.describe import attributes_of
from fastwin.state.lookover import NUMBERS, SETS, kind_of

__all__ = ["Classes", "dumps", "loads"]

Name = tuple[str, str]

_MOVED: Final = {
    "fastwin.rowview": "fastwin.columns.row",
    "fastwin.operators.userobjects": "fastwin.state.userobjects",
}
"""Where to look for what is not public and has moved, by the module that stored bytes name.

Public names are found wherever they are now: they are all in the package ``fastwin`` itself.
"""


_PLAIN: Final = frozenset(
    {str, bytes, int, float, complex, bool, type(None), Decimal, uuid.UUID}
    | {datetime.date, datetime.datetime, datetime.time, datetime.timedelta}
)
"""Types whose ``repr`` tells all of a value."""


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
        return [*found, *found.values(), getattr(found, "default_factory", None)]
    if isinstance(found, types.ModuleType) or type(found).__module__ == "builtins":
        return []
    fields = [getattr(found, name, None) for name in getattr(found, "__dataclass_fields__", ())]  # without __dict__
    partial = [getattr(found, name, None) for name in ("func", "args", "keywords")]  # of functools
    return [type(found), *attributes_of(found).values(), *fields, *partial]


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def _names(code: types.CodeType) -> set[str]:
    inner = [_names(constant) for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return set(code.co_names).union(*inner)


def dumps(value: Any, classes: Classes, kind: int | None = None) -> bytes:
    """Returns objects as bytes, with these classes by name. kind: what ``kind_of`` says of them; None: it is asked.

    What equals what ``loads`` once gave, built by the same steps, has the same bytes; sets of plain values in any
    process, whatever the seed of its hashes.
    """
    import cloudpickle

    class Pickler(cloudpickle.Pickler):
        def reducer_override(self, found: Any) -> Any:
            if isinstance(found, type) and found in classes.names:
                return _class_named, classes.names[found]
            if type(found) is pa.MonthDayNano:  # its class has no module, so pickle does not find it
                return _month_day_nano, (tuple(found),)
            return super().reducer_override(found)

    class SetPickler(Pickler):
        def __init__(self, sink: io.BytesIO) -> None:
            super().__init__(sink, protocol=5)
            self._numbers: dict[int, int] = {}
            self._sets: list[Any] = []  # so that their ids stay theirs

        def persistent_id(self, found: Any) -> Any:
            # Called for each object, so that only who has sets pays for it.
            if type(found) not in (set, frozenset):
                return None
            if id(found) in self._numbers:
                return (self._numbers[id(found)],)
            elements = _in_order(found)
            if elements is None:
                return None
            self._numbers[id(found)] = len(self._sets)
            self._sets.append(found)
            return self._numbers[id(found)], type(found) is set, elements

    sink, kind = io.BytesIO(), kind_of(value) if kind is None else kind
    if kind == NUMBERS:
        plain = pickle.Pickler(sink, protocol=5)
        plain.fast = True  # a tuple that two places share is written twice, so that it does not matter who shares it
        plain.dump(value)
    else:
        (SetPickler(sink) if kind == SETS else Pickler(sink, protocol=5)).dump(value)
    return sink.getvalue()


def _in_order(found: set[Any] | frozenset[Any]) -> list[Any] | None:
    """Returns the elements of a set in an order that follows from their values; None where there is none."""
    kinds = set(map(type, found))
    if len(kinds) == 1 and kinds <= {str, bytes, int}:
        return sorted(found)
    if not all(map(_is_plain, found)):
        return None
    return sorted(found, key=lambda value: (type(value).__name__, repr(value)))


def _is_plain(value: Any) -> bool:
    return all(map(_is_plain, value)) if type(value) is tuple else type(value) in _PLAIN


def _month_day_nano(parts: tuple[int, int, int]) -> Any:
    """Makes an interval of Arrow again."""
    return pa.MonthDayNano(parts)


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

    sets: dict[int, Any] = {}

    class Unpickler(pickle.Unpickler):
        def persistent_load(self, pid: Any) -> Any:
            if len(pid) == 3:
                number, changes, elements = pid
                sets[number] = set(elements) if changes else frozenset(elements)
            return sets[pid[0]]

        def find_class(self, module: str, name: str) -> Any:
            module = _MOVED.get(module, module)
            if (module, name) == (__name__, _class_named.__name__):
                return lookup
            try:
                return super().find_class(module, name)
            except (ImportError, AttributeError):
                public = getattr(sys.modules["fastwin"], name, None) if module.startswith("fastwin.") else None
                if public is None:
                    raise
                return public

    try:
        with _without_collecting():
            return Unpickler(io.BytesIO(data)).load()
    except StateError:
        raise
    except Exception as problem:
        raise StateError(f"state: Python objects cannot be read: {type(problem).__name__}: {problem}") from problem


@contextlib.contextmanager
def _without_collecting() -> Iterator[None]:
    """Keeps the garbage collector from looking at objects again and again while they are made: none is garbage."""
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()
