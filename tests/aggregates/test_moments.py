"""Skewness, Kurtosis, Covar and Corr: against exact fractions, on every operator, far from zero, and merged."""

import math
import random
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastwin as fw
from tests.support.one_window import OPERATORS, run

ALL = {
    "skew": fw.Skewness("x"),
    "tails": fw.Kurtosis("x"),
    "cov": fw.Covar("x", "y"),
    "cov0": fw.Covar("x", "y", ddof=0),
    "corr": fw.Corr("x", "y"),
}


def exact(pairs):
    """What the aggregates mean, for pairs of finite values or None."""
    xs = [Fraction(x) for x, _ in pairs if x is not None]
    both = [(Fraction(x), Fraction(y)) for x, y in pairs if x is not None and y is not None]
    found = dict.fromkeys(ALL)
    if len(set(xs)) > 1:
        mean = sum(xs) / len(xs)
        second, third, fourth = (sum((x - mean) ** k for x in xs) / len(xs) for k in (2, 3, 4))
        found["skew"] = float(third) / float(second) ** 1.5
        found["tails"] = float(fourth / second**2) - 3
    if both:
        x0, y0 = (sum(column) / len(both) for column in zip(*both, strict=True))
        product = sum((x - x0) * (y - y0) for x, y in both)
        found["cov0"] = float(product / len(both))
        found["cov"] = float(product / (len(both) - 1)) if len(both) > 1 else None
        squares = [sum((x - x0) ** 2 for x, _ in both), sum((y - y0) ** 2 for _, y in both)]
        if all(squares):
            found["corr"] = float(product) / math.sqrt(squares[0]) / math.sqrt(squares[1])
    return found


def assert_near(found, wanted, scale=1.0):
    for name, value in wanted.items():
        if value is None:
            assert found[name] is None, name
        else:
            assert found[name] == pytest.approx(value, rel=1e-9, abs=1e-9 * scale), name


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("offset", [0, 10**6, 2**60])
def test_on_every_operator_and_far_from_zero(operator, offset):
    dice = random.Random(offset)
    pairs = [(offset + dice.randrange(50), -offset + dice.randrange(9) if dice.random() < 0.9 else None)
             for _ in range(300)]  # fmt: skip
    table = pa.table({"ts": [500 + i for i in range(300)], "x": [x for x, _ in pairs], "y": [y for _, y in pairs]})
    assert_near(run(table, operator, **ALL), exact(pairs))


values = st.none() | st.integers(-1000, 1000)


@given(st.lists(st.tuples(values, values), max_size=30), st.integers(1, 30), st.sampled_from([float, int, Decimal]))
def test_equals_fractions_however_merged(pairs, slide, number):
    kind = {float: pa.float64(), int: pa.int64(), Decimal: pa.decimal128(9, 2)}[number]
    xs = pa.array([None if x is None else number(x) for x, _ in pairs], kind)
    ys = pa.array([y for _, y in pairs], pa.int64())
    table = pa.table({"ts": pa.array(range(len(pairs)), pa.int64()), "x": xs, "y": ys})
    spec = fw.key_by().event_time("ts").window(fw.SlidingEventTimeWindows.of(slide * 3, slide)).aggregate(**ALL)
    stream = spec.open(schema=table.schema)
    done = stream.process(table.slice(0, 11))
    again = spec.open(schema=table.schema)
    again.restore([stream.snapshot()])
    rest = [done, again.process(table.slice(11)), again.advance_watermark(fw.MAX_TIMESTAMP)]
    main = pa.concat_tables([result.main for result in rest])
    bounds = [main[name].cast(pa.int64()).to_pylist() for name in ("window_start", "window_end")]
    assert main.num_rows == (3 + (len(pairs) - 1) // slide if pairs else 0)
    for row, start, end in zip(main.to_pylist(), *bounds, strict=True):
        assert_near(row, exact(pairs[max(start, 0) : end]), 1e6)


def test_values_that_are_not_finite():
    table = pa.table({"ts": [1, 2, 3], "x": [1.0, math.inf, 2.0], "y": [1.0, 2.0, 3.0]})
    assert all(math.isnan(value) for value in run(table, **ALL).values())


def test_few_values():
    table = pa.table({"ts": [1, 2], "x": [3, None], "y": [4.5, 1.0]})
    assert run(table, **ALL) == {"skew": None, "tails": None, "cov": None, "cov0": 0.0, "corr": None}


def test_integers_beside_floats_keep_their_digits():
    table = pa.table({"ts": [1, 2, 3], "x": [2**62, 2**62 + 1, 2**62 + 2], "y": [1.0, 2.0, 3.0]})
    assert run(table, c=fw.Covar("x", "y"), r=fw.Corr("y", "x")) == {"c": 1.0, "r": pytest.approx(1.0)}


def test_decimals_and_unsigned_have_a_variance():
    table = pa.table(
        {
            "ts": [1, 2, 3],
            "d": pa.array([Decimal("1.50"), Decimal("2.50"), None]),
            "w": pa.array([Decimal(10) ** 40, Decimal(0), None], pa.decimal256(50, 2)),
            "u": pa.array([2**64 - 1, 0, None], pa.uint64()),
        }
    )
    found = run(table, d=fw.Variance("d"), s=fw.StdDev("d", ddof=0), w=fw.StdDev("w", ddof=0), u=fw.StdDev("u", ddof=0))
    assert found == {"d": 0.5, "s": 0.5, "w": pytest.approx(5e39), "u": pytest.approx(2**63)}


def test_what_is_refused():
    table = pa.table({"ts": [1], "x": ["a"], "y": [1]})
    with pytest.raises(fw.SpecError, match=r"Skewness\('x'\): takes an int .* or decimal column, but column 'x'"):
        run(table, a=fw.Skewness("x"))
    with pytest.raises(fw.SpecError, match=r"Corr\('y', 'x'\): takes int .* or decimal columns, but column 'x'"):
        run(table, a=fw.Corr("y", "x"))
    with pytest.raises(fw.SpecError, match="Covar: ddof must be an int of at least 0, got -1"):
        fw.Covar("x", "y", ddof=-1)
    with pytest.raises(fw.SpecError, match="Corr: other must be the name of a column, got None"):
        fw.Corr("x")


def test_state_goes_on_with_another_ddof():
    spec = fw.key_by().event_time("ts").window(fw.TumblingEventTimeWindows.of(10))
    stream = spec.aggregate(c=fw.Covar("x", "y")).open()
    stream.process(pa.table({"ts": [1, 2], "x": [1, 3], "y": [1, 3]}))
    again = spec.aggregate(c=fw.Covar("x", "y", ddof=0)).open()
    again.restore([stream.snapshot()])
    assert again.advance_watermark(100).main["c"].to_pylist() == [1.0]
