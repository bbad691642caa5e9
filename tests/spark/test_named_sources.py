"""Sources with names: one more of them, and another order, on one checkpoint."""

from functools import reduce

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame
from pyspark.sql.streaming import DataStreamReader

import fastwin as fw
import spark_glue
from tests.support.spark_events import START_MS, events
from tests.support.spark_streams import Recorder, Source, assert_replayed, micro_batches, start

EVOLVES = {
    "spark.sql.streaming.queryEvolution.enableSourceEvolution": "true",
    "spark.sql.streaming.offsetLog.formatVersion": "2",
}
SPEC = (
    fw.key_by("k")
    .event_time("ts")
    .window(fw.TumblingEventTimeWindows.of("10 min"))
    .bad_rows("drop")
    .aggregate(n=fw.Count(), s=fw.Sum("v"))
)


@pytest.fixture
def evolving(spark):
    """A session in which sources may be named."""
    for key, value in EVOLVES.items():
        spark.conf.set(key, value)
    yield spark
    for key in EVOLVES:
        spark.conf.unset(key)


@pytest.mark.skipif(not hasattr(DataStreamReader, "name"), reason="sources have names from Spark 4.2 on")
@pytest.mark.long
def test_a_topic_is_added(evolving, tmp_path):
    tables = {name: events(seed, 80) for seed, name in enumerate(("a", "b"))}
    tables["c"] = events(3, 80, start_ms=START_MS + 600_000, span_ms=1_200_000)
    topics = {}
    for name, table in tables.items():
        (tmp_path / name).mkdir()
        topics[name] = Source(tmp_path / name, table.schema)
        topics[name].put(table)
    batches = []
    for names in ("ab", "cba"):
        frames = [frame_of(evolving, name, topics[name]) for name in names]
        union = reduce(DataFrame.unionByName, frames)
        frame = spark_glue.apply(SPEC, union, watermark="1 min", key_groups=4)
        recorder = Recorder()
        query = start(frame, tmp_path, recorder, available_now=True)
        query.awaitTermination()
        batches += micro_batches(query, recorder)
    assert sum(batch.inputs for batch in batches) == 240, "what was read before is not read again"
    assert_replayed(SPEC, [pa.concat_tables([tables["a"], tables["b"]]), tables["c"]], batches)


def frame_of(spark, name, topic):
    path = str(topic.folder)
    return spark.readStream.schema(spark.read.parquet(path).schema).name(name).parquet(path)
