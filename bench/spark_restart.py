"""What a start from a checkpoint costs: ``python -m bench.spark_restart``.

Fills the state of a Spark query with 5 M rows (windows of a day that tumble, four aggregates), lets 150 micro-batches
touch 50,000 keys each, and stops it. Then the query starts again and again in the same JVM, each time from a copy of
that checkpoint, and without copies of deltas. Prints what the first micro-batches of each start take, and where that
goes: planning, loading the shares, and how many of these the second micro-batch loads once more.
"""

import argparse
import contextlib
import shutil
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastwin as fw
from bench.lab import DELAY, Input, Lab, open_lab
from bench.spark_state import WARM, write_files
from spark_glue.progress import batch_metrics

__all__ = ["main"]

MORE = 3  # micro-batches of each start
PRACTICE = 2  # starts that do not count: a JVM is not warm before
_TIMES = ("triggerExecution", "queryPlanning", "addBatch")
_COUNTED = ("load_ms", "write_ms", "streams_loaded", "deltas_loaded", "copies_hit", "log_bytes")


def _query(given: Input) -> Any:
    import spark_glue

    spec = fw.key_by("key").event_time("ts").window(fw.TumblingEventTimeWindows.of("1 day"))
    spec = spec.aggregate(n=fw.Count(), s=fw.Sum("value"), lo=fw.Min("value"), hi=fw.Max("value"))
    return spark_glue.apply(spec, given.frame, watermark=DELAY)


def _run(lab: Lab, files: Path, checkpoint: Path) -> list[Any]:
    running = lab.start(_query, "RocksDB", files, checkpoint)
    try:
        running.awaitTermination()
        return list(running.recentProgress)
    finally:
        running.stop()


def fill(lab: Lab, folder: Path, rows: int, batches: int) -> None:
    """Writes ``files`` and ``checkpoint`` into a folder: a query's that has stopped, before its last files came."""
    files = folder / "files"
    files.mkdir()
    write_files(files, rows, batches + MORE)
    late = sorted(files.glob("*.parquet"))[-MORE:]
    (folder / "late").mkdir()
    for path in late:
        path.rename(folder / "late" / path.name)
    _run(lab, files, folder / "checkpoint")
    for path in late:
        (folder / "late" / path.name).rename(path)


def start(lab: Lab, folder: Path) -> list[dict[str, Any]]:
    """Starts the query from a copy of its checkpoint; returns what each of its micro-batches took and counted."""
    jvm = lab.spark._jvm
    assert jvm is not None
    jvm.org.apache.spark.sql.execution.streaming.state.StateStore.stop()
    jvm.System.gc()
    with tempfile.TemporaryDirectory(dir=folder) as name:
        checkpoint = Path(name) / "checkpoint"
        shutil.copytree(folder / "checkpoint", checkpoint)
        progress = _run(lab, folder / "files", checkpoint)
    return [
        {name: one["durationMs"].get(name, 0) for name in _TIMES} | {name: getattr(counted, name) for name in _COUNTED}
        for one in progress
        for counted in batch_metrics(one)
    ]


@contextlib.contextmanager
def _folder(keep: str | None) -> Iterator[Path]:
    if keep is not None:
        Path(keep).mkdir(parents=True, exist_ok=True)
        yield Path(keep)
        return
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(prog="python -m bench.spark_restart", description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000, help="of state")
    parser.add_argument("--batches", type=int, default=WARM, help=f"after the filling, {WARM} if not given")
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--keep", metavar="FOLDER", help="the checkpoint is made there, unless there is one, and stays")
    chosen = parser.parse_args()
    with open_lab() as lab, _folder(chosen.keep) as folder:
        if not (folder / "checkpoint").exists():
            fill(lab, folder, chosen.rows, chosen.batches)
        firsts = []
        for number in range(-PRACTICE, chosen.starts):
            found = start(lab, folder)
            firsts += [found[0]["triggerExecution"] / 1_000] if number >= 0 else []
            print(f"start {number}:" if number >= 0 else "practice:", *found, sep="\n  ", flush=True)
    print(
        f"first micro-batch: best {min(firsts):.2f} s, median {statistics.median(firsts):.2f} s of {len(firsts)} starts"
    )


if __name__ == "__main__":
    main()
