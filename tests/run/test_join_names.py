"""Names of columns of two inputs that collide: what the rows of a co-group have, and what the state has."""

from typing import Any

import pyarrow as pa

import fastwin as fw

WINDOW = fw.TumblingEventTimeWindows.of(10)
ORDERS = pa.schema([("k", pa.int64()), ("ts", pa.int64()), ("v", pa.string())])


def fields(key: Any, window: fw.TimeWindow, left: list, right: list) -> Any:
    for row in [*left, *right]:
        assert [getattr(row, name) for name in row._fields] == [row[name] for name in row._fields] == list(row)
        assert len(set(row._fields)) == len(row._fields)
        yield (str(row._asdict()),)


def seen(left: pa.Table, right: pa.Table, *keys: str) -> list[str]:
    """What a co-group sees of its inputs, whose event times are ``ts``. keys: of the left and the right input."""
    starts = [fw.key_by(key).event_time("ts", unit="ms") for key in keys]
    join = fw.co_group(*starts, WINDOW, fields, output="told string")
    assert join.open(schemas=(left.schema, right.schema)).why(1).windows == ()
    return join.run(left, right).main["told"].to_pylist()


def test_a_right_column_with_the_name_of_a_key_has_a_suffix_in_rows() -> None:
    left = pa.table({"user": [1], "ts": [1]})
    right = pa.table({"who": [1], "ts": [2], "user": ["other"]})
    assert seen(left, right, "user", "who") == ["{'user': 1, 'ts': 1}", "{'user': 1, 'ts': 2, 'user_right': 'other'}"]
    more = right.append_column("user_right", [["third"]])
    assert seen(left, more, "user", "who")[1] == (
        "{'user': 1, 'ts': 2, 'user_right_right': 'other', 'user_right': 'third'}"
    )
    named = pa.table({"ts": [2], "user_right": ["third"], "who": [1], "user": ["other"]})
    assert seen(left, named, "user", "who")[1] == (
        "{'user': 1, 'ts': 2, 'user_right': 'third', 'user_right_right': 'other'}"
    )


def test_names_that_no_result_of_a_co_group_has_may_collide() -> None:
    left = pa.table({"k": [1], "ts": [1], "v": [5], "v_right": [6], "window_end": [7]})
    right = pa.table({"k": [1], "ts": [2], "v": [8], "window_start": [9], "__side": [0]})
    assert seen(left, right, "k", "k") == [
        "{'k': 1, 'ts': 1, 'v': 5, 'v_right': 6, 'window_end': 7}",
        "{'k': 1, 'ts': 2, 'v': 8, 'window_start': 9, '__side': 0}",
    ]


def test_columns_that_do_not_collide_are_named_in_the_state_as_ever() -> None:
    """The names are in the fingerprint: with others, stored state could not go on."""
    start = fw.key_by("k").event_time("ts", unit="ms")
    join = fw.co_group(start, start, WINDOW, fields, output="told string")
    wide = pa.schema([*ORDERS, ("w", pa.int64())])
    assert join.bind(wide, ORDERS).schema.names == [
        "k", "__side", "__time", "ts", "v", "w", "ts_right", "v_right"
    ]  # fmt: skip
