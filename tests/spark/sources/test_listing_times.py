"""Files of a folder as a stream: what comes late, what vanishes, and what has a time that is still to come."""

import os
from types import SimpleNamespace

import pytest

from fastwin.errors import SourceError
from spark_glue.sources.listing import first_offset
from tests.support.listed_files import FIRST_S, listing, names, put, put_bytes, through_text


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


def test_what_came_too_late_while_no_query_ran_is_told_of(tmp_path, caplog):
    for second in (0, 10, 20, 100):
        put(tmp_path, f"{second}.parquet", second)
    offset = through_text(listing(tmp_path).next(first_offset()))
    assert listing(tmp_path).next(offset) == offset
    put(tmp_path, "late.parquet", 5)
    with pytest.raises(SourceError, match=r"the file 'late\.parquet' has come more than 60 s later"):
        listing(tmp_path).next(offset)
    put(tmp_path, "later.parquet", 6)
    says = "there were 3, and there are 5, so some have come since .* put back, take these away again: touching them "
    with pytest.raises(SourceError, match=says):
        listing(tmp_path).next(offset)
    for name in ("0", "10", "20"):  # as one cleans up what has been read
        (tmp_path / f"{name}.parquet").unlink()
    caplog.clear()
    assert listing(tmp_path).next(offset) == offset
    assert "there were 3, and there are 2; if others have come" in caplog.text


@pytest.mark.parametrize("more", [0, 1], ids=["whole", "with another file"])
@pytest.mark.parametrize("missing", [[0, 10, 20, 100], [0, 10]], ids=["all", "some"])
def test_old_files_that_a_start_does_not_find_may_come_back(tmp_path, missing, more):
    """As of a mount that was missing; with others among them, nobody can tell which were read."""
    for second in (0, 10, 20, 100):
        put(tmp_path, f"{second}.parquet", second)
    offset = through_text(listing(tmp_path).next(first_offset()))
    kept = {second: (tmp_path / f"{second}.parquet").read_bytes() for second in missing}
    for second in missing:
        (tmp_path / f"{second}.parquet").unlink()
    known = listing(tmp_path)
    assert known.next(offset) is offset
    for second in missing:
        put_bytes(tmp_path, f"{second}.parquet", second, kept[second])
    if more:
        put(tmp_path, "late.parquet", 5)
        with pytest.raises(SourceError, match=r"has come more than 60 s later .* was put back, take it away again"):
            known.next(offset)
        return
    assert known.next(offset) is offset
    put(tmp_path, "200.parquet", 200)
    offset = through_text(known.next(offset))
    assert names(offset) == ["200.parquet"] and offset["old"][0] == 4
    assert listing(tmp_path).next(offset) == offset


@pytest.mark.parametrize("late_ms", [0, 10_000, 600_000])
def test_late_files_may_change_at_a_restart(tmp_path, late_ms):
    for second in (0, 50, 100):
        put(tmp_path, f"{second}.parquet", second)
    offset = listing(tmp_path).next(first_offset())
    assert listing(tmp_path, late_ms=late_ms).next(offset) == offset
    put(tmp_path, "45.parquet", 45)
    offset = listing(tmp_path, late_ms=late_ms).next(offset)
    assert names(offset) == ["45.parquet"]
    put(tmp_path, "200.parquet", 200)
    assert names(listing(tmp_path).next(offset)) == ["200.parquet"]


def three_read(folder):
    """Returns a listing that has read three files, a second apart, and its offset."""
    for second in (0, 1, 2):
        put(folder, f"{second}.parquet", second)
    known = listing(folder)
    return known, through_text(known.next(first_offset()))


def put_back(folder, known, offset, kept, second):
    """Puts the first file back, which is not read again, then another one, which is; returns the offset."""
    put_bytes(folder, "1.parquet", 1, kept)
    assert known.next(offset) is offset
    put(folder, f"{second}.parquet", second)
    offset = through_text(known.next(offset))
    assert names(offset) == [f"{second}.parquet"]
    return offset


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("begun_before", [False, True], ids=["", "by a version that forgot them"])
def test_a_file_that_vanishes_and_is_put_back_is_not_read_again(tmp_path, restarts, begun_before):
    known, offset = three_read(tmp_path)
    if begun_before:
        offset.pop("gone", None)
    kept = (tmp_path / "1.parquet").read_bytes()
    (tmp_path / "1.parquet").unlink()
    for second in (3, 40, 50):
        put(tmp_path, f"{second}.parquet", second)
        known = listing(tmp_path) if restarts else known
        offset = through_text(known.next(offset))
        assert names(offset) == [f"{second}.parquet"]
    known = listing(tmp_path) if restarts else known
    offset = put_back(tmp_path, known, offset, kept, 60)
    assert not offset["gone"]  # it is there
    put(tmp_path, "200.parquet", 200)  # it is old now
    assert names(known.next(offset)) == ["200.parquet"]


