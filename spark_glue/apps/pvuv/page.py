"""The page of ``pvuv --serve``: a process of its own, which shows the store."""

import os
import shlex
import signal
import subprocess
import sys
from typing import Self

from fastwin.errors import SpecError
from spark_glue.apps.pvuv.places import STORE_VARIABLE, without_password

__all__ = ["Page"]

_END_SECONDS = 5


class Page:
    """The page of a store, at a port of this machine. A context: it ends with it."""

    def __init__(self, url: str, port: int) -> None:
        command = [sys.executable, "-m", "fastwin", "serve", "--port", str(port)]
        self._url = url
        # All can read a command line, but not the environment.
        self._process = subprocess.Popen(command, env=os.environ | {STORE_VARIABLE: url})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def check(self) -> None:
        """Raises SpecError if it has ended already: its port is taken, for example."""
        status = self._process.poll()
        if status is not None:
            raise SpecError(f"--serve: the page has ended with status {status}: what it said stands above")

    def outcome(self, wait: bool) -> int:
        """Returns the command's exit status, and says so where the page has ended by itself.

        wait: until somebody ends the page; else it is asked as it stands.
        """
        status = self._process.wait() if wait else self._process.poll()
        if status in (None, 0, 130, -signal.SIGINT, -signal.SIGTERM):  # 130: Ctrl-C before it had begun
            return 0
        print(
            f"pvuv: the page has ended with status {status}; the panes are in the store. To show them: "
            f"fastwin serve --store {shlex.quote(without_password(self._url))}",
            file=sys.stderr,
        )
        return 1
