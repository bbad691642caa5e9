"""A query killed at a random moment and started again gives what an undisturbed one gives."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tests.spark.events import events
from tests.spark.killable import spec_of
from tests.spark.streams import Source, replay, rows_of, run_stream

ROOT = Path(__file__).resolve().parents[2]
BATCHES = 8


def tables() -> list[pa.Table]:
    """Events in rough order, so that windows fire in every batch and some rows are late."""
    table = events(3, 4_000, keys="string", span_ms=600_000, null_times=0.01)
    jitter = np.random.default_rng(3).normal(0, 30_000, table.num_rows)
    arrival = pc.fill_null(table["ts"].cast(pa.int64()), 0).to_numpy() / 1000 + jitter
    table = table.take(pa.array(np.argsort(arrival, kind="stable")))
    size = table.num_rows // BATCHES
    return [table.slice(i * size, size) for i in range(BATCHES)]


def launch(name: str, source: Path, checkpoint: Path, output: Path) -> subprocess.Popen:
    command = [sys.executable, "-m", "tests.spark.killable", name, source, checkpoint, output]
    log = (output.parent / "log").open("ab")
    # A session of its own: the JVM and the workers die with the driver.
    return subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, start_new_session=True)


def kill(process: subprocess.Popen) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(30)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tumbling", "sessions"])
def test_killed_and_restarted(spark, tmp_path, name):
    inputs = tables()
    source = Source(tmp_path, inputs[0].schema)
    source.put(*inputs)
    output = tmp_path / "output"
    output.mkdir()
    seed = random.randrange(1 << 30)
    dice = random.Random(seed)
    first = dice.randint(1, BATCHES - 2)

    process = launch(name, source.folder, tmp_path / "checkpoint", output)
    try:
        deadline = time.monotonic() + 180
        while len(list(output.glob("*.parquet"))) < first:
            assert process.poll() is None, (output.parent / "log").read_text()[-2000:]
            assert time.monotonic() < deadline, "the query does not get on"
            time.sleep(0.02)
        time.sleep(dice.uniform(0, 1.5))
    finally:
        kill(process)
    done = len(list(output.glob("*.parquet")))
    assert done >= first

    process = launch(name, source.folder, tmp_path / "checkpoint", output)
    try:
        assert process.wait(180) == 0, (output.parent / "log").read_text()[-2000:]
    finally:
        if process.poll() is None:
            kill(process)

    folder = tmp_path / "undisturbed"
    folder.mkdir()
    whole = run_stream(spark, spec_of(name), inputs, folder, watermark="5 seconds", key_groups=4)
    found = [pq.read_table(path) for path in sorted(output.glob("*.parquet"))]
    assert len(found) == len(whole), f"seed {seed}, killed after {done} batches"
    for batch, (mine, theirs) in enumerate(zip(found, whole, strict=True)):
        assert _flat(mine) == _flat(theirs.rows), f"seed {seed}, killed after {done} batches: batch {batch} differs"
    assert sum(result.late.num_rows for result in replay(spec_of(name), inputs, whole)) > 0


def _flat(table: pa.Table):
    """Rows with the structs spelled out, so that they can be counted."""
    return rows_of(table.flatten().flatten())
