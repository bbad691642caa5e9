"""Streams of many keys, for what lies in files."""

import numpy as np
import pyarrow as pa

import fastwin as fw
from fastwin.run import planner
from fastwin.run.replica import Replica, open_replica

__all__ = ["KEYS", "SCHEMA", "feed", "filled"]

KEYS = 20_000
SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.int64())])
SPEC = fw.key_by("k").event_time("ts", unit="ms").window(fw.SlidingEventTimeWindows.of(300, 100))
PLAN = planner.plan(SPEC.aggregate(n=fw.Count(), newest=fw.Max("ts")), SCHEMA)


def filled(keys: int = KEYS) -> Replica:
    stream = open_replica(PLAN, coalesce=True)
    feed(stream, np.arange(keys), 50)
    return stream


def feed(stream: Replica, keys: np.ndarray, time: int) -> None:
    stream.process(pa.table({"k": keys, "ts": np.full(len(keys), time)}, schema=SCHEMA))
