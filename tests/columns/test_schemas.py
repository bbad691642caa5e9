"""What a later batch may bring instead of a column's type, and what it may not."""

import datetime as dt
from decimal import Decimal

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fastwin.columns.schemas import conform, schema_to_text, text_to_schema
from fastwin.columns.tables import as_table
from fastwin.errors import SpecError


def became(was: pa.DataType, value: pa.Array) -> list:
    """The values as they are taken for a column that had another type."""
    found = conform(pa.table({"x": value}), pa.schema([("x", was)]))["x"]
    found.validate(full=True)
    assert found.type == was
    return found.to_pylist()


@pytest.mark.parametrize(
    ("was", "now"),
    [
        (pa.int64(), pa.int8()),
        (pa.int8(), pa.int64()),
        (pa.int64(), pa.uint64()),
        (pa.float64(), pa.float32()),
        (pa.float64(), pa.float16()),
        (pa.float64(), pa.int32()),
        (pa.int32(), pa.float64()),
        (pa.decimal128(30, 2), pa.int64()),
        (pa.decimal128(30, 2), pa.decimal128(22, 2)),
        (pa.timestamp("us"), pa.timestamp("ms")),
        (pa.timestamp("ms"), pa.timestamp("s")),
        (pa.timestamp("s"), pa.timestamp("ns")),
        (pa.timestamp("us", "UTC"), pa.timestamp("us")),
        (pa.timestamp("us"), pa.timestamp("us", "Europe/Berlin")),
        (pa.duration("ms"), pa.duration("s")),
        (pa.time64("us"), pa.time32("s")),
        (pa.date32(), pa.date64()),
    ],
    ids=str,
)
def test_the_same_in_another_width_or_unit(was: pa.DataType, now: pa.DataType) -> None:
    day = pa.types.is_date(now)
    seven, base = (7 * 86_400_000, pa.int64()) if day else (7, pa.int32())
    values = pa.array([None, seven], pa.int64())
    values = values.cast(base if str(now).startswith("time32") else pa.int64()).cast(now)
    if pa.types.is_timestamp(now) and now.unit == "ns":
        values = pa.array([None, 7 * 10**9], pa.int64()).cast(now)
    same = values.cast(was, safe=True).to_pylist()
    assert became(was, values) == same
    assert same[0] is None


TEXTS = [
    pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int32(), pa.large_string()),
    pa.dictionary(pa.int32(), pa.string_view()),
]  # fmt: skip


@pytest.mark.parametrize("was", TEXTS, ids=str)
@pytest.mark.parametrize("now", [*TEXTS, pa.run_end_encoded(pa.int32(), pa.string())], ids=str)
def test_text_is_text(was: pa.DataType, now: pa.DataType) -> None:
    values = pa.array(["a", None, "b"], pa.string())
    if pa.types.is_run_end_encoded(now):
        values = pa.RunEndEncodedArray.from_arrays(pa.array([1, 2, 3], pa.int32()), values)
    elif pa.types.is_dictionary(now):
        values = values.dictionary_encode().cast(pa.dictionary(now.index_type, pa.string())).cast(now)
    else:
        values = values.cast(now)
    if pa.types.is_dictionary(was) and was.index_type == pa.int8():
        was = pa.dictionary(pa.int32(), was.value_type)  # a plan's index has room
    assert became(was, values) == ["a", None, "b"]


