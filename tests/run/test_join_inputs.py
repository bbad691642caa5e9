"""The columns of a join's inputs: first calls that tell no types, and errors that name the input."""

from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.errors import SpecError

ORDERS = pa.table({"k": [1, 2], "ts": [1, 2], "v": ["x", "y"]})
PAID = pa.table({"id": [1], "at": [3], "w": ["z"]})
WINDOW = fw.TumblingEventTimeWindows.of(10)
ORDER, PAYMENT = fw.key_by("k").event_time("ts", unit="ms"), fw.key_by("id").event_time("at", unit="ms")
JOIN = fw.window_join(ORDER, PAYMENT, WINDOW)
UNTOLD: dict[str, Any] = {
    "pandas, of lists": pd.DataFrame({"id": [], "at": [], "w": []}),
    "pandas, of names": pd.DataFrame(columns=["id", "at", "w"]),
    "polars": pl.DataFrame(schema=["id", "at", "w"]),
    "nulls": PAID.slice(1).set_column(0, "id", pa.nulls(0)),
    "nulls that are no key": PAID.slice(1).set_column(2, "w", pa.nulls(0)),
}


def test_a_result_before_the_columns_are_known_has_all_outputs() -> None:
    left, nothing = ORDER.side_output_late_data(), UNTOLD["polars"]
    for join, last in (
        (fw.window_join(left, PAYMENT, WINDOW), []),
        (fw.co_group(left, PAYMENT, WINDOW, lambda *_: [], output="n bigint"), ["n"]),
    ):
        stream = join.open()
        for result in (stream.advance_watermark(5), stream.process(ORDERS.slice(2), nothing)):
            assert {tag: table.num_rows for tag, table in result.side.items()} == {"late_left": 0}
            assert result.main.column_names == ["k", "window_start", "window_end", *last]


@pytest.mark.parametrize("name", UNTOLD)
def test_a_first_table_without_rows_and_types_tells_no_columns(name: str) -> None:
    frame, swapped = UNTOLD[name], fw.window_join(PAYMENT, ORDER, WINDOW)
    for join, tables, side in ((JOIN, (ORDERS, frame), "right"), (swapped, (frame, ORDERS), "left")):
        stream = join.open()
        with pytest.raises(SpecError) as caught:
            stream.process(*tables)
        assert str(caught.value) == (
            f"process: {side}: the table has no rows and does not tell the types of its columns, which the first call "
            "needs; open(schemas=(left, right)) tells them"
        )
    stream = JOIN.open(schemas=(ORDERS.schema, PAID.schema))
    stream.process(ORDERS, frame)
    stream.process(right=PAID)
    assert stream.advance_watermark(9).main["w"].to_pylist() == ["z"]


@pytest.mark.parametrize("name", UNTOLD)
def test_first_calls_without_any_row_wait_for_types(name: str) -> None:
    stream = JOIN.open()
    for _ in range(2):
        result = stream.process(ORDERS.slice(2), UNTOLD[name])
        assert (result.main.num_rows, result.side) == (0, {})
    assert stream.metrics.events == 0
    stream.process(ORDERS, PAID)
    assert stream.advance_watermark(9).main.num_rows == 1


def test_nulls_in_all_rows_of_a_first_call_tell_of_schemas() -> None:
    stream = JOIN.open()
    stream.process(ORDERS, PAID.set_column(2, "w", pa.nulls(1)))
    with pytest.raises(
        SpecError, match=r"^process: right: column 'w' was null, .*of joins open\(schemas=\.\.\.\), names"
    ):
        stream.process(right=PAID)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: JOIN.open().process(ORDERS, 5), "process: right: table: must be a pyarrow Table"),
        (lambda: JOIN.open().process("x", PAID), "process: left: table: must be a pyarrow Table"),
        (
            lambda: JOIN.open().process(ORDERS, pd.DataFrame({"id": []})),
            "process: right: column 'at' is missing; the input has id",
        ),
        (
            lambda: JOIN.open(schemas=(ORDERS.schema, PAID.schema)).process(right=PAID.drop_columns(["w"])),
            "process: right: column 'w' is missing; the input has id, at",
        ),
        (
            lambda: JOIN.open(schemas=(ORDERS.schema, PAID.schema)).process(ORDERS.set_column(2, "v", pa.array([1, 2]))),
            "process: left: column 'v' was string, and is int64 now: text is not parsed, and nothing is made text",
        ),
        (
            lambda: JOIN.open(schemas=ORDERS.schema),
            "schemas: must be a pair, of the left and the right input, got Schema",
        ),
        (
            lambda: JOIN.open(schemas=(ORDERS.schema,)),
            "schemas: must be a pair, of the left and the right input, got 1 of them",
        ),
        (lambda: JOIN.open(schemas=("k bigint", PAID.schema)), "schemas: must be pyarrow.Schema, got str"),
    ],
)  # fmt: skip
def test_errors_say_which_input_they_are_about(call: Any, said: str) -> None:
    with pytest.raises(SpecError) as caught:
        call()
    assert str(caught.value).startswith(said)
