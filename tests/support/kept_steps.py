"""Steps of a stream whose results are rows, beside a naive model, with restores of every kind in between."""

from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

import fastwin as fw
from fastwin.run.planner import Plan
from fastwin.run.replica import open_replica
from fastwin.state.refresh import Refresh
from tests.support.naive import Cumulative, Row, Sliding

__all__ = ["SCHEMA", "follow", "steps", "windows"]

SCHEMA = pa.schema([("k", pa.string()), ("ts", pa.int64()), ("v", pa.float64()), ("id", pa.int64())])
_GROUPS = 3

_elements = st.lists(
    st.tuples(
        st.sampled_from(["a", "a", "a", "b", None]), st.integers(-20, 40), st.sampled_from([None, -1.0, 0.5, 2.0, 3.0])
    ),
    min_size=3,
    max_size=20,
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("batch"), _elements),
        st.tuples(st.just("watermark"), st.integers(-40, 100)),
        st.tuples(st.just("save"), st.booleans()),
    ),
    min_size=4,
    max_size=14,
)
_small = st.integers(1, 40) | st.integers(8, 20)
windows = st.one_of(
    st.builds(
        lambda size, offset: (fw.TumblingEventTimeWindows.of(size, offset % size), Sliding(size, size, offset % size)),
        _small, _small,
    ),
    st.builds(
        lambda size, slide, offset: (
            fw.SlidingEventTimeWindows.of(size, slide, offset % slide), Sliding(size, slide, offset % slide)
        ),
        _small, _small, _small,
    ),
    st.builds(
        lambda step, n, offset: (
            fw.CumulativeEventTimeWindows.of(step * n, step, offset % step), Cumulative(step * n, step, offset % step)
        ),
        st.integers(1, 12), st.integers(1, 5), st.integers(0, 12),
    ),
)  # fmt: skip
"""Windows of fastwin, and of the naive models."""


def follow(plan: Plan, model: Any, steps: list[tuple[str, Any]], end: int = 10_000) -> None:
    """Takes steps with a stream and with the model, and compares what comes of each. end: the last watermark.

    Where the number of rows is odd, all saves are deltas of a log that repeats what has not changed.
    """
    stream = open_replica(plan)
    chunks: list[bytes] = []
    logged = sum(len(what) for kind, what in steps if kind == "batch") % 2 == 1
    count = 0
    for number, (kind, what) in enumerate([*steps, ("watermark", end)]):
        if kind == "batch":
            rows = [Row(count + i, key, time, (value, count + i)) for i, (key, time, value) in enumerate(what)]
            count += len(rows)
            told = [{"k": row.key, "ts": row.time, "v": row.values[0], "id": row.id} for row in rows]
            result = stream.process(pa.Table.from_pylist(told, schema=SCHEMA))
            _compare(result, model.batch(rows))
        elif kind == "watermark":
            _compare(stream.advance_watermark(what), model.advance(what))
        elif logged:
            chunks.append(stream.delta(Refresh(_GROUPS, tuple(range(_GROUPS)), 0)))
            stream = open_replica(plan)
            stream.catch_up(chunks)
        elif what or not chunks:
            chunks = [stream.snapshot()]
        else:
            chunks.append(stream.delta())
            stream = open_replica(plan)
            stream.restore(chunks)
        stream._check_invariants()
        if number % 3 == 1 and stream.metrics.events:
            assert stream.metrics.open_windows == stream.inspect().num_rows
    assert stream.metrics.state_rows == 0


def _compare(result: fw.Result, fed: Any) -> None:
    bounds = [result.main[name].cast(pa.int64()).to_pylist() for name in ("window_start", "window_end")]
    names = [name for name in result.main.column_names if name in ("rank", "v", "id")]
    rows = zip(result.main["k"].to_pylist(), *bounds, *(result.main[name].to_pylist() for name in names), strict=True)
    expected = [(one.key, one.start, one.end, *one.values) for one in fed.emissions]
    assert sorted(map(str, rows)) == sorted(map(str, expected))
    ends = bounds[1]
    assert result.late["id"].to_pylist() == sorted(fed.late) if "id" in result.late.column_names else not fed.late
    assert ends == sorted(ends) or any(emission.timer is None for emission in fed.emissions)
