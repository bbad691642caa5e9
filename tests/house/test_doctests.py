"""The examples in the docstrings give what they say."""

import doctest
import importlib
import inspect
import pkgutil

import pytest

import fastwin

MODULES = [fastwin.__name__, *(found.name for found in pkgutil.walk_packages(fastwin.__path__, "fastwin."))]


@pytest.mark.parametrize("name", [name for name in MODULES if not name.endswith(("__main__", "._cyutility"))])
def test_examples(name: str) -> None:
    module = importlib.import_module(name)
    assert inspect.getdoc(module), f"{name} has no docstring"
    result = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0


def test_examples_are_found() -> None:
    total = sum(
        doctest.testmod(importlib.import_module(f"fastwin.{name}")).attempted
        for name in ("windows.tumbling", "windows.sliding", "windows.timewindow", "run.windowspec", "times")
    )
    assert total >= 8
