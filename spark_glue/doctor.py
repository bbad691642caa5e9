"""``doctor``: says what keeps a query from emitting, or makes it slow."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import Any

from pyspark.sql.streaming import StreamingQuery

from fastwin.errors import SpecError
from spark_glue.health.ailments import diagnose
from spark_glue.health.findings import Findings
from spark_glue.health.records import Setup, Tasks
from spark_glue.plan.asking import ask_spark
from spark_glue.plan.compat import Py4JError, SparkContext
from spark_glue.plan.queries import (
    has_small_state,
    in_first_format,
    operators_of,
    waits_for_clock,
    watermark_delays,
)
from spark_glue.session import STATE_STORE_KEY

__all__ = ["doctor"]

_NUMBER = re.compile(r"\d+")
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
    return diagnose(records, _setup(query))


def _setup(query: StreamingQuery) -> Setup:
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
        delays_ms=ask("the watermarks of a query", watermark_delays) or (),
        processing_time=bool(ask("the operators of a query", lambda it: any(map(waits_for_clock, operators_of(it))))),
        small_state=bool(ask("the operators of a query", lambda it: any(map(has_small_state, operators_of(it))))),
        cores=ask("the cores of a session", lambda it: it.sparkSession().sparkContext().defaultParallelism()),
        tasks=ask("the tasks of a query", _tasks),
    )


def _asked(inner: Any, what: str, ask: Any) -> Any:
    return ask_spark(what, lambda: ask(inner), None)


def _trigger_ms(inner: Any) -> int | None:
    """Returns the interval of a trigger, ms; None for one that ends the query."""
    text = inner.trigger().toString()
    found = _NUMBER.search(text)
    return int(found[0]) if text.startswith("ProcessingTime") and found else None


def _tasks(inner: Any) -> Tasks | None:
    """Returns how long the tasks took of that stage, among the last ones of a query, that waited longest for one."""
    context = inner.sparkSession().sparkContext()
    jobs = sorted(context.statusTracker().getJobIdsForGroup(inner.runId().toString()))
    store = context.statusStore()
    found: list[Tasks] = []
    for job in jobs[-_LAST_JOBS:]:
        stages = store.job(job).stageIds()
        for i in range(stages.size()):
            one = _stage(store, stages.apply(i))
            if one is not None:
                found.append(one)
    return max(found, key=lambda one: one.longest_ms - one.median_ms, default=None)


def _stage(store: Any, stage: int) -> Tasks | None:
    """Returns how long the tasks of a stage took; None where it was skipped, or runs."""
    try:
        last = store.lastStageAttempt(stage)
    except Py4JError:
        return None
    gateway = SparkContext._gateway
    assert gateway is not None
    quantiles = gateway.new_array(gateway.jvm.double, 2)
    quantiles[0], quantiles[1] = 0.49, 1.0  # of two, the shorter one is in the middle
    summary = store.taskSummary(stage, last.attemptId(), quantiles)
    if summary.isEmpty():
        return None
    times = summary.get().executorRunTime()
    return Tasks(int(last.numTasks()), float(times.apply(0)), float(times.apply(1)))
