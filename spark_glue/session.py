"""``session``: a Spark session in which streaming frames can be windowed."""

import logging
import os
import re
import signal
import sys
import warnings
from collections.abc import Collection, Mapping
from contextlib import suppress

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from fastwin.callers import callers_level
from fastwin.errors import NotInstalledError, SpecError
from fastwin.machine.java import java_fault
from fastwin.machine.processes import child_processes
from spark_glue.classarchive import archived_classes
from spark_glue.interpreter import start_quickly
from spark_glue.plan.compat import SparkContext, checkpoint_format, is_connect
from spark_glue.plan.settings import BATCH_BYTES_KEY, DAEMON_KEY, FORMAT_KEY, NO_LIMIT
from spark_glue.sockets import unix_sockets

__all__ = [
    "CLUSTER_WORKER_MEMORY",
    "STATE_STORE_KEY",
    "STATE_STORE_PROVIDER",
    "WORKER_MEMORY",
    "check_state_store",
    "session",
    "warn_of_format",
]

STATE_STORE_KEY = "spark.sql.streaming.stateStore.providerClass"
STATE_STORE_PROVIDER = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_LOG = logging.getLogger(__name__)
_CHANGELOG_KEY = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
_SNAPSHOTS_KEY = "spark.sql.streaming.stateStore.minDeltasForSnapshot"
_PYTHON_KEY = "spark.pyspark.python"
_REMOTE_KEY = "spark.remote"
_REMOTE_VARIABLE = "SPARK_REMOTE"
_PARTITIONS_KEY = "spark.sql.shuffle.partitions"
_PROGRESS_KEY = "spark.ui.showConsoleProgress"
_DAEMON = "spark_glue.daemon"
_ANSWER_VARIABLE = "_PYSPARK_DRIVER_CONN_INFO_PATH"  # tells the JVM that PySpark starts where its answer is awaited
WORKER_MEMORY = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(1 << 34),
    "MIMALLOC_PURGE_DELAY": "-1",
}
"""Variables with which Python's workers keep the memory they have used, of glibc and of Arrow, in local mode.

Each micro-batch needs as much again, and fresh pages have to be found and cleared, by a virtual machine's host as well.
"""

CLUSTER_WORKER_MEMORY = WORKER_MEMORY | {
    "MALLOC_TRIM_THRESHOLD_": str(256 << 20),
    "MIMALLOC_PURGE_DELAY": "5000",
}
"""The same on a cluster, where a worker gives back what it does not need for long: of glibc's what is free beyond
256 MB, of Arrow's what has been free for five seconds. So a backlog does not make workers large for ever.
"""


