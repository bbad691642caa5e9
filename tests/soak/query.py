"""A query that is disturbed: windows over a folder of files, each micro-batch written to a file of its own.

python -m tests.soak.query KIND INPUT CHECKPOINT OUTPUT [SCHEDULE] [--shares N] [--key-groups N] [--history PATH]

SCHEDULE, as JSON: by the number of a micro-batch, the faults ("action@place") to order when it has been written, for
the next one; ``"spoil"`` spoils all files in the cache at that moment, ``"deltas in chunks"`` and ``"deltas in heads"``
say where the next ones shall lie.
"""

import argparse
import json
import os
import random
import time
from pathlib import Path

import pyarrow.parquet as pq

import spark_glue
from spark_glue.progress import batch_metrics
from spark_glue.state.folders import cache_root
from tests.soak import faults
from tests.soak.workload import spec_of
from tests.support.spark_streams import stages_again

PAUSE_S = 0.3
SHARES = 4


def spoil(dice: random.Random) -> int:
    """Cuts short, garbles, lengthens or removes each file in the cache; returns how many there were."""
    files = [path for path in cache_root().glob("*/*") if not path.name.startswith(".")]
    for path in files:
        data = path.read_bytes()
        spoilt = dice.choice([data[:-1], data[: len(data) // 2], b"", dice.randbytes(len(data)), data + b"x", None])
        if spoilt is None:
            path.unlink()
        else:
            path.write_bytes(spoilt)
    return len(files)


def parse() -> argparse.Namespace:
    """Returns the options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak.query")
    parser.add_argument("kind")
    for name in ("source", "checkpoint", "output"):
        parser.add_argument(name, type=Path)
    parser.add_argument("schedule", type=json.loads, nargs="?", default="{}")
    parser.add_argument("--shares", type=int, default=SHARES, help="partitions of state, for a new checkpoint")
    parser.add_argument("--key-groups", type=int, default=SHARES)
    parser.add_argument("--history", help="what export_state has written, for a new checkpoint")
    return parser.parse_args()


def main(options: argparse.Namespace) -> None:
    source, checkpoint, output, schedule = options.source, options.checkpoint, options.output, options.schedule
    config = {
        "spark.ui.enabled": False,
        "spark.ui.showConsoleProgress": False,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": options.shares,  # more than cores: some tasks begin when others have ended
        "spark.sql.adaptive.enabled": False,
        "spark.sql.streaming.numRecentProgressUpdates": 1000,
    }
    if schedule:
        config["spark.python.daemon.module"] = "tests.soak.daemon"
    spark = spark_glue.session(app_name="disturbed", master="local[2,4]", config=config)  # four attempts for a task
    spark.sparkContext.setLogLevel("OFF")
    schema = spark.read.parquet(str(source)).schema
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(source))
    dice = random.Random(1)
    spoilt, orders = 0, Path(os.environ[faults.FOLDER_VARIABLE])

    def behind(batches):
        yield from batches  # all of them, so that the operator before has finished and its worker goes on living
        faults.check("behind")

    def write(frame, batch_id: int) -> None:
        nonlocal spoilt
        # Idempotent: a batch that runs again replaces its file, in one step.
        if schedule:
            frame = frame.mapInArrow(behind, frame.schema)
        table = frame.toArrow()
        hidden = output / f".{batch_id}"
        pq.write_table(table, hidden)
        os.replace(hidden, output / f"{batch_id:06d}.parquet")
        for fault in schedule.get(str(batch_id), []):
            if fault == "spoil":
                spoilt += spoil(dice)
            elif fault in faults.MOVES:
                faults.move(orders, fault)
            else:
                faults.order(orders, *fault.split("@"))
        time.sleep(PAUSE_S)  # between the sink and the commit: a good moment to be killed

    given = {"key_groups": options.key_groups, "history": options.history}
    frame = spark_glue.apply(spec_of(options.kind), stream, watermark="5 seconds", **given)
    writer = frame.writeStream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    query = writer.foreachBatch(write).start()
    query.awaitTermination()
    metrics = [one for told in query.recentProgress for one in batch_metrics(told)]
    told = {
        "spoilt": spoilt,
        "damaged": sum(one.loaded_damaged for one in metrics),
        "stages_again": stages_again(spark, query),
        "spilled": max((one.spilled_bytes for one in metrics), default=0),
    }
    print(json.dumps(told), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(parse())
