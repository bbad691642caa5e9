"""Inputs that fall quiet and speak again, through drivers that are killed.

python -m tests.soak.quiet FOLDER

runs a join with ``idle=`` of the files in FOLDER/left and FOLDER/right, each micro-batch into a file of its own in
FOLDER/output, until FOLDER/stop is there. ``run`` starts that, feeds it, kills it, and compares.
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import spark_glue
from tests.soak.runs import ROOT
from tests.support.quiet_inputs import IDLE_MS, SCHEMA, frame_of, late_rows, read_files, replayed, side
from tests.support.spark_streams import Source, assert_same_rows, part, start

__all__ = ["Told", "run"]

_SIDES = ("left", "right")
_LIMIT_S = 300
_GAP_S = 25  # of event time, between two files of an input, at most


@dataclass
class Told:
    """What a run has shown. silences: pauses of all inputs; quiet: micro-batches in which nobody held time back."""

    batches: int = 0
    kills: int = 0
    files: int = 0
    silences: int = 0
    quiet: int = 0
    rows: int = 0
    late: int = 0

    def __str__(self) -> str:
        return (
            f"{self.batches} micro-batches, {self.kills} kills, {self.files} files, {self.silences} silences of all "
            f"inputs, {self.quiet} micro-batches with all inputs idle, {self.rows} rows and {self.late} late ones "
            f"compared, all the same"
        )


class _Query:
    """The query, in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._log = folder / "log"

    @contextlib.contextmanager
    def started(self) -> Iterator[None]:
        """Runs it meanwhile; behind that, driver, JVM and workers are killed unless they have ended."""
        given = {"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.soak.quiet", str(self._folder)],
                cwd=ROOT, stdout=log, stderr=log, start_new_session=True, env=os.environ | given,
            )  # fmt: skip
        try:
            yield
        finally:
            if self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait(30)

    def wait(self, done: Callable[[], bool]) -> None:
        """Waits until something is done by the query."""
        end = time.monotonic() + _LIMIT_S
        while not done():
            assert self._process.poll() is None, self._log.read_text()[-3000:]
            assert time.monotonic() < end, "the query does not get on"
            time.sleep(0.05)

    def stop(self) -> None:
        """Lets it end by itself."""
        (self._folder / "stop").touch()
        assert self._process.wait(_LIMIT_S) == 0, self._log.read_text()[-3000:]


def _written(folder: Path) -> list[int]:
    return sorted(int(path.stem) for path in (folder / "output").glob("*.parquet"))


def run(folder: Path, dice: random.Random, kills: int, files: int) -> Told:
    """Feeds a join ``files`` files between starts, and kills it ``kills`` times; AssertionError unless all is right."""
    for name in (*_SIDES, "output"):
        (folder / name).mkdir(parents=True)
    sources = [Source(folder / name, SCHEMA) for name in _SIDES]
    put: list[list[pa.Table]] = [[SCHEMA.empty_table()], [SCHEMA.empty_table()]]
    for source in sources:
        source.put(SCHEMA.empty_table())  # of which the schema is read
    told, query, at = Told(kills=kills), _Query(folder), [0.0, 0.0]

    def speak(number: int) -> None:
        at[number] = max(at[number], at[1 - number] - _GAP_S) + dice.uniform(0, _GAP_S)
        table = side(*(max(0, at[number] - dice.uniform(0, 8)) for _ in range(3)), at[number], key=dice.randrange(3))
        sources[number].put(table)
        put[number].append(table)
        told.files += 1

    def read() -> list[int]:
        return read_files(folder, max(_written(folder), default=-1))

    for start_number in range(kills + 1):
        with query.started():
            for _ in range(files):
                speak(dice.randrange(2))
                if dice.random() < 0.3:  # all are silent for so long that time goes on with the clock
                    query.wait(lambda: read() == [len(mine) - 1 for mine in put])
                    time.sleep(IDLE_MS / 1_000 * dice.uniform(1.0, 2.5))
                    told.silences += 1
                else:
                    time.sleep(dice.uniform(0, 1.0))
            if start_number == kills:
                query.wait(lambda: read() == [len(mine) - 1 for mine in put])
                query.wait(lambda last=max(_written(folder)): max(_written(folder)) > last + 10)
                query.stop()
            else:
                time.sleep(dice.uniform(0, 1.5))
    batches = _written(folder)
    assert batches == list(range(len(batches))), "a micro-batch is missing"
    for batch, expected in replayed(folder, batches, put):
        rows = pq.read_table(folder / "output" / f"{batch:06d}.parquet")
        assert_same_rows(part(rows, "main"), expected.main)
        assert late_rows(rows) == expected.late, f"micro-batch {batch}: {late_rows(rows)} late, not {expected.late}"
        told.rows += expected.main.num_rows
        told.late += expected.late
        told.quiet += expected.heard and expected.holder is None
    told.batches = len(batches)
    assert told.rows > 0
    return told


def main(folder: Path) -> None:
    config = {
        "spark.ui.enabled": False,
        "spark.ui.showConsoleProgress": False,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": 2,
        "spark.sql.streaming.minBatchesToRetain": 100_000,  # the times of all micro-batches are needed at the end
    }
    spark = spark_glue.session(app_name="quiet", master="local[2]", config=config)
    spark.sparkContext.setLogLevel("OFF")
    sources = [Source(folder / name, SCHEMA, count=1) for name in _SIDES]

    def write(frame, batch_id: int) -> None:
        hidden = folder / "output" / f".{batch_id}"
        pq.write_table(frame.toArrow(), hidden)
        os.replace(hidden, folder / "output" / f"{batch_id:06d}.parquet")

    query = start(frame_of(spark, sources), folder, write)
    while not (folder / "stop").exists():
        if query.exception() is not None:
            raise query.exception()
        time.sleep(0.1)
    query.stop()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
