"""The process of an engine that Python runs: ``python -m bench.engines.worker ENGINE QUERY PARQUET``.

Each line on standard input runs the query once; the line is a path for the answer, or ``-``.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.engines.queries import DELAY_MS, QUERIES, Query, write_answer
from bench.engines.specs import SCORE_BITS, hottest, spec_of

__all__ = ["Run", "main", "named"]

Run = Callable[[bool], tuple[float, pa.Table | None]]
"""Runs a query; given whether its answer is wanted. Returns the seconds, and the answer if it was."""

ROWS_A_BATCH = 65_536


def named(table: pa.Table, query: Query) -> pa.Table:
    """Returns an answer of fastwin with the columns of the query."""
    if query.name == "q5":
        n = pc.shift_right(pc.add(table["score"], (1 << SCORE_BITS) - 1), SCORE_BITS)
        auction = pc.subtract(pc.shift_left(n, SCORE_BITS), table["score"])
        end = table["window_end"]  # Spark's Parquet has other units
        time_ms = pc.subtract(end.cast(pa.timestamp("ms", tz=end.type.tz)).cast(pa.int64()), query.size_ms)
        return pa.table({"key": auction, "window_start": time_ms, "n": n})
    if query.name == "q7":
        return table.rename_columns({"auction": "key", "hi": "price"})
    return table.rename_columns({"bidder": "key"})


def _scored(table: pa.Table) -> pa.Table:
    score = pc.subtract(pc.shift_left(table["n"], SCORE_BITS), table["auction"])
    return pa.table({"window_time": pc.subtract(table["window_end"], pa.scalar(1, pa.duration("ms"))), "score": score})


def stream(query: Query, parquet: Path) -> Run:
    """Returns what runs a query in this process: batches of 65,536 rows, and the watermark 10 s behind."""

    def run(wanted: bool) -> tuple[float, pa.Table | None]:
        start = time.perf_counter()
        opened = spec_of(query).open(watermark=DELAY_MS)
        second = hottest(query).open() if query.name == "q5" else None
        found = []
        for path in sorted(parquet.glob("*.parquet")):
            for batch in pq.ParquetFile(path).iter_batches(ROWS_A_BATCH):
                result = opened.process(batch).main
                if second is not None:
                    second.process(_scored(result))
                    result = second.advance_watermark(opened.watermark).main
                if result.num_rows:
                    found.append(result)
        seconds = time.perf_counter() - start
        return seconds, named(pa.concat_tables(found), query) if wanted else None

    return run


def table(query: Query, parquet: Path) -> Run:
    """Returns what runs a query in this process over all rows at once, with two threads."""

    def run(wanted: bool) -> tuple[float, pa.Table | None]:
        start = time.perf_counter()
        result = spec_of(query).run(pq.read_table(parquet), threads=2).main
        if query.name == "q5":
            result = hottest(query).run(_scored(result), threads=2).main
        seconds = time.perf_counter() - start
        return seconds, named(result, query) if wanted else None

    return run


def main() -> int:
    engine, name, given = sys.argv[1:]
    query, parquet = QUERIES[name], Path(given)
    with ExitStack() as stack:
        if engine in ("stream", "table"):
            run = (stream if engine == "stream" else table)(query, parquet)
        else:
            from bench.engines import onspark

            run = stack.enter_context(onspark.opened(engine, query, parquet))
        for line in sys.stdin:
            target = line.strip()
            seconds, answer = run(target != "-")
            if answer is not None:
                write_answer(answer, query, target)
            print(json.dumps({"seconds": seconds}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
