"""What Spark's own objects tell of a query: its operators of ``apply``, its watermark, and what cannot work."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from fastwin.times import LAST_DATE_MS
from spark_glue.plan.asking import ask_spark
from spark_glue.plan.catalyst import DELAY_KEY, STATEFUL, nodes_below
from spark_glue.plan.compat import has_second_format, is_connect, metadata_of
from spark_glue.plan.connect import NEVER_ENDS
from spark_glue.plan.settings import FORMAT_KEY

__all__ = [
    "OBSERVED",
    "RunningQuery",
    "checkpoint_folder",
    "counted",
    "has_small_state",
    "has_started_again",
    "in_first_format",
    "may_be_ours",
    "operators_of",
    "progress_ms",
    "query_id_of",
    "query_of",
    "running_query",
    "runs_from",
    "waits_for_clock",
    "watermark_delays",
]

OBSERVED: Final = "counters"
"""The one column that is observed of a stream: a map of all counters by name, see ``stages.counters``."""

_PACKED = {"key_group", "mapper", "seq", "blob"}  # columns that go into an operator of apply's, see stages.packets
_OF_GROUPS = "FlatMapGroupsInPandasWithState"
_BEYOND = re.compile(r"\+?\d{5,}-")  # how a time begins whose year has five digits or more


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


def query_of(frame: DataFrame) -> RunningQuery | None:
    """Returns the query whose ``foreachBatch`` has been handed this frame; None where that cannot be told."""
    query_id = query_id_of(frame)
    return running_query(frame.sparkSession, query_id) if query_id else None


def query_id_of(frame: DataFrame) -> str | None:
    """Returns the id of the query whose ``foreachBatch`` has been handed this frame: the same over restarts from one
    checkpoint. None where that cannot be told."""
    if not hasattr(frame, "_jdf"):
        return None
    return ask_spark(
        "the query of a sink",
        lambda: frame._jdf.sparkSession().sparkContext().getLocalProperty("sql.streaming.queryId"),
        None,
    )


def checkpoint_folder(spark: SparkSession, query_id: str) -> str | None:
    """Returns the checkpoint's folder of the query with this id; None if it does not run, or where that cannot be
    told."""

    def ask() -> str | None:
        query = _active(spark, query_id)
        return None if query is None else str(query.resolvedCheckpointRoot())

    return ask_spark("the checkpoint of a query", ask, None)


def runs_from(spark: SparkSession, folder: str) -> bool:
    """Returns whether a query of this Spark runs with a checkpoint's folder; False where that cannot be told."""

    def ask() -> bool:
        jvm: Any = spark._jvm
        path = jvm.org.apache.hadoop.fs.Path(folder)
        files = path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
        root = str(files.makeQualified(path))
        return any(str(query.resolvedCheckpointRoot()) == root for query in _all_active(spark))

    return not is_connect(spark) and ask_spark("the checkpoints of queries", ask, False)


def has_started_again(spark: SparkSession, query_id: str, run_id: str) -> bool:
    """Returns whether a later run than this one of the query with this id runs."""

    def ask() -> bool:
        query = _active(spark, query_id)
        return query is not None and str(query.runId()) != run_id

    return ask_spark("the runs of a query", ask, False)


def _active(spark: SparkSession, query_id: str) -> Any | None:
    """Returns Spark's own object for the query with this id; None: it does not run."""
    return next((query for query in _all_active(spark) if str(query.id()) == query_id), None)


def _all_active(spark: SparkSession) -> Iterable[Any]:
    """Returns Spark's own objects for the queries that run."""
    return spark._jsparkSession.sharedState().activeStreamingQueries().values()


def counted(frame: DataFrame, counter: str) -> int | None:
    """Returns a counter of the micro-batch that this frame of a ``foreachBatch`` is of, once it has been computed.

    None where several frames of ``apply`` are in the query, and where it cannot be told.
    """
    query_id = query_id_of(frame)
    if query_id is None:
        return None
    return ask_spark("a counter of a micro-batch", lambda: _counted(frame.sparkSession, query_id, counter), None)


def _counted(spark: SparkSession, query_id: str, counter: str) -> int | None:
    found = []
    query = _active(spark, query_id)
    rows = None if query is None else query.lastExecution().observedMetrics().values().iterator()
    while rows is not None and rows.hasNext():
        row = rows.next()
        if list(row.schema().fieldNames()) == [OBSERVED]:
            told = row.getJavaMap(0)
            if counter in told:
                found.append(told[counter])
    return found[0] if len(found) == 1 else None


def progress_ms(text: str | None) -> int | None:
    """Returns a time in the progress of a query, which Spark tells as text, in ms; None stays None.

    One after the year 9999 is told as the last ms of that year.
    """
    if text is None:
        return None
    return LAST_DATE_MS if _BEYOND.match(text) else round(datetime.fromisoformat(text).timestamp() * 1_000)


def running_query(spark: SparkSession, query_id: str) -> RunningQuery | None:
    """Returns the query with this id; None if it does not run, has no ``apply`` in it, or where that cannot be told."""
    return ask_spark("the operators of a query", lambda: _running_query(spark, query_id), None)


def may_be_ours(spark: SparkSession, query_id: str) -> bool:
    """Returns whether the query with this id has an ``apply`` in it. True, too, where that cannot be told."""

    def ask() -> bool:
        query = _active(spark, query_id)
        return query is None or bool(operators_of(query))

    return ask_spark("the operators of a query", ask, True)


def _running_query(spark: SparkSession, query_id: str) -> RunningQuery | None:
    query = _active(spark, query_id)
    ours = [] if query is None else operators_of(query)
    if query is None or not ours:
        return None
    return RunningQuery(
        available_now=query.trigger().toString().startswith("AvailableNow"),
        processing_time=any(map(waits_for_clock, ours)),
        shares_watermark=_share_watermark(_stateful_operators(query)),
        first_format=not any(map(has_small_state, ours))
        and ask_spark("the format of a checkpoint", partial(in_first_format, query), False),
        watermark=None if len(ours) > 1 else ask_spark("the watermark of a batch", partial(_watermark, query), None),
    )


def _stateful_operators(query: Any) -> list[Any]:
    return [node for node in nodes_below(query.analyzedPlan()) if node.nodeName().startswith(STATEFUL)]


def operators_of(query: Any) -> list[Any]:
    """Returns the operators of ``apply`` in a query, which is Spark's own object."""
    return [node for node in _stateful_operators(query) if _is_ours(node)]


def has_small_state(operator: Any) -> bool:
    """Returns whether an operator of ``apply`` keeps the state of a share as one value."""
    return str(operator.nodeName()).startswith(_OF_GROUPS)


def waits_for_clock(operator: Any) -> bool:
    """Returns whether an operator of ``apply`` has timers of processing time."""
    mode = operator.timeout() if has_small_state(operator) else operator.timeMode()
    return "ProcessingTime" in str(mode)


def watermark_delays(query: Any) -> tuple[int, ...]:
    """Returns how far each watermark of a query, which is Spark's own object, is behind the newest rows, ms."""
    found: dict[str, int] = {}
    for node in nodes_below(query.analyzedPlan()):
        if node.nodeName() == "EventTimeWatermark":
            columns = node.output()
            marks = [columns.apply(i).metadata() for i in range(columns.size())]
            delays = [int(mark.getLong(DELAY_KEY)) for mark in marks if mark.contains(DELAY_KEY)]
            found[str(node.nodeId())] = max(delays, default=0)
    return tuple(found.values())


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
        if not node.nodeName().startswith(STATEFUL):
            children = node.children()
            waiting += [children.apply(i) for i in range(children.size())]
    return found
