"""Stores in a master that a Sentinel watches, with a replica: a failover, passwords, names that nobody knows."""

import time
from collections.abc import Iterator

import pytest
import redis

from fastwin.errors import SpecError, StoreError, StoreUnavailableError
from fastwin.store import PaneStore
from tests.support.clicks import FIRST, MINUTE
from tests.support.numbered_clicks import batch, spec
from tests.support.redis_groups import Watched, cut_off
from tests.support.redis_server import RedisServer
from tests.support.until import until

PANE = 3 * MINUTE


@pytest.fixture
def watched(tmp_path) -> Iterator[Watched]:
    started = Watched(tmp_path)
    yield started
    started.stop()


def views(store: PaneStore, batches: int) -> set[int]:
    return set(store.query(start=FIRST, end=FIRST + batches * PANE)["pv"].to_pylist())


def patiently(call, seconds: float = 30):
    end = time.monotonic() + seconds
    while True:
        try:
            return call()
        except StoreUnavailableError:
            assert time.monotonic() < end
            time.sleep(0.1)


def test_failover(watched):
    """Writer and readers find the new master by themselves."""
    until(watched.knows_replica)
    with PaneStore.open(watched.url(), spec()) as store, PaneStore.open(watched.url(), read_only=True) as reader:
        for number in range(2):
            store.put(batch(number), (1, number))
        assert views(reader, 2) == {1 + 2}
        redis.Redis.from_url(watched.master.url).wait(1, 5_000)
        watched.master.kill()
        with pytest.raises(StoreUnavailableError):
            store.put(batch(2), (1, 2))
        patiently(lambda: store.put(batch(2), (1, 2)))
        assert patiently(lambda: views(reader, 3)) == {1 + 2 + 3}
        assert reader.meta().version == 3
        assert redis.Redis.from_url(watched.replica.url).info("replication")["role"] == "master"


def test_failover_that_loses_a_batch(watched):
    until(watched.knows_replica)
    with PaneStore.open(watched.url(), spec()) as store, PaneStore.open(watched.url(), read_only=True) as reader:
        store.put(batch(0), (1, 0))
        redis.Redis.from_url(watched.master.url).wait(1, 5_000)
        cut_off(watched.replica, watched.master)
        store.put(batch(1), (1, 1))
        watched.master.kill()
        watched.replica.thaw()
        with pytest.raises(StoreError, match="went back from version 2 to 1"):
            patiently(lambda: store.put(batch(2), (1, 2)))
        assert patiently(lambda: reader.watermark) == FIRST + PANE and views(reader, 1) == {1}


def test_failover_by_hand_within_a_batch(watched):
    """Both servers live on. What of the batch went to the old one may not have come over: put it again."""
    until(watched.knows_replica)
    with PaneStore.open(watched.url(), spec()) as store:
        store.put(batch(0), (1, 0))
        store.put(batch(1), (1, 1), advance=False)
        redis.Redis.from_url(watched.master.url).wait(1, 5_000)  # else the batch before may be lost, too
        until(lambda: _may(redis.Redis.from_url(watched.sentinel.url), "FAILOVER"))
        until(lambda: _role(watched.master) == "slave")
        with pytest.raises(StoreUnavailableError):
            store.put(batch(1), (1, 1))
        patiently(lambda: store.put(batch(1), (1, 1)))
        assert patiently(lambda: views(store, 2)) == {1 + 2}


def test_all_sentinels_away(watched):
    """What is connected goes on. A connection that has to be made needs a Sentinel, and is found when one is back."""
    until(watched.knows_replica)
    with PaneStore.open(watched.url(), spec()) as store, PaneStore.open(watched.url(), read_only=True) as reader:
        store.put(batch(0), (1, 0))
        watched.sentinel.kill()
        store.put(batch(1), (1, 1))
        assert views(reader, 2) == {1 + 2}
        redis.Redis.from_url(watched.master.url).client_kill_filter(_type="normal", skipme=True)
        for ask in (lambda: store.put(batch(2), (1, 2)), lambda: views(reader, 2)):
            with pytest.raises(StoreUnavailableError, match="out of reach: No master found for 'clicks'"):
                ask()
        with pytest.raises(StoreUnavailableError, match="out of reach: No master found for 'clicks'"):
            PaneStore.open(watched.url(), read_only=True)
        watched.sentinel.start()
        patiently(lambda: store.put(batch(2), (1, 2)))
        assert patiently(lambda: views(reader, 3)) == {1 + 2 + 3}
        assert reader.meta().version == 3


