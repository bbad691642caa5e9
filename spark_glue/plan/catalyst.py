"""What Spark's own plan tells of a frame: its watermark, columns of its scan, and what cannot work.

All of it is read by way of what Spark keeps to itself. Where that is denied or gone, things go on without: with fewer
checks, and with rows in place of columns.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from fastwin.errors import SpecError
from fastwin.spec.resultcolumns import WINDOW_TIME
from spark_glue.plan.asking import ask_spark
from spark_glue.plan.compat import has_columnar_input, is_connect
from spark_glue.plan.connect import analyzed
from spark_glue.plan.settings import has_unlimited_batches

__all__ = [
    "CHAIN_KEY",
    "DELAY_KEY",
    "STATEFUL",
    "Watermark",
    "is_columnar",
    "nodes_below",
    "partitions_of",
    "prefers_columns",
    "quoted",
    "watermark_of",
]

DELAY_KEY = "spark.watermarkDelayMs"
"""In the metadata of a column with a watermark: how far it is behind the newest row, ms."""

CHAIN_KEY = "fastwin.chained"
"""In the metadata of the column that a window behind this frame takes for its event time."""

STATEFUL = ("TransformWithState", "FlatMapGroupsWithState", "FlatMapGroupsInPandasWithState")
"""How the names of the nodes begin that keep state by a function."""

_COLUMNAR_SOURCES = ("orc", "parquet")


@dataclass(frozen=True)
class Watermark:
    """A frame's own watermark: on which column, and how far behind the newest row, ms.

    chained: it is that of another ``apply``, of which the frame is the result.
    """

    column: str
    delay_ms: int
    chained: bool = False


def partitions_of(frame: DataFrame) -> int | None:
    """Returns the number of a frame's partitions; None where that cannot be told without a job."""
    if not hasattr(frame, "_jdf"):
        return None

    def count() -> int | None:
        execution = frame._jdf.queryExecution()
        if execution.executedPlan().nodeName() == "AdaptiveSparkPlan":  # it has to run for that
            return None
        return execution.toRdd().getNumPartitions()

    return ask_spark("the partitions of a sink's frame", count, None)


def quoted(name: str) -> str:
    """Returns a column name as Spark takes it literally, dots and all."""
    return "`" + name.replace("`", "``") + "`"


def prefers_columns(df: DataFrame, names: Sequence[str]) -> bool:
    """Returns whether these columns reach Python sooner as columns of the scan than row by row.

    Spark keeps a copy of each row that it hands over as columns. The way of rows has a cost that is higher still, but
    only while a batch is limited in bytes: Spark adds up what the batch takes before each row that it writes.
    """
    return has_columnar_input() and not has_unlimited_batches(df.sparkSession) and is_columnar(df, names)


def is_columnar(df: DataFrame, names: Sequence[str]) -> bool:
    """Returns whether these columns come straight from a scan that hands over columns (Parquet, ORC).

    No job runs. False where it cannot be told, such as with Spark Connect.
    """
    if not hasattr(df, "_jdf"):
        return False
    return ask_spark("the columns of a scan", lambda: _is_columnar(df, names), False)


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
    """Returns the watermark that a streaming frame has already. One that its table has stored is none.

    Raises SpecError if its column is gone from the frame, or if there is a stateful operator of Spark's before it that
    holds rows back.
    """
    seen = ask_spark("the operators before apply", lambda: _seen(df), None)
    if seen is not None and seen.aggregates:
        raise SpecError(
            "df: it comes out of Spark's own streaming aggregation, the last of whose results would be late here; let "
            "apply make those windows, with chain=True, or write the first result to a table and read that as a stream"
        )
    # A table may have either mark with its columns, from the query that has written it.
    if seen is None or seen.stateful:
        for field in df.schema:
            if CHAIN_KEY in field.metadata:
                return Watermark(field.name, 0, chained=True)
    if seen is not None and seen.stateful:
        raise SpecError(
            f"df: it comes out of another stateful operator ({seen.stateful[0]}); for windows behind windows in one "
            f"query, give the first apply chain=True and keep its column {WINDOW_TIME!r}, or write the first result to "
            f"a table and read that as a stream"
        )
    if seen is not None and not seen.marked:
        return None
    marked = [field for field in df.schema if DELAY_KEY in field.metadata]
    marks = [Watermark(field.name, int(field.metadata[DELAY_KEY])) for field in marked]
    if marks:
        return next((mark for mark in marks if seen is not None and mark.column in seen.marked), marks[0])
    if seen is not None:
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
            tuple(node.name for node in told_nodes if node.name.startswith(STATEFUL)),
            tuple(node.marked for node in told_nodes if node.marked is not None),
        )
    nodes = [(node.nodeName(), node) for node in nodes_below(df._jdf.queryExecution().analyzed())]
    return _Seen(
        any(name == "Aggregate" and node.isStreaming() for name, node in nodes),
        tuple(name for name, _ in nodes if name.startswith(STATEFUL)),
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


def nodes_below(plan: Any) -> Iterator[Any]:
    """Yields a node of a plan and all below it."""
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        yield node
        children = node.children()
        waiting += [children.apply(i) for i in range(children.size())]
