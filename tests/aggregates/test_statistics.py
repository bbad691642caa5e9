"""Variance and StdDev: accuracy, few values, and what is refused."""

import math
import random
import statistics
from fractions import Fraction

import pyarrow as pa
import pytest

import fastwin as fw
from tests.support.one_window import OPERATORS, run


def test_what_is_no_number_is_refused() -> None:
    with pytest.raises(fw.SpecError, match=r"Variance\('x'\): takes an int .* but column 'x' is string"):
        run(pa.table({"ts": [1], "x": ["a"]}), v=fw.Variance("x"))
    with pytest.raises(fw.SpecError, match=r"column 'x' is duration\[s\]; cast it to int64$"):
        run(pa.table({"ts": [1], "x": pa.array([1], pa.duration("s"))}), v=fw.Variance("x"))
    for ddof in (-1, True, 1.0, 2**40):
        with pytest.raises(fw.SpecError, match="StdDev: ddof must be an int of at least 0"):
            fw.StdDev("x", ddof=ddof)


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("offset", [0, 10**9, 10**15, 2**62])
def test_variance_far_from_zero(operator: str, offset: int) -> None:
    random.seed(offset)
    values = [offset + random.randrange(-5, 6) for _ in range(400)]
    table = pa.table({"ts": [500 + i for i in range(400)], "v": values})
    found = run(table, operator, v=fw.Variance("v"), p=fw.Variance("v", ddof=0), s=fw.StdDev("v"))
    mean = Fraction(sum(values), 400)
    squares = sum((value - mean) ** 2 for value in values)
    assert math.isclose(found["v"], squares / 399, rel_tol=1e-13)
    assert math.isclose(found["p"], squares / 400, rel_tol=1e-13)
    assert math.isclose(found["s"], math.sqrt(squares / 399), rel_tol=1e-13)


def test_variance_of_floats_keeps_its_accuracy() -> None:
    random.seed(1)
    values = [1e8 + random.random() for _ in range(10_000)]
    table = pa.table({"ts": [500 + i % 400 for i in range(10_000)], "v": values})
    exact = statistics.variance(list(map(Fraction, values)))
    for operator in OPERATORS:
        if operator != "evicting":
            assert math.isclose(run(table, operator, v=fw.Variance("v"))["v"], exact, rel_tol=1e-11), operator


def test_few_values_have_no_variance() -> None:
    table = pa.table({"ts": [1], "v": [3], "x": pa.array([None], pa.float64())})
    found = run(
        table, a=fw.Variance("v"), b=fw.Variance("v", ddof=0), c=fw.StdDev("x", ddof=0), d=fw.StdDev("v", ddof=3)
    )
    assert found == {"a": None, "b": 0.0, "c": None, "d": None}
    assert math.isnan(run(pa.table({"ts": [1, 2], "v": [math.inf, 1.0]}), v=fw.Variance("v"))["v"])


@pytest.mark.parametrize("number", [int, float])
def test_variance_of_slices_that_differ(number: type) -> None:
    values = [number(1_000_000 + 977 * i % 5_003 + 31 * i) for i in range(1_000)]
    table = pa.table({"ts": range(1_000), "x": values})
    spec = fw.key_by().event_time("ts").window(fw.SlidingEventTimeWindows.of(1_000, 10)).aggregate(v=fw.Variance("x"))
    main = spec.run(table).main
    assert main.num_rows == 199
    for start, found in zip(main["window_start"].cast(pa.int64()).to_pylist(), main["v"].to_pylist(), strict=True):
        exact = statistics.variance(list(map(Fraction, values[max(start, 0) : start + 1_000])))
        assert math.isclose(found, exact, rel_tol=1e-12), start
