"""Joins, and others that keep rows, of frames whose text comes as views, as polars hands it in."""

from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.columns.decoding import decoded
from fastwin.errors import SpecError, StateError

LEFT = pl.DataFrame({"k": ["a", "a"], "ts": [1_000, 2_000], "note": ["x", None]})
RIGHT = pl.DataFrame({"k": ["a"], "at": [1_000], "w": ["a text that is too long to lie in its view"]})
START, OTHER = fw.key_by("k").event_time("ts", unit="ms"), fw.key_by("k").event_time("at", unit="ms")
MINUTES = fw.TumblingEventTimeWindows.of("1 minute")
JOIN = fw.window_join(START.side_output_late_data(), OTHER, MINUTES)


@pytest.mark.parametrize("kind", [pl.String, pl.Binary, pl.Categorical])
@pytest.mark.parametrize("trace", [None, 10])
def test_late_rows_are_handed_out_as_they_came(kind: Any, trace: int | None) -> None:
    left, right = LEFT.with_columns(pl.col("k", "note").cast(kind)), RIGHT.with_columns(pl.col("k", "w").cast(kind))
    stream = JOIN.open(trace=trace)
    stream.process(left, right)
    assert stream.advance_watermark(60_000).main.num_rows == 2
    found = stream.process(left=left[::-1], right=right)
    assert list(found.side) == ["late_left"]
    late = found.side["late_left"]
    late.validate(full=True)
    assert late.schema == pa.table(left).schema
    assert late.to_pylist() == pa.table(left[::-1]).to_pylist()
    assert (stream.metrics.late, stream.metrics.num_late_records_dropped) == (2, 1)
    if trace:
        key = left["k"][0]
        assert [(one.key, one.time, one.side) for one in stream.why(key).late] == [
            (key, 2_000, "left"),
            (key, 1_000, "left"),
            (key, 1_000, "right"),
        ]
    main = stream.process(left.with_columns(ts=61_000), right.with_columns(at=62_000)).main
    assert main.num_rows == 0
    assert stream.advance_watermark(fw.MAX_TIMESTAMP).main.num_rows == 2


def fails(*_: Any) -> pa.Table:
    raise KeyError("no result")


