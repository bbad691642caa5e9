"""Values that functions return: a column takes what it holds whole, and nothing is cut off."""

import datetime
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.operators.general.returned import to_arrays

UTC = datetime.UTC
ROWS = pa.table({"k": ["a"], "ts": pa.array([1], pa.int64())})
BASE = fw.key_by("k").event_time("ts", unit="ms").window(fw.TumblingEventTimeWindows.of(10))
WHEN = datetime.datetime(2024, 1, 1, 12, 30, 15, 123_456)


class Given(fw.ProcessWindowFunction):
    def __init__(self, value: Any) -> None:
        self.value = value

    def process(self, key: Any, context: Any, elements: Any) -> Iterator[Any]:
        context.output("side", {"o": self.value})
        yield {"o": self.value}


class Found(fw.AggregateFunction):
    def __init__(self, value: Any) -> None:
        self.value = value

    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> Any:
        return {"o": self.value}


def specs(kind: pa.DataType, value: Any) -> list[fw.WindowSpec]:
    output = pa.schema([("o", kind)])
    return [
        BASE.side_output("side", output).process(Given(value), output=output),
        BASE.aggregate(Found(value), output=output),
    ]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.date32(), WHEN),
        (pa.date32(), 1.5),
        (pa.timestamp("us"), 5.5),
        (pa.timestamp("s"), WHEN),
        (pa.timestamp("ms", "UTC"), WHEN.replace(tzinfo=UTC)),
        (pa.timestamp("us"), pd.Timestamp(1_700_000_000_000_000_001)),
        (pa.duration("s"), datetime.timedelta(seconds=1.5)),
        (pa.duration("s"), 1.5),
        (pa.duration("s"), Decimal("1.5")),
        (pa.time32("s"), WHEN.time()),
        (pa.list_(pa.int64()), [1, 1.5]),
        (pa.list_(pa.timestamp("s")), [WHEN]),
        (pa.struct([("a", pa.date32())]), {"a": WHEN}),
        (pa.map_(pa.string(), pa.int64()), {"a": np.float32(1.5)}),
        (pa.map_(pa.string(), pa.int64()), [{"key": "a", "value": 1.5}]),
        (pa.list_(pa.int64()), np.array([1.5])),
        (pa.list_(pa.int64()), [float("nan")]),
        (pa.list_(pa.int64()), [float("inf")]),
        (pa.timestamp("ms"), np.datetime64("2024-01-01T00:00:00.000001")),
        (pa.timestamp("ns"), np.datetime64("3000-01-01", "s")),
        (pa.timestamp("ms"), np.timedelta64(5, "ms")),
        (pa.timestamp("ms"), np.datetime64("2024-01-01")),
        (pa.time32("ms"), np.datetime64("2024-01-01T00:00:01")),
        (pa.list_(pa.timestamp("ms")), np.array(["2024-01-01T00:00:00.000001"], "datetime64[us]")),
    ],
    ids=str,
)
def test_nothing_is_cut_off(kind: pa.DataType, value: Any) -> None:
    for spec in specs(kind, value):
        with pytest.raises(fw.UserFunctionError, match="column 'o' is"):
            spec.run(ROWS)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.date32(), datetime.date(2024, 1, 1)),
        (pa.timestamp("s"), WHEN.replace(microsecond=0)),
        (pa.timestamp("ns"), pd.Timestamp(1_700_000_000_000_000_001)),
        (pa.timestamp("us"), datetime.datetime(9999, 12, 31, 23, 59, 59, 999_999)),
        (pa.duration("ms"), datetime.timedelta(seconds=1.5)),
        (pa.time64("us"), WHEN.time()),
        (pa.list_(pa.int64()), [2**60 + 1, 2.0, None]),
        (pa.list_(pa.date32()), [datetime.date(2024, 1, 1), None]),
        (pa.struct([("a", pa.int64()), ("b", pa.float64())]), {"a": 1, "b": 0.5}),
        (pa.map_(pa.string(), pa.int64()), [("a", 1)]),
    ],
    ids=str,
)
def test_what_a_column_holds_is_taken(kind: pa.DataType, value: Any) -> None:
    process, aggregate = (spec.run(ROWS) for spec in specs(kind, value))
    for table in (process.main, process.side["side"], aggregate.main):
        assert table["o"].to_pylist() == [value]


