"""Engines in processes of their own: asked by lines, answering by lines of JSON, and watched for their memory."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Any

__all__ = ["Engine"]

_PAGE = os.sysconf("SC_PAGE_SIZE")
_LOOK_S = 0.1


class Engine:
    """One engine with one query: a process that lives until ``close``, so that it is warm when it counts.

    peak_bytes: the most memory that the process and its children together were seen to hold.
    """

    def __init__(self, name: str, command: list[str], folder: Path) -> None:
        self.name, self.peak_bytes = name, 0
        self._said = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  # closed with the engine
        # A group of its own: what it starts, such as Python's workers, is found and ended by it.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said, text=True, start_new_session=True
        )

    def run(self, target: str = "-") -> float:
        """Runs the query; returns its seconds. target: a path for the answer. Raises RuntimeError if it fails."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        over = threading.Event()
        watch = threading.Thread(target=self._watch, args=(over,))
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
            watch.join()
        self._said.seek(0)
        told_last = self._said.read()[-1_500:].decode(errors="replace")
        raise RuntimeError(f"{self.name} ended before its answer: {told_last}")

    def close(self) -> None:
        """Lets the process end, and ends it if it does not."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._said.close()

    def _watch(self, over: threading.Event) -> None:
        while not over.wait(_LOOK_S):
            self.peak_bytes = max(self.peak_bytes, _resident(self._process.pid))


def _resident(root: int) -> int:
    """Returns the bytes of a process and all below it. What they share counts in each: 0 where there is no /proc."""
    parents, pages = {}, {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            pages[int(entry.name)] = int((entry / "statm").read_text().split()[1])
        except (OSError, IndexError, ValueError):  # it has ended
            continue
    total = 0
    for pid, count in pages.items():
        above: int | None = pid
        while above is not None and above != root:
            above = parents.get(above)
        total += count * _PAGE if above == root else 0
    return total
