"""A Redis that goes back: started from an old dump, in or between batches, or another store under the same name."""

from collections.abc import Iterator

import pytest
import redis

from fastwin.errors import StoreError, StoreUnavailableError
from fastwin.store import PaneStore
from tests.support.clicks import FIRST, MINUTE
from tests.support.numbered_clicks import batch, spec
from tests.support.redis_server import RedisServer
from tests.support.until import until


@pytest.fixture
def server(tmp_path) -> Iterator[RedisServer]:
    started = RedisServer(tmp_path)
    yield started
    started.stop()


def save(server: RedisServer) -> None:
    redis.Redis.from_url(server.url).save()


def restart(server: RedisServer) -> None:
    server.kill()
    server.start()


def test_back_between_batches(server):
    """The next batch is refused: those since the dump are gone. Put again, or accepted as lost, the store goes on."""
    with PaneStore.open(server.url, spec()) as store:
        for number in range(4):
            store.put(batch(number), (1, number))
            if number == 1:
                save(server)
        restart(server)
        for _ in range(2):  # and not only once
            with pytest.raises(StoreError, match="went back from version 4 to 2"):
                store.put(batch(4), (1, 4))
        with PaneStore.open(server.url, read_only=True) as reader:
            assert reader.meta().version == 2 and reader.watermark == FIRST + 2 * 3 * MINUTE
        store.accept_loss()
        store.put(batch(4), (1, 4))
        meta = store.meta()
        assert meta.since == meta.watermark == FIRST + 5 * 3 * MINUTE  # no window from before is complete
        store.put(batch(5), (1, 5))
        assert store.meta().since == meta.since


def test_back_within_a_batch(server):
    """Its last version is still there, but what this batch had put before the restart is gone: put it again."""
    with PaneStore.open(server.url, spec()) as store:
        store.put(batch(0), (1, 0))
        save(server)
        store.put(batch(1), (1, 1), advance=False)
        restart(server)
        with pytest.raises(StoreUnavailableError, match=r"started again .*put the batch again"):
            store.put(batch(2), (1, 1))
        store.put(batch(1), (1, 1), advance=False)
        store.put(batch(2), (1, 1))
        end = store.watermark
        assert set(store.query(start=end - 9 * MINUTE, end=end)["pv"].to_pylist()) == {1 + 2 + 3}


def test_another_store_under_the_same_name(server):
    """Emptied, and written by somebody else since: versions alone would look well."""
    with PaneStore.open(server.url, spec()) as store:
        store.put(batch(0), (1, 0))
        redis.Redis.from_url(server.url).flushall()
        with PaneStore.open(server.url, spec()) as other:
            other.put(batch(0), (1, 0))
            other.put(batch(1), (1, 1))
        with pytest.warns(UserWarning, match="has lost all panes since the last batch"):
            store.put(batch(2), (1, 2))


def test_late_panes_in_a_store_that_was_emptied(server):
    """A pane from before the loss that is put again does not make what is around it complete."""
    with PaneStore.open(server.url, spec()) as store:
        for number in range(5):
            store.put(batch(number), (1, number))
        redis.Redis.from_url(server.url).flushall()
        with pytest.warns(UserWarning, match="has lost all panes"):
            store.put(batch(5), (1, 5))
        assert store.meta().since == FIRST + 5 * 3 * MINUTE
        store.put(batch(2), (1, 6))
        assert store.meta().since == FIRST + 5 * 3 * MINUTE


def test_accepted_loss_waits_for_panes(server):
    """Batches without panes do not end it, nor does another writer begin anew: it is told with the next panes."""
    with PaneStore.open(server.url, spec()) as store:
        for number in range(8):
            store.put(batch(number), (1, number))
            if number == 3:
                save(server)
    restart(server)
    with PaneStore.open(server.url, spec()) as store:
        store.accept_loss()
        store.begin_batch()
        store.advance_watermark(None, mark=("query", 8))
    with PaneStore.open(server.url, spec()) as store:
        store.put(batch(9), (2, 9))
        assert store.meta().since == store.watermark == FIRST + 10 * 3 * MINUTE
        store.put(batch(10), (2, 10))
        assert store.meta().since == FIRST + 10 * 3 * MINUTE


