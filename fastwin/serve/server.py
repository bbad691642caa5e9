"""Runs the service: arguments of the command to settings, a socket, and uvicorn."""

import argparse
import contextlib
import ipaddress
import os
import secrets
import socket
import sys
from urllib.parse import quote

from fastwin.errors import SpecError, StoreError
from fastwin.store import PaneStore

try:
    import uvicorn

    from fastwin.serve.app import Settings, make_app
    from fastwin.serve.connections import Limits, limited_connection
except ImportError as missing:  # the extra is not installed
    raise StoreError(f"serve: needs the package {missing.name}: pip install 'fastwin[serve]'") from None

from fastwin.serve import assets
from fastwin.serve.answers import Answers

__all__ = ["STORE_VARIABLE", "make_server", "run"]

STORE_VARIABLE = "FASTWIN_STORE"
"""The environment variable with the URL of the store, for URLs that hold a password."""

_CONNECTIONS = 512
_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})


def make_server(
    store: str, settings: Settings, host: str = "127.0.0.1", port: int = 0, limits: Limits | None = None
) -> tuple[uvicorn.Server, socket.socket, Answers]:
    """Returns a server, its bound socket, and what must be closed behind it.

    store: URL of a store. host and port: to bind; port 0: a free one. limits: of clients. Raises SpecError if host and
    port cannot be bound.
    """
    assets.asset("plotly.min.js")  # a missing package shall show at once
    answers = Answers(lambda: PaneStore.open(store, read_only=True))
    config = uvicorn.Config(
        make_app(answers, settings),
        http=limited_connection(limits or Limits()),
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=_CONNECTIONS,
        timeout_keep_alive=15,
    )
    try:
        bound = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as problem:
        raise SpecError(f"serve: cannot bind {host} port {port}: {problem.strerror or problem}") from None
    return uvicorn.Server(config), bound, answers


def run(arguments: argparse.Namespace) -> int:
    """Runs the service until it is interrupted; returns the exit status."""
    loopback = is_loopback(arguments.host)
    store = arguments.store or os.environ.get(STORE_VARIABLE)
    if not store:
        raise SpecError(f"--store: give the URL of a store, here or in {STORE_VARIABLE}")
    if arguments.store and "@" in arguments.store:
        _warn(f"all on this machine can read the password in --store; use {STORE_VARIABLE} or password_file=PATH")
    token, made = _token(arguments), ""
    if token is None and not loopback:
        token = secrets.token_urlsafe(24)
        made = f"#token={quote(token, safe='')}"  # one that was given is known, and no matter for a log
    if token is not None and len(token) < 8:
        raise SpecError(f"--token: must have at least 8 characters, got {len(token)}")
    if not 0.2 <= arguments.refresh <= 3_600:
        raise SpecError(f"--refresh: must be 0.2 to 3600 seconds, got {arguments.refresh:g}")
    labels = {}
    for text in arguments.label:
        name, equals, label = text.partition("=")
        if not (name and equals and label):
            raise SpecError(f"--label: must be NAME=TEXT, got {text!r}")
        labels[name] = label
    settings = Settings(
        arguments.title, labels, round(arguments.refresh * 1_000), token, _LOCAL_NAMES if loopback else frozenset()
    )
    PaneStore.open(store, read_only=True).close()  # a wrong URL shall show at once
    if not 1 <= arguments.connections <= _CONNECTIONS:
        raise SpecError(f"--connections: must be 1 to {_CONNECTIONS}, got {arguments.connections}")
    limits = Limits(arguments.connections)
    server, bound, answers = make_server(store, settings, arguments.host, arguments.port, limits)
    name = f"[{arguments.host}]" if ":" in arguments.host else arguments.host
    print(f"fastwin serve: http://{name}:{bound.getsockname()[1]}/{made}  (stop it with Ctrl-C)", flush=True)
    try:
        with contextlib.suppress(KeyboardInterrupt):  # the usual end; uvicorn passes it on when all is closed
            server.run(sockets=[bound])
    finally:
        answers.close()
        print("fastwin serve: stopped", file=sys.stderr)
    return 0


def _token(arguments: argparse.Namespace) -> str | None:
    if arguments.token is not None:
        _warn("all on this machine can read --token; use --token-file or FASTWIN_TOKEN")
        return arguments.token
    if arguments.token_file is not None:
        try:
            return arguments.token_file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as problem:
            raise SpecError(f"--token-file: {arguments.token_file} cannot be read: {problem}") from None
    return os.environ.get("FASTWIN_TOKEN")


def _warn(sentence: str) -> None:
    print(f"fastwin serve: {sentence}", file=sys.stderr, flush=True)


def is_loopback(host: str) -> bool:
    """Returns whether an address is only reached from this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
