"""Side outputs: rows as they were when user code put them there, and what becomes of rows that do not suit."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import fastwin as fw

BASE = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of(10))
ROWS = pa.table({"k": ["a", "b"], "ts": [1, 12], "v": [1, 2]})


class Puts(fw.ProcessWindowFunction):
    """Puts something into side outputs at each firing, and something else when a window goes."""

    def __init__(self, firing: Callable[[Any, Any], Any], going: Callable[[Any], Any] = lambda context: None) -> None:
        self.firing, self.going = firing, going

    def process(self, key, context, elements):
        self.firing(context, elements)
        return [(len(elements),)]

    def clear(self, context):
        self.going(context)


def spec_of(schema: str, *does: Any) -> fw.WindowSpec:
    return BASE.side_output("x", schema).process(Puts(*does), output="n bigint")


def for_b(row: Any) -> Callable[..., None]:
    """Puts a row about key b, and good ones about others."""
    return lambda context, elements=(): context.output("x", row if context.window.start == 10 else (1, "one"))


def later(does: Callable[[Any], Any]) -> tuple[Callable[..., None], Callable[..., Any]]:
    return (lambda context, elements: None), does


REFUSED = [
    ({"a": 1}, "SpecError: side output 'x': the row {'a': 1} has no b"),
    ({"a": 1, "b": "", "c": 2}, "SpecError: side output 'x': the row .* has c; its columns are a, b"),
    ((1, "", 2), "SpecError: side output 'x': must give a tuple or dict with a, b"),
    ((1.5, "no"), "ValueError: side output 'x': column 'a' is int64: Float value 1.500000 was truncated"),
    (({"nope": 1}, "no"), "ValueError: side output 'x': column 'a' is int64: Could not convert"),
]


@pytest.mark.parametrize(("row", "says"), REFUSED)
@pytest.mark.parametrize(
    ("function", "does"),
    [("process", lambda put: (put,)), ("clear", later)],
    ids=["process", "clear"],
)
def test_a_row_that_does_not_suit_is_an_error_of_its_function(row: Any, says: str, function: str, does: Any) -> None:
    stream = spec_of("a bigint, b string", *does(for_b(row))).open(schema=ROWS.schema)
    stream.process(ROWS)
    saved = stream.snapshot()
    with pytest.raises(
        fw.UserFunctionError, match=rf"^Puts.{function}: for key 'b', TimeWindow\(start=10, end=20\): {says}"
    ):
        stream.advance_watermark(19)
    for call in (stream.snapshot, lambda: stream.process(ROWS), lambda: stream.advance_watermark(50)):
        with pytest.raises(fw.StateError, match="failed in the middle of a batch"):
            call()
    stream.restore(saved)
    result = stream.advance_watermark(9)
    assert (result.main.num_rows, result.side["x"].to_pylist()) == (1, [{"a": 1, "b": "one"}])


def test_a_value_that_does_not_suit_fails_pushes_too() -> None:
    spec = BASE.trigger(fw.CountTrigger.of(2)).side_output("x", "a bigint")
    stream = spec.process(Puts(lambda context, elements: context.output("x", {"nope": 1})), output="n bigint").open()
    row = {"k": "a", "ts": 1, "v": 1}
    stream.push(row)
    with pytest.raises(fw.UserFunctionError, match=r"Puts.process: for key 'a', .* column 'a' is int64"):
        stream.push(row)
    with pytest.raises(fw.StateError, match="failed in the middle of a batch"):
        stream.push(row)


def test_user_code_may_catch_what_is_refused_at_once() -> None:
    def put(context: Any, elements: Any) -> None:
        with pytest.raises(fw.SpecError, match=r"the row {'b': 1} has no a"):
            context.output("x", {"b": 1})
        with pytest.raises(fw.SpecError, match=r"there is no side output 'y'; declared are 'x'"):
            context.output("y", (1,))
        context.output("x", {"a": 1, "c": 2})

    result = spec_of("a int, c int", put).run(ROWS)
    assert result.side["x"].to_pylist() == [{"a": 1, "c": 2}] * 2


@pytest.mark.parametrize(
    ("schema", "used"),
    [("a bigint", {"a": 0}), ("a bigint, b bigint", {"a": 0, "b": 0}), ("a bigint, b bigint", [0, 0])],
    ids=["dict", "dict of several", "list"],
)
def test_a_row_that_is_used_again_goes_out_as_it_was(schema: str, used: Any) -> None:
    def put(context: Any, elements: Any) -> None:
        for value in (1, 2, 3):
            for place in list(used) if isinstance(used, dict) else range(2):
                used[place] = value
            context.output("x", used)

    side = spec_of(schema, put).run(ROWS.slice(0, 1)).side["x"]
    assert [column.to_pylist() for column in side.columns] == [[1, 2, 3]] * len(used)


def test_rows_of_several_calls_and_outputs_stay_apart() -> None:
    def put(context: Any, elements: Any) -> None:
        context.output("x", (context.window.start,))
        context.output("y", {"text": str(context.window.start)})

    spec = BASE.side_output("x", "start bigint").side_output("y", "text string")
    stream = spec.process(Puts(put, lambda context: context.output("x", (-1,))), output="n bigint").open()
    assert stream.process(ROWS).side["x"].num_rows == 0
    for watermark, start in ((9, 0), (19, 10)):
        side = stream.advance_watermark(watermark).side
        assert (side["x"]["start"].to_pylist(), side["y"]["text"].to_pylist()) == ([start, -1], [str(start)])
    assert {tag: found.num_rows for tag, found in stream.advance_watermark(30).side.items()} == {"x": 0, "y": 0}
