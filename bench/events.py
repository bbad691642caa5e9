"""The events that tables and streams are made of: keys at random, event time advancing."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["EPOCH_MS", "PER_KEY_MS", "SPAN_MS", "events", "text_keys"]

EPOCH_MS = 1_704_067_200_000
"""The first event: 2024-01-01."""

SPAN_MS = 500_000
"""How much event time a table covers."""

PER_KEY_MS = 12_500
"""The mean time between two events of a key: 40 events a key in SPAN_MS."""


def events(
    n: int, keys: int, span_ms: int = SPAN_MS, disorder_ms: int = 0, seed: int = 1, first_ms: int = EPOCH_MS
) -> pa.Table:
    """Returns n events: ``key`` int64, ``ts`` timestamp[ms, UTC], ``value`` int64.

    span_ms: time between the first and the last. disorder_ms: each comes up to that much later than it should.
    """
    random = np.random.default_rng(seed)
    times = first_ms + np.arange(n, dtype=np.int64) * span_ms // n
    if disorder_ms:
        times = np.maximum(times - random.integers(0, disorder_ms, n), first_ms)
    # Spread far apart, so that a key's number says nothing of its place.
    names = random.permutation(keys).astype(np.int64) * 7_919 + 1_000_003
    return pa.table(
        {
            "key": names[random.integers(0, keys, n)],
            "ts": pa.array(times, pa.timestamp("ms", tz="UTC")),
            "value": random.integers(-1_000, 1_000, n),
        }
    )


def text_keys(table: pa.Table) -> pa.Table:
    """Returns the table with its keys as text such as ``device-1000003``."""
    names = pc.binary_join_element_wise("device", table["key"].cast(pa.string()), "-")
    return table.set_column(0, "key", names)
