"""Functions without a name of their own are told by their code: the same in all processes, and no other."""

import functools
import math
import os
import pickle
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

import fastwin as fw
from fastwin.spec.codes import changed_codes, without_codes, without_functions
from fastwin.spec.describe import describe
from tests.support.codes import OTHER, SAME, made

HERE = Path(__file__).parents[2]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_code_is_told_the_same(one: str, other: str) -> None:
    assert describe(made(one)) == describe(made(other))


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_other_code_is_told_apart(one: str, other: str) -> None:
    assert describe(made(one)) != describe(made(other))
    assert without_codes(describe(made(one))) == without_codes(describe(made(other)))


@pytest.mark.parametrize("name", ["f", "C.f"])
def test_functions_that_can_be_imported_are_told_by_their_names(name: str) -> None:
    function = made("def f(a):\n    return a", module="shop.rules")
    function.__qualname__ = name
    assert describe(function) == f"shop.rules.{name}"
    assert describe(math.floor) == "math.floor"
    assert describe(len) == "len"


def test_lambdas_of_a_module_and_functions_in_functions_have_no_name_of_their_own() -> None:
    assert "#py" in describe(made("f = lambda a: a", module="shop.rules"))
    assert "#py" in describe(
        made("def make():\n    def f(a):\n        return a\n    return f\nf = make()", module="shop")
    )
    assert describe(functools.partial(lambda a, b: a, 1)) != describe(functools.partial(lambda a, b: b, 1))


def test_a_hash_is_the_same_in_every_process() -> None:
    code = (
        "from tests.support.codes import SAME, OTHER, made; from fastwin.spec.describe import describe\n"
        "print([describe(made(text)) for pair in SAME + OTHER for text in pair])"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", code], cwd=HERE, capture_output=True, text=True, check=True,
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(HERE)}, timeout=300,
        ).stdout
        for seed in ("1", "2", "3")
    }  # fmt: skip
    assert len(told) == 1
    assert eval(told.pop()) == [describe(made(text)) for pair in SAME + OTHER for text in pair]


def test_a_function_may_be_in_its_own_closure_and_modules_may_be_in_it() -> None:
    def outer(module: types.ModuleType) -> Any:
        def count(n: int) -> Any:
            return count(n - 1) if n else module

        return count

    assert describe(outer(math)) == describe(outer(math)) != describe(outer(os))


def test_an_empty_cell_is_told() -> None:
    def outer() -> Any:
        def inner() -> Any:
            return later

        told = describe(inner)
        later = 1
        return told, describe(inner)

    before, after = outer()
    assert before != after


def test_a_named_function_is_told_by_its_name_alone() -> None:
    one, other = (fw.named("sum, v1", made(text)) for text in ("f = lambda a, b: a + b", "f = lambda a, b: b + a"))
    assert describe(one) == describe(other) == "named('sum, v1')"


def test_marks_leave_texts() -> None:
    text = "reduce(_Callable(reduce=m.C.f.<locals>.<lambda>#py3.11:0123456789abcdef, name='x')), list<item: int32>"
    assert without_codes(text) == "reduce(_Callable(reduce=m.C.f.<locals>.<lambda>, name='x')), list<item: int32>"
    assert without_functions(text) == "reduce(_Callable(reduce=a function, name='x')), list<item: int32>"
    assert without_functions("by=named('sum, v1')") == without_functions("by=m.<lambda>") == "by=a function"


def test_a_changed_code_says_which_function_and_which_python() -> None:
    before = "x.<lambda>#py3.11:0123456789abcdef, y.<lambda>#py3.11:0123456789abcdef"
    now = "x.<lambda>#py3.11:0123456789abcdef, y.<lambda>#py3.12:1123456789abcdef"
    assert changed_codes(before, now) == ["y.<lambda> (Python was 3.11, is 3.12, and compiles it otherwise)"]
    assert changed_codes(before, before) == []


def test_a_function_that_was_sent_elsewhere_is_told_the_same() -> None:
    for text in (text for pair in SAME + OTHER for text in pair):
        function = made(text)
        assert describe(pickle.loads(cloudpickle.dumps(function))) == describe(function)
