"""First, Last, ArgMin and ArgMax: column types, ties, and equality with polars, as of Variance and StdDev."""

import datetime as dt
import math
import random
from decimal import Decimal

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import fastwin as fw
from fastwin.columns.decoding import decoded_type
from tests.support.columns import KEY_TYPES, column_of
from tests.support.one_window import OPERATORS, run


@pytest.mark.parametrize("operator", OPERATORS)
def test_time_decides_and_then_arrival(operator: str) -> None:
    table = pa.table({"ts": [500, 504, 502, 504, 500], "x": ["a", "b", "c", "d", "e"], "i": [1, 2, 3, None, 5]})
    found = run(table, operator, f=fw.First("x"), l=fw.Last("x"), fi=fw.First("i"), li=fw.Last("i"))
    assert found == {"f": "a", "l": "d", "fi": 1, "li": 2}


@pytest.mark.parametrize("operator", OPERATORS)
def test_extremes_decide_then_time_then_arrival(operator: str) -> None:
    table = pa.table(
        {
            "ts": [503, 502, 502, 501, 504, 505],
            "by": [1, 1, 1, 2, 2, None],
            "x": ["a", "b", "c", "d", None, "f"],
            "y": [1.5, 2.5, 3.5, 4.5, 5.5, 6.5],
        }
    )
    found = run(
        table,
        operator,
        lo=fw.ArgMin("x", by="by"),
        hi=fw.ArgMax("x", by="by"),
        y=fw.ArgMax("y", "x"),
        z=fw.ArgMin("by", "y"),
    )
    assert found == {"lo": "b", "hi": "d", "y": 6.5, "z": 1}


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize(("name", "kind", "values"), KEY_TYPES, ids=[name for name, _, _ in KEY_TYPES])
def test_values_of_all_types_come_back(name: str, kind: pa.DataType, values: list, operator: str) -> None:
    column = column_of(kind, [None, *values, None])
    present = [value for value in values if value is not None]
    ascending = pa.table({"ts": range(500, 500 + len(column)), "x": column, "n": range(len(column))})
    found = run(ascending, operator, f=fw.First("x"), l=fw.Last("x"), a=fw.ArgMax("x", by="n"))
    if pa.types.is_null(kind):
        assert found == {"f": None, "l": None, "a": None}
    else:
        plain = column_of(decoded_type(kind), present)
        assert str(found) == str({"f": plain[0].as_py(), "l": plain[-1].as_py(), "a": plain[-1].as_py()})


@pytest.mark.parametrize(
    ("kind", "ascending"),
    [
        (pa.int8(), [-128, -1, 0, 127]),
        (pa.uint64(), [0, 1, 2**63 - 1, 2**63, 2**64 - 1]),
        (pa.float64(), [-math.inf, -1.5, 0.0, 1e-300, math.inf, math.nan]),
        (pa.float16(), [-1.5, 0.0, 2.0]),
        (pa.string(), ["", "A", "a", "aa", "b", "é"]),
        (pa.binary(), [b"", b"\0", b"\0\0", b"a", b"\xff"]),
        (pa.bool_(), [False, True]),
        (pa.date32(), [dt.date.min, dt.date(1970, 1, 1), dt.date.max]),
        (pa.timestamp("ns"), [-5, 0, 7]),
        (pa.decimal128(38, 2), [-Decimal("9" * 30), Decimal("-0.01"), Decimal(0), Decimal("0.01"), Decimal("9" * 36)]),
        (pa.decimal256(60, 3), [Decimal(-(10**50)), Decimal("-0.001"), Decimal(0), Decimal(10**50)]),
        (pa.dictionary(pa.int8(), pa.string()), ["a", "b", "c"]),
    ],
    ids=str,
)
def test_order_of_each_type(kind: pa.DataType, ascending: list) -> None:
    places = list(range(len(ascending)))
    for seed in range(5):
        random.Random(seed).shuffle(places)
        values = [ascending[i] for i in places]
        column = pa.array(values, pa.int64()).cast(kind) if kind == pa.timestamp("ns") else pa.array(values, kind)
        table = pa.table({"ts": [7] * len(places), "x": places, "by": column})
        for part in (table, pa.concat_tables([table, table.slice(0, 0)])):
            assert run(part, lo=fw.ArgMin("x", "by"), hi=fw.ArgMax("x", "by")) == {"lo": 0, "hi": len(places) - 1}
            ends = {"lo": column[places.index(0)].as_py(), "hi": column[places.index(len(places) - 1)].as_py()}
            for operator in OPERATORS:
                assert str(run(part, operator, lo=fw.Min("by"), hi=fw.Max("by"))) == str(ends)
        if len(places) > 2:
            rest = table.slice(1)
            wanted = {"lo": min(rest["x"].to_pylist()), "hi": max(rest["x"].to_pylist())}
            assert run(rest, lo=fw.ArgMin("x", "by"), hi=fw.ArgMax("x", "by")) == wanted


