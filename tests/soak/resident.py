"""Hundreds of micro-batches with keys that come and go: everything that a query holds returns to where it was.

Every wave, the number of keys in a micro-batch rises and falls, and all keys are new ones. At the bottom of each wave it
is measured what is held.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import fastwin as fw
import spark_glue
from spark_glue.state.folders import cache_root
from tests.support.spark_streams import Source, start

__all__ = ["Held", "assert_returned", "run"]

_BASE = fw.key_by("k").event_time("ts")
SPECS = {
    "sliding": _BASE.window(fw.SlidingEventTimeWindows.of("1 minute", "20 seconds")).allowed_lateness("10 seconds"),
    "sessions": _BASE.window(fw.EventTimeSessionWindows.with_gap("15 seconds")),
    "early": _BASE.window(fw.TumblingEventTimeWindows.of("1 minute")).trigger(
        fw.after_watermark(early=fw.CountTrigger.of(3))
    ),
}
STEP_MS = 10_000
LEAST, MOST = 50, 1_000  # keys in a micro-batch, at the bottom and the top of a wave


@dataclass
class Held:
    """What is held after a micro-batch.

    open_windows, state_rows: by the counters. log_values, log_bytes: deltas and heads in the state store. cache_files,
    cache_bytes: in the shared folder. workers, worker_mb: Spark's Python processes and their memory. checkpoint_mb: on
    disk, old versions included.
    """

    batch: int
    open_windows: int = 0
    state_rows: int = 0
    log_values: int = 0
    log_bytes: int = 0
    cache_files: int = 0
    cache_bytes: int = 0
    workers: int = 0
    worker_mb: float = 0.0
    checkpoint_mb: float = 0.0

    def __str__(self) -> str:
        return ", ".join(
            f"{name} {value:,.4g}" if isinstance(value, float) else f"{name} {value:,}"
            for name, value in asdict(self).items()
        )


def _input(number: int, wave: int, kind: np.random.Generator) -> pa.Table:
    """Returns the rows of a micro-batch; how many and when depends on its place in the wave alone."""
    phase = np.sin(np.pi * (number % wave) / wave) ** 2
    keys = int(LEAST + (MOST - LEAST) * phase)
    ids = np.repeat(np.arange(keys) + number * MOST // 4, 3)
    times = number * STEP_MS + (np.arange(len(ids)) * 7919) % STEP_MS
    order = kind.permutation(len(ids))
    return pa.table(
        {
            "k": ids[order],
            "ts": pa.array(times[order] * 1000 + 1_700_000_000_000_000, pa.timestamp("us", tz="UTC")),
            "v": kind.integers(0, 1000, len(ids)),
        }
    )


def run(
    spark: SparkSession, folder: Path, batches: int, wave: int, tell: Callable[[str], object] = print
) -> list[Held]:
    """Runs the query and returns what was held at the bottom of each wave.

    wave: micro-batches; a multiple of six, so that all windows of a minute lie alike in it.
    """
    assert wave % 6 == 0
    source = Source(folder, _input(0, wave, np.random.default_rng(0)).schema)
    for number in range(batches + 1):
        source.put(_input(number, wave, np.random.default_rng(number)))
    stream = source.frame(spark)
    frames = [
        spark_glue.apply(
            spec.aggregate(n=fw.Count(), total=fw.Sum("v")), stream, watermark="5 seconds", key_groups=8, name=name
        )
        for name, spec in SPECS.items()
    ]
    results = frames[0].unionByName(frames[1]).unionByName(frames[2])
    held: list[Held] = []

    def write(frame, batch_id: int) -> None:
        frame.write.format("noop").mode("append").save()
        if batch_id and batch_id % wave == 0:
            now = Held(batch_id)
            now.log_values, now.log_bytes = _log(spark, folder / "checkpoint", batch_id - 1)
            files = [path.stat().st_size for path in cache_root().glob("*/*") if not path.name.startswith(".")]
            now.cache_files, now.cache_bytes = len(files), sum(files)
            memory = list(_workers(os.getpid()))
            now.workers, now.worker_mb = len(memory), sum(memory) / 2**20
            now.checkpoint_mb = sum(p.stat().st_size for p in _files(folder / "checkpoint")) / 2**20
            held.append(now)
            tell(f"micro-batch {batch_id} of {batches}: {now.worker_mb:.0f} MB in {now.workers} workers")

    query = start(results, folder, write, available_now=True)
    query.awaitTermination()
    changes = {name: np.zeros(batches + 2, np.int64) for name in ("open_windows", "state_rows")}
    for progress in query.recentProgress:
        for counted in spark_glue.counters(progress).values():
            for name, change in changes.items():
                if progress["batchId"] < len(change):
                    change[progress["batchId"]] += counted[f"{name}_change"]
    for now in held:
        now.open_windows, now.state_rows = (int(change[: now.batch + 1].sum()) for change in changes.values())
    return held


def assert_returned(held: list[Held]) -> None:
    """Raises AssertionError unless what was held at the end is what was held at the bottom of the second wave."""
    first, last = held[1], held[-1]
    assert last.batch > first.batch
    assert (last.open_windows, last.state_rows) == (first.open_windows, first.state_rows), f"{first} / {last}"
    for name, spare in (("log_values", 30), ("log_bytes", 100_000), ("cache_files", 30), ("cache_bytes", 100_000)):
        before, now = getattr(first, name), getattr(last, name)
        assert now <= 1.5 * before + spare, f"{name}: {before} at micro-batch {first.batch}, {now} at {last.batch}"
    most, now = first.worker_mb / first.workers, last.worker_mb / last.workers
    assert now <= 1.25 * most + 16, f"MB of a worker: {most} at micro-batch {first.batch}, {now} at {last.batch}"


def _log(spark: SparkSession, checkpoint: Path, batch_id: int) -> tuple[int, int]:
    """Returns how many values fastwin has in the state store after a micro-batch, and their bytes."""
    count = size = 0
    for operator in range(len(SPECS)):
        for variable, column in (("chunks", "user_map_value.data"), ("head", "value.head")):
            found = (
                spark.read.format("statestore")
                .option("operatorId", operator)
                .option("batchId", batch_id)
                .option("stateVarName", variable)
                .load(str(checkpoint))
                .agg(F.count("*"), F.coalesce(F.sum(F.length(column)), F.lit(0)))
                .first()
            )
            count, size = count + found[0], size + found[1]
    return count, size


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file())


def _workers(ancestor: int) -> Iterator[int]:
    """Yields the resident bytes of Spark's Python workers below a process."""
    parents, commands = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                commands[int(entry.name)] = (entry / "cmdline").read_text()
            except OSError:
                continue
    for pid, parent in parents.items():
        if "daemon" in commands[pid] and "daemon" in commands.get(parent, "") and _below(pid, ancestor, parents):
            try:
                yield int((Path("/proc") / str(pid) / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
            except OSError:
                continue


def _below(pid: int, ancestor: int, parents: dict[int, int]) -> bool:
    while pid in parents:
        pid = parents[pid]
        if pid == ancestor:
            return True
    return False
