"""Sums and means of decimals: exact, with as many digits as Spark gives them."""

import re
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastwin as fw
from fastwin import hyperloglog
from fastwin.columns.decoding import decoded_type

WINDOW = fw.TumblingEventTimeWindows.of(1_000)
BASE = fw.key_by().event_time("ts")
OPERATORS = {
    "aligned": lambda spec: spec.window(WINDOW),
    "sliding": lambda spec: spec.window(fw.SlidingEventTimeWindows.of(1_000, 100)),
    "session": lambda spec: spec.window(fw.EventTimeSessionWindows.with_gap(1_000)),
    "general": lambda spec: spec.window(WINDOW).with_pane_info(),
    "evicting": lambda spec: spec.window(WINDOW).evictor(fw.CountEvictor.of(1_000)),
}
MOST = 10**38 - 1


def decimals(units: list[int | None], scale: int) -> list[Decimal | None]:
    """Decimals of so many units of their last digit."""
    return [None if unit is None else Decimal(unit).scaleb(-scale, _WIDE) for unit in units]


with localcontext(prec=120) as _WIDE:
    pass


def table_of(units: list[int | None], kind: pa.DataType) -> pa.Table:
    column = pa.array(decimals(units, decoded_type(kind).scale), decoded_type(kind))
    if pa.types.is_dictionary(kind):
        column = column.dictionary_encode()
    return pa.table({"ts": pa.array(range(500, 500 + len(units)), pa.int64()), "x": column})


def run(table: pa.Table, operator: str = "aligned", **aggregates: fw.Aggregate) -> pa.Table:
    main = OPERATORS[operator](BASE).aggregate(**aggregates).run(table).main
    main.validate(full=True)
    return main


def rounded_mean(units: list[int], shift: int) -> int:
    """The mean in units of ``shift`` more digits, halves away from zero."""
    exact = abs(sum(units)) * 10**shift
    whole = (2 * exact + len(units)) // (2 * len(units))
    return -whole if sum(units) < 0 else whole


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_operator_sums_and_averages(operator: str) -> None:
    units = [110, -700, None, 5, 123_456_789]
    main = run(table_of(units, pa.decimal128(9, 2)), operator, s=fw.Sum("x"), m=fw.Mean("x"), n=fw.Count("x"))
    assert main.schema.field("s").type == pa.decimal128(19, 2)
    assert main.schema.field("m").type == pa.decimal128(13, 6)
    whole = main.filter(pa.compute.equal(main["n"], 4)).to_pylist()[0]
    assert (whole["s"], whole["m"]) == (Decimal("1234562.04"), Decimal("308640.510000"))
    first = table_of([110, None], pa.decimal128(9, 2)).slice(0, 1)
    assert run(first, operator, s=fw.Sum("x"))["s"].to_pylist()[0] == Decimal("1.10")


@pytest.mark.parametrize("operator", OPERATORS)
def test_no_value_gives_null(operator: str) -> None:
    main = run(table_of([None, None], pa.decimal128(9, 2)), operator, s=fw.Sum("x"), m=fw.Mean("x"))
    assert {main["s"][0].as_py(), main["m"][0].as_py()} == {None}


@pytest.mark.parametrize(
    ("kind", "total", "mean"),
    [
        (pa.decimal32(5, 1), pa.decimal128(15, 1), pa.decimal128(9, 5)),
        (pa.decimal64(18, 4), pa.decimal128(28, 4), pa.decimal128(22, 8)),
        (pa.decimal128(30, 3), pa.decimal128(38, 3), pa.decimal128(34, 7)),
        (pa.decimal128(38, 36), pa.decimal128(38, 36), pa.decimal128(38, 38)),
        (pa.decimal128(20, -2), pa.decimal128(30, -2), pa.decimal128(24, 2)),
        (pa.dictionary(pa.int8(), pa.decimal128(9, 2)), pa.decimal128(19, 2), pa.decimal128(13, 6)),
        (pa.decimal256(50, 3), pa.decimal256(60, 3), pa.decimal256(54, 7)),
        (pa.decimal256(76, 74), pa.decimal256(76, 74), pa.decimal256(76, 76)),
    ],
    ids=str,
)
def test_digits_are_those_of_spark(kind: pa.DataType, total: pa.DataType, mean: pa.DataType) -> None:
    units = [-15, 2, None, 2, 0]
    main = run(table_of(units, kind), s=fw.Sum("x"), m=fw.Mean("x"))
    assert (main.schema.field("s").type, main.schema.field("m").type) == (total, mean)
    shift = mean.scale - decoded_type(kind).scale
    assert main["s"][0].as_py() == decimals([-11], total.scale)[0]
    assert main["m"][0].as_py() == decimals([rounded_mean([-15, 2, 2, 0], shift)], mean.scale)[0]


def test_halves_are_rounded_away_from_zero() -> None:
    for units in ([1, 2, 2, 2, 2, 2, 2, 3], [1] + [0] * 31, [3] + [0] * 63):
        for sign in (1, -1):
            found = run(table_of([sign * unit for unit in units], pa.decimal128(9, 0)), m=fw.Mean("x"))["m"][0].as_py()
            exact = Decimal(sign * sum(units)) / len(units)
            assert found == exact.quantize(Decimal("0.0001"), ROUND_HALF_UP)


def test_sums_go_beyond_128_bits_and_back() -> None:
    units = [MOST] * 5 + [-MOST] * 4 + [-5]
    for part in (units, units[::-1], [-unit for unit in units]):
        found = run(table_of(part, pa.decimal128(38, 0)), s=fw.Sum("x"))["s"][0].as_py()
        assert found == sum(part)


