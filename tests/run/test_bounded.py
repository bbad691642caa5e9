"""Bounded runs, and what tables they take."""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import fastwin as fw
from fastwin.operators.aligned.groups import GroupsOperator
from fastwin.run import bounded
from fastwin.run.stream import open_plan
from tests.support.streams import BASE, COUNT, SUM, rows, table


def test_run_ends_time() -> None:
    spec = BASE.allowed_lateness("1 day").side_output_late_data().bad_rows("divert").aggregate(n=fw.Count())
    result = spec.run(table(("a", 1_000, 1), ("a", -1_000, 1), ("a", None, 1)))
    assert rows(result) == [("a", -1_000, -990, 1), ("a", 1_000, 1_010, 1)]
    assert (result.late.num_rows, result.bad.num_rows) == (0, 1)


@pytest.mark.parametrize(
    "spec",
    [
        COUNT,
        BASE.window(fw.SlidingEventTimeWindows.of(20, 5)).aggregate(n=fw.Count()),
        BASE.window(fw.EventTimeSessionWindows.with_gap(5)).aggregate(n=fw.Count()),
    ],
)
def test_empty_input_gives_an_empty_result(spec: fw.WindowSpec) -> None:
    for empty in (
        table(names="kt"),
        table(names="kt").to_batches()[0]
        if table(names="kt").to_batches()
        else pa.RecordBatch.from_pydict({"k": pa.array([], pa.string()), "t": pa.array([], pa.int64())}),
    ):
        result = spec.run(empty)
        assert result.main.num_rows == result.late.num_rows == result.bad.num_rows == 0
        assert result.main.schema == fw.plan(spec, table(names="kt").schema).main_schema
    typed = pd.DataFrame({"k": pd.Series([], dtype="string"), "t": pd.Series([], dtype="datetime64[ms]")})
    assert spec.run(typed).main.num_rows == 0
    assert spec.run(pl.DataFrame({"k": [], "t": []})).main.num_rows == 0
    # pandas makes up types for columns without values; they bind nothing.
    for untyped in (pd.DataFrame({"k": [], "t": []}), pd.DataFrame(columns=["k", "t"])):
        result = spec.run(untyped)
        assert result.main.num_rows == 0
        assert result.main.column_names == ["k", "window_start", "window_end", "n"]
        stream = spec.open()
        assert stream.process(untyped).main.num_rows == 0
        assert stream.process(table(names="kt")).main.num_rows == 0
    with pytest.raises(fw.SpecError, match="column 't' is missing; the input has k"):
        spec.run(pd.DataFrame({"k": []}))
    with pytest.raises(fw.SpecError, match="event_time: column 't' must be a timestamp or int64 milliseconds, got"):
        spec.run(pd.DataFrame({"k": ["a"], "t": [1.5]}))


def test_before_the_first_batch_results_have_their_columns() -> None:
    spec = BASE.aggregate(n=fw.Count(), s=fw.Sum("v"))
    stream = spec.open()
    main = stream.advance_watermark(5).main
    assert main.column_names == ["k", "window_start", "window_end", "n", "s"]
    assert main.schema.field("window_end").type == pa.timestamp("ms", "UTC")
    later = stream.process(table(names="ktv")).main
    assert pa.concat_tables([main, later], promote_options="default").column_names == main.column_names
    panes = spec.with_pane_info().open().advance_watermark(5).main
    assert panes.column_names[-3:] == ["pane_index", "pane_timing", "pane_is_last"]


def test_all_inputs_give_the_same() -> None:
    frame = pa.table(
        {"k": ["a", None, "a", "b"], "t": pa.array([1, 2, 3, 14], pa.timestamp("ms")), "v": [1, 2, None, 4]}
    )
    spec = BASE.aggregate(n=fw.Count(), s=fw.Sum("v"))
    wanted = sorted(rows(spec.run(frame)), key=repr)
    inputs = [
        frame.to_batches()[0],
        frame.to_pandas(),
        pl.from_arrow(frame),
        pa.concat_tables([frame[:1], frame[:0], frame[1:]]),
        frame.to_pandas().convert_dtypes(),
    ]
    for data in inputs:
        assert sorted(rows(spec.run(data)), key=repr) == wanted


