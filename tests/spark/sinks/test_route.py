"""route: several sinks behind one run of the operator."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import types as T

import fastwin as fw
import spark_glue
from fastwin.errors import SpecError
from tests.support.spark_events import START_MS, events
from tests.support.spark_streams import Source, assert_same_rows, rows_of, start

SPEC = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of("1 min")).aggregate(n=fw.Count())


@pytest.fixture
def inputs() -> list[pa.Table]:
    return [events(i, 400, start_ms=START_MS + 200_000 * i, null_times=0.01) for i in range(3)]


class Sink:
    """Keeps each batch, looking at its frame twice."""

    def __init__(self) -> None:
        self.tables: dict[int, pa.Table] = {}
        self.counts: dict[int, int] = {}

    def __call__(self, frame, batch_id: int) -> None:
        self.counts[batch_id] = frame.count()
        self.tables[batch_id] = frame.toArrow()


def run(spark, folder, spec, tables, **sinks):
    source = Source(folder, tables[0].schema)
    source.put(*tables)
    frame = spark_glue.apply(spec, source.frame(spark), watermark="5 s")
    query = start(frame, folder, spark_glue.route(**sinks), available_now=True)
    query.awaitTermination()
    return query


def test_each_sink_gets_its_part_and_the_operator_runs_once(spark, tmp_path, inputs):
    spec = SPEC.side_output_late_data().bad_rows("divert")
    main, late, bad = Sink(), Sink(), Sink()
    query = run(spark, tmp_path, spec, inputs, main=main, late=late, bad=bad)

    counted: dict[str, int] = {}
    for progress in query.recentProgress:
        for counter, count in spark_glue.counters(progress).get("fastwin", {}).items():
            if counter in ("fired", "late", "bad", "events"):
                counted[counter] = counted.get(counter, 0) + count
    # Six looks at the frames, and yet each row was taken once.
    assert counted["events"] + counted["bad"] == sum(table.num_rows for table in inputs)
    for sink, counter in ((main, "fired"), (late, "late"), (bad, "bad")):
        assert sum(sink.counts.values()) == counted[counter] > 0
        assert {batch: table.num_rows for batch, table in sink.tables.items()} == sink.counts
    assert set(main.tables) == set(late.tables) == set(bad.tables)

    assert main.tables[0].column_names == ["k", "window_start", "window_end", "n"]
    everything = rows_of(pa.concat_tables(inputs))
    late_rows = pa.concat_tables(list(late.tables.values()))
    assert late_rows.column_names == ["k", "ts", "v", "x"]
    assert not rows_of(late_rows) - everything
    assert_same_rows(pa.concat_tables(list(bad.tables.values())), spec.run(pa.concat_tables(inputs)).bad)


@pytest.mark.usefixtures("adaptive")
def test_operator_runs_once_per_batch(spark, tmp_path, inputs):
    """Counted where it runs: an accumulator would be raised by every run of a task."""
    runs = spark.sparkContext.accumulator(0)

    def count(batches):
        for batch in batches:
            runs.add(batch.num_rows)
            yield batch

    source = Source(tmp_path, inputs[0].schema)
    source.put(*inputs)
    frame = spark_glue.apply(SPEC.side_output_late_data().bad_rows("drop"), source.frame(spark), watermark="5 s")
    frame = frame.mapInArrow(count, frame.schema)
    main, late = Sink(), Sink()
    start(frame, tmp_path, spark_glue.route(main=main, late=late), available_now=True).awaitTermination()
    assert runs.value == sum(main.counts.values()) + sum(late.counts.values()) > 0


def test_a_sink_need_not_look_at_every_row(spark, tmp_path, inputs):
    """Spark itself would end the query: the state of rows that nobody asked for would not be committed."""
    seen = []
    run(spark, tmp_path, SPEC.bad_rows("drop"), inputs, main=lambda frame, batch_id: seen.append(batch_id))
    assert seen == list(range(len(seen)))
    assert len(seen) >= len(inputs)
    assert not spark.sparkContext._jsc.getPersistentRDDs(), "the frames are not kept"


class Odd(fw.ProcessWindowFunction):
    def process(self, key, context, elements):
        n = len(list(elements))
        if n % 2:
            context.output("odd", (key, n))
        yield n


@pytest.mark.long
def test_side_outputs_have_sinks_of_their_own(spark, tmp_path, inputs):
    spec = SPEC.bad_rows("drop").side_output("odd", "k bigint, n bigint").process(Odd(), output="n bigint")
    main, odd = Sink(), Sink()
    run(spark, tmp_path, spec, inputs, main=main, side={"odd": odd})
    counts = [n for table in main.tables.values() for n in table["n"].to_pylist()]
    at_the_side = pa.concat_tables(list(odd.tables.values()))
    assert at_the_side.column_names == ["k", "n"]
    assert sorted(at_the_side["n"].to_pylist()) == sorted(n for n in counts if n % 2)
    assert 0 < at_the_side.num_rows < len(counts)


def test_rows_that_go_nowhere_are_told_of_once(spark, tmp_path, inputs, caplog):
    spec = SPEC.bad_rows("divert").side_output_late_data()
    run(spark, tmp_path, spec, inputs, main=Sink(), bad=Sink())
    assert [record.getMessage() for record in caplog.records if record.name == "spark_glue.sinks.route"] == [
        "route: no sink takes the late rows that the spec asks for: they go nowhere; give late=..."
    ]


def test_a_side_output_that_goes_nowhere_is_told_of(spark, caplog):
    frame = spark.sql("select 1L k, named_struct('k', 1L) side_odd")
    spark_glue.route(main=Sink())(frame, 0)
    assert "no sink takes the side_odd rows" in caplog.text and "give side={'odd': ...}" in caplog.text


def test_a_query_that_would_never_end_is_refused(spark, tmp_path, inputs):
    spec = fw.key_by("k").processing_time().window(fw.TumblingProcessingTimeWindows.of(10)).aggregate(n=fw.Count())
    source = Source(tmp_path, inputs[0].schema)
    source.put(inputs[0])
    query = start(
        spark_glue.apply(spec, source.frame(spark)), tmp_path, spark_glue.route(main=Sink()), available_now=True
    )
    with pytest.raises(StreamingQueryException, match="availableNow: a query of processing time never ends with it"):
        query.awaitTermination(120)
    frame = spark_glue.apply(spec, source.frame(spark))
    with pytest.warns(UserWarning, match="availableNow: a query of processing time never ends with it"):
        start(frame, tmp_path / "plain", lambda *_: None, available_now=True).stop()


def test_a_key_named_late_is_no_output(spark, tmp_path, inputs):
    tables = [table.rename_columns(["late", "ts", "v", "x"]) for table in inputs]
    spec = (
        fw.key_by("late")
        .event_time("ts")
        .window(fw.TumblingEventTimeWindows.of("1 min"))
        .bad_rows("drop")
        .aggregate(n=fw.Count())
    )
    main = Sink()
    run(spark, tmp_path, spec, tables, main=main)
    assert main.tables[0].column_names == ["late", "window_start", "window_end", "n"]
    assert sum(main.counts.values()) > 0


def test_sink_without_an_output_ends_the_query(spark, tmp_path, inputs):
    with pytest.raises(
        StreamingQueryException,
        match=r"route: late is given, but the spec has no late output; ask for it with .side_output",
    ):
        run(spark, tmp_path, SPEC.bad_rows("drop"), inputs[:1], main=Sink(), late=Sink())


@pytest.mark.parametrize(
    ("outputs", "sinks", "says"),
    [
        ([], {"late": print}, "ask for it with .side_output_late_data()"),
        ([], {"bad": print}, 'ask for it with .bad_rows("divert")'),
        (["late"], {"side": {"big": print}}, "ask for it with .side_output('big', ...)"),
        (["side_late_right"], {"late": print}, "the late rows of a join are for side={'late_right': ...}"),
        (
            ["side_late_right"],
            {"side": {"late_left": print, "late_right": print}},
            "ask for it with .side_output_late_data() of the left input of a join",
        ),
    ],
)
def test_an_output_that_is_not_there_is_told_how_to_get(outputs, sinks, says):
    class Frame:
        schema = T.StructType([T.StructField(name, T.StructType([])) for name in outputs])

    with pytest.raises(SpecError) as caught:
        spark_glue.route(**sinks)(Frame(), 0)
    assert str(caught.value).endswith(f" output; {says}")


def test_error_in_a_sink_ends_the_query(spark, tmp_path, inputs):
    def sink(frame, batch_id):
        raise RuntimeError("the disk is full")

    with pytest.raises(StreamingQueryException, match="the disk is full"):
        run(spark, tmp_path, SPEC.bad_rows("drop"), inputs[:1], main=sink)
    assert not spark.sparkContext._jsc.getPersistentRDDs()


@pytest.mark.parametrize(
    ("sinks", "says"),
    [
        ({}, "route: needs at least one of main=, late=, bad=, side="),
        ({"side": {}}, "route: needs at least one"),
        ({"side": print}, "route: side must be a dict of sinks by tag"),
        ({"side": {"odd": 5}}, "route: side_odd must be a function"),
        ({"main": "console"}, "route: main must be a function of a frame and a batch number, got 'console'"),
        ({"main": print, "bad": 5}, "route: bad must be a function"),
    ],
)
def test_sinks_must_be_functions(sinks, says):
    with pytest.raises(SpecError, match=says):
        spark_glue.route(**sinks)


def both(first, second, **names):
    """Two outputs with a sink each that writes to a folder."""
    return {"main": spark_glue.to_folder(first), "side": {"odd": spark_glue.to_folder(second, **names)}}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("results", "results"),
        ("results", Path("./results/")),
        ("results", "late/../results"),
        ("results", Path.cwd() / "results"),
        ("/mnt/results", "file:///mnt//results/"),
        ("s3a://bucket/results", "s3a://bucket/results/"),
    ],
)
def test_two_outputs_to_one_folder_are_refused(first, second):
    """Each would replace the folders of the other one's micro-batches."""
    with pytest.raises(
        SpecError, match=r"route: main and side_odd go to one folder, '.*results.*', .* a folder of its "
    ):
        spark_glue.route(**both(first, second))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("results", "results/late"),
        ("results/main", "results"),
        ("results", "results/_late=1"),
        ("results", Path.cwd() / "results" / "query=x"),
        ("s3a://bucket/results", "s3a://bucket/results/late/odd"),
    ],
)
def test_an_output_in_the_folder_of_another_is_refused(first, second):
    """Who reads the outer one would find folders of two kinds, and Spark refuses them."""
    with pytest.raises(SpecError, match=r"route: (main|side_odd) goes to '.*', inside the folder of .*; put them side"):
        spark_glue.route(**both(first, second))


