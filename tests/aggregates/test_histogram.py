"""Histogram: against counting by hand on every operator, exact edges, and what is refused."""

import math
from bisect import bisect_right
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastwin as fw
from tests.support.one_window import OPERATORS, run


def counted(values, edges):
    found = [0] * (len(edges) + 1)
    for value in values:
        if value is not None:
            found[len(edges) if value != value else bisect_right(edges, value)] += 1
    return found


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("number", [int, float, Decimal])
def test_on_every_operator(operator, number):
    values = [None if i % 7 == 0 else number(i * 37 % 101 - 50) for i in range(200)]
    kind = pa.decimal128(9, 1) if number is Decimal else None
    table = pa.table(
        {"ts": [500 + i for i in range(200)], "x": pa.array(values, kind), "none": pa.nulls(200, pa.int8())}
    )
    edges = [-30, -29.5, 0, 1, 1.5, 40]
    found = run(table, operator, h=fw.Histogram("x", edges), z=fw.Histogram("none", [0]))
    assert found == {"h": counted(values, edges), "z": [0, 0]}


@given(
    st.lists(st.none() | st.floats() | st.integers(-3, 3).map(float), max_size=40),
    st.lists(st.integers(-3, 3) | st.floats(-5, 5), min_size=1, max_size=6, unique=True).map(sorted),
)
def test_merged_slices_and_late_elements(values, edges):
    table = pa.table({"ts": pa.array(range(len(values)), pa.int64()), "x": pa.array(values, pa.float64())})
    spec = fw.key_by().event_time("ts").window(fw.SlidingEventTimeWindows.of(12, 4)).allowed_lateness(100)
    stream = spec.aggregate(h=fw.Histogram("x", edges)).open(schema=table.schema)
    found = {}
    results = [stream.process(table.slice(20)), stream.advance_watermark(25), stream.process(table.slice(0, 20))]
    for result in [*results, stream.advance_watermark(fw.MAX_TIMESTAMP)]:
        starts = result.main["window_start"].cast(pa.int64()).to_pylist()
        found |= dict(zip(starts, result.main["h"].to_pylist(), strict=True))
    assert found == {start: counted(values[max(start, 0) : start + 12], edges) for start in found}
    assert len(found) == len({start for i in range(len(values)) for start in range(i // 4 * 4 - 8, i + 1, 4)})


def test_edges_are_exact_for_integers():
    table = pa.table({"ts": [1, 2, 3], "x": [2**53, 2**53 + 1, 2**53 + 2]})
    assert run(table, h=fw.Histogram("x", [2**53 + 1])) == {"h": [1, 2]}
    assert run(table, h=fw.Histogram("x", np.array([2**53 + 1, 2**60]), where=None)) == {"h": [1, 2, 0]}


def test_edges_are_exact_for_floats():
    """Also ints between two floats: no float from them on is counted below them."""
    table = pa.table({"ts": [1, 2, 3], "x": [2.0**53, 2.0**53 + 2, -(2.0**54)]})
    assert run(table, h=fw.Histogram("x", [2**53, 2**53 + 1])) == {"h": [1, 1, 1]}
    assert run(table, h=fw.Histogram("x", [2**53 + 1, 2**53 + 2, 2**53 + 3])) == {"h": [2, 0, 1, 0]}
    assert run(table, h=fw.Histogram("x", [-(2**54) - 1, 1 - 2**54])) == {"h": [0, 1, 2]}


@pytest.mark.parametrize(
    ("edges", "sentence"),
    [
        ([], r"edges must be a list of 1 to 1,000 numbers, got \[\]"),
        (5, "edges must be a list of 1 to 1,000 numbers, got 5"),
        ([1, "x"], "edges must be finite numbers, got 'x'"),
        ([1, math.nan], "edges must be finite numbers, got nan"),
        ([True], "edges must be finite numbers, got True"),
        ([1, 1], "edges must ascend, got 1 behind 1"),
        ([*range(1_001)], "edges must be a list of 1 to 1,000"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_are_no_edges(edges, sentence):
    with pytest.raises(fw.SpecError, match=sentence):
        fw.Histogram("x", edges)


def test_columns_that_have_no_histogram():
    with pytest.raises(fw.SpecError, match=r"Histogram\('x', \[1\]\): takes an int .* but column 'x' is string"):
        run(pa.table({"ts": [1], "x": ["a"]}), h=fw.Histogram("x", [1]))
    with pytest.raises(fw.SpecError, match=r"edges must lie in int64, as column 'x' does, got 1e\+30"):
        run(pa.table({"ts": [1], "x": [1]}), h=fw.Histogram("x", [1, 1e30]))
