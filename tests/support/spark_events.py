"""Random events for the tests on Spark."""

from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pyarrow as pa

# Neither UTC nor the machine's: a mix-up of time zones shall show.
TIME_ZONE = "Europe/Berlin"
START_MS = 1_700_000_000_000

Keys = Callable[[np.random.Generator, int], dict[str, pa.Array]]


def _nullable(rng: np.random.Generator, values: list, kind: pa.DataType) -> pa.Array:
    return pa.array(
        [None if hit else value for value, hit in zip(values, rng.random(len(values)) < 0.1, strict=True)], kind
    )


def _drawn(name: str, pool: list, kind: pa.DataType) -> Keys:
    def draw(rng: np.random.Generator, n: int) -> dict[str, pa.Array]:
        return {name: _nullable(rng, [pool[i] for i in rng.integers(0, len(pool), n)], kind)}

    return draw


def _several(*draws: Keys) -> Keys:
    def draw(rng: np.random.Generator, n: int) -> dict[str, pa.Array]:
        columns: dict[str, pa.Array] = {}
        for each in draws:
            columns |= each(rng, n)
        return columns

    return draw


KEYS: dict[str, Keys] = {
    "string": _drawn("k", ["", "a", "b", "ä", "a\x00", "long " * 20], pa.string()),
    "binary": _drawn("k", [b"", b"a", b"\x00", b"\xff\xfe"], pa.binary()),
    "tinyint": _drawn("k", [-128, 0, 127], pa.int8()),
    "smallint": _drawn("k", [-32768, 0, 32767], pa.int16()),
    "int": _drawn("k", [-(2**31), -1, 0, 2**31 - 1], pa.int32()),
    "bigint": _drawn("k", [-(2**63), -1, 0, 1, 2**63 - 1], pa.int64()),
    "boolean": _drawn("k", [True, False], pa.bool_()),
    "date": _drawn("k", [-1, 0, 19_000], pa.date32()),
    "timestamp": _drawn("k", [-1, 0, START_MS * 1000 + 1], pa.timestamp("us", tz="UTC")),
    "timestamp_ntz": _drawn("k", [-1, 0, START_MS * 1000 + 1], pa.timestamp("us")),
    "decimal": _drawn("k", [Decimal("-1.50"), Decimal("0.00"), Decimal("99999999.99")], pa.decimal128(10, 2)),
    "wide decimal": _drawn("k", [Decimal(10) ** 37, -(Decimal(10) ** 37), Decimal(0)], pa.decimal128(38, 0)),
    "double": _drawn("k", [-0.0, 0.0, 1.5, float("inf")], pa.float64()),
    "several": _several(
        _drawn("a", ["x", "y", ""], pa.string()),
        _drawn("b", [1, 2], pa.int32()),
        _drawn("c", [True, False], pa.bool_()),
    ),
    "none": lambda rng, n: {},
}


def key_names(kind: str) -> list[str]:
    """Returns the names of the key columns that KEYS[kind] draws."""
    return list(KEYS[kind](np.random.default_rng(0), 1))


def events(
    seed: int,
    n: int,
    *,
    keys: str = "bigint",
    start_ms: int = START_MS,
    span_ms: int = 600_000,
    null_times: float = 0.0,
) -> pa.Table:
    """Returns random events: key columns, ``ts``, ``v`` (int64) and ``x`` (float64), both null at times.

    The floats are small multiples of 1/8, so that their sums are exact in any order.
    """
    rng = np.random.default_rng(seed)
    times = (start_ms + rng.integers(0, span_ms, n)) * 1000 + rng.integers(0, 1000, n)
    return pa.table(
        KEYS[keys](rng, n)
        | {
            "ts": pa.array(times, pa.timestamp("us", tz="UTC"), mask=rng.random(n) < null_times),
            "v": pa.array(rng.integers(-1000, 1000, n), mask=rng.random(n) < 0.1),
            "x": pa.array(rng.integers(-80, 80, n) / 8, mask=rng.random(n) < 0.1),
        }
    )
