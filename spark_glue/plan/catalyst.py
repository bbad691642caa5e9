"""What Spark's own plan tells of a frame or a query: its watermark, columns of its scan, and what cannot work."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from fastwin.errors import SpecError

__all__ = [
    "BATCH_BYTES_KEY",
    "CHAIN_KEY",
    "NO_LIMIT",
    "WINDOW_TIME",
    "RunningQuery",
    "Watermark",
    "is_columnar",
    "prefers_columns",
    "query_id_of",
    "query_of",
    "quoted",
    "running_query",
    "watermark_of",
]

WINDOW_TIME = "window_time"
"""The column that ``chain=True`` adds: the last millisecond of each window."""

BATCH_BYTES_KEY = "spark.sql.execution.arrow.maxBytesPerBatch"
"""Spark's limit for a batch on its way to Python. Without it, a batch is limited in rows alone."""

NO_LIMIT = str(2**31 - 1)
"""The value of BATCH_BYTES_KEY that means none."""

_DELAY_KEY = "spark.watermarkDelayMs"
_COLUMNAR_SOURCES = ("orc", "parquet")
_STATEFUL = ("TransformWithState", "FlatMapGroupsWithState", "FlatMapGroupsInPandasWithState")


CHAIN_KEY = "fastwin.chained"
"""In the metadata of the column that a window behind this frame takes for its event time."""


@dataclass(frozen=True)
class Watermark:
    """A frame's own watermark: on which column, and how far behind the newest row, ms.

    chained: it is that of another ``apply``, of which the frame is the result.
    """

    column: str
    delay_ms: int
    chained: bool = False


@dataclass(frozen=True)
class RunningQuery:
    """A query that runs.

    available_now: it ends with the data that is there. processing_time: it has timers of processing time.
    shares_watermark: two of its operators stand side by side on one ``withWatermark``; Spark serves the first alone.
    """

    available_now: bool
    processing_time: bool
    shares_watermark: bool

    @property
    def problem(self) -> str | None:
        """What is wrong with it and what to do, in a sentence; None: nothing."""
        if self.shares_watermark:
            return (
                "df: two results of one frame with a watermark of its own are in this query, and Spark lets only the "
                "first one fire; drop the withWatermark and give watermark= to each apply, or run a query for each"
            )
        if self.available_now and self.processing_time:
            return (
                "availableNow: a query of processing time never ends with it, because it always has another "
                'micro-batch to run; use .trigger(processingTime="1 second") and stop the query'
            )
        return None


def query_of(frame: DataFrame) -> RunningQuery | None:
    """Returns the query whose ``foreachBatch`` has been handed this frame; None where that cannot be told."""
    query_id = query_id_of(frame)
    return running_query(frame.sparkSession, query_id) if query_id else None


def query_id_of(frame: DataFrame) -> str | None:
    """Returns the id of the query whose ``foreachBatch`` has been handed this frame: the same over restarts from one
    checkpoint. None where that cannot be told."""
    if not hasattr(frame, "_jdf"):
        return None
    return frame._jdf.sparkSession().sparkContext().getLocalProperty("sql.streaming.queryId")


def running_query(spark: SparkSession, query_id: str) -> RunningQuery | None:
    """Returns the query with this id; None if it does not run."""
    for query in spark._jsparkSession.sharedState().activeStreamingQueries().values():
        if query.id().toString() == query_id:
            operators = [node for node in _below(query.analyzedPlan()) if node.nodeName().startswith(_STATEFUL)]
            return RunningQuery(
                available_now=query.trigger().toString().startswith("AvailableNow"),
                processing_time=any("ProcessingTime" in str(node.timeMode()) for node in operators),
                shares_watermark=_share_watermark(operators),
            )
    return None


def _share_watermark(operators: Sequence[Any]) -> bool:
    """Returns whether one watermark is the nearest to two of these operators."""
    marks = [mark for operator in operators for mark in _watermarks_below(operator)]
    return len(marks) > len(set(marks))


