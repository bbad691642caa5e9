"""What ``pvuv`` says while it works: from the first second on what it is at, then a line for each micro-batch."""

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Self

from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.streaming.listener import StreamingQueryProgress

from spark_glue.apps.pvuv.requests import COUNTS
from spark_glue.progress import counters

__all__ = ["MISDATED", "Batches", "Clock"]

MISDATED = "dated before 1970 or more than a day ahead"
"""What lines are that are parsed, and count nowhere."""

_HEADER = (
    f"{'batch':>7}{'events':>11}{'malformed':>11}{'not counted':>13}{'too late':>10}  {'log until':<18}{'seconds':>8}"
)


class Clock:
    """Says what is done, and since when; on a terminal the seconds go on. A context: it ends with it."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self._what = ""
        self._since = self.started
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._go_on, daemon=True)
        self.spent: dict[str, float] = {}

    def __enter__(self) -> Self:
        if sys.stdout.isatty():
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.at("")
        self._ended.set()

    def at(self, what: str) -> None:
        """Begins something else; "" is nothing that takes time."""
        with self._lock:
            now = time.monotonic()
            if self._what:
                self.spent[self._what] = self.spent.get(self._what, 0.0) + now - self._since
            self._what, self._since = what, now
            if what:
                print(f"{now - self.started:6.1f} s  {what} ...", flush=True)

    def say(self, line: str) -> None:
        """Says a line between."""
        with self._lock:
            print(f"\r{line}" if self._thread.is_alive() else line, flush=True)  # over the seconds

    def _go_on(self) -> None:
        while not self._ended.wait(1):
            with self._lock:
                if self._what:
                    now = time.monotonic()
                    print(f"\r{now - self.started:6.1f} s  ... {now - self._since:.0f} s", end="\r", flush=True)


class Batches:
    """The micro-batches of the query, added up.

    total: lines by what became of them: events, of which some are late; misdated; malformed; skipped.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._seen = -1
        self.total: Counter[str] = Counter()
        self.newest_ms: int | None = None
        self.first_seconds = self.seconds = 0.0
        self.count = 0

    def look(self, query: StreamingQuery) -> None:
        """Says a line for each micro-batch that has ended since the last look."""
        for progress in query.recentProgress:
            if progress.batchId > self._seen and (progress.numInputRows or progress.observedMetrics):
                self._seen = progress.batchId
                self._add(progress)

    def _add(self, progress: StreamingQueryProgress) -> None:
        row = progress.observedMetrics.get(COUNTS)
        lines, windows = {} if row is None else row.asDict(), counters(progress).get("fastwin", {})
        told = Counter({name: lines.get(name) or 0 for name in ("events", "malformed", "skipped")})
        told["late"] = (windows.get("late") or 0) + (windows.get("dropped") or 0)
        told["misdated"] = max((windows.get("bad") or 0) - told["malformed"], 0)
        told["events"] -= told["misdated"]
        seconds = progress.durationMs.get("triggerExecution", 0) / 1000
        if not self.count:
            self._say(_HEADER)
            self.first_seconds = seconds
        self.count += 1
        self.seconds += seconds
        self.total += told
        newest = lines.get("newest_ms")
        if newest is not None:
            self.newest_ms = newest if self.newest_ms is None else max(newest, self.newest_ms)
        until = "-" if newest is None else f"{datetime.fromtimestamp(newest / 1000, UTC):%Y-%m-%d %H:%M}"
        self._say(
            f"{progress.batchId:>7}{told['events']:>11,}{told['malformed']:>11,}{told['skipped']:>13,}"
            f"{told['late']:>10,}  {until:<18}{seconds:>8.1f}"
        )
        if told["misdated"]:
            self._say(f"batch {progress.batchId}: {told['misdated']:,} more lines are {MISDATED}")
