"""``fastwin serve`` as a process: what it prints, and how it ends."""

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastwin.store import PaneStore
from tests.support.clicks import clicks
from tests.support.first_line import first_line
from tests.support.service import SPEC, put_clicks
from tests.support.until import until

ROOT = Path(__file__).resolve().parents[2]
RUNNER = """
import argparse, sys
from fastwin.errors import FastwinError
from fastwin.serve import command
parser = argparse.ArgumentParser()
command(parser.add_subparsers())
parsed = parser.parse_args(["serve", *sys.argv[1:]])
try:
    sys.exit(parsed.run(parsed))
except FastwinError as problem:
    sys.exit(f"fastwin: {problem}")
"""


@pytest.fixture
def url(tmp_path):
    address = f"rocksdb:{tmp_path / 'store'}"
    with PaneStore.open(address, SPEC) as store:
        put_clicks(store, clicks(500))
    return address


@contextlib.contextmanager
def start(*arguments: str, **variables: str) -> Iterator[subprocess.Popen]:
    """Runs the command; kills it where a test has not ended it."""
    command = [sys.executable, "-c", RUNNER, *arguments]
    environment = os.environ | variables
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def get(port: str, path: str, **headers: str) -> tuple[int, dict]:
    connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=20)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_on_the_loopback(url, tmp_path, by):
    """Asked to end, it says so, and leaves nothing of its reader."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    arguments = ("--store", url, "--port", "0", "--title", "Clicks", "--label", "pv=Clicks")
    with start(*arguments, TMPDIR=str(temporary)) as process:
        try:
            said = first_line(process)
            port = re.search(r"http://127\.0\.0\.1:(\d+)/  \(stop it", said)[1]
            assert get(port, "/api/settings") == (
                200,
                {"title": "Clicks", "labels": {"pv": "Clicks"}, "refresh_ms": 3_000},
            )
            assert get(port, "/api/store")[0] == 200
            assert get(port, "/api/store", Host="elsewhere.example")[0] == 421
            assert list(temporary.glob("fastwin-reader-*"))
        finally:
            process.send_signal(by)
        _, errors = process.communicate(timeout=30)
    assert "Traceback" not in errors and "stopped" in errors and process.returncode == 0
    assert not list(temporary.glob("fastwin-*"))


def test_elsewhere_it_wants_a_token(url):
    with start("--store", url, "--port", "0", "--host", "0.0.0.0") as process:
        try:
            said = first_line(process)
            port, token = re.search(r"http://0\.0\.0\.0:(\d+)/#token=([\w-]{32})", said).groups()
            assert get(port, "/api/store")[0] == 401
            assert get(port, "/api/store", Authorization=f"Bearer {token}")[0] == 200
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=30)


@pytest.mark.parametrize("by", ["variable", "file", "file of Windows"])
def test_secrets_are_not_on_the_command_line(url, tmp_path, by):
    path = tmp_path / "token"
    path.write_text("long enough\n", encoding="utf-8-sig" if by == "file of Windows" else "utf-8")
    given = {"arguments": (), "FASTWIN_TOKEN": "long enough\n"}
    if by != "variable":
        given = {"arguments": ("--token-file", str(path))}
    with start("--port", "0", *given.pop("arguments"), FASTWIN_STORE=url, **given) as process:
        try:
            said = first_line(process)
            port = re.search(r":(\d+)/  \(stop it", said)[1]
            line = Path(f"/proc/{process.pid}/cmdline").read_bytes()
            assert b"long enough" not in line and url.encode() not in line
            assert get(port, "/api/store")[0] == 401
            assert get(port, "/api/store", Authorization="Bearer long enough")[0] == 200
        finally:
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=30)
    assert "can read" not in errors


@pytest.mark.parametrize("store", ["redis://:secret@127.0.0.1:1", "redis://127.0.0.1:1/0?password=secret"])
def test_secrets_on_the_command_line_are_warned_of(store):
    with start("--store", store, "--token", "long enough") as process:
        _, errors = process.communicate(timeout=60)
    assert "can read the password in --store; use FASTWIN_STORE" in errors
    assert "can read --token; use --token-file" in errors
    assert "secret" not in errors


def test_a_path_with_a_sign_is_a_path(tmp_path):
    with start("--store", f"rocksdb:{tmp_path}/ann@example") as process:
        _, errors = process.communicate(timeout=60)
    assert "there is no store at" in errors and "password" not in errors


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "--store: give the URL of a store"),
        (("--store", "URL", "--token-file", "/nowhere"), "--token-file: /nowhere cannot be read"),
        (("--store", "rocksdb:/nowhere/at/all"), "there is no store at /nowhere/at/all"),
        (("--store", "rocksdb:/etc/passwd"), "there is no store at /etc/passwd"),
        (("--store", "mysql://x"), "must begin with one of redis, redis+cluster, redis+sentinel, rediss"),
        (("--store", "redis://127.0.0.1:1"), "is out of reach"),
        (("--store", "URL", "--token", "short"), "--token: must have at least 8 characters"),
        (
            ("--store", "URL", "--token", "first line\nsecond line"),
            "--token: must be one line of ASCII characters, as a header takes them, and has '\\n'",
        ),
        (("--store", "URL", "--token", "pässword"), "--token: must be one line of ASCII"),
        (("--store", "URL", "--refresh", "0"), "--refresh: must be 0.2 to 3600"),
        (("--store", "URL", "--workers", "0"), "--workers: must be 1 to 64"),
        (("--store", "URL", "--connections", "0"), "--connections: must be 1 to"),
        (("--store", "URL", "--label", "pv"), "--label: must be NAME=TEXT"),
        (("--store", "URL", "--label", "zz=1"), "--label: the store has no aggregate 'zz'; it has "),
        (("--store", "URL", "--token-file", "/dev/null"), "--token-file: must have at least 8 characters, got 0"),
        (("--store", "URL", "--host", "192.0.2.1", "--port", "0"), "cannot bind 192.0.2.1"),
    ],
)
def test_what_cannot_work_is_told_at_once(url, arguments, says):
    with start(*(url if part == "URL" else part for part in arguments)) as process:
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert says in errors and "Traceback" not in errors


def test_a_client_has_no_more_connections_than_it_may(url):
    with start("--store", url, "--port", "0", "--connections", "1") as process:
        try:
            port = re.search(r":(\d+)/  \(stop it", first_line(process))[1]
            with socket.create_connection(("127.0.0.1", int(port)), timeout=20) as held:
                held.sendall(b"GET /api/store HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert held.recv(1_000).startswith(b"HTTP/1.1 200 ")
                with socket.create_connection(("127.0.0.1", int(port)), timeout=20) as other:
                    answer = other.recv(1_000)
            assert answer.startswith(b"HTTP/1.1 429 ") and b"At most 1 connections for one client." in answer
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=30)


def children(pid: int) -> set[int]:
    """Returns the processes that a process has started and that answer; not multiprocessing's own helper."""
    found = set()
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == pid and b"spawn_main" in (path / "cmdline").read_bytes():
                found.add(int(path.name))
        except (OSError, ValueError):
            continue
    return found


def gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


def counted(port: str) -> float:
    """Returns how many requests for the store have been answered, by all workers."""
    connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=20)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    found = re.search(r'^fastwin_requests_total\{route="/api/store",status="200"\} (\S+)$', text, re.MULTILINE)
    return float(found[1]) if found else 0.0


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_workers(url, tmp_path, by):
    """They answer as one, one that dies is replaced, and none outlives the command, nor the folder of its reader."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    arguments = ("--store", url, "--port", "0", "--workers", "2", "--access-log")
    with start(*arguments, TMPDIR=str(temporary)) as process:
        workers: set[int] = set()
        try:
            port = re.search(r":(\d+)/  \(stop it", first_line(process))[1]
            until(lambda: len(children(process.pid)) == 2)
            workers = children(process.pid)
            for _ in range(20):
                assert get(port, "/api/store")[0] == 200
            if by is signal.SIGINT:
                until(lambda: counted(port) == 20)
                os.kill(next(iter(workers)), signal.SIGKILL)
                until(lambda: len(children(process.pid) | workers) == 3 and len(children(process.pid)) == 2)
                workers |= children(process.pid)
                for _ in range(20):
                    assert get(port, "/api/store")[0] == 200
        finally:
            process.send_signal(by)
        _, errors = process.communicate(timeout=60)
    until(lambda: all(map(gone, workers)))
    assert "Traceback" not in errors
    assert len(re.findall(r'127\.0\.0\.1 "GET /api/store" 200 ', errors)) >= 20
    if by is not signal.SIGKILL:
        assert process.returncode == 0 and "stopped" in errors
    if by is signal.SIGTERM:
        assert not list(temporary.glob("fastwin-*"))
