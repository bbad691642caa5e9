"""push(): rows as dicts and tuples mean what a table of them means to process()."""

import collections
import datetime
import itertools
from dataclasses import replace
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastwin as fw

UTC = datetime.UTC
SCHEMA = pa.schema(
    [("note", pa.string()), ("k", pa.string()), ("i", pa.int32()), ("t", pa.int64()), ("v", pa.int64()),
     ("x", pa.float64()), ("f", pa.bool_())]
)  # fmt: skip
AGGREGATES = {
    "n": fw.Count(),
    "sv": fw.Sum("v"),
    "hx": fw.Max("x"),
    "mv": fw.Mean("v"),
    "lf": fw.Last("k", where="f"),
    "nf": fw.Count("x", where="f"),
    "fa": fw.FirstArrived("v"),
}


def spec_of(assigner: Any, keys: tuple[str, ...] = ("k",), unit: str | None = "ms") -> fw.WindowSpec:
    spec = fw.key_by(*keys).event_time("t", unit=unit).window(assigner).allowed_lateness(20)
    return spec.side_output_late_data().aggregate(**AGGREGATES)


def everything(result: fw.Result) -> list[Any]:
    return [result.main.schema, result.main.to_pylist(), result.late.to_pylist(), result.bad.to_pylist()]


def counted(stream: Any) -> Any:
    """All but the memory that is held, which is more or less with the parts in which rows come."""
    return replace(stream.metrics, state_bytes=0)


values = st.fixed_dictionaries(
    {
        "note": st.just("not read"),
        "k": st.sampled_from(["a", "b", "", "ä", None]),
        "i": st.sampled_from([1, -(2**31), None]),
        "t": st.one_of(st.integers(0, 200), st.integers(-50, 200), st.none()),
        "v": st.sampled_from([0, 7, -(2**40), None]),
        "x": st.sampled_from([0.5, -0.0, float("inf"), 3, None]),
        "f": st.sampled_from([True, False, None]),
    }
)
assigners = st.sampled_from(
    [
        fw.TumblingEventTimeWindows.of(10),
        fw.SlidingEventTimeWindows.of(20, 5),
        fw.SlidingEventTimeWindows.of(5, 10),
        fw.EventTimeSessionWindows.with_gap(7),
        fw.TumblingProcessingTimeWindows.of(10),
    ]
)


@given(
    assigner=assigners,
    keys=st.sampled_from([("k",), ("i",), ("k", "i"), ()]),
    calls=st.lists(st.lists(values, min_size=1, max_size=4), min_size=1, max_size=8),
    as_tuples=st.booleans(),
    delay=st.sampled_from([None, 0, 30]),
    divert=st.booleans(),
    schema=st.booleans(),
)
def test_push_equals_process(
    assigner: Any, keys: tuple, calls: list, as_tuples: bool, delay: Any, divert: bool, schema: bool
) -> None:
    spec = spec_of(assigner, keys).bad_rows("divert" if divert else "drop")
    pushed, processed = (spec.open(watermark=delay, schema=SCHEMA if schema or as_tuples else None) for _ in range(2))
    if not schema:
        first = pa.Table.from_pylist(calls[0], schema=SCHEMA)
        assert everything(pushed.process(first)) == everything(processed.process(first))
    for rows in calls:
        given_rows = [tuple(row[name] for name in SCHEMA.names) for row in rows] if as_tuples else rows
        fed = pushed.push(given_rows if len(rows) > 1 else given_rows[0])
        assert everything(fed) == everything(processed.process(pa.Table.from_pylist(rows, schema=SCHEMA)))
        pushed._check_invariants()
        assert counted(pushed) == counted(processed)
    for stream in (pushed, processed):
        stream.advance_processing_time(1_000)
    ends = [stream.advance_watermark(fw.MAX_TIMESTAMP) for stream in (pushed, processed)]
    assert everything(ends[0]) == everything(ends[1])
    assert counted(pushed) == counted(processed)


