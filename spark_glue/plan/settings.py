"""Settings of a Spark session by their keys, and what they say: of batches to Python, of names, of cores."""

from pyspark.sql import SparkSession

from spark_glue.plan.asking import ask_spark
from spark_glue.plan.compat import SparkContext, is_connect

__all__ = [
    "BATCH_BYTES_KEY",
    "BATCH_ROWS_KEY",
    "CASE_KEY",
    "DAEMON_KEY",
    "FORMAT_KEY",
    "NO_LIMIT",
    "QUIET_KEY",
    "has_unlimited_batches",
    "is_case_sensitive",
    "requested_cores",
    "running_cores",
]

BATCH_BYTES_KEY = "spark.sql.execution.arrow.maxBytesPerBatch"
"""Spark's limit for a batch on its way to Python. Without it, a batch is limited in rows alone."""

BATCH_ROWS_KEY = "spark.sql.execution.arrow.maxRecordsPerBatch"
"""Spark's limit for the rows of such a batch."""

NO_LIMIT = str(2**31 - 1)
"""The value of BATCH_BYTES_KEY that means none."""

CASE_KEY = "spark.sql.caseSensitive"
"""Spark's setting for whether the case of letters tells columns apart."""

DAEMON_KEY = "spark.python.daemon.module"
"""Spark's setting for the module of the daemon that forks Python's workers."""

FORMAT_KEY = "spark.sql.streaming.stateStore.checkpointFormatVersion"
"""Spark's setting for the format of new checkpoints: in 2, each attempt of a task writes state files of its own."""

QUIET_KEY = "spark.sql.streaming.noDataMicroBatches.enabled"
"""Spark's setting for whether micro-batches run without new rows, where an operator asks for them."""

_CORES, _INSTANCES = "spark.executor.cores", "spark.executor.instances"
_DYNAMIC, _MOST_INSTANCES = "spark.dynamicAllocation.enabled", "spark.dynamicAllocation.maxExecutors"


def has_unlimited_batches(spark: SparkSession) -> bool:
    """Returns whether a batch on its way to Python is limited in rows alone."""
    return (spark.conf.get(BATCH_BYTES_KEY, None) or "").rstrip("b") == NO_LIMIT


def is_case_sensitive(spark: SparkSession) -> bool:
    """Returns whether the case of letters tells columns apart."""
    return spark.conf.get(CASE_KEY) == "true"


def running_cores(spark: SparkSession) -> int:
    """Returns how many tasks a session runs at a time, as far as it has its executors; 1 where that cannot be told."""
    if is_connect(spark):
        return 1
    return ask_spark("the cores of a session", lambda: int(spark.sparkContext.defaultParallelism), 1)


def requested_cores(context: SparkContext) -> int:
    """Returns how many cores an application has, or has asked for: its executors may not all be there yet."""
    conf, now = context.getConf(), context.defaultParallelism
    if context.master.startswith("local") or conf.contains("spark.default.parallelism"):
        return now
    asked = [_INSTANCES, *([_MOST_INSTANCES] if conf.get(_DYNAMIC, "false") == "true" else [])]
    return max(now, *(int(conf.get(key, "0")) * int(conf.get(_CORES, "1")) for key in asked))
