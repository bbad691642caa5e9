"""The three endings of a spec: each knows its checks, its columns and what it was given."""

from typing import Any

import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.errors import SpecError
from fastwin.spec.ending import AggregateEnding, ProcessEnding, ReduceEnding

BASE = fw.key_by("k").event_time("t").window(fw.TumblingEventTimeWindows.of(10))
ROWS = pa.schema([("k", pa.string()), ("t", pa.int64()), ("v", pa.int64())])
BIGINT = pa.schema([("x", pa.int64())])


class Own(fw.AggregateFunction):
    pass


class Tell(fw.ProcessWindowFunction):
    pass


def larger(a: Any, b: Any) -> Any:
    return a if a.v > b.v else b


COUNTED = BASE.aggregate(n=fw.Count(), s=fw.Sum("v"))
MIXED = BASE.aggregate(Own(), n=fw.Count(), a=Own(), output="a bigint, y bigint, z bigint")
THEN = BASE.aggregate(n=fw.Count(), then=Tell(), output="x bigint")
REDUCED = BASE.reduce(larger)
PROCESSED = BASE.process(Tell(), output="x bigint")
ENDINGS = {"built in": COUNTED, "mixed": MIXED, "then": THEN, "reduce": REDUCED, "process": PROCESSED}


def ending(name: str) -> Any:
    return ENDINGS[name].ending


@pytest.mark.parametrize(("name", "kind"), [
    ("built in", AggregateEnding), ("mixed", AggregateEnding), ("then", AggregateEnding),
    ("reduce", ReduceEnding), ("process", ProcessEnding),
])  # fmt: skip
def test_a_spec_ends_in_one_thing(name: str, kind: type) -> None:
    assert type(ending(name)) is kind
    assert BASE.ending is None


@pytest.mark.parametrize(("name", "sees", "names", "columns"), [
    ("built in", False, ("n", "s"), ["n", "s"]),
    ("mixed", True, ("n", "a"), ["n", "a", "y", "z"]),
    ("then", False, (), ["x"]),
    ("reduce", True, (), []),
    ("process", True, (), ["x"]),
])  # fmt: skip
def test_what_runs_it_asks_the_ending(name: str, sees: bool, names: tuple[str, ...], columns: list[str]) -> None:
    found = ending(name)
    assert (found.sees_elements, found.names, found.columns) == (sees, names, columns)


@pytest.mark.parametrize(("name", "filled"), [
    ("built in", None),
    ("mixed", ["a", "y", "z"]),
    ("then", ["x"]),
    ("reduce", ["t", "v"]),
    ("process", ["x"]),
])  # fmt: skip
def test_the_columns_that_python_fills(name: str, filled: list[str] | None) -> None:
    found = ending(name).filled(ROWS, ("k",))
    assert (found and found.names) == filled


def test_functions_fill_the_columns_that_are_theirs() -> None:
    assert [names for _, names in ending("mixed").written] == [("a",), ("y", "z")]
    then = BASE.aggregate(Own(), then=Tell(), output="x bigint").ending
    assert isinstance(then, AggregateEnding)
    assert [names for _, names in then.written] == [("",)]


def test_only_built_in_aggregates_leave_the_choice_of_operator() -> None:
    assert {name: found.ending.python for name, found in ENDINGS.items()} == {  # type: ignore[union-attr]
        "built in": None,
        "mixed": "an aggregate is written in Python",
        "then": "a Python function is called when a window fires",
        "reduce": "a Python function is called when a window fires",
        "process": "a Python function is called when a window fires",
    }


@pytest.mark.parametrize(("build", "says"), [
    (lambda: BASE.aggregate(), "aggregate: at least one is needed"),
    (lambda: BASE.aggregate(n=3), "aggregate: n must be an aggregate such as"),
    (lambda: BASE.aggregate(n=fw.Count), "aggregate: n must be an aggregate such as"),
    (lambda: BASE.aggregate(**{"": fw.Count()}), "is empty"),
    (lambda: BASE.aggregate(**{f"n{i}": fw.Count() for i in range(64)}), "at most 63 in one spec, got 64"),
    (lambda: BASE.aggregate(3, output="x bigint"), "the function must be an AggregateFunction, got 3"),
    (lambda: BASE.aggregate(n=fw.Count(), then=3), "aggregate: then must be a ProcessWindowFunction, got 3"),
    (lambda: BASE.aggregate(n=fw.Count(), then=Tell()), "aggregate: then needs output="),
    (lambda: BASE.aggregate(Own()), "aggregate: Own needs output="),
    (lambda: BASE.aggregate(a=Own()), "aggregate: a needs output="),
    (lambda: BASE.aggregate(a=Own(), output=BIGINT), "must name the type of 'a', it has x"),
    (lambda: BASE.aggregate(Own(), x=fw.Count(), output=BIGINT), "output= has the column 'x', which a built-in"),
    (lambda: BASE.aggregate(n=fw.Count(), output=BIGINT), "the column 'x', which nothing fills"),
    (lambda: BASE.aggregate(Own(), x=Own(), output=BIGINT), "Own needs a column in output= to fill"),
    (lambda: BASE.aggregate(k=fw.Count()), "aggregate: the name 'k' is taken"),
    (lambda: BASE.reduce(larger, then=3, output=BIGINT), "reduce: then must be a ProcessWindowFunction, got 3"),
    (lambda: BASE.reduce(larger, then=Tell()), "reduce: then=Tell needs output="),
    (lambda: BASE.reduce(larger, output="k string"), "reduce: the name 'k' is taken"),
    (lambda: BASE.process(larger, output=BIGINT), "process: the function must be a ProcessWindowFunction"),
    (lambda: BASE.process(Tell(), output="window_end bigint"), "process: the name 'window_end' is taken"),
    (lambda: BASE.with_pane_info().process(Tell(), output="pane_index bigint"), "process: the name 'pane_index' is taken"),
])  # fmt: skip
def test_each_ending_checks_what_it_is_given(build: Any, says: str) -> None:
    with pytest.raises(fw.SpecError) as caught:
        build()
    assert says in str(caught.value)


def test_a_reduced_element_has_the_columns_of_the_input() -> None:
    assert REDUCED.run(pa.table({"k": ["a"], "t": [1], "v": [2]})).main.column_names == [
        "k",
        "window_start",
        "window_end",
        "t",
        "v",
    ]
    with pytest.raises(fw.SpecError, match="reduce: output: there is no column 'w'; the input has k, t, v"):
        BASE.reduce(larger, output="w bigint").run(pa.table({"k": ["a"], "t": [1], "v": [2]}))


class Twice(fw.ProcessWindowFunction):
    def process(self, key, context, elements):
        yield from ((1,), (2,))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda spec: spec.process(Twice(), output="n bigint"), "process may have any number"),
        (lambda spec: spec.top(1, by="v"), "top may have any number"),
        (lambda spec: spec.deduplicate(), "deduplicate may have any number"),
        (lambda spec: spec.aggregate(n=fw.Count(), then=Twice(), output="n bigint"), "aggregate may have any number"),
        (lambda spec: spec.aggregate(change=fw.Count()), "'change' is taken"),
    ],
)
def test_a_changelog_needs_one_result_for_each_window(make, said):
    spec = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of(10)).with_changelog()
    with pytest.raises(SpecError) as caught:
        make(spec)
    assert said in str(caught.value)
