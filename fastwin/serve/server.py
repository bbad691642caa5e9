"""Runs the service: arguments of the command to settings, a socket, and uvicorn."""

import argparse
import contextlib
import ipaddress
import logging
import os
import secrets
import signal
import socket
import sys
from collections.abc import Mapping
from urllib.parse import quote

from fastwin.errors import SpecError
from fastwin.machine.packages import explained
from fastwin.store import PaneStore

try:
    import uvicorn

    from fastwin.serve.app import Settings, make_app
    from fastwin.serve.connections import Limits, limited_connection
    from fastwin.serve.metrics import Metrics
    from fastwin.serve.watching import ACCESS_LOG
except ImportError as problem:  # the extra is not installed
    raise explained("serve", "serve", problem) from None

from fastwin.serve import assets
from fastwin.serve.answers import Answers
from fastwin.serve.workers import run_workers

__all__ = ["STORE_VARIABLE", "bind", "known_names", "make_server", "run"]

STORE_VARIABLE = "FASTWIN_STORE"
"""The environment variable with the URL of the store, for URLs that hold a password."""

_log = logging.getLogger("fastwin.serve")
_HEAD_BYTES = 80_000  # of a request: the longest query that is read, and headers
_WORKERS = 64
_TURN_SECONDS = 0.001  # threads that make answers let the one that hands them out have its turn
_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})


def make_server(store: str, settings: Settings, limits: Limits | None = None) -> tuple[uvicorn.Server, Answers]:
    """Returns a server, and what must be closed behind it. store: URL of a store. limits: of clients."""
    metrics = Metrics()
    answers = Answers(lambda: PaneStore.open(store, read_only=True), metrics)
    config = uvicorn.Config(
        make_app(answers, settings, metrics),
        http=limited_connection(limits or Limits(), metrics),
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # anybody may send them, with anything in them
        h11_max_incomplete_event_size=_HEAD_BYTES,
        timeout_keep_alive=15,
    )
    return uvicorn.Server(config), answers