@pytest.mark.parametrize("now", ["dictionary", "views", "runs"])
def test_more_text_than_one_array_has_room_for_comes_in_several(now: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastwin.columns.decoding._MOST_BYTES", 11)
    plain = pa.array(["xxxxx", None, "yyyyy", "xxxxx", "z", "yyyyy"])
    values = {
        "dictionary": plain.dictionary_encode(),
        "views": plain.cast(pa.string_view()),
        "runs": pa.RunEndEncodedArray.from_arrays(pa.array(range(1, 7), pa.int32()), plain),
    }[now]
    column = conform(pa.table({"x": values}), pa.schema([("x", pa.string())]))["x"]
    column.validate(full=True)
    assert column.to_pylist() == plain.to_pylist()
    assert max(len("".join(filter(None, chunk.to_pylist()))) for chunk in column.chunks) <= 11


@pytest.mark.parametrize("was", [pa.int64(), pa.bool_(), *TEXTS[:3], pa.timestamp("us"), pa.list_(pa.int8()), pa.dictionary(pa.int32(), pa.string())], ids=str)  # fmt: skip
@pytest.mark.parametrize("now", [pa.null(), pa.dictionary(pa.int32(), pa.null())], ids=str)
def test_a_column_without_a_value_fits(was: pa.DataType, now: pa.DataType) -> None:
    nulls = pa.nulls(2) if pa.types.is_null(now) else pa.nulls(2, now)
    assert became(was, nulls) == [None, None]


def test_lists_and_structs_of_another_width() -> None:
    assert became(pa.list_(pa.int64()), pa.array([[1], None], pa.large_list(pa.int8()))) == [[1], None]
    struct = pa.struct([("a", pa.int64()), ("b", pa.string())])
    narrow = pa.struct([("a", pa.int32()), ("b", pa.large_string())])
    assert became(struct, pa.array([{"a": 1, "b": "x"}], narrow)) == [{"a": 1, "b": "x"}]


MOMENT = dt.datetime(2024, 1, 1)
REFUSED = [
    (pa.int8(), pa.array([300]), "300"),
    (pa.int64(), pa.array([1.5]), "1.5"),
    (pa.int64(), pa.array([float("nan")]), "nan"),
    (pa.int64(), pa.array(["7"]), "text is not parsed"),
    (pa.int64(), pa.array([2**63], pa.uint64()), str(2**63)),
    (pa.float64(), pa.array([2**53 + 1]), str(2**53 + 1)),
    (pa.timestamp("ms"), pa.array(["2024-01-01"]), "text is not parsed"),
    (pa.string(), pa.array([7]), "nothing is made text"),
    (pa.string(), pa.array([b"x"]), "nothing is made text"),
    (pa.timestamp("ms"), pa.array([1], pa.timestamp("us")), "would lose data"),
    (pa.timestamp("ns"), pa.array([2**62], pa.timestamp("us")), "out of bounds"),
    (pa.timestamp("ms"), pa.array([1.5]), "double"),
    (pa.int64(), pa.array([[1]]), "list"),
    (pa.null(), pa.array(["x"]), "the first batch had only nulls in it; open(schema=...)"),
    # What Arrow would cast without a word, to something else.
    (pa.timestamp("us"), pa.array([1]), "numbers cannot stand for timestamps"),
    (pa.timestamp("ms"), pa.array([1]), "numbers cannot stand for timestamps"),
    (pa.int64(), pa.array([MOMENT], pa.timestamp("us")), "timestamps cannot stand for numbers"),
    (pa.int64(), pa.array([1], pa.duration("s")), "durations cannot stand for numbers"),
    (pa.int64(), pa.array([True]), "booleans cannot stand for numbers"),
    (pa.float64(), pa.array([True]), "booleans cannot stand for numbers"),
    (pa.bool_(), pa.array([2]), "numbers cannot stand for booleans"),
    (pa.bool_(), pa.array([0.5]), "numbers cannot stand for booleans"),
    (pa.float32(), pa.array([0.1]), "floats would be rounded"),
    (pa.float32(), pa.array([1e300]), "floats would be rounded"),
    (pa.float16(), pa.array([1.0], pa.float32()), "floats would be rounded"),
    *((pa.float16(), pa.array([1], kind), "whole numbers would be rounded") for kind in (pa.int16(), pa.uint32())),
    (pa.date32(), pa.array([MOMENT], pa.timestamp("us")), "timestamps cannot stand for dates"),
    (pa.timestamp("us"), pa.array([MOMENT.date()]), "dates cannot stand for timestamps"),
    (pa.int32(), pa.array([MOMENT.date()]), "dates cannot stand for numbers"),
    (pa.time64("us"), pa.array([5]), "numbers cannot stand for times of day"),
    (pa.time64("us"), pa.array([MOMENT], pa.timestamp("us")), "timestamps cannot stand for times of day"),
    (pa.decimal128(9, 2), pa.array([0.1]), "decimals and floats would be rounded"),
    (pa.float64(), pa.array([Decimal("0.1")]), "decimals and floats would be rounded"),
    (pa.decimal128(9, 1), pa.array([Decimal("0.12")]), "data loss"),
    (pa.list_(pa.int64()), pa.array([[True]]), "booleans cannot stand for numbers"),
    (pa.struct([("a", pa.int64())]), pa.array([{"b": 1}]), "other fields"),
    (pa.struct([("a", pa.timestamp("us"))]), pa.array([{"a": 1}]), "numbers cannot stand for timestamps"),
    (pa.map_(pa.string(), pa.bool_()), pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())), "booleans"),
    (pa.dictionary(pa.int32(), pa.int64()), pa.array([True]).dictionary_encode(), "booleans cannot stand for numbers"),
]


