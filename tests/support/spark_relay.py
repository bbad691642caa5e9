"""Queries that one version of Spark begins and a newer one goes on with.

``python -m tests.support.spark_relay FOLDER`` goes on with what was begun there, in the Spark of that interpreter, and
compares.
"""

import pickle
import sys
from collections.abc import Iterable
from pathlib import Path

from pyspark.sql import SparkSession

import fastwin as fw
import spark_glue
from tests.support.spark_events import START_MS, events
from tests.support.spark_streams import MicroBatch, Recorder, Source, assert_replayed, micro_batches, start
from tests.support.stored_specs import EveryOther

__all__ = ["SPECS", "begin"]

BY_KEY = fw.key_by("k").event_time("ts").bad_rows("drop")
SPECS = {
    "tumbling": BY_KEY.window(fw.TumblingEventTimeWindows.of("1 min"))
    .allowed_lateness("30 s")
    .aggregate(n=fw.Count(), s=fw.Sum("v")),
    "sessions": BY_KEY.window(fw.EventTimeSessionWindows.with_gap("4 s"))
    .side_output_late_data()
    .aggregate(n=fw.Count(), s=fw.Sum("v")),
    "own trigger": BY_KEY.window(fw.TumblingEventTimeWindows.of("1 min")).trigger(EveryOther()).aggregate(n=fw.Count()),
}
TABLES = [events(seed, 100, start_ms=START_MS + 60_000 * seed, span_ms=120_000) for seed in range(4)]
BEGUN = 2


def begin(spark: SparkSession, folder: Path, names: Iterable[str]) -> None:
    """Runs queries over the first tables, and keeps what came of each beside its checkpoint."""
    for name in names:
        (folder / name).mkdir()
        batches = _run(spark, folder / name, name, TABLES[:BEGUN], 0)
        (folder / name / "batches.pickle").write_bytes(pickle.dumps(batches))


def _run(spark: SparkSession, folder: Path, name: str, tables: list, before: int) -> list[MicroBatch]:
    source, recorder = Source(folder, TABLES[0].schema, before), Recorder()
    source.put(*tables)
    frame = spark_glue.apply(SPECS[name], source.frame(spark), watermark="10 s", key_groups=4)
    query = start(frame, folder, recorder, available_now=True)
    query.awaitTermination()
    return micro_batches(query, recorder)


def main(folder: Path) -> None:
    """Goes on with each query that was begun."""
    config = {"spark.ui.enabled": False, "spark.sql.shuffle.partitions": 2, "spark.sql.adaptive.enabled": False}
    spark = spark_glue.session(master="local[2]", config=config)
    for name in (one for one in SPECS if (folder / one).exists()):
        batches = pickle.loads((folder / name / "batches.pickle").read_bytes())
        known = {batch.id for batch in batches}
        batches += [batch for batch in _run(spark, folder / name, name, TABLES[BEGUN:], BEGUN) if batch.id not in known]
        assert_replayed(SPECS[name], TABLES, batches)
        print(f"{name}: {len(known)} micro-batches there, {len(batches) - len(known)} in Spark {spark.version}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