def test_push_reads_what_it_does_not_know_through_arrow() -> None:
    """Expressions, other types, and functions that see rows."""
    schema = pa.schema([("t", pa.timestamp("us", "UTC")), ("d", pa.decimal128(9, 2)), ("v", pa.int64())])
    base = fw.key_by("d").event_time("t").window(fw.TumblingEventTimeWindows.of("1 s"))
    expressed = base.aggregate(s=fw.Sum(pc.field("v") * 2, where=pc.field("v") > 1))
    when = datetime.datetime(2024, 1, 1, tzinfo=UTC)
    stream = expressed.open(schema=schema)
    for v in (1, 2, 3):
        stream.push({"t": when, "d": Decimal("1.5"), "v": v})
    assert stream.advance_watermark(fw.MAX_TIMESTAMP).main["s"].to_pylist() == [10]
    reduced = base.reduce(lambda a, b: a._replace(v=a.v + b.v)).open(schema=schema)
    for v in (1, 2, 3):
        reduced.push((when, Decimal("1.5"), v))
    assert reduced.advance_watermark(fw.MAX_TIMESTAMP).main["v"].to_pylist() == [6]


@pytest.mark.parametrize(
    ("first", "value"), [(None, "x"), (None, 1), ([], [1]), ([None], ["x"]), ({"a": None}, {"a": 1})]
)
def test_a_value_after_nulls_alone_is_refused_with_the_cause(first: Any, value: Any) -> None:
    spec = fw.key_by("k").event_time("t", unit="ms").window(fw.TumblingEventTimeWindows.of(10))
    stream = spec.aggregate(last=fw.Last("s")).open()
    stream.push({"k": 1, "t": 5, "s": first})
    stream.push([{"k": 1, "t": 6, "s": first}] * 70)
    said = r"^push: column 's' is .*null.*: the first batch had only nulls in it; open\(schema=...\)"
    for rows in ({"k": 1, "t": 5, "s": value}, [{"k": 1, "t": 5, "s": value}] * 70):
        with pytest.raises(fw.SpecError, match=said):
            stream.push(rows)
    assert stream.advance_watermark(9).main["last"].to_pylist() == [first]


@pytest.mark.parametrize("name", ["a b", "a.b", "a-b", "5a", "a(b", "a\\b", 'a"b', "a\nb", "\na ", "Ä ö"])
def test_expressions_name_columns_of_any_name(name: str) -> None:
    """Also where nothing but the expression's text tells that they are read."""
    spec = fw.key_by("k").event_time("t", unit="ms").window(fw.TumblingEventTimeWindows.of(10))
    spec = spec.aggregate(s=fw.Sum(pc.field(name) + 1), n=fw.Count(where=pc.field(name) == 2))
    table = pa.table({"k": [1, 1], "t": [1, 2], name: [2, 3]})
    stream = spec.open()
    stream.push({**table.to_pylist()[0], "z": object(), 7: object()})
    stream.push(table.to_pylist()[1])
    indexed = spec.open()
    indexed.process(table.to_pandas().set_index(name))
    for found in (stream.advance_watermark(9), indexed.advance_watermark(9), spec.run(table.to_pandas())):
        assert found.main.select(["s", "n"]).to_pylist() == [{"s": 7, "n": 1}]


