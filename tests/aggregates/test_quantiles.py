"""Quantile and Median: within their promise of exact quantiles, equal to another implementation, and shared."""

import math
from collections.abc import Callable
from decimal import Decimal

import ddsketch
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastwin as fw
from tests.support.one_window import OPERATORS, run

ROUNDING = 1e-9
QS = (0, 0.01, 0.25, 0.5, 0.9, 0.99, 1)

DRAWS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "lognormal": lambda dice, n: dice.lognormal(3, 2, n),
    "both signs": lambda dice, n: dice.normal(0, 1_000, n),
    "integers": lambda dice, n: dice.integers(-50, 5_000, n),
    "far apart": lambda dice, n: np.exp(dice.uniform(-600, 600, n)) * dice.choice([-1.0, 1.0], n),
    "much alike": lambda dice, n: dice.choice([0.0, 1.0, 1e-300, 7.5], n),
}


def exact(values: np.ndarray, q: float) -> float:
    return float(np.sort(values)[math.floor(q * (len(values) - 1))])


def assert_within(found: float, wanted: float, error: float) -> None:
    assert abs(found - wanted) <= error * abs(wanted) * (1 + ROUNDING), f"{found} for {wanted}"


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("error", [0.001, 0.01, 0.2])
def test_within_the_promise_and_equal_to_ddsketch(draw: str, error: float) -> None:
    values = DRAWS[draw](np.random.default_rng(1), 3_000)
    table = pa.table({"ts": np.zeros(len(values), np.int64), "x": values})
    found = run(table, **{f"q{i}": fw.Quantile("x", q, error) for i, q in enumerate(QS)})
    theirs = ddsketch.DDSketch(error)
    for value in values.tolist():
        theirs.add(value)
    for i, q in enumerate(QS):
        assert_within(found[f"q{i}"], exact(values, q), error)
        other = theirs.get_quantile_value(q)
        assert other is not None
        if q in (0, 1):
            assert found[f"q{i}"] == exact(values, q)
        else:
            wanted = min(max(other, float(values.min())), float(values.max()))  # ours is never beyond
            assert found[f"q{i}"] == pytest.approx(wanted, rel=1e-9)


WINDOWS = {
    "tumbling": fw.TumblingEventTimeWindows.of(1_000),
    "sliding": fw.SlidingEventTimeWindows.of(1_000, 70),
    "cumulative": fw.CumulativeEventTimeWindows.of(1_000, 100),
    "sessions": fw.EventTimeSessionWindows.with_gap(60),
}
COUNTS = {"tumbling": 5, "sliding": 14 + 72, "cumulative": 50, "sessions": 1}
"""Windows of a key with an event in each of the first 5,000 ms or so."""


@pytest.mark.parametrize("windows", WINDOWS)
@pytest.mark.parametrize("general", [False, True])
def test_windows_keep_the_promise(windows: str, general: bool) -> None:
    dice = np.random.default_rng(2)
    n = 4_000
    times, keys, values = dice.integers(0, 5_000, n), dice.integers(0, 4, n), dice.lognormal(0, 3, n)
    spec = fw.key_by("k").event_time("ts").window(WINDOWS[windows])
    spec = spec.with_pane_info() if general else spec
    main = (
        spec.aggregate(low=fw.Quantile("x", 0.1), mid=fw.Median("x"), high=fw.Quantile("x", 0.95))
        .run(pa.table({"k": keys, "ts": times, "x": values}))
        .main
    )
    assert main.num_rows == 4 * COUNTS[windows]
    bounds = [main[name].cast(pa.int64()).to_pylist() for name in ("window_start", "window_end")]
    rows = zip(
        main["k"].to_pylist(), *bounds, *(main[name].to_pylist() for name in ("low", "mid", "high")), strict=True
    )
    for i, (key, start, end, *found) in enumerate(rows):
        if i % 7 == 0:
            held = values[(keys == key) & (times >= start) & (times < end)]
            for value, q in zip(found, (0.1, 0.5, 0.95), strict=True):
                assert_within(value, exact(held, q), 0.01)


@given(
    st.lists(
        st.one_of(
            st.floats(allow_subnormal=False), st.sampled_from([0.0, -0.0, 5e-324, math.inf, -math.inf, math.nan, 1.0])
        ),
        min_size=1,
        max_size=40,
    ),
    st.floats(0, 1),
    st.randoms(use_true_random=False),
)  # fmt: skip
def test_any_floats_in_any_order_and_any_pieces(values: list[float], q: float, dice) -> None:
    spec = fw.key_by().event_time("ts").window(fw.SlidingEventTimeWindows.of(100, 10)).aggregate(x=fw.Quantile("x", q))
    whole = pa.table({"ts": [95] * len(values), "x": values})
    first = spec.run(whole).main["x"].to_pylist()[-1]
    stream, left = spec.open(schema=whole.schema), values[:]
    dice.shuffle(left)
    while left:
        n = dice.randint(1, len(left))
        stream.process(pa.table({"ts": [dice.randrange(90, 100) for _ in range(n)], "x": left[:n]}))
        left = left[n:]
        fresh = spec.open(schema=whole.schema)
        fresh.restore([stream.snapshot()])
        stream = fresh
    assert repr(stream.advance_watermark(1_000).main["x"].to_pylist()[-1]) == repr(first)
    wanted = exact(np.array(values), q)  # numpy sorts NaN behind all others
    if abs(wanted) < 2.3e-308:
        assert abs(first) < 2.3e-308
    elif math.isfinite(wanted):
        assert_within(first, wanted, 0.01)
    else:
        assert repr(first) == repr(wanted)


