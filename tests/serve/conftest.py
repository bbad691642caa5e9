"""A running service over a store with clicks."""

import http.client
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.serve.app import Settings
from fastwin.serve.server import make_server
from fastwin.store import PaneStore
from tests.store.clicks import clicks, spec_of

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
    store.put(SPEC.panes().run(table).main)


def serving(store: PaneStore, url: str, table: pa.Table, settings: Settings) -> Iterator[Service]:
    """Runs a service in a thread."""
    server, bound, answers = make_server(url, settings)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    yield Service(bound.getsockname()[1], store, table)
    server.should_exit = True
    thread.join(20)
    assert not thread.is_alive()
    answers.close()


@pytest.fixture
def make_service(tmp_path: Path) -> Iterator[Any]:
    """Returns a function that starts a service over a new store in a folder."""
    started = []

    def make(settings: Settings | None = None, table: pa.Table | None = None) -> Service:
        url = f"rocksdb:{tmp_path / f'store{len(started)}'}"
        store = PaneStore.open(url, SPEC)
        table = clicks(5_000) if table is None else table
        if table.num_rows:
            put_clicks(store, table)
        run = serving(store, url, table, settings or Settings(refresh_ms=300))
        started.append((run, store))
        return next(run)

    yield make
    for run, store in started:
        next(run, None)
        store.close()
