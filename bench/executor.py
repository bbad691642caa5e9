"""What the Python workers of one executor take: ``python -m bench.executor``.

Eight workers, each a process, visit the 64 shares of a query in micro-batches, over the code of ``spark_glue`` that
keeps state. Shares wander between the workers, and keys come and go. The state store is a folder of files. While they
work, the system is asked what memory the workers hold of their own, all together, beyond what they held before the
first row. That stands beside the bound in docs/state.md: ``B + 2 w s``, with the copies apart.
"""

import argparse
import os
import pickle
import random
import tempfile
import threading
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bench.processes import ending, figure
from bench.spilled import SLIDE_MS, SPEC
from fastwin.columns.keys import KeyCodec
from spark_glue.state import copies, folders, live, spilled
from spark_glue.state.log import Identity, StateLog
from spark_glue.state.shares import States
from tests.support.spark_jobs import frame_plan_for

__all__ = ["main"]

STEPS = 2  # micro-batches for each slide
LOOK_S = 0.05


class FolderStore:
    """Spark's state store as files, for one share at a time, so that any process finds what another one has written."""

    def __init__(self, folder: Path) -> None:
        self.share = 0
        self._folder = folder

    def getValueState(self, name: str, schema: object) -> "_Files":  # noqa: N802
        return _Files(self, name)

    def getMapState(self, name: str, key: object, value: object) -> "_Files":  # noqa: N802
        return _Files(self, name)

    def path(self, name: str, key: tuple) -> Path:
        """Returns the file of a value of the current share."""
        return self._folder / "-".join(map(str, (self.share, name, *key)))


class _Files:
    """A value, or the values of a map."""

    def __init__(self, store: FolderStore, name: str) -> None:
        self._store, self._name = store, name

    def getValue(self, key: tuple) -> Any:  # noqa: N802
        path = self._store.path(self._name, key)
        return pickle.loads(path.read_bytes()) if path.exists() else None

    def updateValue(self, key: tuple, value: tuple) -> None:  # noqa: N802
        self._store.path(self._name, key).write_bytes(pickle.dumps(value))

    def removeKey(self, key: tuple) -> None:  # noqa: N802
        self._store.path(self._name, key).unlink(missing_ok=True)

    def get(self) -> Any:
        return self.getValue(())

    def update(self, value: tuple) -> None:
        self.updateValue((), value)

    def clear(self) -> None:
        self.removeKey(())


