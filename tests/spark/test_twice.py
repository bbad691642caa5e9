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
LAST = START_MS + 3_600_000


def topic(seed: int) -> pa.Table:
    """Events of a few windows, and a last one behind which all of these fire in the next micro-batch."""
    return pa.concat_tables([events(seed, 400, start_ms=START_MS, span_ms=100_000), events(seed + 9, 1, start_ms=LAST)])


def test_two_topics_in_one_union(spark, tmp_path):
    frames, topics = [], {"left": topic(10), "right": topic(50)}
    for name, table in topics.items():
        (tmp_path / name).mkdir()
        source = Source(tmp_path / name, table.schema)
        source.put(table)
        frame = spark_glue.apply(SPEC, source.frame(spark), watermark="10 s", key_groups=2, name=name)
        frames.append(frame.withColumn("topic", F.lit(name)))
    recorder = Recorder()
    start(frames[0].unionByName(frames[1]), tmp_path, recorder, available_now=True).awaitTermination()
    found = pa.concat_tables(recorder.tables.values())
    for name, table in topics.items():
        expected = SPEC.run(table.slice(0, 400)).main
        assert expected.num_rows > 5
        assert rows_of(found.filter(pc.equal(found["topic"], name)).drop_columns(["topic"])) == rows_of(expected)
