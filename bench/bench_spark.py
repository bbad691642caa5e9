"""Spark end to end: Structured Streaming over the same Parquet files, fastwin beside Spark's own windows.

A stream takes one file a micro-batch. What counts is the time (``triggerExecution``) of every micro-batch but the
first one, which warms up; so also that of the last one, without events, in which what is left fires.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import fastwin as fw
from bench import perkey
from bench.lab import DELAY, STORES, Input, Lab, Query, open_lab
from bench.race import OURS, Bar, Contender, Entry, Works
from bench.scale import PEER_THREADS, Scale, amount
from bench.streams import ON_FILES, both, native, ours

WORKS = Works()
PER_KEY = "applyInPandasWithState"
FEWER = 50


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with ExitStack() as stack:
        try:
            opened = stack.enter_context(open_lab())
        except RuntimeError as problem:
            pytest.skip(str(problem))
        yield opened


def _contender(scale: Scale, lab: Lab, query: Query, store: str, files: Path, units: int | None = None) -> Contender:
    return Contender(
        lambda: lab.timed(query, store, files, 2 * scale.spark_enough_s),
        clocked=True,
        attempts=scale.spark_attempts,
        warm_up=lambda: lab.run(query, store, files, limit_s=scale.spark_warm_s),
        threads=PEER_THREADS,
        units=units,
        notes=lambda batches: {"last attempt": batches},
    )


def _entry(scale: Scale, lab: Lab, label: str, windows: str) -> Entry:
    queries = both(windows)
    lab.check(queries)
    files = lab.files(scale.batches, scale.batch_events, scale.keys)
    contenders = {
        name: _contender(scale, lab, query, STORES.get(name, "RocksDB"), files) for name, query in queries.items()
    }
    return Entry(f"Spark, {label}, {_size(scale)}", _counted(scale), contenders)


def _size(scale: Scale) -> str:
    return f"{amount(scale.batch_events)}-event batches, {amount(scale.keys)} keys"


def _counted(scale: Scale) -> int:
    return (scale.batches - 1) * scale.batch_events


@WORKS.add("spark-tumbling", "event", (ON_FILES, *STORES), Bar.at_least(3, *STORES))
def tumbling(scale: Scale, lab: Lab) -> Entry:
    return _entry(scale, lab, "tumbling 1 min", "tumbling")


@WORKS.add("spark-sessions", "event", (ON_FILES, *STORES), Bar.at_least(12, *STORES))
def sessions(scale: Scale, lab: Lab) -> Entry:
    return _entry(scale, lab, "sessions, gap 10 s", "sessions")


@WORKS.add("spark-sliding", "event", (ON_FILES, *STORES), Bar.at_least(30, *STORES))
def sliding(scale: Scale, lab: Lab) -> Entry:
    return _entry(scale, lab, "sliding 60 min / 3 min", "sliding")


@WORKS.add("spark-day", "event", tuple(STORES))
def day(scale: Scale, lab: Lab) -> Entry:
    """480 windows an event. Spark's own copy each of them as often, so they get a part of the events, as below."""
    query = ours(fw.SlidingEventTimeWindows.of("24 hours", "3 minutes"))
    theirs = native(lambda functions: functions.window("ts", "24 hours", "3 minutes"))
    peers = {name: (theirs, store) for name, store in STORES.items()}
    return _beside_fewer(scale, lab, "sliding 24 h / 3 min", query, peers)


@WORKS.add("spark-one-call-per-key", "event", (PER_KEY,), Bar.at_least(50, PER_KEY))
def one_call_per_key(scale: Scale, lab: Lab) -> Entry:
    query = ours(fw.TumblingEventTimeWindows.of("1 minute"))
    peers = {PER_KEY: (perkey.query(DELAY), "RocksDB")}
    return _beside_fewer(scale, lab, "one call per key, tumbling 1 min", query, peers)


def _beside_fewer(scale: Scale, lab: Lab, label: str, query: Query, peers: dict[str, tuple[Query, str]]) -> Entry:
    """A work whose peers get a fiftieth of the keys and of the events, so as many for each key: they take so long for
    an event that all of them would take hours."""
    lab.check({OURS: query} | {name: theirs for name, (theirs, _) in peers.items()})
    files = lab.files(scale.batches, scale.batch_events, scale.keys)
    fewer = lab.files(scale.batches, scale.batch_events // FEWER, scale.keys // FEWER)
    contenders = {OURS: _contender(scale, lab, query, "RocksDB", files)} | {
        name: _contender(scale, lab, theirs, store, fewer, _counted(scale) // FEWER)
        for name, (theirs, store) in peers.items()
    }
    return Entry(
        f"Spark, {label}, {_size(scale)}; peers get {amount(scale.batch_events // FEWER)}", _counted(scale), contenders
    )


@WORKS.add("spark-hot-key", "event", ("even keys",), Bar.at_most(1.3, "even keys"))
def hot_key(scale: Scale, lab: Lab) -> Entry:
    """The contenders have other events, so each is compared with Spark's own windows over a small stream."""
    queries = both("tumbling")
    query = queries[OURS]
    for hot in (True, False):
        lab.check({name: queries[name] for name in (OURS, next(iter(STORES)))}, hot)
    contenders = {
        name: _contender(
            scale, lab, query, "RocksDB", lab.files(scale.batches, scale.batch_events, scale.keys, hot=name == OURS)
        )
        for name in (OURS, "even keys")
    }
    return Entry(f"Spark, half of the events of one key, {_size(scale)}", _counted(scale), contenders)


@WORKS.add("spark-four-windows", "event", ("minute alone",), Bar.at_most(1.5, "minute alone"))
def four_windows(scale: Scale, lab: Lab) -> Entry:
    """The minutes among the four are compared with the minutes alone."""
    sizes = {"minute": "1 minute", "five": "5 minutes", "hour": "1 hour", "day": "1 day"}
    windows = {name: fw.TumblingEventTimeWindows.of(size) for name, size in sizes.items()}
    files = lab.files(scale.batches, scale.batch_events, scale.keys)
    queries = {OURS: ours(**windows), "minute alone": ours(windows["minute"])}
    lab.check(queries | {OURS: _minutes(queries[OURS])})
    contenders = {name: _contender(scale, lab, query, "RocksDB", files) for name, query in queries.items()}
    return Entry(f"Spark, minute, 5 minutes, hour and day at once, {_size(scale)}", _counted(scale), contenders)


def _minutes(query: Query) -> Query:
    """Returns the minutes of a query over several windows."""

    def some(given: Input) -> Any:
        found = query(given)
        return found.where(found["window"] == "minute")

    return some


@pytest.mark.spark
@WORKS.parametrize
def test_spark(race, lab, work, contender):
    race(work, contender, lab)
