"""Files of a folder as a stream: each is taken once, in order, whatever changes or is not whole yet."""

import os

import pytest

from fastwin.errors import SourceError
from spark_glue.sources.folder import Folder, Found
from spark_glue.sources.listing import files_of, first_offset
from tests.support.listed_files import FIRST_S, listing, names, put, put_bytes, through_text


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


def halve(folder, name: str, second: int) -> bytes:
    """Makes a file a half-written one; returns the whole of it."""
    whole = (folder / name).read_bytes()
    put_bytes(folder, name, second, whole[:-20])
    return whole


@pytest.mark.parametrize("finished", [1, 150], ids=["with its old time", "with a new time"])
@pytest.mark.parametrize("restarts", [False, True])
def test_a_file_that_was_not_whole_for_long_is_read_once_when_it_is(tmp_path, caplog, restarts, finished):
    for second in (0, 1):
        put(tmp_path, f"{second}.parquet", second)
    whole = halve(tmp_path, "1.parquet", 1)
    known, offset, taken = listing(tmp_path), first_offset(), []
    for second in (100, 200, 300, None, None):
        if second is None:
            put_bytes(tmp_path, "1.parquet", finished, whole)
        else:
            put(tmp_path, f"{second}.parquet", second)
        known = listing(tmp_path) if restarts else known
        before, offset = offset, through_text(known.next(offset))
        taken += names(offset) if offset != before else []
        assert offset["unread"] == ([["1.parquet", len(whole) - 20, (FIRST_S + 1) * 10**9]] if second else [])
    assert taken == ["0.parquet", "100.parquet", "200.parquet", "300.parquet", "1.parquet"]
    said = [line.message for line in caplog.records]
    assert sum("1.parquet is no whole Parquet file yet, and older than" in line for line in said) == (
        3 if restarts else 1
    )


def test_old_files_that_a_limit_leaves_are_not_forgotten(tmp_path):
    for second in (0, 1, 2):
        put(tmp_path, f"{second}.parquet", second)
    wholes = [halve(tmp_path, f"{second}.parquet", second) for second in (0, 1, 2)]
    put(tmp_path, "new.parquet", 100)
    offset, taken = listing(tmp_path, max_files=1).next(first_offset()), []
    for second, whole in enumerate(wholes):
        put_bytes(tmp_path, f"{second}.parquet", second, whole)
    for _ in wholes:
        offset = through_text(listing(tmp_path, max_files=1).next(offset))
        taken += names(offset)
    assert taken == ["0.parquet", "1.parquet", "2.parquet"]
    assert offset["unread"] == []
    assert listing(tmp_path).next(offset) == offset


def test_a_file_that_is_never_whole_is_forgotten_when_it_is_gone_or_ends_the_query(tmp_path):
    put(tmp_path, "half.parquet", 1)
    halve(tmp_path, "half.parquet", 1)
    put(tmp_path, "new.parquet", 100)
    offset = listing(tmp_path).next(first_offset())
    says = (
        r"half\.parquet: it is no whole Parquet file, [0-9,]+ s after its last change, and unreadable_after= allows 5 s"
    )
    with pytest.raises(SourceError, match=says):
        listing(tmp_path, unreadable_ms=5_000).next(offset)
    (tmp_path / "half.parquet").unlink()
    put(tmp_path, "newer.parquet", 200)
    assert listing(tmp_path).next(offset)["unread"] == []


def test_an_offset_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr("spark_glue.sources.listing._MOST_UNREAD", 2)
    for second in range(3):
        put_bytes(tmp_path, f"half {second}.parquet", second, b"PAR1")
    put(tmp_path, "new.parquet", 62)
    offset = listing(tmp_path).next(first_offset())
    assert len(offset["unread"]) == 2
    put(tmp_path, "newer.parquet", 100)
    with pytest.raises(SourceError, match=r"3 files are older .* 'half 0\.parquet' for one; 2 at most are remembered"):
        listing(tmp_path).next(offset)


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


