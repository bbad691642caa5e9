"""``prometheus_listener``: the metrics of each micro-batch, as Prometheus reads them from a port of the driver."""

from __future__ import annotations

import logging
from contextlib import suppress
from datetime import datetime, timedelta
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming import StreamingQueryListener
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
)

from fastwin.errors import SpecError
from fastwin.machine.packages import explained
from spark_glue.progress import BatchMetrics, MetricsListener

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

__all__ = ["prometheus_listener"]

_LOG = logging.getLogger(__name__)

_COUNTED = {
    "events": "Rows taken.",
    "late": "Rows sent to the late output.",
    "dropped": "Late rows that were dropped.",
    "bad": "Bad rows.",
    "unassigned": "Rows that no window took.",
    "fired": "Result rows.",
    "unfired": "Windows that went without ever firing.",
    "state_bytes": "Bytes written to the state store.",
    "streams_kept": "Visits of shares whose stream stood in the worker.",
    "streams_caught_up": "Visits of shares whose stream went on by deltas.",
    "streams_loaded": "Visits of shares whose stream was loaded whole.",
    "loaded_cold": "Of these, because the worker had none.",
    "loaded_behind": "Of these, because the worker's was too far behind.",
    "loaded_damaged": "Of these, because copies were damaged.",
    "loaded_changed": "Of these, because the spec has changed.",
    "deltas_caught_up": "Deltas taken to go on.",
    "deltas_loaded": "Deltas taken to load streams whole.",
    "copies_hit": "Deltas of which the machine had a copy.",
}
_COUNTED_MS = {"load_ms": "Time for loading streams.", "write_ms": "Time for storing them."}
_CHANGES = {"open_windows": "Open windows", "timers": "Timers", "state_rows": "Rows of state"}
_LEVELS = {
    "log_deltas": "Deltas in the logs of the shares that were visited.",
    "log_bytes": "Bytes of these.",
    "worker_bytes": "The most memory that a Python worker has taken.",
    "live_bytes": "The most bytes of streams that a worker keeps in memory.",
    "spilled_bytes": "The most bytes of streams that a worker keeps on the local disk.",
    "batch_id": "The last micro-batch.",
}
_TIMES = {
    "duration_ms": "How long the last micro-batch took.",
    "newest_ms": "The newest event time, seconds since 1970.",
    "lag_ms": "How far that is behind the micro-batch's time.",
    "watermark_ms": "The watermark, seconds since 1970.",
}
_LABELS = ("query", "frame")


def prometheus_listener(
    port: int | None = 9108, address: str = "127.0.0.1", registry: CollectorRegistry | None = None
) -> StreamingQueryListener:
    """Returns a listener that keeps the metrics of each micro-batch for Prometheus, and serves them as text.

    port: of the driver, where ``/metrics`` answers; None: nothing is served, as you serve the registry yourself.
    address: to listen on; ``"0.0.0.0"``: all. registry: of ``prometheus_client``; None: a new one. What is returned has
    ``close()``, which gives the port back.

    Use it with ``spark.streams.addListener(spark_glue.prometheus_listener())``, before the queries start: of one that
    runs already nothing is known until its next micro-batch. All names begin with
    ``fastwin_query_``, and the labels ``query`` (its name, else its id) and ``frame`` (the ``name=`` of ``apply``) tell
    queries apart. Sums count from the start of the listener, or of the query. When a query ends, all that is kept of it
    goes, and with it ``fastwin_query_running``, so an alarm for it is ``absent(fastwin_query_running{query="..."})``.
    ``fastwin_query_last_batch_time_seconds`` is when its last micro-batch ended, or Spark last found nothing to do; at
    first, when the query started. These two have the label ``query`` alone. Raises NotInstalledError without the
    package prometheus-client, SpecError for a port that is none, OSError for one that is taken.
    """
    if port is not None and (isinstance(port, bool) or not isinstance(port, int) or not 0 < port < 65_536):
        raise SpecError(f"prometheus_listener: port must be None or from 1 to 65535, got {port!r}")
    try:
        import prometheus_client as prometheus
    except ImportError as problem:
        raise explained("prometheus_listener", "serve", problem) from None
    found = prometheus.CollectorRegistry() if registry is None else registry
    kept = _Kept(prometheus, found)
    listener = _Listener(kept)
    if port is not None:
        listener.served = prometheus.start_http_server(port, address, found)
        _LOG.info("prometheus_listener: serves metrics on http://%s:%d/metrics", address, port)
    return listener