@pytest.mark.parametrize("operator", OPERATORS)
def test_types_and_nulls(operator: str) -> None:
    one = pa.table(
        {
            "ts": [500] * 4,
            "i": pa.array([7, None, 7, None], pa.int8()),
            "u": pa.array([2**64 - 1, None, None, None], pa.uint64()),
            "d": pa.array([None, None, None, Decimal("12.50")], pa.decimal128(9, 2)),
            "f": pa.array([None, None, 0.25, None], pa.float32()),
            "none": pa.array([None] * 4, pa.float64()),
        }
    )
    found = run(one, operator, **{name: fw.Median(name) for name in one.column_names[1:]})
    assert found == {"i": 7.0, "u": 2.0**64, "d": 12.5, "f": 0.25, "none": None}


def test_quantiles_of_one_column_and_error_share_their_state() -> None:
    window = fw.key_by().event_time("ts").window(fw.TumblingEventTimeWindows.of(1_000))
    table = pa.table({"ts": range(1_000), "x": np.arange(1, 1_001) ** 2.0})
    sizes = []
    for n in (1, 9):
        spec = window.aggregate(**{f"q{i}": fw.Quantile("x", i / 10) for i in range(n)})
        stream = spec.open()
        stream.process(table)
        sizes.append((len(stream.snapshot()), stream.metrics.state_bytes))
    assert sizes[0][1] == sizes[1][1]
    assert sizes[1][0] < sizes[0][0] * 1.5  # the rest is the specification
    spec = window.aggregate(a=fw.Median("x"), b=fw.Median("x", 0.1))
    stream = spec.open()
    stream.process(table)
    assert stream.metrics.state_bytes > sizes[0][1]


def test_a_quantile_is_added_to_state_that_has_its_sketch() -> None:
    window = fw.key_by().event_time("ts").window(fw.TumblingEventTimeWindows.of(1_000))
    old = window.aggregate(mid=fw.Median("x")).open()
    old.process(pa.table({"ts": [1, 2, 3], "x": [1.0, 2.0, 3.0]}))
    new = window.aggregate(mid=fw.Median("x"), high=fw.Quantile("x", 1)).open()
    new.restore([old.snapshot()], migrate="added aggregates")
    main = new.advance_watermark(10_000).main
    assert [main[name][0].as_py() for name in ("mid", "high")] == [pytest.approx(2, rel=0.01), 3.0]


def test_memory_follows_the_range_and_not_the_number_of_values() -> None:
    spec = fw.key_by().event_time("ts").window(fw.TumblingEventTimeWindows.of(1_000)).aggregate(m=fw.Median("x"))
    stream = spec.open()
    for i in range(20):
        stream.process(pa.table({"ts": [i] * 10_000, "x": np.random.default_rng(i).uniform(1, 10, 10_000)}))
        if i == 0:
            before = stream.metrics.state_bytes
    assert stream.metrics.state_bytes <= before + 116 * 32
    stream.advance_watermark(10_000)
    assert stream.metrics.state_rows == 0


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: fw.Quantile("x", 1.5), "Quantile: q must be a number from 0 to 1, got 1.5"),
        (lambda: fw.Quantile("x", None), "Quantile: q must be a number from 0 to 1, got None"),
        (lambda: fw.Quantile("x", [0.5, 0.9]), r"got \[0.5, 0.9\]; give each an aggregate of its own: they share one"),
        (lambda: fw.Quantile("x", math.nan), "q must be a number from 0 to 1, got nan"),
        (lambda: fw.Median("x", 0), "Median: relative_error must be a number from 0.00001 to below 1, got 0"),
        (lambda: fw.Quantile("x", 0.5, True), "relative_error must be a number from 0.00001 to below 1, got True"),
        (lambda: fw.Quantile("", 0.5), "Quantile: column must be the name of a column"),
    ],
)
def test_refused_when_built(build: Callable[[], object], says: str) -> None:
    with pytest.raises(fw.SpecError, match=says):
        build()


def test_what_is_no_number_is_refused() -> None:
    with pytest.raises(fw.SpecError, match=r"Quantile\('x', 0.5\): takes a column of integers, .* but .*'x' is string"):
        run(pa.table({"ts": [1], "x": ["a"]}), q=fw.Quantile("x", 0.5))
