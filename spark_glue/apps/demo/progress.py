"""One line for every micro-batch of a query, as it finishes."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.streaming.listener import StreamingQueryProgress

from spark_glue.progress import counters

__all__ = ["HEADER", "Tally", "follow"]

HEADER = (
    f"{'query':<9}{'batch':>6}{'rows':>9}{'events/s':>10}  {'watermark':<18}"
    f"{'open windows':>13}{'results':>10}{'late':>7}"
)


@dataclass
class Tally:
    """What a query has done so far, added up over its micro-batches."""

    name: str
    batches: int = 0
    counters: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    watermark: str = ""

    def __getitem__(self, counter: str) -> int:
        return self.counters.get(counter, 0)

    def add(self, progress: StreamingQueryProgress) -> str:
        """Counts one micro-batch in; returns its line."""
        found: dict[str, Any] = dict(counters(progress).get("fastwin", {}))
        reached = found.pop("watermark_ms", None)
        if reached is not None:
            self.watermark = f"{datetime.fromtimestamp(reached / 1000, UTC):%Y-%m-%d %H:%M}"
        for counter, value in found.items():
            self.counters[counter] = self[counter] + value
        seconds = progress.durationMs.get("triggerExecution", 0) / 1000
        self.seconds += seconds
        self.batches += 1
        late = found.get("late", 0) + found.get("dropped", 0)
        rate = f"{progress.numInputRows / seconds:,.0f}" if seconds and progress.numInputRows else "-"
        return (
            f"{self.name:<9}{progress.batchId:>6}{progress.numInputRows:>9,}{rate:>10}  {self.watermark or '-':<18}"
            f"{self['open_windows_change']:>13,}{found.get('fired', 0):>10,}{late:>7,}"
        )


def follow(query: StreamingQuery, say: Callable[[str], None]) -> Tally:
    """Waits until a query has ended, saying a line for each micro-batch; raises what it failed with."""
    tally, seen, running = Tally(query.name), -1, True
    while running:
        running = not query.awaitTermination(0.3)
        for progress in query.recentProgress:
            if progress.batchId > seen and (progress.numInputRows or progress.observedMetrics):
                seen = progress.batchId
                say(tally.add(progress))
    return tally