def test_arrival_is_told_across_batches_merges_and_restores() -> None:
    spec = fw.key_by().event_time("ts").window(fw.EventTimeSessionWindows.with_gap(10))
    spec = spec.aggregate(f=fw.First("x"), l=fw.Last("x"), a=fw.ArgMax("x", by="one"))
    schema = pa.schema({"ts": pa.int64(), "x": pa.string(), "one": pa.int8()})
    rows = [(0, "a"), (15, "b"), (0, "c"), (7, "bridge"), (15, "d"), (0, "e"), (15, "f")]
    stream, chunks = spec.open(schema=schema), []
    for time, text in rows:
        stream.process(pa.table({"ts": [time], "x": [text], "one": pa.array([1], pa.int8())}))
        chunks.append(stream.delta() if chunks else stream.snapshot())
        stream = spec.open(schema=schema)
        stream.restore(chunks)
    assert stream.advance_watermark(10**6).main.select(["f", "l", "a"]).to_pylist() == [{"f": "a", "l": "f", "a": "a"}]
    whole = pa.table({"ts": [r[0] for r in rows], "x": [r[1] for r in rows], "one": pa.array([1] * 7, pa.int8())})
    assert spec.run(whole).main.select(["f", "l", "a"]).to_pylist() == [{"f": "a", "l": "f", "a": "a"}]


def test_what_cannot_be_kept_or_compared_is_refused() -> None:
    union = pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])])
    table = pa.table({"ts": [1], "x": [[1]], "y": [1], "u": union})
    with pytest.raises(
        fw.SpecError, match=r"First\('u'\): takes a column of numbers, .* but column 'u' is sparse_union"
    ):
        run(table, f=fw.First("u"))
    with pytest.raises(
        fw.SpecError, match=r"ArgMax\('y', by='x'\): takes .* that can be compared, but column 'x' is list"
    ):
        run(table, f=fw.ArgMax("y", by="x"))
    with pytest.raises(fw.SpecError, match="ArgMin: by must be the name of a column, got None"):
        fw.ArgMin("y")


