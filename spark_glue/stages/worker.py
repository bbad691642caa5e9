"""What a task must know about its query, and what is done once in each Python worker."""

import gc
import logging
import os
import signal
from typing import Any

from pyspark import TaskContext

from spark_glue.state.folders import leave

__all__ = [
    "LOG_VARIABLE",
    "has_own_partition",
    "is_first_batch",
    "leave_when_hung_up",
    "log_to_stderr",
    "query_id",
    "run_of",
    "settle",
    "shares_of",
]

LOG_VARIABLE = "FASTWIN_LOG"
"""In the environment of the workers: the level from which their loggers write to stderr."""

# Spark fixes the number of partitions of state in the checkpoint. spark.sql.shuffle.partitions may change when a query
# starts again; before Spark had a key of its own for state, it was the fixed number.
_PARTITIONS_KEYS = ("spark.sql.streaming.internal.stateStore.partitions", "spark.sql.shuffle.partitions")
_DEFAULT_PARTITIONS = 200  # Spark's
_QUERY_KEY = "sql.streaming.queryId"  # Spark's name for the query; its job group may be renamed by a sink
_BATCH_KEY = "streaming.sql.batchId"
_UNNAMED = "unnamed"

_settled = False


def shares_of(key_groups: int) -> int:
    """Returns into how many shares a query divides its key groups: one per partition of state, at most one per group.

    Key group i is in share ``i % shares``, which Spark puts on partition ``i % partitions``. Called within a task.
    """
    return max(1, min(key_groups, _partitions() or _DEFAULT_PARTITIONS))


def has_own_partition() -> bool:
    """Returns whether each share surely has a partition to itself. Called within a task."""
    return _partitions() is not None


def _partitions() -> int | None:
    context = TaskContext.get()
    found = [] if context is None else [context.getLocalProperty(key) for key in _PARTITIONS_KEYS]
    return next((int(value) for value in found if value and value.isdecimal()), None)


def query_id() -> str:
    """Returns the id of the streaming query that this task belongs to: the same for all its runs."""
    context = TaskContext.get()
    found = None if context is None else context.getLocalProperty(_QUERY_KEY)
    return found if found and found.replace("-", "").isalnum() else _UNNAMED


def run_of(operator: str) -> str:
    """Returns under which name a task leaves what it keeps: the id of the query, the same for all its runs.

    operator: tells one ``apply`` from others. It is the name where Spark does not tell the query: behind foreachBatch
    with Spark Connect, whose session runs the jobs.
    """
    found = query_id()
    return f"{found}-{operator}" if found == _UNNAMED and operator else found


def is_first_batch() -> bool:
    """Returns whether the micro-batch that this task belongs to is the first one of its checkpoint."""
    context = TaskContext.get()
    return context is not None and context.getLocalProperty(_BATCH_KEY) == "0"


def settle() -> None:
    """Hides all that is loaded by now from the garbage collector; once in a process, and only in a worker.

    PySpark collects after each task, and looks at some hundred thousand objects of modules each time, which takes as
    long as the windows of a small micro-batch. Modules are no garbage; cycles that the first task holds stay with them.
    """
    global _settled
    if _settled or TaskContext.get() is None:
        return
    _settled = True
    log_to_stderr(os.environ.get(LOG_VARIABLE, ""))
    leave_when_hung_up()
    gc.collect()
    gc.freeze()


def leave_when_hung_up() -> None:
    """Removes the copies of state that nobody else uses when Spark ends this process, as it does with the executor.

    Spark's daemon tells its workers by SIGHUP, also where the executor was killed.
    """

    def end(*_: Any) -> None:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        leave()
        os.kill(os.getpid(), signal.SIGHUP)

    try:
        if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # else somebody has other plans
            signal.signal(signal.SIGHUP, end)
    except ValueError:  # not the main thread
        pass


def log_to_stderr(level: str) -> None:
    """Lets the loggers of fastwin write to stderr, which Spark keeps for each executor. level: its name; empty: none.

    A name that is none is told of by a warning, and nothing else is changed.
    """
    if not level:
        return
    if level.upper() not in logging.getLevelNamesMapping():
        logging.getLogger(__name__).warning("%s: must be a level such as INFO, got %r", LOG_VARIABLE, level)
        return
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(process)d %(name)s: %(message)s"))
    for name in ("fastwin", "spark_glue"):
        logger = logging.getLogger(name)
        logger.setLevel(level.upper())
        logger.addHandler(handler)
