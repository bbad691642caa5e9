"""Co-groups: what their function may return, and what is said of it where it may not, or fails."""

import numpy as np
import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.errors import UserFunctionError

LEFT = pa.table({"k": ["a", "b"], "ts": [1, 2], "v": [1.0, 2.0]})
RIGHT = pa.table({"k": ["a", "a"], "ts": [3, 14], "v": [[1], [2, 3]]})
START = fw.key_by("k").event_time("ts")
WINDOW = fw.TumblingEventTimeWindows.of(10)


def fails(key, window, left, right):
    raise KeyError("no")


def test_a_value_that_does_not_suit_names_key_and_window():
    """Of the first such row: others of its window, and windows before it, are good."""
    rows = pa.table({"k": ["a", "b", "a"], "ts": [1, 2, 11]})

    def counted(key, window, left, right):
        yield 1
        yield "many" if key == () or (key, window.start) == ("a", 10) else 2
        yield 3

    stream = fw.co_group(START, START, WINDOW, counted, output="n bigint").open()
    stream.process(rows, rows)
    said = r"counted: for key 'a', TimeWindow\(start=10, end=20\): ValueError: column 'n' is int64: .*many"
    with pytest.raises(UserFunctionError, match=said):
        stream.advance_watermark(99)
    everything = fw.key_by().event_time("ts")
    grouped = fw.co_group(everything, everything, WINDOW, counted, output="n bigint")
    with pytest.raises(UserFunctionError, match=r"counted: for key \(\), TimeWindow"):
        grouped.run(rows, rows)


def test_an_error_of_a_function_names_key_and_window():
    group = fw.co_group(START, START, WINDOW, fails, output="n bigint")
    with pytest.raises(UserFunctionError, match=r"fails: for key 'a', TimeWindow\(start=0, end=10\): KeyError: 'no'"):
        group.run(LEFT, RIGHT)


@pytest.mark.parametrize("returned", [{"n": 1}, (1,), "text", 5])
def test_one_row_is_no_list_of_them(returned):
    group = fw.co_group(START, START, WINDOW, lambda *_: returned, output="n bigint")
    with pytest.raises(
        UserFunctionError, match=r"for key 'a', .*: TypeError: must yield rows, or return a list of them"
    ):
        group.run(LEFT, RIGHT)


@pytest.mark.parametrize("returned", [None, [], (), [1, 2], np.array([1, 2]), iter(()), {1: 1, 2: 2}.keys()])
def test_a_co_group_returns_nothing_or_rows(returned):
    group = fw.co_group(START, START, WINDOW, lambda *_: returned, output="n bigint")
    found = group.run(LEFT.slice(0, 1), RIGHT.slice(0, 1)).main["n"].to_pylist()
    assert found == ([] if returned is None else [1, 2][: len(list(returned))])
