"""``to_folder``: a sink for foreachBatch that writes each micro-batch to files of its own."""

import logging
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from pyspark.sql import DataFrame

from fastwin.errors import SpecError
from spark_glue.plan.queries import query_id_of

__all__ = ["to_folder"]

_LOG = logging.getLogger(__name__)
_NAME = re.compile(r"[\w.-]+")
_COLUMNS = ("query", "batch")


def to_folder(
    path: str | Path, *, name: str | None = None, format: str = "parquet", options: Mapping[str, str] | None = None
) -> Callable[[DataFrame, int], None]:
    """Returns a function for ``foreachBatch`` that writes each micro-batch's rows to a folder of its own.

    path: of the folder for all of them, on any store that Spark writes to; micro-batch 7 goes to
        ``path/query=ID/batch=7``. name: in place of the query's id, of letters, digits, ``.``, ``-`` and ``_``; needed
        with Spark Connect, which does not tell the id. A name belongs to one checkpoint: a query with a new one counts
        from 0 again, and would replace what is there. format: of Spark's file sources, such as ``"orc"``. options: of
        that format.

    ``spark.read.parquet(path)`` reads them all, with the columns ``query`` and ``batch``. Running a micro-batch again
    replaces its folder and no other, so each row is there once however often a query fails. While it is written anew,
    readers may see it empty.

    Raises SpecError for arguments that do not fit; and when the query runs, if the rows have a column ``query`` or
    ``batch``, or if the query's id is not known and there is no ``name``.
    """
    if not isinstance(path, str | Path) or not str(path):
        raise SpecError(f"to_folder: path must name a folder, got {path!r}")
    if name is not None and (not isinstance(name, str) or _NAME.fullmatch(name) is None):
        raise SpecError(f"to_folder: name must have letters, digits, '.', '-' and '_' alone, got {name!r}")
    if not isinstance(format, str) or not format:
        raise SpecError(f"to_folder: format must be one of Spark's, such as 'parquet', got {format!r}")
    if format.lower() in ("delta", "iceberg", "hudi"):
        raise SpecError(
            f"to_folder: {format} has a log of its own, which folders written beside each other would break; append to "
            f"the table in a function of yours (Delta's options txnAppId and txnVersion make that idempotent)"
        )

    def write(frame: DataFrame, batch_id: int) -> None:
        taken = [column for column in frame.columns if column.lower() in _COLUMNS]
        if taken:
            raise SpecError(f"to_folder: the rows have a column {taken[0]!r}, as the folders have; rename it")
        query = name or query_id_of(frame)
        if query is None:
            raise SpecError("to_folder: Spark does not tell which query this is, so give it a name=")
        target = f"{path}/query={query}/batch={batch_id}"
        frame.write.mode("overwrite").format(format).options(**(options or {})).save(target)
        _LOG.debug("to_folder: batch %d: its rows are in %s", batch_id, target)

    return write
