"""URLs of Redis: one server, a Redis Cluster, or a master that Sentinels watch."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit

from fastwin.errors import SpecError

__all__ = ["SCHEMES", "RedisUrl"]

SCHEMES = ("redis", "rediss", "unix", "redis+cluster", "rediss+cluster", "redis+sentinel", "rediss+sentinel")

Kind = Literal["server", "cluster", "sentinel"]

_NAMESPACE = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_TIMEOUT_SECONDS = 10.0
_CONNECT_SECONDS = 5.0
_NOT_FOR_US = ("decode_responses", "encoding", "encoding_errors")
"""Options of redis-py that make text of bytes, or other bytes of text: nothing of a store would be found again."""

_PORTS = {"server": 6379, "cluster": 6379, "sentinel": 26379}


@dataclass(frozen=True)
class RedisUrl:
    """What a URL says.

    hosts: host and port of each server that is named; of Sentinels in that kind; none for a socket. address: a URL for
    redis-py, of the first host, with its options. secret, sentinel_secret: password as an argument for redis-py, or
    nothing; the latter with the user. service: the master's name among Sentinels. timeout: s, of an answer. shown:
    without secrets.
    """

    kind: Kind
    hosts: tuple[tuple[str, int], ...]
    service: str
    namespace: str
    address: str
    secret: dict[str, str]
    sentinel_secret: dict[str, str]
    timeout: float
    shown: str

    @classmethod
    def of(cls, url: str) -> RedisUrl:
        """Returns what a URL says. Raises SpecError, which shows no part that may be of a password."""
        scheme, _, way = url.partition(":")[0].lower().partition("+")
        kind: Kind = "cluster" if way == "cluster" else "sentinel" if way == "sentinel" else "server"
        url, others = _first_host(url) if way else (url, [])
        (parts, *more), options = _parts_of(url, scheme, kind, others)
        named = [] if scheme == "unix" else [parts, *more]
        hosts = [(each.hostname or "localhost", each.port or _PORTS[kind]) for each in named]
        shown = f"{scheme}{'+' + way if way else ''}://{','.join(f'{host}:{port}' for host, port in hosts)}{parts.path}"
        for name in _NOT_FOR_US:
            if name in options:
                raise SpecError(f"store: {shown}: leave out {name}=; a store is bytes, and names in UTF-8")
        namespace = options.pop("namespace", "fastwin")
        if not _NAMESPACE.fullmatch(namespace):
            raise SpecError(f"store: namespace must be 1 to 64 letters, digits, '_', '.' or '-', got {namespace!r}")
        secret = _password_of(options, parts.password, "")
        guard = {}
        if kind == "sentinel":
            guard = _password_of(options, None, "sentinel_")
            if "sentinel_username" in options:
                guard["username"] = options.pop("sentinel_username")
        service, database = _path_of(kind, parts.path, shown)
        options.setdefault("socket_connect_timeout", str(_CONNECT_SECONDS))
        try:
            timeout = float(options.setdefault("socket_timeout", str(_TIMEOUT_SECONDS)))
        except ValueError as problem:
            raise SpecError(f"store: {shown} with its options is no URL for Redis: {problem}") from None
        address = f"{scheme}://{parts.netloc}{database}?{urlencode(options)}"
        return cls(kind, tuple(hosts), service, namespace, address, secret, guard, timeout, shown)


def _first_host(url: str) -> tuple[str, list[str]]:
    """Returns a URL with the first of its hosts alone, and URLs of the others, which may be none."""
    scheme, slashes, rest = url.partition("://")
    end = next((at for at, sign in enumerate(rest) if sign in "/?#"), len(rest))
    user, at, hosts = rest[:end].rpartition("@")
    first, *others = hosts.split(",")
    return f"{scheme}{slashes}{user}{at}{first}{rest[end:]}", [f"//{other}" for other in others]


def _parts_of(url: str, scheme: str, kind: Kind, others: list[str]) -> tuple[list[SplitResult], dict[str, str]]:
    """Returns the parts of a URL and of others, and its options.

    Raises SpecError, which shows no part: each may be of a password.
    """
    try:
        parts, *more = found = [urlsplit(each) for each in (url, *others)]
        _ = [each.port for each in found]  # looked at now: one that is no number raises
        options = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
        behind = parts.path if parts.netloc or parts.scheme != "unix" else ""
        if parts.netloc and "@" not in parts.netloc:
            behind += parts.query
        known = all(each.hostname for each in more) and (kind == "server" or parts.netloc.count("@") < 2)
        known = known and parts.path[:1] in ("", "/")
        if parts.scheme == "unix":  # what has one slash too few names another path
            known = known and parts.hostname in (None, "localhost") and len(parts.path) > 1
        if known and not parts.fragment and "@" not in behind:  # else a password ended too soon
            return found, options
    except ValueError:
        pass
    forms = {
        "server": "unix:///PATH" if scheme == "unix" else f"{scheme}://[USER:PASSWORD@]HOST:PORT/DB",
        "cluster": f"{scheme}+cluster://[USER:PASSWORD@]HOST:PORT,HOST:PORT",
        "sentinel": f"{scheme}+sentinel://[USER:PASSWORD@]HOST:PORT,HOST:PORT/SERVICE/DB",
    }
    raise SpecError(
        f"store: {url.partition(':')[0]}:... is no URL for Redis: it must be {forms[kind]}, "
        f"options behind it as ?NAME=VALUE&NAME=VALUE; in a password write %2F for /, %3F for ?, %23 for #, %40 for @"
    )


def _path_of(kind: Kind, path: str, shown: str) -> tuple[str, str]:
    """Returns the service that a path names, and the path of the database."""
    if kind == "server":
        return "", path
    service, _, database = path.strip("/").partition("/")
    if kind == "cluster":
        if service not in ("", "0") or database:
            raise SpecError(f"store: {shown}: a Redis Cluster has database 0 alone; keep stores apart by namespace=")
        return "", ""
    if not service or not (database or "0").isdecimal():
        raise SpecError(
            f"store: {shown} names no service: redis+sentinel://HOST:PORT,HOST:PORT/SERVICE/DB, where SERVICE is what "
            f"the Sentinels call the master, such as mymaster"
        )
    return service, f"/{database or 0}"


def _password_of(options: dict[str, str], given: str | None, of: str) -> dict[str, str]:
    """Returns the password that the URL's options name without telling it, as an argument for the client.

    of: what the options' names begin with.
    """
    name, path = options.pop(f"{of}password_env", None), options.pop(f"{of}password_file", None)
    if (given is not None) + (name is not None) + (path is not None) > 1:
        raise SpecError(f"store: give one of a password in the URL, {of}password_env= and {of}password_file=")
    if name is not None:
        if name not in os.environ:
            raise SpecError(f"store: {of}password_env names the variable {name!r}, which is not set")
        return {"password": os.environ[name]}
    if path is not None:
        try:
            return {"password": Path(path).read_text(encoding="utf-8-sig").strip()}
        except (OSError, UnicodeDecodeError) as problem:
            raise SpecError(f"store: {of}password_file {path!r} cannot be read: {problem}") from None
    return {}
