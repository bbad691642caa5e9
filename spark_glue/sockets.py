"""Unix domain sockets between Spark's JVM and Python, in a folder that is this user's alone, in local mode.

Over TCP on loopback, a small piece of data waits until the one before it has been acknowledged, which the other side
puts off for 40 ms. A micro-batch with few rows waits so in each of its tasks.
"""

import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pyspark

from spark_glue.plan.compat import SparkContext, has_unix_sockets
from spark_glue.plan.settings import DAEMON_KEY

__all__ = ["end_quietly", "end_quietly_here", "unix_sockets"]

_ENABLED_KEY = "spark.python.unix.domain.socket.enabled"
_FOLDER_KEY = "spark.python.unix.domain.socket.dir"
_LONGEST_FOLDER = 60  # of its path in bytes: Spark's names take 43 of the 104 that each system has for a socket's


@contextmanager
def unix_sockets(wanted: Mapping[str, str], environment: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Gives settings with which a Spark that starts within talks to its Pythons over Unix domain sockets.

    wanted: the settings that the caller asks for. The folder of the sockets is Spark's own from then on: its JVM
    deletes it when it ends, also where this process is killed. If Spark does not start, it is deleted at once.

    There are none where the master is not surely local, and where somebody else has said what to do; where the workers
    are not of ``spark_glue.daemon``, which keeps quiet about sockets that Spark has closed; where Spark, Python or the
    system has no such sockets, or the path of temporary folders is too long for them.
    """
    if not (_may_choose(wanted, environment) and _is_local(wanted, environment)):
        yield {}
    elif _FOLDER_KEY in wanted:
        yield {_ENABLED_KEY: "true"}
    elif (folder := _new_folder()) is None:
        yield {}
    else:
        try:
            yield {_ENABLED_KEY: "true", _FOLDER_KEY: folder}
            _delete_with_spark(folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise


def _may_choose(wanted: Mapping[str, str], environment: Mapping[str, str]) -> bool:
    said = (
        _ENABLED_KEY in wanted
        or "PYSPARK_UDS_MODE" in environment
        or _ENABLED_KEY in environment.get("PYSPARK_SUBMIT_ARGS", "")
        or _defaults(environment).exists()
    )
    ours = DAEMON_KEY not in wanted and environment.get("PYSPARK_PYTHON", sys.executable) == sys.executable
    return ours and not said and has_unix_sockets() and hasattr(socket, "AF_UNIX")


def _is_local(wanted: Mapping[str, str], environment: Mapping[str, str]) -> bool:
    master = wanted.get("spark.master")
    if master is not None:
        return master.startswith("local")
    arguments = environment.get("PYSPARK_SUBMIT_ARGS", "")
    named = "MASTER" in environment or "--master" in arguments or "spark.master" in arguments
    return not named and "PYSPARK_GATEWAY_PORT" not in environment  # which spark-submit leaves


def _defaults(environment: Mapping[str, str]) -> Path:
    """Returns the file in which an installation of Spark has its settings."""
    home = environment.get("SPARK_HOME") or os.path.dirname(pyspark.__file__)
    return Path(environment.get("SPARK_CONF_DIR") or os.path.join(home, "conf"), "spark-defaults.conf")


def _new_folder() -> str | None:
    parent = tempfile.gettempdir()
    fits = len(os.fsencode(os.path.join(parent, "fastwin-12345678"))) <= _LONGEST_FOLDER
    return tempfile.mkdtemp(prefix="fastwin-", dir=parent) if fits else None


def _delete_with_spark(folder: str) -> None:
    jvm = SparkContext._jvm
    hooks = getattr(jvm.org.apache.spark.util, "ShutdownHookManager$")
    getattr(hooks, "MODULE$").registerShutdownDeleteDir(jvm.java.io.File(folder))


def end_quietly(daemon: ModuleType) -> None:
    """Lets the workers of a daemon, PySpark's module, end without a traceback where Spark has closed its side.

    What a worker has left to say then, such as an idle one, a Unix domain socket does not take. (TCP takes it, and
    drops it.)
    """
    work = daemon.worker

    def until_closed(sock: socket.socket, authenticated: bool) -> int:
        try:
            return work(sock, authenticated)
        except BrokenPipeError:
            return 1

    daemon.worker = until_closed  # type: ignore[attr-defined]


def end_quietly_here() -> None:
    """Does that for this process, from its next task on, if it is a worker of PySpark's own daemon."""
    main = sys.modules["__main__"]
    is_daemon = main.__spec__ is not None and main.__spec__.name == pyspark.__name__ + ".daemon"
    if is_daemon and main.worker.__module__ == main.__name__:
        end_quietly(main)
