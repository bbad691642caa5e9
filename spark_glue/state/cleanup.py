"""What the driver does when a query starts and ends: it warns of what cannot work, and removes the copies of state.

It removes those that lie on its machine; in local mode these are all. Elsewhere a task on each executor does. Where
that does not come to pass, other workers do (``folders.sweep``), or those that end with their executor
(``folders.leave``).
"""

import atexit
import logging
import os
import threading
import warnings
import weakref
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQueryListener
from pyspark.sql.streaming.listener import (
    JStreamingQueryListener,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
)

from fastwin.callers import callers_level
from spark_glue.plan.asking import ask_spark
from spark_glue.plan.compat import SparkContext, is_connect
from spark_glue.plan.queries import has_started_again, may_be_ours, running_query
from spark_glue.state.folders import forget_run, sweep
from spark_glue.state.live import LIVE

__all__ = ["forget_when_ended"]

_LOG = logging.getLogger(__name__)
_LAST_WORDS_MS, _IN_CALL_MS = 1_000, 10_000
_MOST_TASKS = 1_000
_listeners: "weakref.WeakKeyDictionary[SparkSession, _Listener]" = weakref.WeakKeyDictionary()


def forget_when_ended(spark: SparkSession) -> None:
    """Sees to it that what the session's queries leave on this machine goes with them. Once per session.

    Queries without an ``apply`` leave nothing, and nothing is done at their end.

    Also warns of a query that cannot work when it starts; where ``route`` is its sink, that raises the error. And of a
    checkpoint that was begun in Spark's first format.

    With Spark Connect nothing is done: no worker runs on the client's machine.
    """
    if is_connect(spark) or spark in _listeners:
        return
    _listeners[spark] = listener = _Listener(spark)
    ask_spark("the end of queries", lambda: spark.streams.addListener(listener), None)


class _Listener(StreamingQueryListener):
    def __init__(self, spark: SparkSession) -> None:
        self._spark = weakref.ref(spark)
        self._queries: set[str] = set()  # those with an apply in them, and those of which that is not told
        # A driver that ends at once after its last query may not hear of that query's end any more.
        atexit.register(self._forget_all, os.getpid())

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        spark = self._spark()
        query = None if spark is None else running_query(spark, str(event.id))
        if query is not None or spark is None or may_be_ours(spark, str(event.id)):
            self._queries.add(str(event.id))
        for found in () if query is None else (query.problem, query.notice):
            if found is not None:
                warnings.warn(found, stacklevel=callers_level())

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        if str(event.id) not in self._queries:  # it has left nothing, and a task on each core would be for nothing
            return
        spark = self._spark()
        # Copies lie under the id of the query, which all its runs share; this is told after a next one may have begun.
        if spark is not None and has_started_again(spark, str(event.id), str(event.runId)):
            return
        self._queries.discard(str(event.id))
        forget_run(str(event.id))
        _LOG.info("query %s has ended: its copies of state on this machine are gone", event.id)
        sweep()
        if spark is not None:  # on a thread of its own: other listeners wait for this one
            about = spark, str(event.id), str(event.runId)
            threading.Thread(target=_forget_on_executors, args=about, daemon=True).start()

    def _forget_all(self, pid: int) -> None:
        if os.getpid() == pid:
            with suppress(Exception):  # of a session that is over
                _take_listeners(self._spark())
            for query in self._queries:
                forget_run(query)

    @property
    def _jlistener(self) -> Any:
        # As the base class has it, but for _Brief.
        if not hasattr(self, "_wrapper"):
            jvm: Any = SparkContext._jvm
            self._wrapper = jvm.PythonStreamingQueryListenerWrapper(_Brief(self))
        return self._wrapper


def _forget_on_executors(spark: SparkSession, query: str, run: str) -> None:
    """Runs a task on each core, and so on each executor, unless some are busy: these are left to the next worker.

    Of more than _MOST_TASKS cores, not all are asked; Spark gives tasks to executors in turn. Nothing is done where a
    later run of the query than this one has begun.
    """
    with suppress(Exception):  # of a session that ends, too; its executors end with it
        context = spark.sparkContext
        if context._jsc.sc().isLocal():
            return
        context.setJobDescription("fastwin: removes the copies of state of a query that has ended")
        tasks = min(context.defaultParallelism, _MOST_TASKS)
        rows = context.parallelize(range(tasks), tasks)
        if has_started_again(spark, query, run):
            return
        rows.foreachPartition(partial(_forget, query))
        _LOG.info("query %s has ended: its copies of state on the executors are gone", query)


def _forget(query: str, _: Iterable[int]) -> None:
    """Removes what the machine of a task has of a query, and lets go of what its worker keeps."""
    forget_run(query)
    LIVE.forget(query)


def _take_listeners(spark: SparkSession | None) -> None:
    """Takes all of Python's listeners from a session whose driver ends while queries run.

    Spark would go on calling them, and print a trace for each call that nobody answers any more.
    """
    if spark is None or SparkContext._active_spark_context is None:
        return
    streams, bus = spark._jsparkSession.streams(), spark.sparkContext._jsc.sc().listenerBus()
    with suppress(Exception):  # more comes than is told of: what comes from now on is told to nobody
        bus.waitUntilEmpty(_LAST_WORDS_MS)
    for listener in streams.listListeners():
        if listener.getClass().getSimpleName() == "PythonStreamingQueryListenerWrapper":
            streams.removeListener(listener)
    bus.waitUntilEmpty(_IN_CALL_MS)  # one of them may be in a call


class _Brief(JStreamingQueryListener):
    """Takes no progress: to fetch all of it from the JVM, for each micro-batch, costs more than is to be done here."""

    def onQueryProgress(self, jevent: Any) -> None:  # noqa: N802
        pass

    def onQueryIdle(self, jevent: Any) -> None:  # noqa: N802
        pass
