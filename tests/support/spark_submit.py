"""A small app, run by spark-submit on two executors that are processes of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pyspark

from tests.support.jvm import JVM_OPTIONS

__all__ = ["MODULE", "ROOT", "submitted"]

ROOT = Path(__file__).resolve().parents[2]

TWO_EXECUTORS = "local-cluster[2,1,1024]"

MODULE = """
import fastwin as fw


class Joined(fw.AggregateFunction):
    def create_accumulator(self):
        return ()

    def add(self, value, accumulator):
        return (*accumulator, value.v)

    def get_result(self, accumulator):
        return sorted(accumulator)
"""

APP = """
import os
import sys
import time
from pathlib import Path
import pyarrow as pa
import fastwin as fw
import spark_glue
from theirs import Joined

folder = sys.argv[1]
spark = spark_glue.session(app_name="submitted")
spark.sparkContext.setLogLevel("OFF")
spec = (
    fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of("1 min"))
    .aggregate(Joined(), output="vs array<bigint>")
)
events = spark.range(0, 400, 1, 2).selectExpr("id % 7 k", "timestamp_seconds(id) ts", "id v")
events.write.mode("overwrite").parquet(folder + "/in")
stream = spark.readStream.schema(events.schema).option("maxFilesPerTrigger", 1).parquet(folder + "/in")
closing = spark.range(1).selectExpr("0l k", "timestamp_seconds(100000) ts", "-1l v")
closing.coalesce(1).write.mode("append").parquet(folder + "/in")
found, copies = [], []

def sink(rows, _):
    found.extend(rows.collect())
    copies.append(len(list(Path(folder, "copies").glob("*/*/*"))))

query = (
    spark_glue.apply(spec, stream, watermark="1 hour", key_groups=4).writeStream.trigger(availableNow=True)
    .option("checkpointLocation", folder + "/checkpoint").foreachBatch(sink)
)
query.start().awaitTermination()
expected = spec.run(events.toArrow()).main
got = sorted((row.k, row.vs) for row in found)
want = sorted(zip(expected["k"].to_pylist(), expected["vs"].to_pylist()))
tracker = spark.sparkContext._jsc.sc().statusTracker()
names = ["MIMALLOC_PURGE_DELAY", "MALLOC_MMAP_MAX_"]
memory = spark.sparkContext.parallelize(names, 1).map(os.getenv).collect()
(module,) = spark.sparkContext.parallelize([0], 1).map(lambda _: __import__("fastwin").__file__).collect()
until = time.monotonic() + 60
while (left := list(Path(folder, "copies").glob("*/*/*"))) and time.monotonic() < until:
    time.sleep(0.1)
print("MODULE", module)
print("COPIES", max(copies), len(left))
print("RESULT", got == want, len(want), len(tracker.getExecutorInfos()) - 1, *memory)
"""


def submitted(
    folder: Path, module: str, options: dict[str, str], *more: str, master: str = TWO_EXECUTORS, **variables: str
) -> dict[str, list[str]]:
    """Runs the app on two executors; returns the words of its lines that begin with one in capitals, by that."""
    (folder / "theirs.py").write_text(module)
    (folder / "app.py").write_text(APP)
    options = {
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.executor.extraJavaOptions": JVM_OPTIONS,
        "spark.executorEnv.FASTWIN_CACHE_DIR": str(folder / "copies"),  # the driver has another one
    } | options
    command = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--master", master]
    command += ["--py-files", str(folder / "theirs.py"), *more]
    for key, value in options.items():
        command += ["--conf", f"{key}={value}"]
    done = subprocess.run(
        [*command, str(folder / "app.py"), str(folder)],
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable} | variables,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    lines = [line.split() for line in done.stdout.splitlines()]
    found = {line[0]: line[1:] for line in lines if line and line[0] in ("RESULT", "MODULE", "COPIES")}
    same, rows, executors, *_ = found["RESULT"]
    assert same == "True"
    assert int(rows) == 49
    assert executors == "2"
    copies, left = map(int, found["COPIES"])
    assert copies > 0
    assert left == 0, "copies of state stay behind when the query has ended"
    return found
