"""How much the benchmarks do: full sizes, or quick ones that only show that everything runs."""

import os
from dataclasses import dataclass

__all__ = ["PEER_THREADS", "VARIABLE", "Scale", "amount", "chosen"]

VARIABLE = "FASTWIN_BENCH"
"""The environment variable that chooses: ``full`` (the default) or ``quick``."""

PEER_THREADS = int(os.environ.get("FASTWIN_BENCH_PEER_THREADS", "2"))
"""Threads that polars and DuckDB may use; fastwin uses one."""

# polars reads it when it is imported.
os.environ.setdefault("POLARS_MAX_THREADS", str(PEER_THREADS))


@dataclass(frozen=True)
class Scale:
    """Sizes and patience.

    items: how many timestamps, intervals, timers, keys a microbenchmark takes.
    events: rows of the tables. keys: distinct keys among them.
    attempts: how often each contender runs at least, and at_most; more than ``attempts`` while it has run for less
        than ``enough_s`` in all, fewer (but two) once it has run for more than ``patience_s``.
    batch_events, batches, spark_attempts: Spark's micro-batches; the first one of each attempt is not counted.
    spark_enough_s: a contender on Spark that has run for so long in all has run often enough: one attempt of a slow one
        is the mean of minutes.
    spark_warm_s: how long each contender on Spark runs before anything counts: the JVM compiles what is used often.
    """

    name: str
    items: int
    events: int
    keys: int
    attempts: int
    at_most: int
    enough_s: float
    patience_s: float
    batch_events: int
    batches: int
    spark_attempts: int
    spark_enough_s: float
    spark_warm_s: float


SCALES = {
    scale.name: scale
    for scale in (
        Scale("full", 1_000_000, 4_000_000, 100_000, 5, 30, 0.5, 15.0, 2_000_000, 8, 3, 120.0, 60.0),
        Scale("quick", 100_000, 400_000, 10_000, 2, 5, 0.05, 1.0, 100_000, 3, 1, 20.0, 0.0),
    )
}


def chosen() -> Scale:
    """Returns the scale that the environment asks for; raises ValueError if there is none of that name."""
    name = os.environ.get(VARIABLE, "full")
    if name not in SCALES:
        raise ValueError(f"{VARIABLE}: must be one of {', '.join(SCALES)}, got {name!r}")
    return SCALES[name]


def amount(n: float) -> str:
    """Returns a number for people: ``4 M``, ``100 k``, ``480``.

    >>> amount(4_000_000), amount(12_345_678), amount(870), amount(1.5)
    ('4 M', '12.3 M', '870', '1.5')
    """
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if n >= size:
            return f"{n / size:.3g}{unit}"
    return f"{n:.3g}"