@pytest.mark.parametrize(("was", "value", "says"), REFUSED, ids=str)
def test_another_meaning_or_a_loss_is_named(was: pa.DataType, value: pa.Array, says: str) -> None:
    with pytest.raises(SpecError) as caught:
        became(was, value)
    assert f"column 'x' was {was}, and is {value.type} now" in str(caught.value)
    assert says in str(caught.value)


def test_dictionaries_with_a_null_in_them() -> None:
    kind = pa.dictionary(pa.int32(), pa.string())
    one = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None]), pa.array(["a", None, "b"]))
    two = pa.DictionaryArray.from_arrays(pa.array([1, 0], pa.int64()), pa.array(["c", None]))
    three = pa.DictionaryArray.from_arrays(pa.array([0, None]), pa.nulls(1, pa.string()))
    column = pa.chunked_array([one, two.cast(one.type), three, one[1:3]])
    table = conform(pa.table({"x": column}), pa.schema([("x", kind)])).combine_chunks()
    assert table["x"].to_pylist() == ["a", None, "b", None, None, "c", None, None, None, "b"]
    assert table["x"].chunk(0).dictionary.null_count == 0


def test_without_rows_any_types_do() -> None:
    schema = pa.schema([("k", pa.string()), ("t", pa.timestamp("us"))])
    for empty in (
        pd.DataFrame({"t": [], "k": []}),
        pl.DataFrame({"k": [], "t": []}),
        pa.table({"k": pa.array([], pa.float64()), "t": pa.array([], pa.string())}),
    ):
        found = conform(as_table(empty), schema)
        assert found.schema == schema
        assert found.num_rows == 0


def test_order_and_other_columns_do_not_matter() -> None:
    table = pa.table({"z": [0], "b": [1], "a": ["x"]})
    assert conform(table, pa.schema([("a", pa.string()), ("b", pa.int64())])).to_pylist() == [{"a": "x", "b": 1}]


def test_missing_and_double_columns_are_named() -> None:
    schema = pa.schema([("a", pa.int64())])
    with pytest.raises(SpecError, match="column 'a' is missing; the input has b"):
        conform(pa.table({"b": [1]}), schema)
    with pytest.raises(SpecError, match="column 'a' is missing; the input has none"):
        conform(pa.table({}), schema)
    with pytest.raises(SpecError, match="column 'a' is there 2 times"):
        conform(pa.Table.from_arrays([pa.array([1])] * 2, ["a", "a"]), schema)


def test_schema_as_text() -> None:
    schema = pa.schema(
        [("k", pa.dictionary(pa.int8(), pa.string())), pa.field("t", pa.timestamp("us", "UTC"), nullable=False)]
    )
    assert text_to_schema(schema_to_text(schema.with_metadata({"pandas": "x" * 1000}))) == schema
    assert len(schema_to_text(schema.with_metadata({"pandas": "x" * 1000}))) < 1000