def session(
    app_name: str | None = None,
    master: str | None = None,
    config: Mapping[str, object] | None = None,
    class_archive: str | os.PathLike[str] | None = None,
) -> SparkSession:
    """Returns a Spark session with which streaming frames can be windowed.

    app_name: shown by Spark; ``"fastwin"`` if not given.
    master: such as ``"local[2]"``; if not given, what ``spark-submit`` or the environment says, else ``local[*]``.
    config: Spark's own settings by key; they win over the defaults below.
    class_archive: a folder, such as ``"~/.cache/fastwin"``, for an archive of the classes that Spark's JVM loads, which
        is made if it is not there. The JVM of the first program writes the archive after that has ended (200 MB for
        each Java and Spark), and later ones start with it, which takes seconds less. It is for the JVM that this call
        starts: not for executors of a cluster, a program of ``spark-submit`` or a server of Spark Connect. Nobody else
        should be able to write to the folder: a JVM trusts what is in it. None: there is none.

    Where ``config`` says nothing, it sets: the RocksDB state store, which stateful Python operators need, writing
    changes and not whole files at each commit, and a snapshot of its files after 100 commits; Spark's second format of
    checkpoints, in which no late attempt of a task overwrites what another one has committed (not on Spark 4.0, whose
    second format no newer Spark can read); this interpreter for the workers (unless ``PYSPARK_PYTHON`` names another);
    no progress bars, which would write over other lines of the terminal; no limit for the bytes of a batch on its way
    to Python, which Spark would check before each row, but only for its rows (10,000,
    ``spark.sql.execution.arrow.maxRecordsPerBatch``; lower that for rows longer than 100 kB);
    WORKER_MEMORY in the environment of the workers, on a cluster CLUSTER_WORKER_MEMORY; and, in local mode, as many
    shuffle partitions as there are cores, a Python daemon that loads fastwin once for all workers (its module is
    ``spark_glue.daemon``; not where ``PYSPARK_PYTHON`` names another Python), for Spark's Pythons a script that lets
    them import PySpark from where it is installed and not from an archive, and Unix domain sockets between these and
    the JVM, in a temporary folder of this user's alone, which spare small micro-batches much waiting (not on Spark 4.0,
    and not with a ``spark-defaults.conf``). The time zone is left alone.
    What ``spark-submit`` says stays, but for the state store: of another one, ``config`` has to say.

    With ``SPARK_REMOTE`` in the environment, or ``spark.remote`` in ``config``, such as ``"sc://host:15002"``, it is a
    session of that server of Spark Connect; it sets there what a session can set. The Python and the memory of the
    workers are the server's.

    If a session is running already, it is returned as it is, provided that it fits.

    Raises SpecError if the running session has another value than needed for one of these keys, naming the key, its
    value and the value needed; for a setting that only the server of Spark Connect can have; and for a
    ``class_archive`` that cannot be made, or has blanks, quotes, backslashes or colons in its path.
    """
    wanted = {key: _text(value) for key, value in (config or {}).items()}
    if master is not None:
        wanted["spark.master"] = master
    remote = wanted.get(_REMOTE_KEY, os.environ.get(_REMOTE_VARIABLE))
    if remote is not None:
        return _remote_session(remote, app_name, wanted)
    if SparkContext is None:
        raise SpecError(
            f"session: pyspark-client has Spark Connect alone; name a server, such as "
            f"spark_glue.session(config={{{_REMOTE_KEY!r}: 'sc://localhost:15002'}})"
        )
    if SparkContext._active_spark_context is not None:
        running = SparkSession.builder.getOrCreate()
        _check_running(running, wanted)
        return running

    needed = {STATE_STORE_KEY: STATE_STORE_PROVIDER, **_quiet(os.environ)}
    if _PYTHON_KEY in wanted:
        os.environ["PYSPARK_PYTHON"] = wanted[_PYTHON_KEY]
    elif "PYSPARK_PYTHON" not in os.environ:
        os.environ["PYSPARK_PYTHON"] = needed[_PYTHON_KEY] = sys.executable
    builder = SparkSession.builder.appName(app_name or wanted.get("spark.app.name") or "fastwin")
    starts = SparkContext._gateway is None and "PYSPARK_GATEWAY_PORT" not in os.environ  # a JVM
    with archived_classes(class_archive if starts else None), unix_sockets(wanted, os.environ) as sockets:
        for key, value in (needed | sockets | wanted).items():
            builder = builder.config(key, value)
        built = _started(builder)
    given = built.sparkContext.getConf()
    for key, value in _preferences(built).items():
        if given.get(key) is None:  # neither config nor spark-submit says anything
            built.conf.set(key, value)
    _keep_worker_memory(built.sparkContext)
    _load_workers_at_once(built.sparkContext)
    _LOG.info("session: Spark %s at %s", built.version, built.sparkContext.master)
    return built


def _started(builder: SparkSession.Builder) -> SparkSession:
    """Starts Spark. Raises NotInstalledError, with the command that mends it, if that failed for want of Java."""
    before = child_processes()
    try:
        return builder.getOrCreate()
    except KeyboardInterrupt:
        _end_what_started(before)
        raise
    except Exception as problem:
        runs_here = "SPARK_REMOTE" not in os.environ and "PYSPARK_GATEWAY_PORT" not in os.environ
        if runs_here and (fault := java_fault()):
            raise NotInstalledError(f"spark_glue.session: {fault}") from problem
        raise


def _end_what_started(before: Collection[int]) -> None:
    """Ends a JVM that was not waited for, as it would stay for ever; with one that has answered, nothing happens.

    It misses the folder where it was to say how to reach it, and loses the thread that would have ended it.
    """
    if SparkContext._gateway is not None:
        return
    for process, variables in child_processes().items():
        if process not in before and _ANSWER_VARIABLE in variables:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