def bind(host: str = "127.0.0.1", port: int = 0) -> socket.socket:
    """Returns a socket that listens; port 0: a free one. Raises SpecError if host and port cannot be bound."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as problem:
        raise SpecError(f"serve: cannot bind {host} port {port}: {problem.strerror or problem}") from None


def run(arguments: argparse.Namespace) -> int:
    """Runs the service until it is interrupted; returns the exit status."""
    loopback = is_loopback(arguments.host)
    store = arguments.store or os.environ.get(STORE_VARIABLE)
    if not store:
        raise SpecError(f"--store: give the URL of a store, here or in {STORE_VARIABLE}")
    scheme, _, rest = (arguments.store or "").partition(":")
    if scheme.lower() != "rocksdb" and ("@" in rest or "password=" in rest):
        _warn(f"all on this machine can read the password in --store; use {STORE_VARIABLE} or password_file=PATH")
    (token, told), made = _token(arguments), ""
    if token is None and not loopback:
        token = secrets.token_urlsafe(24)
        made = f"#token={quote(token, safe='')}"  # one that was given is known, and no matter for a log
    if token is not None:
        _check_token(token, told)
    if not 0.2 <= arguments.refresh <= 3_600:
        raise SpecError(f"--refresh: must be 0.2 to 3600 seconds, got {arguments.refresh:g}")
    labels = {}
    for text in arguments.label:
        name, equals, label = text.partition("=")
        if not (name and equals and label):
            raise SpecError(f"--label: must be NAME=TEXT, got {text!r}")
        labels[name] = label
    settings = Settings(arguments.title, labels, round(arguments.refresh * 1_000), token, known_names(arguments.host))
    with contextlib.closing(PaneStore.open(store, read_only=True)) as opened:  # a wrong URL shall show at once
        _check_labels(labels, opened)
    if not 1 <= arguments.connections <= Limits.total:
        raise SpecError(f"--connections: must be 1 to {Limits.total}, got {arguments.connections}")
    if not 1 <= arguments.workers <= _WORKERS:
        raise SpecError(f"--workers: must be 1 to {_WORKERS}, got {arguments.workers}")
    assets.asset("plotly.min.js")  # a missing package shall show at once
    bound = bind(arguments.host, arguments.port)
    address = f"http://{_in_url(arguments.host)}:{bound.getsockname()[1]}/{made}"
    print(f"fastwin serve: {address}  (stop it with Ctrl-C)", flush=True)
    work = store, settings, Limits(arguments.connections), arguments.access_log
    try:
        with contextlib.suppress(KeyboardInterrupt):
            if arguments.workers == 1:
                _work(bound, *work)
            else:
                run_workers(arguments.workers, _work, bound, *work)
    finally:
        print("fastwin serve: stopped", file=sys.stderr)
    return 0


def _check_labels(labels: Mapping[str, str], store: PaneStore) -> None:
    """Raises SpecError for the label of an aggregate that a store does not have; an empty one may get it yet."""
    meta = store.meta()
    names = set() if meta is None else {one.name for one in meta.layout.outputs}
    if meta is not None and (unknown := labels.keys() - names):
        raise SpecError(f"--label: the store has no aggregate {min(unknown)!r}; it has {', '.join(sorted(names))}")


def _work(bound: socket.socket, store: str, settings: Settings, limits: Limits, access_log: bool) -> None:
    """Answers at a socket until the process is interrupted."""
    if access_log:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        log = logging.getLogger(ACCESS_LOG)
        log.addHandler(handler)
        log.setLevel(logging.INFO)
        log.propagate = False
    sys.setswitchinterval(_TURN_SECONDS)
    server, answers = make_server(store, settings, limits)
    _log.info("serve: process %d answers at port %d", os.getpid(), bound.getsockname()[1])

    def end(*_: object) -> None:
        server.should_exit = True

    before = signal.signal(signal.SIGTERM, end)  # until uvicorn has its own, and when it passes it on
    try:
        with contextlib.suppress(KeyboardInterrupt):  # the usual end; uvicorn passes it on when all is closed
            server.run(sockets=[bound])
    finally:
        answers.close()
        signal.signal(signal.SIGTERM, before)


def _token(arguments: argparse.Namespace) -> tuple[str | None, str]:
    """Returns the token, without blanks around it, which no header has, None for none, and where it was given."""
    if arguments.token is not None:
        _warn("all on this machine can read --token; use --token-file or FASTWIN_TOKEN")
        return arguments.token.strip(), "--token"
    if arguments.token_file is not None:
        try:
            return arguments.token_file.read_text(encoding="utf-8-sig").strip(), "--token-file"
        except (OSError, UnicodeDecodeError) as problem:
            raise SpecError(f"--token-file: {arguments.token_file} cannot be read: {problem}") from None
    found = os.environ.get("FASTWIN_TOKEN")
    return None if found is None else found.strip(), "FASTWIN_TOKEN"


def _check_token(token: str, told: str) -> None:
    """Raises SpecError for a token that no client can send, or that is short. told: where it was given."""
    if len(token) < 8:
        raise SpecError(f"{told}: must have at least 8 characters, got {len(token)}")
    odd = next((sign for sign in token if not (sign.isascii() and sign.isprintable())), None)
    if odd is not None:
        raise SpecError(f"{told}: must be one line of ASCII characters, as a header takes them, and has {odd!a}")


def _warn(sentence: str) -> None:
    print(f"fastwin serve: {sentence}", file=sys.stderr, flush=True)


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def known_names(host: str) -> frozenset[str]:
    """Returns the names by which a service at an address may be called; none: by any, as it asks for a token."""
    return _LOCAL_NAMES | {_in_url(host).lower()} if is_loopback(host) else frozenset()


def is_loopback(host: str) -> bool:
    """Returns whether an address is only reached from this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
