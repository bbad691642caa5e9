"""A real PostgreSQL server for tests: on a socket in a folder of its own, without a port, stopped at the end."""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.redis_server import LIFE_SECONDS, REQUIRED

__all__ = ["postgres_server"]

_DEBIAN = Path("/usr/lib/postgresql")  # where no folder of PATH has the programs
_START_SECONDS = 60


def _programs() -> Path:
    """Returns the folder of PostgreSQL's programs; skips the test where there is none, or fails it where one is required."""
    found = shutil.which("initdb")
    folders = [] if found is None else [Path(found).resolve().parent]
    folders += sorted(_DEBIAN.glob("*/bin"), key=lambda path: int(path.parent.name), reverse=True)
    for folder in folders:
        if (folder / "postgres").exists() and (folder / "initdb").exists():
            return folder
    reason = "there is no PostgreSQL server (Debian: apt-get install postgresql)"
    if os.environ.get(REQUIRED):
        pytest.fail(reason)
    pytest.skip(reason)


def _user() -> str | None:
    """Returns who runs the server: it refuses to run as root. None: who runs the tests."""
    if os.getuid() != 0:
        return None
    names = {user.pw_name for user in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


@contextlib.contextmanager
def postgres_server() -> Iterator[Path]:
    """Runs a server; gives the folder of its socket, for the user and the database ``postgres``."""
    programs, user = _programs(), _user()
    with tempfile.TemporaryDirectory(prefix="fastwin-pg-") as name:  # short, as the path of a socket must be
        folder = Path(name)
        if user is not None:
            shutil.chown(folder, user)
        log = folder / "log"
        made = subprocess.run(
            [programs / "initdb", "-D", folder / "data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"],
            user=user, cwd=folder, capture_output=True, text=True, timeout=_START_SECONDS, check=False,
        )  # fmt: skip
        assert made.returncode == 0, made.stderr
        with log.open("ab") as told:
            # However the tests end, `timeout` ends a server that was forgotten.
            process = subprocess.Popen(
                ["timeout", "-s", "INT", str(LIFE_SECONDS), programs / "postgres", "-D", folder / "data", "-k", folder,
                 "-c", "listen_addresses=", "-c", "fsync=off", "-c", "timezone=Europe/Berlin"],
                user=user, cwd=folder, stdout=told, stderr=told,
            )  # fmt: skip
        try:
            end = time.monotonic() + _START_SECONDS
            while "ready to accept connections" not in log.read_text():
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < end, f"the server does not start: {log.read_text()}"
                time.sleep(0.05)
            yield folder
        finally:
            process.send_signal(signal.SIGINT)  # it waits for no connection
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGQUIT)
                process.wait(20)
