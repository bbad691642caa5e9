"""The ASGI application: routes, what a request must bring, and errors as sentences."""

import hmac
import json
import logging
import re
from asyncio import Future, get_running_loop, wait_for
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fastwin.errors import FastwinError, SpecError
from fastwin.serve import assets
from fastwin.serve.answers import Answers, EmptyStoreError
from fastwin.serve.metrics import CONTENT_TYPE, Metrics
from fastwin.serve.params import RequestError
from fastwin.serve.turns import BusyError
from fastwin.serve.watching import Watching

__all__ = ["Settings", "make_app"]

_MAX_QUERY = 60_000
_MAX_PATH = 1_024
_MAX_FIELDS = 200
_PORT = re.compile(r":\d*\Z")
_NOT_READY = "The store does not answer as it should; the service's log says why."
_MOST_ASKED, _MOST_PROBES = 128, 8  # threads; more than may wait for a turn, so that others have some
_SOON = {"Retry-After": "2"}
_META_SECONDS = 3.0  # that metrics wait for the store: Prometheus waits for 10 s
_KEPT = frozenset({"/api/store", "/api/keys", "/api/current", "/api/series"})
_HEADERS = [
    (b"content-security-policy", b"default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
     b"img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
]  # fmt: skip
_log = logging.getLogger("fastwin.serve")


@dataclass(frozen=True)
class Settings:
    """title, labels (by aggregate) and refresh_ms: of the page. token: None: none is asked for. hosts: names by which
    the service may be called, so that no web page of others reads a service on the loopback; empty: any."""

    title: str = "Page views and unique visitors"
    labels: dict[str, str] = field(default_factory=dict)
    refresh_ms: int = 3_000
    token: str | None = None
    hosts: frozenset[str] = frozenset()


def make_app(answers: Answers, settings: Settings, metrics: Metrics) -> ASGIApp:
    """Returns the application. Nothing that a client sends makes it answer with a stack trace."""
    # Whoever watches the service does not wait behind those who ask.
    asks, probes = ThreadPoolExecutor(_MOST_ASKED, "fastwin-ask"), ThreadPoolExecutor(_MOST_PROBES, "fastwin-probe")
    app = Starlette(
        routes=[
            Route("/", _page),
            Route("/static/{name}", _static),
            Route("/healthz", _healthy),
            Route("/readyz", _answer(answers, "ready", probes, _NOT_READY)),
            Route("/metrics", _metrics(answers, metrics, probes)),
            Route("/api/settings", _settings(settings)),
            *(Route(f"/api/{name}", _answer(answers, name, asks)) for name in ("store", "keys", "current", "series")),
        ],
        exception_handlers={HTTPException: _http_error, Exception: _any_error},
    )
    return Watching(_Gate(_Quick(app, answers), settings), metrics)


class _Gate:
    """Refuses what is too long, what has no token, and what calls us by a foreign name; adds headers to all."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*map(_without_host, message.get("headers", [])), *_HEADERS]
            await send(message)

        refused = self._refusal(scope)
        await (refused or self._app)(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = dict(scope["headers"])
        if len(scope["query_string"]) > _MAX_QUERY:
            return _error(414, f"The query string is longer than {_MAX_QUERY} bytes; name fewer keys.")
        if len(scope["path"]) > _MAX_PATH:
            return _error(414, f"The path is longer than {_MAX_PATH} characters.")
        name = _PORT.sub("", headers.get(b"host", b"").decode("latin-1").lower())
        if self._settings.hosts and name not in self._settings.hosts:
            return _error(421, "This service is only known as localhost; bind it to another address to reach it so.")
        if self._settings.token is not None and scope["path"].startswith(("/api/", "/metrics")):
            scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
            given = given.strip() if scheme.lower() == b"bearer" else b""
            if not hmac.compare_digest(given, self._settings.token.encode()):
                wrong = "is wrong" if given else "is missing"
                return _error(
                    401, f"The token {wrong}: send Authorization: Bearer TOKEN.", {"WWW-Authenticate": "Bearer"}
                )
        return None


def _without_host(header: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
    """Returns a header; a ``Location`` as a path alone: behind a proxy, clients have another scheme and name for us."""
    name, value = header
    if name != b"location":
        return header
    _, found, rest = value.partition(b"://")  # whatever somebody calls us by, it has no slash
    return name, b"/" + rest.partition(b"/")[2].lstrip(b"/\\") if found else value


class _Quick:
    """Hands out answers that are kept, without the framework's detours; all else goes on to it."""

    def __init__(self, app: ASGIApp, answers: Answers) -> None:
        self._app = app
        self._answers = answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = None
        if scope["type"] == "http" and scope["method"] == "GET" and scope["path"] in _KEPT:
            with suppress(RequestError, FastwinError, ValueError):  # told by the one who answers it
                found = self._answers.at_once(scope["path"].removeprefix("/api/"), _query(scope))
        if found is None:
            await self._app(scope, receive, send)
            return
        head = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]
        head.append((b"content-length", str(len(found)).encode()))
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": found})


