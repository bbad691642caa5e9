"""State beyond the budget through Spark: its workers keep it on the local disk, and the answers stay the same."""

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException

import fastwin as fw
from tests.support.disk import files_on_disk
from tests.support.limited_daemon import ROOM_VARIABLE
from tests.support.spark_streams import assert_replayed, assert_same_rows, run_stream

SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("ms", tz="UTC")), ("v", pa.int64())])
SPEC = (
    fw.key_by("k")
    .event_time("ts")
    .window(fw.SlidingEventTimeWindows.of("1 minute", "10 seconds"))
    .aggregate(n=fw.Count(), most=fw.Max("v"))
)
KEYS, BATCHES = 20_000, 4


def rows(batch: int) -> pa.Table:
    rng = np.random.default_rng(batch)
    keys = np.arange(KEYS) if batch == 0 else rng.integers(0, KEYS + 500 * batch, 5_000)
    times = 1_700_000_000_000 + 10_000 * batch + rng.integers(0, 10_000, len(keys))
    return pa.table({"k": keys, "ts": times, "v": rng.integers(0, 99, len(keys))}).cast(SCHEMA)


@pytest.fixture
def disk():
    with files_on_disk() as folder:
        yield folder


def test_state_beyond_the_budget_lies_on_the_disk(spark, tmp_path, monkeypatch, disk):
    environment = {"FASTWIN_LIVE_BYTES": str(1 << 20), "FASTWIN_SPILL_DIR": str(disk)}
    for name, value in environment.items():
        monkeypatch.setitem(spark.sparkContext.environment, name, value)
    tables = [rows(batch) for batch in range(BATCHES)]
    batches = run_stream(spark, SPEC, tables, tmp_path, watermark="0 seconds")
    assert_replayed(SPEC, tables, batches)
    fed = [batch.counters for batch in batches if batch.inputs]
    assert all(counters["spilled_bytes"] > 1 << 20 for counters in fed)
    assert all(counters["live_bytes"] <= 1 << 20 for counters in fed)
    assert sum(counters["streams_kept"] + counters["streams_caught_up"] for counters in fed) > 0


ROOM = 24 << 20
DAY_MS = 86_400_000
VALUES = [f"v{i}" for i in range(8)]
WIDE = (
    fw.key_by("k")
    .event_time("ts")
    .window(fw.TumblingEventTimeWindows.of("1 day"))
    .aggregate(**{f"sum_{v}": fw.Sum(v) for v in VALUES}, **{f"most_{v}": fw.Max(v) for v in VALUES})
)
WIDE_KEYS, WIDE_BATCHES = 30_000, 10
DELAY_DAYS = 100


def wide_rows(batch: int, keys: int = WIDE_KEYS) -> pa.Table:
    """Returns rows of keys of their own, all within one day."""
    ids = np.arange(batch * WIDE_KEYS, batch * WIDE_KEYS + keys)
    times = pa.array(np.full(keys, (19_700 + batch) * DAY_MS), pa.timestamp("ms", tz="UTC"))
    return pa.table({"k": ids, "ts": times} | {v: ids + i for i, v in enumerate(VALUES)})


WRAPPER = f"""#!/bin/sh
[ "$2" != pyspark.daemon ] || {{ shift 2; set -- -m tests.support.limited_daemon "$@"; }}
exec "{sys.executable}" "$@"
"""


@pytest.fixture
def limited(spark, tmp_path, monkeypatch):
    """Workers that may take ROOM bytes more than they have after their first visit."""
    wrapper = tmp_path / "python"
    wrapper.write_text(WRAPPER)
    wrapper.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(wrapper))
    environment = {ROOM_VARIABLE: str(ROOM), "MALLOC_ARENA_MAX": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}
    environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    for name, value in environment.items():
        monkeypatch.setitem(spark.sparkContext.environment, name, value)


WIDE_TABLES = [*map(wide_rows, range(WIDE_BATCHES)), wide_rows(DELAY_DAYS + 1, keys=1)]


@pytest.mark.long
def test_a_worker_of_limited_memory_holds_more_state_than_that(spark, tmp_path, monkeypatch, disk, limited):
    for name, value in {"FASTWIN_LIVE_BYTES": str(4 << 20), "FASTWIN_SPILL_DIR": str(disk)}.items():
        monkeypatch.setitem(spark.sparkContext.environment, name, value)
    batches = run_stream(spark, WIDE, WIDE_TABLES, tmp_path, watermark=f"{DELAY_DAYS} days")
    assert_same_rows(pa.concat_tables([batch.rows for batch in batches]), WIDE.run(wide_rows(0)).main)
    assert max(batch.counters["spilled_bytes"] for batch in batches) > 2 * ROOM


@pytest.mark.long
def test_without_a_budget_it_ends_there(spark, tmp_path, limited):
    with pytest.raises(StreamingQueryException, match="MemoryError"):
        run_stream(spark, WIDE, WIDE_TABLES, tmp_path, watermark=f"{DELAY_DAYS} days")