def test_polars_text_and_categories_as_keys_and_late_rows() -> None:
    frame = pl.DataFrame(
        {
            "k": ["a", None, "a longer text than twelve"],
            "c": pl.Series(["x", "y", None], dtype=pl.Categorical),
            "t": [1, 100, 2],
            "l": [["x"], [], None],
        }
    )
    spec = (
        fw.key_by("k", "c")
        .event_time("t")
        .window(fw.TumblingEventTimeWindows.of(10))
        .side_output_late_data()
        .bad_rows("divert")
        .aggregate(n=fw.Count("c"))
    )
    stream = spec.open()
    stream.advance_watermark(50)
    result = stream.process(frame)
    assert result.late["k"].to_pylist() == ["a", "a longer text than twelve"]
    assert result.late["l"].to_pylist() == [["x"], None]
    result.late.validate(full=True)
    bad = stream.process(frame.with_columns(t=pl.lit(None, pl.Int64))).bad
    bad.validate(full=True)
    assert bad["c"].to_pylist() == ["x", "y", None]
    assert rows(stream.advance_watermark(fw.MAX_TIMESTAMP)) == [(None, "y", 100, 110, 1)]


def test_later_batches_may_have_other_harmless_types() -> None:
    stream = SUM.open()
    stream.process(table(("a", 1, 1)))
    stream.process(pl.DataFrame({"v": [2.0], "k": ["a"], "t": [2], "extra": [None]}))
    stream.process(pd.DataFrame({"k": [], "t": [], "v": []}))
    stream.process(
        pa.table({"k": pa.array(["a"], pa.large_string()), "t": pa.array([3], pa.int64()), "v": pa.nulls(1)})
    )
    assert rows(stream.advance_watermark(9)) == [("a", 0, 10, 3)]


def test_key_that_is_the_event_time() -> None:
    spec = (
        fw.key_by("t")
        .event_time("t")
        .window(fw.TumblingEventTimeWindows.of(10))
        .aggregate(n=fw.Count(), t2=fw.Max("t"))
    )
    assert rows(spec.run(pa.table({"t": [5, 5, 6]}))) == [(5, 0, 10, 2, 5), (6, 0, 10, 1, 6)]


def test_global_key() -> None:
    spec = fw.key_by().event_time("t").window(fw.TumblingEventTimeWindows.of(10)).aggregate(n=fw.Count())
    assert rows(spec.run(table(("a", 1, 1), ("b", 2, 1)))) == [(0, 10, 2)]


@pytest.mark.parametrize("piece, whole", [(1, 0), (2, 0), (3, 0), (1, 3)])
@pytest.mark.parametrize("second, sessions", [(9, 1), (10, 1), (11, 2)])
def test_session_that_a_later_piece_of_a_run_touches(
    monkeypatch: pytest.MonkeyPatch, piece: int, whole: int, second: int, sessions: int
) -> None:
    monkeypatch.setattr(bounded, "_CACHED_ROWS", piece)
    monkeypatch.setattr(bounded, "_WHOLE_ROWS", whole)
    spec = fw.key_by("k").event_time("t").window(fw.EventTimeSessionWindows.with_gap(10)).aggregate(n=fw.Count())
    table = pa.table({"k": ["a", "b", "a"], "t": pa.array([0, second, second], pa.int64())})
    assert spec.run(table).main.filter(pc.equal(pc.field("k"), "a")).num_rows == sessions


@pytest.mark.parametrize("limit", ["_WHOLE_ROWS", "_WHOLE_BYTES", None])
def test_sessions_of_many_chunks(monkeypatch: pytest.MonkeyPatch, limit: str | None) -> None:
    """Put together or not, of the columns that are needed: the others may be of any size."""
    monkeypatch.setattr(
        "fastwin.columns.tables._SMALL_BATCH", 1
    )  # such small chunks would have been put together before
    if limit:
        monkeypatch.setattr(bounded, limit, 20)
    random = np.random.default_rng(1)
    columns = {
        "k": pa.array(random.integers(0, 3, 60)).cast(pa.string()),
        "note": pa.array(["x"] * 60),
        "t": pa.array(random.integers(0, 600, 60)),
        "v": pa.array(random.integers(0, 9, 60)),
    }
    whole = pa.table(columns)
    chunks = pa.concat_tables([whole.slice(at, 7) for at in range(0, 60, 7)])
    spec = fw.key_by("k").event_time("t").window(fw.EventTimeSessionWindows.with_gap(10)).side_output_late_data()
    spec = spec.bad_rows("divert").aggregate(n=fw.Count(), first=fw.First("k"), v=fw.Last("v"))
    assert chunks.column(0).num_chunks == 9
    order = [("window_end", "ascending"), ("k", "ascending")]
    assert spec.run(chunks).main.sort_by(order).equals(spec.run(whole).main.sort_by(order))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("assigner", [fw.TumblingEventTimeWindows.of(10), fw.EventTimeSessionWindows.with_gap(10)])
