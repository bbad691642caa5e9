"""The questions to engines that live in a Python process: chDB, Bytewax and Pathway, each in its own words.

They come with ``pip install fastwin[engines]``; what one cannot say, or nobody has said for it, is left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.engines.queries import DELAY_MS, Query
from bench.engines.worker import Run
from bench.scale import PEER_THREADS

__all__ = ["ENGINES", "SAID", "opened"]

SAID = {
    "chdb": ("tumbling", "q11", "q5", "q12", "q7", "q8", "yahoo"),
    "bytewax": ("tumbling", "q11", "q12", "q7", "yahoo"),
    "pathway": ("tumbling", "q11", "q12", "yahoo"),
}
"""What each engine is asked."""

_ROWS = 4_096
"""Rows that Bytewax takes at a time."""

_MS = "toInt64(toUnixTimestamp64Milli(ts))"


def _sql(query: Query, parquet: Path) -> str:
    rows = f"(SELECT auction, bidder, price, {_MS} AS t FROM file('{parquet}/*.parquet', Parquet))"
    start = f"t - t % {query.size_ms} AS window_start"
    if query.name == "tumbling":
        found = "count() AS n, sum(price) AS s, min(price) AS lo, max(price) AS hi"
        return f"SELECT bidder AS key, {start}, {found} FROM {rows} GROUP BY key, window_start"
    if query.name == "q12":
        return f"SELECT bidder AS key, {start}, count() AS n FROM {rows} GROUP BY key, window_start"
    if query.name == "yahoo":
        ads = f"file('{parquet.parent}/ads.parquet', Parquet)"
        views = f"{rows} AS b INNER JOIN {ads} AS a ON b.bidder = a.bidder WHERE b.price % 3 <> 0"
        return f"SELECT a.campaign AS key, {start}, count() AS n FROM {views} GROUP BY key, window_start"
    if query.name == "q7":
        best = "argMax(tuple(auction, bidder, price), price) AS best"
        top = f"SELECT {start}, {best} FROM {rows} GROUP BY window_start"
        return f"SELECT best.1 AS key, window_start, best.3 AS price, best.2 AS bidder FROM ({top})"
    if query.name == "q8":
        left = f"(SELECT bidder, price, {start} FROM {rows} WHERE price % 10 = 0 OR price < 0) AS a"
        right = f"(SELECT bidder, auction, {start} FROM {rows} WHERE price % 10 IN (1, 2, 3) OR price < 0) AS b"
        return (
            "SELECT a.bidder AS key, a.window_start AS window_start, a.price AS price, b.auction AS auction "
            f"FROM {left} INNER JOIN {right} ON a.bidder = b.bidder AND a.window_start = b.window_start"
        )
    if query.name == "q5":
        slides = f"range(toUInt64({query.size_ms // query.slide_ms}))"
        starts = f"arrayJoin(arrayMap(i -> t - t % {query.slide_ms} - i * {query.slide_ms}, {slides})) AS window_start"
        counts = f"SELECT auction, {starts}, count() AS n FROM {rows} GROUP BY auction, window_start"
        top = f"SELECT window_start, max(tuple(n, -auction)) AS best FROM ({counts}) GROUP BY window_start"
        return f"SELECT -best.2 AS key, window_start, best.1 AS n FROM ({top})"
    before = "lagInFrame(t, 1, toInt64(-1000000000000)) OVER (PARTITION BY bidder ORDER BY t)"
    opens = f"SELECT bidder, t, t - {before} > {query.size_ms} AS opens FROM {rows}"
    whole = "sum(opens) OVER (PARTITION BY bidder ORDER BY t) AS number"  # of rows of one time the same
    found = f"min(t) AS window_start, count() AS n, max(t) + {query.size_ms} AS window_end"
    return f"SELECT bidder AS key, {found} FROM (SELECT bidder, t, {whole} FROM ({opens})) GROUP BY key, number"


def _chdb(query: Query, parquet: Path) -> Callable[[], pa.Table]:
    import chdb

    sql = _sql(query, parquet) + f" SETTINGS max_threads = {PEER_THREADS}"
    return lambda: chdb.query(sql, "ArrowTable")


def _events(query: Query, parquet: Path) -> Iterator[list[tuple[str, int, int, int, datetime]]]:
    """Yields rows for Bytewax, whose keys are text: key, auction, bidder, price and time."""
    campaigns = {}
    if query.name == "yahoo":
        ads = pq.read_table(parquet.parent / "ads.parquet").to_pydict()
        campaigns = dict(zip(ads["bidder"], ads["campaign"], strict=True))
    for path in sorted(parquet.glob("*.parquet")):
        for batch in pq.ParquetFile(path).iter_batches(_ROWS):
            times = (one.replace(tzinfo=UTC) for one in batch["ts"].to_pylist())
            numbers = (batch[name].to_pylist() for name in ("auction", "bidder", "price"))
            rows = zip(*numbers, times, strict=True)
            if query.name == "yahoo":
                yield [(str(campaigns[bid[1]]), *bid) for bid in rows if bid[2] % 3]
            else:
                yield [("all" if query.name == "q7" else str(bid[1]), *bid) for bid in rows]


def _folded(query: Query) -> tuple[Callable[[], Any], Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    """Returns what Bytewax folds with: an empty value, one with a row more, and two as one."""
    if query.name == "tumbling":
        return (
            lambda: (0, 0, 1 << 62, -1 << 62),
            lambda a, bid: (a[0] + 1, a[1] + bid[3], min(a[2], bid[3]), max(a[3], bid[3])),
            lambda a, b: (a[0] + b[0], a[1] + b[1], min(a[2], b[2]), max(a[3], b[3])),
        )
    if query.name == "q7":
        return lambda: (-1 << 62, 0, 0), lambda a, bid: max(a, (bid[3], bid[1], bid[2])), max
    if query.name == "q11":
        never, always = datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)
        return (
            lambda: (0, never, always),
            lambda a, bid: (a[0] + 1, min(a[1], bid[4]), max(a[2], bid[4])),
            lambda a, b: (a[0] + b[0], min(a[1], b[1]), max(a[2], b[2])),
        )
    return lambda: 0, lambda n, _: n + 1, lambda a, b: a + b


def _bytewax(query: Query, parquet: Path) -> Callable[[], pa.Table]:
    import bytewax.operators as op
    import bytewax.operators.windowing as win
    from bytewax.dataflow import Dataflow
    from bytewax.inputs import DynamicSource, StatelessSourcePartition
    from bytewax.testing import TestingSink, run_main

    class Blocks(StatelessSourcePartition):  # type: ignore[misc]
        def __init__(self) -> None:
            self._blocks = _events(query, parquet)

        def next_batch(self) -> list[Any]:
            return next(self._blocks)

    class Source(DynamicSource):  # type: ignore[misc]
        def build(self, *_: object) -> Blocks:
            return Blocks()

    epoch, size = datetime(1970, 1, 1, tzinfo=UTC), timedelta(milliseconds=query.size_ms)
    windower = win.SessionWindower(size) if query.name == "q11" else win.TumblingWindower(size, epoch)

    def ask() -> pa.Table:
        found: list[Any] = []
        flow = Dataflow("windows")
        keyed = op.key_on("key", op.input("bids", flow, Source()), lambda bid: bid[0])
        clock = win.EventClock(lambda bid: bid[4], timedelta(milliseconds=DELAY_MS))
        folded = win.fold_window("fold", keyed, clock, windower, *_folded(query))
        op.output("out", folded.down, TestingSink(found))
        run_main(flow)
        keys = [key for key, _ in found]
        starts = np.array([number for _, (number, _) in found], dtype=np.int64) * query.size_ms
        values = [value for _, (_, value) in found]
        if query.name == "q7":
            prices, auctions, bidders = zip(*values, strict=True)
            return pa.table({"key": auctions, "window_start": starts, "price": prices, "bidder": bidders})
        head = {"key": np.array(keys, dtype=np.int64), "window_start": starts}
        if query.name == "tumbling":
            return pa.table(head | dict(zip(("n", "s", "lo", "hi"), zip(*values, strict=True), strict=True)))
        if query.name == "q11":
            counts, first, last = zip(*values, strict=True)
            ends = [one + size for one in last]
            times = {"window_start": pa.array(first), "n": counts, "window_end": pa.array(ends)}
            return pa.table(head | times)
        return pa.table({**head, "n": values})

    return ask


def _pathway(query: Query, parquet: Path) -> Callable[[], pa.Table]:
    import pathway as pw
    from pathway.internals.parse_graph import G

    def ask() -> pa.Table:
        G.clear()  # what earlier runs have asked
        read = pq.read_table(parquet)
        read = read.set_column(read.schema.get_field_index("ts"), "ts", read["ts"].cast(pa.int64()))
        bids = pw.debug.table_from_pandas(read.to_pandas())
        if query.name == "yahoo":
            ads = pw.debug.table_from_pandas(pq.read_table(parquet.parent / "ads.parquet").to_pandas())
            views = bids.filter(pw.this.price % 3 != 0)
            bids = views.join(ads, views.bidder == ads.bidder).select(views.ts, bidder=ads.campaign)
        tumbling = pw.temporal.tumbling(duration=query.size_ms)
        window = pw.temporal.session(max_gap=query.size_ms + 1) if query.name == "q11" else tumbling
        wanted: dict[str, Any] = {"n": pw.reducers.count()}
        if query.name == "tumbling":
            price = pw.this.price
            wanted |= {"s": pw.reducers.sum(price), "lo": pw.reducers.min(price), "hi": pw.reducers.max(price)}
        if query.name == "q11":
            wanted["window_end"] = pw.reducers.max(pw.this.ts) + query.size_ms
        grouped = bids.windowby(pw.this.ts, window=window, instance=pw.this.bidder)
        found = grouped.reduce(key=pw.this._pw_instance, window_start=pw.this._pw_window_start, **wanted)
        return pa.Table.from_pandas(pw.debug.table_to_pandas(found, include_id=False), preserve_index=False)

    return ask


ENGINES = {"chdb": _chdb, "bytewax": _bytewax, "pathway": _pathway}


def opened(engine: str, query: Query, parquet: Path) -> Run:
    """Returns what runs a query by one of ENGINES in this process."""
    ask = ENGINES[engine](query, parquet)

    def run(wanted: bool) -> tuple[float, pa.Table | None]:
        start = time.perf_counter()
        found = ask()
        return time.perf_counter() - start, found if wanted else None

    return run
