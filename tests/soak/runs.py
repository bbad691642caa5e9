"""Runs of ``tests.soak.query`` in a process of its own: undisturbed, killed and started again, or with faults inside."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from spark_glue.state.folders import ROOT_VARIABLE
from tests.soak import faults
from tests.support.spark_streams import Source, rows_of

__all__ = ["Run", "assert_same", "batches_of"]

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 600  # of a run; it takes less than a minute where nothing else does


@dataclass
class Run:
    """A query's folders below ``folder``, over an input that is there already.

    options: of ``tests.soak.query``. killed_after: how many micro-batches were written when it was killed, for each
    time.
    """

    kind: str
    source: Source
    folder: Path
    options: tuple[str, ...] = ()
    killed_after: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        for path in (self.output, self.orders):
            path.mkdir(parents=True)

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    @property
    def output(self) -> Path:
        return self.folder / "output"

    @property
    def orders(self) -> Path:
        return self.folder / "orders"

    @property
    def log(self) -> Path:
        return self.folder / "log"

    @contextlib.contextmanager
    def _started(
        self, schedule: Mapping[str, Sequence[str]], environment: Mapping[str, str]
    ) -> Iterator[subprocess.Popen]:
        paths = (self.source.folder, self.checkpoint, self.output)
        command = [sys.executable, "-m", "tests.soak.query", self.kind, *map(str, paths), json.dumps(schedule)]
        command += self.options
        given = {faults.FOLDER_VARIABLE: str(self.orders), "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
        given[ROOT_VARIABLE] = str(self.folder / "cache")
        with self.log.open("ab") as log:
            # A session of its own: the JVM and the workers die with the driver.
            process = subprocess.Popen(
                command, cwd=ROOT, stdout=log, stderr=log, start_new_session=True, env=os.environ | given | environment
            )
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(30)

    def finish(self, schedule: Mapping[str, Sequence[str]] | None = None, **environment: str) -> dict[str, int]:
        """Runs to the end of the input; returns what the query says of itself."""
        with self._started(schedule or {}, environment) as process:
            assert process.wait(LIMIT_S) == 0, self.tail()
        return json.loads(self.log.read_text().splitlines()[-1])

    def kill(self, dice: random.Random, after: int) -> None:
        """Runs, and kills driver, JVM and workers at a random moment behind the first ``after`` micro-batches."""
        with self._started({}, {}) as process:
            deadline = time.monotonic() + LIMIT_S
            while self.done() < after:
                assert process.poll() is None, self.tail()
                assert time.monotonic() < deadline, "the query does not get on"
                time.sleep(0.02)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(dice.uniform(0, 1.5))
        self.killed_after.append(self.done())

    @property
    def torn(self) -> bool:
        """Whether Spark will put two files into the next micro-batch, so that there is nothing to compare with.

        Its file source notes the next file before the micro-batch that takes it is noted. Killed in between and started
        again, it takes one more.
        """
        checkpoint = self.checkpoint
        # Each tenth entry has those before in it, and "compact" in its name.
        noted = [path.name.removesuffix(".compact") for path in (checkpoint / "sources/0").glob("[0-9]*")]
        next_files = [int(name) for name in noted if name.isdigit()]
        batches = [int(path.name) for path in (checkpoint / "offsets").glob("[0-9]*")]
        begun = -1
        if batches:
            newest = (checkpoint / "offsets" / str(max(batches))).read_text().splitlines()[-1]
            begun = json.loads(newest)["logOffset"]
        return max(next_files, default=-1) > begun

    def done(self) -> int:
        """Returns how many micro-batches have been written."""
        return len(list(self.output.glob("*.parquet")))

    def carried_out(self) -> list[str]:
        """Returns the faults that were carried out."""
        return faults.carried_out(self.orders)

    def lingered(self) -> int:
        """Returns how many copies of deltas were spoilt by processes that lingered."""
        return faults.lingered(self.orders)

    def tail(self) -> str:
        """Returns the end of what the query has printed."""
        return self.log.read_text()[-3000:]


def batches_of(run: Run, first: int = 0) -> list[pa.Table]:
    """Returns the rows of each micro-batch that a run has written, from the first one on."""
    paths = sorted(run.output.glob("*.parquet"))
    assert [int(path.stem) for path in paths] == list(range(first, first + len(paths))), "a micro-batch is missing"
    return [pq.read_table(path) for path in paths]


def assert_same(found: Sequence[pa.Table], expected: Sequence[pa.Table]) -> int:
    """Raises AssertionError unless all micro-batches have the same rows; returns how many rows there are."""
    rows = 0
    for number, (mine, theirs) in enumerate(zip(found, expected, strict=False)):
        mine_rows, their_rows = _rows(mine), _rows(theirs)
        extra, missing = mine_rows - their_rows, their_rows - mine_rows
        assert not extra and not missing, (
            f"micro-batch {number}: {extra.total()} rows too many, such as {list(extra)[:2]}; {missing.total()} "
            f"missing, such as {list(missing)[:2]}; of {their_rows.total()}"
        )
        rows += their_rows.total()
    assert len(found) == len(expected), f"{len(found)} micro-batches, expected {len(expected)}; those are the same"
    return rows


def _rows(table: pa.Table):
    """Rows with the structs spelled out, so that they can be counted."""
    return rows_of(table.flatten().flatten())
