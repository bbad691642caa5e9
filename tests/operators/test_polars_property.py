"""What polars gives for the aggregates that both have: tumbling, sliding and session windows over the same rows."""

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import fastwin as fw

SIZE_MS, SLIDE_MS, GAP_MS = 60_000, 20_000, 9_000
OURS = {
    "n": fw.Count(),
    "total": fw.Sum("i"),
    "least": fw.Min("i"),
    "most": fw.Max("x"),
    "sum": fw.Sum("x"),
    "mean": fw.Mean("x"),
    "variance": fw.Variance("x"),
    "deviation": fw.StdDev("i"),
}
THEIRS = {
    "n": pl.len(),
    "total": pl.col("i").sum(),
    "least": pl.col("i").min(),
    "most": pl.col("x").max(),
    "sum": pl.col("x").sum(),
    "mean": pl.col("x").mean(),
    "variance": pl.col("x").var(),
    "deviation": pl.col("i").std(),
}


def rows(seed: int, n: int) -> pa.Table:
    """Rows of some keys, times from before 1970 on, with nulls among the floats."""
    random = np.random.default_rng(seed)
    times = random.integers(-300_000, 2_000_000, n)
    floats = random.normal(0, 10.0 ** random.integers(-3, 6, n))
    return pa.table(
        {
            "k": pa.array(random.integers(0, 25, n)),
            "ts": pa.array(times, pa.timestamp("ms", tz="UTC")),
            "i": pa.array(random.integers(-(10**9), 10**9, n)),
            "x": pa.array(floats, mask=random.random(n) < 0.1),
        }
    )


def by_polars(table: pa.Table, windows: str) -> pl.DataFrame:
    frame = pl.from_arrow(table).sort("ts")
    aggregates = [expression.alias(name) for name, expression in THEIRS.items()]
    if windows == "sessions":
        begins = (pl.col("ts").diff().over("k") > pl.duration(milliseconds=GAP_MS)).fill_null(True)
        frame = frame.with_columns(begins.cum_sum().over("k").alias("session"))
        start = pl.col("ts").min().alias("window_start")
        return frame.group_by("k", "session").agg(start, *aggregates).drop("session")
    every = SIZE_MS if windows == "tumbling" else SLIDE_MS
    found = frame.group_by_dynamic(
        "ts", every=f"{every}ms", period=f"{SIZE_MS}ms", offset=f"{every - SIZE_MS}ms", group_by="k"
    ).agg(*aggregates)
    return found.rename({"ts": "window_start"})


@pytest.mark.parametrize("n", [1, 300, 20_000])
@pytest.mark.parametrize(
    ("windows", "assigner"),
    [
        ("tumbling", fw.TumblingEventTimeWindows.of(SIZE_MS)),
        ("sliding", fw.SlidingEventTimeWindows.of(SIZE_MS, SLIDE_MS)),
        ("sessions", fw.EventTimeSessionWindows.with_gap(GAP_MS)),
    ],
)
def test_equal_to_polars(windows, assigner, n):
    table = rows(n, n)
    ours = pl.from_arrow(fw.key_by("k").event_time("ts").window(assigner).aggregate(**OURS).run(table).main)
    theirs = by_polars(table, windows)
    ours, theirs = (frame.select("k", "window_start", *OURS).sort("k", "window_start") for frame in (ours, theirs))
    assert ours.height == theirs.height > 0
    for name in ("k", "window_start", "n", "total", "least", "most"):
        assert ours[name].to_list() == theirs[name].to_list(), name
    for name in ("mean", "variance", "deviation"):
        assert ours[name].is_null().to_list() == theirs[name].is_null().to_list(), name
        np.testing.assert_allclose(ours[name].to_numpy(), theirs[name].to_numpy(), rtol=1e-9, err_msg=name)
    # The sum of no values is null here and 0 there.
    np.testing.assert_allclose(ours["sum"].fill_null(0).to_numpy(), theirs["sum"].to_numpy(), rtol=1e-9, atol=1e-6)
