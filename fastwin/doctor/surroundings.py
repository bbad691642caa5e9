"""What is around fastwin: extras, a Redis server, memory."""

import contextlib
import os
import socket
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from fastwin.doctor.finding import Finding
from fastwin.errors import SpecError
from fastwin.machine.memory import LEAST_FREE, SHARED, bytes_of_memory, shared_memory
from fastwin.machine.packages import command_for, needs_of, of_its_extras
from fastwin.store.redisurl import SCHEMES, RedisUrl

__all__ = ["EXTRAS", "copies", "extra", "memory", "redis_server"]

EXTRAS = {
    "spark": "the same windows on Spark frames",
    "store": "panes in RocksDB, an embedded store",
    "redis": "panes in a Redis server: its client",
    "serve": "fastwin serve: a page and a JSON API",
    "plot": "pictures of windows: spec.timeline(rows)",
    "connect": "Spark Connect",
    "demo": "fastwin demo: its flights and its chart",
}
"""What users install, by name, and what for."""

_REDIS_PORT = 6379
_SECONDS = 0.5
_GB = 1 << 30
_Place = tuple[str, int] | str  # a host and a port, or the path of a socket


def extra(name: str) -> Finding:
    """Returns whether the packages of an extra are there and fit."""
    shown = f"extra {name}"
    needs = needs_of(name)
    known = {need.name for need in needs}  # what fastwin itself says of a package goes before
    needs += [one for need in needs for one in of_its_extras(need) if one.name not in known]
    faults = [need.fault for need in needs if need.fault]
    if not faults and needs:
        found = ", ".join(f"{need.name} {need.installed}" for need in needs)
        return Finding(shown, "ok", found, EXTRAS[name], extra=name)
    # Where a part is missing, the extra is not installed: the rest of it, in whatever version, is there for others.
    wrong = bool(needs) and all(need.installed for need in needs)
    said = f"needs {'; and '.join(faults)}" if faults else "fastwin's metadata does not know it"
    return Finding(shown, "wrong" if wrong else "missing", said, EXTRAS[name], command_for(name), name)


def redis_server(environment: Mapping[str, str] | None = None) -> Finding:
    """Returns whether a Redis answers: one of those that FASTWIN_STORE names, or else the one of this machine."""
    environment = os.environ if environment is None else environment
    shown, purpose = "Redis server", "keeps panes for several machines"
    named = environment.get("FASTWIN_STORE", "")
    ours = named.partition(":")[0].lower() in SCHEMES
    try:
        url = RedisUrl.of(named if ours else f"redis://127.0.0.1:{_REDIS_PORT}")
    except SpecError as problem:
        said = str(problem).removeprefix("store: ")
        return Finding(shown, "wrong", f"FASTWIN_STORE: {said}", purpose, "mend FASTWIN_STORE")
    who = "Sentinel" if url.kind == "sentinel" else "Redis"
    places: dict[str, _Place] = {f"{host} port {port}": (host, port) for host, port in url.hosts}
    if not places:  # a socket
        path = unquote(urlsplit(url.address).path)
        places = {path: path}
    encrypted = url.address.startswith("rediss:")
    for where, place in places.items():
        if _answers(place, encrypted):
            said = f"something listens at {where}, by TLS" if encrypted else f"a {who} answers at {where}"
            return Finding(shown, "ok", said, purpose)
    mend = "start it, or mend FASTWIN_STORE"
    if url.kind == "server" and url.hosts:
        port = url.hosts[0][1]
        mend = f"start one: redis-server{'' if port == _REDIS_PORT else f' --port {port}'}"
    said = f"no {who} answers at {', '.join(places)}"
    return Finding(shown, "wrong" if ours else "missing", said, purpose, mend)


def _answers(place: _Place, encrypted: bool) -> bool:
    """Returns whether a Redis answers at a place; by TLS, whether anything listens there."""
    with contextlib.suppress(OSError, ValueError), contextlib.ExitStack() as opened:  # ValueError: of an odd host
        if isinstance(place, str):
            link = opened.enter_context(socket.socket(socket.AF_UNIX))
            link.settimeout(_SECONDS)
            link.connect(place)
        else:
            link = opened.enter_context(socket.create_connection(place, timeout=_SECONDS))
        if encrypted:
            return True
        link.sendall(b"PING\r\n")
        return link.recv(64).startswith((b"+PONG", b"-NOAUTH"))
    return False


def memory() -> Finding:
    """Returns how much memory and how many processors there are."""
    size = bytes_of_memory()
    shown = f"{size / _GB:.1f} GB" if size else "size unknown"
    return Finding("memory", "ok", f"{shown}, {os.cpu_count() or 1} processors", "open windows")


def copies(environment: Mapping[str, str] | None = None) -> Finding:
    """Returns where Spark's workers would keep copies of state."""
    environment = os.environ if environment is None else environment
    purpose = "copies of state that Spark's workers share"
    named = environment.get("FASTWIN_CACHE_DIR")
    if named:
        fits = os.path.isdir(named) and os.access(named, os.W_OK)
        mend = None if fits else f"mkdir -p {named}, as the user of the workers"
        said = f"{named}, of FASTWIN_CACHE_DIR" + ("" if fits else ", is no folder that this user may write to")
        return Finding("copies of state", "ok" if fits else "wrong", said, purpose, mend)
    shared = shared_memory()
    if shared.serves and shared.free is not None:
        return Finding(str(SHARED), "ok", f"{shared.free / _GB:.1f} GB free", purpose)
    said = (
        "not there"
        if shared.free is None
        else "not writable"
        if not shared.writable
        else f"{shared.free >> 20} MB free"
    )
    mend = f"nothing must be done: the temporary folder is taken. Faster: {LEAST_FREE >> 20} MB or more (--shm-size)"
    return Finding(str(SHARED), "missing", said, purpose, mend)