class _Listener(MetricsListener):
    def __init__(self, kept: _Kept) -> None:
        super().__init__(kept.take)
        self._kept = kept
        self.served: tuple[Any, Thread] | None = None  # the server and its thread

    def close(self) -> None:
        """Serves no more, and lets go of the port; without it, that is when the driver ends."""
        if self.served is not None:
            server, thread = self.served
            self.served = None
            server.shutdown()
            server.server_close()
            thread.join()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        super().onQueryStarted(event)
        self._kept.begin(str(event.runId), event.name or str(event.id))
        self._kept.tell(str(event.runId), datetime.fromisoformat(event.timestamp))  # its first micro-batch may hang

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        self._kept.tell(str(event.runId), datetime.fromisoformat(event.timestamp))

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        one = event.progress
        self._kept.begin(str(one.runId), one.name or str(one.id))  # the listener may have come later than the query
        begun = datetime.fromisoformat(one.timestamp)
        self._kept.tell(str(one.runId), begun + timedelta(milliseconds=one.batchDuration))
        super().onQueryProgress(event)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        super().onQueryTerminated(event)
        self._kept.end(str(event.runId))


class _Kept:
    """The metrics of all queries that run, in a registry."""

    def __init__(self, prometheus: Any, registry: CollectorRegistry) -> None:
        def gauge(name: str, text: str) -> Any:
            return prometheus.Gauge(f"fastwin_query_{name}", text, _LABELS, registry=registry)

        def counter(name: str, text: str) -> Any:
            return prometheus.Counter(f"fastwin_query_{name}", text, _LABELS, registry=registry)

        self._counted = {name: counter(name, text) for name, text in _COUNTED.items()}
        self._counted_ms = {name: counter(_seconds(name), text) for name, text in _COUNTED_MS.items()}
        self._changes = {name: gauge(name, f"{text}, since the listener began.") for name, text in _CHANGES.items()}
        self._levels = {name: gauge(name, text) for name, text in _LEVELS.items()}
        self._times = {name: gauge(_seconds(name), text) for name, text in _TIMES.items()}
        self._holds = gauge("held_by", "The number of this frame's input that holds time back; -1: none that is known.")

        def of_query(name: str, text: str) -> Any:
            return prometheus.Gauge(f"fastwin_query_{name}", text, ("query",), registry=registry)

        self._runs = of_query("running", "1; a query that has ended has no metrics.")
        self._last = of_query(
            "last_batch_time_seconds",
            "When the last micro-batch ended, or there was nothing to do; at first, when the query started.",
        )
        self._lock = Lock()  # Spark tells of a start at once, and of all else later, on another thread
        self._queries: dict[str, str] = {}  # by run
        self._frames: dict[str, set[str]] = {}  # by query

    def begin(self, run: str, query: str) -> None:
        """A run of a query has begun, or goes on."""
        with self._lock:
            self._queries[run] = query
            self._runs.labels(query).set(1)

    def tell(self, run: str, at: datetime) -> None:
        """A run has started, was at work, or had nothing to do."""
        with self._lock:
            if run in self._queries:
                self._last.labels(self._queries[run]).set(at.timestamp())

    def end(self, run: str) -> None:
        """A run has ended; with the last one of a query, all that is kept of the query goes."""
        with self._lock:
            query = self._queries.pop(run, None)
            if query is None or query in self._queries.values():  # it has been started again
                return
            frames = self._frames.pop(query, set())
            groups = (self._counted, self._counted_ms, self._changes, self._levels, self._times)
            gone: list[tuple[Any, tuple[str, ...]]] = [(metric, (query,)) for metric in (self._runs, self._last)]
            for metric in (self._holds, *(metric for group in groups for metric in group.values())):
                gone += [(metric, (query, frame)) for frame in frames]
            for metric, labels in gone:
                with suppress(KeyError):  # not all are told of each query
                    metric.remove(*labels)

    def take(self, metrics: BatchMetrics) -> None:
        """Takes the metrics of a micro-batch."""
        labels = metrics.query_name or metrics.query_id, metrics.frame
        self._frames.setdefault(labels[0], set()).add(metrics.frame)
        for name, metric in self._counted.items():
            metric.labels(*labels).inc(getattr(metrics, name))
        for name, metric in self._counted_ms.items():
            metric.labels(*labels).inc(getattr(metrics, name) / 1_000)
        for name, metric in self._changes.items():
            metric.labels(*labels).inc(getattr(metrics, f"{name}_change"))
        for name, metric in self._levels.items():
            metric.labels(*labels).set(getattr(metrics, name))
        for name, metric in self._times.items():
            if (value := getattr(metrics, name)) is not None:
                metric.labels(*labels).set(value / 1_000)
        own = metrics.held_by is not None and metrics.held_by_frame == metrics.frame
        self._holds.labels(*labels).set(metrics.held_by if own else -1)


def _seconds(name: str) -> str:
    return name.removesuffix("_ms") + "_seconds"