@pytest.mark.parametrize("restarts", [False, True])
def test_a_file_that_was_away_while_it_became_old_is_put_back(tmp_path, restarts):
    known, offset = three_read(tmp_path)
    kept = (tmp_path / "1.parquet").read_bytes()
    (tmp_path / "1.parquet").unlink()
    put_bytes(tmp_path, "later.parquet", 0, kept)
    os.utime(tmp_path / "later.parquet", ns=(FIRST_S * 10**9 + 61_500_000_000,) * 2)
    offset = through_text(known.next(offset))
    assert offset["gone"], "still known, though older than what is young"
    known = listing(tmp_path) if restarts else known
    offset = put_back(tmp_path, known, offset, kept, 63)
    assert not offset["gone"]
    assert listing(tmp_path).next(offset) is offset


def test_a_changed_file_in_the_place_of_one_that_vanished_is_read(tmp_path):
    for second in (0, 1):
        put(tmp_path, f"{second}.parquet", second)
    known = listing(tmp_path)
    offset = known.next(first_offset())
    (tmp_path / "1.parquet").unlink()
    put(tmp_path, "2.parquet", 2)
    offset = known.next(offset)
    put(tmp_path, "1.parquet", 1, rows=20)
    assert names(known.next(offset)) == ["1.parquet"]


def test_files_that_vanished_are_forgotten_when_they_are_old(tmp_path):
    known, offset = listing(tmp_path), first_offset()
    for second in range(0, 1_000, 10):
        put(tmp_path, f"{second}.parquet", second)
        offset = through_text(known.next(offset))
        assert names(offset) == [f"{second}.parquet"]
        assert len(offset["seen"]) + sum(len(tokens) for _, tokens in offset["gone"]) <= 2 * 7
        (tmp_path / f"{second}.parquet").unlink()
    put(tmp_path, "10.parquet", 10)
    with pytest.raises(SourceError, match=r"'10\.parquet' has come more than 60 s later"):
        known.next(offset)


def set_clock(monkeypatch, second: int) -> None:
    clock = SimpleNamespace(time_ns=lambda: (FIRST_S + second) * 10**9)
    monkeypatch.setattr("spark_glue.sources.listing.time", clock)


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("away", [False, True], ids=["", "and is away for a while"])
def test_a_file_whose_time_is_still_to_come_makes_no_other_late(tmp_path, monkeypatch, restarts, away):
    set_clock(monkeypatch, 0)
    put(tmp_path, "ahead.parquet", 1_000)
    put(tmp_path, "0.parquet", 0)
    known = listing(tmp_path)
    offset = through_text(known.next(first_offset()))
    assert names(offset) == ["0.parquet", "ahead.parquet"]
    kept = (tmp_path / "ahead.parquet").read_bytes()
    if away:
        (tmp_path / "ahead.parquet").unlink()
    for second in (*range(50, 1_000, 50), 1_030, 1_100, 1_200):
        set_clock(monkeypatch, second)
        put(tmp_path, f"{second}.parquet", second - 20)
        if away and second in (500, 1_030):
            put_bytes(tmp_path, "ahead.parquet", 1_000, kept)
        elif away and second == 800:
            (tmp_path / "ahead.parquet").unlink()
        known = listing(tmp_path) if restarts else known
        offset = through_text(known.next(offset))
        assert names(offset) == [f"{second}.parquet"]
        assert known.next(offset) is offset
        assert len(offset["seen"]) <= 3
        assert len(offset["ahead"]) + len(offset["gone"]) == (second < (1_000 if away else 981))


def test_the_newest_time_of_an_offset_is_no_newer_than_the_clock(tmp_path, monkeypatch):
    set_clock(monkeypatch, 0)
    put(tmp_path, "0.parquet", 0)
    offset = listing(tmp_path).next(first_offset()) | {"newest": (FIRST_S + 50) * 10**9}
    put(tmp_path, "1.parquet", 1)
    offset = listing(tmp_path).next(offset)
    assert offset["newest"] == FIRST_S * 10**9


@pytest.mark.parametrize("restarts", [False, True])
def test_what_is_late_by_a_clock_that_was_ahead_needs_an_empty_checkpoint(tmp_path, monkeypatch, restarts):
    set_clock(monkeypatch, 1_000)
    put(tmp_path, "a.parquet", 1_000)
    known = listing(tmp_path)
    offset = through_text(known.next(first_offset()))
    set_clock(monkeypatch, 0)
    for name in ("b", "c"):
        put(tmp_path, f"{name}.parquet", 0)
        known = listing(tmp_path) if restarts else known
        with pytest.raises(SourceError, match=r"the clock has been set back: begin with an empty checkpoint$"):
            known.next(offset)
