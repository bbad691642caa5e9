"""What state costs on Spark as it grows: ``python -m bench.spark_state``.

The same input (events of 50,000 keys a micro-batch) over 0.1 M, 1 M and 5 M resident rows of state, for so many
micro-batches that all rows of the largest are repeated twice, and that Spark uploads snapshots of its store. Prints the
time of a micro-batch and the bytes that it adds to the checkpoint; writes results/spark_state.json and spark_state.png.
With ``--sliding`` each row is in 24 windows of a day; ``--batches`` counts fewer micro-batches, ``--partitions`` and
``--rows`` choose shares and sizes. With any of these it only prints.
"""

import argparse
import json
import os
import statistics
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import fastwin as fw
import spark_glue
from bench.events import EPOCH_MS
from bench.lab import DELAY, Input, Lab, open_lab
from bench.scale import PEER_THREADS

__all__ = ["WARM", "main", "measure", "write_files"]

RESULTS = Path(__file__).parent / "results"
DAY_MS = 86_400_000
MIDNIGHT_MS = EPOCH_MS - EPOCH_MS % DAY_MS
FILL_EVENTS = 1_000_000
TOUCHED, EVENTS_A_KEY = 50_000, 4
# The largest state is repeated after about 300 micro-batches, and after each 300 more.
WARM = 150  # micro-batches after the filling that do not count
BATCHES = 600
Point = dict[str, Any]


def _write(folder: Path, number: int, keys: np.ndarray, random: np.random.Generator) -> None:
    times = np.full(len(keys), MIDNIGHT_MS + 1_000 * number, dtype=np.int64)
    columns = {
        "key": keys,
        "ts": pa.array(times, pa.timestamp("ms", tz="UTC")),
        "value": random.integers(0, 99, len(keys)),
    }
    path = folder / f"{number:04d}.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=-(-len(keys) // PEER_THREADS))
    os.utime(path, (1_600_000_000 + number,) * 2)


def write_files(folder: Path, rows: int, batches: int) -> int:
    """Writes a file for each micro-batch; returns how many of them fill the state."""
    random = np.random.default_rng(rows)
    names = random.permutation(rows).astype(np.int64) * 7_919
    filling = [names[at : at + FILL_EVENTS] for at in range(0, rows, FILL_EVENTS)]
    touched = min(TOUCHED, rows)
    for number in range(len(filling) + batches):
        if number < len(filling):
            keys = filling[number]
        else:
            keys = np.repeat(random.choice(names, touched, replace=False), EVENTS_A_KEY)
            random.shuffle(keys)
        _write(folder, number, keys, random)
    return len(filling)


def measure(lab: Lab, rows: int, batches: int, sliding: bool = False) -> Point:
    """Fills ``rows`` rows and counts what each of ``batches`` micro-batches after that takes.

    sliding: windows of a day slide by the hour; else they tumble. None of them ends.
    """
    day = fw.SlidingEventTimeWindows.of("1 day", "1 hour") if sliding else fw.TumblingEventTimeWindows.of("1 day")
    spec = fw.key_by("key").event_time("ts").window(day)
    spec = spec.aggregate(n=fw.Count(), s=fw.Sum("value"), lo=fw.Min("value"), hi=fw.Max("value"))

    def query(given: Input) -> Any:
        return spark_glue.apply(spec, given.frame, watermark=DELAY)

    with tempfile.TemporaryDirectory() as name, lab.checkpoint() as checkpoint:
        warm = min(WARM, batches)
        first = write_files(Path(name), rows, warm + batches) + warm
        running = lab.start(query, "RocksDB", Path(name), checkpoint)
        try:
            running.awaitTermination()
            progress = [one for one in running.recentProgress if first <= one["batchId"] < first + batches]
        finally:
            running.stop()
        since = datetime.fromisoformat(progress[0]["timestamp"]).timestamp()
        told = [(path.suffix, path.stat()) for path in (checkpoint / "state").rglob("*") if path.is_file()]
    added = [(suffix, one.st_size) for suffix, one in told if one.st_mtime >= since]
    seconds = sorted(one["durationMs"]["triggerExecution"] / 1_000 for one in progress)
    written = sorted(spark_glue.counters(one)["fastwin"]["state_bytes"] for one in progress)
    return {
        "rows": rows,
        "batches": len(seconds),
        "p50 s": statistics.median(seconds),
        "p95 s": _p95(seconds),
        "longest s": seconds[-1],
        "p50 state bytes": statistics.median(written),
        "p95 state bytes": _p95(written),
        "state bytes a batch": statistics.mean(written),
        "changelog bytes a batch": sum(size for suffix, size in added if suffix == ".changelog") / len(seconds),
        "checkpoint bytes a batch": sum(size for _, size in added) / len(seconds),
        "checkpoint bytes in all": sum(one.st_size for _, one in told),
        "seconds": [one["durationMs"]["triggerExecution"] / 1_000 for one in progress],
    }


