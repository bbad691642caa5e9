"""``to_folder``: a sink for foreachBatch that writes each micro-batch to files of its own."""

import logging
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from fastwin.errors import SpecError, StateError
from spark_glue.plan.asking import ask_spark
from spark_glue.plan.queries import query_id_of
from spark_glue.sinks.outputs import check_main_alone
from spark_glue.state.savepoint import local_folder

__all__ = ["FolderSink", "to_folder"]

_LOG = logging.getLogger(__name__)
_NAME = re.compile(r"[\w.-]+")
_COLUMNS = ("query", "batch")
_BATCH = re.compile(r"/batch=(\d+)(?=[,}])")


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
    readers may see it empty. After a change of the specification with ``migrate=``, older files have other columns or
    types: read them with ``spark.read.schema(...)``, of the new results, or with Spark's option ``mergeSchema`` if no
    type has changed.

    Raises SpecError for arguments that do not fit; and when the query runs, if the rows have a column ``query`` or
    ``batch``, if there are late, bad or side rows beside them, or if the query's id is not known and there is no
    ``name``. Raises StateError in the first micro-batch of a run if the folder has a later one: its checkpoint was put
    back, and rows would be there twice. Where the folder cannot be listed, the query ends with what the store says.
    With Spark Connect nobody looks.
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
    return FolderSink(str(path), name, format, options or {})


class FolderSink:
    """The sink that ``to_folder`` returns; call it with the frame and the number of each micro-batch.

    place: the folder and the name in it. Of two sinks with one place, each replaces what the other has written.
    """

    def __init__(self, path: str, name: str | None, format: str, options: Mapping[str, str]) -> None:
        self.path, self._name, self._format, self._options = path, name, format, options
        local = local_folder(path)  # by whatever name, through links and ``..``
        self.place = Path(path) if local is None else local.resolve(), name
        self._last: dict[str, int] = {}  # micro-batch of each query

    def holds(self, other: "FolderSink") -> bool:
        """Tells whether who reads this folder meets another one's: it is inside, and by no name that Spark skips."""
        outer, inner = self.place[0], other.place[0]
        if inner == outer or not inner.is_relative_to(outer):
            return False
        parts = inner.relative_to(outer).parts
        return not any(part.startswith(".") or (part.startswith("_") and "=" not in part) for part in parts)

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """Writes the rows of one micro-batch."""
        check_main_alone(frame, "to_folder")
        taken = [column for column in frame.columns if column.lower() in _COLUMNS]
        if taken:
            raise SpecError(f"to_folder: the rows have a column {taken[0]!r}, as the folders have; rename it")
        query = self._name or query_id_of(frame)
        if query is None:
            raise SpecError("to_folder: Spark does not tell which query this is, so give it a name=")
        folder = f"{self.path}/query={query}"
        if self._last.get(query) != batch_id - 1:  # a run begins
            _check_last(frame, folder, batch_id, self._options)
        target = f"{folder}/batch={batch_id}"
        frame.write.mode("overwrite").format(self._format).options(**self._options).save(target)
        self._last[query] = batch_id
        _LOG.debug("to_folder: batch %d: its rows are in %s", batch_id, target)


def _check_last(frame: DataFrame, folder: str, batch_id: int, options: Mapping[str, str]) -> None:
    """Raises StateError if the folder of a query has a micro-batch behind this one, and what the store raises."""
    newest = _newest_in(frame, folder, options)
    if newest > batch_id:
        raise StateError(
            f"to_folder: {folder} has batch={newest}, and this is micro-batch {batch_id}: the checkpoint was put back, "
            f"or another one had this name=. Remove the folders from batch={batch_id + 1} on, whose rows come again, "
            f"and start the query again; for another checkpoint, give another name="
        )


def _newest_in(frame: DataFrame, folder: str, options: Mapping[str, str]) -> int:
    """Returns the number of the last micro-batch in the folder of a query; -1: none, or Spark does not let us look.

    One listing, on any store; raises what the store says. options: of the writer, which may have what opens it.
    """
    if not hasattr(frame, "_jdf"):
        return -1
    opened = ask_spark("the folders of earlier micro-batches", lambda: _opened(frame, folder, options), None)
    if opened is None:
        return -1
    jvm, files, place = opened
    if not files.exists(place):
        return -1
    found = jvm.org.apache.hadoop.fs.FileUtil.stat2Paths(files.listStatus(place))
    names = jvm.org.apache.commons.lang3.ArrayUtils.toString(found)  # as one text: each call to the JVM takes its time
    return max(map(int, _BATCH.findall(names)), default=-1)


def _opened(frame: DataFrame, folder: str, options: Mapping[str, str]) -> tuple[Any, Any, Any]:
    """Returns the JVM, and there the store and the path of a folder."""
    spark = frame.sparkSession
    jvm = spark._jvm
    assert jvm is not None
    place = jvm.org.apache.hadoop.fs.Path(folder)
    settings = spark._jsparkSession.sessionState().newHadoopConf()
    for key, value in options.items():
        settings.set(key, str(value))  # as Spark does when it writes
    return jvm, place.getFileSystem(settings), place
