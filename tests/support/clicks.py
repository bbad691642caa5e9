"""Clicks, and what windows over them are by plain counting."""

import numpy as np
import pyarrow as pa

import fastwin as fw
from fastwin import hyperloglog

DAY, HOUR, MINUTE = 86_400_000, 3_600_000, 60_000
FIRST = 1_704_067_200_000  # 2024-01-01
AGGREGATES = {
    "pv": fw.Count(),
    "total": fw.Sum("v"),
    "low": fw.Min("v"),
    "high": fw.Max("x"),
    "last": fw.Max("ts"),
    "mean": fw.Mean("v"),
}


def spec_of(size: str = "24 hours", slide: str = "3 minutes", **aggregates: fw.Aggregate) -> fw.WindowSpec:
    windows = fw.SlidingEventTimeWindows.of(size, slide)
    return fw.key_by("module").event_time("ts").window(windows).aggregate(**(aggregates or AGGREGATES))


def clicks(n: int, modules: int = 5, hours: int = 30, seed: int = 1) -> pa.Table:
    """Returns n clicks in order of time: module, ts, v with nulls, x, user."""
    random = np.random.default_rng(seed)
    times = np.sort(random.integers(FIRST, FIRST + hours * HOUR, n))
    return pa.table(
        {
            "module": pa.array([f"module {i}" for i in random.integers(0, modules, n)]),
            "ts": pa.array(times, pa.timestamp("ms", tz="UTC")),
            "v": pa.array(random.integers(-(10**12), 10**12, n), mask=random.random(n) < 0.1),
            "x": random.normal(size=n),
            "user": pa.array([f"user {i}" for i in random.integers(0, max(n // 3, 1), n)]),
        }
    )


def counted(table: pa.Table, start: int, end: int) -> dict[str, dict]:
    """Returns AGGREGATES over ``[start, end)`` by module."""
    times = table["ts"].cast(pa.int64()).to_numpy()
    found: dict[str, dict] = {}
    rows = table.filter(pa.array((times >= start) & (times < end)))
    for row in rows.to_pylist():
        found.setdefault(row["module"], []).append(row)
    return {module: _aggregated(rows) for module, rows in found.items()}


def _aggregated(rows: list[dict]) -> dict:
    values = [row["v"] for row in rows if row["v"] is not None]
    return {
        "pv": len(rows),
        "total": sum(values) if values else None,
        "low": min(values, default=None),
        "high": max(row["x"] for row in rows),
        "last": max(row["ts"] for row in rows),
        "mean": sum(values) / len(values) if values else None,
    }


def distinct(table: pa.Table, module: str, start: int, end: int) -> int:
    """PFCOUNT's answer; that ours is Redis's is tested elsewhere."""
    times = table["ts"].cast(pa.int64()).to_numpy()
    modules = table["module"].to_numpy(zero_copy_only=False)
    users = table["user"].filter(pa.array((times >= start) & (times < end) & (modules == module)))
    return hyperloglog.estimate(hyperloglog.sketch(users))


def by_module(table: pa.Table) -> dict[str, dict]:
    """Returns the rows of a query without the window's bounds."""
    return {row.pop("module"): _without_bounds(row) for row in table.to_pylist()}


def _without_bounds(row: dict) -> dict:
    return {name: value for name, value in row.items() if name not in ("window_start", "window_end")}
