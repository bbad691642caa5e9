"""What Spark's own plan tells of a frame or a query: its watermark, columns of its scan, and what cannot work.

All of it is read by way of what Spark keeps to itself. Where that is denied or gone, the log says so once, and things
go on without: with fewer checks, and with rows in place of columns.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from fastwin.errors import SpecError
from spark_glue.plan.compat import Py4JError, has_columnar_input, has_second_format, is_connect, metadata_of
from spark_glue.plan.connect import NEVER_ENDS, analyzed

__all__ = [
    "BATCH_BYTES_KEY",
    "CHAIN_KEY",
    "FORMAT_KEY",
    "NO_LIMIT",
    "WINDOW_TIME",
    "RunningQuery",
    "Watermark",
    "counted",
    "in_first_format",
    "is_columnar",
    "operators_of",
    "partitions_of",
    "prefers_columns",
    "query_id_of",
    "query_of",
    "quoted",
    "running_query",
    "told",
    "watermark_delays",
    "watermark_of",
]

_LOG = logging.getLogger(__name__)
_DENIED = (Py4JError, PySparkException, AttributeError, TypeError)

WINDOW_TIME = "window_time"
"""The column that ``chain=True`` adds: the last millisecond of each window."""

BATCH_BYTES_KEY = "spark.sql.execution.arrow.maxBytesPerBatch"
"""Spark's limit for a batch on its way to Python. Without it, a batch is limited in rows alone."""

NO_LIMIT = str(2**31 - 1)
"""The value of BATCH_BYTES_KEY that means none."""

FORMAT_KEY = "spark.sql.streaming.stateStore.checkpointFormatVersion"
"""Spark's setting for the format of new checkpoints: in 2, each attempt of a task writes state files of its own."""

_DELAY_KEY = "spark.watermarkDelayMs"
_COLUMNAR_SOURCES = ("orc", "parquet")
_STATEFUL = ("TransformWithState", "FlatMapGroupsWithState", "FlatMapGroupsInPandasWithState")
_PACKED = {"key_group", "mapper", "seq", "blob"}  # columns that go into an operator of apply's, see stages.packets


CHAIN_KEY = "fastwin.chained"
"""In the metadata of the column that a window behind this frame takes for its event time."""


_missed: set[str] = set()
A = TypeVar("A")


def told(what: str, ask: Callable[[], A], otherwise: A) -> A:
    """Returns what ``ask`` learns of Spark's own objects; ``otherwise`` where they are denied or gone.

    what: is to be learned, for the log, which has it once.
    """
    try:
        return ask()
    except _DENIED as problem:
        if what not in _missed:
            _missed.add(what)
            _LOG.warning("%s: Spark does not tell, so it goes on without (%s)", what, str(problem).split("\n", 1)[0])
        return otherwise


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
    """A query that runs, with an operator of ``apply`` in it.

    available_now: it ends with the data that is there. processing_time: it has timers of processing time.
    shares_watermark: two of its operators stand side by side on one ``withWatermark``; Spark serves the first alone.
    first_format: its checkpoint has been begun in Spark's first format, and there is a better one. watermark: of the
    micro-batch that runs, ms; None while there is none, and where several operators may each have their own.
    """

    available_now: bool
    processing_time: bool
    shares_watermark: bool
    first_format: bool = False
    watermark: int | None = None

    @property
    def problem(self) -> str | None:
        """What is wrong with it and what to do, in a sentence; None: nothing."""
        if self.shares_watermark:
            return (
                "df: two results of one frame with a watermark of its own are in this query, and Spark lets only the "
                "first one fire; drop the withWatermark and give watermark= to each apply, or run a query for each"
            )
        if self.available_now and self.processing_time:
            return NEVER_ENDS
        return None

    @property
    def notice(self) -> str | None:
        """What is good to know of it and what to do, in a sentence; None: nothing."""
        if not self.first_format:
            return None
        return (
            f"checkpoint: it was begun with {FORMAT_KEY}=1, and goes on so; where Spark runs a task twice, the later "
            f"attempt may overwrite state that the other one has committed. Attempts write the same bytes, so the "
            f"query can go on; to be safe from it, start the query anew with an empty checkpoint folder in a session "
            f"with {FORMAT_KEY}=2, as spark_glue.session sets it"
        )


