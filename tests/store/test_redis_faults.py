"""A real Redis that fails: stopped, emptied, slow, full, with another password, with foreign values."""

import contextlib
import re
import threading
import time
import warnings
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pytest
import redis
from redis._parsers.base import BaseParser

import fastwin as fw
from fastwin.errors import StoreError, StoreUnavailableError
from fastwin.store import PaneStore
from fastwin.store.redisblocks import Change
from fastwin.store.redisfaults import explained
from fastwin.store.spans import Span
from tests.support.clicks import AGGREGATES, DAY, FIRST, HOUR, MINUTE, by_module, clicks, counted, spec_of
from tests.support.redis_server import RedisServer
from tests.support.until import until


@pytest.fixture
def server(tmp_path) -> Iterator[RedisServer]:
    started = RedisServer(tmp_path)
    yield started
    started.stop()


@pytest.fixture
def table():
    return clicks(2_000)


# As Redis 6.2 begins what it says of a command in a script.
_IN_SCRIPT = "ERR Error running script (call to f_5fd1): @user_script:97: @user_script: 97:"


def panes_of(table):
    return spec_of().panes().run(table).main


def test_stopped_in_the_middle_of_a_batch(tmp_path, table):
    """The batch fails; put again after a restart, the panes are the same as if nothing had happened."""
    server = RedisServer(tmp_path, "--appendonly", "yes", "--appendfsync", "always")
    panes = panes_of(table)
    try:
        with PaneStore.open(server.url, spec_of()) as store:
            store.put(panes.slice(0, 400), (1, 0))
            half_done = threading.Event()
            written = Change.call

            def call(self, *rest):
                if self.block.start > FIRST + 20 * HOUR and not half_done.is_set():
                    half_done.set()
                    server.kill()
                return written(self, *rest)

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Change, "call", call)
                patch.setattr("fastwin.store.redis._PIPELINE", 10)
                with pytest.raises(StoreError, match="is out of reach"):
                    store.put(panes, (1, 1))
            assert half_done.is_set()
            server.start()
            assert 400 <= _panes_in(server) < panes.num_rows
            store.put(panes, (1, 1))
            end = FIRST + 30 * HOUR
            assert by_module(store.query(end=end)) == counted(table, end - DAY, end)
    finally:
        server.stop()


def _panes_in(server: RedisServer) -> int:
    """Returns how many panes have a revision."""
    client = redis.Redis.from_url(server.url)
    return sum(name.isdigit() for shelf in client.scan_iter("*:3min:*Z") for name in client.hkeys(shelf))


def test_started_again_empty(server, table):
    """Rewritten panes come back, and both writer and readers are told that earlier ones do not."""
    panes = panes_of(table).sort_by("window_start")
    half = panes.num_rows // 2
    with PaneStore.open(server.url, spec_of()) as store:
        store.put(panes.slice(0, half), (5, 0))
        server.kill()
        server.start()
        with (
            PaneStore.open(server.url, read_only=True) as reader,
            pytest.raises(StoreError, match="holds no panes yet"),
        ):
            reader.query()
        with pytest.warns(UserWarning, match="has lost all panes since the last batch"):
            store.put(panes.slice(half), (5, 1))
        meta = store.meta()
        first = panes["window_start"][half].as_py().timestamp() * 1_000
        assert meta.since == first  # what a reader needs to know: nothing is there from before
        end = meta.watermark
        assert sum(store.query(start=meta.since, end=end)["pv"].to_pylist()) == sum(panes.slice(half)["pv"].to_pylist())
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            store.put(panes, (5, 2))
        assert by_module(store.query()) == counted(table, end - DAY, end)


def test_slow(server, table):
    panes = panes_of(table)
    url = f"{server.url}?socket_timeout=1"
    with PaneStore.open(url, spec_of()) as store:
        server.freeze()
        with pytest.raises(StoreError, match="did not answer within 1 s"):
            store.put(panes, (1, 0))
        server.thaw()
    with PaneStore.open(f"{server.url}?socket_timeout=20", spec_of()) as store:
        timer = threading.Timer(0.5, server.thaw)  # slower than usual, but in time
        server.freeze()
        timer.start()
        try:
            store.put(panes, (1, 0))
        finally:
            timer.join(30)
        assert by_module(store.query()) == counted(table, FIRST + 6 * HOUR, FIRST + 30 * HOUR)


