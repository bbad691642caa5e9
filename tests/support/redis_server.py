"""A real Redis server for tests: on a free port of the loopback, in a folder of its own, stopped at the end."""

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

__all__ = ["RedisServer", "need_redis_server"]

LIFE_SECONDS = 3_600
REQUIRED = "FASTWIN_REQUIRE_SERVERS"
"""Set to have a missing server fail the tests instead of skipping them."""


def need_redis_server() -> str:
    """Returns the path of redis-server; skips the test where there is none, or fails it where one is required."""
    program = shutil.which("redis-server")
    if program is None:
        reason = "there is no redis-server (Debian: apt-get install redis-server)"
        if os.environ.get(REQUIRED):
            pytest.fail(reason)
        pytest.skip(reason)
    return program


_BUS = 10_000  # in cluster mode a server listens this far above its port, too


def _free_port() -> int:
    """Returns a port that is free, as is its bus; both lie below those that the kernel gives out by itself."""
    while True:
        port = random.randrange(12_000, 32_000 - _BUS)
        with socket.socket() as probe, socket.socket() as bus, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            bus.bind(("127.0.0.1", port + _BUS))
            return port


class _PortTakenError(AssertionError):
    pass


class RedisServer:
    """A server that can be stopped, killed, frozen and started again, empty or not."""

    def __init__(self, folder: Path, *options: str, config: str | None = None) -> None:
        self.program = need_redis_server()
        self.config = () if config is None else (folder / "redis.conf",)
        for path in self.config:
            path.write_text(config or "")
        self.folder = folder
        self.options = options
        self.process: subprocess.Popen | None = None
        while True:  # another process may take the port before the server does
            self.port = _free_port()
            try:
                return self.start()
            except _PortTakenError:
                continue
            except BaseException:
                self.stop()
                raise

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Starts the server, with the data that it had saved, and waits until it answers."""
        arguments = ["--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(self.folder), "--save", ""]
        with (self.folder / "redis.log").open("ab") as log:
            # An alarm outlives exec: however the tests end, the kernel ends a server that was forgotten.
            self.process = subprocess.Popen(
                [self.program, *self.config, *arguments, *self.options],
                stdout=log,
                stderr=log,
                preexec_fn=lambda: signal.alarm(LIFE_SECONDS),
            )
        end = time.monotonic() + 20
        while True:
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=1) as probe:
                    probe.sendall(b"PING\r\n")
                    if probe.recv(64).startswith((b"+PONG", b"-NOAUTH")):
                        return
            except OSError:
                pass
            if self.process.poll() is not None:
                told = (self.folder / "redis.log").read_text()
                raise _PortTakenError(told) if "Address already in use" in told[-400:] else AssertionError(told)
            assert time.monotonic() < end, "redis-server does not answer"
            time.sleep(0.02)

    def kill(self) -> None:
        """Ends the server at once; what it has not saved is gone."""
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait(20)

    def freeze(self) -> None:
        """Lets the server answer nothing more, until ``thaw``."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Lets a frozen server go on."""
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """Ends the server if it still runs."""
        if self.process is not None and self.process.poll() is None:
            self.kill()
