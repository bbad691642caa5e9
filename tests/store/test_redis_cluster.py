"""Stores in a Redis Cluster of three masters: slots that move, a failover, a batch that a failover loses."""

import re
import time
from collections.abc import Iterator

import pytest
import redis
from redis.crc import key_slot

from fastwin.errors import SpecError, StoreError, StoreUnavailableError
from fastwin.store import PaneStore, Written
from tests.support.clicks import DAY, FIRST, HOUR, MINUTE, by_module, clicks, counted, spec_of
from tests.support.documents import ROOT
from tests.support.numbered_clicks import MODULES, batch, spec
from tests.support.redis_groups import Cluster, cut_off
from tests.support.redis_server import RedisServer
from tests.support.until import until

PANE = 3 * MINUTE


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Iterator[Cluster]:
    started = Cluster(tmp_path_factory.mktemp("cluster"))
    yield started
    started.stop()


@pytest.fixture
def cluster(shared) -> Cluster:
    shared.flush()
    return shared


@pytest.fixture
def doubled(tmp_path) -> Iterator[Cluster]:
    """A cluster of which the first master has a replica."""
    started = Cluster(tmp_path, replicas=1)
    yield started
    started.stop()


def namespace_on(cluster: Cluster, server: RedisServer) -> str:
    """Returns a namespace whose slot is on a server."""
    at = cluster.masters.index(server)
    return next(name for name in map("clicks{}".format, range(1_000)) if slot_of(name) * 3 // 16_384 == at)


def slot_of(namespace: str) -> int:
    return key_slot(namespace.encode())


def put(store: PaneStore, number: int, seconds: float = 20) -> int:
    """Puts a batch until it is there; returns how often it was not."""
    end = time.monotonic() + seconds
    failed = 0
    while True:
        try:
            store.put(batch(number), (1, number))
            return failed
        except StoreUnavailableError:
            assert time.monotonic() < end
            failed += 1
            time.sleep(0.1)


def views(store: PaneStore, batches: int) -> set[int]:
    """Returns what the modules have in the panes of the first batches."""
    return set(store.query(start=FIRST, end=FIRST + batches * PANE)["pv"].to_pylist())


def asked(store: PaneStore, batches: int, seconds: float = 20) -> set[int]:
    """Returns ``views`` when the store answers."""
    end = time.monotonic() + seconds
    while True:
        try:
            return views(store, batches)
        except StoreUnavailableError:
            assert time.monotonic() < end
            time.sleep(0.1)


def answer(call):
    """Returns what a call returns; or that the store cannot now."""
    try:
        return call()
    except StoreUnavailableError as problem:
        return problem


def test_store_in_one_slot(cluster):
    """The figures are right, and other stores lie with other masters."""
    table = clicks(3_000)
    panes = spec_of().panes().run(table).main
    end = FIRST + 30 * HOUR
    for namespace in (namespace_on(cluster, server) for server in cluster.masters):
        with PaneStore.open(cluster.url(f"namespace={namespace}"), spec_of()) as store:
            store.put(panes)
            with PaneStore.open(cluster.url(f"namespace={namespace}"), read_only=True) as reader:
                assert by_module(reader.query(end=end)) == counted(table, end - DAY, end)
                assert reader.keys().num_rows == 5 and reader.meta() == store.meta()
    for server in cluster.masters:
        names = list(redis.Redis.from_url(server.url).scan_iter(count=10_000))
        assert len({name.partition(b"}")[0] for name in names}) == 1 and len(names) > 100


def test_slots_move_in_the_middle(cluster):
    """Half moved, the store answers right or says that it cannot; then it goes on where it was."""
    source, target = cluster.masters[0], cluster.masters[2]
    namespace = namespace_on(cluster, source)
    slot = slot_of(namespace)
    with (
        PaneStore.open(cluster.url(f"namespace={namespace}"), spec(), retention="3 hours") as store,
        PaneStore.open(cluster.url(f"namespace={namespace}"), read_only=True) as reader,
    ):
        for number in range(3):
            put(store, number)
        assert views(reader, 3) == {1 + 2 + 3}
        cluster.begin_to_move(slot, source, target, 100)
        for call, right in (
            (lambda: views(reader, 3), {1 + 2 + 3}),
            (lambda: store.put(batch(3), (1, 3)), Written(stored=len(MODULES))),
            (lambda: views(reader, 3), {1 + 2 + 3}),
        ):
            said = answer(call)
            assert said == right or "takes no panes now" in str(said)
        cluster.end_to_move(slot, source, target)
        try:
            put(store, 3)
            assert asked(reader, 4) == {1 + 2 + 3 + 4}
            put(store, 4)
            assert asked(reader, 5) == {1 + 2 + 3 + 4 + 5}
            assert reader.query().num_rows == len(MODULES)
            for number in range(30, 99, 3):  # names expire there, too
                put(store, number)
            assert reader.meta().since > FIRST
            assert list(redis.Redis.from_url(source.url).scan_iter(f"{{{namespace}}}*")) == []
        finally:
            cluster.begin_to_move(slot, target, source, 100)
            cluster.end_to_move(slot, target, source)


def test_failover(doubled):
    """While there is no master, both are told so within a bounded time; then they go on by themselves."""
    first, replica = doubled.masters[0], doubled.replicas[0]
    url = doubled.url(f"namespace={namespace_on(doubled, first)}")
    with PaneStore.open(url, spec()) as store, PaneStore.open(url, read_only=True) as reader:
        put(store, 0)
        put(store, 1)
        doubled._client(first).wait(1, 5_000)
        first.kill()
        began = time.monotonic()
        with pytest.raises(StoreUnavailableError):
            store.put(batch(2), (1, 2))
        assert time.monotonic() - began < 30
        put(store, 2)
        assert asked(reader, 3) == {1 + 2 + 3} and reader.meta().version == 3
        assert redis.Redis.from_url(replica.url).info("replication")["role"] == "master"
        first.start()  # comes back as a replica
        until(lambda: doubled._client(first).info("replication")["role"] == "slave")
        put(store, 3)
        assert asked(reader, 4) == {1 + 2 + 3 + 4}


@pytest.mark.parametrize("goes_on", [True, False])
def test_another_master_dies(tmp_path, goes_on):
    """Of which the store has nothing. The servers' own setting says whether the others still answer."""
    cluster = Cluster(tmp_path, "--cluster-require-full-coverage", "no" if goes_on else "yes")
    try:
        first, other, third = cluster.masters
        url = cluster.url(f"namespace={namespace_on(cluster, first)}")
        with PaneStore.open(url, spec()) as store, PaneStore.open(url, read_only=True) as reader:
            put(store, 0)
            other.kill()
            state = "ok" if goes_on else "fail"
            until(lambda: cluster._client(third).cluster("info")["cluster_state"] == state)
            if goes_on:
                put(store, 1)
                assert asked(reader, 2) == {1 + 2}
                return
            until(lambda: cluster._client(first).cluster("info")["cluster_state"] == "fail")
            with pytest.raises(StoreUnavailableError):
                store.put(batch(1), (1, 1))
            with pytest.raises(StoreUnavailableError):
                views(reader, 1)
            other.start()
            put(store, 1)
            assert asked(reader, 2) == {1 + 2}
    finally:
        cluster.stop()


def test_failover_that_loses_a_batch(doubled):
    """The replica had not the last batch: the writer is refused, and readers see what there is, with its watermark."""
    first, replica = doubled.masters[0], doubled.replicas[0]
    url = doubled.url(f"namespace={namespace_on(doubled, first)}")
    with PaneStore.open(url, spec()) as store, PaneStore.open(url, read_only=True) as reader:
        put(store, 0)
        doubled._client(first).wait(1, 5_000)
        cut_off(replica, first)
        put(store, 1)
        assert views(reader, 2) == {1 + 2}
        first.kill()
        replica.thaw()
        with pytest.raises(StoreError, match="went back from version 2 to 1"):
            put(store, 2)
        assert asked(reader, 1) == {1} and reader.watermark == FIRST + PANE
        store.accept_loss()
        put(store, 2)
        assert reader.meta().since == reader.watermark


def test_frozen_master_is_told_in_time(cluster):
    server = cluster.masters[1]
    url = cluster.url(f"namespace={namespace_on(cluster, server)}").replace("socket_timeout=2", "socket_timeout=0.3")
    with PaneStore.open(url, spec()) as store:
        put(store, 0)
        server.freeze()
        try:
            began = time.monotonic()
            with pytest.raises(StoreUnavailableError):
                store.put(batch(1), (1, 1))
            with pytest.raises(StoreUnavailableError):
                store.query()
            assert time.monotonic() - began < 15
        finally:
            server.thaw()
        until(lambda: cluster._is_whole(server, 3) and cluster._is_whole(cluster.masters[0], 3))
        put(store, 1)
        assert asked(store, 2) == {1 + 2}


def test_what_is_refused_when_opening(cluster, tmp_path):
    for read_only in (False, True):
        with pytest.raises(StoreError, match=r"part of a Redis Cluster of 3 masters; name it as redis\+cluster://"):
            PaneStore.open(cluster.masters[0].url, read_only=read_only)
    with pytest.raises(SpecError, match="database 0 alone"):
        PaneStore.open(cluster.url().replace("?", "/1?"))
    with pytest.raises(StoreUnavailableError, match="is out of reach"):
        PaneStore.open("redis+cluster://127.0.0.1:1,127.0.0.1:2")
    alone = RedisServer(tmp_path)
    try:
        with pytest.raises(StoreError, match="is no Redis Cluster; name it as redis://"):
            PaneStore.open(alone.url.replace("redis:", "redis+cluster:").removesuffix("/0"))
    finally:
        alone.stop()
    one = redis.Redis.from_url(cluster.masters[2].url)
    one.config_set("maxmemory", 10**9)
    one.config_set("maxmemory-policy", "allkeys-lru")
    try:
        with pytest.raises(StoreError, match=rf":{cluster.masters[2].port}, removes what it likes .*allkeys-lru"):
            PaneStore.open(cluster.url(), spec())
        PaneStore.open(cluster.url(), read_only=True).close()
    finally:
        one.config_set("maxmemory", 0)


def test_documented_rights_are_enough(cluster):
    """And what a user may not do is no wrong password."""
    page = (ROOT / "docs" / "store.md").read_text(encoding="utf-8")
    names, *allowed = re.search(r"^~\{NAMESPACE\*[^`]*", page, re.MULTILINE)[0].split()
    more = re.search(r"In a Redis Cluster also `([^`]*)`", page)[1].split()
    for server in cluster.masters:
        client = redis.Redis.from_url(server.url)
        rights = [names.replace("NAMESPACE", "fastwin"), *allowed]
        client.execute_command("ACL", "SETUSER", "writer", "on", ">secret", *rights, *more)
        client.execute_command("ACL", "SETUSER", "reader", "on", ">secret", "~*", "+hgetall", *more)
    url = cluster.url("password_env=CLICKS").replace("://", "://writer@")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLICKS", "secret")
        with PaneStore.open(url, spec(), retention="2 hours") as store:
            for number in range(0, 100, 10):
                put(store, number)
            assert store.query().num_rows == len(MODULES)
        with (
            PaneStore.open(url.replace("writer", "reader"), spec()) as store,
            pytest.raises(StoreError, match="knows the user, but does not let it do"),
        ):
            store.put(batch(0))
        patch.setenv("CLICKS", "wrong")
        with pytest.raises(StoreError, match="refuses the user or password"):
            PaneStore.open(url)
