"""Makes Spark's first micro-batch quicker: what it would begin with is done while the query is still being planned."""

import contextlib
import threading
import weakref
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

from spark_glue.plan.compat import is_connect

__all__ = ["warm_up"]

_MOST = 32  # tasks
_GROUP = "fastwin warm-up"
_DESCRIPTION = "fastwin: Python workers start, and import what the first micro-batch needs"
_warmed: weakref.WeakSet = weakref.WeakSet()


def warm_up(spark: SparkSession) -> threading.Thread | None:
    """Lets Spark run a first job of some rows beside what is being done; returns the thread that waits for it.

    The job loads the Java classes that any job needs, and starts a Python worker for each core, up to 32 of them, which
    import what they will need and then wait for the query's tasks. It has a job group of its own, "fastwin warm-up", so
    that it is not taken for the user's. It fails without a word: then the first micro-batch does all of this itself.
    Returns None if Spark has run it already since it was started, and with Spark Connect.
    """
    if is_connect(spark):
        return None
    context = spark.sparkContext
    if context in _warmed:
        return None
    _warmed.add(context)

    def run() -> None:
        with contextlib.suppress(Exception):
            context.setJobGroup(_GROUP, _DESCRIPTION)
            tasks = min(context.defaultParallelism, _MOST)
            spark.range(0, tasks, 1, tasks).mapInArrow(_importing, "id bigint").toArrow()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def _importing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import spark_glue.stages.operator
    import spark_glue.stages.pack  # noqa: F401

    yield from batches
