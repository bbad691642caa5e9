"""Engines in processes of their own: asked by lines, answering by lines of JSON, and watched for their memory."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Any

from bench.processes import resident

__all__ = ["Engine"]

_LOOK_S, _PATIENCE_S = 0.1, 30


class Engine:
    """One engine with one query: a process that lives until ``close``, so that it is warm when it counts.

    peak_bytes: the most memory that the process and its children together were seen to hold, in runs without an answer.
    """

    def __init__(self, name: str, command: list[str], folder: Path) -> None:
        self.name, self.peak_bytes = name, 0
        self._said = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  # closed with the engine
        # A group of its own: what it starts, such as Python's workers, can be ended with it.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said, text=True, start_new_session=True
        )

    def run(self, target: str = "-") -> float:
        """Runs the query; returns its seconds. target: a path for the answer. Raises RuntimeError if it fails."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        over = threading.Event()
        watch = threading.Thread(target=self._watch, args=(over,))
        if target == "-":  # an answer that is written takes memory of its own
            watch.start()
        try:
            self._process.stdin.write(f"{target}\n")
            self._process.stdin.flush()
            for line in self._process.stdout:
                if line.startswith("{"):
                    told: dict[str, Any] = json.loads(line)
                    return float(told["seconds"])
        except BrokenPipeError:
            pass
        finally:
            over.set()
            if watch.is_alive():
                watch.join()
        self._said.seek(0)
        told_last = self._said.read()[-1_500:].decode(errors="replace")
        raise RuntimeError(f"{self.name} ended before its answer: {told_last}")

    def close(self) -> None:
        """Lets the process end; if it does not, ends it and all that it has started."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._said.close()

    def _watch(self, over: threading.Event) -> None:
        done = False
        while not done:  # once at least: a run may be over before the first look
            done = over.wait(_LOOK_S)
            self.peak_bytes = max(self.peak_bytes, resident(self._process.pid))
