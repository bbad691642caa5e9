"""Functions that are given a name: a copy that does the same, on every path."""

import functools
import pickle
from typing import Any

import cloudpickle
import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.functions.named import name_of

BASE = fw.key_by("k").event_time("t").window(fw.TumblingEventTimeWindows.of(10))
TABLE = pa.table({"k": ["a", "a", "b"], "t": [1, 2, 3], "v": [5, 9, 3]})


def test_it_is_a_copy_that_does_the_same() -> None:
    def scaled(a: int, b: int = 2, *, c: int = 3) -> int:
        """Multiplies."""
        return a * b * c + offset

    offset = 1
    scaled.mark = "x"  # type: ignore[attr-defined]
    copy = fw.named("scaled", scaled)
    assert copy(1) == scaled(1) == 7
    assert copy(1, 1, c=1) == 2
    assert (copy.__doc__, copy.__qualname__, copy.__module__, copy.__annotations__) == (
        scaled.__doc__, scaled.__qualname__, scaled.__module__, scaled.__annotations__,
    )  # fmt: skip
    assert copy.mark == "x"  # type: ignore[attr-defined]
    assert (name_of(copy), name_of(scaled), name_of(3)) == ("scaled", None, None)


def test_the_name_travels_with_the_function() -> None:
    made = fw.named("larger", lambda a, b: a if a.v >= b.v else b)
    again = pickle.loads(cloudpickle.dumps(made))
    assert name_of(again) == "larger"
    spec = pickle.loads(cloudpickle.dumps(BASE.reduce(made)))
    assert spec.fingerprint == BASE.reduce(again).fingerprint
    assert spec.run(TABLE).main["v"].to_pylist() == [9, 3]


@pytest.mark.parametrize("name", ["", "it's", 'a"b', "a\nb", None, 3])
def test_a_name_is_plain_text(name: Any) -> None:
    with pytest.raises(fw.SpecError, match="named: name must be text"):
        fw.named(name, lambda a: a)


@pytest.mark.parametrize("function", [len, functools.partial(max, 1), fw.Count, None, fw.Count()])
def test_only_functions_are_named(function: Any) -> None:
    with pytest.raises(fw.SpecError, match="named: must be given a lambda or a function"):
        fw.named("x", function)