def test_bad_row_of_a_later_chunk(monkeypatch: pytest.MonkeyPatch, assigner: fw.WindowAssigner, threads: int) -> None:
    monkeypatch.setattr("fastwin.columns.tables._SMALL_BATCH", 1)
    monkeypatch.setattr("fastwin.run.threads._FEW_ROWS", 1)
    columns = {"k": pa.array([1] * 10), "t": pa.array([*range(9), None], pa.int64())}
    table = pa.concat_tables([pa.table(columns).slice(0, 6), pa.table(columns).slice(6)])
    spec = fw.key_by("k").event_time("t").window(assigner).aggregate(n=fw.Count())
    with pytest.raises(fw.BadRowError, match=r"null timestamp in row 9 .*; 1 of 4 rows from row 6 on are bad"):
        spec.run(table, threads=threads)


@pytest.mark.parametrize("divided", [False, True])
@pytest.mark.parametrize(
    "assigner",
    [
        fw.TumblingEventTimeWindows.of(10),
        fw.SlidingEventTimeWindows.of(20, 10),
        fw.SlidingEventTimeWindows.of(10, 20),
        fw.EventTimeSessionWindows.with_gap(10),
    ],
)
def test_bounded_stream_counts_as_any_other(
    monkeypatch: pytest.MonkeyPatch, assigner: fw.WindowAssigner, divided: bool
) -> None:
    monkeypatch.setattr(bounded, "is_divided", lambda plan, parts: divided and plan.operator == GroupsOperator.name)
    random = np.random.default_rng(2)
    data = pa.table({"k": random.integers(0, 50, 3_000), "t": random.integers(0, 900, 3_000)})
    data = pa.concat_tables([data, data.slice(0, 7).set_column(1, "t", pa.nulls(7, pa.int64()))])
    plan = fw.plan(BASE.window(assigner).bad_rows("divert").aggregate(n=fw.Count()), data.schema)
    told = []
    for stream in (bounded.open_bounded(plan), open_plan(plan)):
        fed, end = stream.process(data), stream.advance_watermark(fw.MAX_TIMESTAMP)
        assert (fed.bad.num_rows, sum(pc.sum(part.main["n"]).as_py() or 0 for part in (fed, end)) > 0) == (7, True)
        told.append(replace(stream.metrics, state_bytes=0))
    assert told[0] == told[1]


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Gets the rows of state that groups have whenever the watermark moves."""
    found: list[int] = []
    advance = GroupsOperator.advance_watermark

    def watched(operator: GroupsOperator, watermark: int) -> list[pa.RecordBatch]:
        found.append(operator.state_rows)
        return advance(operator, watermark)

    monkeypatch.setattr(GroupsOperator, "advance_watermark", watched)
    return found


def test_run_keeps_no_more_state_than_a_stream(monkeypatch: pytest.MonkeyPatch, held: list[int]) -> None:
    monkeypatch.setattr(bounded, "_CACHED_ROWS", 50)
    n = 1_000
    done = COUNT.run(pa.table({"k": pa.array(range(n)), "t": pa.array(range(n), pa.int64())}))
    assert done.main.num_rows == n
    assert max(held) <= 60  # a piece, and the window that it has begun


@pytest.mark.parametrize("order", ["ascending", "nearly", "newest first", "newest first, in order of arrival"])
def test_windows_of_few_elements_fire_early(monkeypatch: pytest.MonkeyPatch, held: list[int], order: str) -> None:
    monkeypatch.setattr(bounded, "_CACHED_WINDOWS", 50)
    n = 1_000
    times = 10 * np.arange(n)
    if order == "nearly":
        times = times.reshape(-1, 4)[:, ::-1].ravel()
    elif order != "ascending":
        times = times[::-1]
    table = pa.table({"k": ["a"] * n, "t": pa.array(times), "v": pa.array(times)})
    last = fw.Last("v") if "arrival" in order else fw.Max("v")
    spec = BASE.aggregate(n=fw.Count(), last=last)
    assert rows(spec.run(table)) == [("a", at, at + 10, 1, at) for at in range(0, 10 * n, 10)]
    assert max(held) == n if "arrival" in order else max(held) <= 60