def test_too_many_digits_raise_or_give_null() -> None:
    table = table_of([MOST, 1], pa.decimal128(38, 0))
    with pytest.raises(fw.AggregateOverflowError, match=r"Sum\('x'\): .* more than 38 digits; cast the column"):
        run(table, s=fw.Sum("x"))
    assert run(table, s=fw.Sum("x", on_overflow="null"))["s"].to_pylist() == [None]
    fits = table_of([MOST, 0], pa.decimal128(38, 0))
    assert run(fits, s=fw.Sum("x"))["s"].to_pylist() == [Decimal(MOST)]
    with pytest.raises(fw.AggregateOverflowError, match=r"Mean\('x'\)"):
        run(table, m=fw.Mean("x"))
    assert run(table, m=fw.Mean("x", on_overflow="null"))["m"].to_pylist() == [None]
    with pytest.raises(fw.SpecError, match="Mean: on_overflow must be 'raise' or 'null', got 'wrap'"):
        fw.Mean("x", on_overflow="wrap")


@pytest.mark.parametrize("before", ["raise", "null"])
def test_state_of_means_does_not_tell_what_an_overflow_does(before: str) -> None:
    table = table_of([MOST, 1], pa.decimal128(38, 0))
    stream = BASE.window(WINDOW).aggregate(m=fw.Mean("x", on_overflow=before)).open()
    stream.process(table)
    again = BASE.window(WINDOW).aggregate(m=fw.Mean("x", on_overflow="null")).open()
    again.restore([stream.snapshot()])
    assert again.advance_watermark(fw.MAX_TIMESTAMP).main["m"].to_pylist() == [None]


def test_what_is_refused_says_what_to_do() -> None:
    table = pa.table({"ts": [1], "x": pa.array([1], pa.uint64())})
    with pytest.raises(fw.SpecError, match=r"takes an int .* is uint64.*; cast it to int64 or float64"):
        run(table, a=fw.Mean("x"))


@pytest.mark.parametrize(
    ("units", "total", "expected"),
    [
        ([MOST, 1 - MOST, None, 4], fw.Sum("x"), {"s": Decimal(5), "m": Decimal("1.6667"), "lo": Decimal(1 - MOST)}),
        ([MOST, MOST, None, 1 - MOST], fw.Sum("x", on_overflow="null"), {"s": None, "lo": Decimal(1 - MOST)}),
    ],
    ids=["fits", "overflows"],
)
@pytest.mark.parametrize("window", [WINDOW, fw.EventTimeSessionWindows.with_gap(1_000)], ids=str)
def test_sums_are_saved_and_merged(
    window: fw.WindowAssigner, units: list[int | None], total: fw.Aggregate, expected: dict[str, Any]
) -> None:
    aggregates = {"s": total, "m": fw.Mean("x"), "lo": fw.Min("x")}
    spec = BASE.window(window).aggregate(**{name: aggregates[name] for name in expected})
    times = pa.array([0, 900, 450, 500], pa.int64())
    table = table_of(units, pa.decimal128(38, 0)).set_column(0, "ts", times)
    stream = spec.open()
    stream.process(table.slice(0, 2))
    again = spec.open()
    again.restore([stream.snapshot()])
    for one in (stream, again):
        one.process(table.slice(2))
        assert one.advance_watermark(fw.MAX_TIMESTAMP).main.select(list(expected)).to_pylist() == [expected]


@given(st.lists(st.one_of(st.none(), st.integers(-MOST, MOST)), min_size=1, max_size=12), st.integers(0, 11))
def test_sums_equal_python(units: list[int | None], at: int) -> None:
    table = table_of(units, pa.decimal128(38, 4))
    parts = pa.concat_tables([table.slice(0, at), table.slice(at)])
    found = run(parts, "sliding", s=fw.Sum("x", on_overflow="null"))["s"].to_pylist()[0]
    values = [unit for unit in units if unit is not None]
    assert found == (decimals([sum(values)], 4)[0] if values and abs(sum(values)) <= MOST else None)


@given(st.lists(st.integers(-(10**30), 10**30), min_size=1, max_size=12))
def test_means_equal_python(units: list[int]) -> None:
    found = run(table_of(units, pa.decimal128(31, 4)), m=fw.Mean("x"))["m"][0].as_py()
    assert found == decimals([rounded_mean(units, 4)], 8)[0]


@pytest.mark.parametrize(
    ("kind", "most"),
    [
        (pa.decimal128(5, 39), 38),
        (pa.decimal128(5, 40), 38),
        (pa.decimal128(5, -39), 38),
        (pa.dictionary(pa.int8(), pa.decimal128(5, 40)), 38),
        (pa.decimal256(5, 77), 76),
    ],
    ids=str,
)
def test_scales_beyond_all_digits_are_refused(kind: pa.DataType, most: int) -> None:
    plain = decoded_type(kind)
    says = (
        rf"the scale of decimals of {plain.bit_width} bits must be from -{most} to {most}, got {re.escape(str(plain))}"
    )
    table = pa.table({"ts": [1], "x": pa.nulls(1, kind)})
    for make in (fw.Sum, fw.Mean, fw.Variance, fw.Median, fw.HyperLogLog):
        with pytest.raises(fw.SpecError, match=rf"aggregate a={make.__name__}\('x'.*\): column 'x': {says}"):
            run(table, a=make("x"))
    with pytest.raises(fw.SpecError, match=f"values: {says}"):
        hyperloglog.sketch(table["x"])
    # What takes values as they are has no limit, and the limit itself is taken.
    assert run(table, n=fw.Count("x"))["n"].to_pylist() == [0]
    assert run(pa.table({"ts": [1], "x": pa.nulls(1, pa.decimal128(5, 38))}), s=fw.Sum("x"))["s"].to_pylist() == [None]