def test_accepted_loss_of_a_store_that_is_empty(server):
    """Its mark alone comes first, then the panes."""
    with PaneStore.open(server.url, spec()) as store:
        store.accept_loss()
        store.begin_batch()
        store.advance_watermark(None, mark=("query", 8))
    with PaneStore.open(server.url, spec()) as store:
        store.put(batch(9), (2, 9))
        assert store.meta().since == FIRST + 10 * 3 * MINUTE


def test_accepted_loss_with_lateness(server):
    """The next panes may be older ones, corrected: what is lost then reaches further than they do."""
    late = spec().allowed_lateness("10 minutes")
    with PaneStore.open(server.url, late) as store:
        store.accept_loss()
        store.put(batch(4), (2, 9))
        assert store.watermark == FIRST + 5 * 3 * MINUTE
        assert store.meta().since == FIRST + 9 * 3 * MINUTE


def test_loss_that_is_accepted_while_another_writer_ends_a_batch(server, monkeypatch):
    """It is told with the batch behind that one, whose writer did not know of it."""
    with PaneStore.open(server.url, spec()) as one, PaneStore.open(server.url, spec()) as other:
        one.put(batch(0), (1, 0))
        advance = type(one)._advance

        def accepting(self, *arguments):
            monkeypatch.undo()
            other.accept_loss()
            other.begin_batch()
            other.advance_watermark(None, mark=("query", 8))
            return advance(self, *arguments)

        monkeypatch.setattr(type(one), "_advance", accepting)
        one.put(batch(1), (1, 1))
        assert one.meta().lost
        one.put(batch(2), (1, 2))
        assert not one.meta().lost and one.meta().since == FIRST + 3 * 3 * MINUTE


def test_a_batch_without_panes_is_over(server):
    """What begins behind it is another one, which a restart before does not concern."""
    with PaneStore.open(server.url, spec()) as store:
        store.put(batch(0), (1, 0))
        save(server)
        store.put(batch(1).slice(0, 0), (1, 1))
        restart(server)
        assert store.put(batch(1), (1, 2)).stored == batch(1).num_rows
        assert store.watermark == FIRST + 2 * 3 * MINUTE


def test_a_batch_that_ends_without_panes_is_none(server):
    """What was put of it before is gone by the restart."""
    with PaneStore.open(server.url, spec()) as store:
        store.put(batch(0), (1, 0))
        save(server)
        store.begin_batch()
        store.put(batch(1), (1, 1), advance=False)
        store.put(batch(1).slice(0, 0), (1, 1))
        restart(server)
        with pytest.raises(StoreUnavailableError, match="put the batch again"):
            store.advance_watermark(FIRST + 2 * 3 * MINUTE)
        assert store.watermark == FIRST + 3 * MINUTE


def test_part_of_a_batch_is_not_published(server):
    """Started again in the middle, the batch is refused before readers get its watermark."""
    with PaneStore.open(server.url, spec()) as store:
        store.put(batch(0), (1, 0))
        save(server)
        before = store.meta()
        store.begin_batch()
        store.put(batch(1).slice(0, 25), (1, 1), advance=False)
        restart(server)
        store.put(batch(1).slice(25), (1, 1), advance=False)
        with pytest.raises(StoreUnavailableError, match=r"started again .*put the batch again"):
            store.advance_watermark(FIRST + 2 * 3 * MINUTE)
        assert store.meta() == before


def test_started_again_just_before_the_end_of_a_batch(server, monkeypatch):
    """The server itself looks whether it is the one, as it may be another after all that was asked before."""
    with PaneStore.open(server.url, spec()) as store:
        store.put(batch(0), (1, 0))
        save(server)
        before, advance = store.meta(), type(store)._advance

        def restarting(self, *arguments):
            restart(server)
            return advance(self, *arguments)

        monkeypatch.setattr(type(store), "_advance", restarting)
        with pytest.raises(StoreUnavailableError, match=r"started again .*put the batch again"):
            store.put(batch(1), (1, 1))
        assert store.meta() == before


