"""A query that a test kills: windows over a folder of files, each micro-batch written to a file of its own.

python -m tests.spark.killable INPUT CHECKPOINT OUTPUT
"""

import os
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq

import fastwin as fw
import spark_glue

SPECS = {
    "tumbling": fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of("1 minute")),
    "sessions": fw.key_by("k").event_time("ts").window(fw.EventTimeSessionWindows.with_gap("20 seconds")),
}


def spec_of(name: str) -> fw.WindowSpec:
    windows = SPECS[name].allowed_lateness("10 seconds").side_output_late_data().bad_rows("divert")
    return windows.aggregate(n=fw.Count(), total=fw.Sum("v"), low=fw.Min("x"))


def main(name: str, source: Path, checkpoint: Path, output: Path) -> None:
    config = {"spark.ui.enabled": False, "spark.ui.showConsoleProgress": False, "spark.sql.session.timeZone": "UTC"}
    spark = spark_glue.session(app_name="killable", master="local[2]", config=config)
    spark.sparkContext.setLogLevel("OFF")
    schema = spark.read.parquet(str(source)).schema
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(source))

    def write(frame, batch_id: int) -> None:
        # Idempotent: a batch that runs again replaces its file, in one step.
        table = frame.toArrow()
        hidden = output / f".{batch_id}"
        pq.write_table(table, hidden)
        os.replace(hidden, output / f"{batch_id:06d}.parquet")
        time.sleep(0.3)  # between the sink and the commit: a good moment to be killed

    frame = spark_glue.apply(spec_of(name), stream, watermark="5 seconds", key_groups=4)
    writer = frame.writeStream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    writer.foreachBatch(write).start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], *map(Path, sys.argv[2:]))
