"""Clients that say nothing, half of something, or come in crowds: they are let go, and others are served."""

import contextlib
import http.client
import json
import socket
import threading
import time

import pytest

from fastwin.serve.app import Settings
from fastwin.serve.connections import Limits, counted_as
from fastwin.store import PaneStore
from tests.support.clicks import clicks
from tests.support.service import SPEC, put_clicks, serving

PATIENT = Limits(per_client=5, ask_seconds=60.0, answer_seconds=60.0)
HASTY = Limits(per_client=5, ask_seconds=1.0, answer_seconds=60.0)


@pytest.fixture
def make_service(tmp_path):
    """Returns a function that starts a service with limits."""
    url = f"rocksdb:{tmp_path / 'store'}"
    with PaneStore.open(url, SPEC) as store, contextlib.ExitStack() as stack:
        put_clicks(store, clicks(100))
        yield lambda limits: stack.enter_context(serving(store, url, clicks(100), Settings(), limits))


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


def until_served(service) -> None:
    """Waits until there is room for one more connection."""
    end = time.monotonic() + 20
    while True:
        with contextlib.suppress(OSError):  # one that is refused may be cut before it has read why
            if service.get("/healthz")[0] == 200:
                return
        assert time.monotonic() < end, "there is no room for another connection"
        time.sleep(0.05)


@pytest.mark.parametrize("sent", [b"", b"GET /api/st", b"GET /api/store HTTP/1.1\r\nHost: localhost\r\n"])
def test_half_a_request(make_service, sent):
    with connected(make_service(HASTY)) as client:
        client.sendall(sent)
        answer = said(client)
    assert (
        answer == b"" if not sent else answer.startswith(b"HTTP/1.1 408 ") and b"not there within 1 seconds" in answer
    )


def test_request_that_drips(make_service):
    """Each byte is in time, and the whole is not."""
    with connected(make_service(HASTY)) as client:
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


def test_body_that_never_ends(make_service):
    with connected(make_service(HASTY)) as client:
        client.sendall(b"POST /api/store HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\nabc")
        answer = said(client)
    assert answer.startswith(b"HTTP/1.1 405 ")


@pytest.mark.parametrize("last", [b"Connection: close\r\n", b""])
def test_answer_that_is_not_taken(make_service, last):
    """More than the kernel holds for a client that reads nothing."""
    service = make_service(Limits(per_client=1, ask_seconds=0.5, answer_seconds=1.0))
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        client.settimeout(20)
        client.connect(("127.0.0.1", service.port))
        client.sendall(b"GET /static/plotly.min.js HTTP/1.1\r\nHost: localhost\r\n" + last + b"\r\n")
        assert client.recv(1_000).startswith(b"HTTP/1.1 200 ")
        until_served(service)  # else it keeps its place, and the answer in memory


def test_answer_that_takes_too_long(make_service, monkeypatch):
    """Who waits is told so, and what comes then goes nowhere."""
    released = threading.Event()
    query = PaneStore.query
    monkeypatch.setattr(PaneStore, "query", lambda *asked: released.wait(20) and query(*asked))
    service = make_service(Limits(per_client=5, ask_seconds=60.0, answer_seconds=0.2))
    try:
        status, headers, body = service.get("/api/current")
        assert (status, headers["retry-after"]) == (503, "2")
        assert json.loads(body) == {"error": "The answer was not there within 0.2 seconds; ask again."}
    finally:
        released.set()
    end = time.monotonic() + 20
    while service.get("/api/current")[0] != 200:
        assert time.monotonic() < end


def test_crowd_of_one_client(make_service):
    service = make_service(PATIENT)
    crowd = [connected(service) for _ in range(5)]
    with connected(service) as one_more:
        answer = said(one_more)
    assert answer.startswith(b"HTTP/1.1 429 ")
    assert json.loads(answer.split(b"\r\n\r\n")[1]) == {"error": "At most 5 connections for one client."}
    for client in crowd:
        client.close()
    until_served(service)


def test_crowd_of_many_clients(make_service, monkeypatch):
    """Beyond the total a few may still ask how the service is; those beyond these are refused."""
    monkeypatch.setattr("fastwin.serve.connections._FOR_PROBES", 1)
    service = make_service(Limits(per_client=50, total=4))
    crowd = [connected(service) for _ in range(4)]
    until_served(service)
    status, headers, body = service.get("/api/store")
    assert (status, headers["retry-after"]) == (503, "2") and "Too many connections" in json.loads(body)["error"]
    with connected(service), connected(service) as one_more:
        answer = said(one_more)
    assert answer.startswith(b"HTTP/1.1 503 ") and b"Retry-After: 2\r\n" in answer
    assert "Too many connections" in json.loads(answer.split(b"\r\n\r\n")[1])["error"]
    for client in crowd:
        client.close()
    until_served(service)


@pytest.mark.parametrize(
    ("address", "client"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff:1:2:3", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_who_counts_as_one_client(address, client):
    """Whoever has one IPv6 address has 2 to the power of 64 of them."""
    assert counted_as(address) == client


def test_connection_that_is_kept_asks_again(make_service):
    connection = http.client.HTTPConnection("127.0.0.1", make_service(PATIENT).port, timeout=20)
    with contextlib.closing(connection):
        for _ in range(3):
            connection.request("GET", "/healthz")
            answer = connection.getresponse()
            assert (answer.status, json.loads(answer.read())) == (200, {"healthy": True})
            connection.auto_open = 0  # so a lost connection is an error


def test_each_request_has_the_whole_time(make_service):
    """The limit, 3 s, counts from the last answer."""
    service = make_service(Limits(per_client=5, ask_seconds=3.0))
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=20)
    with contextlib.closing(connection):
        end = time.monotonic() + 3.5
        while time.monotonic() < end:
            connection.request("GET", "/healthz")
            answer = connection.getresponse()
            assert answer.status == 200 and answer.read()
            connection.auto_open = 0
            time.sleep(0.05)


def test_requests_at_once(make_service):
    with connected(make_service(PATIENT)) as client:
        ask = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
        client.sendall((ask + b"\r\n") * 2 + ask + b"Connection: close\r\n\r\n")
        assert said(client).count(b"HTTP/1.1 200 ") == 3
