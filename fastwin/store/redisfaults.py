"""What is wrong with a Redis: looked at when it is opened, and told in a sentence when a command fails."""

import re
from typing import Any

from fastwin.errors import StoreError, StoreUnavailableError
from fastwin.store import redisscripts

__all__ = ["about", "check_cluster", "check_server", "explained", "foreign"]

# What a server says that may take the same command later.
_LATER = ("READONLY", "MISCONF", "CLUSTERDOWN", "TRYAGAIN", "MASTERDOWN", "BUSY ", "NOREPLICAS", "LOADING", "NOSCRIPT")
# How Redis 6.2 tells what a command in a script has failed with.
_LATER_IN_SCRIPT = re.compile(r" -(READONLY|MISCONF|NOREPLICAS)\b")
_FULL_IN_SCRIPT = re.compile(r" -OOM\b")
_OLDEST = 6, 2  # ZADD GT, ZMSCORE and ZRANGE BYSCORE came with it
_WRONG_PASSWORD = ("WRONGPASS", "NOAUTH", "invalid username-password", "Authentication required")


def check_server(client: Any, shown: str, read_only: bool) -> None:
    """Raises StoreError for a server that could not keep panes: one that is too old, a Sentinel, a part of a cluster,
    one that evicts.

    StoreUnavailableError for a replica: it may be a master later. What the server does not tell this user is not looked
    at.
    """
    info = _told(client, "INFO") or {}
    mode = info.get("redis_mode")
    if mode == "sentinel":
        raise StoreError(
            f"redis: {shown} is a Sentinel, which holds no data; name it and the master that it watches as "
            f"redis+sentinel://HOST:PORT/SERVICE/DB"
        )
    _check_version(info, shown)
    if mode == "cluster":
        masters = int((_told(client, "CLUSTER INFO") or {}).get("cluster_size", 1))
        if masters > 1:
            raise StoreError(
                f"redis: {shown} is part of a Redis Cluster of {masters} masters; name it as redis+cluster://HOST:PORT"
                f", and with a namespace of its own if redis:// has filled this one before"
            )
    if not read_only and info.get("role") == "slave":
        raise StoreUnavailableError(  # a failover may be under way
            f"redis: {shown} is a replica, which takes no panes; name its master, or use read_only=True"
        )
    if not read_only:
        _check_policy(info, shown)


def check_cluster(client: Any, shown: str, read_only: bool) -> None:
    """Raises StoreError for a Redis Cluster of which a master is too old or evicts: a slot may go to any of them."""
    from redis import exceptions as errors

    for node in client.get_primaries():
        try:
            info = _told(client.get_redis_connection(node), "INFO") or {}
        except (errors.ConnectionError, errors.TimeoutError):
            continue  # if it is the one with the store, the first question will tell
        _check_version(info, f"{shown}, {node.name},")
        if not read_only:
            _check_policy(info, f"{shown}, {node.name},")


def _check_version(info: dict[str, Any], shown: str) -> None:
    """Raises StoreError for a server that lacks commands; what does not tell its version is not looked at."""
    version = re.match(r"(\d+)\.(\d+)", str(info.get("redis_version", "")))
    if version is not None and (int(version[1]), int(version[2])) < _OLDEST:
        raise StoreError(
            f"redis: {shown} is a Redis of version {info['redis_version']}, and a store needs "
            f"{'.'.join(map(str, _OLDEST))} or newer"
        )


def _check_policy(info: dict[str, Any], shown: str) -> None:
    """Raises StoreError for a server that removes names when it is full."""
    policy = info.get("maxmemory_policy", "noeviction")
    if int(info.get("maxmemory", 0)) and policy != "noeviction":
        raise StoreError(
            f"redis: {shown} removes what it likes when its memory is full: maxmemory-policy is {policy}, and panes "
            f"would be missing without a word; set it to noeviction"
        )


def _told(client: Any, *command: str) -> dict[str, Any] | None:
    """Returns what the server answers; None if this user may not ask, or it does not know the command."""
    from redis import exceptions as errors

    try:
        return client.execute_command(*command)
    except errors.ResponseError:
        return None


def about(problem: Any, name: str) -> Exception:
    """Returns an error of the client, with a note of which name the call was about that has failed."""
    problem.about = name
    return problem


def explained(problem: Exception, shown: str, timeout: float) -> Exception:
    """Returns what to raise for an error of the client.

    shown: the server's address, without secrets. timeout: s. StoreUnavailableError where the same may work later.
    """
    from redis import exceptions as errors

    if isinstance(problem, errors.RedisClusterException) and isinstance(problem.__cause__, errors.RedisError):
        problem = problem.__cause__  # what one of the servers said
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
        text = text.partition(" : <")[0]  # of Sentinels the client tells all that it knows
        return StoreUnavailableError(f"redis: {shown} is out of reach: {text}")
    if isinstance(problem, errors.ClusterError) and not isinstance(problem, errors.ResponseError):
        return StoreUnavailableError(f"redis: {shown} takes no panes now: its slot is being moved")
    # Of these the client cuts off the word.
    later = errors.ReadOnlyError, errors.ClusterDownError, errors.TryAgainError, errors.NoScriptError
    if isinstance(problem, later) or text.startswith(_LATER) or _LATER_IN_SCRIPT.search(text):
        return StoreUnavailableError(f"redis: {shown} takes no panes now: {text}")
    if isinstance(problem, errors.OutOfMemoryError) or "OOM" in text.split(":")[0] or _FULL_IN_SCRIPT.search(text):
        return StoreError(
            f"redis: {shown} is out of memory (maxmemory), so this batch is not stored, or in part; make room and put "
            f"it again"
        )
    if text.startswith(("MOVED", "ASK", "CROSSSLOT")):
        return StoreError(f"redis: {shown} is part of a Redis Cluster; name it as redis+cluster://HOST:PORT: {text}")
    if "cluster support disabled" in text or "luster mode is not enabled" in text:
        return StoreError(f"redis: {shown} is no Redis Cluster; name it as redis://HOST:PORT/DB")
    if "unknown command" in text and "SENTINEL" in text.upper():
        return StoreError(f"redis: {shown} is no Sentinel; name it as redis://HOST:PORT/DB")
    if isinstance(problem, errors.RedisClusterException):
        return StoreUnavailableError(f"redis: {shown} is out of reach: {text}")
    if redisscripts.FOREIGN in text or text.startswith("WRONGTYPE"):
        name = text.split(redisscripts.FOREIGN)[-1].strip()
        return foreign(shown, getattr(problem, "about", name) if text.startswith("WRONGTYPE") else name)
    return StoreError(f"redis: {shown} refuses: {text}")


def foreign(shown: str, name: str) -> StoreError:
    """Returns what to raise for a value that is none of a store's; ``name``: where it is."""
    return StoreError(
        f"redis: {shown} has a foreign value under a name of ours, which stays as it is: {name}; delete it, or use "
        f"another namespace"
    )
