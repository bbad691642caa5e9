"""What a micro-batch costs on Spark, small or not: ``python -m bench.spark_small --partitions 32 --rows 20000``.

fastwin beside Spark's own windows on both of its state stores, in turns, warm: the median of a micro-batch, and where
its time goes, as Spark tells it: planning, write-ahead log, commits, and each stage with the time of its tasks; then
the processor's time of it all. Everything is set up as ``spark_glue.session()`` does it, with Spark's default
checkpoint manager. ``--floor`` adds queries that keep one small value for each share and do nothing else: the least
that state in Python costs, by the interface that fastwin uses, and by the older one, on both stores. With
``--rows 2000000 --keys 100000 --partitions 2 --batches 8 --practice 8`` it tells what a large one takes.
"""

import argparse
import os
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

from bench.lab import FILES, STORES, Lab, Query, open_lab
from bench.processes import cpu_seconds
from bench.race import OURS
from bench.streams import ON_FILES, SMALL, SMALL_ON_FILES, WINDOWS, both, small, store_of

__all__ = ["main", "measure"]

STEPS = ("triggerExecution", "latestOffset", "queryPlanning", "walCommit", "addBatch", "commitBatch", "commitOffsets")
FLOORS = {
    "floor of state in Python": ("floor", "RocksDB"),
    "floor of groups in Python, RocksDB": ("floor_of_groups", "RocksDB"),
    "floor of groups in Python, HDFS-backed": ("floor_of_groups", "HDFSBacked"),
}
"""Queries that only keep a value: the function in ``bench.state_floor``, and the store."""
Seconds = dict[str, list[float]]


def _all_stages(lab: Lab) -> list[Any]:
    context = lab.spark.sparkContext
    none = context._gateway.new_array(context._jvm.double, 0)
    found = context._jsc.sc().statusStore().stageList(None, False, False, none, None)
    return sorted((found.apply(i) for i in range(found.size())), key=lambda stage: stage.stageId())


def _stages(lab: Lab, after: int, batches: int) -> dict[str, tuple[float, float]]:
    """Returns, for the stages of a query by their place in a micro-batch, seconds of it and of its tasks, medians."""
    by_batch: dict[str, list[Any]] = defaultdict(list)
    for stage in _all_stages(lab):
        if stage.stageId() > after and str(stage.status()) == "COMPLETE" and stage.description().isDefined():
            told = str(stage.description().get())
            by_batch[told.rpartition("batch = ")[2]].append(stage)
    places: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for batch, mine in by_batch.items():
        if batch.isdecimal() and 0 < int(batch) < batches:
            for place, stage in enumerate(mine):
                wall = (stage.completionTime().get().getTime() - stage.submissionTime().get().getTime()) / 1_000
                name = f"stage {place + 1} of {len(mine)}, {stage.numTasks()} tasks"
                places[name].append((wall, stage.executorRunTime() / 1_000))
    return {name: tuple(map(statistics.median, zip(*told, strict=True))) for name, told in places.items()}  # type: ignore[misc]


def _contenders(windows: str, only: str, with_floor: bool) -> dict[str, Query]:
    queries = small(windows) | both(windows)
    if with_floor:
        from bench import state_floor

        queries |= {name: getattr(state_floor, function) for name, (function, _) in FLOORS.items()}
    return {name: query for name, query in queries.items() if any(one in name for one in only.split("|"))}


def measure(
    lab: Lab, files: Path, queries: dict[str, Query], batches: int, turns: int, practice: int
) -> dict[str, Seconds]:
    """Runs all contenders in turns, the first of which are practice; prints and returns what each took."""
    taken: dict[str, Seconds] = {name: defaultdict(list) for name in queries}
    stages: dict[str, dict[str, tuple[float, float]]] = {}
    for turn in range(practice + turns):
        for name, query in queries.items():
            after = max((stage.stageId() for stage in _all_stages(lab)), default=-1)
            before = cpu_seconds(os.getpid())
            store = FLOORS[name][1] if name in FLOORS else store_of(name)
            progress = lab.run(query, store, files)
            if turn >= practice:
                taken[name]["processor"].append((cpu_seconds(os.getpid()) - before) / len(progress))
                stages[name] = _stages(lab, after, batches)
                for one in progress:
                    if one["batchId"] > 0 and one["numInputRows"]:
                        for step in STEPS:
                            taken[name][step].append(one["durationMs"].get(step, 0) / 1_000)
    for name, steps in taken.items():
        print(f"{name}: {statistics.median(steps['triggerExecution']):.3f} s a micro-batch")
        print("   ", ", ".join(f"{step} {statistics.median(seconds):.3f}" for step, seconds in steps.items()))
        for stage, (wall, tasks) in stages[name].items():
            print(f"    {stage}: {wall:.3f} s, its tasks {tasks:.3f} s")
    return taken


def main() -> None:
    """Measures and prints one size."""
    parser = argparse.ArgumentParser(prog="python -m bench.spark_small", description=__doc__)
    parser.add_argument("--partitions", type=int, default=32, help="of the shuffle: 32")
    parser.add_argument("--windows", choices=WINDOWS, default="tumbling", help="tumbling")
    parser.add_argument("--rows", type=int, default=20_000, help="of a micro-batch: 20,000")
    parser.add_argument("--keys", type=int, default=1_000, help="1,000")
    parser.add_argument("--batches", type=int, default=15, help="of a turn; the first does not count: 15")
    parser.add_argument("--turns", type=int, default=2, help="that count: 2")
    parser.add_argument("--practice", type=int, default=1, help="turns before these: 1; the JVM's compilers want more")
    parser.add_argument("--only", default="", help="contenders whose name has this in it, or this|that")
    parser.add_argument("--floor", action="store_true", help="and queries that do nothing but keep a value")
    parser.add_argument("--files", action="store_true", help="with the file-system based checkpoint manager")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of Spark's")
    given = parser.parse_args()
    with open_lab() as lab:
        lab.spark.conf.set("spark.sql.shuffle.partitions", str(given.partitions))
        settings = dict(setting.split("=", 1) for setting in given.set)
        for key, value in (settings | (FILES if given.files else {})).items():
            lab.spark.conf.set(key, value)
        queries = _contenders(given.windows, given.only, given.floor)
        files = lab.files(given.batches, given.rows, given.keys)
        taken = measure(lab, files, queries, given.batches, given.turns, given.practice)
    medians = {name: statistics.median(steps["triggerExecution"]) for name, steps in taken.items()}
    others = [seconds for name, seconds in medians.items() if name in STORES]
    for name in (OURS, ON_FILES, SMALL, SMALL_ON_FILES):
        if others and name in medians:
            print(f"{name} takes {medians[name] / min(others):.2f}x of the time of native's faster store")


if __name__ == "__main__":
    main()
