"""Where streams are timed: a Spark session, the files that the streams read, and queries run over them."""

import contextlib
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.events import EPOCH_MS, PER_KEY_MS, events
from bench.scale import PEER_THREADS
from spark_glue.plan.settings import FORMAT_KEY

__all__ = ["DELAY", "FILES", "STORES", "Input", "Lab", "Query", "open_lab"]

STORES = {"native, RocksDB": "RocksDB", "native, HDFS-backed": "HDFSBacked"}
DELAY, DELAY_MS, DISORDER_MS = "10 seconds", 10_000, 2_000
CHECKED_EVENTS, CHECKED_KEYS = 20_000, 500
HOT_KEY = 42
FILES = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    )
}
"""A setting, not Spark's default: that one starts ``readlink`` 40 times a micro-batch where Hadoop's native library is
missing."""
_PROVIDER = "org.apache.spark.sql.execution.streaming.state.{}StateStoreProvider"
_COLUMNS = ("key", "window_start", "window_end", "n", "s", "lo", "hi")


@dataclass(frozen=True)
class Input:
    """What a query reads: a frame of Spark's, streaming or not, over the Parquet files of a folder."""

    frame: Any
    folder: Path


Query = Callable[[Input], Any]


class Lab:
    """The Spark session, and the files that the streams read."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark = spark
        self._folder = folder
        self._made: dict[tuple[int, int, int, bool], Path] = {}

    def files(self, batches: int, batch_events: int, keys: int, hot: bool = False) -> Path:
        """Returns a folder with a Parquet file for each micro-batch, and a key's events 12.5 s apart on average.

        Columns: ``key`` long, ``ts`` timestamp, ``value`` long, and ``note``, text that no query reads.
        hot: every other event is of one and the same key.
        """
        wanted = (batches, batch_events, keys, hot)
        if wanted not in self._made:
            folder = self._folder / "-".join(map(str, wanted))
            folder.mkdir()
            span = batch_events * PER_KEY_MS // keys
            notes = pa.array(["red", "green", "blue"]).take(pa.array(np.arange(batch_events) % 3))
            for batch in range(batches):
                first = EPOCH_MS + batch * span
                table = events(batch_events, keys, span, DISORDER_MS, seed=100 + batch, first_ms=first)
                if hot:
                    names = table["key"].to_numpy().copy()
                    names[::2] = HOT_KEY
                    table = table.set_column(0, "key", pa.array(names))
                table = table.append_column("note", notes)
                path = folder / f"{batch:04d}.parquet"
                # as many row groups as cores, so that Spark can divide a file between them
                pq.write_table(table, path, row_group_size=-(-batch_events // PEER_THREADS))
                os.utime(path, (1_600_000_000 + batch,) * 2)  # Spark takes the oldest first
            self._made[wanted] = folder
        return self._made[wanted]

    def start(self, query: Query, store: str, files: Path, checkpoint: Path, output: Path | None = None) -> Any:
        """Starts a query over the files, which ends after the last one; returns it. output: None drops the rows."""
        self.spark.conf.set("spark.sql.streaming.stateStore.providerClass", _PROVIDER.format(store))
        # The HDFS-backed store knows the first format of checkpoints only.
        self.spark.conf.set(FORMAT_KEY, "2" if store == "RocksDB" else "1")
        schema = self.spark.read.parquet(str(files)).schema
        frame = self.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(files))
        result = query(Input(frame, files))
        writer = result.writeStream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        writer = writer.format("noop") if output is None else writer.format("parquet").option("path", str(output))
        return writer.start()

    @contextlib.contextmanager
    def checkpoint(self) -> Iterator[Path]:
        """Makes a folder for a checkpoint, and removes it."""
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def run(
        self, query: Query, store: str, files: Path, output: Path | None = None, limit_s: float | None = None
    ) -> list[Any]:
        """Runs a query over the files; returns the progress of its micro-batches.

        output: None drops the rows. limit_s: after which it is stopped, wherever it is.
        """
        with self.checkpoint() as checkpoint:
            running = self.start(query, store, files, checkpoint, output)
            try:
                running.awaitTermination(limit_s)
                return list(running.recentProgress)
            finally:
                running.stop()

    def check(self, queries: dict[str, Query], hot: bool = False) -> None:
        """Raises AssertionError unless the queries agree on a small stream, up to what its watermark has closed.

        hot: see ``files``.
        """
        files = self.files(3, CHECKED_EVENTS, CHECKED_KEYS, hot)
        newest = max(pc.max(pq.read_table(path)["ts"]).value for path in files.glob("*.parquet"))
        closed = newest - DELAY_MS - DISORDER_MS
        answers = {}
        for name, query in queries.items():
            output = Path(tempfile.mkdtemp(dir=self._folder))
            self.run(query, STORES.get(name, "RocksDB"), files, output)
            rows = pq.read_table(output).select(_COLUMNS)
            ends = rows["window_end"].cast(pa.timestamp("ms")).cast(pa.int64())
            rows = rows.filter(pc.less_equal(ends, closed))
            answers[name] = rows.sort_by([(column, "ascending") for column in _COLUMNS[:2]]).to_pylist()
            shutil.rmtree(output)
        first, *others = answers
        assert answers[first], "the small stream closes no window"
        for name in others:
            assert answers[name] == answers[first], f"{name} and {first} do not agree"

    def timed(self, query: Query, store: str, files: Path, limit_s: float) -> tuple[float, list[dict[str, float]]]:
        """Returns the seconds of all micro-batches but the first one, and what each took.

        A query that takes longer than limit_s is stopped; the seconds are then those that all files would have
        taken at the rate of its micro-batches so far, or of the first one where no other is done.
        What queries before have left in the JVM is unloaded and collected first: whoever came next would pay for it.
        """
        jvm = self.spark._jvm
        jvm.org.apache.spark.sql.execution.streaming.state.StateStore.stop()
        jvm.System.gc()
        progress = self.run(query, store, files, limit_s=limit_s)
        if not progress:
            raise RuntimeError(f"no micro-batch was done after {limit_s} s")
        batches = [
            {"events": one["numInputRows"], "seconds": one["durationMs"]["triggerExecution"] / 1_000}
            for one in progress
        ]
        batches = batches[1:] or batches
        wanted, done = len(list(files.glob("*.parquet"))) - 1, sum(one["events"] > 0 for one in batches)
        return sum(one["seconds"] for one in batches) * wanted / done, batches


@contextlib.contextmanager
def open_lab() -> Iterator[Lab]:
    """Starts Spark on a folder of its own, and removes both. Raises RuntimeError where there is no Spark or no Java."""
    if importlib.util.find_spec("pyspark") is None:
        raise RuntimeError("pyspark is missing")
    if shutil.which("java", path=_java_path()) is None:
        raise RuntimeError("Spark needs Java, and there is none")
    import spark_glue

    memory = os.environ.get("FASTWIN_BENCH_DRIVER_MEMORY", "4g")
    config = {
        "spark.driver.memory": memory,
        "spark.ui.enabled": False,
        "spark.ui.showConsoleProgress": False,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": PEER_THREADS,
        "spark.sql.streaming.numRecentProgressUpdates": 1_000,
    }
    archive = os.environ.get("FASTWIN_BENCH_CLASS_ARCHIVE") or None
    master = f"local[{PEER_THREADS}]"
    spark = spark_glue.session(app_name="fastwin benchmarks", master=master, config=config, class_archive=archive)
    spark.sparkContext.setLogLevel("ERROR")
    folder = Path(tempfile.mkdtemp(prefix="fastwin-bench-"))
    try:
        yield Lab(spark, folder)
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _java_path() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return None if home is None else os.path.join(home, "bin")
