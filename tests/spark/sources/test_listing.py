"""Files of a folder as a stream: each is taken once, in order, whatever comes late, vanishes or is not whole yet."""

import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fastwin.errors import SourceError
from spark_glue.sources.listing import Folder, Listing, files_of, first_offset

FIRST_S = 1_600_000_000


def put(folder, name: str, second: int, rows: int = 10) -> None:
    pq.write_table(pa.table({"a": range(rows)}), folder / name)
    os.utime(folder / name, (FIRST_S + second,) * 2)


def listing(folder, **arguments) -> Listing:
    return Listing(Folder(str(folder)), **{"max_files": None, "max_rows": None, "late_ms": 60_000} | arguments)


def names(offset) -> list[str]:
    return [one.name for one in files_of(offset)]


def through_text(offset):
    """As the checkpoint keeps it."""
    return json.loads(json.dumps(offset))


def test_files_are_taken_once_by_time_and_name(tmp_path):
    for name, second in (("c.parquet", 1), ("a.parquet", 2), ("b.parquet", 2), ("d.parquet", 3)):
        put(tmp_path, name, second)
    put(tmp_path, "_hidden.parquet", 0)
    put(tmp_path, ".hidden.parquet", 0)
    (tmp_path / "note.txt").write_text("")
    known = listing(tmp_path, max_files=3)
    offset = through_text(known.next(first_offset()))
    assert names(offset) == ["c.parquet", "a.parquet", "b.parquet"]
    offset = through_text(known.next(offset))
    assert names(offset) == ["d.parquet"]
    assert known.next(offset) is offset  # nothing is new
    put(tmp_path, "e.parquet", 3)
    assert names(listing(tmp_path).next(offset)) == ["e.parquet"]  # and after a restart


def test_rows_limit_a_micro_batch_which_takes_one_file_at_least(tmp_path):
    for i, rows in enumerate((30, 10, 10, 10)):
        put(tmp_path, f"{i}.parquet", i, rows)
    known, offset, taken = listing(tmp_path, max_rows=20), first_offset(), []
    for _ in range(3):
        offset = known.next(offset)
        taken.append(len(names(offset)))
    assert taken == [1, 2, 1]
    assert len(names(listing(tmp_path, max_rows=20, max_files=1).next(first_offset(), unlimited=True))) == 4


def test_a_file_that_is_seen_late_is_taken_and_one_too_late_is_told_of(tmp_path):
    put(tmp_path, "new.parquet", 100)
    known = listing(tmp_path)
    offset = known.next(first_offset())
    put(tmp_path, "late.parquet", 41)
    offset = through_text(known.next(offset))
    assert names(offset) == ["late.parquet"]
    assert offset["newest"] == (FIRST_S + 100) * 10**9
    assert known.next(offset) is offset
    put(tmp_path, "too late.parquet", 39)
    with pytest.raises(SourceError, match=r"'too late\.parquet' has come more than 60 s later"):
        known.next(offset)


def test_a_file_that_grows_old_is_not_taken_for_one_that_came_too_late(tmp_path):
    known, offset = listing(tmp_path), first_offset()
    for second in (0, 40, 80, 120, 300):
        put(tmp_path, f"{second}.parquet", second)
        offset = through_text(known.next(offset))
        assert names(offset) == [f"{second}.parquet"]
        assert len(offset["seen"]) <= 2


def test_a_backlog_is_no_late_file(tmp_path):
    for second in (0, 100, 200, 300):
        put(tmp_path, f"{second}.parquet", second)
    known, offset = listing(tmp_path, max_files=1), first_offset()
    for second in (0, 100, 200, 300):
        offset = known.next(offset)
        assert names(offset) == [f"{second}.parquet"]
    assert known.next(offset) is offset


def test_a_file_that_is_not_whole_is_left_for_later(tmp_path, caplog):
    put(tmp_path, "whole.parquet", 5)
    put(tmp_path, "half.parquet", 1)
    whole = (tmp_path / "half.parquet").read_bytes()
    (tmp_path / "half.parquet").write_bytes(whole[:-20])
    os.utime(tmp_path / "half.parquet", (FIRST_S + 1,) * 2)
    known = listing(tmp_path)
    offset = known.next(first_offset())
    assert names(offset) == ["whole.parquet"]
    assert known.next(offset) is offset
    assert sum("half.parquet is left for later" in line.message for line in caplog.records) == 1
    (tmp_path / "half.parquet").write_bytes(whole)
    os.utime(tmp_path / "half.parquet", (FIRST_S + 2,) * 2)
    assert names(known.next(offset)) == ["half.parquet"]


def test_what_is_there_at_first_can_be_all_there_is(tmp_path):
    put(tmp_path, "a.parquet", 1)
    known = listing(tmp_path)
    known.fix()
    put(tmp_path, "b.parquet", 2)
    offset = known.next(first_offset())
    assert names(offset) == ["a.parquet"]
    assert known.next(offset) is offset


def test_a_file_that_changed_or_went_is_told_of(tmp_path):
    put(tmp_path, "a.parquet", 1)
    offset = listing(tmp_path).next(first_offset())
    again = listing(tmp_path)
    assert again.row_groups_of(files_of(offset)) == [(10,)]
    put(tmp_path, "a.parquet", 1, rows=2_000)
    with pytest.raises(SourceError, match=r"a\.parquet: the file has changed since"):
        listing(tmp_path).row_groups_of(files_of(offset))
    (tmp_path / "a.parquet").unlink()
    with pytest.raises(SourceError, match=r"a\.parquet: the file is gone since"):
        listing(tmp_path).row_groups_of(files_of(offset))


def test_a_relative_path_is_the_drivers(tmp_path, monkeypatch):
    put(tmp_path, "a.parquet", 1)
    monkeypatch.chdir(tmp_path.parent)
    assert Folder(tmp_path.name).path == str(tmp_path)
    assert [one.name for one in Folder(f"file://{tmp_path}").found()] == ["a.parquet"]
