"""Parts of state that are cut on their way, and joined again in whatever order their pieces come."""

import random

import pyarrow as pa
import pytest

from fastwin.errors import StateError
from spark_glue.state import cutparts
from spark_glue.state.cutparts import STATE, Pieces, cut

PARTS = [(3, b"a"), (7, bytes(range(256)) * 500), (3, b"b" * 2 * cutparts.PIECE_BYTES), (0, b""), (3, b"c" * 100_000)]


def rows_of(parts) -> list[tuple]:
    return [row for batch in cut(parts) for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)]


def test_parts_are_cut_and_joined_in_any_order():
    rows = rows_of(PARTS)
    assert max(len(part) for _, part, *_ in rows) == cutparts.PIECE_BYTES
    assert len(rows) == 1 + 4 + 2 + 1 + 4
    for seed in range(20):
        random.Random(seed).shuffle(rows)
        pieces, found = Pieces(), []
        for row in rows:
            found += pieces.joined([row])
        assert sorted(found) == sorted(PARTS)
        assert not pieces.waits
        pieces.check_whole()


def test_rows_come_as_pandas_has_them(monkeypatch):
    """Where a column has nulls, numbers are floats, or objects."""
    monkeypatch.setattr(cutparts, "_BATCH_ROWS", 3)
    batches = list(cut(PARTS))
    assert max(batch.num_rows for batch in batches) == 3
    visit = pa.RecordBatch.from_pylist([{}], STATE)
    whole = pa.RecordBatch.from_pylist([{"part_of": 9, "part": b"of an earlier version"}], STATE)
    frame = pa.Table.from_batches([visit, *batches, whole]).to_pandas()
    found = Pieces().joined(zip(*(frame[name].tolist() for name in STATE.names), strict=True))
    assert sorted(found) == sorted([*PARTS, (9, b"of an earlier version")])


def test_pieces_of_a_part_may_come_in_frames_with_nulls_and_without():
    """Numbers are exact in both, as floats as well as ints."""
    batches = list(cut([(group, bytes([group]) * (3 * cutparts.PIECE_BYTES)) for group in range(50)]))
    rows = pa.Table.from_batches(batches)
    visit = pa.Table.from_pylist([{}], STATE)
    pieces, found = Pieces(), []
    for table in (pa.concat_tables([visit, rows[:76]]), rows[76:]):
        frame = table.to_pandas()
        found += pieces.joined(zip(*(frame[name].tolist() for name in STATE.names), strict=True))
    pieces.check_whole()
    assert [group for group, _ in found] == list(range(50))


def test_a_piece_that_is_missing_is_told():
    pieces = Pieces()
    assert pieces.joined(rows_of(PARTS)[:-1]) == PARTS[:-1]
    assert pieces.waits
    with pytest.raises(StateError, match="state: pieces of what key groups 3 hold are missing"):
        pieces.check_whole()


def test_no_parts_are_no_rows():
    assert list(cut([])) == []
