"""A server of Spark Connect on this machine, as a process of its own."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from tests.support.jvm import UNCOMPILED

__all__ = ["ROOT", "environment", "serving"]

ROOT = Path(__file__).resolve().parents[2]
_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
_HOST = "127.0.0.1"


def environment(**more: str) -> dict[str, str]:
    """Returns the environment of a process that has this interpreter's packages, and is no client yet."""
    kept = {name: value for name, value in os.environ.items() if name != "SPARK_REMOTE"}
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    return kept | {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "PYSPARK_PYTHON": sys.executable} | more


@contextmanager
def serving(folder: Path, seconds: float = 300) -> Iterator[str]:
    """Runs a server, and yields the URL for its clients. folder: for its log and for what it writes."""
    folder.mkdir(parents=True, exist_ok=True)
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        port = probe.getsockname()[1]
    config = {
        "spark.connect.grpc.binding.address": _HOST,
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.host": _HOST,
        "spark.driver.bindAddress": _HOST,
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    } | UNCOMPILED
    home = Path(pyspark.__file__).parent
    settings = [word for key, value in config.items() for word in ("--conf", f"{key}={value}")]
    command = [
        str(home / "bin" / "spark-submit"),
        "--class",
        _SERVER,
        "--master",
        "local[2]",
        *settings,
        "spark-internal",
    ]
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(
            command, cwd=folder, env=environment(SPARK_HOME=str(home)), stdout=log, stderr=subprocess.STDOUT
        )
        try:
            _await(server, port, seconds, folder / "server.log")
            yield f"sc://{_HOST}:{port}"
        finally:
            server.terminate()
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait(20)


def _await(server: subprocess.Popen, port: int, seconds: float, log: Path) -> None:
    end = time.monotonic() + seconds
    while True:
        with socket.socket() as probe:
            answers = probe.connect_ex((_HOST, port)) == 0
        if server.poll() is not None or time.monotonic() > end:  # who answers then is somebody else
            raise RuntimeError(f"the server of Spark Connect did not start:\n{log.read_text()[-3000:]}")
        if answers:
            return
        time.sleep(0.1)