def _may(sentinel: redis.Redis, what: str) -> bool:
    try:
        return bool(sentinel.execute_command("SENTINEL", what, "clicks"))
    except redis.ResponseError:
        return False


def _role(server: RedisServer) -> str | None:
    """Returns a server's role, or None where it cuts the connection: a Sentinel tells it to, at a failover."""
    try:
        return redis.Redis.from_url(server.url).info("replication")["role"]
    except redis.ConnectionError:
        return None


def test_passwords_of_both(tmp_path, monkeypatch):
    monkeypatch.setenv("CLICKS_PASSWORD", "of data")
    monkeypatch.setenv("GUARD_PASSWORD", "of the guard")
    passwords = ("--requirepass", "of data", "--masterauth", "of data")
    folder = tmp_path / "servers"
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Watched, "_info", staticmethod(lambda server: {"master_link_status": "up"}))
        watched = Watched(folder, *passwords, guard='requirepass "of the guard"\nsentinel auth-pass clicks "of data"\n')
    try:
        both = "password_env=CLICKS_PASSWORD&sentinel_password_env=GUARD_PASSWORD"
        with patiently(lambda: PaneStore.open(watched.url(both), spec())) as store:
            store.put(batch(0))
            assert views(store, 1) == {1}
        with pytest.raises(StoreError, match=r"refuses the user or password|is out of reach") as caught:
            PaneStore.open(watched.url("password_env=CLICKS_PASSWORD"))
        assert "of data" not in str(caught.value)
        monkeypatch.setenv("CLICKS_PASSWORD", "wrong")
        with pytest.raises(StoreError, match="refuses the user or password"):
            PaneStore.open(watched.url(both))
    finally:
        watched.stop()


def test_what_is_refused_when_opening(watched):
    with pytest.raises(StoreUnavailableError, match=r"is out of reach: No master found for 'other'$"):
        PaneStore.open(watched.url(service="other"))
    with pytest.raises(StoreError, match="is no Sentinel; name it as redis://"):
        PaneStore.open(f"redis+sentinel://127.0.0.1:{watched.master.port}/clicks")
    with pytest.raises(StoreError, match=r"is a Sentinel, which holds no data; name it .* as redis\+sentinel://"):
        PaneStore.open(watched.sentinel.url)
    redis.Redis.from_url(watched.master.url).config_set("maxmemory", 10**9)
    redis.Redis.from_url(watched.master.url).config_set("maxmemory-policy", "volatile-ttl")
    with pytest.raises(StoreError, match="maxmemory-policy is volatile-ttl"):
        PaneStore.open(watched.url(), spec())


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("redis+sentinel://localhost", "names no service"),
        ("redis+sentinel://localhost/clicks/first", "names no service"),
        ("redis+sentinel://localhost:port/clicks", "is no URL for Redis"),
        ("redis+sentinel://one,two:port/clicks", "is no URL for Redis"),
        ("redis+cluster://one:1,,two", "is no URL for Redis"),
        ("redis+cluster://:secret@one:1,tw[o:2", "is no URL for Redis"),
        ("redis+cluster://:secret@one:1,:secret@two:2", "is no URL for Redis"),
        ("redis+cluster://:my/secret@one,two", "is no URL for Redis"),
        ("redis+cluster://one?colour=blue", "colour"),
        ("redis+cluster://one?socket_timeout=soon", "soon"),
        ("redis+other://one", "must begin with"),
    ],
)
def test_urls_that_make_no_sense(url, says):
    with pytest.raises(SpecError, match=says) as caught:
        PaneStore.open(url)
    assert "secret" not in str(caught.value)