def _remote_session(remote: str, app_name: str | None, wanted: Mapping[str, str]) -> SparkSession:
    """Returns a session of a server of Spark Connect, with the settings that a session can have."""
    # Options stand behind it, such as a token, and a password may stand before the host.
    shown = re.sub(r"//[^/]*@", "//", re.split(r"[;?#]", remote, maxsplit=1)[0])
    for key in ("spark.master", _PYTHON_KEY):
        if key in wanted:
            raise SpecError(
                f"session: {key} is {wanted[key]!r}, and Spark Connect has a server at {shown!r} with a master and a "
                f"Python (PYSPARK_PYTHON) of its own; leave {key} out, or {_REMOTE_VARIABLE}"
            )
    if remote.startswith("local"):  # a server below this process
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    built = SparkSession.builder.appName(app_name or "fastwin").remote(remote).getOrCreate()
    given = built.conf.getAll
    preferred = {key: value for key, value in _preferences(built).items() if key not in given}
    for key, value in ({STATE_STORE_KEY: STATE_STORE_PROVIDER} | preferred | dict(wanted)).items():
        if key != _REMOTE_KEY and built.conf.get(key, None) != value:
            try:
                built.conf.set(key, value)
            except PySparkException as problem:
                raise SpecError(
                    f"session: {key} is to be {value!r}, which the server of Spark Connect lets no session set; start "
                    f"the server with it"
                ) from problem
    return built


def _quiet(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the setting without progress bars, unless a command line of Spark's has its own.

    Spark shows them in its shells, and takes every plain Python program for one. ``spark-submit`` shows none by itself.
    """
    submitted = "PYSPARK_GATEWAY_PORT" in environment
    said = _PROGRESS_KEY in environment.get("PYSPARK_SUBMIT_ARGS", "")
    return {} if submitted or said else {_PROGRESS_KEY: "false"}


def _keep_worker_memory(context: SparkContext) -> None:
    local = _is_local(context)
    for name, value in (WORKER_MEMORY if local else CLUSTER_WORKER_MEMORY).items():
        if not (local and name in os.environ):  # then workers inherit it
            context.environment.setdefault(name, value)  # holds what spark.executorEnv says


def _load_workers_at_once(context: SparkContext) -> None:
    """Lets a daemon that has loaded fastwin make the workers, where its Python is surely this one."""
    if not _is_local(context) or context.getConf().get(DAEMON_KEY) is not None:
        return
    if os.environ.get("PYSPARK_PYTHON") == sys.executable:
        # What master there is, is known only now. Each query looks there anew.
        context._conf.set(DAEMON_KEY, _DAEMON)
        start_quickly(context)


def _is_local(context: SparkContext) -> bool:
    return str(context.master).startswith("local")


def check_state_store(spark: SparkSession) -> None:
    """Raises SpecError unless the session's state store is one that stateful Python operators can use."""
    provider = spark.conf.get(STATE_STORE_KEY, "")
    if "RocksDB" not in (provider or ""):
        raise SpecError(
            f"the Spark session has {STATE_STORE_KEY}={provider!r}, needed is {STATE_STORE_PROVIDER!r}: take one of "
            f"spark_glue.session(), or spark.conf.set({STATE_STORE_KEY!r}, {STATE_STORE_PROVIDER!r})"
        )


def warn_of_format(spark: SparkSession) -> None:
    """Warns where new checkpoints would not be of the best format."""
    found, best = spark.conf.get(FORMAT_KEY, "1"), checkpoint_format(spark)
    if found == best:
        return
    if best == "1":
        why = f"is {found}: what Spark {spark.version} writes in it can be read by no newer Spark"
    else:
        why = (
            "is 1: where Spark runs a task twice, the later attempt may overwrite state that the other one has "
            "committed"
        )
    warnings.warn(
        f"{FORMAT_KEY} {why}; set it to {best}, as spark_glue.session does, before the query's first start",
        stacklevel=callers_level(),
    )


def _preferences(spark: SparkSession) -> dict[str, str]:
    # A commit of fastwin's is a few large values, so that a hundred of them are soon read again; Spark's default is 10.
    preferences = {
        FORMAT_KEY: checkpoint_format(spark),
        _CHANGELOG_KEY: "true",
        _SNAPSHOTS_KEY: "100",
        BATCH_BYTES_KEY: NO_LIMIT,
    }
    if not is_connect(spark) and _is_local(spark.sparkContext):
        preferences[_PARTITIONS_KEY] = str(spark.sparkContext.defaultParallelism)
    return preferences


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _check_running(spark: SparkSession, wanted: Mapping[str, str]) -> None:
    check_state_store(spark)
    for key, value in wanted.items():
        found = _setting(spark, key)
        if found != value:
            raise SpecError(_misfit(key, found, value))


def _setting(spark: SparkSession, key: str) -> str | None:
    found = spark.conf.get(key, None)
    return spark.sparkContext.getConf().get(key) if found is None else found


def _misfit(key: str, found: str | None, needed: str) -> str:
    return (
        f"the Spark session has {key}={found!r}, needed is {needed!r}; set it before the session is built, "
        f"for example with spark_glue.session(config={{{key!r}: {needed!r}}}) in a new process"
    )
