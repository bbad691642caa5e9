"""What a worker pays for a share that it had before, or that another worker had: ``python -m bench.second_load``.

One share over the code of ``spark_glue`` that keeps state; the state store is a dict, so what Spark takes to read from
it comes on top. A worker opens the share after micro-batches that ran elsewhere: it has a stream that is some deltas
behind, or none, with and without copies of the deltas on the machine. Processor time, and the bytes that are read.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

import fastwin as fw
from spark_glue.state.copies import Shelf
from spark_glue.state.live import LiveStreams
from spark_glue.state.log import Identity, StateLog
from spark_glue.state.shares import Opened, States
from tests.support.spark_fakes import FakeHandle
from tests.support.spark_jobs import frame_plan_for

__all__ = ["main"]

GROUPS = 64
SPEC = (
    fw.key_by("k")
    .event_time("ts")
    .window(fw.TumblingEventTimeWindows.of("1 day"))
    .aggregate(n=fw.Count(), s=fw.Sum("v"), lo=fw.Min("v"), hi=fw.Max("v"))
)
NONE = 1 << 30  # deltas behind: the worker has no stream


class Share:
    """A share of ``rows`` rows, of which each micro-batch touches ``touched``."""

    def __init__(self, root: Path, rows: int, touched: int) -> None:
        self._rows, self._touched, self._rng = rows, touched, np.random.default_rng(0)
        self._plan = frame_plan_for(self._table(np.arange(1)), SPEC, key_groups=GROUPS)
        plan = self._plan.plan
        self._log = StateLog(FakeHandle(), Identity(plan.fingerprint.hex(), plan.config.state, GROUPS, 1))
        self._root = root
        self.here, self.elsewhere = LiveStreams(1 << 40), LiveStreams(1 << 40)

    def _table(self, keys: np.ndarray) -> pa.Table:
        return pa.table({"k": keys, "ts": np.zeros(len(keys), np.int64), "v": keys})

    def states(self, live: LiveStreams, copies: bool = True) -> States:
        """Returns what a worker opens and stores streams with. copies: whether the machine has some."""
        shelf = Shelf("run" if copies else f"none-{time.monotonic_ns()}", self._root, 1 << 40)
        return States(self._plan, self._log, 1, shelf, "run", live)

    def batch(self, live: LiveStreams, keys: np.ndarray | None = None) -> None:
        """Runs a micro-batch on a worker; keys: all at first."""
        states = self.states(live)
        opened = states.open(0)
        opened.stream.process(self._table(self._rng.integers(0, self._rows, self._touched) if keys is None else keys))
        states.store(0, opened, opened.stream.metrics, None)

    def opened(self, live: LiveStreams, copies: bool) -> tuple[float, Opened]:
        """Returns the ms of processor time that opening takes, and what it gave."""
        states = self.states(live, copies)
        begun = time.process_time()
        found = states.open(0)
        return 1e3 * (time.process_time() - begun), found


def main(arguments: list[str] | None = None) -> None:
    """Measures and prints a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.second_load", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the share's state")
    parser.add_argument("--touched", type=int, default=25_000, help="rows of a micro-batch")
    parser.add_argument("--batches", type=int, default=100, help="before anything is measured")
    parser.add_argument("--repeats", type=int, default=5)
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        share = Share(Path(name) / "shelf", chosen.rows, chosen.touched)
        for keys in np.array_split(np.arange(chosen.rows), 10):
            share.batch(share.elsewhere, keys)
        for _ in range(chosen.batches):
            share.batch(share.elsewhere)
        print(
            f"{chosen.rows:,} rows, {chosen.touched:,} of them touched by a micro-batch; medians of {chosen.repeats}:"
        )
        print(f"{'behind':>8} {'copies':>7} {'how':>10} {'ms':>8} {'deltas':>7} {'MB':>7}")
        for behind in (0, 1, 4, 15, NONE):
            for copies in (True, False):
                taken = []
                for _ in range(chosen.repeats):
                    share.here.clear()
                    if behind != NONE:
                        share.batch(share.here)
                        for _ in range(behind):
                            share.batch(share.elsewhere)
                    ms, found = share.opened(share.here, copies)
                    taken.append(ms)
                sizes = [entry.size for entry in found.head.log.entries]
                nbytes = sum(sizes[len(sizes) - found.deltas :])
                told = "no stream" if behind == NONE else behind
                print(
                    f"{told:>8} {'yes' if copies else 'no':>7} {found.how:>10} {statistics.median(taken):8.1f} "
                    f"{found.deltas:7} {nbytes / 1e6:7.1f}"
                )


if __name__ == "__main__":
    main()
