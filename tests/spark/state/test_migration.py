"""A query that goes on with the checkpoint of an earlier spec: as a stream does that is restored from its state."""

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException

import fastwin as fw
import spark_glue
from fastwin.run.replica import open_replica
from tests.soak.workload import tables
from tests.support.spark_streams import Recorder, Source, assert_same_rows, micro_batches, part, start

KINDS = {
    "sliding": fw.SlidingEventTimeWindows.of("1 minute", "20 seconds"),
    "sessions": fw.EventTimeSessionWindows.with_gap("20 seconds"),
    "general": fw.TumblingEventTimeWindows.of("1 minute"),
}
OLD = {"n": fw.Count(), "total": fw.Sum("v")}
NEW = {"high": fw.Max("v"), "n": fw.Count(), "total": fw.Sum("v"), "uv": fw.HyperLogLog("v")}


def spec(kind: str, lateness: str, aggregates: dict) -> fw.WindowSpec:
    base = fw.key_by("k").event_time("ts").window(KINDS[kind]).allowed_lateness(lateness).bad_rows("drop")
    if kind == "general":
        base = base.with_pane_info()
    return base.aggregate(**aggregates)


class Checkpoint:
    """A query over a folder, started again with one spec after the other, and a stream that is restored likewise."""

    def __init__(self, spark, folder, schema) -> None:
        self.spark, self.folder = spark, folder
        self.source = Source(folder, schema)
        self.schema = schema
        self.state: bytes | None = None

    def go_on(self, one: fw.WindowSpec, inputs, **arguments) -> int:
        """Runs a spec over more input; returns how many rows have come out, all of them as they should be."""
        self.source.put(*inputs)
        frame = spark_glue.apply(one, self.source.frame(self.spark), watermark="5 s", key_groups=4, **arguments)
        recorder = Recorder()
        query = start(frame, self.folder, recorder, available_now=True)
        query.awaitTermination()
        stream, left, rows = open_replica(fw.plan(one, self.schema), coalesce=True), list(inputs), 0
        if self.state is not None:
            stream.restore(self.state, migrate="added aggregates")
        for batch in micro_batches(query, recorder):
            found = part(batch.rows, "main")
            results = [stream.advance_watermark(batch.watermark_ms or fw.MIN_TIMESTAMP)]
            if batch.inputs:
                results.append(stream.process(left.pop(0)))
            assert_same_rows(found, pa.concat_tables([result.main for result in results]))
            rows += found.num_rows
        assert not left
        self.state = stream.snapshot()
        return rows


@pytest.mark.parametrize(
    "kind", ["sliding", *(pytest.param(one, marks=pytest.mark.long) for one in ("sessions", "general"))]
)
def test_a_longer_lateness_and_added_aggregates(spark, tmp_path, kind):
    inputs = tables(5, 9, 200)
    checkpoint = Checkpoint(spark, tmp_path, inputs[0].schema)
    assert checkpoint.go_on(spec(kind, "10 s", OLD), inputs[:3])
    says = r"high=Max\(.*\) is new.*migrate='added aggregates' allows that.*needs a new checkpoint"
    with pytest.raises(StreamingQueryException, match=says):
        checkpoint.go_on(spec(kind, "30 s", NEW), inputs[3:4])
    checkpoint.source.count -= 1  # it is put once more, in the same place
    assert checkpoint.go_on(spec(kind, "30 s", NEW), inputs[3:6], migrate="added aggregates")
    assert checkpoint.go_on(spec(kind, "40 s", NEW), inputs[6:])
