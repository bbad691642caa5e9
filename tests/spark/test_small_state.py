"""State in one value: the same results as with a log of state, on any store, through restarts and without input."""

import time

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException

import fastwin as fw
import spark_glue
from fastwin.errors import SpecError
from tests.support.spark_events import START_MS, events
from tests.support.spark_streams import (
    Recorder,
    Source,
    assert_replayed,
    assert_same_rows,
    micro_batches,
    parts,
    start,
)
from tests.support.spark_versions import SPARK
from tests.support.variants import variants

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"
HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
BASE = fw.key_by("k").event_time("ts").bad_rows("drop")
TUMBLING = fw.TumblingEventTimeWindows.of("1 min")
SPECS = {
    "aligned": BASE.window(fw.SlidingEventTimeWindows.of("2 min", "1 min"))
    .allowed_lateness("30 s")
    .side_output_late_data()
    .aggregate(n=fw.Count(), low=fw.Min("x"), high=fw.Max("x")),
    "sessions": BASE.window(fw.EventTimeSessionWindows.with_gap("3 s")).aggregate(n=fw.Count(), total=fw.Sum("v")),
    "counted": BASE.window(TUMBLING).trigger(fw.CountTrigger.of(7)).aggregate(n=fw.Count()),
    "firsts": BASE.window(TUMBLING).deduplicate(),
}
TABLES = [events(i, 200, start_ms=START_MS + i * 80_000, span_ms=100_000) for i in range(6)]


@pytest.fixture
def default_store(spark):
    """The store of state that Spark has where nothing is said."""
    before = {key: spark.conf.get(key) for key in (PROVIDER, FORMAT)}
    spark.conf.set(PROVIDER, HDFS)
    spark.conf.set(FORMAT, "1")
    yield
    for key, value in before.items():
        spark.conf.set(key, value)


def run(spark, folder, spec, source, **arguments):
    """Runs a query until all files that there are have been read."""
    frame = spark_glue.apply(spec, source.frame(spark), watermark="10 s", key_groups=8, small_state=True, **arguments)
    recorder = Recorder()
    query = start(frame, folder, recorder, available_now=True)
    query.awaitTermination()
    return micro_batches(query, recorder)


@pytest.mark.parametrize("name", variants(SPECS, "aligned", "firsts"))
def test_it_goes_on_after_a_restart_as_in_process(spark, tmp_path, name):
    goes_on(spark, tmp_path, name)


@pytest.mark.usefixtures("default_store")
def test_it_does_so_on_the_default_store(spark, tmp_path):
    goes_on(spark, tmp_path, "aligned")


def goes_on(spark, tmp_path, name) -> None:
    spec, source, batches = SPECS[name], Source(tmp_path, TABLES[0].schema), []
    for some in (TABLES[:3], TABLES[3:]):
        source.put(*some)
        batches += run(spark, tmp_path, spec, source)
    assert_replayed(spec, TABLES, batches)
    assert parts(batches, "main").num_rows > 20, "the test is about what windows give"
    if name in ("aligned", "sessions"):
        assert any(not batch.inputs and batch.rows.num_rows for batch in batches), "some fire without input"


def test_nulls_and_floats_come_out_as_they_are(spark, tmp_path):
    spec = BASE.window(TUMBLING).aggregate(low=fw.Min("x"), last=fw.Last("x"), n=fw.Count())
    table = TABLES[0]
    values = [(float("inf"), None, -0.0, 1.5)[i % 4] for i in range(table.num_rows)]
    odd = table.set_column(table.column_names.index("x"), "x", [values])
    source = Source(tmp_path, odd.schema)
    source.put(odd, *TABLES[4:])
    batches = run(spark, tmp_path, spec, source)
    assert_replayed(spec, [odd, *TABLES[4:]], batches)


def test_timers_of_processing_time_fire_without_input(spark, tmp_path):
    spec = fw.key_by("k").processing_time().window(fw.TumblingProcessingTimeWindows.of("3 s")).aggregate(n=fw.Count())
    source, recorder = Source(tmp_path, TABLES[0].schema), Recorder()
    source.put(*TABLES[:3])
    frame = spark_glue.apply(spec, source.frame(spark), key_groups=3, small_state=True)
    query = start(frame, tmp_path, recorder)
    try:
        end = time.monotonic() + 120
        while sum(sum(batch.rows["n"].to_pylist()) for batch in micro_batches(query, recorder)) < 600:
            assert query.exception() is None, query.exception()
            assert time.monotonic() < end, "it does not come to an end"
            time.sleep(0.1)
    finally:
        query.stop()
    batches = micro_batches(query, recorder)
    assert_replayed(spec, TABLES[:3], batches, folder=tmp_path)
    assert any(not batch.inputs and batch.rows.num_rows for batch in batches)


