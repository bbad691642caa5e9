"""Whole tables in, Arrow out: tumbling and session windows beside polars, DuckDB, pandas and the bare C loop."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

import fastwin as fw
from bench import peers
from bench.events import events, text_keys
from bench.floor import Floor, floor
from bench.race import Bar, Contender, Entry, Unavailable, Works
from bench.scale import PEER_THREADS, Scale, amount

WORKS = Works()
MINUTE = 60_000
GAP = 10_000
_FUNCTIONS = {"n": fw.Count(), "s": fw.Sum("value"), "lo": fw.Min("value"), "hi": fw.Max("value")}


def _spec(assigner: fw.WindowAssigner, aggregates: Sequence[str] = peers.AGGREGATES) -> fw.WindowSpec:
    functions = {name: _FUNCTIONS[name] for name in aggregates}
    return fw.key_by("key").event_time("ts").window(assigner).aggregate(**functions)


def _ours(table: pa.Table, spec: fw.WindowSpec, columns: list[str], threads: int = 1) -> Contender:
    return Contender(
        lambda: spec.run(table, threads=threads).main,
        answer=peers.canonical(columns),
        notes=lambda result: {"rows": result.num_rows},
        threads=threads,
    )


def _columns(table: pa.Table) -> list[np.ndarray]:
    """Returns what the C loops take of a table."""
    return [table[name].combine_chunks().cast(pa.int64()).to_numpy() for name in ("key", "ts", "value")]


def c_loop(table: pa.Table, rows: int) -> Contender | Unavailable:
    """Returns the C loop over a table, with room for ``rows`` results; Unavailable where it cannot be compiled."""
    found = floor()
    if not isinstance(found, Floor):
        return found
    columns = _columns(table)
    return Contender(
        lambda held: found.run(columns, MINUTE, held),
        setup=lambda: (found.table(rows),),
        answer=lambda held: peers.canonical(peers.WINDOW_COLUMNS)(Floor.result(held)),
    )


def c_sessions(table: pa.Table) -> Contender | Unavailable:
    """Returns the C loop for sessions over a table in order of time; Unavailable where it cannot be compiled."""
    found = floor()
    if not isinstance(found, Floor):
        return found
    columns, keys = _columns(table), len(table["key"].unique())
    return Contender(lambda: found.sessions(columns, GAP, keys), answer=peers.canonical(peers.SESSION_COLUMNS))


def _tumbling(
    label: str, table: pa.Table, others: Sequence[str], aggregates: tuple[str, ...] = peers.AGGREGATES
) -> Entry:
    spec = _spec(fw.TumblingEventTimeWindows.of(MINUTE), aggregates)
    contenders = {"fastwin": _ours(table, spec, ["key", "window_start", *aggregates])}
    if "C loop" in others:
        windows = table["ts"].cast(pa.int64()).to_numpy() // MINUTE
        keys = len(table["key"].unique())
        contenders["C loop"] = c_loop(table, min(keys * int(windows.max() - windows.min() + 1), len(table)))
    found = contenders | peers.tumbling(table, MINUTE, aggregates)
    return Entry(f"tumbling 1 min, {label}", len(table), {name: found[name] for name in ("fastwin", *others)})


@WORKS.add("tumbling", "event", ("polars", "DuckDB", "pandas", "C loop"), Bar.at_least(1.2, "polars", "DuckDB"))
def base(scale: Scale) -> Entry:
    label = f"{amount(scale.events)} events, {amount(scale.keys)} int keys"
    return _tumbling(label, events(scale.events, scale.keys), ("polars", "DuckDB", "pandas", "C loop"))


@WORKS.add("tumbling-few-keys", "event", ("polars", "DuckDB", "C loop"), Bar.at_most(2, "C loop"))
def few_keys(scale: Scale) -> Entry:
    return _tumbling("1,000 keys", events(scale.events, 1_000), ("polars", "DuckDB", "C loop"))


@WORKS.add("tumbling-many-keys", "event", ("polars", "DuckDB"))
def many_keys(scale: Scale) -> Entry:
    keys = 50 * scale.keys
    return _tumbling(f"{amount(keys)} keys", events(scale.events, keys), ("polars", "DuckDB"))


@WORKS.add("tumbling-disordered", "event", ("polars", "DuckDB"))
def disordered(scale: Scale) -> Entry:
    table = events(scale.events, scale.keys, disorder_ms=2 * MINUTE)
    return _tumbling("up to 2 min out of order", table, ("polars", "DuckDB"))


@WORKS.add("tumbling-one-aggregate", "event", ("polars", "DuckDB"))
def one_aggregate(scale: Scale) -> Entry:
    return _tumbling("the sum alone", events(scale.events, scale.keys), ("polars", "DuckDB"), ("s",))


@WORKS.add("tumbling-string-keys", "event", ("polars", "DuckDB"))
def string_keys(scale: Scale) -> Entry:
    return _tumbling("string keys", text_keys(events(scale.events, scale.keys)), ("polars", "DuckDB"))


def _sessions(label: str, table: pa.Table, others: Sequence[str]) -> Entry:
    spec = _spec(fw.EventTimeSessionWindows.with_gap(GAP))
    found = {"fastwin": _ours(table, spec, peers.SESSION_COLUMNS)} | peers.sessions(table, GAP)
    if "C loop" in others:
        found["C loop"] = c_sessions(table)
    return Entry(f"sessions, gap 10 s, {label}", len(table), {name: found[name] for name in ("fastwin", *others)})


@WORKS.add("sessions", "event", ("polars", "DuckDB", "pandas", "C loop"), Bar.at_least(3, "polars", "DuckDB"))
def sessions(scale: Scale) -> Entry:
    label = f"{amount(scale.events)} events, {amount(scale.keys)} int keys"
    return _sessions(label, events(scale.events, scale.keys), ("polars", "DuckDB", "pandas", "C loop"))


@WORKS.add("sessions-few-keys", "event", ("polars", "DuckDB", "C loop"))
def sessions_few_keys(scale: Scale) -> Entry:
    return _sessions("1,000 keys", events(scale.events, 1_000), ("polars", "DuckDB", "C loop"))


@WORKS.add("sessions-many-keys", "event", ("polars", "DuckDB", "C loop"))
def sessions_many_keys(scale: Scale) -> Entry:
    keys = 50 * scale.keys
    return _sessions(f"{amount(keys)} keys", events(scale.events, keys), ("polars", "DuckDB", "C loop"))


@WORKS.add("sessions-disordered", "event", ("polars", "DuckDB"))
def sessions_disordered(scale: Scale) -> Entry:
    table = events(scale.events, scale.keys, disorder_ms=2 * MINUTE)
    return _sessions("up to 2 min out of order", table, ("polars", "DuckDB"))


@WORKS.add("threads-tumbling", "event", ("one thread", "polars", "DuckDB"))
def tumbling_threads(scale: Scale) -> Entry:
    table = events(scale.events, scale.keys)
    spec = _spec(fw.TumblingEventTimeWindows.of(MINUTE))
    return _threads("tumbling 1 min", table, spec, peers.WINDOW_COLUMNS, peers.tumbling(table, MINUTE))


@WORKS.add("threads-sessions", "event", ("one thread", "polars", "DuckDB"))
def session_threads(scale: Scale) -> Entry:
    table = events(scale.events, scale.keys)
    spec = _spec(fw.EventTimeSessionWindows.with_gap(GAP))
    return _threads("sessions, gap 10 s", table, spec, peers.SESSION_COLUMNS, peers.sessions(table, GAP))


def _threads(label: str, table: pa.Table, spec: fw.WindowSpec, columns: list[str], others: dict) -> Entry:
    contenders = {
        "fastwin": _ours(table, spec, columns, PEER_THREADS),
        "one thread": _ours(table, spec, columns),
        **{name: others[name] for name in ("polars", "DuckDB")},
    }
    return Entry(f"{label}, fastwin on {PEER_THREADS} threads", len(table), contenders)


@WORKS.add("stream", "event", ("spec.run",))
def stream(scale: Scale) -> Entry:
    """The same events in 40 batches, the watermark following: what a live stream costs beside one table."""
    table = events(scale.events, scale.keys, disorder_ms=2_000)
    spec = _spec(fw.TumblingEventTimeWindows.of(MINUTE))
    step = len(table) // 40
    parts = [table.slice(at, step) for at in range(0, len(table), step)]

    def ours() -> tuple[pa.Table, dict]:
        opened, found, fullest = spec.open(watermark="2 seconds"), [], {}
        for part in parts:
            found.append(opened.process(part).main)
            metrics = opened.metrics
            if metrics.state_rows > fullest.get("state rows", 0):
                fullest = {"state rows": metrics.state_rows, "state bytes": metrics.state_bytes}
        found.append(opened.advance_watermark(fw.MAX_TIMESTAMP).main)
        return pa.concat_tables(found), fullest

    answer = peers.canonical(peers.WINDOW_COLUMNS)
    contenders = {
        "fastwin": Contender(ours, answer=lambda result: answer(result[0]), notes=lambda result: result[1]),
        "spec.run": Contender(lambda: spec.run(table).main, answer=answer),
    }
    return Entry("tumbling 1 min, a stream of 40 batches", len(table), contenders)


@WORKS.parametrize
def test_tables(race, work, contender):
    race(work, contender)
