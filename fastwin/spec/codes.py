"""Codes of functions: what tells lambdas and other functions without a name of their own from each other in texts."""

from __future__ import annotations

import hashlib
import re
import sys
import types
from collections.abc import Callable

__all__ = ["changed_codes", "code_of", "has_own_name", "without_codes", "without_functions"]

_NAMELESS = ("<lambda>", "<locals>")
_CODE = re.compile(r"#py\d+\.\d+:[0-9a-f]{16}")
_WORD = r"(?:[\w.]|<lambda>|<locals>)"
_CODED = re.compile(rf"({_WORD}+)#py(\d+\.\d+):([0-9a-f]{{16}})")
_FUNCTION = re.compile(rf"named\('[^']*'\)|{_WORD}+{_CODE.pattern}|[\w.]*<(?:lambda|locals)>{_WORD}*")


def has_own_name(function: types.FunctionType) -> bool:
    """Whether a function is told by its name: it is in a module that can be imported, and not inside another one."""
    module = function.__module__
    return bool(module) and module != "__main__" and not any(part in function.__qualname__ for part in _NAMELESS)


def code_of(function: types.FunctionType, describe: Callable[[object], str] | None) -> str:
    """Returns a mark for what a function does: a hash of its code, its defaults and what its closure holds.

    describe: tells values in words; None leaves defaults and closure out. The mark is the same in every process of one
    version of Python, which it names, and does not depend on files, lines, or names of local variables.
    """
    parts = [_code(function.__code__, function.__doc__)]
    if describe is not None:
        held = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).items()]
        parts += [_held(value, describe) for value in held]
        parts += [_cell(cell, describe) for cell in function.__closure__ or ()]
    digest = hashlib.blake2b("\0".join(parts).encode(), digest_size=8).hexdigest()
    return f"#py{sys.version_info[0]}.{sys.version_info[1]}:{digest}"


def _code(code: types.CodeType, doc: str | None = None) -> str:
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    table = getattr(code, "co_exceptiontable", b"")
    consts = (None, *code.co_consts[1:]) if doc is not None and code.co_consts[:1] == (doc,) else code.co_consts
    return repr((counts, code.co_code, table, code.co_names, [_constant(value) for value in consts]))


def _constant(value: object) -> str:
    if isinstance(value, types.CodeType):
        return _code(value)
    if isinstance(value, tuple):
        return f"({', '.join(map(_constant, value))})"
    if isinstance(value, frozenset):  # in no order that lasts
        return f"{{{', '.join(sorted(map(_constant, value)))}}}"
    return repr(value)


def _held(value: object, describe: Callable[[object], str]) -> str:
    return value.__name__ if isinstance(value, types.ModuleType) else describe(value)


def _cell(cell: types.CellType, describe: Callable[[object], str]) -> str:
    try:
        return _held(cell.cell_contents, describe)
    except ValueError:  # not filled yet
        return ""


def without_codes(text: str) -> str:
    """Returns a text without the marks of functions: the form that was written before there were any."""
    return _CODE.sub("", text)


def without_functions(text: str) -> str:
    """Returns a text in which all functions that have a mark, were given a name, or should have one, look the same."""
    return _FUNCTION.sub("a function", text)


def changed_codes(before: str, now: str) -> list[str]:
    """Returns what is to say of the functions whose marks differ, for texts that are otherwise the same."""
    said = []
    for was, found in zip(_CODED.findall(before), _CODED.findall(now), strict=False):
        if was[2] != found[2]:
            python = f" (Python was {was[1]}, is {found[1]}, and compiles it otherwise)" if was[1] != found[1] else ""
            said.append(f"{found[0]}{python}")
    return said
