"""The same specification applied twice in one query, over two topics: each has a state of its own."""

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

import fastwin as fw
import spark_glue
from tests.support.spark_events import START_MS, events
from tests.support.spark_streams import Recorder, Source, rows_of, start

SPEC = (
    fw.key_by("k")
    .event_time("ts")
    .window(fw.TumblingEventTimeWindows.of("1 min"))
    .bad_rows("drop")
    .aggregate(n=fw.Count(), total=fw.Sum("v"))
)
END = 3_600_000


def topic(seed: int) -> list[pa.Table]:
    tables = [events(seed + i, 200, start_ms=START_MS + i * 40_000, span_ms=60_000) for i in range(2)]
    return [*tables, events(seed + 9, 1, start_ms=START_MS + END)]


def test_two_topics_in_one_union(spark, tmp_path):
    frames, topics = [], {"left": topic(10), "right": topic(50)}
    for name, tables in topics.items():
        (tmp_path / name).mkdir()
        source = Source(tmp_path / name, tables[0].schema)
        source.put(*tables)
        frame = spark_glue.apply(SPEC, source.frame(spark), watermark="10 s", key_groups=2, name=name)
        frames.append(frame.withColumn("topic", F.lit(name)))
    recorder = Recorder()
    start(frames[0].unionByName(frames[1]), tmp_path, recorder, available_now=True).awaitTermination()
    found = pa.concat_tables(recorder.tables.values())
    for name, tables in topics.items():
        expected = SPEC.run(pa.concat_tables(tables[:-1])).main
        assert rows_of(found.filter(pc.equal(found["topic"], name)).drop_columns(["topic"])) == rows_of(expected)
