"""``progress_listener``: a line of counters for each micro-batch of a query."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from pyspark.sql.streaming import StreamingQueryListener
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
)

from fastwin.errors import SpecError
from spark_glue.stages.counters import COUNTERS, WATERMARK

__all__ = ["progress_listener"]


def progress_listener(write: Callable[[str], object] = print) -> StreamingQueryListener:
    """Returns a listener that writes a line of counters for each micro-batch of each frame of ``apply``.

    write: takes a line: ``print``, or for instance the ``info`` of a logger.

    Use it with ``spark.streams.addListener(spark_glue.progress_listener())``. Micro-batches without work are left out.
    Raises SpecError if ``write`` cannot be called.
    """
    if not callable(write):
        raise SpecError(f"progress_listener: write must be a function of a line of text, got {write!r}")
    return _Listener(write)


class _Listener(StreamingQueryListener):
    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        pass

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        progress = event.progress
        for name, row in progress.observedMetrics.items():
            counters = row.asDict()
            if set(counters) == set(COUNTERS):
                query = progress.name or str(progress.id)
                self._write(f"{query}, batch {progress.batchId}, {name}: {_line(counters)}")


def _line(counters: Mapping[str, Any]) -> str:
    watermark = counters[WATERMARK]
    parts = [f"{counters[name]:,} {name.replace('_', ' ')}" for name in COUNTERS if name != WATERMARK]
    when = (
        "none yet"
        if watermark is None
        else datetime.fromtimestamp(watermark / 1000, UTC).isoformat(" ", "milliseconds")
    )
    return ", ".join([*parts, f"watermark {when}"])
