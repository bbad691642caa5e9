"""What is looked at when a Redis is opened: that it keeps panes, that it has all slots, who asks, and what the URL says."""

import re
from collections.abc import Iterator

import pytest
import redis

import fastwin as fw
from fastwin.errors import SpecError, StoreError, StoreUnavailableError
from fastwin.store import PaneStore
from fastwin.store.layout import Layout
from fastwin.store.redisfaults import check_cluster, check_server
from tests.support.clicks import spec_of
from tests.support.documents import ROOT
from tests.support.numbered_clicks import MODULES, batch, spec
from tests.support.redis_server import RedisServer
from tests.support.until import until


@pytest.fixture
def start(tmp_path) -> Iterator:
    """Returns a function that starts a server with options."""
    started = []

    def begin(*options: str, **others: str) -> RedisServer:
        folder = tmp_path / f"redis{len(started)}"
        folder.mkdir()
        started.append(RedisServer(folder, *options, **others))
        return started[-1]

    yield begin
    for server in started:
        server.stop()


def test_server_that_evicts_is_refused(start):
    server = start("--maxmemory", "50mb", "--maxmemory-policy", "allkeys-lru")
    with pytest.raises(StoreError, match=r"maxmemory-policy is allkeys-lru.*set it to noeviction"):
        PaneStore.open(server.url, spec())
    PaneStore.open(server.url, read_only=True).close()
    redis.Redis.from_url(server.url).config_set("maxmemory", 0)  # never full, so the policy does nothing
    PaneStore.open(server.url, spec()).close()


def test_replica_is_for_readers(start):
    master = start()
    replica = start("--replicaof", "127.0.0.1", str(master.port))
    with PaneStore.open(master.url, spec()) as store:
        store.put(batch(0))
        with pytest.raises(StoreUnavailableError, match="is a replica, which takes no panes"):
            PaneStore.open(replica.url, spec())
        with PaneStore.open(replica.url, read_only=True) as reader:
            until(lambda: reader.watermark == store.watermark)
            assert reader.query().equals(store.query())


def test_sentinel_is_refused(start):
    server = start("--sentinel", config="sentinel monitor other 127.0.0.1 1 1\n")
    with pytest.raises(StoreError, match="is a Sentinel, which holds no data"):
        PaneStore.open(server.url, spec())


class Told:
    """A client of one server, alone or in a Cluster, that tells its version."""

    name = "here:6379"

    def __init__(self, version: object) -> None:
        self._version = version

    def execute_command(self, *_: str) -> dict[str, object]:
        return {"redis_mode": "standalone", "role": "master", "redis_version": self._version}

    def get_primaries(self) -> list["Told"]:
        return [self]

    def get_redis_connection(self, node: "Told") -> "Told":
        return node


@pytest.mark.parametrize("check", [check_server, check_cluster])
@pytest.mark.parametrize("read_only", [True, False])
def test_server_that_is_too_old_is_refused(check, read_only):
    for version in ("6.0.16", "5.0.7", "2.8.19", 6.1):
        with pytest.raises(StoreError, match=rf"is a Redis of version {version}, and a store needs 6\.2 or newer"):
            check(Told(version), "redis://here", read_only)
    for version in ("6.2.0", "7.0.15", "10.0.1", 6.2, "unknown"):
        check(Told(version), "redis://here", read_only)


def test_cluster_of_several_masters_is_refused(start):
    one, other = start("--cluster-enabled", "yes"), start("--cluster-enabled", "yes")
    clients = [redis.Redis.from_url(server.url) for server in (one, other)]
    clients[0].execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 8_000)
    clients[1].execute_command("CLUSTER", "ADDSLOTSRANGE", 8_001, 16_383)
    clients[0].execute_command("CLUSTER", "MEET", "127.0.0.1", other.port)
    until(lambda: b"cluster_size:2" in clients[0].execute_command("CLUSTER", "INFO"))
    for read_only in (False, True):
        with pytest.raises(StoreError, match="part of a Redis Cluster of 2 masters"):
            PaneStore.open(one.url, read_only=read_only)