@pytest.mark.parametrize(
    "kind", [pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC")]
)
def test_push_takes_datetimes(kind: pa.DataType) -> None:
    spec = fw.key_by().event_time("t").window(fw.TumblingEventTimeWindows.of("1 s")).aggregate(n=fw.Count())
    schema = pa.schema([("t", kind)])
    pushed, processed = spec.open(schema=schema), spec.open(schema=schema)
    zones = itertools.cycle([UTC, ZoneInfo("UTC"), ZoneInfo("Asia/Tokyo")] if kind.tz else [None])
    for second, micros in ((0, 0), (1, 999_999), (1, 1_000), (-5, 1), (10**9, 0)):
        when = datetime.datetime(1970, 1, 1, tzinfo=next(zones)) + datetime.timedelta(seconds=second)
        when = when.replace(microsecond=micros if kind.unit in ("us", "ns") else 0)
        pushed.push({"t": when})
        processed.process(pa.table({"t": pa.array([when], kind)}))
    wanted = processed.advance_watermark(fw.MAX_TIMESTAMP).main
    assert pushed.advance_watermark(fw.MAX_TIMESTAMP).main.equals(wanted)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"k": "a", "i": 1, "v": 1}, "column 't' is missing"),
        ({"k": 3, "t": 1, "v": 1}, "column 'k' is string, and 3 is int64"),
        ({"k": "a", "t": 1, "v": True}, "column 'v' is int64, and True is bool"),
        ({"k": "a", "t": 1, "v": 2**63}, "column 'v' is int64"),
        ({"k": "a", "t": datetime.datetime(2024, 1, 1), "v": 1}, "column 't' is int64"),
        (("a", 1), "a tuple has a value for each of k, t, v, got 2 values"),
        ("a", "a row must be a dict or a tuple, got str"),
    ],
)
def test_rows_that_do_not_suit_are_refused(row: Any, said: str) -> None:
    schema = pa.schema([("k", pa.string()), ("t", pa.int64()), ("v", pa.int64())])
    spec = fw.key_by("k").event_time("t", unit="ms").window(fw.TumblingEventTimeWindows.of(10))
    stream = spec.aggregate(s=fw.Sum("v")).open(schema=schema)
    for _ in range(2):
        with pytest.raises(fw.SpecError, match=said):
            stream.push(row)
        stream.push(("a", 1, 1))
    with pytest.raises(fw.BadRowError):
        stream.push({"k": "a", "t": None, "v": 1})
    assert stream.advance_watermark(9).main["s"].to_pylist() == [2]


@pytest.mark.parametrize("others", [[], [{"k": 1, "t": 2, "v": 3}]], ids=["alone", "beside another"])
def test_a_column_that_a_row_would_make_up_is_missing(others: list[Any]) -> None:
    spec = fw.key_by("k").event_time("t", unit="ms").window(fw.TumblingEventTimeWindows.of(10))
    stream = spec.aggregate(n=fw.Count("v")).open(schema=pa.schema([(name, pa.int64()) for name in "ktv"]))
    row = collections.defaultdict(int, k=1, t=1)
    for _ in range(2):
        with pytest.raises(fw.SpecError, match="push: column 'v' is missing; the row has k, t"):
            stream.push([*others, row])
        assert dict(row) == {"k": 1, "t": 1}
        stream.push({"k": 1, "t": 1, "v": 1})
    stream.push([*others, collections.defaultdict(int, k=1, t=1, v=1)])
    assert stream.advance_watermark(9).main["n"].to_pylist() == [3 + len(others)]


def test_the_first_push_tells_the_types() -> None:
    spec = fw.key_by("k").event_time("t", unit="ms").window(fw.TumblingEventTimeWindows.of(10)).aggregate(s=fw.Sum("v"))
    stream = spec.open()
    with pytest.raises(fw.SpecError, match="the first row must be a dict"):
        stream.push(("a", 1, 1))
    stream.push([{"k": "a", "t": 1, "v": 1}, {"k": "a", "t": 2, "v": 2}])
    assert stream.advance_watermark(9).main["s"].to_pylist() == [3]


def test_columns_that_are_not_needed_may_be_anything_from_the_first_call_on() -> None:
    spec = fw.key_by("k").event_time("t", unit="ms").window(fw.TumblingEventTimeWindows.of(10))
    for aggregated in (fw.Sum("v"), fw.Sum(pc.field("v") * 1)):
        stream = spec.aggregate(s=aggregated).open()
        for _ in range(2):
            stream.push({"k": "a", "t": 1, "v": 1, "request": object()})
        assert stream.advance_watermark(9).main["s"].to_pylist() == [2]
    with pytest.raises(fw.SpecError, match="no type for"):
        spec.side_output_late_data().aggregate(n=fw.Count()).open().push({"k": "a", "t": 1, "request": object()})


def test_a_row_without_columns_that_are_needed_is_an_element() -> None:
    spec = fw.key_by().window(fw.TumblingProcessingTimeWindows.of(10)).aggregate(n=fw.Count())
    stream = spec.open()
    for _ in range(2):
        stream.push([{"a": 1}, {"a": 2}])
    assert stream.advance_processing_time(10).main["n"].to_pylist() == [4]


