"""One question over a frame of Spark's, streaming or not: as fastwin says it, and as Spark's own windows do."""

import statistics
from collections.abc import Callable
from typing import Any

import fastwin as fw
from bench.lab import DELAY, STORES, Input, Query
from bench.race import OURS

__all__ = ["ON_FILES", "SMALL", "SMALL_ON_FILES", "WINDOWS", "both", "native", "ours", "small", "store_of", "tell"]

ON_FILES = f"{OURS}, ParquetFiles"
"""The contender that reads the files in Python."""

SMALL = f"{OURS}, small state"
SMALL_ON_FILES = f"{ON_FILES}, small state"
"""Contenders whose state is one value for each share. They are on the HDFS-backed store, on which others cannot be."""

WINDOWS: dict[str, tuple[fw.WindowAssigner, Callable[[Any], Any]]] = {
    "tumbling": (fw.TumblingEventTimeWindows.of("1 minute"), lambda functions: functions.window("ts", "1 minute")),
    "sessions": (
        fw.EventTimeSessionWindows.with_gap("10 seconds"),
        lambda functions: functions.session_window("ts", "10 seconds"),
    ),
    "sliding": (
        fw.SlidingEventTimeWindows.of("60 minutes", "3 minutes"),
        lambda functions: functions.window("ts", "60 minutes", "3 minutes"),
    ),
}


def ours(*assigners: fw.WindowAssigner, files: bool = False, small: bool = False, **named: fw.WindowAssigner) -> Query:
    """Returns the question as fastwin says it.

    files: of ``ParquetFiles``, not of the frame. small: with ``small_state=True``.
    """
    spec = fw.key_by("key").event_time("ts")
    spec = spec.windows(**named) if named else spec.window(*assigners)
    spec = spec.aggregate(n=fw.Count(), s=fw.Sum("value"), lo=fw.Min("value"), hi=fw.Max("value"))

    def query(given: Input) -> Any:
        import spark_glue

        source = given.frame
        if files:  # a file a micro-batch, or all of them
            limits = {"max_files": 1} if source.isStreaming else {"streaming": False}
            source = spark_glue.ParquetFiles(str(given.folder), **limits)
        return spark_glue.apply(spec, source, watermark=DELAY, small_state=small)

    return query


def native(window: Callable[[Any], Any]) -> Query:
    """Returns it as Spark's own windows say it; window: makes their column, given ``pyspark.sql.functions``."""

    def query(given: Input) -> Any:
        from pyspark.sql import functions as F

        grouped = given.frame.withWatermark("ts", DELAY).groupBy(window(F).alias("w"), "key")
        aggregates = {"n": F.count("*"), "s": F.sum("value"), "lo": F.min("value"), "hi": F.max("value")}
        found = grouped.agg(*(value.alias(name) for name, value in aggregates.items()))
        return found.selectExpr("key", "w.start AS window_start", "w.end AS window_end", *aggregates)

    return query


def both(windows: str) -> dict[str, Query]:
    """Returns the question, by contender: fastwin, over the frame and the files, and Spark's own windows
    on each of its stores of state."""
    assigner, column = WINDOWS[windows]
    return {OURS: ours(assigner), ON_FILES: ours(assigner, files=True)} | dict.fromkeys(STORES, native(column))


def small(windows: str) -> dict[str, Query]:
    """Returns the question with small state, for streams, over the frame and the files."""
    assigner = WINDOWS[windows][0]
    return {SMALL: ours(assigner, small=True), SMALL_ON_FILES: ours(assigner, files=True, small=True)}


def store_of(contender: str) -> str:
    """Returns the store of state that a contender has."""
    return "HDFSBacked" if contender in (SMALL, SMALL_ON_FILES) else STORES.get(contender, "RocksDB")


def tell(windows: str, taken: dict[str, list[float]], rows: int, against: str) -> None:
    """Prints the median of each contender, and how many times as fast as the fastest other one fastwin was.

    taken: seconds, by contender. rows: of one attempt. against: names the others and the work.
    """
    medians = {name: statistics.median(seconds) for name, seconds in taken.items()}
    for name, median in medians.items():
        best = min(taken[name])
        print(f"{windows}, {name}: {median:.2f} s, {rows / median / 1e6:.2f} M rows/s ({best:.2f} s at best)")
    others = min(median for name, median in medians.items() if name not in (OURS, ON_FILES))
    for name in (OURS, ON_FILES):
        if name in medians:
            print(f"{windows}: {name} at {others / medians[name]:.2f}x {against}", flush=True)
