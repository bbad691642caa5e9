"""Clients that say nothing, half of something, or come in crowds: they are let go, and others are served."""

import contextlib
import json
import socket
import time

import pytest

from fastwin.serve.app import Settings
from fastwin.serve.connections import Limits
from fastwin.store import PaneStore
from tests.support.clicks import clicks
from tests.support.service import SPEC, put_clicks, serving


@pytest.fixture
def service(tmp_path):
    url = f"rocksdb:{tmp_path / 'store'}"
    with PaneStore.open(url, SPEC) as store:
        put_clicks(store, clicks(100))
        run = serving(store, url, clicks(100), Settings(), Limits(per_client=5, ask_seconds=1.0))
        yield next(run)
        next(run, None)


def connected(service) -> socket.socket:
    return socket.create_connection(("127.0.0.1", service.port), timeout=20)


def said(client: socket.socket) -> bytes:
    """Returns all that a client is told, until it is let go."""
    found = b""
    try:
        while part := client.recv(65_536):
            found += part
    except ConnectionResetError:
        pass
    return found


@pytest.mark.parametrize("sent", [b"", b"GET /api/st", b"GET /api/store HTTP/1.1\r\nHost: localhost\r\n"])
def test_half_a_request(service, sent):
    with connected(service) as client:
        client.sendall(sent)
        answer = said(client)
    assert (
        answer == b"" if not sent else answer.startswith(b"HTTP/1.1 408 ") and b"not there within 1 seconds" in answer
    )


def test_request_that_drips(service):
    """Each byte is in time, and the whole is not."""
    with connected(service) as client:
        client.settimeout(0.1)
        client.sendall(b"GET /api/store HTTP/1.1\r\nX-Slow: ")
        answer = b""
        end = time.monotonic() + 20
        while not answer:
            assert time.monotonic() < end, "it may drip on"
            with contextlib.suppress(TimeoutError):
                client.sendall(b"x")
                answer = client.recv(65_536)
    assert answer.startswith(b"HTTP/1.1 408 ")


def test_body_that_never_ends(service):
    with connected(service) as client:
        client.sendall(b"POST /api/store HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\nabc")
        answer = said(client)
    assert answer.startswith(b"HTTP/1.1 405 ")


def test_crowd_of_one_client(service):
    crowd = [connected(service) for _ in range(5)]
    with connected(service) as one_more:
        answer = said(one_more)
    assert answer.startswith(b"HTTP/1.1 429 ")
    assert json.loads(answer.split(b"\r\n\r\n")[1]) == {"error": "At most 5 connections for one client."}
    for client in crowd:
        assert said(client) == b""  # let go, as they ask nothing
        client.close()
    assert service.json("/api/store")


def test_connection_that_is_kept_asks_again(service):
    with connected(service) as client:
        for _ in range(3):
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert client.recv(65_536).startswith(b"HTTP/1.1 200 ")
            time.sleep(0.6)
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 3)
        assert said(client).count(b"HTTP/1.1 200 ") == 3
