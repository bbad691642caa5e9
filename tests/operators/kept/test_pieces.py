"""Rows whose text is more than one Arrow array has room for: kept, handed out, saved and restored in several pieces."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.operators.kept import pieces
from fastwin.operators.kept.config import KeptConfig
from fastwin.operators.kept.pieces import Pieces, cut
from fastwin.state import chunks

MOST = 2_000
KINDS = {
    "int": (pa.int64(), lambda i: i),
    "text": (pa.string(), lambda i: "x" * (i % 90)),
    "bytes": (pa.large_binary(), lambda i: b"x" * (i % 90)),
    "list": (pa.list_(pa.string()), lambda i: ["y" * (i % 7)] * (i % 5)),
    "list of ints": (pa.large_list(pa.int32()), lambda i: [i] * (i % 9)),
    "struct": (pa.struct([("a", pa.string()), ("b", pa.int8())]), lambda i: {"a": "z" * (i % 50), "b": 1}),
    "map": (pa.map_(pa.string(), pa.int64()), lambda i: [("k" * (i % 9), i)] * (i % 3)),
    "pair": (pa.list_(pa.string(), 2), lambda i: ["p" * (i % 30), "q"]),
}
SCHEMA = pa.schema([(name, kind) for name, (kind, _) in KINDS.items()])


def rows_from(first: int, n: int) -> pa.RecordBatch:
    columns = [
        pa.array([None if i % 11 == 3 else value(i) for i in range(first, first + n)], kind)
        for kind, value in KINDS.values()
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


@pytest.mark.parametrize("most", [400, MOST, 1 << 30])
def test_columns_in_pieces_are_as_in_one(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "MOST_BYTES", most)
    dice, kept, added = np.random.default_rng(5), Pieces(SCHEMA), []
    assert kept.take(np.full(2, -1))[1].to_pylist() == [None, None]
    for step in range(60):
        n = int(dice.integers(1, 12))
        added.append(rows_from(100 * step, n + 2)[2:])
        kept.add(added[-1])
        assert all(piece.nbytes <= max(most, 3_000) for piece in kept._pieces)  # a batch may have 3,000
        whole = pa.Table.from_batches(added, SCHEMA).combine_chunks()
        slots = dice.integers(-1, len(kept), 30)
        expected = whole.take(pa.array(slots, mask=slots < 0))
        assert kept.take(slots) == [column.combine_chunks() for column in expected.columns]
        assert kept.take(slots, ["list", "int"]) == [expected[name].combine_chunks() for name in ("list", "int")]
        if step % 20 == 19:
            places = dice.permutation(len(kept))[: len(kept) // 2]
            kept.keep(places)
            added = whole.take(pa.array(places)).combine_chunks().to_batches()
            assert pa.Table.from_batches(kept._pieces, SCHEMA).combine_chunks() == pa.table(added[0])


def test_sizes_are_those_of_what_is_taken() -> None:
    kept = Pieces(SCHEMA, rows_from(0, 50)[7:], rows_from(50, 30))
    slots = np.arange(len(kept))
    for name in SCHEMA.names:
        sizes = kept.sizes(slots, [name])
        there = kept.take(slots, [name])[0]
        assert sizes.sum() <= there.nbytes
        if name == "int":
            assert not sizes.any()
        if name in ("text", "bytes"):
            assert sizes.tolist() == [len(value or "") for value in there.to_pylist()]
        if name in ("list", "struct", "map", "pair", "list of ints"):
            assert sizes.sum() > there.nbytes / 4


@pytest.mark.parametrize(
    ("sizes", "most", "parts"),
    [
        ([], 5, [(0, 0)]),
        ([1, 2, 3], 6, [(0, 3)]),
        ([1, 2, 3, 1], 5, [(0, 2), (2, 4)]),
        ([9, 9, 1, 1], 5, [(0, 1), (1, 2), (2, 4)]),
        ([0, 0], 0, [(0, 2)]),
    ],
)
def test_cut(sizes: list[int], most: int, parts: list[tuple[int, int]]) -> None:
    found = [slice(begin, end) for begin, end in parts]
    assert [part.indices(len(sizes)) for part in cut(np.array(sizes, np.int64), most)] == [
        part.indices(len(sizes)) for part in found
    ]


ROWS = pa.schema([("k", pa.string()), ("t", pa.int64()), ("text", pa.string()), ("tags", pa.list_(pa.string()))])
KEYED = fw.key_by("k").event_time("t", unit="ms").allowed_lateness(100)
HOP = fw.SlidingEventTimeWindows.of(20, 10)


def told(key: Any, window: fw.TimeWindow, left: list, right: list) -> Any:
    yield ",".join(row.text[:4] for row in [*left, *right]), len(left)


SPECS = {
    "last": KEYED.window(HOP).deduplicate("last"),
    "first": KEYED.window(HOP).deduplicate(),
    "top by text": KEYED.window(HOP).top(3, by="text"),
    "join": fw.window_join(KEYED, KEYED, HOP, "full"),
    "co_group": fw.co_group(KEYED, KEYED, HOP, told, output="said string, n bigint"),
}


def table_of(dice: np.random.Generator, n: int, latest: int) -> pa.Table:
    texts = [f"{i % 17:04}" * int(dice.integers(0, 60)) for i in range(n)]
    keys, times = dice.choice(["a", "b", "c"], n), dice.integers(latest - 40, latest, n)
    return pa.table([keys, times, texts, [[text[:9]] * 3 for text in texts]], schema=ROWS)


def followed(name: str) -> list[Any]:
    """Returns all that comes of a stream that is saved and restored, and what is kept in between."""
    spec, dice = SPECS[name], np.random.default_rng(8)
    sides = 1 if isinstance(spec, fw.WindowSpec) else 2
    asked = {"schema": ROWS} if sides == 1 else {"schemas": (ROWS, ROWS)}
    stream, found, saved = spec.open(**asked), [], []
    for step in range(12):
        tables = [table_of(dice, 40, 10 * step) for _ in range(sides)]
        found.append(stream.process(*tables).main)
        found.append(stream.inspect().drop_columns("bytes") if step else None)
        saved.append(stream.delta() if saved else stream.snapshot())
        if step % 3 == 2:
            stream = spec.open(**asked)
            stream.restore(saved)
        found.append(stream.advance_watermark(10 * step - 20).main)
    found.append(stream.advance_watermark(fw.MAX_TIMESTAMP).main)
    return [None if one is None else one.combine_chunks() for one in found]


@pytest.mark.parametrize("name", SPECS)
def test_streams_of_much_text_answer_as_of_little(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected, sizes, held = followed(name), [], []
    monkeypatch.setattr(pieces, "MOST_BYTES", MOST)
    monkeypatch.setattr(chunks, "_TOGETHER", MOST)
    result, take_over = KeptConfig.result, Pieces._take_over

    def handed_out(on: KeptConfig, *parts: Any) -> pa.RecordBatch:
        batch = result(on, *parts)
        sizes.append((batch.num_rows, sum(column.nbytes for column in batch.columns if column.type == pa.string())))
        return batch

    def kept(on: Pieces, parts: list[pa.RecordBatch]) -> None:
        take_over(on, parts)
        held.append(len(parts))

    monkeypatch.setattr(KeptConfig, "result", handed_out)
    monkeypatch.setattr(Pieces, "_take_over", kept)
    assert followed(name) == expected
    if name != "co_group":  # what its function makes is the function's
        assert max(text - 20 * rows for rows, text in sizes) <= MOST
    if name != "first":  # which keeps no rows
        assert max(held) > 3