def with_user(server: RedisServer, user: str) -> str:
    return server.url.replace("://", f"://{user}@")


def test_denied_is_not_a_wrong_password(start):
    server = start()
    client = redis.Redis.from_url(server.url)
    client.execute_command("ACL", "SETUSER", "reader", "on", ">secret", "~*", "+ping", "+hgetall", "+hello")
    client.execute_command("ACL", "SETUSER", "nobody", "on", ">secret", "~*")
    with pytest.raises(StoreError, match="refuses the user or password") as caught:
        PaneStore.open(with_user(server, "reader:wrong"))
    assert "does not let it" not in str(caught.value)
    denied = r"knows the user, but does not let it do what a store needs: .*permissions"
    with (
        PaneStore.open(with_user(server, "reader:secret"), spec()) as store,
        pytest.raises(StoreError, match=denied) as caught,
    ):
        store.put(batch(0))
    assert "password" not in str(caught.value)
    with pytest.raises(StoreError, match=denied):
        PaneStore.open(with_user(server, "nobody:secret"))


@pytest.mark.parametrize("database", [0, 1])
def test_documented_rights_are_enough(start, database):
    page = (ROOT / "docs" / "store.md").read_text(encoding="utf-8")
    names, *allowed = re.search(r"^~\{NAMESPACE\*[^`]*", page, re.MULTILINE)[0].split()
    server = start()
    client = redis.Redis.from_url(server.url)
    client.execute_command("ACL", "SETUSER", "writer", "on", ">secret", names.replace("NAMESPACE", "fastwin"), *allowed)
    url = with_user(server, "writer:secret").removesuffix("0") + str(database)
    with PaneStore.open(url, spec(), retention="2 hours") as store:
        for number in range(0, 100, 4):
            store.put(batch(number), (1, number))
        assert store.query().num_rows == len(MODULES)
        assert store.meta().since > store.watermark - 4 * 3_600_000


def test_password_from_the_environment_or_a_file(start, tmp_path, monkeypatch):
    server = start("--requirepass", "very secret")
    (tmp_path / "password").write_text("very secret\n")
    (tmp_path / "marked").write_text("very secret\n", encoding="utf-8-sig")
    monkeypatch.setenv("CLICKS_PASSWORD", "very secret")
    files = [f"password_file={tmp_path / name}" for name in ("password", "marked")]
    for option in (*files, "password_env=CLICKS_PASSWORD"):
        with PaneStore.open(f"{server.url}?{option}", spec()) as store:
            store.put(batch(0))
    monkeypatch.setenv("CLICKS_PASSWORD", "wrong one")
    with pytest.raises(StoreError, match="refuses the user or password") as caught:
        PaneStore.open(f"{server.url}?password_env=CLICKS_PASSWORD")
    assert "wrong one" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("redis://localhost:port/0", "is no URL for Redis"),
        ("redis://localhost:70000/0", "is no URL for Redis"),
        ("redis:localhost", "is no URL for Redis"),
        ("unix:secret/redis.sock", "it must be unix:///PATH"),
        ("unix://secret/redis.sock", "it must be unix:///PATH"),
        ("unix://", "it must be unix:///PATH"),
        ("redis://:secret@localhost:port/0", "is no URL for Redis"),
        ("redis://localhost?socket_timeout=soon", "soon"),
        ("redis://localhost?db=first", "is no URL for Redis"),
        ("redis://localhost?colour=blue", "colour"),
        ("redis://localhost?retry=5", "is no URL for Redis"),
        ("redis://localhost?decode_responses=true", "leave out decode_responses="),
        ("redis+cluster://localhost?encoding=utf-16", "leave out encoding="),
        ("redis://localhost?namespace", "is no URL for Redis"),
        ("redis://localhost?password_env=NOT_SET_ANYWHERE", "names the variable 'NOT_SET_ANYWHERE', which is not set"),
        ("redis://localhost?password_file=/nowhere", "password_file '/nowhere' cannot be read"),
        ("redis://:secret@localhost?password_env=HOME", "give one of"),
    ],
)
def test_options_of_the_url_that_make_no_sense(url, says):
    with pytest.raises(SpecError, match=says) as caught:
        PaneStore.open(url)
    assert "secret" not in str(caught.value)


