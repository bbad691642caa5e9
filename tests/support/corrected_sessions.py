"""Sessions with a changelog over micro-batches that merge what has fired, for sinks that keep the newest results."""

import pyarrow as pa

import fastwin as fw
from tests.support.spark_events import START_MS

__all__ = ["END", "SCHEMA", "SPEC", "batch"]

SPEC = (
    fw.key_by("k", "part")
    .event_time("ts")
    .window(fw.EventTimeSessionWindows.with_gap("20 s"))
    .allowed_lateness("1 hour")
    .with_changelog()
    .aggregate(n=fw.Count(), total=fw.Sum("v"))
)
SCHEMA = pa.schema([("k", pa.int64()), ("part", pa.string()), ("ts", pa.timestamp("us", tz="UTC")), ("v", pa.int64())])
END = pa.table([[9], ["end"], [(START_MS + 7_200_000) * 1_000], [0]], schema=SCHEMA)
"""So late that all windows of the batches fire."""


def batch(number: int) -> pa.Table:
    """Elements behind those of the batch before by half, so that sessions that have fired merge; some keys are null."""
    places = [(37 * i + 11 * number) % 101 for i in range(60)]
    times = [START_MS * 1_000 + 1_000_000 * (100 * number - 60 * (i % 2) + 3 * at) for i, at in enumerate(places)]
    keys = [[1, 2, None][at % 3] for at in places]
    parts = ["a" if at % 4 else None for at in places]
    return pa.table([keys, parts, times, places], schema=SCHEMA)
