"""Descriptions of what users write: classes, versions and what objects hold; the same in every process."""

import copy
import dataclasses
import datetime as dt
import functools
import operator
import re
from collections import deque
from decimal import Decimal
from enum import Enum
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.spec.describe import describe

HERE = __name__


class Colour(Enum):
    RED = 1


class Plain:
    def __init__(self, **held: Any) -> None:
        vars(self).update(held)


class Versioned(Plain):
    version = 2


@dataclasses.dataclass(frozen=True)
class Extended(fw.Mean):
    """A user's aggregate that is nearly a built-in one."""


class Node:
    def __init__(self) -> None:
        self.next = self


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, "None"), (True, "True"), (1, "1"), (1.5, "1.5"), ("a", "'a'"), (b"a", "b'a'"), (2j, "2j"),
        (Colour.RED, "Colour.RED"),
        ([1, (2, "x")], "[1, [2, 'x']]"),
        ({3, 1, 2}, "{1, 2, 3}"),
        ({"b": 1, "a": [2]}, "{'b': 1, 'a': [2]}"),
        (len, "len"),
        (int, "int"),
        (Plain, f"{HERE}.Plain"),
        ("ab".join, "str.join"),
        (functools.partial(max, 1, key=len), "partial(max, 1, key=len)"),
        (Plain(b=1, a=2), f"{HERE}.Plain(a=2, b=1)"),
        (Versioned(), f"{HERE}.Versioned(version=2)"),
        (Versioned(x=1), f"{HERE}.Versioned(x=1, version=2)"),
        (Versioned(version=3), f"{HERE}.Versioned(version=3)"),
        (pa.int64(), "int64"),
        (np.int32(7), "7"),
        (dt.timedelta(seconds=1), "0:00:01"),
        (fw.Count(), "Count(column=None)"),
        (fw.Mean("v", on_overflow="null"), "Mean(column='v')"),
        (Extended("v"), f"{HERE}.Extended(column='v')"),
        (fw.ValueStateDescriptor("n", 0), "ValueStateDescriptor(name='n', default=0)"),
    ],
)  # fmt: skip
def test_what_a_value_is_told_as(value: Any, told: str) -> None:
    assert describe(value) == told


def test_what_holds_itself_is_told_to_a_depth() -> None:
    assert describe(Node()).count("Node") <= 8


def test_a_bound_method_is_told_with_its_owner() -> None:
    class Holder(fw.ReduceFunction):
        def reduce(self, a: Any, b: Any) -> Any:
            return a

    assert describe(Holder().reduce) == f"{HERE}.{Holder.__qualname__}().reduce"


class Slotted:
    __slots__ = ("__b", "a")

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.__b = a, b


@dataclasses.dataclass(frozen=True, slots=True)
class SlottedData:
    a: int


def numbers(other: int) -> np.ndarray:
    values = np.arange(5000)
    values[2500] += other
    return values


@pytest.mark.parametrize(
    "make",
    [
        numbers,
        lambda n: numbers(n).astype(object),
        lambda n: pa.array(numbers(n)),
        lambda n: pa.chunked_array([numbers(n), numbers(0)]),
        lambda n: pa.table({"a": numbers(n)}),
        lambda n: pa.RecordBatch.from_pydict({"a": numbers(n)}),
        lambda n: pd.DataFrame({"a": numbers(n)}),
        lambda n: pd.Series(numbers(n)),
        lambda n: pd.Series([n]),
        lambda n: Slotted(1, n),
        lambda n: Slotted(n, 1),
        SlottedData,
        lambda n: re.compile(f"a{n}"),
        lambda n: re.compile("a", re.IGNORECASE if n else 0),
        lambda n: Plain(weights=numbers(n)),
    ],
)
def test_data_whose_text_leaves_values_out_is_told_apart(make: Any) -> None:
    assert describe(make(0)) == describe(make(0)) != describe(make(1))


def test_a_slice_is_told_as_its_values() -> None:
    whole = pa.array(range(100))
    assert describe(whole.slice(50)) == describe(pa.array(range(50, 100)))


def test_a_short_array_is_told_as_before() -> None:
    assert describe(np.array([1, 2])) == "[1 2]"
    assert describe(np.array([[0.5, -1.0], [1e300, np.nan]])) == "[[ 5.e-001 -1.e+000]\n [ 1.e+300      nan]]"
    assert describe(np.array(["a", "bc"])) == "['a' 'bc']"


ALIKE = [
    np.array([0.123456781]),
    np.array([0.123456782]),
    np.array([1, 2]),
    np.array([1, 2], np.int32),
    np.array([1, 2], object),
    np.array([1.0, 2.0]),
    np.array([1.0, 2.0], np.float32),
    np.zeros(0),
    np.zeros(0, np.int64),
    np.zeros((0, 3)),
    np.array(["2026-01-01"]),
    np.array(["2026-01-01"], "datetime64[D]"),
]


def test_arrays_of_other_digits_types_and_shapes_are_told_apart() -> None:
    assert len({describe(array) for array in ALIKE}) == len(ALIKE)


def test_the_way_that_numpy_prints_changes_no_description() -> None:
    before = [describe(array) for array in ALIKE]
    with np.printoptions(precision=2, threshold=1, edgeitems=1, linewidth=10, suppress=True, sign="+"):
        assert [describe(array) for array in ALIKE] == before


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Decimal("100"), Decimal("5")),
        (ZoneInfo("Europe/Berlin"), ZoneInfo("Europe/Paris")),
        (range(3), range(4)),
        (slice(1, 2), slice(1, 3)),
        (bytearray(b"a"), bytearray(b"b")),
        (deque([1, 2]), deque([1, 3])),
        (operator.attrgetter("short"), operator.attrgetter("long")),
        (operator.itemgetter("short"), operator.itemgetter("long")),
        (operator.methodcaller("total", 1), operator.methodcaller("total", 2)),
        (pd.Timestamp("2024-01-01"), pd.Timestamp("2024-01-02")),
        (pd.Timedelta("1 s"), pd.Timedelta("2 s")),
    ],
    ids=lambda value: type(value).__name__,
)
def test_objects_without_attributes_are_told_by_what_they_hold(one: object, other: object) -> None:
    assert describe(one) == describe(copy.deepcopy(one)) != describe(other)
    assert " at 0x" not in describe(one)
    assert describe({"limit": [one]}) != describe({"limit": [other]})
