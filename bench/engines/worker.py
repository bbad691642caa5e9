"""The process of an engine that Python runs: ``python -m bench.engines.worker ENGINE QUERY PARQUET``.

Each line on standard input runs the query once; the line is a path for the answer, or ``-``.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.engines.queries import DELAY_MS, QUERIES, Query, write_answer
from bench.engines.specs import SCORE_BITS, hottest, sellers, spec_of
from bench.scale import PEER_THREADS

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
    if query.name == "q8":
        return table.select(["bidder", "window_start", "price", "auction"]).rename_columns({"bidder": "key"})
    return table.rename_columns({"campaign" if query.name == "yahoo" else "bidder": "key"})


class _Campaigns:
    """What Yahoo's question does before it counts: views alone, each with its ad's campaign."""

    def __init__(self, parquet: Path) -> None:
        ads = pq.read_table(parquet.parent / "ads.parquet")
        self._ads, self._campaigns = pd.Index(ads["bidder"].to_numpy()), ads["campaign"].to_numpy()

    def of(self, bids: Any) -> pa.Table:
        """Returns campaign and time of what was viewed. bids: a table or a batch."""
        views = bids["price"].to_numpy() % 3 != 0
        campaign = self._campaigns[self._ads.get_indexer(bids["bidder"].to_numpy()[views])]
        return pa.table({"campaign": campaign, "ts": bids["ts"].filter(pa.array(views))})


def _sides(bids: Any) -> tuple[pa.Table, pa.Table]:
    """Returns the two inputs of q8. bids: a table or a batch. The closing bid, below 0, is in both."""
    price = bids["price"].to_numpy()
    last, over = price % 10, price < 0
    sides = []
    for chosen, column in (((last == 0) | over, "price"), (((last >= 1) & (last <= 3)) | over, "auction")):
        sides.append(pa.table({name: bids[name].filter(pa.array(chosen)) for name in ("bidder", "ts", column)}))
    return sides[0], sides[1]


def _scored(table: pa.Table) -> pa.Table:
    score = pc.subtract(pc.shift_left(table["n"], SCORE_BITS), table["auction"])
    return pa.table({"window_time": pc.subtract(table["window_end"], pa.scalar(1, pa.duration("ms"))), "score": score})


def _mapped(query: Query, parquet: Path) -> pa.Table:
    with pa.memory_map(str(parquet.parent / "bids.arrow")) as file:
        return pa.ipc.open_file(file).read_all().select(query.reads)


def _batches(query: Query, parquet: Path, mapped: bool) -> Iterator[pa.RecordBatch]:
    if mapped:
        yield from _mapped(query, parquet).to_batches(ROWS_A_BATCH)
        return
    for path in sorted(parquet.glob("*.parquet")):
        yield from pq.ParquetFile(path).iter_batches(ROWS_A_BATCH, columns=list(query.reads))


def stream(query: Query, parquet: Path, mapped: bool) -> Run:
    """Returns what runs a query in this process: batches of 65,536 rows, and the watermark 10 s behind.

    mapped: of the mapped file with bare columns, not of Parquet.
    """

    def join(wanted: bool) -> tuple[float, pa.Table | None]:
        start = time.perf_counter()
        opened = sellers(query).open(watermark=(DELAY_MS, DELAY_MS))
        found = []
        for batch in _batches(query, parquet, mapped):
            result = opened.process(*_sides(batch)).main
            if result.num_rows:
                found.append(result)
        seconds = time.perf_counter() - start
        return seconds, named(pa.concat_tables(found), query) if wanted else None

    def run(wanted: bool) -> tuple[float, pa.Table | None]:
        start = time.perf_counter()
        opened = spec_of(query).open(watermark=DELAY_MS)
        second = hottest(query).open() if query.name == "q5" else None
        campaigns = _Campaigns(parquet) if query.name == "yahoo" else None
        found = []
        for batch in _batches(query, parquet, mapped):
            result = opened.process(batch if campaigns is None else campaigns.of(batch)).main
            if second is not None:
                second.process(_scored(result))
                result = second.advance_watermark(opened.watermark).main
            if result.num_rows:
                found.append(result)
        seconds = time.perf_counter() - start
        return seconds, named(pa.concat_tables(found), query) if wanted else None

    return join if query.name == "q8" else run


def table(query: Query, parquet: Path, mapped: bool) -> Run:
    """Returns what runs a query in this process over all rows at once, with as many threads as the peers have.

    mapped: of the mapped file with bare columns, not of Parquet.
    """

    def run(wanted: bool) -> tuple[float, pa.Table | None]:
        start = time.perf_counter()
        bids = _mapped(query, parquet) if mapped else pq.read_table(parquet, columns=list(query.reads))
        bids = _Campaigns(parquet).of(bids) if query.name == "yahoo" else bids
        if query.name == "q8":
            result = sellers(query).run(*_sides(bids), threads=PEER_THREADS).main
        else:
            result = spec_of(query).run(bids, threads=PEER_THREADS).main
        if query.name == "q5":
            result = hottest(query).run(_scored(result), threads=PEER_THREADS).main
        seconds = time.perf_counter() - start
        return seconds, named(result, query) if wanted else None

    return run


def main() -> int:
    engine, name, given = sys.argv[1:]
    query, parquet = QUERIES[name], Path(given)
    way, _, source = engine.partition("-")
    pa.set_cpu_count(1 if way == "stream" else PEER_THREADS)  # Arrow reads Parquet with so many
    with ExitStack() as stack:
        if way in ("stream", "table"):
            run = (stream if way == "stream" else table)(query, parquet, mapped=source == "")
        elif engine in ("chdb", "bytewax", "pathway"):
            from bench.engines import embedded

            run = embedded.opened(engine, query, parquet)
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
