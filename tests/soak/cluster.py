"""A query on a cluster whose machines share nothing, and are lost in mid-batch with all that they have.

python -m tests.soak.cluster FOLDER [--kind sliding] [--kills 20] [--batches 200] [--shares 64] [--seed N]

Each micro-batch is compared with what this process gives for the same rows without Spark. In half of them deltas lie in
the heads of shares, in the others in chunks and in the copies that a machine loses. The last line printed is a report as
JSON.
"""

import argparse
import json
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

import spark_glue
from tests.soak import faults
from tests.soak.machines import Machine, Master
from tests.soak.workload import KINDS, spec_of, tables
from tests.support import late_files
from tests.support.spark_streams import Source, assert_replayed, micro_batches, stages_again, start

__all__ = ["Report", "run"]

HOSTS = ("127.0.0.2", "127.0.0.3")
CORES = 2  # of each machine
SECONDS = 2_400  # then a run ends with what it has done, and fails
_WORK = ("streams_kept", "streams_caught_up", "streams_loaded", "loaded_cold", "loaded_behind", "loaded_damaged")


@dataclass
class Report:
    """What a run has shown. visits: of shares, by how their state was had.

    in_chunks: micro-batches whose deltas lay there. stages_again: stages that Spark attempted more than once. longest_s,
    median_s: of micro-batches. recovered_s: from a kill to the end of the micro-batch in which it came. cut: time was
    over before the input was.
    """

    kind: str
    shares: int
    batches: int = 0
    kills: int = 0
    processes: int = 0
    rows: int = 0
    in_chunks: int = 0
    stages_again: int = 0
    visits: dict[str, int] = field(default_factory=dict)
    median_s: float = 0.0
    longest_s: float = 0.0
    cut: bool = False
    recovered_s: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        visits = ", ".join(f"{name} {count:,}" for name, count in self.visits.items())
        back = sorted(self.recovered_s) or [0.0]
        return (
            f"{self.kind}: {self.batches} micro-batches of {self.shares} shares ({self.in_chunks} with deltas in chunks), "
            f"{self.kills} machines lost "
            f"in mid-batch ({self.processes} processes), {self.stages_again} stages ran again, "
            f"{self.rows:,} rows compared, all the same; "
            f"{visits}; a micro-batch {self.median_s:.1f} s, with a loss until its end {back[len(back) // 2]:.1f} s, "
            f"at most {back[-1]:.1f} s" + (", CUT SHORT by time" if self.cut else "")
        )