def test_out_of_memory(tmp_path, table):
    server = RedisServer(tmp_path, "--maxmemory-policy", "noeviction")
    panes = panes_of(table)
    try:
        client = redis.Redis.from_url(server.url)
        with PaneStore.open(server.url, spec_of()) as store:
            client.config_set("maxmemory", client.info("memory")["used_memory"] + 100_000)
            with pytest.raises(StoreError, match=r"out of memory \(maxmemory\)"):
                store.put(panes, (1, 0))
            client.config_set("maxmemory", 0)
            store.put(panes, (1, 0))
            assert by_module(store.query()) == counted(table, FIRST + 6 * HOUR, FIRST + 30 * HOUR)
    finally:
        server.stop()


def test_wrong_password(tmp_path):
    server = RedisServer(tmp_path, "--requirepass", "right")
    try:
        for secret in ("wrong-password@", ""):
            url = server.url.replace("://", f"://:{secret}" if secret else "://")
            with pytest.raises(StoreError, match="refuses the user or password") as caught:
                PaneStore.open(url)
            assert "wrong-password" not in str(caught.value)
        PaneStore.open(server.url.replace("://", "://:right@"), spec_of()).close()
    finally:
        server.stop()


def test_no_server():
    with pytest.raises(StoreError, match=r"redis://127\.0\.0\.1:1/0 is out of reach"):
        PaneStore.open("redis://127.0.0.1:1/0")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("{fastwin:module%201}:3min:2024-01-01T05:00Z", "someone's own"),
        ("{fastwin:module%201}:3min:2024-01-01T05:00Z", ["a", "list"]),
        ("{fastwin:module%201}:3min:2024-01-01T05:00Z:uv", "HYLL is a hash here"),
        ("{fastwin:module%201}:3min:2024-01-01T05:00Z:uv", {"mine": "HYLL"}),
        ("{fastwin:module%201}:1h:2024-01-01T00:00Z", "hello"),
        ("{fastwin:module%201}:1h:2024-01-01T05:00Z:uv", "hello"),
        ("{fastwin:module%201}:1h:2024-01-01T05:00Z:uv", "HYLL"),
        ("{fastwin:module%201}:1h:2024-01-01T05:00Z:uv", "HYLL, and as long as any sketch"),
    ],
)
def test_foreign_value_is_named_and_stays(server, name, value):
    client = redis.Redis.from_url(server.url)
    spec = spec_of(**AGGREGATES, uv=fw.HyperLogLog("user"))
    table = clicks(3_000, modules=2, hours=6)
    panes = spec.panes().run(table).main
    if isinstance(value, list):
        client.rpush(name, *value)
    elif isinstance(value, dict):
        client.hset(name, mapping=value)
    else:
        client.set(name, value)
    before = client.dump(name)
    with PaneStore.open(server.url, spec) as store:
        for _ in range(2):  # also when the rest of the batch is there
            with pytest.raises(StoreError, match="foreign value under a name of ours") as caught:
                store.put(panes, (1, 0))
            assert name in str(caught.value)
            assert client.dump(name) == before
        client.delete(name)
        store.put(panes, (1, 0))
        end = FIRST + 6 * HOUR
        assert by_module(store.query(end=end).drop_columns("uv")) == counted(table, end - DAY, end)


@pytest.mark.parametrize("field", ["3:pv", "3:total"])
def test_foreign_number_in_a_shelf_is_named(server, field):
    client = redis.Redis.from_url(server.url)
    panes = panes_of(clicks(3_000, modules=2, hours=6))
    shelf = "{fastwin:module%201}:3min:2024-01-01T05:00Z"
    with PaneStore.open(server.url, spec_of()) as store:
        store.put(panes, (1, 0))
        client.hset(shelf, field, "seven")
        rest = panes.filter(pc.not_equal(panes["window_start"].cast(pa.int64()), FIRST + 5 * HOUR + 9 * MINUTE))
        with pytest.raises(StoreError, match=f"foreign value under a name of ours, .*: {re.escape(shelf)} {field};"):
            store.put(rest, (1, 1))
        with pytest.raises(StoreError, match="no number"):
            store.query(end=FIRST + 5 * HOUR + 30 * MINUTE, start=FIRST + 5 * HOUR)


@pytest.mark.parametrize("field", ["3", "#", "@"])
def test_foreign_revision_in_a_shelf_is_named(server, field):
    client = redis.Redis.from_url(server.url)
    panes = panes_of(clicks(3_000, modules=2, hours=6))
    shelf = "{fastwin:module%201}:3min:2024-01-01T05:00Z"
    with PaneStore.open(server.url, spec_of()) as store:
        store.put(panes, (1, 0))
        for value in ("one.two", b"\xff", ""):
            client.hset(shelf, field, value)
            with pytest.raises(
                StoreError, match=f"foreign value under a name of ours, .*: {re.escape(shelf)} {field};"
            ):
                store.put(panes, (1, 1))