def _watermarks_below(operator: Any) -> set[str]:
    """Returns the ids of the watermarks below an operator, those behind another stateful one left out."""
    found = set()
    children = operator.children()
    waiting = [children.apply(i) for i in range(children.size())]
    while waiting:
        node = waiting.pop()
        if node.nodeName() == "EventTimeWatermark":
            found.add(str(node.nodeId()))
        if not node.nodeName().startswith(_STATEFUL):
            children = node.children()
            waiting += [children.apply(i) for i in range(children.size())]
    return found


def quoted(name: str) -> str:
    """Returns a column name as Spark takes it literally, dots and all."""
    return "`" + name.replace("`", "``") + "`"


def prefers_columns(df: DataFrame, names: Sequence[str]) -> bool:
    """Returns whether these columns reach Python sooner as columns of the scan than row by row.

    Spark keeps a copy of each row that it hands over as columns. The way of rows has a cost that is higher still, but
    only while a batch is limited in bytes: Spark adds up what the batch takes before each row that it writes.
    """
    return (df.sparkSession.conf.get(BATCH_BYTES_KEY, None) or "").rstrip("b") != NO_LIMIT and is_columnar(df, names)


def is_columnar(df: DataFrame, names: Sequence[str]) -> bool:
    """Returns whether these columns come straight from a scan that hands over columns (Parquet, ORC).

    No job runs. False where it cannot be told, such as with Spark Connect.
    """
    if not hasattr(df, "_jdf"):
        return False
    needed = df.select(*(quoted(name) for name in names))
    execution = needed._jdf.queryExecution()
    if df.isStreaming:
        leaf = _below_projections(execution.analyzed())
        if leaf.nodeName() != "StreamingRelation":
            return False
        source = leaf.dataSource().className().lower()
        return source in _COLUMNAR_SOURCES and _vectorized(df, source)
    leaf = _below_projections(execution.sparkPlan())
    return leaf.nodeName().startswith("Scan ") and bool(leaf.supportsColumnar())


def watermark_of(df: DataFrame) -> Watermark | None:
    """Returns the watermark that a streaming frame has already.

    Raises SpecError if its column is gone from the frame, or if there is a stateful operator of Spark's before it that
    holds rows back.
    """
    nodes = list(_nodes(df))
    if any(node.nodeName() == "Aggregate" and node.isStreaming() for node in nodes):
        raise SpecError(
            "df: it comes out of Spark's own streaming aggregation, the last of whose results would be late here; let "
            "apply make those windows, with chain=True, or write the first result to a table and read that as a stream"
        )
    stateful = [node.nodeName() for node in nodes if node.nodeName().startswith(_STATEFUL)]
    if stateful or not hasattr(df, "_jdf"):  # a table may have the mark, too, so it counts behind an operator only
        for field in df.schema:
            if CHAIN_KEY in field.metadata:
                return Watermark(field.name, 0, chained=True)
    if stateful:
        raise SpecError(
            f"df: it comes out of another stateful operator ({stateful[0]}); for windows behind windows in one query, "
            f"give the first apply chain=True and keep its column {WINDOW_TIME!r}, or write the first result to a "
            f"table and read that as a stream"
        )
    for field in df.schema:
        if _DELAY_KEY in field.metadata:
            return Watermark(field.name, int(field.metadata[_DELAY_KEY]))
    for node in nodes:
        if node.nodeName() == "EventTimeWatermark":
            raise SpecError(
                f"df: it has a watermark on {node.eventTime().name()!r}, but not that column any more; keep the "
                f"column, or drop the withWatermark and give watermark= instead"
            )
    return None


def _vectorized(df: DataFrame, source: str) -> bool:
    try:
        return df.sparkSession.conf.get(f"spark.sql.{source}.enableVectorizedReader") == "true"
    except PySparkException:
        return False


def _below_projections(node: Any) -> Any:
    while node.nodeName() == "Project":
        expressions = node.projectList()
        if any(expressions.apply(i).nodeName() != "AttributeReference" for i in range(expressions.size())):
            break
        node = node.children().apply(0)
    return node


def _nodes(df: DataFrame) -> Iterator[Any]:
    if not hasattr(df, "_jdf"):
        return
    yield from _below(df._jdf.queryExecution().analyzed())


def _below(plan: Any) -> Iterator[Any]:
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        yield node
        children = node.children()
        waiting += [children.apply(i) for i in range(children.size())]