SHORT = datetime.timedelta(microseconds=1_999_999)
WHEN = datetime.datetime(2024, 1, 1) + SHORT
NANO = pd.Timestamp(1_700_000_000_000_000_001)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        *((pa.timestamp(unit), WHEN) for unit in ("s", "ms")),
        (pa.timestamp("s", "Asia/Tokyo"), WHEN.replace(tzinfo=UTC)),
        (pa.timestamp("us"), NANO),
        *((pa.duration(unit), SHORT) for unit in ("s", "ms")),
        *((pa.time32(unit), WHEN.time()) for unit in ("s", "ms")),
        (pa.int64(), 1.5),
        (pa.int64(), Decimal("1.5")),
        (pa.int64(), np.float32(1.5)),
        (pa.timestamp("s"), np.datetime64("2024-01-01T00:00:01.500")),
        (pa.timestamp("s"), np.datetime64("2024-01-01")),
        (pa.list_(pa.timestamp("s")), [WHEN]),
        (pa.list_(pa.int64()), [1, 1.5]),
        (pa.list_(pa.list_(pa.date32())), [[WHEN]]),
        (pa.list_(pa.date32()), [pd.NaT]),
        (pa.struct([("a", pa.int8())]), {"a": Decimal("0.5")}),
        (pa.map_(pa.string(), pa.int64()), {"a": 1.5}),
        (pa.dictionary(pa.int32(), pa.timestamp("s")), WHEN),
    ],
    ids=str,
)
def test_nothing_is_cut_off(kind: pa.DataType, value: Any) -> None:
    """process() refuses a column that would lose something, too."""
    spec = fw.key_by().event_time("t", unit="ms").window(fw.TumblingEventTimeWindows.of(10))
    stream = spec.aggregate(v=fw.Last("v")).open(schema=pa.schema([("t", pa.int64()), ("v", kind)]))
    with pytest.raises(fw.SpecError, match="column 'v' is"):
        stream.push({"t": 1, "v": value})
    stream.push([{"t": 1, "v": None}, {"t": 2, "v": None}])


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.timestamp("s"), datetime.datetime(9999, 1, 1)),
        (pa.timestamp("ms", "Asia/Tokyo"), datetime.datetime(2024, 1, 1, microsecond=1_000, tzinfo=UTC)),
        (pa.timestamp("ns"), NANO),
        (pa.duration("s"), datetime.timedelta(days=-1)),
        (pa.time32("ms"), datetime.time(1, 2, 3, 4_000)),
        (pa.int8(), 2.0),
        (pa.list_(pa.timestamp("s")), [datetime.datetime(2024, 1, 1), None]),
        (pa.list_(pa.int64()), [2**60 + 1, 2.0, None]),
        (pa.map_(pa.date32(), pa.int64()), [(datetime.date(2024, 1, 1), 1)]),
        (pa.struct([("a", pa.int64()), ("b", pa.float64())]), {"a": Decimal(1), "b": 0.5}),
    ],
    ids=str,
)
def test_what_a_column_has_room_for_is_taken(kind: pa.DataType, value: Any) -> None:
    spec = fw.key_by().event_time("t", unit="ms").window(fw.TumblingEventTimeWindows.of(10))
    stream = spec.aggregate(v=fw.Last("v")).open(schema=pa.schema([("t", pa.int64()), ("v", kind)]))
    stream.push({"t": 1, "v": value})
    assert stream.advance_watermark(9).main["v"].to_pylist() == [value]


@pytest.mark.parametrize("missing", [pd.NaT, pd.NA], ids=str)
@pytest.mark.parametrize(
    "kind", [pa.date32(), pa.date64(), pa.timestamp("us", "UTC"), pa.duration("s"), pa.int64(), pa.string()], ids=str
)
def test_what_pandas_calls_missing_is_null(kind: pa.DataType, missing: Any) -> None:
    """Arrow would make NaT the first day of the year 1."""
    spec = fw.key_by().event_time("t", unit="ms").window(fw.TumblingEventTimeWindows.of(10))
    stream = spec.aggregate(n=fw.Count("v"), v=fw.Last("v")).open(schema=pa.schema([("t", pa.int64()), ("v", kind)]))
    stream.push([{"t": 1, "v": missing}, (2, missing)])
    assert stream.advance_watermark(9).main.select(["n", "v"]).to_pylist() == [{"n": 0, "v": None}]