DAY = np.datetime64("2024-01-01")


@pytest.mark.parametrize(
    ("kind", "value", "taken"),
    [
        (pa.timestamp("ms"), 5_000, datetime.datetime(1970, 1, 1, 0, 0, 5)),
        (pa.timestamp("s"), 5, datetime.datetime(1970, 1, 1, 0, 0, 5)),
        (pa.duration("s"), 7_000_000, datetime.timedelta(seconds=7_000_000)),
        (pa.time32("s"), 5, datetime.time(0, 0, 5)),
        (pa.list_(pa.timestamp("ms")), [5_000], [datetime.datetime(1970, 1, 1, 0, 0, 5)]),
        (pa.struct([("a", pa.timestamp("ms"))]), {"a": 5_000}, {"a": datetime.datetime(1970, 1, 1, 0, 0, 5)}),
        (pa.list_(pa.timestamp("ms")), np.array([DAY], "datetime64[ms]"), [datetime.datetime(2024, 1, 1)]),
        (pa.list_(pa.timestamp("ms")), [DAY.astype("datetime64[ms]")], [datetime.datetime(2024, 1, 1)]),
        (pa.timestamp("ms"), pa.scalar(5_000, pa.timestamp("ms")), datetime.datetime(1970, 1, 1, 0, 0, 5)),
        (pa.map_(pa.string(), pa.int64()), pa.scalar([("a", 1)], pa.map_(pa.string(), pa.int64())), [("a", 1)]),
        (pa.timestamp("ms"), DAY.astype("datetime64[h]"), datetime.datetime(2024, 1, 1)),
        (pa.date32(), DAY, datetime.date(2024, 1, 1)),
        (pa.date64(), DAY, datetime.date(2024, 1, 1)),
        (pa.duration("ms"), np.timedelta64(3, "D"), datetime.timedelta(days=3)),
        (pa.duration("ms"), np.timedelta64("NaT"), None),
    ],
    ids=str,
)
def test_numbers_count_in_the_unit_of_their_column(kind: pa.DataType, value: Any, taken: Any) -> None:
    process, aggregate = (spec.run(ROWS) for spec in specs(kind, value))
    for table in (process.main, process.side["side"], aggregate.main):
        assert table["o"].to_pylist() == [taken]


def test_values_of_several_types_are_checked_each() -> None:
    far = pa.scalar(2**45, pa.timestamp("ms"))  # no datetime is so late
    found = to_arrays(
        [[DAY.astype("datetime64[s]"), WHEN.replace(microsecond=0), None, far]],
        pa.schema([("o", pa.timestamp("ms"))]),
        "test",
    )
    assert found[0].cast(pa.int64()).to_pylist() == [1_704_067_200_000, 1_704_112_215_000, None, 2**45]
    with pytest.raises(fw.SpecError, match="would be cut off"):
        to_arrays([[WHEN, far]], pa.schema([("o", pa.timestamp("ms"))]), "test")


@pytest.mark.parametrize("missing", [pd.NaT, pd.NA], ids=str)
@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("us"), pa.duration("s"), pa.int64(), pa.string()], ids=str)
def test_what_pandas_calls_missing_is_null(kind: pa.DataType, missing: Any) -> None:
    """Arrow would make NaT the first day of the year 1."""
    process, aggregate = (spec.run(ROWS) for spec in specs(kind, missing))
    for table in (process.main, process.side["side"], aggregate.main):
        assert table["o"].to_pylist() == [None]