def _query(scope: Scope) -> dict[str, list[str]]:
    """Returns the parameters of a request. Raises ValueError for too many."""
    return parse_qs(scope["query_string"].decode(), keep_blank_values=True, max_num_fields=_MAX_FIELDS)


def _error(status: int, sentence: str, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": sentence}, status, headers)


def _http_error(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, HTTPException)
    sentence = {
        404: "There is nothing here; / is the page, and /api/store, keys, current and series are the data.",
        405: "Only GET is known here.",
    }.get(problem.status_code, problem.detail)
    return _error(problem.status_code, sentence, dict(problem.headers or {}))


def _any_error(request: Request, problem: Exception) -> Response:
    return _error(500, "Something went wrong here; the service's log says what.")


def _answer(
    answers: Answers, name: str, threads: Executor, public: str | None = None
) -> Callable[[Request], Awaitable[Response]]:
    """threads: that ask. public: what to say of a store that fails where no token is asked for; None: what is wrong."""
    ask = getattr(answers, name)

    async def handle(request: Request) -> Response:
        try:
            query = _query(request.scope)
        except ValueError:
            return _error(400, f"At most {_MAX_FIELDS} parameters are read.")
        try:
            found = await _started(threads, ask, query)
        except BusyError as problem:
            return _error(problem.status, str(problem), _SOON)
        except RequestError as problem:
            return _error(problem.status, str(problem))
        except SpecError as problem:
            return _error(400, f"{problem}.")
        except FastwinError as problem:
            _log.warning("serve: the store does not answer: %s", problem)
            empty = isinstance(problem, EmptyStoreError)
            sentence = f"The store does not answer as it should: {problem}."
            content = {
                "error": sentence if empty or public is None else public,
                "reason": "empty" if empty else "store",
            }
            return JSONResponse(content, 503, _SOON)
        return Response(found, media_type="application/json", headers={"Cache-Control": "no-store"})

    return handle


def _started(threads: Executor, work: Callable[..., Any], *arguments: Any) -> Future[Any]:
    """Has a thread do some work. Raises BusyError where none can be started."""
    try:
        return get_running_loop().run_in_executor(threads, work, *arguments)
    except RuntimeError:
        raise BusyError(503, "The service can start no more threads; ask again in a moment.") from None


async def _healthy(request: Request) -> Response:
    """Says that the process answers, whatever the store does."""
    return JSONResponse({"healthy": True}, headers={"Cache-Control": "no-store"})


def _settings(settings: Settings) -> Callable[[Request], Awaitable[Response]]:
    content = json.dumps({"title": settings.title, "labels": settings.labels, "refresh_ms": settings.refresh_ms})

    async def handle(request: Request) -> Response:
        return Response(content, media_type="application/json", headers={"Cache-Control": "no-store"})

    return handle


def _metrics(answers: Answers, metrics: Metrics, threads: Executor) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        meta = None
        try:
            with suppress(TimeoutError):
                meta = await wait_for(_started(threads, answers.meta), _META_SECONDS)
        except BusyError as problem:
            return _error(problem.status, str(problem), _SOON)
        headers = {"Content-Type": CONTENT_TYPE, "Cache-Control": "no-store"}
        return Response(metrics.text(meta), headers=headers)

    return handle


async def _page(request: Request) -> Response:
    return _file(request, "index.html")


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in assets.names():
        raise HTTPException(404)
    return _file(request, name)


def _file(request: Request, name: str) -> Response:
    found = assets.asset(name)
    headers = {"ETag": found.tag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
    if request.headers.get("if-none-match") == found.tag:
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(found.compressed, headers={**headers, "Content-Encoding": "gzip"}, media_type=found.kind)
    return Response(found.content, headers=headers, media_type=found.kind)
