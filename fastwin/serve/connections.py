"""Connections of clients: who asks has so long to say what, and so many at once."""

import asyncio
import ipaddress
import json
from collections import Counter
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, ClassVar

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from fastwin.serve.metrics import Metrics

__all__ = ["Limits", "counted_as", "limited_connection"]

_FOR_PROBES = 16
_PROBES = frozenset({"/healthz", "/readyz", "/metrics"})
_SOON = {"Retry-After": "2"}
_CROWDED = "Too many connections are open already; ask again in a moment."


@dataclass(frozen=True)
class Limits:
    """per_client: connections from one address, or one /64 of IPv6. total: of all clients; a few more may only ask how
    the service is. ask_seconds: until a request is there whole, its body included. answer_seconds: from its head on,
    until its answer has been taken."""

    per_client: int = 128
    total: int = 512
    ask_seconds: float = 15.0
    answer_seconds: float = 60.0


def limited_connection(limits: Limits, metrics: Metrics) -> type[H11Protocol]:
    """Returns the class of a server's connections, for uvicorn's ``http``."""
    return type("Connection", (_Connection,), {"limits": limits, "open_by_client": Counter(), "metrics": metrics})


def counted_as(address: str) -> str:
    """Returns as which client an address counts: one IPv6 network of /64 is one, as its host chooses among them."""
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(known, ipaddress.IPv4Address):
        return address
    if known.ipv4_mapped is not None:
        return str(known.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(known), 64), strict=False))


class _ProbesAlone:
    """Answers who asks how the service is, and tells all others that it has too many clients."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] in _PROBES:
            await self._app(scope, receive, send)
            return
        self._metrics.refused.inc()
        headers = {**_SOON, "Connection": "close"}
        await JSONResponse({"error": _CROWDED}, HTTPStatus.SERVICE_UNAVAILABLE, headers)(scope, receive, send)


class _Connection(H11Protocol):
    limits: ClassVar[Limits]
    open_by_client: ClassVar[Counter[str]]
    metrics: ClassVar[Metrics]
    _timer: asyncio.TimerHandle | None = None
    _began = False
    """Whether a part of a request has come."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._counted = counted_as(self.client[0]) if self.client else ""
        self.open_by_client[self._counted] += 1
        self.metrics.connections.inc()
        if self.open_by_client[self._counted] > self.limits.per_client:
            self.metrics.refused.inc()
            self._refuse(HTTPStatus.TOO_MANY_REQUESTS, f"At most {self.limits.per_client} connections for one client.")
            return
        more = len(self.connections) - self.limits.total
        if more > _FOR_PROBES:
            self.metrics.refused.inc()
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, _CROWDED)
            return
        if more > 0:
            self.app: Any = _ProbesAlone(self.app, self.metrics)
        self._allow(self.limits.ask_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self.metrics.connections.dec()
        self.open_by_client[self._counted] -= 1
        if not self.open_by_client[self._counted]:
            del self.open_by_client[self._counted]
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        answering = self._answering()
        self._began = True
        super().data_received(data)
        if self._answering() and not answering:
            self._allow(self.limits.answer_seconds)

    def on_response_complete(self) -> None:
        self._began = False
        super().on_response_complete()  # may begin with the next request, if that has come already
        if not self.transport.is_closing():
            taken = not self._answering() and not self.transport.get_write_buffer_size()
            self._allow(self.limits.ask_seconds if taken else self.limits.answer_seconds)

    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _allow(self, seconds: float) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(seconds, self._too_late)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_late(self) -> None:
        waits = self.transport.is_closing() or self.transport.get_write_buffer_size()
        if self._answering() and not self.cycle.response_started and not waits:
            self.cycle.disconnected = True  # what it still makes goes nowhere
            seconds = self.limits.answer_seconds
            self._refuse(
                HTTPStatus.SERVICE_UNAVAILABLE, f"The answer was not there within {seconds:g} seconds; ask again."
            )
        elif self._answering() or waits:
            self.transport.abort()  # to close would wait until the client has taken all
        elif self._began:
            seconds = self.limits.ask_seconds
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, f"The request was not there within {seconds:g} seconds.")
        else:
            self.transport.close()

    def _refuse(self, status: HTTPStatus, sentence: str) -> None:
        body = json.dumps({"error": sentence}).encode()
        head = f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: application/json\r\n"
        if status is HTTPStatus.SERVICE_UNAVAILABLE:
            head += "".join(f"{name}: {value}\r\n" for name, value in _SOON.items())
        head += f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        self.transport.write(head.encode() + body)
        self.transport.close()
        self._allow(self.limits.ask_seconds)  # to take it
