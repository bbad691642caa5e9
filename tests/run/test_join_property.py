"""Window joins and co-groups answer as a naive model does, with watermarks and lateness of each input, and restores."""

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import fastwin as fw
from tests.support.kept_models import JoinModel
from tests.support.kept_steps import windows
from tests.support.naive import Row

LEFT = pa.schema([("k", pa.string()), ("ts", pa.int64()), ("id", pa.int64())])
RIGHT = pa.schema([("id", pa.int64()), ("key", pa.string()), ("at", pa.timestamp("us"))])
ELEMENTS = st.lists(st.tuples(st.sampled_from(["a", "a", "b", None]), st.integers(-20, 40)), max_size=6)
WATERMARKS = st.integers(-40, 100)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("batch"), ELEMENTS, ELEMENTS),
        st.tuples(st.just("watermark"), st.none() | WATERMARKS, st.none() | WATERMARKS),
        st.tuples(st.just("save"), st.booleans(), st.none()),
    ),
    min_size=4,
    max_size=12,
)
LATENESS = st.sampled_from([0, 5, 30])


def make_ids(key: Any, window: fw.TimeWindow, left: list, right: list) -> Any:
    """The pairs of a full join, by a function."""
    assert [row.k for row in [*left, *right]] == [key] * (len(left) + len(right))
    for one in left or [None]:
        for other in right or [None]:
            yield (None if one is None else one.id, None if other is None else other.id)


def rows_of(result: fw.Result) -> list[str]:
    bounds = [result.main[name].cast(pa.int64()).to_pylist() for name in ("window_start", "window_end")]
    ids = [result.main[name].to_pylist() for name in ("id", "id_right")]
    return sorted(map(str, zip(result.main["k"].to_pylist(), *bounds, *ids, strict=True)))


@given(windows, st.sampled_from(["inner", "left", "right", "full", "group"]), LATENESS, LATENESS, st.booleans(), STEPS)
def test_joins_answer_as_the_naive_model(
    pair: Any, how: Any, late_left: int, late_right: int, coalesce: bool, steps: Any
) -> None:
    left = fw.key_by("k").event_time("ts").allowed_lateness(late_left, coalesce=coalesce).side_output_late_data()
    right = fw.key_by("key").event_time("at").allowed_lateness(late_right).side_output_late_data()
    if how == "group":
        join = fw.co_group(left, right, pair[0], make_ids, output="id bigint, id_right bigint")
    else:
        join = fw.window_join(left, right, pair[0], how)
    model = JoinModel(pair[1], "full" if how == "group" else how, (late_left, late_right), coalesce)
    stream = join.open(schemas=(LEFT, RIGHT))
    chunks: list[bytes] = []
    marks = [-(2**63)] * 2
    count = 0
    for kind, one, other in [*steps, ("watermark", 10_000, 10_000)]:
        if kind == "batch":
            rows = [Row(count + i, key, time, (0,)) for i, (key, time) in enumerate(one)]
            rows += [Row(count + len(one) + i, key, time, (1,)) for i, (key, time) in enumerate(other)]
            count += len(rows)
            tables = [
                pa.Table.from_pylist([{"k": row.key, "ts": row.time, "id": row.id} for row in rows[: len(one)]], LEFT),
                pa.Table.from_pylist(
                    [{"key": row.key, "at": row.time * 1_000, "id": row.id} for row in rows[len(one) :]], RIGHT
                ),
            ]
            result = stream.process(left=tables[0], right=tables[1])
            fired, late = model.batch(rows)
            assert rows_of(result) == sorted(map(str, fired))
            told = [result.side[name]["id"].to_pylist() for name in ("late_left", "late_right")]
            assert told == [[i for i in late if i - count + len(rows) < len(one)],
                            [i for i in late if i - count + len(rows) >= len(one)]]  # fmt: skip
            assert result.side["late_right"].schema.names == RIGHT.names
        elif kind == "watermark":
            marks = [mark if told is None else max(mark, told) for mark, told in zip(marks, (one, other), strict=True)]
            assert rows_of(stream.advance_watermark(left=one, right=other)) == sorted(
                map(str, model.advance(min(marks)))
            )
        else:
            chunks = [stream.snapshot()] if one or not chunks else [*chunks, stream.delta()]
            stream = join.open(schemas=(LEFT, RIGHT))
            stream.restore(chunks)
        stream._check_invariants()
        assert stream.metrics.open_windows == stream.inspect().num_rows
    assert stream.metrics.state_rows == 0
