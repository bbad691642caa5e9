"""Answers about stores of every type of result: as JSON has it."""

import json
from datetime import UTC, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.serve.answers import Answers
from fastwin.serve.params import RequestError
from fastwin.serve.plain import plain
from fastwin.store import PaneStore
from tests.support.clicks import FIRST, MINUTE, spec_of

TIMES = pa.timestamp("us", tz="UTC")
NEW_YEAR = datetime(2024, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([1.5, float("nan"), float("-inf"), None], pa.float32(), [1.5, None, None, None]),
        ([np.float16(1.5), np.float16("nan"), None], pa.float16(), [1.5, None, None]),
        ([b"\xff", None], pa.large_binary(), ["ff", None]),
        ([b"\xff\x00"], pa.binary(2), ["ff00"]),
        ([Decimal("1.50")], pa.decimal256(40, 2), ["1.50"]),
        ([[1, None], [], None], pa.list_(pa.int64()), [[1, None], [], None]),
        ([[NEW_YEAR]], pa.large_list(TIMES), [[FIRST]]),
        ([[1, 2], None], pa.list_(pa.int8(), 2), [[1, 2], None]),
        (
            [{"value": float("nan"), "count": 2}, None],
            pa.struct([("value", pa.float64()), ("count", pa.int64())]),
            [{"value": None, "count": 2}, None],
        ),
        ([[("a", b"\x01")], None], pa.map_(pa.string(), pa.binary()), [[{"key": "a", "value": "01"}], None]),
        ([{}, None], pa.struct([]), [{}, None]),
        ([None], pa.null(), [None]),
        ([0, -1, 10**14, None], pa.duration("s"), ["0:00:00", "-1 day, 23:59:59", "1157407407 days, 9:46:40", None]),
        ([90_061_500, 500], pa.duration("ms"), ["1 day, 1:01:01.500000", "0:00:00.500000"]),
        ([-1_500], pa.duration("us"), ["-1 day, 23:59:59.998500"]),
        ([1, 10**9, 1_000], pa.duration("ns"), ["0:00:00.000000001", "0:00:01", "0:00:00.000001"]),
    ],
)
def test_values(values, kind, expected):
    column = pa.array(values, kind)
    assert plain(column) == expected
    assert plain(pa.concat_arrays([column, column, column])[len(values) : 2 * len(values)]) == expected
    assert plain(pa.chunked_array([column, column])) == 2 * expected
    assert plain(pa.chunked_array([], kind)) == []


def test_aggregates_of_several_values(tmp_path):
    """None of them has an order; those beside them have."""
    spec = spec_of(
        "1 hour",
        "3 minutes",
        top=fw.TopK("user", 2),
        all=fw.Collect("user"),
        some=fw.Largest("user", 2),
        pv=fw.Count(),
    )
    at = pa.array([FIRST, FIRST + 1, FIRST + 2, FIRST + 2], pa.timestamp("ms", tz="UTC"))
    table = pa.table({"module": ["a", "a", "a", "b"], "ts": at, "user": [7, 7, 5, 1]})
    url = f"rocksdb:{tmp_path / 'store'}"
    with PaneStore.open(url, spec) as store:
        store.put(spec.panes().run(table).main)
    answers = Answers(lambda: PaneStore.open(url, read_only=True))
    a = {"key": "a", "top": [{"value": 7, "count": 2}, {"value": 5, "count": 1}], "all": [7, 7, 5], "some": [7, 7]}
    b = {"key": "b", "top": [{"value": 1, "count": 1}], "all": [1], "some": [1], "pv": 1}
    assert json.loads(answers.current({}))["rows"] == [a | {"pv": 3}, b]
    assert json.loads(answers.current({"sort": ["pv"]}))["rows"] == [a | {"pv": 3}, b]
    with pytest.raises(RequestError, match="sort: must be one of pv, got 'top'"):
        answers.current({"sort": ["top"]})
    series = json.loads(answers.series({"key": ["a"], "range": ["6 min"], "end": [str(FIRST + 3 * MINUTE)]}))
    assert series["series"] == [
        {"key": "a", "top": [None, a["top"]], "all": [None, a["all"]], "some": [None, [7, 7]], "pv": [None, 3]}
    ]
    answers.close()


def test_text_that_is_no_utf8_is_answered(tmp_path):
    spec = spec_of("1 hour", "3 minutes", high=fw.Max("city"), last=fw.Last("city"), all=fw.Collect("city"))
    city = pa.array([b"a", b"\xff", b"b"], pa.binary()).view(pa.string())
    table = pa.table({"module": ["a", "a", "b"], "ts": pa.array([NEW_YEAR] * 3, TIMES), "city": city})
    url = f"rocksdb:{tmp_path / 'store'}"
    with PaneStore.open(url, spec) as store, pytest.warns(UserWarning, match="text in UTF-8"):
        store.put(spec.panes().run(table).main)
    answers = Answers(lambda: PaneStore.open(url, read_only=True))
    a = {"key": "a", "high": "\ufffd", "last": "\ufffd", "all": ["a", "\ufffd"]}
    assert json.loads(answers.current({}))["rows"] == [a, {"key": "b", "high": "b", "last": "b", "all": ["b"]}]
    (line,) = json.loads(answers.series({"key": ["a"], "range": ["3 min"]}))["series"]
    assert line == {name: value if name == "key" else [value] for name, value in a.items()}
    answers.close()


def test_halves_are_sorted_as_numbers(tmp_path):
    spec = spec_of("1 hour", "3 minutes", high=fw.Max("v"), low=fw.Min("v"))
    values = pa.array(np.array([1.5, 10, np.nan], np.float16))
    table = pa.table({"module": ["a", "b", "c"], "ts": pa.array([NEW_YEAR] * 3, TIMES), "v": values})
    url = f"rocksdb:{tmp_path / 'store'}"
    with PaneStore.open(url, spec) as store:
        store.put(spec.panes().run(table).main)
    answers = Answers(lambda: PaneStore.open(url, read_only=True))
    rows = json.loads(answers.current({"sort": ["low"]}))["rows"]
    assert [(row["key"], row["low"]) for row in rows] == [("b", 10.0), ("a", 1.5), ("c", None)]
    answers.close()