def test_footers_of_a_backlog_are_read_once(tmp_path, monkeypatch):
    opened = []
    new_file = Folder.open
    monkeypatch.setattr(Folder, "open", lambda folder, name: opened.append(name) or new_file(folder, name))
    for second in range(60):
        put(tmp_path, f"{second:02d}.parquet", second)
    known, offset = listing(tmp_path, max_rows=35), first_offset()
    for _ in range(20):
        before, offset = offset, through_text(known.next(offset))
        assert len(names(offset)) == 3
        assert known.row_groups_of(files_of(offset)) == [(10,)] * 3
        assert len(opened) <= len(before["seen"]) + 3 + 16
    assert sorted(opened) == [f"{second:02d}.parquet" for second in range(60)]
    assert known.next(offset) is offset
    assert known._groups == {}  # what has been taken is not kept


def test_files_that_were_read_cost_little(tmp_path, monkeypatch):
    """However many there are: a digest is made of those alone that are young, and once; none is looked at again where
    nothing has changed."""
    for second in range(50):
        put(tmp_path, f"{second}.parquet", second)
    known = listing(tmp_path)
    put(tmp_path, "new.parquet", 200)
    offset = through_text(known.next(first_offset()))
    assert len(offset["seen"]) == 1
    made = []
    digest = Found._digest
    monkeypatch.setattr(Found, "_digest", lambda one, size: made.append(one.name) or digest(one, size))
    assert known.next(offset) is offset
    put(tmp_path, "newer.parquet", 201)
    offset = through_text(known.next(offset))
    assert names(offset) == ["newer.parquet"] and made == ["newer.parquet"]
    assert known.next(offset) is offset
    monkeypatch.setattr(known, "_fresh", lambda *_: pytest.fail("all were looked at once more"))
    again = through_text(offset)
    assert known.next(again) is again and made == ["newer.parquet"]


def replaced(folder, name: str, second: int, rows: int) -> None:
    """Puts another file in the place of one, as a rename does."""
    put(folder, f".{name}", second, rows)
    (folder / f".{name}").rename(folder / name)


@pytest.mark.parametrize("known_before", [False, True], ids=["", "its row groups are known"])
def test_a_file_that_was_replaced_since_it_was_listed_waits_for_the_next_listing(tmp_path, known_before):
    for second in (1, 2):
        put(tmp_path, f"{second}.parquet", second)
    limits = {"max_rows": 10} if known_before else {"max_files": 1}
    known = listing(tmp_path, **limits)
    known.fix()
    offset = known.next(first_offset())
    assert names(offset) == ["1.parquet"]
    replaced(tmp_path, "2.parquet", 200, rows=20)
    assert known.next(offset) is offset
    offset = through_text(listing(tmp_path, **limits).next(offset))
    assert files_of(offset) == [Folder(str(tmp_path)).look("2.parquet")]
    assert listing(tmp_path).row_groups_of(files_of(offset)) == [(20,)]


@pytest.mark.parametrize("whole", [True, False])
def test_a_file_that_changes_while_it_is_looked_into_is_taken_as_what_it_is_then(tmp_path, monkeypatch, whole):
    put(tmp_path, "a.parquet", 1)
    if not whole:
        halve(tmp_path, "a.parquet", 1)
    new_file = Folder.open

    def finished_meanwhile(folder, name):
        monkeypatch.setattr(Folder, "open", new_file)
        try:
            return new_file(folder, name)
        finally:
            put(tmp_path, "a.parquet", 2, rows=20)

    monkeypatch.setattr(Folder, "open", finished_meanwhile)
    known = listing(tmp_path, unreadable_ms=0)
    start = first_offset()
    assert known.next(start) is start
    offset = known.next(start)
    assert files_of(offset) == [Folder(str(tmp_path)).look("a.parquet")]
    assert known.row_groups_of(files_of(offset)) == [(20,)]