@pytest.mark.long
def test_a_join_with_a_quiet_input_through_a_restart(spark, tmp_path):
    rows = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us", tz="UTC"))])

    def side(*seconds):
        times = pa.array([START_MS * 1_000 + second * 1_000_000 for second in seconds], rows.field("ts").type)
        return pa.table([pa.array([1] * len(seconds)), times], schema=rows)

    sources = []
    for name in ("left", "right"):
        (tmp_path / name).mkdir()
        sources.append(Source(tmp_path / name, rows))
    start_of = fw.key_by("k").event_time("ts").bad_rows("drop")
    join = fw.window_join(start_of, start_of, fw.TumblingEventTimeWindows.of("10 s"), how="left")
    recorder = Recorder()
    for seconds in ((1, 5, 12), (31, 45)):
        sources[0].put(side(*seconds))
        frames = tuple(source.frame(spark) for source in sources)
        frame = spark_glue.apply(join, frames, watermark=("1 s", "1 s"), idle="2 s", small_state=True)
        query, before = start(frame, tmp_path, recorder), sum(rows.num_rows for rows in recorder.tables.values())
        try:
            end = time.monotonic() + 120
            while sum(table.num_rows for table in dict(recorder.tables).values()) < before + len(seconds):
                assert query.exception() is None, query.exception()
                assert time.monotonic() < end, "it does not come to an end"
                time.sleep(0.1)
        finally:
            query.stop()
    assert sum(table.num_rows for table in recorder.tables.values()) == 5
    told = str(spark_glue.why(str(tmp_path / "checkpoint"), join, key=1))
    assert "had no watermark yet" not in told


def test_a_query_that_would_never_end_is_refused_here_too(spark, tmp_path):
    spec = fw.key_by("k").processing_time().window(fw.TumblingProcessingTimeWindows.of("3 s")).aggregate(n=fw.Count())
    source = Source(tmp_path, TABLES[0].schema)
    source.put(TABLES[0])
    frame = spark_glue.apply(spec, source.frame(spark), small_state=True)
    query = start(frame, tmp_path, spark_glue.route(main=Recorder()), available_now=True)
    with pytest.raises(StreamingQueryException, match="availableNow"):
        query.awaitTermination()


@pytest.mark.long
def test_what_looks_into_a_checkpoint_looks_into_this_one(spark, tmp_path):
    spec, source = SPECS["aligned"], Source(tmp_path, TABLES[0].schema)
    source.put(*TABLES[:2])
    batches = run(spark, tmp_path, spec, source)
    checkpoint = str(tmp_path / "checkpoint")
    key = TABLES[1]["k"][0].as_py()
    found = spark_glue.inspect(checkpoint, spec)
    assert sum(batch.counters["open_windows_change"] for batch in batches) == found.count()
    told = str(spark_glue.why(checkpoint, spec, key=key, at=START_MS + 150_000))
    assert "in sliding windows of 2 min" in told
    spark_glue.export_state(checkpoint, spec, str(tmp_path / "saved"))
    again = tmp_path / "again"
    again.mkdir()
    rest = Source(again, TABLES[0].schema)
    rest.put(*TABLES[2:])
    frame = spark_glue.apply(spec, rest.frame(spark), watermark="10 s", history=str(tmp_path / "saved"))
    recorder = Recorder()
    query = start(frame, again, recorder, available_now=True)
    query.awaitTermination()
    source.put(*TABLES[2:])
    whole = run(spark, tmp_path, spec, source)
    assert_same_rows(parts(micro_batches(query, recorder), "main"), parts(whole, "main"))
    assert parts(whole, "main").num_rows > 0


@pytest.mark.skipif(SPARK < (4, 3), reason="Spark moves stored state from 4.3 on")
def test_rescale_says_what_to_do_instead(spark, tmp_path):
    source = Source(tmp_path, TABLES[0].schema)
    source.put(*TABLES[:1])
    run(spark, tmp_path, SPECS["sessions"], source)
    with pytest.raises(SpecError, match=r"rescale: the query has small_state=True.*export_state"):
        spark_glue.rescale(str(tmp_path / "checkpoint"), SPECS["sessions"], to=str(tmp_path / "other"), partitions=3)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"small_state": 1}, "small_state: must be True or False, got 1"),
        ({"history": "saved"}, "small_state: Spark gives such state nothing to start from"),
        ({"chain": True}, "small_state: Spark has no watermark behind such state"),
    ],
)
def test_what_it_cannot_do_is_refused(spark, tmp_path, arguments, problem):
    frame = Source(tmp_path, TABLES[0].schema).frame(spark)
    spec = BASE.window(TUMBLING).aggregate(n=fw.Count())
    with pytest.raises(SpecError, match=problem):
        spark_glue.apply(spec, frame, **{"watermark": "10 s", "small_state": True} | arguments)


def test_frames_with_a_watermark_of_their_own_and_batch_frames_are_refused(spark, tmp_path):
    frame = Source(tmp_path, TABLES[0].schema).frame(spark)
    spec = BASE.window(TUMBLING).aggregate(n=fw.Count())
    own = frame.withWatermark("ts", "10 seconds")
    match = "small_state: needs watermark= in place of"
    with pytest.warns(UserWarning, match="has a watermark already"), pytest.raises(SpecError, match=match):
        spark_glue.apply(spec, own, small_state=True)
    with pytest.raises(SpecError, match="small_state: is for a streaming frame"):
        spark_glue.apply(spec, spark.createDataFrame(TABLES[0].to_pandas()), small_state=True)


@pytest.mark.parametrize("first", [True, False])
def test_a_checkpoint_stays_of_its_kind(spark, tmp_path, first):
    spec, source = SPECS["sessions"], Source(tmp_path, TABLES[0].schema)
    for small in (first, not first):
        source.put(TABLES[small])
        frame = spark_glue.apply(spec, source.frame(spark), watermark="10 s", small_state=small)
        query = start(frame, tmp_path, Recorder(), available_now=True)
        if small == first:
            query.awaitTermination()
        else:
            with pytest.raises(StreamingQueryException, match="applyInPandasWithState"):
                query.awaitTermination()
