"""Makes Spark's first micro-batch quicker: what it would begin with is done while the query is still being planned."""

import contextlib
import threading
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

__all__ = ["warm_up"]


def warm_up(spark: SparkSession) -> threading.Thread:
    """Lets Spark run a first job of one row beside what is being done; returns the thread that waits for it.

    The job loads the Java classes that any job needs, and starts a Python worker, which imports what it will need and
    then waits for the query's tasks. It fails without a word: then the first micro-batch does all of this itself.
    """

    def run() -> None:
        with contextlib.suppress(Exception):
            spark.range(1).mapInArrow(_importing, "id bigint").toArrow()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def _importing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import spark_glue.stages.operator
    import spark_glue.stages.pack  # noqa: F401

    yield from batches
