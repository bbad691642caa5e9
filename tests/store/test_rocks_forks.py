"""RocksDB in a forked process: the parent alone writes and closes; a reader is opened anew."""

import os
import signal

import pytest

from fastwin.errors import StoreError
from fastwin.store import PaneStore
from tests.support.forks import in_a_child
from tests.support.numbered_clicks import MODULES, batch, spec
from tests.support.until import until

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
_SECONDS = 30  # a child that waits for threads that it does not have never ends


@pytest.fixture
def url(tmp_path):
    return f"rocksdb:{tmp_path / 'store'}"


def puts(store) -> None:
    with pytest.raises(StoreError, match="opened for writing in another process"):
        store.put(batch(1), (1, 1))


def reads(store) -> None:
    with pytest.raises(StoreError, match="opened for writing in another process"):
        store.query()


def closes(store) -> None:
    store.close()
    with pytest.raises(StoreError, match="was closed"):
        store.put(batch(1), (1, 1))


def reads_anew(store) -> None:
    with PaneStore.open(f"rocksdb:{store._path}", read_only=True) as reader:
        assert reader.query().num_rows == len(MODULES)


@pytest.mark.parametrize("act", [puts, reads, closes, reads_anew])
def test_a_writer_stays_with_its_process(url, act):
    with PaneStore.open(url, spec()) as store:
        store.put(batch(0), (1, 0))

        in_a_child(lambda: (signal.alarm(_SECONDS), act(store)))
        for number in range(1, 4):
            store.put(batch(number), (1, number))
        assert store.meta().version == 4
    with PaneStore.open(url, spec()) as store:
        assert store.meta().version == 4


@pytest.mark.parametrize("read_only", [False, True])
def test_a_child_that_frees_a_store_comes_to_its_end(url, read_only):
    stores = [PaneStore.open(url, spec())]
    stores[0].put(batch(0), (1, 0))
    if read_only:
        stores[0] = PaneStore.open(url, read_only=True)
    in_a_child(lambda: (signal.alarm(_SECONDS), stores.clear()))
    stores[0].close()


def test_a_reader_follows_in_a_child(url):
    with PaneStore.open(url, spec()) as store, PaneStore.open(url, read_only=True) as reader:
        store.put(batch(0), (1, 0))
        before = reader._reader

        def reads_on() -> None:
            signal.alarm(_SECONDS)
            assert reader.meta() == store_said
            assert reader._reader is not before
            assert reader._reader._scratch.path.exists()
            reader.close()

        store_said = store.meta()
        in_a_child(reads_on)
        assert before._scratch.path.exists()
        store.put(batch(1), (1, 1))
        until(lambda: reader.meta() == store.meta(), "the reader is stale")
