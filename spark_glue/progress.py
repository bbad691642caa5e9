"""What a query does in each micro-batch: ``progress_listener`` writes a line, ``metrics_listener`` hands out values."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyspark.sql.streaming import StreamingQueryListener
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryProgress,
)

from fastwin.errors import SpecError
from fastwin.times import moment_text
from spark_glue.plan.compat import named_values
from spark_glue.plan.queries import progress_ms
from spark_glue.stages.counters import INPUT_DELAYS, INPUT_TIMES, SHOWN, WATERMARK, counters_in
from spark_glue.watermarks import Holder, Holders

__all__ = ["BatchMetrics", "MetricsListener", "batch_metrics", "counters", "metrics_listener", "progress_listener"]


@dataclass(frozen=True)
class BatchMetrics:
    """What one frame of ``apply`` has done in one micro-batch of a query.

    query_id: the same over restarts. query_name: None: it has none. frame: the ``name=`` of ``apply``. time: when the
    micro-batch began. duration_ms: of the whole micro-batch. newest_ms: the newest event time in the micro-batch's
    input; lag_ms: how far that is behind ``time``; None: there was no input with a watermark. watermark_ms: None: there
    is none yet. worker_bytes: the most memory that a Python worker has taken so far; live_bytes: the most that one
    keeps of streams in memory; spilled_bytes: on the local disk. held_by: the number of the input that holds time back,
    from 0 on, and held_by_frame: the frame that it is an input of, one with ``idle=`` itself; None: all are quiet, or
    it is not known. The others are counters, see docs/spark.md.
    """

    query_id: str
    run_id: str
    query_name: str | None
    frame: str
    batch_id: int
    time: datetime
    duration_ms: int
    newest_ms: int | None
    lag_ms: int | None
    watermark_ms: int | None
    events: int
    late: int
    dropped: int
    bad: int
    unassigned: int
    fired: int
    unfired: int
    open_windows_change: int
    timers_change: int
    state_rows_change: int
    state_bytes: int
    streams_kept: int
    streams_caught_up: int
    streams_loaded: int
    load_ms: int
    write_ms: int
    log_deltas: int
    log_bytes: int
    loaded_cold: int
    loaded_behind: int
    loaded_damaged: int
    loaded_changed: int
    deltas_caught_up: int
    deltas_loaded: int
    copies_hit: int
    worker_bytes: int
    live_bytes: int
    spilled_bytes: int
    held_by: int | None
    held_by_frame: str | None


def counters(progress: StreamingQueryProgress | None) -> dict[str, dict[str, int | None]]:
    """Returns the counters of a micro-batch by name, for each frame of ``apply`` by the frame's ``name=``.

    progress: as for ``batch_metrics``. ``watermark_ms`` is None while there is none; docs/spark.md has all names. A
    micro-batch in which the query's plan did not run has no frames, and so has None, ``query.lastProgress`` before the
    first one.
    """
    if progress is None:
        return {}
    _check_progress("counters", progress)
    return counters_in({name: named_values(row) for name, row in progress.observedMetrics.items()})


def batch_metrics(progress: StreamingQueryProgress | None) -> list[BatchMetrics]:
    """Returns the metrics of each frame of ``apply`` in a micro-batch.

    progress: ``query.lastProgress``, one of ``query.recentProgress``, or that of a listener's event. With Spark Connect
    the row of counters in it may have no names; here they have. Who holds time back one micro-batch tells only of a
    frame with ``idle=``, and of a query with one input; a listener, which sees them all, tells it of others, too. Of
    None, as of a micro-batch in which the plan did not run, there are none.
    """
    if progress is None:
        return []
    _check_progress("batch_metrics", progress)
    return _all_metrics(progress, Holders())


def _check_progress(function: str, progress: object) -> None:
    if not hasattr(progress, "observedMetrics"):
        raise SpecError(f"{function}: progress must be a StreamingQueryProgress (lastProgress), got {progress!r}")


def metrics_listener(callback: Callable[[BatchMetrics], object]) -> StreamingQueryListener:
    """Returns a listener that calls a function with the metrics of each micro-batch of each frame of ``apply``.

    callback: is called on a thread of its own, one micro-batch after the other.

    Use it with ``spark.streams.addListener(spark_glue.metrics_listener(callback))``. Micro-batches without work are
    left out. Raises SpecError if ``callback`` cannot be called.
    """
    if not callable(callback):
        raise SpecError(f"metrics_listener: callback must be a function of a BatchMetrics, got {callback!r}")
    return MetricsListener(callback)


def progress_listener(write: Callable[[str], object] = print) -> StreamingQueryListener:
    """Returns a listener that writes a line of counters for each micro-batch of each frame of ``apply``.

    write: takes a line: ``print``, or for instance the ``info`` of a logger.

    Use it with ``spark.streams.addListener(spark_glue.progress_listener())``. Micro-batches without work are left out.
    Raises SpecError if ``write`` cannot be called.
    """
    if not callable(write):
        raise SpecError(f"progress_listener: write must be a function of a line of text, got {write!r}")
    return MetricsListener(lambda metrics: write(_line(metrics)))


class MetricsListener(StreamingQueryListener):
    """What ``metrics_listener`` returns."""

    def __init__(self, callback: Callable[[BatchMetrics], object]) -> None:
        self._callback = callback
        self._holders = Holders()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        self._holders.begin(str(event.runId))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        self._holders.end(str(event.runId))

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        for metrics in _all_metrics(event.progress, self._holders):
            self._callback(metrics)


def _all_metrics(progress: Any, holders: Holders) -> list[BatchMetrics]:
    frames = counters(progress)
    if not frames:
        return []
    watermark = progress_ms(progress.eventTime.get("watermark")) or 0
    holder = holders.take(str(progress.runId), frames, watermark)
    return [_metrics(progress, name, counted, holder) for name, counted in frames.items()]


def _metrics(progress: Any, name: str, found: Mapping[str, Any], holder: Holder | None) -> BatchMetrics:
    begun = datetime.fromisoformat(progress.timestamp)
    counted = dict(found)
    held, own = counted.pop("held_by"), counted.pop("frame_newest_ms")
    times, delays = ([counted.pop(key) for key in keys] for keys in (INPUT_TIMES, INPUT_DELAYS))
    newest = max(own, *times) or None
    if newest is None and not any(delays):  # its watermark is another one's
        newest = progress_ms(progress.eventTime.get("max"))
    if not any(delays):  # with idle=, it makes its own
        holder = Holder(name, held - 1) if held else None
    return BatchMetrics(
        query_id=str(progress.id),
        run_id=str(progress.runId),
        query_name=progress.name,
        frame=name,
        batch_id=progress.batchId,
        time=begun,
        duration_ms=progress.batchDuration,
        newest_ms=newest,
        lag_ms=None if newest is None else round(begun.timestamp() * 1_000) - newest,
        held_by=None if holder is None else holder.input,
        held_by_frame=None if holder is None else holder.frame,
        **counted,
    )


def _line(metrics: BatchMetrics) -> str:
    query = metrics.query_name or metrics.query_id
    return f"{query}, batch {metrics.batch_id}, {metrics.frame}: {_counted(metrics)}"


def _counted(metrics: BatchMetrics) -> str:
    watermark = metrics.watermark_ms
    parts = [f"{getattr(metrics, name):,} {name.replace('_', ' ')}" for name in SHOWN if name != WATERMARK]
    when = "none yet" if watermark is None else moment_text(watermark, "+00:00")
    return ", ".join([*parts, f"watermark {when}"])