@pytest.mark.parametrize("late", [False, True])
def test_emptied_within_a_batch(server, monkeypatch, late):
    """A part of it is gone as well, so it is put again; readers see nothing of the part that was left."""
    with PaneStore.open(server.url, spec()) as store:
        for number in range(3):
            store.put(batch(number), (1, number))
        client, advance = redis.Redis.from_url(server.url), type(store)._advance
        store.begin_batch()
        store.put(batch(3).slice(0, 25), (1, 3), advance=False)
        if late:
            monkeypatch.setattr(type(store), "_advance", lambda *given: client.flushall() and advance(*given))
        else:
            client.flushall()
        with pytest.raises(StoreUnavailableError, match=r"emptied in the middle .*put the batch again"):
            store.put(batch(3).slice(25), (1, 3))
        monkeypatch.undo()
        assert store.watermark is None
        with pytest.warns(UserWarning, match="has lost all panes"):
            store.put(batch(3), (1, 3))
        meta = store.meta()
        assert meta.since == FIRST + 3 * 3 * MINUTE and meta.watermark == FIRST + 4 * 3 * MINUTE
        assert store.query(start=meta.since, end=meta.watermark).num_rows == 50


def test_emptied_within_the_first_batch(server):
    with PaneStore.open(server.url, spec()) as store:
        store.put(batch(3).slice(0, 25), (1, 3), advance=False)
        redis.Redis.from_url(server.url).flushall()
        with pytest.raises(StoreUnavailableError, match="emptied in the middle"):
            store.put(batch(3).slice(25), (1, 3))


def test_two_failovers_within_a_batch(server, tmp_path):
    """The same process is the master again, and lacks what was put before the other one took over."""
    (tmp_path / "other").mkdir()
    other = RedisServer(tmp_path / "other", "--repl-diskless-sync-delay", "0")
    one, two = (redis.Redis.from_url(each.url) for each in (server, other))
    one.config_set("repl-diskless-sync-delay", 0)
    try:
        two.replicaof("127.0.0.1", str(server.port))
        until(lambda: two.info("replication")["master_link_status"] == "up")
        with PaneStore.open(server.url, spec()) as store:
            store.put(batch(0), (1, 0))
            one.wait(1, 5_000)
            store.begin_batch()
            two.replicaof("NO", "ONE")
            store.put(batch(1), (1, 1), advance=False)
            one.replicaof("127.0.0.1", str(other.port))
            until(lambda: one.info("replication").get("master_link_status") == "up")
            one.replicaof("NO", "ONE")
            with pytest.raises(StoreUnavailableError, match="put the batch again"):
                store.advance_watermark(FIRST + 2 * 3 * MINUTE)
            assert store.watermark == FIRST + 3 * MINUTE
    finally:
        other.stop()


def test_an_old_run_does_not_set_a_mark_back(server):
    """Nor does a checkpoint that was rolled back: it goes on below the mark, and beyond it."""
    with PaneStore.open(server.url, spec()) as store, PaneStore.open(server.url, spec()) as old:
        for writer, number, mark in ((store, 8, 8), (old, 5, 8), (old, 6, 8), (store, 9, 9), (store, 10, 10)):
            writer.put(batch(number), (1, number), advance=False)
            writer.advance_watermark(None, mark=("query", number))
            assert writer.batch_of("query") == mark
        assert store.meta().version == 5


def test_two_writers_are_no_going_back(server):
    with PaneStore.open(server.url, spec()) as one, PaneStore.open(server.url, spec()) as other:
        for number in range(0, 140, 2):
            one.put(batch(number), (1, number))
            other.put(batch(number + 1), (1, number + 1))
        for number in range(140, 240):  # more than the store remembers
            other.put(batch(number), (1, number))
        one.put(batch(240), (1, 240))
        assert one.meta().version == 241


def test_emptied_while_it_is_read(server, monkeypatch):
    """What was read is of two stores, or of none: an error, and no window without rows."""
    with PaneStore.open(server.url, spec()) as store:
        store.put(batch(0), (1, 0))
        scan = type(store)._scan

        def emptied(self, *arguments):
            redis.Redis.from_url(server.url).flushall()
            return scan(self, *arguments)

        monkeypatch.setattr(type(store), "_scan", emptied)
        for ask in (store.query, store.series):
            with pytest.raises(StoreUnavailableError, match="while it was read; ask again"):
                ask()
            store._client.flushall()
            with PaneStore.open(server.url, spec()) as other:
                other.put(batch(0), (1, 0))
