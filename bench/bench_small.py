"""Many small windows of one key, in both directions of time; and streams that are fed row by row."""

import numpy as np
import pyarrow as pa

import fastwin as fw
from bench import peers
from bench.events import EPOCH_MS
from bench.race import Bar, Contender, Entry, Works
from bench.scale import Scale, amount

WORKS = Works()
SECOND = 1_000
_SCHEMA = pa.schema([("key", pa.int64()), ("ts", pa.timestamp("ms", "UTC")), ("value", pa.int64())])
_AGGREGATES = {"n": fw.Count(), "s": fw.Sum("value"), "lo": fw.Min("value"), "hi": fw.Max("value")}
_KEYED = fw.key_by("key").event_time("ts")
_SECONDS = _KEYED.window(fw.TumblingEventTimeWindows.of(SECOND)).aggregate(**_AGGREGATES)
_MINUTES = _KEYED.window(fw.TumblingEventTimeWindows.of(60 * SECOND)).aggregate(**_AGGREGATES)


def _seconds(n: int) -> pa.Table:
    """One event a second, of one key."""
    times = pa.array(EPOCH_MS + SECOND * np.arange(n), pa.timestamp("ms", "UTC"))
    return pa.table([pa.array(np.zeros(n, np.int64)), times, pa.array(np.arange(n))], schema=_SCHEMA)


def _entry(label: str, table: pa.Table) -> Entry:
    ours = Contender(
        lambda: _SECONDS.run(table).main,
        answer=peers.canonical(["key", "window_start", *peers.AGGREGATES]),
        notes=lambda result: {"rows": result.num_rows, "chunks": result.column(0).num_chunks},
    )
    others = peers.tumbling(table, SECOND)
    found = {"fastwin": ours} | {name: others[name] for name in ("polars", "DuckDB")}
    return Entry(f"one key, {amount(len(table))} windows of 1 s, {label}", len(table), found)


@WORKS.add("small-windows", "event", ("polars", "DuckDB"), Bar.at_least(1, "polars", "DuckDB"))
def in_order(scale: Scale) -> Entry:
    return _entry("in order", _seconds(scale.events // 8))


@WORKS.add("small-windows-backwards", "event", ("polars", "DuckDB"))
def backwards(scale: Scale) -> Entry:
    table = _seconds(scale.events // 8)
    return _entry("the newest first", table.take(pa.array(np.arange(len(table))[::-1])))


@WORKS.add("push", "row", ("process",), Bar.at_least(4, "process"))
def push(scale: Scale) -> Entry:
    table = _seconds(scale.items // 200)
    rows = table.to_pylist()
    parts = [table.slice(i, 1) for i in range(len(table))]

    def pushed() -> int:
        stream = _MINUTES.open(watermark=10 * SECOND, schema=_SCHEMA)
        return sum(stream.push(row).main.num_rows for row in rows)

    def processed() -> int:
        stream = _MINUTES.open(watermark=10 * SECOND, schema=_SCHEMA)
        return sum(stream.process(part).main.num_rows for part in parts)

    contenders = {name: Contender(run, answer=int) for name, run in (("fastwin", pushed), ("process", processed))}
    return Entry("push, one row a call", len(table), contenders)


@WORKS.parametrize
def test_small(race, work, contender):
    race(work, contender)