def test_errors_of_long_names_are_understood(server):
    """The client cuts what it says of a command that is longer than a line."""
    client, key = redis.Redis.from_url(server.url), "m" * 300
    panes = panes_of(clicks(1_000, modules=2, hours=6))
    panes = panes.set_column(0, "module", pa.array([key] * panes.num_rows))
    shelf = f"{{fastwin:{key}}}:3min:2024-01-01T05:00Z"
    with PaneStore.open(server.url, spec_of()) as store:
        store.put(panes)
        read = store.layout, [key], [Span(0, FIRST, FIRST + 6 * HOUR)]
        client.delete(shelf)
        client.rpush(shelf, "mine")
        for ask in (lambda: store._scan(*read), lambda: store.put(panes)):
            with pytest.raises(StoreError, match=f"foreign value under a name of ours, .* is: {re.escape(shelf)};"):
                ask()
        client.config_set("lua-time-limit", 1)
        endless = threading.Thread(target=_run_until_it_is_killed, args=[server.url])
        endless.start()
        try:
            until(lambda: _is_busy(client))
            with pytest.raises(StoreUnavailableError, match="takes no panes now: BUSY"):
                store._scan(*read)
        finally:
            client.script_kill()
            endless.join(30)


def _run_until_it_is_killed(url: str) -> None:
    with contextlib.suppress(redis.ResponseError):
        redis.Redis.from_url(url).eval("while true do end", 0)


def _is_busy(client: redis.Redis) -> bool:
    try:
        return not client.ping()
    except redis.ResponseError:
        return True


@pytest.mark.parametrize(
    ("said", "kind", "says"),
    [
        (
            f"{_IN_SCRIPT} -READONLY You can not write against a read only replica.",
            StoreUnavailableError,
            "no panes now",
        ),
        (f"{_IN_SCRIPT} -MISCONF Errors writing to the AOF file", StoreUnavailableError, "no panes now"),
        (f"{_IN_SCRIPT} -NOREPLICAS Not enough good replicas", StoreUnavailableError, "no panes now"),
        (f"{_IN_SCRIPT} -OOM command not allowed", StoreError, "out of memory"),
        ("NOSCRIPT No matching script. Please use EVAL.", StoreUnavailableError, "no panes now"),
    ],
)
def test_what_a_server_says_is_told_apart(said, kind, says):
    """Redis 6.2 has what a command in a script has failed with behind the place in the script."""
    told = explained(BaseParser.parse_error(said), "redis://here", 1)
    assert type(told) is kind and says in str(told)


def test_all_of_a_key_lies_in_one_slot(tmp_path, table):
    """A server in cluster mode refuses a script whose keys lie in different slots."""
    server = RedisServer(tmp_path, "--cluster-enabled", "yes")
    try:
        client = redis.Redis.from_url(server.url)
        client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16_383)
        end = time.monotonic() + 20
        while b"cluster_state:ok" not in client.execute_command("CLUSTER", "INFO"):
            assert time.monotonic() < end
            time.sleep(0.05)
        with PaneStore.open(server.url, spec_of()) as store:
            store.put(panes_of(table), (1, 0))
            assert by_module(store.query()) == counted(table, FIRST + 6 * HOUR, FIRST + 30 * HOUR)
        slots = {name: client.execute_command("CLUSTER", "KEYSLOT", name) for name in client.keys("*module%201}*")}
        assert len(slots) > 20 and len(set(slots.values())) == 1
    finally:
        server.stop()


def test_panes_expire_and_counts_are_decimal_text(server, table):
    client = redis.Redis.from_url(server.url)
    with PaneStore.open(server.url, spec_of(), retention="2 days") as store:
        store.put(panes_of(table), (1, 0))
        names = list(client.scan_iter("{fastwin:*"))
        assert names and all(0 < client.pttl(name) <= (4 * 2 * 24 + 2) * HOUR for name in names)
        start = FIRST + 5 * HOUR
        hour = counted(table, start, start + HOUR)["module 1"]["pv"]
        assert client.hget("{fastwin:module%201}:1h:2024-01-01T00:00Z", "5:pv") == b"%d" % hour
        first = client.hgetall("{fastwin:module%201}:3min:2024-01-01T05:00Z")
        second = client.hgetall("{fastwin:module%201}:3min:2024-01-01T05:30Z")  # seven numbers: half an hour is a shelf
        assert sum(int(value) for name, value in [*first.items(), *second.items()] if name.endswith(b":pv")) == hour
