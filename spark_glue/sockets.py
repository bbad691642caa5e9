"""Unix domain sockets between Spark's JVM and Python, in a folder that is this user's alone, in local mode.

Over TCP on loopback, a small piece of data waits until the one before it has been acknowledged, which the other side
puts off for 40 ms. A micro-batch with few rows waits so in each of its tasks.
"""

import os
import socket
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pyspark

from spark_glue.plan.compat import SparkContext, has_unix_sockets

__all__ = ["delete_with_spark", "unix_sockets"]

_ENABLED_KEY = "spark.python.unix.domain.socket.enabled"
_FOLDER_KEY = "spark.python.unix.domain.socket.dir"
_LONGEST_FOLDER = 60  # of its path in bytes: Spark's names take 43 of the 104 that each system has for a socket's


def unix_sockets(wanted: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Returns settings with which Spark and its Pythons talk over Unix domain sockets.

    wanted: the settings that the caller asks for.

    There are none where master is not surely local, and where somebody else has said what to do; where Spark, Python or
    the system has no such sockets, or the path of temporary folders is too long for them.
    """
    said = (
        _ENABLED_KEY in wanted
        or "PYSPARK_UDS_MODE" in environment
        or _ENABLED_KEY in environment.get("PYSPARK_SUBMIT_ARGS", "")
        or _defaults(environment).exists()
    )
    if said or not has_unix_sockets() or not hasattr(socket, "AF_UNIX") or not _is_local(wanted, environment):
        return {}
    folder = wanted.get(_FOLDER_KEY) or _folder_in(tempfile.gettempdir())
    return {_ENABLED_KEY: "true", _FOLDER_KEY: folder} if folder else {}


def delete_with_spark(context: SparkContext) -> None:
    """Lets Spark's JVM delete the folder of its sockets when it ends, also where this process is killed."""
    folder = context.getConf().get(_FOLDER_KEY)
    if folder is not None and folder == _folder_in(tempfile.gettempdir()):
        hooks = getattr(context._jvm.org.apache.spark.util, "ShutdownHookManager$")
        getattr(hooks, "MODULE$").registerShutdownDeleteDir(context._jvm.java.io.File(folder))


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


@cache  # a further session of this process has the same
def _folder_in(parent: str) -> str | None:
    fits = len(os.fsencode(os.path.join(parent, "fastwin-12345678"))) <= _LONGEST_FOLDER
    return tempfile.mkdtemp(prefix="fastwin-", dir=parent) if fits else None
