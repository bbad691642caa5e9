"""The JVMs that tests start: how they compile, where their classes lie ready, and Spark's settings for all of them.

As a program, ``python -m tests.support.jvm``: runs some queries, and writes an archive of the classes that they load.
With it a Spark starts in two thirds of the processor's time.
"""

import os
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ARCHIVE", "COMPILED", "JVM_OPTIONS", "UNCOMPILED", "submit_options"]

ROOT = Path(__file__).resolve().parents[2]
ARCHIVE = ROOT / "build" / "spark.jsa"
"""The classes of .venv's Spark, if ``make`` has them ready."""

# No test lives long enough for what the JVM's second compiler takes: without it, a query takes a third less CPU. What
# JVMs say of the archive would be among what programs print; where it does not fit, as another Spark, they go without.
_PLAIN = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"

_CAN_ARCHIVE = " " not in str(ARCHIVE)  # Spark's start script divides options there
_IS_MADE = ARCHIVE.exists() and ARCHIVE.stat().st_size > 0

JVM_OPTIONS = f"{_PLAIN} -XX:SharedArchiveFile={ARCHIVE}" if _CAN_ARCHIVE and _IS_MADE else _PLAIN
"""The options of all JVMs, also of those that run no driver."""


COMPILED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
"""Spark's defaults: it writes Java for what a query runs, and compiles it."""

# That is a quarter of what a test of a query takes.
_NO_CODE = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}

UNCOMPILED: dict[str, object] = {**(COMPILED if os.environ.get("FASTWIN_LONG") else _NO_CODE)}
"""Settings of sessions that many tests share: queries are not compiled, but where the tests that take long run, too.

What runs as a program of its own, as pages, examples and the demo, has its queries compiled, as users do.
"""


def submit_options(jvm: str = JVM_OPTIONS) -> str:
    """Returns what SPARK_SUBMIT_OPTS shall say: options of the JVM, and settings for each Spark that a test starts.

    They are not in a file, since an archive of classes does not fit where a folder of settings is on the path.
    """
    settings = {"spark.ui.enabled": "false"}
    if tuple(int(part) for part in version("pyspark").split(".")[:2]) >= (4, 3):
        # Without Hadoop's native library, Spark's default manager of checkpoints starts `readlink` 40 times a
        # micro-batch, which is a fifth of what a test takes. What runs on older versions has the default.
        manager = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
        settings["spark.sql.streaming.checkpointFileManagerClass"] = manager
    return " ".join([jvm, *(f"-D{key}={value}" for key, value in settings.items())])


def _make(archive: Path) -> None:
    """Runs queries in a session of which the JVM writes the archive when it ends; waits for that."""
    os.environ["SPARK_SUBMIT_OPTS"] = submit_options(f"{_PLAIN} -XX:ArchiveClassesAtExit={archive}")
    from pyspark import SparkContext

    import spark_glue

    spark = spark_glue.session(master="local[2]", config={"spark.sql.shuffle.partitions": 1})
    spark.sparkContext.setLogLevel("OFF")  # the last maintenance of state may find its folder gone
    _run_queries(spark)
    gateway = SparkContext._gateway
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(120)
    if not archive.exists():
        print("This JVM writes no archive of its classes: the tests go without, and take longer")
        archive.touch()


def _run_queries(spark: "SparkSession") -> None:
    """Runs one query of each kind that many tests run: fastwin's and Spark's own, over a stream and over a batch."""
    from pyspark.sql import functions as F

    import fastwin as fw
    import spark_glue
    from tests.support.spark_events import events
    from tests.support.spark_streams import Recorder, Source, start

    spec = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of("1 min")).side_output_late_data()
    table = events(1, 200, span_ms=300_000)
    with TemporaryDirectory() as folder:
        source = Source(Path(folder), table.schema)
        source.put(table)
        frame = source.frame(spark)
        results = spark_glue.apply(spec.aggregate(n=fw.Count()), frame, watermark="0 s")
        start(results, Path(folder, "ours"), Recorder(), available_now=True).awaitTermination()
        native = frame.withWatermark("ts", "0 seconds").groupBy("k", F.window("ts", "1 minute")).count()
        start(native, Path(folder, "native"), Recorder(), available_now=True).awaitTermination()
        batch = spark.read.parquet(str(source.folder))
        spark_glue.apply(spec.aggregate(n=fw.Count()), batch).write.parquet(f"{folder}/results")


if __name__ == "__main__":
    ARCHIVE.parent.mkdir(exist_ok=True)
    if _CAN_ARCHIVE:
        _make(ARCHIVE)
    else:
        print("This folder's path has a blank: the tests go without an archive of Spark's classes, and take longer")
        ARCHIVE.touch()
