"""Spark's own cluster on loopback addresses: a master, and machines that share nothing but the folder of checkpoints.

A machine is a worker of Spark with an address, a folder for copies of state, and local directories of its own. It can be
killed with all that it has: the worker, the executor, Python's workers, and its folder.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pyspark

from spark_glue.state.folders import ROOT_VARIABLE

__all__ = ["Machine", "Master"]

ROOT = Path(__file__).resolve().parents[2]
_HOME = Path(pyspark.__file__).parent
_START_S = 60.0
_JAVA = "-XX:TieredStopAtLevel=1"  # none lives long
_LOGGING = """
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %p %c: %m%n%ex
"""


def _descendants(ancestor: int) -> list[int]:
    """Returns the processes below one, however their groups were set."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):  # it has ended
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    found = [ancestor]
    for one in found:
        found += children.get(one, [])
    return found[1:]


class _Daemon:
    """A process of Spark's, with everything that it starts. folder: for its log, and for all that it writes."""

    def __init__(self, folder: Path, kind: str, arguments: list[str], environment: dict[str, str]) -> None:
        folder.mkdir(parents=True)
        (folder / "log4j2.properties").write_text(_LOGGING)  # executors go by it, too
        self.folder = folder
        self._log = folder / "log"
        given = {
            "SPARK_HOME": str(_HOME),
            "SPARK_DAEMON_MEMORY": "192m",
            "SPARK_DAEMON_JAVA_OPTS": f"{_JAVA} -Dspark.deploy.maxExecutorRetries=-1",
            "SPARK_CONF_DIR": str(folder),
            "PYTHONPATH": str(ROOT),
            "PYSPARK_PYTHON": sys.executable,
        }
        command = [str(_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", *arguments]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, start_new_session=True, env=os.environ | given | environment
            )

    def tail(self) -> str:
        """Returns the end of what it has printed."""
        return self._log.read_text()[-2000:]

    def kill(self) -> int:
        """Kills it with all that it has started; returns how many processes there were."""
        if self._process.poll() is not None:
            return 0
        os.kill(self._process.pid, signal.SIGSTOP)  # so that it starts nothing meanwhile
        below = _descendants(self._process.pid)
        for pid in [self._process.pid, *below]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait(30)
        return 1 + len(below)


class Master(_Daemon):
    """Spark's master at 127.0.0.1, once it listens. Use it as a context."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.url = f"spark://127.0.0.1:{port}"
        super().__init__(folder, "master.Master", ["--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"], {})
        until = time.monotonic() + _START_S
        while True:
            answers = False
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                answers = True
            if self._process.poll() is not None or time.monotonic() > until:  # who answers then is somebody else
                raise RuntimeError(f"Spark's master does not start: {self.tail()}")
            if answers:
                return
            time.sleep(0.1)

    def __enter__(self) -> "Master":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


class Machine(_Daemon):
    """A worker of Spark at an address of its own, with nothing that another machine has.

    host: such as 127.0.0.2. cores: of its one executor.
    """

    def __init__(self, folder: Path, host: str, master: str, cores: int) -> None:
        self.host = host
        own = {"SPARK_LOCAL_DIRS": "local", "TMPDIR": "tmp", ROOT_VARIABLE: "copies"}
        paths = {name: folder / part for name, part in own.items()}
        for path in paths.values():
            path.mkdir(parents=True)
        wanted = ["--host", host, "--cores", str(cores), "--memory", "1g", "--webui-port", "0"]
        super().__init__(
            folder / "worker",
            "worker.Worker",
            [*wanted, "--work-dir", str(folder / "work"), master],
            {name: str(path) for name, path in paths.items()},
        )
        self._all = folder

    def lose(self) -> int:
        """Kills the machine and takes its disk away; returns how many processes it had."""
        processes = self.kill()
        shutil.rmtree(self._all, ignore_errors=True)
        return processes
