"""Rows come in order of their ends, those of empty windows first, as a stable sort of all of them has it."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastwin as fw

WINDOWS = [
    fw.TumblingEventTimeWindows.of(10),
    fw.SlidingEventTimeWindows.of(20, 10),
    fw.SlidingEventTimeWindows.of(4, 10, 3),
    fw.SlidingEventTimeWindows.of(25, 10, 7),
    fw.CumulativeEventTimeWindows.of(30, 10, 5),
]
LONGEST = 200
KEYS: dict[str, pa.DataType] = {"int": pa.int64(), "text": pa.string()}
AGGREGATES = {
    "n": fw.Count(), "s": fw.Sum("v"), "all": fw.Collect("v"), "texts": fw.StringAgg("text"), "last": fw.Last("flag"),
    "mean": fw.Mean("v"), "small": fw.Last("small"), "at": fw.Max("at"), "exact": fw.Last("exact"),
}  # fmt: skip
EMPTY = dict.fromkeys(AGGREGATES) | {"n": 0, "all": []}


def table(rows: list[tuple[int | None, int]], kind: pa.DataType) -> pa.Table:
    n = len(rows)
    keys = [None if key is None else key * 100 for key, _ in rows]
    return pa.table(
        {
            "k": pa.array(keys, pa.int64()).cast(kind),
            "ts": pa.array([time for _, time in rows], pa.int64()),
            "v": pa.array([None if i % 5 == 0 else i for i in range(n)], pa.int64()),
            "text": pa.array(["ab" * (i % 3) for i in range(n)], pa.string()),
            "flag": pa.array([i % 2 == 0 for i in range(n)], pa.bool_()),
            "small": pa.array([i % 100 for i in range(n)], pa.int8()),
            "at": pa.array(range(n), pa.timestamp("us")),
            "exact": pa.array(range(n), pa.decimal128(9, 2)),
        }
    )


def rows_of(main: pa.Table) -> list[tuple[int, dict[str, Any]]]:
    """The end of each row, and all that it holds."""
    ends = main["window_end"].cast(pa.int64()).to_pylist()
    return list(zip(ends, main.to_pylist(), strict=True))


class Filler:
    """Knows where each key's last window has ended, and how long windows are that end at each time."""

    def __init__(self) -> None:
        self.last: dict[Any, int] = {}

    def fill(self, plain: pa.Table, bounds: dict[int, dict]) -> list[dict[str, Any]]:
        """Returns the results of one call with the rows of empty windows."""
        empty, fired = [], rows_of(plain)
        for end, row in fired:
            last = self.last.get(row["k"], end)
            if end - last <= LONGEST:
                empty += [(at, {"k": row["k"]} | bounds[at] | EMPTY) for at in range(last + 10, end, 10)]
            self.last[row["k"]] = end
        return [row for _, row in sorted(empty + fired, key=lambda one: one[0])]


def bounds_of(windows: fw.WindowAssigner) -> dict[int, dict[str, Any]]:
    """Start and end of each window, by its end."""
    many = table([(1, time) for time in range(-400, 1_000)], pa.int64())
    main = fw.key_by("k").event_time("ts").window(windows).aggregate(n=fw.Count()).run(many).main
    return {end: {name: row[name] for name in ("window_start", "window_end")} for end, row in rows_of(main)}


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("windows", WINDOWS, ids=str)
@given(
    st.lists(st.tuples(st.sampled_from([1, 2, 3, None]), st.integers(-50, 600)), max_size=40),
    st.lists(st.integers(-50, 650), max_size=4),
)
def test_empty_windows_come_before_others_of_their_end(
    windows: fw.WindowAssigner, key: str, elements: list[tuple[int | None, int]], watermarks: list[int]
) -> None:
    kind = KEYS[key]
    by_key = fw.key_by("k").event_time("ts")
    plain = by_key.window(windows).aggregate(**AGGREGATES).open()
    filled = by_key.window(windows, fill="empty", longest_gap=LONGEST).aggregate(**AGGREGATES).open()
    filler, bounds, counted = Filler(), bounds_of(windows), 0
    for stream in (plain, filled):
        stream.process(table(elements, kind))
    for watermark in [*sorted(watermarks), 10_000]:
        without, found = plain.advance_watermark(watermark).main, filled.advance_watermark(watermark).main
        assert found.schema == without.schema
        found.validate(full=True)
        assert found.to_pylist() == filler.fill(without, bounds)
        counted += len(found)
    assert filled.metrics.fired == counted


def test_many_keys_far_apart_in_time_have_rows_for_their_own_gaps_alone() -> None:
    """Two ends of a gap each, and years between the keys: what is in between takes no room."""
    year, n = 31_536_000_000, 50
    times = np.concatenate([np.arange(n) * year * 7, np.arange(n) * year * 7 + 35])
    rows = pa.table({"k": np.tile(np.arange(n), 2), "ts": times})
    spec = fw.key_by("k").event_time("ts", unit="ms").window(fw.TumblingEventTimeWindows.of(10), fill="empty")
    main = spec.aggregate(n=fw.Count()).run(rows).main
    assert main["n"].to_pylist() == [1, 0, 0, 1] * n
    assert main["k"].to_pylist() == np.repeat(np.arange(n), 4).tolist()