def test_an_output_may_be_in_another_by_a_name_that_readers_skip():
    for inner in ("results/_late", "results/.late/odd", "results2", "results-late"):
        spark_glue.route(**both("results", inner))


def test_one_sink_for_two_outputs_is_refused_where_it_writes_to_a_folder():
    sink = spark_glue.to_folder("results")
    with pytest.raises(SpecError, match="route: main and late go to one folder, 'results'"):
        spark_glue.route(main=sink, late=sink)
    spark_glue.route(main=print, late=print)


def test_outputs_may_go_to_other_folders_or_to_one_by_other_names():
    for first, second in (("results", "late"), ("/results", "hdfs:/results"), ("s3a://a/results", "s3a://b/results")):
        spark_glue.route(**both(first, second))
    spark_glue.route(**both("results", "results", name="late"))


@pytest.mark.filterwarnings("ignore:the frame has a watermark already")
@pytest.mark.parametrize(
    "own", [pytest.param(True, marks=pytest.mark.long, id="the frame's watermark"), pytest.param(False, id="one each")]
)
def test_two_results_over_one_watermark_are_refused(spark, tmp_path, inputs, own):
    """Spark lets the first one fire, and never the second."""
    source = Source(tmp_path, inputs[0].schema)
    source.put(*inputs)
    frame = source.frame(spark).where("ts is not null")
    more = {} if own else {"watermark": "5 s"}
    frame = frame.withWatermark("ts", "5 seconds") if own else frame
    first = spark_glue.apply(SPEC, frame, name="first", **more)
    second = spark_glue.apply(SPEC.window(fw.TumblingEventTimeWindows.of("2 min")), frame, name="second", **more)
    main = Sink()
    query = start(first.union(second), tmp_path, spark_glue.route(main=main), available_now=True)
    if own:
        with pytest.raises(StreamingQueryException, match="Spark lets only the first one fire"):
            query.awaitTermination()
        with pytest.warns(UserWarning, match="Spark lets only the first one fire"):  # with another sink
            start(first.union(second), tmp_path / "plain", Sink(), available_now=True).awaitTermination()
        return
    query.awaitTermination()
    lengths = pa.concat_tables(main.tables.values()).to_pandas().eval("window_end - window_start")
    assert set(lengths.dt.total_seconds()) == {60, 120}
