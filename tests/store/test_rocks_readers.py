"""Readers of RocksDB in all that a writer may do: exit, start anew, delete the folder and build another."""

import filecmp
import gc
import shutil
import time

import pytest

from fastwin.errors import StoreError
from fastwin.store import PaneStore
from tests.support.clicks import FIRST, MINUTE
from tests.support.numbered_clicks import MODULES, batch, spec
from tests.support.until import until


@pytest.fixture
def url(tmp_path):
    return f"rocksdb:{tmp_path / 'store'}"


def views(store) -> list[int]:
    end = FIRST + 100 * 3 * MINUTE
    return store.query(start=FIRST, end=end)["pv"].to_pylist()


def test_reader_that_was_not_asked_until_the_writer_had_gone(url):
    """It was open all the time, and says what a fresh one says."""
    with PaneStore.open(url, spec()) as store:
        store.put(batch(0), (1, 0))
        store.put(batch(1), (1, 1))
        reader = PaneStore.open(url, read_only=True)
        assert set(views(reader)) == {3}
        for number in range(2, 18):
            store.put(batch(number), (1, number))
    with reader, PaneStore.open(url, read_only=True) as fresh:
        assert set(views(fresh)) == {sum(range(1, 19))}
        until(lambda: reader.meta() == fresh.meta(), "the reader is stale")
        assert views(reader) == views(fresh)


def test_reader_follows_writers_that_come_and_go(url):
    with PaneStore.open(url, spec()) as store:
        store.put(batch(0), (1, 0))
    with PaneStore.open(url, read_only=True) as reader:
        for number in range(1, 6):
            with PaneStore.open(url, spec()) as store:
                store.put(batch(number), (1, number))
            until(lambda: set(views(reader)) == {sum(range(1, number + 2))}, "the reader is stale")  # noqa: B023


class CannotFollow:
    """A database that cannot follow its writer any more, and has what it had."""

    def __init__(self, database) -> None:
        self._database = database

    def __getattr__(self, name: str):
        return getattr(self._database, name)

    def try_catch_up_with_primary(self) -> None:
        raise RuntimeError("IO error: No such file or directory")


def test_reader_that_cannot_follow_is_opened_anew(url, caplog):
    with PaneStore.open(url, spec()) as store:
        store.put(batch(0), (1, 0))
        with PaneStore.open(url, read_only=True) as reader:
            assert set(views(reader)) == {1}
            reader._db = CannotFollow(reader._db)
            store.put(batch(1), (1, 1))
            until(lambda: reader.meta() == store.meta(), "the reader is stale")
            assert set(views(reader)) == {3}
    assert "cannot be read: IO error: No such file" in caplog.text


def test_store_deleted_and_built_anew_under_a_reader(url, tmp_path):
    with PaneStore.open(url, spec()) as store:
        for number in range(5):
            store.put(batch(number), (1, number))
    with PaneStore.open(url, read_only=True) as reader:
        old = reader.meta()
        assert set(views(reader)) == {15}
        shutil.rmtree(tmp_path / "store")
        time.sleep(0.25)
        with pytest.raises(StoreError, match="there is no store at"):
            reader.query()
        with PaneStore.open(url, spec()) as store:
            until(lambda: reader.meta() is None, "the reader keeps what was deleted")
            for number in range(5, 10):
                store.put(batch(number), (1, number))
            until(lambda: reader.watermark == store.watermark, "the reader is stale")
            assert reader.meta() == store.meta() and reader.meta().identity != old.identity
            assert set(views(reader)) == {sum(range(6, 11))} and len(views(reader)) == len(MODULES)


def test_store_deleted_under_its_writer(url, tmp_path):
    """What it would write then is nowhere to be read."""
    with PaneStore.open(url, spec()) as store:
        store.put(batch(0), (1, 0))
        shutil.rmtree(tmp_path / "store")
        with pytest.raises(StoreError, match="was deleted or replaced"):
            store.put(batch(1), (1, 1))
    with PaneStore.open(url, spec()) as store:
        store.put(batch(1), (1, 1))
        assert set(views(store)) == {2}


def replaced(folder, copy) -> None:
    """Puts a copy in a folder's place."""
    shutil.rmtree(folder)
    shutil.copytree(copy, folder)


def test_copy_put_in_place_under_its_writer(url, tmp_path):
    """It writes no more, and the copy stays as it is."""
    with PaneStore.open(url, spec()) as store:
        for number in range(3):
            store.put(batch(number), (1, number))
    shutil.copytree(tmp_path / "store", tmp_path / "copy")
    with PaneStore.open(url, spec()) as store:
        store.put(batch(3), (2, 3))
        replaced(tmp_path / "store", tmp_path / "copy")
        with pytest.raises(StoreError, match="was deleted or replaced"):
            store.put(batch(4), (2, 4))
    del store
    gc.collect()
    found = filecmp.dircmp(tmp_path / "store", tmp_path / "copy")
    assert not (found.left_only or found.right_only or found.diff_files)
    with pytest.raises(StoreError, match="open for writing already"):  # RocksDB's lock lasts as long as the process
        PaneStore.open(url, spec())
    with PaneStore.open(url, read_only=True) as reader:
        assert set(views(reader)) == {1 + 2 + 3} and reader.meta().version == 3


@pytest.mark.parametrize("further", [False, True])
def test_copy_put_in_place_under_a_reader(url, tmp_path, further):
    """It says what the copy has, which is of another time, also if the copy has gone on since."""
    with PaneStore.open(url, spec()) as store:
        for number in range(3):
            store.put(batch(number), (1, number))
    shutil.copytree(tmp_path / "store", tmp_path / "copy")
    with PaneStore.open(url, spec()) as store:
        store.put(batch(3), (2, 3))
        store.put(batch(4), (2, 4))
    with PaneStore.open(url, read_only=True) as reader:
        assert set(views(reader)) == {15}
        replaced(tmp_path / "store", tmp_path / "copy")
        if further:
            with PaneStore.open(url, spec()) as store:
                for number in range(5, 9):
                    store.put(batch(number), (3, number))
        with PaneStore.open(url, read_only=True) as fresh:
            until(lambda: reader.meta() == fresh.meta(), "the reader keeps what was replaced")
            assert views(reader) == views(fresh)