class _Cluster:
    """A master and its machines; use it as a context. A lost machine is replaced by an empty one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made = 0

    def __enter__(self) -> "_Cluster":
        self._master = Master(self._folder / "master")
        self.url = self._master.url
        self.machines: list[Machine] = []
        try:
            self.machines += [self._new(host) for host in HOSTS]
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for machine in self.machines:
            machine.lose()
        self._master.kill()

    def _new(self, host: str) -> Machine:
        self._made += 1
        return Machine(self._folder / f"machine-{self._made}", host, self.url, CORES)

    def lose(self, number: int) -> int:
        """Kills a machine, takes its disk away and puts an empty one in its place; returns how many processes it had."""
        lost = self.machines[number]
        processes = lost.lose()
        self.machines[number] = self._new(lost.host)
        return processes


class _Sink:
    """Keeps the rows of each micro-batch, and knows whether one runs. Says to the folder ``orders`` where deltas lie."""

    def __init__(self, orders: Path, dice: random.Random) -> None:
        self._orders, self._dice = orders, dice
        self.in_chunks = 0
        self.tables: dict[int, pa.Table] = {}
        self.seconds: dict[int, float] = {}
        self.running: int | None = None
        self.before: Callable[[int], object] = lambda batch_id: None

    def __call__(self, frame, batch_id: int) -> None:
        self.before(batch_id)
        to = self._dice.choice(list(faults.MOVES))
        faults.move(self._orders, to)
        self.in_chunks += faults.MOVES[to]
        begun = time.monotonic()
        self.running = batch_id
        try:
            self.tables[batch_id] = frame.toArrow()
        finally:
            self.running = None
        self.seconds[batch_id] = time.monotonic() - begun


class _Killer(threading.Thread):
    """Kills machines at random moments of micro-batches that are drawn beforehand."""

    def __init__(self, cluster: _Cluster, sink: _Sink, spark, report: Report, dice: random.Random, kills: int) -> None:
        super().__init__(daemon=True)
        self._cluster, self._sink, self._spark, self._report, self._dice = cluster, sink, spark, report, dice
        self._chosen = sorted(dice.sample(range(2, report.batches - 3), kills))
        sink.before = self._await_machines
        self.ended = threading.Event()
        self.problem: BaseException | None = None

    def run(self) -> None:
        try:
            while self._chosen and self._kill(self._chosen[0]):
                del self._chosen[0]
        except BaseException as problem:
            self.problem = problem

    def _kill(self, chosen: int) -> bool:
        """Loses a machine in the middle of a micro-batch from ``chosen`` on; returns whether there still was one."""
        seen: int | None = None
        while True:
            batch = self._sink.running
            if batch is not None and batch >= chosen and batch != seen and self._up():
                seen = batch  # each is waited for once: it may be over before its moment comes
                shortest = min(self._sink.seconds.values())  # the first ones take longer
                if self.ended.wait(self._dice.uniform(0, 0.8 * shortest)):
                    return False
                if self._sink.running == batch:
                    break
            if self.ended.wait(0.01):
                return False
        at = time.monotonic()
        number = self._dice.randrange(len(HOSTS))
        self._report.processes += self._cluster.lose(number)
        self._report.kills += 1
        print(f"{self._cluster.machines[number].host} lost in micro-batch {batch}", flush=True)
        while self._sink.running == batch:
            if self.ended.wait(0.02):
                return False
        self._report.recovered_s.append(round(time.monotonic() - at, 1))
        return True

    def _await_machines(self, batch: int) -> None:
        """Holds a micro-batch in which a machine is to be lost, until there are two."""
        while self.is_alive() and self._chosen and self._chosen[0] <= batch and not self._up():
            time.sleep(0.05)

    def _up(self) -> bool:
        """Whether there is an executor on each machine."""
        status = self._spark.sparkContext._jsc.sc().getExecutorMemoryStatus().keySet().mkString(" ")
        return {place.rsplit(":", 1)[0] for place in status.split()} >= set(HOSTS)


def _session(url: str, shares: int, classes: Path, orders: Path):
    config = {
        # Hadoop's own local file system starts some processes for each file that is written: two thirds of a commit.
        "spark.hadoop.fs.late.impl": late_files.CLASS,
        "spark.driver.extraClassPath": str(classes),
        "spark.executor.extraClassPath": str(classes),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.executor.memory": "1g",
        "spark.python.daemon.module": "tests.soak.daemon",
        f"spark.executorEnv.{faults.FOLDER_VARIABLE}": str(orders),
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.ui.enabled": False,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": shares,
        "spark.shuffle.io.maxRetries": 1,  # what a lost machine had does not come back
        "spark.shuffle.io.retryWait": "1s",
        "spark.locality.wait": "0s",  # whoever is free takes a share, so that shares wander
        "spark.sql.streaming.numRecentProgressUpdates": 10_000,
        "spark.sql.streaming.minBatchesToRetain": 10_000,  # the times of all of them are needed at the end
    }
    spark = spark_glue.session(app_name="a cluster that fails", master=url, config=config)
    spark.sparkContext.setLogLevel("OFF")
    late_files.compiled(spark, classes)
    return spark


def run(folder: Path, kind: str, kills: int, batches: int, shares: int, seed: int, seconds: float = SECONDS) -> Report:
    """Runs a query of a kind and loses machines; raises AssertionError unless each micro-batch gives what it should.

    seconds: then it ends with the micro-batches that it has run.
    """
    orders = folder / "orders"
    orders.mkdir()
    report, dice, sink = Report(kind, shares, batches), random.Random(seed), _Sink(orders, random.Random(seed + 1))
    inputs = tables(seed, batches, keys=1_000)
    source = Source(folder, inputs[0].schema)
    source.put(*inputs)
    classes = folder / "classes"
    classes.mkdir()
    with _Cluster(folder / "cluster") as cluster:
        spark = _session(cluster.url, shares, classes, orders)
        killer = _Killer(cluster, sink, spark, report, dice, kills)
        try:
            spec = spec_of(kind)
            frame = spark_glue.apply(spec, source.frame(spark), watermark="5 seconds", key_groups=shares)
            query = start(frame, folder, sink, available_now=True, scheme=late_files.SCHEME)
            killer.start()
            whole = query.awaitTermination(seconds)
            if not whole:
                killer.ended.set()
                killer.join(60)
                query.stop()
            found = micro_batches(query, sink)
            report.stages_again = stages_again(spark, query)
        finally:
            killer.ended.set()
            if killer.is_alive():
                killer.join(60)
            spark.stop()
    if killer.problem is not None:
        raise killer.problem
    assert not whole or report.kills == kills, f"{report.kills} machines were lost, {kills} were to be"
    assert [batch.id for batch in found] == list(range(len(found))), "a micro-batch is missing"
    read = inputs if whole else inputs[: sum(batch.inputs > 0 for batch in found)]
    assert_replayed(spec, read, found, coalesce=kind != "user-written", folder=folder)
    seconds, report.cut = sorted(sink.seconds.values()), not whole
    report.batches, report.rows = len(found), sum(batch.rows.num_rows for batch in found)
    report.median_s, report.longest_s = round(seconds[len(seconds) // 2], 2), round(seconds[-1], 2)
    report.in_chunks = sink.in_chunks
    report.visits = {name: sum(batch.counters[name] for batch in found) for name in _WORK}
    return report


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.cluster", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kind", choices=KINDS, default="sliding")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--shares", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="then it ends with what it has done, and fails")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that no machine stays behind
    options.folder.mkdir(parents=True, exist_ok=True)
    given = options.kind, options.kills, options.batches, options.shares, options.seed, options.seconds
    report = run(options.folder, *given)
    print(report)
    print(json.dumps(vars(report)), flush=True)
    return 1 if report.cut else 0


if __name__ == "__main__":
    sys.exit(main())