def test_rows_of_a_pandas_frame_are_what_the_frame_is() -> None:
    times = pd.to_datetime(["2024-01-01 00:00:01", None, "2024-01-01 00:00:02"], utc=True)
    frame = pd.DataFrame({"k": ["a", "b", None], "t": times, "v": pd.array([1, 2, None], dtype="Int64")})
    spec = fw.key_by("k").event_time("t").window(fw.TumblingEventTimeWindows.of("1 minute")).bad_rows("divert")
    spec = spec.aggregate(n=fw.Count(), v=fw.Sum("v"))
    pushed, processed = spec.open(), spec.open()
    bad = [result.bad.to_pylist() for result in (pushed.push(frame.to_dict("records")), processed.process(frame))]
    assert [[row["k"] for row in rows] for rows in bad] == [["b"], ["b"]]
    rows, table = (one.advance_watermark(fw.MAX_TIMESTAMP).main.to_pylist() for one in (pushed, processed))
    assert rows == table
    assert [(row["k"], row["n"], row["v"]) for row in rows] == [("a", 1, 1), (None, 1, None)]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("kind", [pa.timestamp("us", "UTC"), pa.timestamp("s"), pa.timestamp("ns")], ids=str)
def test_times_of_numpy_are_taken_in_any_unit(kind: pa.DataType, unit: str) -> None:
    spec = fw.key_by().event_time("t").window(fw.TumblingEventTimeWindows.of("1 minute")).bad_rows("drop")
    stream = spec.aggregate(n=fw.Count(), d=fw.Sum("d")).open(schema=pa.schema([("t", kind), ("d", pa.duration("us"))]))
    stream.push(
        [(np.datetime64("2024-01-01T00:00:01", unit), np.timedelta64(3_000_000, unit)), (np.datetime64("NaT"), None)]
    )
    (row,) = stream.advance_watermark(fw.MAX_TIMESTAMP).main.to_pylist()
    assert (row["n"], row["window_start"]) == (1, datetime.datetime(2024, 1, 1, tzinfo=UTC))


TUPLED = fw.key_by("k").event_time("t", unit="ms").window(fw.TumblingEventTimeWindows.of(10)).aggregate(s=fw.Sum("v"))
MIXED = pa.schema([("v", pa.int64()), ("k", pa.int64()), ("t", pa.int64())])  # not the order in which columns are read


def known_by_process() -> Any:
    stream = TUPLED.open()
    stream.process(pa.table([[5], [6], [7]], schema=MIXED))
    return stream


def known_by_push() -> Any:
    stream = TUPLED.open()
    stream.push({"v": 5, "k": 6, "t": 7})
    return stream


def known_by_restore() -> Any:
    stream = TUPLED.open()
    stream.restore(known_by_process().snapshot())
    return stream


@pytest.mark.parametrize("known", [known_by_process, known_by_push, known_by_restore])
@pytest.mark.parametrize("rows", [(1, 6, 3), [(1, 6, 3), (1, 6, 3)], [{"v": 1, "k": 6, "t": 3}, (1, 6, 3)], ()])
def test_tuples_need_a_schema_that_was_given(known: Any, rows: Any) -> None:
    """The columns of a table or of state may be in another order than the values of a tuple."""
    stream = known()
    with pytest.raises(fw.SpecError, match="a tuple needs open"):
        stream.push(rows)
    stream.push({"v": 1, "k": 6, "t": 3})
    assert stream.advance_watermark(9).main["s"].to_pylist() == [6]


def test_a_unit_that_looks_wrong_is_warned_of() -> None:
    spec = fw.key_by().event_time("t").window(fw.TumblingEventTimeWindows.of(10)).aggregate(n=fw.Count())
    stream = spec.open(schema=pa.schema([("t", pa.int64())]))
    stream.push({"t": 5})
    with pytest.warns(UserWarning, match="as seconds"):
        stream.push({"t": 1_700_000_000})
