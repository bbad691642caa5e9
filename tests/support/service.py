"""A running service over a store with clicks."""

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

import fastwin as fw
from fastwin.serve.app import Settings
from fastwin.serve.connections import Limits
from fastwin.serve.server import bind, make_server
from fastwin.store import PaneStore
from tests.support.clicks import spec_of

__all__ = ["SPEC", "Service", "put_clicks", "serving"]

SPEC = spec_of(pv=fw.Count(), uv=fw.HyperLogLog("user"))


@dataclass
class Service:
    """A service, the store that it reads, open for writing, and the clicks in it."""

    port: int
    store: PaneStore
    table: pa.Table

    def get(
        self, path: str, headers: dict[str, str] | None = None, method: str = "GET"
    ) -> tuple[int, dict[str, str], bytes]:
        """Returns status, headers and body of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, path, headers=headers or {})
            answer = connection.getresponse()
            return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def json(self, path: str, **headers: str) -> Any:
        """Returns the answer to a question that is expected to be fine."""
        status, _, body = self.get(path, headers)
        assert status == 200, body
        return json.loads(body)


def put_clicks(store: PaneStore, table: pa.Table) -> None:
    """Puts clicks into a store of SPEC."""
    store.put(SPEC.panes().run(table).main)


@contextmanager
def serving(
    store: PaneStore, url: str, table: pa.Table, settings: Settings, limits: Limits | None = None
) -> Iterator[Service]:
    """Runs a service in a thread, for as long as the context lasts."""
    server, answers = make_server(url, settings, limits)
    bound = bind()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    try:
        yield Service(bound.getsockname()[1], store, table)
    finally:
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()
        answers.close()
