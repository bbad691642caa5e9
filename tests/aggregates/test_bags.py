"""Aggregates that keep values: all types on all operators, equality with polars, sharing, memory, and what is refused."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import fastwin as fw
from fastwin.columns.decoding import decoded_type
from fastwin.state.chunks import decode, encode, owner
from tests.support.columns import KEY_TYPES, column_of
from tests.support.one_window import OPERATORS, run

WINDOW = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of(1_000))


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize(("name", "kind", "values"), KEY_TYPES, ids=[name for name, _, _ in KEY_TYPES])
def test_values_of_all_types_come_back(name: str, kind: pa.DataType, values: list, operator: str) -> None:
    column = column_of(kind, [None, *values, None, *values])
    table = pa.table({"ts": range(500, 500 + len(column)), "x": column})
    found = run(
        table, operator, all=fw.Collect("x"), two=fw.Collect("x", limit=2), n=fw.CountDistinct("x"),
        set=fw.CollectSet("x"), top=fw.TopK("x", 100), high=fw.Largest("x", 100), low=fw.Smallest("x", 100),
        mode=fw.Mode("x"), first=fw.Min("x"),
    )  # fmt: skip
    present = [] if pa.types.is_null(kind) else [value for value in values if value is not None] * 2
    plain = column_of(decoded_type(kind), present).to_pylist()
    assert str(found["all"]) == str(plain)
    assert str(found["two"]) == str(plain[:2])
    assert len(found["low"]) == len(found["high"]) == len(plain)
    assert str(found["high"]) == str(found["low"][::-1])
    assert found["n"] == len(found["set"]) == len(found["top"])
    assert str(found["set"]) == str(list({str(value): value for value in found["low"]}.values()))
    assert sum(one["count"] for one in found["top"]) == len(plain)
    assert [one["count"] for one in found["top"]] == sorted((one["count"] for one in found["top"]), reverse=True)
    assert str(found["mode"]) == str(found["top"][0]["value"] if plain else None)
    if plain:
        assert {str(value) for value in found["set"]} <= {str(value) for value in plain} | {"0.0"}
        assert found["first"] == found["low"][0] or found["first"] != found["first"]


def frame(n: int, seed: int = 0) -> pl.DataFrame:
    dice = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "k": dice.integers(0, 7, n),
            "ts": dice.integers(0, 5_000, n),
            "i": dice.integers(-40, 40, n) * 10**15,
            "x": np.round(dice.normal(0, 3, n), 1),
            "w": [None if i % 9 == 0 else "ab" * int(i % 5) + str(i % 31) for i in dice.integers(0, 10**6, n)],
        }
    )


def test_equal_to_polars() -> None:
    rows = frame(150_000)
    spec = WINDOW.aggregate(
        ni=fw.CountDistinct("i"), nw=fw.CountDistinct("w"), si=fw.Sum("i", distinct=True), ti=fw.TopK("i", 3),
        tw=fw.TopK("w", 3), hx=fw.Largest("x", 4), lw=fw.Smallest("w", 4), cw=fw.CollectSet("w"), mi=fw.Mode("i"),
        n=fw.Count("w"),
    )  # fmt: skip

    def top(column: str, as_bytes: bool = False) -> pl.Expr:
        counted = pl.col(column).drop_nulls().value_counts(sort=False, name="count")
        return counted.struct.rename_fields(["value", "count"]).alias(f"t{column}")

    wanted = (
        rows.with_columns(start=pl.col("ts") // 1_000 * 1_000)
        .group_by("k", "start")
        .agg(
            ni=pl.col("i").n_unique(), nw=pl.col("w").drop_nulls().n_unique(), si=pl.col("i").unique().sum(),
            hx=pl.col("x").sort(descending=True).head(4), lw=pl.col("w").drop_nulls().sort().head(4),
            cw=pl.col("w").drop_nulls().unique().sort(), n=pl.col("w").count(), ti=top("i"), tw=top("w"),
        )
        .sort("start", "k")
    )  # fmt: skip
    mine = spec.run(rows).main
    for threads in (1, 2):
        again = pl.from_arrow(spec.run(rows, threads=threads).main)
        assert again.sort("window_start", "k").equals(pl.from_arrow(mine).sort("window_start", "k"))
    main = pl.from_arrow(mine).sort("window_start", "k")
    for name in ("ni", "nw", "si", "hx", "lw", "cw", "n"):
        assert main[name].to_list() == wanted[name].to_list(), name
    for name in ("ti", "tw"):
        for found, counted in zip(main[name].to_list(), wanted[name].to_list(), strict=True):
            assert found == sorted(counted, key=lambda one: (-one["count"], one["value"]))[:3]
    assert main["mi"].to_list() == [found[0]["value"] for found in main["ti"].to_list()]


@pytest.mark.parametrize(
    "windows", [fw.SlidingEventTimeWindows.of(1_000, 90), fw.EventTimeSessionWindows.with_gap(5)], ids=str
)
def test_many_values_equal_the_general_operator(windows: Any) -> None:
    rows = frame(20_000, 3).with_columns(k=pl.col("k") % 2)
    spec = fw.key_by("k").event_time("ts").window(windows).aggregate(
        nw=fw.CountDistinct("w"), tw=fw.TopK("w", 5), hi=fw.Largest("i", 50), cw=fw.Collect("w", limit=40),
        ex=fw.CollectSet("x"), cx=fw.Collect("x"), si=fw.Sum("x", distinct=True), j=fw.StringAgg("w", "", limit=9),
    )  # fmt: skip
    fast, general = spec.run(rows).main, spec.with_pane_info().run(rows).main
    assert general.num_rows == fast.num_rows
    order = [("window_start", "ascending"), ("window_end", "ascending"), ("k", "ascending")]
    assert general.select(fast.column_names).sort_by(order).equals(fast.sort_by(order))


def test_decimals_are_summed_once_each() -> None:
    kind = pa.decimal128(5, 2)
    values = [Decimal("1.50"), Decimal("-2.00"), None, Decimal("1.50"), Decimal("999.99")]
    table = pa.table({"ts": [1] * 5, "x": pa.array(values, kind), "none": pa.array([None] * 5, kind)})
    found = run(table, s=fw.Sum("x", distinct=True), n=fw.Sum("none", distinct=True), c=fw.CountDistinct("x"))
    assert found == {"s": Decimal("999.49"), "n": None, "c": 3}


def test_distinct_sums_overflow_as_others_do() -> None:
    table = pa.table({"ts": [1, 2, 3], "x": [2**62, 2**62 + 1, 2**62]})
    with pytest.raises(fw.AggregateOverflowError, match=r"Sum\('x', distinct=True\): .* outside int64"):
        run(table, s=fw.Sum("x", distinct=True))
    assert run(table, s=fw.Sum("x", "null", distinct=True)) == {"s": None}
    assert run(table.take([0, 2]), s=fw.Sum("x", distinct=True)) == {"s": 2**62}


@pytest.mark.parametrize(
    ("one", "both"),
    [
        ({"a": fw.CountDistinct("x")}, {"b": fw.Sum("x", distinct=True), "c": fw.CountDistinct("x")}),
        ({"a": fw.TopK("x", 1)}, {"b": fw.TopK("x", 5), "c": fw.Mode("x")}),
    ],
)
def test_aggregates_of_the_same_values_share_them(one: dict, both: dict) -> None:
    table = pa.table({"k": [1] * 5_000, "ts": [1] * 5_000, "x": np.arange(5_000) % 1_700})
    alone, shared = WINDOW.aggregate(**one).open(), WINDOW.aggregate(**one, **both).open()
    for stream in (alone, shared):
        stream.process(table)
    assert shared.metrics.state_bytes == alone.metrics.state_bytes
    fresh = WINDOW.aggregate(**one, **both).open()
    fresh.restore([shared.snapshot()])
    row = fresh.advance_watermark(10_000).main.to_pylist()[0]
    wanted = {"a": 1_700, "b": sum(range(1_700)), "c": 1_700} if "b" in both and isinstance(both["b"], fw.Sum) else {
        "a": [{"value": 0, "count": 3}], "b": [{"value": i, "count": 3} for i in range(5)], "c": 0,
    }  # fmt: skip
    assert {name: row[name] for name in "abc"} == wanted


@pytest.mark.parametrize("operator", OPERATORS)
def test_conditions_and_expressions(operator: str) -> None:
    table = pa.table({"ts": [500] * 5, "x": [1, 2, 2, 3, 3], "w": ["a", "b", "b", "c", None]})
    table = table.append_column("on", [[True, True, False, None, True]])
    found = run(
        table, operator, n=fw.CountDistinct("x", where="on"), all=fw.CountDistinct("x"),
        s=fw.Sum(pc.field("x") * 10, distinct=True, where="on"), top=fw.TopK("x", 1, where=pc.field("x") > 1),
        c=fw.Collect("w", where="on"), j=fw.StringAgg("w", "/", where=pc.field("x") < 3), m=fw.Median("x", where="on"),
        q=fw.Quantile(pc.field("x") + 1, 1, where="on"),
    )  # fmt: skip
    assert found == {
        "n": 3, "all": 3, "s": 60, "top": [{"value": 2, "count": 2}], "c": ["a", "b"], "j": "a/b/b",
        "m": pytest.approx(2, rel=0.01), "q": 4.0,
    }  # fmt: skip


EACH: dict[str, fw.Aggregate] = {
    "distinct": fw.CountDistinct("w"), "top": fw.TopK("w", 2), "largest": fw.Largest("w", 3), "all": fw.Collect("w"),
    "set": fw.CollectSet("w"), "text": fw.StringAgg("w"), "median": fw.Median("x"), "sum": fw.Sum("x", distinct=True),
}  # fmt: skip


@pytest.mark.parametrize("each", EACH)
def test_memory_returns_when_windows_go(each: str) -> None:
    stream = WINDOW.aggregate(x=EACH[each]).open()
    sizes = []
    for start in range(0, 10_000, 1_000):
        rows = frame(5_000, start).with_columns(ts=pl.col("ts") // 5 + start)
        stream.process(rows)
        sizes.append(stream.metrics.state_bytes)
        stream.advance_watermark(start + 999)
        assert stream.metrics.state_rows == 0
        assert stream.metrics.state_bytes < sizes[-1]
    assert sizes[-1] < 2 * sizes[0]


@pytest.mark.parametrize("each", EACH)
def test_deltas_hold_what_has_changed_and_no_more(each: str) -> None:
    spec = WINDOW.aggregate(x=EACH[each])
    stream = spec.open()
    stream.process(frame(40_000))
    first = stream.snapshot()
    stream.process(pa.table({"k": [3], "ts": [10], "x": [1e6], "w": ["a new one"], "i": [0]}))
    change = stream.delta()
    assert decode(change, owner(change)).meta["rows"] == 1
    fresh = spec.open()
    fresh.restore([first, change])
    order = [("k", "ascending"), ("window_start", "ascending")]
    restored, lived = (one.advance_watermark(10**6).main.sort_by(order) for one in (fresh, stream))
    assert restored.equals(lived)


def test_few_values_of_many_texts_take_little_memory() -> None:
    spec = WINDOW.aggregate(top=fw.TopK("w", 2), three=fw.Largest("w", 3))
    stream = spec.open()
    for i in range(10):
        texts = [f"{j % 7}" * 500 for j in range(i, 5_000 + i)]
        stream.process(pa.table({"k": [1] * 5_000, "ts": [1] * 5_000, "w": texts}))
    assert stream.metrics.state_bytes < 200_000


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: fw.TopK("x", 0), "TopK: k must be an int of at least 1, got 0"),
        (lambda: fw.TopK("x"), "TopK: k must be an int of at least 1, got None"),
        (lambda: fw.Largest("x", -1), "Largest: n must be an int of at least 1, got -1"),
        (lambda: fw.Smallest("x", 2.0), "Smallest: n must be an int of at least 1, got 2.0"),
        (lambda: fw.Collect("x", limit=0), "Collect: limit must be an int of at least 1, got 0"),
        (lambda: fw.CollectSet("x", limit=True), "CollectSet: limit must be an int of at least 1, got True"),
        (lambda: fw.StringAgg("x", 1), "StringAgg: separator must be a text, got 1"),
        (lambda: fw.CountDistinct(None), "CountDistinct: column must be the name of a column, got None"),
        (lambda: fw.Sum("x", distinct=1), "Sum: distinct must be True or False, got 1"),
    ],
)
def test_refused_when_built(build: Callable[[], object], says: str) -> None:
    with pytest.raises(fw.SpecError, match=says):
        build()


def test_types_that_cannot_be_kept_are_refused() -> None:
    table = pa.table({"ts": [1], "x": [[1]], "y": [1]})
    for aggregate in (fw.CountDistinct("x"), fw.TopK("x", 1), fw.CollectSet("x"), fw.Largest("x", 1)):
        with pytest.raises(fw.SpecError, match=r"\): takes a column of numbers, .* but column 'x' is list"):
            run(table, a=aggregate)
    with pytest.raises(fw.SpecError, match=r"StringAgg\('y', ','\): takes a column of text; .* 'y' is int64"):
        run(table, a=fw.StringAgg("y"))


def test_state_with_runs_that_cannot_be_is_refused() -> None:
    spec = WINDOW.aggregate(top=fw.TopK("w", 2))
    stream = spec.open()
    stream.process(frame(100))
    name = f"c{stream._operator._rows.owned_cells[0]}"
    saved = stream.snapshot()
    chunk = decode(saved, owner(saved))
    rows = chunk.tables["rows"]
    for at, value in ((0, 10**6), (2, -1), (3, 2**40), (4, 0)):  # how many are in order, offset, length, count
        broken = [np.frombuffer(data, np.int64).copy() for data in rows[name].to_pylist()]
        for values in broken:
            values[at] = value
        place = rows.column_names.index(name)
        changed = rows.set_column(place, name, pa.array([values.tobytes() for values in broken], pa.large_binary()))
        blob = encode(replace(chunk, tables={**chunk.tables, "rows": changed}), owner(saved))
        with pytest.raises(fw.StateError, match="Ranked: a row holds what is none of its forms"):
            spec.open().restore([blob])