class Worker:
    """A worker of the executor. keys: that a share has at a time; shares: of the query."""

    def __init__(self, folder: Path, shares: int, keys: int) -> None:
        self._shares, self._keys = shares, keys
        names = np.arange(round(1.2 * 3 * keys * shares))
        hashes = KeyCodec.hash((names, None)) % np.uint64(shares)
        self._names = [np.flatnonzero(hashes == share) for share in range(shares)]
        self._store = FolderStore(folder)
        self._plan = frame_plan_for(self._table(0, 0), SPEC, key_groups=shares)
        plan = self._plan.plan
        self._log = StateLog(self._store, Identity(plan.fingerprint.hex(), plan.config.state, shares, shares))
        self._shelf = copies.Shelf("run")
        self._live = live.LiveStreams()

    def _table(self, share: int, number: int) -> pa.Table:
        """Returns a row for each key of a share; a hundredth of the keys are others than in the micro-batch before."""
        names = self._names[share]
        keys = names[(np.arange(self._keys) + number * self._keys // 100) % len(names)]
        return pa.table({"k": keys, "ts": np.full(len(keys), number * SLIDE_MS // STEPS), "v": keys})

    def visit(self, share: int, number: int) -> tuple[int, str]:
        """Runs a share's micro-batch; returns the bytes of its state, and how the state was had."""
        self._store.share = share
        states = States(self._plan, self._log, self._shares, self._shelf, "run", self._live)
        opened = states.open(share)
        opened.stream.advance_watermark(number * SLIDE_MS // STEPS - 1)
        opened.stream.process(self._table(share, number))
        after = opened.stream.metrics
        states.store(share, opened, after, None)
        return after.state_bytes, opened.how


def work(asked: Connection, environment: dict[str, str], folder: str, shares: int, keys: int) -> None:
    """Answers the shares and the number of a micro-batch with what their visits told, until it is sent None."""
    os.environ |= environment
    worker = Worker(Path(folder), shares, keys)
    asked.send(None)
    while (given := asked.recv()) is not None:
        mine, number = given
        asked.send([worker.visit(share, number) for share in mine])


def anonymous(pid: int) -> int:
    """Returns the bytes that a process holds of its own: not those of files, in memory or not."""
    return figure("Pss_Anon", pid, "smaps_rollup")


class Watch:
    """Looks at what processes hold until it is left. most: bytes of all together; copies: most bytes in a folder."""

    def __init__(self, pids: list[int], folder: Path) -> None:
        self._pids, self._folder = pids, folder
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.most = self.copies = 0

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(LOOK_S):
            self.most = max(self.most, sum(map(anonymous, self._pids)))
            self.copies = max(self.copies, folder_bytes(self._folder))


def folder_bytes(folder: Path) -> int:
    """Returns the bytes of the files below a folder, of which some go while it is looked at."""
    total = 0
    for path in folder.glob("**/*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue
    return total


def measure(chosen: argparse.Namespace, disk: bool) -> dict[str, Any]:
    """Runs the micro-batches; returns bytes, and how often states were had in which way."""
    dice, spawned = random.Random(1), get_context("spawn")
    pipes: list[Connection] = []
    processes: list[BaseProcess] = []
    with (
        tempfile.TemporaryDirectory(dir=chosen.disk) as made,
        tempfile.TemporaryDirectory(dir="/dev/shm") as cache,
        ending(processes),
    ):
        environment = {
            folders.ROOT_VARIABLE: cache, spilled.FOLDER_VARIABLE: made, live.LIVE_VARIABLE: str(chosen.budget),
            copies.BYTES_VARIABLE: str(chosen.copies), spilled.SPILL_VARIABLE: str(1 << 40 if disk else 0),
        }  # fmt: skip
        (folder := Path(made, "store")).mkdir()
        for _ in range(chosen.workers):
            mine, theirs = spawned.Pipe()
            given = (theirs, environment, str(folder), chosen.shares, chosen.keys)
            processes.append(spawned.Process(target=work, args=given))
            pipes.append(mine)
            processes[-1].start()
            theirs.close()  # what the process has is its own; without it, nothing more comes
        for pipe in pipes:
            pipe.recv()
        pids = [process.pid for process in processes]
        before = sum(map(anonymous, pids))
        homes = [share % chosen.workers for share in range(chosen.shares)]
        sizes, ways = [0] * chosen.shares, []
        with Watch(pids, Path(cache)) as watch:
            for number in range(chosen.batches):
                homes = [dice.randrange(chosen.workers) if dice.random() < chosen.wander else home for home in homes]
                mine = [[share for share, home in enumerate(homes) if home == one] for one in range(chosen.workers)]
                for pipe, shares in zip(pipes, mine, strict=True):
                    pipe.send((shares, number))
                for pipe, shares in zip(pipes, mine, strict=True):
                    told = pipe.recv()
                    for share, (size, _) in zip(shares, told, strict=True):
                        sizes[share] = max(sizes[share], size)
                    ways += [way for _, way in told]
        for pipe, process in zip(pipes, processes, strict=True):
            pipe.send(None)
            process.join()
    return {
        "state": sum(sizes), "largest": max(sizes), "before": before, "most": watch.most - before,
        "copies": watch.copies, "ways": {way: ways.count(way) for way in sorted(set(ways))},
    }  # fmt: skip


def main(arguments: list[str] | None = None) -> None:
    """Prints what was seen with state beyond the budget on the disk, and without a disk."""
    parser = argparse.ArgumentParser(prog="python -m bench.executor", description=__doc__)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--shares", type=int, default=64)
    parser.add_argument("--keys", type=int, default=2_500, help="of a share at a time")
    parser.add_argument("--budget", type=int, default=128 << 20, help="bytes of all streams")
    parser.add_argument("--copies", type=int, default=64 << 20, help="bytes of all copies")
    parser.add_argument("--batches", type=int, default=80)
    parser.add_argument("--wander", type=float, default=0.1, help="the part of the shares that go to another worker")
    parser.add_argument("--disk", default=".", help="a folder on a local disk")
    chosen = parser.parse_args(arguments)
    for disk in (True, False):
        one = measure(chosen, disk)
        bound = chosen.budget + 2 * chosen.workers * one["largest"]
        mb = {name: f"{value / 2**20:.0f} MB" for name, value in one.items() if isinstance(value, int)}
        print(f"state beyond the budget {'on the disk' if disk else 'let go of'}:")
        print(f"  state {mb['state']} in {chosen.shares} shares, the largest {mb['largest']}; {one['ways']}")
        print(f"  {chosen.workers} workers: {mb['before']} before the first row, then at most {mb['most']} more")
        print(f"  B + 2 w s is {bound / 2**20:.0f} MB; copies at most {mb['copies']} of {chosen.copies / 2**20:.0f} MB")


if __name__ == "__main__":
    main()