def _p95(ordered: list[Any]) -> Any:
    return ordered[round(0.95 * (len(ordered) - 1))]


def _draw(found: list[Point], target: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    rows = [point["rows"] for point in found]
    for measure_, text in (("p50 s", "median"), ("p95 s", "95th percentile")):
        left.plot(rows, [point[measure_] for point in found], "o-", label=text)
    left.set_title("seconds for a micro-batch of 200,000 events", fontsize=9, loc="left")
    left.legend(fontsize=8, frameon=False)
    lines = {
        "checkpoint bytes a batch": "mean, with RocksDB's snapshots",
        "state bytes a batch": "mean, with rows repeated",
        "p50 state bytes": "median",
    }
    for measure_, text in lines.items():
        right.plot(rows, [point[measure_] / 1e6 for point in found], "o-", label=text)
    right.set_title("MB added to the checkpoint for each", fontsize=9, loc="left")
    right.legend(fontsize=8, frameon=False)
    for axis in (left, right):
        axis.set_xscale("log")
        axis.set_ylim(bottom=0)
        axis.set_xlabel("resident rows of state")
        axis.grid(color="#dddddd", linewidth=0.6)
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
    figure.savefig(target, dpi=110)
    plt.close(figure)


def main() -> None:
    """Measures, prints and keeps everything."""
    parser = argparse.ArgumentParser(prog="python -m bench.spark_state", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes: only shows that everything runs")
    parser.add_argument("--sliding", action="store_true", help="windows of a day that slide by the hour")
    parser.add_argument("--batches", type=int, default=BATCHES, help=f"how many count, {BATCHES} if not given")
    parser.add_argument(
        "--partitions", type=int, help="shuffle partitions, and so shares; as many as cores if not given"
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000, 5_000_000], help="of state")
    chosen = parser.parse_args()
    quick = chosen.quick
    sizes = (1_000, 10_000) if quick else chosen.rows
    micro_batches = -(-max(sizes) // FILL_EVENTS) + WARM + chosen.batches + 1
    found = []
    with open_lab() as lab:
        # What is added is counted in the end, so nothing of it may be removed before; nor may progress be forgotten.
        for name in ("minBatchesToRetain", "numRecentProgressUpdates"):
            lab.spark.conf.set(f"spark.sql.streaming.{name}", str(micro_batches))
        if chosen.partitions is not None:
            lab.spark.conf.set("spark.sql.shuffle.partitions", chosen.partitions)
        for rows in sizes:
            found.append(measure(lab, rows, 5 if quick else chosen.batches, chosen.sliding))
            print(_line(found[-1]), flush=True)
    least, most = found[0], found[-1]
    for name in ("p50 s", "p95 s", "p50 state bytes", "state bytes a batch", "checkpoint bytes a batch"):
        print(f"{name}: {most[name] / least[name]:.2f}x from {least['rows']:,} to {most['rows']:,} rows")
    if chosen == parser.parse_args([]):
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "spark_state.json").write_text(json.dumps(found, indent=1) + "\n")
        _draw(found, RESULTS / "spark_state.png")


def _line(point: Point) -> str:
    return ", ".join(
        f"{name} {value:,.3g}" if isinstance(value, float) else f"{name} {value:,}"
        for name, value in point.items()
        if name != "seconds"
    )


if __name__ == "__main__":
    main()
