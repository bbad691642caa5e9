"""The examples in the docstrings give what they say."""

import doctest
import importlib
import inspect
import pkgutil

import pytest

import fastwin
import spark_glue

MODULES = [
    name
    for package in (fastwin, spark_glue)
    for name in (
        package.__name__,
        *(found.name for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")),
    )
]


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
    assert doctest.testmod(importlib.import_module("spark_glue.plan.keygroups")).attempted >= 2
