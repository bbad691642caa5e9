"""What is wrong with a Redis: looked at when it is opened, and told in a sentence when a command fails."""

from typing import Any

from fastwin.errors import AggregateOverflowError, StoreError, StoreUnavailableError
from fastwin.store import redisscripts

__all__ = ["check_server", "explained", "process_of"]

# What a server says that may take the same command later.
_LATER = ("READONLY", "MISCONF", "CLUSTERDOWN", "TRYAGAIN", "MASTERDOWN", "BUSY ", "NOREPLICAS", "LOADING")
_WRONG_PASSWORD = ("WRONGPASS", "NOAUTH", "invalid username-password", "Authentication required")


def check_server(client: Any, shown: str, read_only: bool) -> None:
    """Raises StoreError for a server that could not keep panes: a Sentinel, a part of a cluster, one that evicts.

    StoreUnavailableError for a replica: it may be a master later. What the server does not tell this user is not looked
    at.
    """
    client.ping()
    info = _told(client, "INFO") or {}
    mode = info.get("redis_mode")
    if mode == "sentinel":
        raise StoreError(f"redis: {shown} is a Sentinel, which holds no data; name the server that it watches")
    if mode == "cluster":
        masters = int((_told(client, "CLUSTER INFO") or {}).get("cluster_size", 1))
        if masters > 1:
            raise StoreError(
                f"redis: {shown} is part of a Redis Cluster of {masters} masters; a store needs a server with all slots"
            )
    if not read_only and info.get("role") == "slave":
        raise StoreUnavailableError(  # a failover may be under way
            f"redis: {shown} is a replica, which takes no panes; name its master, or use read_only=True"
        )
    policy = info.get("maxmemory_policy", "noeviction")
    if not read_only and int(info.get("maxmemory", 0)) and policy != "noeviction":
        raise StoreError(
            f"redis: {shown} removes what it likes when its memory is full: maxmemory-policy is {policy}, and panes "
            f"would be missing without a word; set it to noeviction"
        )


def process_of(client: Any) -> str | None:
    """Returns what names the server's process; None if the user may not know."""
    return (_told(client, "INFO", "server") or {}).get("run_id")


def _told(client: Any, *command: str) -> dict[str, Any] | None:
    """Returns what the server answers; None if this user may not ask, or it does not know the command."""
    import redis

    try:
        return client.execute_command(*command)
    except redis.ResponseError:
        return None


def explained(problem: Exception, shown: str, timeout: float) -> Exception:
    """Returns what to raise for an error of the client.

    shown: the server's address, without secrets. timeout: s. StoreUnavailableError where the same may work later.
    """
    from redis import exceptions as errors

    text = str(problem)
    if isinstance(problem, errors.NoPermissionError) or text.startswith("NOPERM"):
        return StoreError(
            f"redis: {shown} knows the user, but does not let it do what a store needs: {text}; docs/store.md has the "
            f"commands and names to allow"
        )
    if isinstance(problem, errors.AuthenticationError) or text.startswith(_WRONG_PASSWORD):
        return StoreError(f"redis: {shown} refuses the user or password of the URL: {text}")
    if isinstance(problem, errors.TimeoutError):
        return StoreUnavailableError(f"redis: {shown} did not answer within {timeout:g} s")
    if isinstance(problem, errors.BusyLoadingError):
        return StoreUnavailableError(f"redis: {shown} is still loading its data; try again")
    if isinstance(problem, errors.ConnectionError):
        return StoreUnavailableError(f"redis: {shown} is out of reach: {text}")
    if isinstance(problem, errors.ReadOnlyError) or text.startswith(_LATER):
        return StoreUnavailableError(f"redis: {shown} takes no panes now: {text}")
    if isinstance(problem, errors.OutOfMemoryError) or "OOM" in text.split(":")[0]:
        return StoreError(
            f"redis: {shown} is out of memory (maxmemory), so this batch is not stored, or in part; make room and put "
            f"it again"
        )
    if text.startswith(("MOVED", "ASK", "CROSSSLOT")):
        return StoreError(f"redis: {shown} is part of a Redis Cluster; a store needs a server with all slots: {text}")
    if redisscripts.FOREIGN in text or text.startswith("WRONGTYPE"):
        name = text.split(redisscripts.FOREIGN)[-1].strip()
        return StoreError(
            f"redis: {shown} has a foreign value under a name of ours, which stays as it is: {name}; delete it, or use "
            f"another namespace"
        )
    if redisscripts.OVERFLOW in text:
        return AggregateOverflowError(f"store: a sum of panes lies outside int64: {text.split()[-1]}")
    return StoreError(f"redis: {shown} refuses: {text}")
