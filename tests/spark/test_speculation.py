"""Speculation: where a task is slow, Spark runs another attempt of it on another machine, and commits the first to end."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from tests.support.spark_submit import MODULE, ROOT, submitted

# The first attempt of a task of partition 0 waits for the second one, in two stages.
SLOW_MODULE = (
    MODULE
    + """
import os
import time
from pathlib import Path
from pyspark import TaskContext

add = Joined.add


def slow(self, value, accumulator):
    task = TaskContext.get()
    if task is not None and value.v in (50, 51, 52, 250, 251, 252):
        name = Path(os.environ["ATTEMPTS"], f"attempt-{task.stageId()}.{task.partitionId()}-{task.attemptNumber()}")
        name.touch()
        other, until = name.with_name(name.name[:-1] + "1"), time.monotonic() + 180
        while task.partitionId() == 0 and not other.exists() and time.monotonic() < until:
            time.sleep(0.1)
    return add(self, value, accumulator)


Joined.add = slow
"""
)
START_S = 120
HOSTS = ("127.0.0.2", "127.0.0.3")


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """Runs a master and two workers, which count as two machines; yields the master's address."""
    started: list[subprocess.Popen] = []

    def start(name: str, role: str, says: str, *arguments: str) -> str:
        log = folder / f"{name}.log"
        command = [str(Path(pyspark.__file__).parent / "bin" / "spark-class"), f"org.apache.spark.deploy.{role}"]
        with log.open("w") as out:
            started.append(
                subprocess.Popen([*command, *arguments], stdout=out, stderr=out, cwd=folder, start_new_session=True)
            )
        until = time.monotonic() + START_S
        while (found := re.search(says, log.read_text())) is None:
            assert started[-1].poll() is None, log.read_text()[-2000:]
            assert time.monotonic() < until, log.read_text()[-2000:]
            time.sleep(0.2)
        return found[0]

    ports = ["--port", "0", "--webui-port", "0"]
    try:
        master = start("master", "master.Master", r"spark://127.0.0.1:\d+", "--host", "127.0.0.1", *ports)
        for host in HOSTS:
            work = ["--host", host, "--cores", "1", "--memory", "1g", "--work-dir", str(folder / host)]
            start(host, "worker.Worker", "Successfully registered with master", *work, *ports, master)
        yield master
    finally:
        for process in reversed(started):
            os.killpg(process.pid, signal.SIGTERM)
        for process in started:
            process.wait(30)


@pytest.mark.long
def test_whichever_attempt_is_first_is_committed(tmp_path):
    for host in HOSTS:
        with socket.socket() as probe:
            try:
                probe.bind((host, 0))
            except OSError:
                pytest.skip(f"{host} is not an address of this machine")
    speculation = {
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.minTaskRuntime": "1s",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.multiplier": "1.1",
        "spark.speculation.efficiency.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "900m",
        "spark.executorEnv.PYTHONPATH": str(ROOT),
        "spark.executorEnv.ATTEMPTS": str(tmp_path),
        "spark.executorEnv.FASTWIN_LIVE_BYTES": "0",  # so that each micro-batch reads what was committed
        "spark.executorEnv.FASTWIN_CACHE_BYTES": "0",
    }
    with cluster(tmp_path) as master:
        submitted(tmp_path, SLOW_MODULE, speculation, master=master)
    told = sorted(one.name.removeprefix("attempt-") for one in tmp_path.glob("attempt-*"))
    assert sum(one.endswith(".0-1") for one in told) == 2, told
