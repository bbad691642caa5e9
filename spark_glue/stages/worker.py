"""What a task must know about its query, and what is done once in each Python worker."""

import gc

from pyspark import TaskContext

__all__ = ["query_id", "settle", "shares_of"]

# Spark fixes the number of partitions of state in the checkpoint. spark.sql.shuffle.partitions may change when a query
# starts again; before Spark had a key of its own for state, it was the fixed number.
_PARTITIONS_KEYS = ("spark.sql.streaming.internal.stateStore.partitions", "spark.sql.shuffle.partitions")
_DEFAULT_PARTITIONS = 200  # Spark's
_QUERY_KEY = "sql.streaming.queryId"  # Spark's name for the query; its job group may be renamed by a sink

_settled = False


def shares_of(key_groups: int) -> int:
    """Returns into how many shares a query divides its key groups: one per partition of state, at most one per group.

    Key group i is in share ``i % shares``, which Spark puts on partition ``i % partitions``. Called within a task.
    """
    context = TaskContext.get()
    found = [] if context is None else [context.getLocalProperty(key) for key in _PARTITIONS_KEYS]
    partitions = next((int(value) for value in found if value and value.isdecimal()), _DEFAULT_PARTITIONS)
    return max(1, min(key_groups, partitions))


def query_id() -> str:
    """Returns the id of the streaming query that this task belongs to: the same for all its runs."""
    context = TaskContext.get()
    found = None if context is None else context.getLocalProperty(_QUERY_KEY)
    return found if found and found.replace("-", "").isalnum() else "unnamed"


def settle() -> None:
    """Hides all that is loaded by now from the garbage collector; once in a process, and only in a worker.

    PySpark collects after each task, and looks at some hundred thousand objects of modules each time, which takes as
    long as the windows of a small micro-batch. Modules are no garbage; cycles that the first task holds stay with them.
    """
    global _settled
    if _settled or TaskContext.get() is None:
        return
    _settled = True
    gc.collect()
    gc.freeze()
