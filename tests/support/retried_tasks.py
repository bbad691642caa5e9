"""``python -m tests.support.retried_tasks URL FOLDER``: a query whose tasks fail while Redis does not answer, and which
Spark runs again. Prints the batches that the sink was handed, and the numbers of the attempts of the task that failed."""

import json
import sys
import threading
import time
from pathlib import Path

import spark_glue
import spark_glue.sinks.store as sinks
from tests.support.cut_network import Network
from tests.support.numbered_clicks import batch, spec
from tests.support.spark_streams import Source

BATCHES = 3
FAULTY = 1


def main(url: str, folder: Path) -> None:
    network = Network(int(url.rpartition(":")[2].partition("/")[0]))
    spark = spark_glue.session(
        master="local[2,4]", config={"spark.ui.enabled": False, "spark.sql.shuffle.partitions": 2}
    )
    spark.sparkContext.setLogLevel("OFF")
    source = Source(folder, batch(0).schema)
    source.put(*(batch(number) for number in range(BATCHES)))
    attempts, made = folder / "attempts", sinks._writer
    attempts.mkdir()

    def noting(*arguments):
        """Has each attempt leave its number, before it writes."""
        write, number = made(*arguments), arguments[3][1]

        def noted(batches):
            from pyspark import TaskContext

            task = TaskContext.get()
            (attempts / f"{number}.{task.partitionId()}.{task.attemptNumber()}").touch()
            return write(batches)

        return noted

    sinks._writer = noting
    over = f"redis://127.0.0.1:{network.port}/0?socket_timeout=0.5"
    sink = spark_glue.to_store(over, spec(), patience="4 seconds")
    write, seen = sink._from_executors, []

    def mend() -> None:
        while not any(attempts.glob(f"{FAULTY}.*.1")):
            time.sleep(0.05)
        network.mend()

    def writing(panes, revision):
        if revision[1] == FAULTY:
            network.cut(asks=False)  # what tasks write arrives, and they do not hear of it
            threading.Thread(target=mend, daemon=True).start()
        return write(panes.repartition(2), revision)

    def put(frame, batch_id):
        seen.append(batch_id)
        sink(frame, batch_id)

    sink._from_executors = writing
    writer = source.frame(spark).writeStream.foreachBatch(put).trigger(availableNow=True)
    writer.option("checkpointLocation", str(folder / "checkpoint")).start().awaitTermination()
    spark.stop()
    network.stop()
    print(json.dumps({"batches": seen, "attempts": sorted(path.name for path in attempts.iterdir())}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
