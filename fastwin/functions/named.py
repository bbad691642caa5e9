"""named: gives a function without a name of its own, such as a lambda, one by which stored state knows it."""

from __future__ import annotations

import re
import types
from collections.abc import Callable
from typing import Any, TypeVar

from fastwin.errors import SpecError

__all__ = ["name_of", "named"]

Function = TypeVar("Function", bound=Callable[..., Any])

_ATTRIBUTE = "fastwin_name"
_NAME = re.compile(r"[\w .,:-]+")


def named(name: str, function: Function) -> Function:
    """Returns a function that stored state knows by ``name``, whatever its code is.

    Lambdas, functions inside functions, and functions of ``__main__`` or a notebook are otherwise known by their code:
    state is not taken by changed code, nor by another version of Python. With a name, the caller says what is the
    same. Give it another name, such as one that ends in "v2", when its results mean something else.

    name: letters, digits, spaces and ``_ . , : -``. function: a lambda or one made with ``def``; it stays as it is,
    a copy is returned. Raises SpecError for anything else.

    >>> larger = named("larger amount, v1", lambda a, b: a if a.amount >= b.amount else b)
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise SpecError(f"named: name must be text of letters, digits, spaces and _ . , : -, got {name!r}")
    if not isinstance(function, types.FunctionType):
        raise SpecError(f"named: must be given a lambda or a function made with def, got {function!r}")
    copy = types.FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__, copy.__qualname__, copy.__module__ = (
        function.__kwdefaults__, function.__qualname__, function.__module__,
    )  # fmt: skip
    copy.__doc__, copy.__annotations__ = function.__doc__, function.__annotations__
    copy.__dict__.update(function.__dict__, **{_ATTRIBUTE: name})
    return copy  # type: ignore[return-value]


def name_of(function: Any) -> str | None:
    """Returns the name that ``named`` has given to a function; None for others."""
    found = getattr(function, "__dict__", {}).get(_ATTRIBUTE)
    return found if isinstance(found, str) else None
