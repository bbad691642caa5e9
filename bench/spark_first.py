"""A user's first minute on Spark, nothing warmed: ``python -m bench.spark_first``.

Each contender starts a JVM of its own, and runs one query over micro-batches of 2 M, 1 M and 0.3 M events. What counts
is the time from the start of the query to its end, without that of the JVM and of the session. Contenders take turns,
and medians count. Rows and sums of the answers are compared.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from bench.events import EPOCH_MS, PER_KEY_MS, events
from bench.lab import DISORDER_MS, STORES, open_lab
from bench.scale import PEER_THREADS
from bench.streams import WINDOWS, both, tell

__all__ = ["main"]

SIZES = (2_000_000, 1_000_000, 300_000)
KEYS = 100_000
LIMIT_S = 900


def _write(folder: Path, divisor: int) -> int:
    """Writes a file for each micro-batch, and one that closes all windows; returns how many events they hold."""
    first, total = EPOCH_MS, 0
    for number, size in enumerate((*(size // divisor for size in SIZES), 1)):
        keys = max(KEYS // divisor, 1)
        span = max(size * PER_KEY_MS // keys, 1)
        first += 0 if size > 1 else 3 * 3_600_000
        table = events(size, keys, span, min(DISORDER_MS, span), seed=900 + number, first_ms=first)
        pq.write_table(table, folder / f"{number:04d}.parquet", row_group_size=-(-size // PEER_THREADS))
        first, total = first + span, total + size
    return total


def _once(name: str, windows: str, files: Path) -> None:
    """Runs one contender in this process and prints what it took and answered."""
    import os

    for number, path in enumerate(sorted(files.glob("*.parquet"))):
        os.utime(path, (1_600_000_000 + number,) * 2)
    with open_lab() as lab, tempfile.TemporaryDirectory() as output:
        start = time.monotonic()
        progress = lab.run(both(windows)[name], STORES.get(name, "RocksDB"), files, Path(output))
        seconds = time.monotonic() - start
        rows = pq.read_table(output, columns=["n", "s"])
        answer = [rows.num_rows, sum(rows["n"].to_pylist()), sum(rows["s"].to_pylist())]
        batches = [one["durationMs"]["triggerExecution"] / 1_000 for one in progress]
    print(json.dumps({"seconds": seconds, "batches": batches, "answer": answer}))


def _started(name: str, windows: str, files: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.spark_first", "--once", name, "--windows", windows, "--files", str(files)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    if done.returncode:
        raise RuntimeError(f"{name} failed: {done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def _measure(windows: str, turns: int, divisor: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="fastwin-bench-"))
    try:
        total = _write(folder, divisor)
        taken: dict[str, list[float]] = {name: [] for name in both(windows)}
        answers = {}
        for _ in range(turns):
            for name, seconds in taken.items():
                found = _started(name, windows, folder)
                seconds.append(found["seconds"])
                answers[name] = found["answer"]
                print(f"  {windows}, {name}: {found['seconds']:.1f} s, of these {found['batches']}", flush=True)
        # What Spark's own windows have not closed when the input ends stays out of their answer, on both sides.
        assert len({tuple(answer) for answer in answers.values()}) == 1, f"the answers differ: {answers}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    tell(windows, taken, total, "native's faster store in the first minute, nothing warmed")


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(prog="python -m bench.spark_first", description=__doc__)
    parser.add_argument("--windows", choices=WINDOWS, help="all")
    parser.add_argument("--turns", type=int, default=3, help="3")
    parser.add_argument("--divisor", type=int, default=1, help="of events and keys; more than 1 to try it out")
    parser.add_argument("--once", help=argparse.SUPPRESS)
    parser.add_argument("--files", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.once:
        _once(given.once, given.windows, given.files)
        return
    for windows in [given.windows] if given.windows else WINDOWS:
        _measure(windows, given.turns, given.divisor)


if __name__ == "__main__":
    main()
