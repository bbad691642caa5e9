"""Lists and structs in First, Last, ArgMin, ArgMax and Collect, through states; others refuse them."""

from typing import Any

import pyarrow as pa
import pytest

import fastwin as fw
from tests.support.one_window import OPERATORS, run

STRUCT = pa.struct([("x", pa.int64()), ("tags", pa.list_(pa.string()))])
POINTS = [
    {"x": 1, "tags": ["a"]},
    None,
    {"x": None, "tags": None},
    {"x": 4, "tags": ["", None]},
    {"x": 5, "tags": []},
]
LISTS = [[1, 2], None, [], [None], [5]]
TABLE = pa.table({
    "k": ["a"] * 5,
    "ts": pa.array([3, 1, 2, 5, 4], pa.int64()),
    "by": pa.array([1, 9, 7, None, 2], pa.int64()),
    "point": pa.array(POINTS, STRUCT),
    "list": pa.array(LISTS, pa.list_(pa.int32())),
    "map": pa.array([[("a", 1)], None, [], [("b", None)], [("c", 3)]], pa.map_(pa.string(), pa.int64())),
})  # fmt: skip


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize(("column", "values"), [("point", POINTS), ("list", LISTS)])
def test_values_are_given_back(operator: str, column: str, values: list) -> None:
    found = run(
        TABLE,
        operator,
        first=fw.First(column),
        null=fw.First(column, ignore_nulls=False),
        last=fw.Last(column),
        arrived=fw.FirstArrived(column),
        least=fw.ArgMin(column, "by"),
        most=fw.ArgMax(column, "by"),
        all=fw.Collect(column),
        two=fw.Collect(column, limit=2),
    )
    assert found["first"] == values[2]
    assert found["null"] is None
    assert found["last"] == values[3]
    assert found["arrived"] == values[0]
    assert found["least"] == values[0]
    assert found["most"] == values[2]
    assert found["all"] == [values[2], values[0], values[4], values[3]]
    assert found["two"] == [values[2], values[0]]


def test_types_are_those_of_the_columns_and_over_no_value_null() -> None:
    keyed = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of(10))
    spec = keyed.aggregate(a=fw.Last("point"), b=fw.Last("map"), c=fw.Collect("list"), d=fw.Last("list", where="no"))
    main = spec.run(TABLE.append_column("no", pa.array([False] * 5))).main
    assert main.schema.field("a").type == STRUCT
    assert main.schema.field("b").type == TABLE["map"].type
    assert main.schema.field("c").type == pa.list_(pa.list_(pa.int32()))
    assert main["b"].to_pylist() == [[("b", None)]]
    assert main["d"].to_pylist() == [None]


def test_dictionaries_within_are_decoded() -> None:
    kind = pa.struct([("page", pa.dictionary(pa.int8(), pa.string()))])
    page = pa.StructArray.from_arrays(
        [pa.array(["/", "/buy"]).dictionary_encode().cast(kind[0].type)], fields=list(kind)
    )
    table = pa.table({"k": ["a", "a"], "ts": [1, 2], "page": page})
    spec = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of(10)).aggregate(last=fw.Last("page"))
    assert spec.run(table).main["last"].to_pylist() == [{"page": "/buy"}]


def test_state_holds_them() -> None:
    spec = fw.key_by("k").event_time("ts").window(fw.SlidingEventTimeWindows.of(10, 5)).allowed_lateness(10)
    spec = spec.aggregate(last=fw.Last("point"), all=fw.Collect("list"))
    stream = spec.open()
    stream.process(TABLE.slice(0, 3))
    chunks = [stream.snapshot()]
    again = spec.open()
    again.restore(chunks)
    again.process(TABLE.slice(3))
    chunks.append(again.delta())
    last = spec.open()
    last.restore(chunks)
    main = last.advance_watermark(100).main
    assert main.equals(spec.run(TABLE).main)


@pytest.mark.parametrize(
    ("aggregate", "said"),
    [
        (fw.ArgMax("by", "point"), "one of values that can be compared, but column 'point' is struct"),
        (fw.CollectSet("list"), "but column 'list' is list"),
        (fw.CountDistinct("point"), "but column 'point' is struct"),
        (fw.Max("list"), "but column 'list' is list"),
    ],
)
def test_what_compares_refuses_them(aggregate: Any, said: str) -> None:
    with pytest.raises(fw.SpecError, match=said):
        run(TABLE, out=aggregate)
