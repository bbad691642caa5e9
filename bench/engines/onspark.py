"""The questions on Spark: by fastwin, and by Spark's own windows."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bench.engines.queries import DELAY_MS, Query
from bench.engines.specs import SCORE_BITS, hottest, sellers, spec_of
from bench.engines.worker import Run, named
from bench.lab import Input, open_lab

__all__ = ["ENGINES", "ON_FILES", "opened"]

ENGINES = {"spark": "RocksDB", "spark-files": "RocksDB", "rocksdb": "RocksDB", "hdfs": "HDFSBacked"}
"""fastwin, twice, and native Spark on both of its state stores."""

ON_FILES = ("tumbling", "q11", "q12", "q7")
"""What is asked of ``ParquetFiles``: questions that take the bids as they are, once."""

_DELAY = f"{DELAY_MS} milliseconds"


def _sides(frame: Any) -> tuple[Any, Any]:
    left = frame.where("price % 10 = 0 OR price < 0").select("bidder", "ts", "price")
    return left, frame.where("price % 10 IN (1, 2, 3) OR price < 0").select("bidder", "ts", "auction")


def _campaigns(frame: Any, parquet: Path) -> Any:
    from pyspark.sql import functions as F

    ads = frame.sparkSession.read.parquet(str(parquet.parent / "ads.parquet"))
    return frame.where("price % 3 <> 0").join(F.broadcast(ads), "bidder")


def _ours(query: Query, frame: Any, parquet: Path) -> Any:
    from pyspark.sql import functions as F

    import spark_glue

    if query.name == "q8":
        return spark_glue.apply(sellers(query), _sides(frame), watermark=(_DELAY, _DELAY))
    if query.name == "yahoo":
        frame = _campaigns(frame, parquet)
    if query.name != "q5":
        return spark_glue.apply(spec_of(query), frame, watermark=_DELAY)
    counts = spark_glue.apply(spec_of(query), frame, watermark=_DELAY, name="counts", chain=True)
    score = (F.col("n") * F.lit(1 << SCORE_BITS) - F.col("auction")).alias("score")
    return spark_glue.apply(hottest(query), counts.select("window_time", score), name="hottest")


def _ours_on_files(query: Query, parquet: Path) -> Any:
    import spark_glue

    files = spark_glue.ParquetFiles(str(parquet), max_files=1)
    return spark_glue.apply(spec_of(query), files, watermark=_DELAY)


def _native(query: Query, frame: Any, parquet: Path) -> Any:
    from pyspark.sql import functions as F

    marked, size = frame.withWatermark("ts", _DELAY), f"{query.size_ms} milliseconds"
    window = F.window("ts", size)
    if query.name == "tumbling":
        found = {"n": F.count("*"), "s": F.sum("price"), "lo": F.min("price"), "hi": F.max("price")}
        grouped = marked.groupBy(window.alias("w"), "bidder").agg(*(one.alias(name) for name, one in found.items()))
        return grouped.selectExpr("bidder AS key", "w.start AS window_start", *found)
    if query.name in ("q11", "q12"):
        window = F.session_window("ts", size) if query.name == "q11" else window
        grouped = marked.groupBy(window.alias("w"), "bidder").agg(F.count("*").alias("n"))
        return grouped.selectExpr("bidder AS key", "w.start AS window_start", "n", "w.end AS window_end")
    if query.name == "q8":
        left, right = (one.withColumn("w", window).drop("ts") for one in _sides(marked))
        return left.join(right, ["w", "bidder"]).selectExpr(
            "bidder AS key", "w.start AS window_start", "price", "auction"
        )
    if query.name == "yahoo":
        grouped = _campaigns(marked, parquet).groupBy(window.alias("w"), "campaign").agg(F.count("*").alias("n"))
        return grouped.selectExpr("campaign AS key", "w.start AS window_start", "n")
    if query.name == "q5":
        sliding = F.window("ts", size, f"{query.slide_ms} milliseconds")
        counts = marked.groupBy(sliding.alias("w"), "auction").agg(F.count("*").alias("n"))
        again = F.window(F.window_time("w"), f"{query.slide_ms} milliseconds").alias("v")
        best = F.max(F.struct("n", (-F.col("auction")).alias("below"))).alias("best")
        top = counts.groupBy(again).agg(best)
        shift = f"v.end - INTERVAL {query.size_ms // 1_000} SECONDS AS window_start"
        return top.selectExpr("-best.below AS key", shift, "best.n AS n")
    best = F.max(F.struct("price", "auction", "bidder")).alias("best")
    found = marked.groupBy(window.alias("w")).agg(best)
    return found.selectExpr(
        "best.auction AS key", "w.start AS window_start", "best.price AS price", "best.bidder AS bidder"
    )


@contextlib.contextmanager
def opened(engine: str, query: Query, parquet: Path) -> Iterator[Run]:
    """Opens Spark for one of ENGINES; yields what runs the query: one file a micro-batch, results dropped.

    What counts are all micro-batches (``triggerExecution``), from the first to the one that closes the last windows.
    Where the answer is wanted, results are written instead, and the time says nothing.
    """
    with open_lab() as lab:

        def ask(given: Input) -> Any:
            if engine == "spark-files":
                return _ours_on_files(query, parquet)
            return (_ours if engine == "spark" else _native)(query, given.frame, parquet)

        def run(wanted: bool) -> tuple[float, pa.Table | None]:
            with lab.checkpoint() as output:
                start = time.perf_counter()
                progress = lab.run(ask, ENGINES[engine], parquet, output if wanted else None)
                whole = time.perf_counter() - start
                if wanted:
                    found = pq.read_table(output)
                    return whole, named(found, query) if engine.startswith("spark") else found
            return sum(one["durationMs"]["triggerExecution"] for one in progress) / 1_000, None

        yield run
