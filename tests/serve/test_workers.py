"""Several processes that answer at one address: how they are started and ended."""

import os
import signal
import socket
import tempfile
from typing import ClassVar

import pytest

from fastwin.serve import workers
from fastwin.serve.metrics import SHARED_FOLDER


class FakeProcess:
    """A process that never runs. started: of all; after so many, no other one can start."""

    started: ClassVar[list["FakeProcess"]] = []
    most = 2

    def __init__(self, **_):
        self.told: list[str] = []

    def start(self):
        if len(self.started) == self.most:
            raise OSError("no more processes")
        self.started.append(self)

    def terminate(self):
        self.told.append("terminate")

    def join(self, *_):
        self.told.append("join")

    def is_alive(self):
        return False


def test_those_that_have_started_end_if_another_one_cannot(tmp_path, monkeypatch):
    class Context:
        Process = FakeProcess

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(workers.multiprocessing, "get_context", lambda _: Context)
    monkeypatch.setattr(FakeProcess, "started", [])
    before = signal.getsignal(signal.SIGTERM)
    with socket.socket() as bound, pytest.raises(OSError, match="no more processes"):
        workers.run_workers(3, print, bound)
    assert [process.told for process in FakeProcess.started] == [["terminate", "join"]] * 2
    assert signal.getsignal(signal.SIGTERM) is before
    assert SHARED_FOLDER not in os.environ
    assert not list(tmp_path.iterdir())
