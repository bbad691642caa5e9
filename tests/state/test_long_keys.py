"""Keys of more text than offsets of 32 bits reach: saved with larger ones, and restored."""

from typing import Any

import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.columns.keys import KeyCodec
from fastwin.errors import StateError
from fastwin.state import chunks
from fastwin.state.rows import load_keys

START = fw.key_by("k").event_time("ts", unit="ms")
TENS = fw.TumblingEventTimeWindows.of(10)
SESSIONS = fw.EventTimeSessionWindows.with_gap(10)
SPECS: dict[str, fw.WindowSpec] = {
    "aligned": START.window(TENS).aggregate(n=fw.Count()),
    "session": START.window(SESSIONS).aggregate(n=fw.Count()),
    "general": START.window(SESSIONS)
    .trigger(fw.any_of(fw.EventTimeTrigger(), fw.CountTrigger(40)))
    .aggregate(n=fw.Count()),
    "filling": START.window(TENS, fill="empty").aggregate(n=fw.Count()),
    "several": START.windows(short=TENS, long=fw.TumblingEventTimeWindows.of(100)).aggregate(n=fw.Count()),
    "last": START.window(TENS).deduplicate("last"),
    "first": START.window(TENS).deduplicate(),
}
KINDS = [pa.string(), pa.binary()]


def table(first: int, kind: pa.DataType) -> pa.Table:
    keys = pa.array([f"key {first // 20} {i % 3}" for i in range(9)]).cast(kind)
    return pa.table({"k": keys, "ts": pa.array(range(first, first + 9), pa.int64())})


def answers(stream: fw.Stream, kind: pa.DataType) -> list[list[dict[str, Any]]]:
    calls = stream.process(table(44, kind)), stream.advance_watermark(fw.MAX_TIMESTAMP)
    return [sorted(one.main.to_pylist(), key=repr) for one in calls]


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("together", [1 << 30, 0])
def test_they_are_restored(name: str, kind: pa.DataType, together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = SPECS[name]
    stream, saved = spec.open(schema=table(0, kind).schema), []
    for step in range(3):
        stream.process(table(12 * step, kind))
        stream.advance_watermark(12 * step)
        with monkeypatch.context() as patched:
            patched.setattr("fastwin.columns.buffers._MOST_BYTES", 20)
            saved.append(stream.delta() if saved else stream.snapshot())
    monkeypatch.setattr(chunks, "_TOGETHER", together)
    wide = [chunks.decode(one, chunks.owner(one)).tables["keys"].schema.field("k0").type for one in saved]
    assert pa.large_string() in wide or pa.large_binary() in wide
    other = spec.open(schema=table(0, kind).schema)
    other.restore(saved)
    later = spec.allowed_lateness(5).open(schema=table(0, kind).schema)
    later.restore(saved)
    later._check_invariants()
    wanted = answers(stream, kind)
    assert answers(other, kind) == wanted
    assert answers(later, kind)[1] == wanted[1]


def test_one_of_several_key_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pa.table({"k": ["a long key", "another"], "i": [1, 2], "b": [b"x", b"y"], "ts": [1, 2]})
    spec = fw.key_by("k", "i", "b").event_time("ts", unit="ms").window(TENS).aggregate(n=fw.Count())
    stream, other = spec.open(), spec.open(schema=rows.schema)
    stream.process(rows)
    monkeypatch.setattr("fastwin.columns.buffers._MOST_BYTES", 10)
    saved = stream.snapshot()
    monkeypatch.undo()
    other.restore(saved)
    found, wanted = (one.advance_watermark(10).main.sort_by("i") for one in (other, stream))
    assert found == wanted


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.string_view()], ids=str)
def test_keys_of_another_type_are_refused(kind: pa.DataType) -> None:
    codec = KeyCodec((pa.field("k", pa.string()),))
    saved = pa.table({"_": pa.array([0], pa.int8()), "k0": pa.array(["x"]).cast(kind)})
    with pytest.raises(StateError, match=rf"^state: key columns of \['{kind}'\], the spec's are \['string'\]"):
        load_keys(codec, codec.new_table(), saved)
    with pytest.raises(StateError, match=r"^state: key columns of \[\], the spec's"):
        load_keys(codec, codec.new_table(), saved.select(["_"]))
