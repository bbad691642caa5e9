"""State beyond the budget through Spark: its workers keep it on the local disk, and the answers stay the same."""

import numpy as np
import pyarrow as pa
import pytest

import fastwin as fw
from tests.support.disk import files_on_disk
from tests.support.spark_streams import assert_replayed, run_stream

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
