"""Redis servers that belong together: a Redis Cluster, and a master with a replica and a Sentinel."""

from pathlib import Path
from typing import Any

import redis

from tests.support.redis_server import RedisServer
from tests.support.until import until

__all__ = ["Cluster", "Watched", "cut_off"]

_SLOTS = 16_384


def cut_off(replica: RedisServer, master: RedisServer) -> None:
    """Lets a replica get nothing more of its master; ``thaw`` it when that is gone."""
    replica.freeze()
    redis.Redis.from_url(master.url).execute_command("CLIENT", "KILL", "TYPE", "replica")


def _started(folder: Path, *options: str, **others: Any) -> RedisServer:
    folder.mkdir()
    return RedisServer(folder, *options, **others)


class Cluster:
    """Three masters with all slots between them; ``replicas`` has one of the first, if it is asked for."""

    def __init__(self, folder: Path, *options: str, replicas: int = 0) -> None:
        options = ("--cluster-enabled", "yes", "--cluster-node-timeout", "700", *options)
        options += ("--cluster-replica-validity-factor", "0", "--repl-diskless-sync-delay", "0")
        self.masters: list[RedisServer] = []
        self.replicas: list[RedisServer] = []
        try:
            for i in range(3):
                self.masters.append(_started(folder / f"master{i}", *options))
            for i in range(replicas):
                self.replicas.append(_started(folder / f"replica{i}", *options))
            self._join()
        except BaseException:
            self.stop()
            raise

    def _join(self) -> None:
        first, count = self.masters[0], len(self.masters) + len(self.replicas)
        for i, server in enumerate(self.masters):
            self.tell(server, "ADDSLOTSRANGE", i * _SLOTS // 3, (i + 1) * _SLOTS // 3 - 1)
            self.tell(server, "SET-CONFIG-EPOCH", i + 1)
        for server in (*self.masters[1:], *self.replicas):
            self.tell(server, "MEET", "127.0.0.1", first.port)
        for server in self.replicas:
            until(lambda server=server: self._may(server, "REPLICATE", self.id_of(first)))
        for server in (*self.masters, *self.replicas):
            until(lambda server=server: self._is_whole(server, count))
        for server in self.replicas:
            until(lambda server=server: self._client(server).info("replication")["master_link_status"] == "up")

    @staticmethod
    def _client(server: RedisServer) -> Any:
        return redis.Redis.from_url(server.url, socket_timeout=5)

    def tell(self, server: RedisServer, *command: Any) -> Any:
        """Sends a server a subcommand of CLUSTER."""
        return self._client(server).execute_command("CLUSTER " + str(command[0]), *command[1:])

    def _may(self, server: RedisServer, *command: Any) -> bool:
        try:
            self.tell(server, *command)
        except redis.ResponseError:
            return False
        return True

    def _is_whole(self, server: RedisServer, nodes: int) -> bool:
        info = self.tell(server, "INFO")
        return info["cluster_state"] == "ok" and int(info["cluster_known_nodes"]) == nodes

    def id_of(self, server: RedisServer) -> str:
        """Returns the name that the cluster has for a server."""
        found = self.tell(server, "MYID")
        return found.decode() if isinstance(found, bytes) else found

    def url(self, options: str = "") -> str:
        """Returns a URL for stores, that names two of the servers."""
        hosts = ",".join(f"127.0.0.1:{server.port}" for server in self.masters[:2])
        return f"redis+cluster://{hosts}?socket_timeout=2{'&' if options else ''}{options}"

    def flush(self) -> None:
        """Removes all data."""
        for server in self.masters:
            self._client(server).flushall()

    def begin_to_move(self, slot: int, source: RedisServer, target: RedisServer, names: int) -> None:
        """Moves the first names of a slot, and leaves it between two servers."""
        self.tell(target, "SETSLOT", slot, "IMPORTING", self.id_of(source))
        self.tell(source, "SETSLOT", slot, "MIGRATING", self.id_of(target))
        self._migrate(self.tell(source, "GETKEYSINSLOT", slot, names), source, target)

    def end_to_move(self, slot: int, source: RedisServer, target: RedisServer) -> None:
        """Moves what is left of a slot."""
        while some := self.tell(source, "GETKEYSINSLOT", slot, 1_000):
            self._migrate(some, source, target)
        for server in (target, source, *self.masters):
            self.tell(server, "SETSLOT", slot, "NODE", self.id_of(target))

    def _migrate(self, names: list[bytes], source: RedisServer, target: RedisServer) -> None:
        self._client(source).execute_command("MIGRATE", "127.0.0.1", target.port, "", 0, 5_000, "KEYS", *names)

    def stop(self) -> None:
        """Ends all servers."""
        for server in (*self.masters, *self.replicas):
            server.stop()


class Watched:
    """A master and a replica, and a Sentinel that calls them ``clicks``."""

    def __init__(self, folder: Path, *options: str, guard: str = "") -> None:
        fast = ("--repl-diskless-sync-delay", "0")
        self._servers: list[RedisServer] = []
        try:
            self.master = self._start(folder / "master", *fast, *options)
            of = ("--replicaof", "127.0.0.1", str(self.master.port))
            self.replica = self._start(folder / "replica", *fast, *options, *of)
            until(lambda: self._info(self.replica)["master_link_status"] == "up")
            config = (
                f"sentinel monitor clicks 127.0.0.1 {self.master.port} 1\n"
                f"sentinel down-after-milliseconds clicks 500\nsentinel failover-timeout clicks 3000\n{guard}"
            )
            self.sentinel = self._start(folder / "sentinel", "--sentinel", config=config)
        except BaseException:
            self.stop()
            raise

    def _start(self, folder: Path, *options: str, **others: Any) -> RedisServer:
        self._servers.append(_started(folder, *options, **others))
        return self._servers[-1]

    @staticmethod
    def _info(server: RedisServer) -> dict[str, Any]:
        return redis.Redis.from_url(server.url).info("replication")

    def knows_replica(self) -> bool:
        """Returns whether the Sentinel could choose the replica."""
        return int(self._info(self.master)["connected_slaves"]) == 1 and bool(
            redis.Redis.from_url(self.sentinel.url).sentinel_slaves("clicks")
        )

    def url(self, options: str = "", service: str = "clicks") -> str:
        """Returns a URL for stores."""
        hosts = f"127.0.0.1:1,127.0.0.1:{self.sentinel.port}"
        return f"redis+sentinel://{hosts}/{service}/0?socket_timeout=2{'&' if options else ''}{options}"

    def stop(self) -> None:
        """Ends all servers."""
        for server in reversed(self._servers):
            server.stop()
