"""What is noted of every request: counters, and a line in the access log."""

import logging
import time
from urllib.parse import parse_qsl, quote

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fastwin.serve.metrics import Metrics

__all__ = ["ACCESS_LOG", "Watching"]

ACCESS_LOG = "fastwin.serve.access"
"""The name of the access log; a line for each request, at the level INFO."""

_ROUTES = frozenset(
    {"/", "/healthz", "/readyz", "/metrics", "/api/settings", "/api/store", "/api/keys", "/api/current", "/api/series"}
)
_SHOWN = frozenset({"key", "window", "range", "step", "start", "end", "limit", "sort", "after"})
_LONGEST = 300
_log = logging.getLogger(ACCESS_LOG)


class Watching:
    """Notes the requests of an application when they have been answered."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        status, size = 500, 0

        async def send_and_look(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
            else:
                size += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, send_and_look)
        finally:
            seconds = time.perf_counter() - began
            route = _route(scope["path"])
            self._metrics.requests.labels(route, str(status)).inc()
            self._metrics.seconds.labels(route).observe(seconds)
            if _log.isEnabledFor(logging.INFO):
                client = scope["client"][0] if scope.get("client") else "-"
                line = f"{scope['method']} {_shown(scope)}"
                _log.info('%s "%s" %d %d bytes %.1f ms', client, line, status, size, seconds * 1_000)


def _route(path: str) -> str:
    """Returns what a path counts as: few names, whatever clients ask for."""
    if path in _ROUTES:
        return path
    return "/static" if path.startswith("/static/") else "other"


def _shown(scope: Scope) -> str:
    """Returns path and query without anything that may be a secret, on one line."""
    path = quote(scope["path"][:_LONGEST], safe="/")
    query = scope["query_string"].decode("latin-1")[:_LONGEST]
    asked = parse_qsl(query, keep_blank_values=True)
    parts = [f"{name}={quote(value, safe='')}" if name in _SHOWN else "..." for name, value in asked]
    return path + ("?" + "&".join(parts) if parts else "")