def test_equal_to_polars() -> None:
    random.seed(5)
    n = 5_000
    frame = pl.DataFrame(
        {
            "key": [random.randrange(40) for _ in range(n)],
            "ts": random.sample(range(100_000), n),
            "v": [random.choice([None, random.randrange(-(10**6), 10**6)]) for _ in range(n)],
            "x": [random.gauss(1e6, 3) for _ in range(n)],
            "w": [random.choice(["a", "b", "c", "d"]) + str(random.randrange(99)) for _ in range(n)],
        }
    )
    spec = fw.key_by("key").event_time("ts").window(fw.TumblingEventTimeWindows.of(20_000)).aggregate(
        vv=fw.Variance("v"), pv=fw.Variance("v", ddof=0), sx=fw.StdDev("x"), px=fw.StdDev("x", ddof=2),
        fw=fw.First("w"), lw=fw.Last("w"), at=fw.ArgMax("w", by="x"), lo=fw.ArgMin("v", by="x"), fv=fw.First("v"),
    )  # fmt: skip
    mine = pl.from_arrow(spec.run(frame).main).with_columns(start=pl.col("window_start").cast(pl.Int64))
    whole = frame.filter(pl.col("v").is_not_null())

    def grouped(rows: pl.DataFrame, *parts: pl.Expr) -> pl.DataFrame:
        start = (pl.col("ts") // 20_000 * 20_000).alias("start")
        return rows.sort("ts").group_by("key", start).agg(*parts).sort("key", "start")

    theirs = grouped(
        frame, pl.col("v").var().alias("vv"), pl.col("v").var(ddof=0).alias("pv"), pl.col("x").std().alias("sx"),
        pl.col("x").std(ddof=2).alias("px"), pl.col("w").first().alias("fw"), pl.col("w").last().alias("lw"),
        pl.col("w").get(pl.col("x").arg_max()).alias("at"), pl.col("v").drop_nulls().first().alias("fv"),
    )  # fmt: skip
    mine = mine.sort("key", "start")
    for name in ("fw", "lw", "at", "fv"):
        assert mine[name].to_list() == theirs[name].to_list(), name
    for name in ("vv", "pv", "sx", "px"):
        for a, b in zip(mine[name].to_list(), theirs[name].to_list(), strict=True):
            assert (a is None) == (b is None)
            assert a is None or math.isclose(a, b, rel_tol=1e-9), name
    lows = grouped(whole, pl.col("v").get(pl.col("x").arg_min()).alias("lo"))
    assert mine.filter(pl.col("lo").is_not_null())["lo"].to_list() == lows["lo"].to_list()


@pytest.mark.parametrize("operator", OPERATORS)
def test_nulls_may_be_first_and_last(operator):
    table = pa.table({"ts": [700, 500, 600], "x": ["a", None, "c"], "v": [1, 2, None], "f": [True, False, True]})
    found = run(
        table,
        operator,
        first=fw.First("x", ignore_nulls=False),
        last=fw.LastArrived("v", ignore_nulls=False),
        some=fw.First("v", ignore_nulls=False, where="f"),
        arrived=fw.FirstArrived("v"),
        text=fw.LastArrived("x"),
        none=fw.First("x", ignore_nulls=False, where=pc.field("v") > 5),
    )
    assert found == {"first": None, "last": None, "some": None, "arrived": 1, "text": "c", "none": None}
    with pytest.raises(fw.SpecError, match="Last: ignore_nulls must be True or False, got 0"):
        fw.Last("x", ignore_nulls=0)


def test_arrival_goes_on_through_late_elements_slices_and_restores():
    """Elements reach a window's slices in several steps of one batch, and in batches before and after a restore."""
    spec = (
        fw.key_by().event_time("ts").window(fw.SlidingEventTimeWindows.of(20, 10)).allowed_lateness(100, coalesce=True)
    )
    spec = spec.aggregate(a=fw.FirstArrived("v"), z=fw.LastArrived("v"))
    stream = spec.open()
    stream.process(pa.table({"ts": [15, 3], "v": [1, 2]}))
    stream.advance_watermark(12)
    # Two of these are late for a window: they are added behind the others.
    late = stream.process(pa.table({"ts": [4, 18, 5, 16], "v": [3, 4, 5, 6]})).main
    assert late.select(["a", "z"]).to_pylist() == [{"a": 2, "z": 5}]
    again = spec.open()
    again.restore([stream.snapshot()])
    again.process(pa.table({"ts": [25], "v": [7]}))
    main = again.advance_watermark(fw.MAX_TIMESTAMP).main.select(["a", "z"]).to_pylist()
    assert main == [{"a": 1, "z": 6}, {"a": 1, "z": 7}, {"a": 7, "z": 7}]


def test_arrival_counts_on_over_several_windows():
    """A late element of the finest window goes to the others by itself, behind those that did not come late."""
    windows = {"a": fw.TumblingEventTimeWindows.of(10), "b": fw.TumblingEventTimeWindows.of(40)}
    spec = fw.key_by().event_time("ts").windows(**windows)
    stream = spec.aggregate(x=fw.FirstArrived("v"), y=fw.LastArrived("v")).open()
    stream.process(pa.table({"ts": [1], "v": [1]}))
    stream.advance_watermark(15)
    stream.process(pa.table({"ts": [5, 20], "v": [2, 3]}))
    main = stream.advance_watermark(fw.MAX_TIMESTAMP).main.select(["window", "x", "y"]).to_pylist()
    assert main == [{"window": "a", "x": 3, "y": 3}, {"window": "b", "x": 1, "y": 3}]