def partitions_of(frame: DataFrame) -> int | None:
    """Returns the number of a frame's partitions; None where that cannot be told without a job."""
    if not hasattr(frame, "_jdf"):
        return None

    def count() -> int | None:
        execution = frame._jdf.queryExecution()
        if execution.executedPlan().nodeName() == "AdaptiveSparkPlan":  # it has to run for that
            return None
        return execution.toRdd().getNumPartitions()

    return told("the partitions of a sink's frame", count, None)


def query_of(frame: DataFrame) -> RunningQuery | None:
    """Returns the query whose ``foreachBatch`` has been handed this frame; None where that cannot be told."""
    query_id = query_id_of(frame)
    return running_query(frame.sparkSession, query_id) if query_id else None


def query_id_of(frame: DataFrame) -> str | None:
    """Returns the id of the query whose ``foreachBatch`` has been handed this frame: the same over restarts from one
    checkpoint. None where that cannot be told."""
    if not hasattr(frame, "_jdf"):
        return None
    return told(
        "the query of a sink",
        lambda: frame._jdf.sparkSession().sparkContext().getLocalProperty("sql.streaming.queryId"),
        None,
    )


def counted(frame: DataFrame, counter: str) -> int | None:
    """Returns a counter of the micro-batch that this frame of a ``foreachBatch`` is of, once it has been computed.

    None where several frames of ``apply`` are in the query, and where it cannot be told.
    """
    query_id = query_id_of(frame)
    if query_id is None:
        return None
    return told("a counter of a micro-batch", lambda: _counted(frame.sparkSession, query_id, counter), None)


def _counted(spark: SparkSession, query_id: str, counter: str) -> int | None:
    found = []
    for query in spark._jsparkSession.sharedState().activeStreamingQueries().values():
        rows = query.lastExecution().observedMetrics().values().iterator() if str(query.id()) == query_id else None
        while rows is not None and rows.hasNext():
            row = rows.next()
            if list(row.schema().fieldNames()) == ["counters"]:
                told = row.getJavaMap(0)
                if counter in told:
                    found.append(told[counter])
    return found[0] if len(found) == 1 else None


def running_query(spark: SparkSession, query_id: str) -> RunningQuery | None:
    """Returns the query with this id; None if it does not run, has no ``apply`` in it, or where that cannot be told."""
    return told("the operators of a query", lambda: _running_query(spark, query_id), None)


def _running_query(spark: SparkSession, query_id: str) -> RunningQuery | None:
    for query in spark._jsparkSession.sharedState().activeStreamingQueries().values():
        if query.id().toString() == query_id:
            operators = _stateful_operators(query)
            ours = operators_of(query)
            if not ours:
                return None
            return RunningQuery(
                available_now=query.trigger().toString().startswith("AvailableNow"),
                processing_time=any("ProcessingTime" in str(node.timeMode()) for node in ours),
                shares_watermark=_share_watermark(operators),
                first_format=told("the format of a checkpoint", partial(in_first_format, query), False),
                watermark=None if len(ours) > 1 else told("the watermark of a batch", partial(_watermark, query), None),
            )
    return None


def _stateful_operators(query: Any) -> list[Any]:
    return [node for node in _below(query.analyzedPlan()) if node.nodeName().startswith(_STATEFUL)]


def operators_of(query: Any) -> list[Any]:
    """Returns the operators of ``apply`` in a query, which is Spark's own object."""
    return [node for node in _stateful_operators(query) if _is_ours(node)]


def watermark_delays(query: Any) -> tuple[int, ...]:
    """Returns how far the watermarks of a query, which is Spark's own object, are behind the newest rows, ms."""
    found = []
    for node in _below(query.analyzedPlan()):
        if node.nodeName() == "EventTimeWatermark":
            columns = node.output()
            marks = [columns.apply(i).metadata() for i in range(columns.size())]
            found += [int(mark.getLong(_DELAY_KEY)) for mark in marks if mark.contains(_DELAY_KEY)]
    return tuple(dict.fromkeys(found))


