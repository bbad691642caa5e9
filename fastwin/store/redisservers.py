"""How a store talks to Redis: to one server, to the master that Sentinels name, or to that of its slot in a Cluster."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import redis
from redis import exceptions as errors
from redis.backoff import ExponentialBackoff, NoBackoff
from redis.cluster import ClusterNode, RedisCluster
from redis.commands import CoreCommands
from redis.connection import Connection, SSLConnection, parse_url
from redis.retry import Retry
from redis.sentinel import Sentinel, SentinelManagedSSLConnection

from fastwin.errors import SpecError
from fastwin.store import redisscripts
from fastwin.store.redisfaults import about, check_cluster, check_server, explained
from fastwin.store.redisurl import RedisUrl

__all__ = ["Calls", "Servers", "connected"]

_CLUSTER_TRIES = 1
_SCRIPTS = ("WRITE", "ADVANCE", "LAYOUT", "NEW_EPOCH", "PROCESS")
_FAULTS = (errors.RedisError, errors.RedisClusterException)


class Servers(ABC):
    """The servers that a URL names, as one that has all of a store.

    client: of redis-py, for single commands. scripts: ours, by name. one_slot: whether all names of a store must have
    one hash tag.
    """

    one_slot = False

    def __init__(self, client: Any, where: RedisUrl) -> None:
        self.client = client
        self.scripts = {name: client.register_script(getattr(redisscripts, name)) for name in _SCRIPTS}
        self._where = where

    def close(self) -> None:
        """Lets go of all connections."""
        self.client.close()

    @contextmanager
    def told(self) -> Iterator[None]:
        """Says what is wrong when Redis does not do as it is told."""
        try:
            yield
        except _FAULTS as problem:
            raise explained(problem, self._where.shown, self._where.timeout) from problem

    def pipeline(self) -> Calls:
        """Returns what gathers commands, to make them in one go."""
        return Calls(self)

    def process(self, name: str) -> str | None:
        """Returns what names the process that has a name now; None if the user may not know."""
        found = self.scripts["PROCESS"](keys=[name])
        return None if found is None else found.decode()

    @abstractmethod
    def make(self, calls: Sequence[Sequence[Any]]) -> list[Any]:
        """Makes calls, each a command and its arguments, in one go; returns their answers. Some may be made twice."""


class Calls(CoreCommands):
    """Commands as a pipeline of redis-py takes them."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._calls: list[Sequence[Any]] = []

    def __len__(self) -> int:
        return len(self._calls)

    def execute_command(self, *call: Any, **_: Any) -> Calls:
        """Adds a command."""
        self._calls.append(call)
        return self

    def execute(self) -> list[Any]:
        """Makes the calls, and returns their answers."""
        calls, self._calls = self._calls, []
        try:
            return self._servers.make(calls)
        except errors.NoScriptError:  # a server that was started again, or that is new
            for script in self._servers.scripts.values():
                self._servers.client.script_load(script.script)
            return self._servers.make(calls)


def _through(client: Any, calls: Sequence[Sequence[Any]]) -> list[Any]:
    pipeline = client.pipeline(transaction=False)
    for call in calls:
        pipeline.execute_command(*call)
    answers = pipeline.execute(raise_on_error=False)  # else the client cuts what it says of long names
    for call, answer in zip(calls, answers, strict=True):
        if isinstance(answer, Exception):
            raise about(answer, str(call[1]))
    return answers


class _OneServer(Servers):
    """One server, or the master that Sentinels name."""

    def make(self, calls: Sequence[Sequence[Any]]) -> list[Any]:
        return _through(self.client, calls)


class _Cluster(Servers):
    """The master of one slot in a Redis Cluster, wherever the slot is.

    All of a store is in that slot: a server that goes back, by a restart or a failover, then goes back with all of it,
    the meta too, and that is noticed. Of several slots each might go back alone, and nothing would tell.
    """

    one_slot = True

    def __init__(self, client: Any, where: RedisUrl) -> None:
        super().__init__(client, where)
        self._name = f"{{{where.namespace}}}:meta"

    def make(self, calls: Sequence[Sequence[Any]]) -> list[Any]:
        node = self.client.get_node_from_key(self._name)
        try:
            return _through(self.client.get_redis_connection(node), calls)
        except (errors.MovedError, errors.AskError, errors.TryAgainError):
            pass  # one by one, then: the client knows how to follow a slot that is being moved
        except errors.ConnectionError:
            self.client.exists(self._name)  # finds who has the slot now
        return [self.client.execute_command(*call) for call in calls]


def connected(where: RedisUrl, read_only: bool) -> Servers:
    """Returns the servers of a URL, looked at. Raises SpecError for options that redis-py does not know, StoreError for
    servers that cannot keep a store."""
    try:
        return {"server": _server, "sentinel": _by_sentinel, "cluster": _cluster}[where.kind](where, read_only)
    except _FAULTS as problem:
        raise explained(problem, where.shown, where.timeout) from problem
    except (ValueError, TypeError, AttributeError) as problem:
        raise SpecError(f"store: {where.shown} with its options is no URL for Redis: {problem}") from None


def _retry() -> Retry:
    """A lost connection is tried again, as every step may be repeated; one that does not answer is not."""
    return Retry(ExponentialBackoff(cap=0.5, base=0.1), 2, supported_errors=(errors.ConnectionError,))


def _server(where: RedisUrl, read_only: bool) -> Servers:
    client = redis.Redis.from_url(where.address, retry=_retry(), **where.secret)
    return _looked_at(client, where, read_only)


def _looked_at(client: Any, where: RedisUrl, read_only: bool) -> Servers:
    client.ping()
    check_server(client, where.shown, read_only)
    return _OneServer(client, where)


def _options(where: RedisUrl) -> tuple[dict[str, Any], bool]:
    """Returns the options of a URL as arguments for clients, without host and port, and whether TLS is asked for."""
    found = {**parse_url(where.address), **where.secret}
    encrypted = found.pop("connection_class", None) is not None
    return {name: value for name, value in found.items() if name not in ("host", "port")}, encrypted


def _by_sentinel(where: RedisUrl, read_only: bool) -> Servers:
    options, encrypted = _options(where)
    of_sentinels = {name: value for name, value in options.items() if name.startswith("socket_")}
    if encrypted:  # to both
        options["connection_class"] = SentinelManagedSSLConnection
        of_sentinels |= {"ssl": True} | {name: value for name, value in options.items() if name.startswith("ssl_")}
    of_sentinels["retry"] = Retry(NoBackoff(), 0)  # there is another one, and all are asked again
    guards = Sentinel(list(where.hosts), sentinel_kwargs=of_sentinels | where.sentinel_secret)
    client = guards.master_for(where.service, retry=_retry(), **options)
    return _looked_at(client, where, read_only)


def _cluster(where: RedisUrl, read_only: bool) -> Servers:
    options, encrypted = _options(where)
    of_pools = ("max_connections",)
    kind = SSLConnection if encrypted else Connection
    kind(
        **{name: value for name, value in options.items() if name not in of_pools}
    )  # RedisCluster drops what it knows not
    nodes = [ClusterNode(host, port) for host, port in where.hosts]
    retry = Retry(ExponentialBackoff(cap=0.5, base=0.1), _CLUSTER_TRIES)
    client = RedisCluster(startup_nodes=nodes, retry=retry, **options, **({"ssl": True} if encrypted else {}))
    check_cluster(client, where.shown, read_only)
    return _Cluster(client, where)