@pytest.mark.parametrize("watermark", [None, ("1 s", "1 s")])
def test_a_stream_whose_result_cannot_be_made_has_failed(watermark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = JOIN.open(watermark)
    stream.process(LEFT, RIGHT)
    saved = stream.snapshot()
    later = LEFT.with_columns(ts=90_000), RIGHT.with_columns(at=90_000)
    calls = [lambda: stream.process(*later), lambda: stream.advance_watermark(70_000)]
    for call in calls:
        with monkeypatch.context() as patched:
            patched.setattr("fastwin.run.joinbound.Bound.own_rows", fails)
            with pytest.raises(KeyError, match="no result"):
                call()
        for refused in (*calls, stream.snapshot):
            with pytest.raises(StateError, match=r"failed in the middle of a batch \(KeyError: 'no result'\); restore"):
                refused()
        stream.restore(saved)
    assert stream.advance_watermark(fw.MAX_TIMESTAMP).main.num_rows == 2


def told(key: Any, window: fw.TimeWindow, left: list, right: list) -> Any:
    yield "".join(row.text or "" for row in left), sum(len(row.word or "") for row in right)


N = 60
TEXTS = pl.DataFrame(
    {
        "k": [f"key {i % 5}" for i in range(N)],
        "ts": [7 * i % 50 for i in range(N)],
        "text": [None if i % 9 == 4 else f"{i}" * (i % 11) for i in range(N)],
    }
)
WORDS = TEXTS.select("k", at="ts", word="text")
KEPT: dict[str, Any] = {
    "top": START.window(fw.TumblingEventTimeWindows.of(10)).top(3, by="ts"),
    "last": START.window(fw.SlidingEventTimeWindows.of(20, 10)).deduplicate("last"),
    "first": START.window(fw.TumblingEventTimeWindows.of(10)).deduplicate(),
    "join": fw.window_join(START, OTHER, fw.TumblingEventTimeWindows.of(10), "full"),
    "co_group": fw.co_group(START, OTHER, fw.TumblingEventTimeWindows.of(10), told, output="said string, n bigint"),
}


def results(name: str, **threads: int) -> list[list[dict[str, Any]]]:
    """The rows of a run, and of a stream that is fed twice."""
    frames = [TEXTS, WORDS] if name in ("join", "co_group") else [TEXTS]
    stream = KEPT[name].open()
    found = [KEPT[name].run(*frames, **threads), stream.process(*(frame[:40] for frame in frames))]
    found += [stream.process(*(frame[40:] for frame in frames)), stream.advance_watermark(fw.MAX_TIMESTAMP)]
    return [sorted(one.main.to_pylist(), key=repr) for one in found]


@pytest.mark.parametrize("name", KEPT)
@pytest.mark.parametrize("threads", [1, 2])
def test_rows_of_more_text_than_one_array_has_room_for(
    name: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {} if name in ("join", "co_group") else {"threads": threads}
    wanted, kept = results(name), []

    def keeping(array: pa.Array) -> pa.Array:
        kept.append(decoded(array))
        return kept[-1]

    monkeypatch.setattr("fastwin.operators.kept.config.decoded", keeping)
    monkeypatch.setattr("fastwin.columns.decoding._MOST_BYTES", 40)
    monkeypatch.setattr("fastwin.run.threads._FEW_ROWS", 10)
    assert results(name, **given) == wanted
    assert {one.type for one in kept} >= {pa.string(), pa.int64()}
    assert pa.large_string() not in {one.type for one in kept}


PLACES = pa.array([0, 1, 0, None])
TEXT_KEYS = {
    "text": pa.array(["a", "b", "a", None]),
    "views": pa.array(["a", "b", "a", None], pa.string_view()),
    "dictionary": pa.DictionaryArray.from_arrays(PLACES, pa.array(["a", "b"])),
    "large": pa.array(["a", "b", "a", None], pa.large_string()),
    "large dictionary": pa.DictionaryArray.from_arrays(PLACES, pa.array(["a", "b"], pa.large_string())),
    "bytes": pa.array([b"a", b"b", b"a", None]),
    "large bytes": pa.array([b"a", b"b", b"a", None], pa.large_binary()),
}


@pytest.mark.parametrize(
    ("left", "right", "kind"),
    [
        ("text", "large", pa.large_string()),
        ("large", "dictionary", pa.large_string()),
        ("large dictionary", "views", pa.large_string()),
        ("text", "views", pa.string()),
        ("bytes", "large bytes", pa.large_binary()),
    ],
)
@pytest.mark.parametrize("windows", [MINUTES, fw.SlidingEventTimeWindows.of("1 minute", "30 s")])
def test_text_keys_match_whatever_their_offsets(left: str, right: str, kind: pa.DataType, windows: Any) -> None:
    tables = [pa.table({"k": TEXT_KEYS[name], "ts": range(30_000, 30_004)}) for name in (left, right)]
    start = START.side_output_late_data()
    join = fw.window_join(start, start, windows)
    stream = join.open(schemas=tuple(table.schema for table in tables))
    stream.process(*tables)
    chunk = stream.snapshot()
    stream = join.open(schemas=tuple(table.schema for table in tables))
    stream.restore(chunk)
    found = [join.run(*tables).main, stream.advance_watermark(100_000).main]
    assert [main.num_rows for main in found] == [(4 + 1 + 1) * (2 if windows is not MINUTES else 1)] * 2
    assert {main.schema.field("k").type for main in found} == {kind}
    late = stream.process(*tables).side
    for tag, table in zip(("late_left", "late_right"), tables, strict=True):
        late[tag].validate(full=True)
        assert late[tag]["k"].to_pylist() == table["k"].to_pylist()
        assert late[tag].schema.field("k").type == table.schema.field("k").type
    with pytest.raises(SpecError, match=r"are large_string and binary; cast one of them"):
        join.run(
            pa.table({"k": TEXT_KEYS["large"], "ts": range(4)}), pa.table({"k": TEXT_KEYS["bytes"], "ts": range(4)})
        )
