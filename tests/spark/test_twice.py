"""The same specification applied twice in one query, over two topics: each has a state of its own."""

import time

import pyarrow as pa
import pyarrow.compute as pc
import pytest
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
TOPICS = {
    "left": events(10, 400, start_ms=START_MS, span_ms=100_000),
    "right": events(50, 400, start_ms=START_MS, span_ms=100_000),
}


def at(ms: int) -> pa.Table:
    return events(1, 1, start_ms=ms, span_ms=1)


class Twice:
    """Both topics in one query."""

    def __init__(self, spark, folder, **arguments) -> None:
        self.spark, self.folder = spark, folder
        self.recorder = Recorder()
        self.metrics: list[spark_glue.BatchMetrics] = []
        self.sources, frames = {}, []
        for name, table in TOPICS.items():
            (folder / name).mkdir()
            source = self.sources[name] = Source(folder / name, table.schema)
            source.put(table)
            frame = spark_glue.apply(SPEC, source.frame(spark), watermark="10 s", key_groups=2, name=name, **arguments)
            frames.append(frame.withColumn("topic", F.lit(name)))
        self.frame = frames[0].unionByName(frames[1])
        self.listener = spark_glue.metrics_listener(self.metrics.append)
        spark.streams.addListener(self.listener)

    def run(self, available_now: bool):
        return start(self.frame, self.folder, self.recorder, available_now=available_now)

    def found(self, name: str) -> pa.Table:
        """Returns the rows of a topic so far."""
        rows = pa.concat_tables(list(self.recorder.tables.values()))
        return rows.filter(pc.equal(rows["topic"], name)).drop_columns(["topic"])

    def told(self) -> dict[tuple[str, int], tuple[str | None, int | None]]:
        """Returns who held time back, by frame and micro-batch."""
        self.spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        return {(one.frame, one.batch_id): (one.held_by_frame, one.held_by) for one in self.metrics}

    def holders(self, name: str) -> list[tuple[str | None, int | None]]:
        """Returns who held back the time of one frame, by micro-batch."""
        return [holder for (frame, _), holder in sorted(self.told().items()) if frame == name]


@pytest.fixture
def twice(spark, tmp_path):
    made = []

    def make(**arguments) -> Twice:
        made.append(Twice(spark, tmp_path, **arguments))
        return made[-1]

    yield make
    for one in made:
        spark.streams.removeListener(one.listener)


def test_two_topics_in_one_union_and_who_holds_time_back(twice):
    both = twice()
    both.sources["left"].put(at(START_MS + 1_000_000), at(LAST))
    both.sources["right"].put(TOPICS["right"].schema.empty_table(), at(LAST))  # quiet in the second micro-batch
    both.run(available_now=True).awaitTermination()
    for name, table in TOPICS.items():
        expected = SPEC.run(pa.concat_tables([table, at(START_MS + 1_000_000)][: 2 if name == "left" else 1])).main
        assert expected.num_rows > 5
        assert rows_of(both.found(name)) == rows_of(expected)
    told = both.told()
    for frame in TOPICS:
        assert told[frame, 0] == (None, None)
        assert told[frame, 1] == ("right", 0)
        assert told[frame, 2] == ("left", 0)  # both are where the other one is
    newest = {(one.frame, one.batch_id): one.newest_ms for one in both.metrics}
    assert newest["left", 1] == START_MS + 1_000_000
    assert newest["right", 1] is None


@pytest.mark.long
def test_two_topics_with_a_time_of_their_own(twice):
    both = twice(idle="1 second")
    later = at(START_MS + 219_800)  # shortly before the end of a window
    both.sources["right"].put(later)
    expected = {
        "left": SPEC.run(TOPICS["left"]).main,
        "right": SPEC.run(pa.concat_tables([TOPICS["right"], later])).main,
    }
    query = both.run(available_now=False)
    try:
        end = time.monotonic() + 240
        # A micro-batch's rows are there before Spark tells of it, so both are waited for.
        while not both.recorder.tables or any(
            both.found(name).num_rows < rows.num_rows or both.holders(name)[-1:] != [(None, None)]
            for name, rows in expected.items()
        ):
            assert query.exception() is None, query.exception()
            assert time.monotonic() < end, {name: (both.found(name).num_rows, both.holders(name)) for name in expected}
            time.sleep(0.1)
    finally:
        query.stop()
    for name, rows in expected.items():
        assert rows_of(both.found(name)) == rows_of(rows)
        assert both.holders(name)[0] == (name, 0)  # itself, until it is quiet
