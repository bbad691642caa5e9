"""Several processes that answer at one address. Each has its own store, cache and limits; the counters are of all."""

import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import wait
from typing import Any

from fastwin.machine.scratch import Scratch
from fastwin.serve.metrics import SHARED_FOLDER

__all__ = ["run_workers"]

_log = logging.getLogger("fastwin.serve")
_PAUSE_SECONDS = 1.0
_END_SECONDS = 20.0


def run_workers(count: int, work: Callable[..., None], bound: socket.socket, *arguments: Any) -> None:
    """Runs ``work(bound, *arguments)`` in so many processes until this one is asked to end; one that dies is replaced.

    work: a function of a module, and arguments that can be pickled; it ends by SIGINT or SIGTERM, which it
    also gets when this process is gone.
    """
    context = multiprocessing.get_context("spawn")
    counters = Scratch("metrics")
    before = signal.signal(signal.SIGTERM, lambda *_: _interrupt())

    def start() -> Any:
        process = context.Process(target=_begin, args=(work, bound, *arguments))
        process.start()
        return process

    os.environ[SHARED_FOLDER] = str(counters.path)
    processes: list[Any] = []
    try:
        for _ in range(count):  # one by one: those that have started end with this process if another one cannot
            processes.append(start())
        while True:
            gone = wait([process.sentinel for process in processes])
            for at, process in enumerate(processes):
                if process.sentinel in gone:
                    process.join()
                    print(f"fastwin serve: a worker ended with {process.exitcode}", file=sys.stderr, flush=True)
                    _log.info("serve: process %d ended with %s, and another one starts", process.pid, process.exitcode)
                    _forget(process.pid)
                    time.sleep(_PAUSE_SECONDS)
                    processes[at] = start()
    finally:
        signal.signal(signal.SIGTERM, before)
        for process in processes:
            process.terminate()
        end = time.monotonic() + _END_SECONDS
        for process in processes:
            process.join(max(0.0, end - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()
        del os.environ[SHARED_FOLDER]
        counters.drop()


def _interrupt() -> None:
    raise KeyboardInterrupt


def _forget(pid: int | None) -> None:
    """Takes a dead worker's gauges out of the sums."""
    from prometheus_client import multiprocess

    multiprocess.mark_process_dead(pid)


def _begin(work: Callable[..., None], bound: socket.socket, *arguments: Any) -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)  # nobody else would end it

    threading.Thread(target=follow, daemon=True).start()
    work(bound, *arguments)
