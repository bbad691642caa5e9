"""``doctor``: says what keeps a query from emitting, or makes it slow."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from pyspark.sql.streaming import StreamingQuery

from fastwin.errors import SpecError
from spark_glue.health.ailments import diagnose
from spark_glue.health.findings import Findings
from spark_glue.health.records import Setup, Tasks, read_records
from spark_glue.plan.asking import ask_spark
from spark_glue.plan.compat import Py4JError, SparkContext
from spark_glue.plan.queries import (
    has_small_state,
    in_first_format,
    operators_of,
    watermark_delays,
)
from spark_glue.plan.settings import requested_cores
from spark_glue.session import STATE_STORE_KEY

__all__ = ["doctor"]

_NUMBER = re.compile(r"\d+")
_BATCH = re.compile(r"\bbatch = (\d+)")  # in what Spark calls a job
_LAST_JOBS = 6  # of a query, at which doctor looks


def doctor(query: StreamingQuery) -> Findings:
    """Looks at a query, running or ended, and says in sentences what keeps it from emitting or makes it slow.

    query: as ``start()`` returned it. What is looked at are the records of its last micro-batches
        (``query.recentProgress``, 100 by default) and how it was set up.

    Returns the findings, each with its figures and its mend: text in a terminal, a table in a notebook. Nothing of the
    query changes. With Spark Connect, what only Spark's own objects tell is left out: its trigger, the delay of its
    watermark, the format of its checkpoint, and how long tasks took.

    Raises SpecError if ``query`` is no query.
    """
    if not hasattr(query, "recentProgress"):
        raise SpecError(f"doctor: query must be what start() returns, got {type(query).__name__}")
    records = [json.loads(progress.json) for progress in query.recentProgress]
    # Of several frames nothing tells which one a stage is of.
    visits = {one.id: one.least_visits for one in read_records(records)}
    return diagnose(records, _setup(query, visits))


def _setup(query: StreamingQuery, visits: Mapping[int, int]) -> Setup:
    """Returns how a query was set up. visits: of shares, by micro-batch, of each frame at least so many."""
    running = query.isActive
    problem = None if running else query.exception()
    error = None if problem is None else str(problem).strip()
    inner = ask_spark("the inside of a query", lambda: query._jsq.streamingQuery(), None)
    if inner is None:
        return Setup(running=running, error=error)
    ask = partial(_asked, inner)
    return Setup(
        running=running,
        error=error,
        trigger_ms=ask("the trigger of a query", _trigger_ms),
        store=ask("the state store of a query", lambda it: it.sparkSessionForStream().conf().get(STATE_STORE_KEY)),
        first_format=bool(ask("the format of a checkpoint", in_first_format)),
        delays_ms=ask("the watermarks of a query", watermark_delays),
        small_state=bool(ask("the operators of a query", lambda it: any(map(has_small_state, operators_of(it))))),
        cores=ask("the cores of a session", lambda _: requested_cores(SparkContext._active_spark_context)),
        tasks=ask("the tasks of a query", partial(_tasks, visits=visits)),
    )


def _asked(inner: Any, what: str, ask: Any) -> Any:
    return ask_spark(what, lambda: ask(inner), None)


def _trigger_ms(inner: Any) -> int | None:
    """Returns the interval of a trigger, ms; None for one that ends the query."""
    text = inner.trigger().toString()
    found = _NUMBER.search(text)
    return int(found[0]) if text.startswith("ProcessingTime") and found else None


def _tasks(inner: Any, visits: Mapping[int, int]) -> Tasks | None:
    """Returns how long the tasks took of that stage, among the last ones of a query, that waited longest for one.

    visits: see ``_setup``; the stages of a micro-batch without visits do not count.
    """
    context = inner.sparkSession().sparkContext()
    jobs = sorted(context.statusTracker().getJobIdsForGroup(inner.runId().toString()))
    store = context.statusStore()
    found: list[Tasks] = []
    for job in jobs[-_LAST_JOBS:]:
        told = store.job(job)
        stages, description = told.stageIds(), told.description()
        numbers = _BATCH.findall(description.get()) if description.isDefined() else []
        visited = visits.get(int(numbers[-1]), 0) if numbers else 0
        for i in range(stages.size() if visited else 0):
            one = _stage(store, stages.apply(i), visited)
            if one is not None:
                found.append(one)
    return max(found, key=lambda one: one.longest_ms - one.median_ms, default=None)


def _stage(store: Any, stage: int, visits: int) -> Tasks | None:
    """Returns how long the tasks of a stage took; None where it was skipped, or only reads a source.

    visits: of shares, each of which has a task to itself; these are taken for the tasks that took longest.
    """
    try:
        last = store.lastStageAttempt(stage)
    except Py4JError:
        return None
    count = int(last.numTasks())
    reads = not last.shuffleReadRecords() and (last.inputRecords() or last.shuffleWriteRecords())
    if not count or reads:  # in a stage with none of these rows, windows may fire
        return None
    busy = min((visits + 1) // 2, count)  # surely: a share may be visited for its rows, and again for its timers
    middle = count - busy + int(0.49 * busy)  # of two, the shorter one is in the middle
    gateway = SparkContext._gateway
    assert gateway is not None
    # Spark keeps some quantiles by their rounded value, if it keeps all that are asked for: never the first one.
    quantiles = gateway.new_array(gateway.jvm.double, 3)
    quantiles[0], quantiles[1], quantiles[2] = 0.01, (middle + 0.5) / count, 1.0
    summary = store.taskSummary(stage, last.attemptId(), quantiles)
    if summary.isEmpty():
        return None
    times = summary.get().executorRunTime()
    return Tasks(count, float(times.apply(1)), float(times.apply(2)))