def test_a_socket_in_place_of_a_port(start, tmp_path):
    start("--unixsocket", str(tmp_path / "socket"))
    with PaneStore.open(f"unix://{tmp_path}/socket", spec()) as store:
        store.put(batch(0))
        assert store.query().num_rows == len(MODULES)
    with pytest.raises(StoreError, match=f"unix://{tmp_path}/gone"):
        PaneStore.open(f"unix://{tmp_path}/gone")


@pytest.mark.parametrize(
    "by",
    [
        "redis://:my/secret@host/0",
        "redis://:my#secret@host",
        "redis://:my?secret@host",
        "redis://:12/secret@host",
        "redis://:12#secret@host",
        "redis://:12?secret@host",
        "redis://:12?secret=my@host",
        "redis:///secret@host",
        "redis://localhost?password=12&secret",
        "redis://localhost?password=my#secret",
        "redis://user:secret",
    ],
)
def test_a_password_that_is_not_escaped_is_told_to_nobody(by):
    """Its end looks like a path, a port or an option."""
    with pytest.raises(SpecError, match=r"is no URL for Redis: .* %2F for /") as caught:
        PaneStore.open(by)
    assert "secret" not in str(caught.value) and "my" not in str(caught.value)


@pytest.mark.parametrize("read_only", [True, False])
def test_store_of_an_earlier_layout_is_refused(start, read_only):
    """Its panes are under names of their own; read as they are now they would all be missing."""
    server = start()
    with PaneStore.open(server.url, spec()) as store:
        store.put(batch(0))
    client = redis.Redis.from_url(server.url)
    told = client.hget("{fastwin}:meta", "layout")
    assert b'"version": 2' in told
    client.hset("{fastwin}:meta", "layout", told.replace(b'"version": 2', b'"version": 1'))
    with pytest.raises(
        StoreError, match=r"of an earlier fastwin .*use another namespace .*\{fastwin\}:\* and"
    ) as caught:
        PaneStore.open(server.url, None if read_only else spec(), read_only=read_only)
    assert "{fastwin:*" in str(caught.value)
    PaneStore.open(f"{server.url}?namespace=other", spec()).close()


def test_names_are_those_that_the_store_was_made_with(redis_server, monkeypatch):
    """One server has names of both kinds, a Redis Cluster only those with one hash tag. Either is one server here."""
    client = redis.Redis.from_url(redis_server.url)
    one, other = (f"{redis_server.url}?namespace=names-{each}" for each in ("one", "other"))
    with monkeypatch.context() as cluster:
        cluster.setattr("fastwin.store.redisservers._OneServer.one_slot", True)
        with PaneStore.open(one, spec()) as store:
            store.put(batch(0))
            expected = store.query()
    with PaneStore.open(one, spec()) as store:
        assert store.query().equals(expected) and expected.num_rows == len(MODULES)
        store.put(batch(1))
        assert set(store.query()["pv"].to_pylist()) == {1 + 2}
    assert all(name.startswith(b"{names-one}:") for name in client.scan_iter("{names-one*"))
    with PaneStore.open(other, spec()) as store:
        store.put(batch(0))
    monkeypatch.setattr("fastwin.store.redisservers._OneServer.one_slot", True)
    with pytest.raises(StoreError, match=r"that redis:// has made, with names in several slots; .* another namespace"):
        PaneStore.open(other, read_only=True)


def test_two_specs_that_begin_a_store_at_the_same_moment(redis_server):
    """Both have found it empty; the layout of the first one stays."""
    url = f"{redis_server.url}?namespace=begun-twice"
    with PaneStore.open(url, spec()) as one, PaneStore.open(url) as other:
        one.put(batch(0))
        with pytest.raises(StoreError, match=r"holds panes with window_ms=.*another namespace"):
            other._create(Layout.of(spec_of("2 hours", "3 minutes", pv=fw.Count()), batch(0).schema))
        assert one.query().num_rows == len(MODULES)
