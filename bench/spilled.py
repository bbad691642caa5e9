"""State of ten times the budget: ``python -m bench.spilled``.

One worker visits the shares of a query in turn, as on Spark, over the code of ``spark_glue`` that keeps state; the
state store is a dict. It runs in a process of its own for each way: all state within the budget; beyond it, in files on
the disk; and beyond it without a disk, so that shares are loaded anew. They take turns, so that all have the same load.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

import numpy as np
import pyarrow as pa

import fastwin as fw
from bench.processes import ending, figure
from fastwin.columns.keys import KeyCodec
from spark_glue.state import folders, live, spilled
from spark_glue.state.copies import Shelf
from spark_glue.state.log import Identity, StateLog
from spark_glue.state.shares import States
from tests.support.spark_fakes import FakeHandle
from tests.support.spark_jobs import frame_plan_for

__all__ = ["main"]

SHARES = 16
SLIDE_MS, SLICES = 1_000, 20
STEPS = 5  # micro-batches for each slide
SPEC = (
    fw.key_by("k")
    .event_time("ts")
    .window(fw.SlidingEventTimeWindows.of(SLICES * SLIDE_MS, SLIDE_MS))
    .aggregate(n=fw.Count(), total=fw.Sum("v"), low=fw.Min("v"), high=fw.Max("v"))
)
WAYS = {"in memory": (1 << 40, "0"), "in files": (None, str(1 << 40)), "loaded anew": (None, "0")}


class Worker:
    """The shares of one worker. budget: bytes; rows: of all shares in a micro-batch."""

    def __init__(self, keys: int, rows: int, budget: int) -> None:
        hashes = KeyCodec.hash((np.arange(keys), None)) % np.uint64(SHARES)
        self._keys = [np.flatnonzero(hashes == share) for share in range(SHARES)]
        self._rows = rows // SHARES
        self._rng = np.random.default_rng(0)
        self._handle = FakeHandle()
        self._plan = frame_plan_for(self._table(self._keys[0][:1], 0), SPEC, key_groups=SHARES)
        plan = self._plan.plan
        self._log = StateLog(self._handle, Identity(plan.fingerprint.hex(), plan.config.state, SHARES, SHARES))
        self._shelf = Shelf("run")
        self._live = live.LiveStreams(budget)
        self.state = 0

    def _table(self, keys: np.ndarray, time_ms: int) -> pa.Table:
        return pa.table({"k": keys, "ts": np.full(len(keys), time_ms), "v": keys})

    def fill(self) -> None:
        """Gives each key an element in each slice."""
        for number in range(SLICES):
            self._batch([self._table(keys, number * SLIDE_MS) for keys in self._keys], -1)

    def step(self, number: int) -> None:
        """Runs a micro-batch of chance keys; each fifth one is of the next slide, and fires a window of all keys."""
        time_ms = SLICES * SLIDE_MS + number * SLIDE_MS // STEPS
        rows = [self._rng.choice(keys, self._rows) for keys in self._keys]
        self._batch([self._table(keys, time_ms) for keys in rows], time_ms // SLIDE_MS * SLIDE_MS - 1)

    def _batch(self, tables: list[pa.Table], watermark: int) -> None:
        self.state = 0
        for share, table in enumerate(tables):
            self._handle.key = share
            states = States(self._plan, self._log, SHARES, self._shelf, "run", self._live)
            opened = states.open(share)
            opened.stream.advance_watermark(watermark)
            opened.stream.process(table)
            after = opened.stream.metrics
            states.store(share, opened, after, None)
            self.state += after.state_bytes

    def sizes(self) -> dict[str, int]:
        """Returns bytes: of state, of what is kept in memory and in files, and of the process."""
        kept = {"state": self.state, "kept": self._live.nbytes, "spilled": self._live.spilled}
        return kept | {name: figure(name) for name in ("RssAnon", "RssFile")}


def work(asked: Connection, folder: str, way: str, keys: int, rows: int, budget: int) -> None:
    """Answers each number with the seconds of that micro-batch, and None with the sizes."""
    limit, spill = WAYS[way]
    os.environ |= {folders.ROOT_VARIABLE: f"{folder}/{way}", spilled.FOLDER_VARIABLE: folder}
    os.environ[spilled.SPILL_VARIABLE] = spill
    worker = Worker(keys, rows, limit or budget)
    worker.fill()
    asked.send(None)
    while (number := asked.recv()) is not None:
        begun = time.perf_counter()
        worker.step(number)
        asked.send(time.perf_counter() - begun)
    asked.send(worker.sizes())


def _measured(chosen: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Returns the times and sizes of each way, ms and bytes."""
    spawned = get_context("spawn")
    pipes: dict[str, Connection] = {}
    processes: list[BaseProcess] = []
    taken: dict[str, list[float]] = {way: [] for way in WAYS}
    told = {}
    with tempfile.TemporaryDirectory(dir=chosen.disk) as folder, ending(processes):
        for way in WAYS:
            pipes[way], asked = spawned.Pipe()
            given = (asked, folder, way, chosen.keys, chosen.rows, chosen.budget)
            processes.append(spawned.Process(target=work, args=given))
            processes[-1].start()
            asked.close()  # what the process has is its own; without it, nothing more comes
            pipes[way].recv()
        for number in range(chosen.batches):
            for way, mine in pipes.items():
                mine.send(number)
                taken[way].append(mine.recv())
        for way, mine in pipes.items():
            mine.send(None)
            slides = taken[way][::STEPS]
            others = [one for i, one in enumerate(taken[way]) if i % STEPS]
            ms, firing_ms = (1e3 * statistics.median(some) for some in (others, slides))
            told[way] = {"ms": ms, "firing_ms": firing_ms} | mine.recv()
        for process in processes:
            process.join()
    return told


def main(arguments: list[str] | None = None) -> None:
    """Prints a table, or JSON."""
    parser = argparse.ArgumentParser(prog="python -m bench.spilled", description=__doc__)
    parser.add_argument("--keys", type=int, default=160_000)
    parser.add_argument("--rows", type=int, default=100_000, help="of a micro-batch")
    parser.add_argument("--budget", type=int, default=32 << 20, help="bytes")
    parser.add_argument("--batches", type=int, default=30)
    parser.add_argument("--disk", default=".", help="a folder on a local disk")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(arguments)
    told = _measured(chosen)
    if chosen.json:
        print(json.dumps(told, indent=1))
        return
    print(f"{'state':12} {'ms':>8} {'firing':>8} {'state MB':>9} {'kept':>6} {'spilled':>8} {'anon':>6} {'file':>6}")
    for way, one in told.items():
        sizes = "".join(
            f" {one[name] / 2**20:>{width}.0f}"
            for name, width in zip(("state", "kept", "spilled", "RssAnon", "RssFile"), (9, 6, 8, 6, 6), strict=True)
        )
        print(f"{way:12} {one['ms']:8.0f} {one['firing_ms']:8.0f}{sizes}")


if __name__ == "__main__":
    main()