def _is_ours(operator: Any) -> bool:
    """Returns whether a stateful operator is one of ``apply``."""
    columns = operator.children().apply(0).output()
    return {columns.apply(i).name() for i in range(columns.size())} >= _PACKED


def in_first_format(query: Any) -> bool:
    """Returns whether a commit of a query does not say which attempts count, and could. query: Spark's own object."""
    last = query.commitLog().getLatest()
    return has_second_format() and last.isDefined() and last.get()._2().stateUniqueIds().isEmpty()


def _watermark(query: Any) -> int | None:
    """Returns the watermark of the micro-batch that a query has begun last, ms. 0 is Spark's for none."""
    last = query.offsetLog().getLatest()
    begun = metadata_of(last.get()._2()) if last.isDefined() else None
    return None if begun is None else int(begun.batchWatermarkMs()) or None


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
    unlimited = (df.sparkSession.conf.get(BATCH_BYTES_KEY, None) or "").rstrip("b") == NO_LIMIT
    return has_columnar_input() and not unlimited and is_columnar(df, names)


def is_columnar(df: DataFrame, names: Sequence[str]) -> bool:
    """Returns whether these columns come straight from a scan that hands over columns (Parquet, ORC).

    No job runs. False where it cannot be told, such as with Spark Connect.
    """
    if not hasattr(df, "_jdf"):
        return False
    return told("the columns of a scan", lambda: _is_columnar(df, names), False)


def _is_columnar(df: DataFrame, names: Sequence[str]) -> bool:
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
    seen = told("the operators before apply", lambda: _seen(df), None)
    if seen is not None and seen.aggregates:
        raise SpecError(
            "df: it comes out of Spark's own streaming aggregation, the last of whose results would be late here; let "
            "apply make those windows, with chain=True, or write the first result to a table and read that as a stream"
        )
    if seen is None or seen.stateful:  # a table may have the mark, too, so it counts behind an operator only
        for field in df.schema:
            if CHAIN_KEY in field.metadata:
                return Watermark(field.name, 0, chained=True)
    if seen is not None and seen.stateful:
        raise SpecError(
            f"df: it comes out of another stateful operator ({seen.stateful[0]}); for windows behind windows in one "
            f"query, give the first apply chain=True and keep its column {WINDOW_TIME!r}, or write the first result to "
            f"a table and read that as a stream"
        )
    for field in df.schema:
        if _DELAY_KEY in field.metadata:
            return Watermark(field.name, int(field.metadata[_DELAY_KEY]))
    if seen is not None and seen.marked:
        raise SpecError(
            f"df: it has a watermark on {seen.marked[0]!r}, but not that column any more; keep the column, or drop the "
            f"withWatermark and give watermark= instead"
        )
    return None


@dataclass(frozen=True)
class _Seen:
    """What is before a frame: an aggregation of Spark's; names of stateful operators; columns with a watermark."""

    aggregates: bool
    stateful: tuple[str, ...]
    marked: tuple[str, ...]


def _seen(df: DataFrame) -> _Seen:
    """Returns what is before a frame."""
    if is_connect(df):
        told_nodes = analyzed(df)
        return _Seen(
            any(node.name == "Aggregate" and node.streaming for node in told_nodes),
            tuple(node.name for node in told_nodes if node.name.startswith(_STATEFUL)),
            tuple(node.marked for node in told_nodes if node.marked is not None),
        )
    nodes = [(node.nodeName(), node) for node in _below(df._jdf.queryExecution().analyzed())]
    return _Seen(
        any(name == "Aggregate" and node.isStreaming() for name, node in nodes),
        tuple(name for name, _ in nodes if name.startswith(_STATEFUL)),
        tuple(node.eventTime().name() for name, node in nodes if name == "EventTimeWatermark"),
    )


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


def _below(plan: Any) -> Iterator[Any]:
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        yield node
        children = node.children()
        waiting += [children.apply(i) for i in range(children.size())]
