"""apply on streaming frames: the same rows as the spec gives in this process, batch by batch and over restarts."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import StreamingQueryException

import fastwin as fw
import spark_glue
from fastwin.run.stream import open_plan
from spark_glue.plan.catalyst import DELAY_KEY, prefers_columns
from tests.support.spark_events import KEYS, START_MS, TIME_ZONE, events, key_names
from tests.support.spark_streams import (
    Recorder,
    Source,
    assert_replayed,
    assert_same_rows,
    micro_batches,
    part,
    parts,
    replay,
    run_stream,
    start,
)
from tests.support.spark_versions import columnar_input
from tests.support.variants import variants

WINDOWS = {
    "tumbling": fw.TumblingEventTimeWindows.of("1 minute", "7 s"),
    "sliding": fw.SlidingEventTimeWindows.of("2 minutes", "25 s"),
    "session": fw.EventTimeSessionWindows.with_gap("3 s"),
}


def spec_of(keys=("k",), windows="tumbling", lateness=None, late=False, bad="raise", coalesce=None) -> fw.WindowSpec:
    spec = fw.key_by(*keys).event_time("ts").window(WINDOWS[windows]).bad_rows(bad)
    if lateness is not None:
        spec = spec.allowed_lateness(lateness, coalesce=coalesce)
    if late:
        spec = spec.side_output_late_data()
    return spec.aggregate(n=fw.Count(), total=fw.Sum("v"), low=fw.Min("x"), high=fw.Max("v"), mean=fw.Mean("x"))


def out_of_order(batches: int, n: int, keys="bigint", step_ms=120_000, span_ms=300_000, **more) -> list[pa.Table]:
    """Batches that overlap in event time."""
    return [events(i, n, keys=keys, start_ms=START_MS + i * step_ms, span_ms=span_ms, **more) for i in range(batches)]


def closing(table: pa.Table) -> pa.Table:
    """One event so far ahead that the watermark behind it closes all windows."""
    return events(99, 1, keys="bigint", start_ms=START_MS + 86_400_000).select(table.column_names)


@pytest.mark.parametrize("windows", variants(WINDOWS, "sliding"))
def test_disorder_within_the_delay_gives_what_run_gives(spark, tmp_path, windows):
    tables = out_of_order(4, 800, null_times=0.01)
    spec = spec_of(windows=windows, late=True, bad="divert")
    batches = run_stream(spark, spec, [*tables, closing(tables[0])], tmp_path, watermark="10 minutes")
    end_ms = START_MS + 86_400_000
    expected = spec.run(pa.concat_tables(tables))
    main = parts(batches, "main")
    assert_same_rows(main.filter(_before(main, end_ms)), expected.main)
    assert parts(batches, "late").num_rows == 0
    assert_same_rows(parts(batches, "bad"), expected.bad)


@pytest.mark.parametrize("late", [False, True], ids=["rows", "blobs"])
def test_every_type_of_column_comes_back(spark, tmp_path, late):
    """With main columns alone the operator hands out rows, with a late output blobs: the same either way."""
    kinds = [kind for kind in KEYS if kind not in ("several", "none")]
    table = events(1, 1_500)
    for i, kind in enumerate(kinds):
        table = table.append_column(f"a.{i}`", events(i, 1_500, keys=kind)["k"])
    names = table.column_names[4:]
    spec = fw.key_by(*names).event_time("ts").window(WINDOWS["tumbling"])
    spec = spec.side_output_late_data() if late else spec
    lows = {f"low {i}": fw.Min(name) for i, name in enumerate(names)}
    spec = spec.aggregate(n=fw.Count(), total=fw.Sum("v"), mean=fw.Mean("x"), last=fw.Last("ts"), **lows)
    end = table.slice(0, 1).set_column(1, "ts", pa.array([(START_MS + 86_400_000) * 1_000], table["ts"].type))
    batches = run_stream(spark, spec, [table.slice(0, 700), table.slice(700), end], tmp_path, watermark="10 minutes")
    main = parts(batches, "main")
    assert_same_rows(main.filter(_before(main, START_MS + 86_400_000)), spec.run(table).main)
    assert sum(batch.counters["fired"] for batch in batches) == main.num_rows
    assert [field.type for field in main.schema if field.name in names] == [table[name].type for name in names]


@pytest.mark.parametrize("late", [False, True], ids=["rows", "blobs"])
def test_main_results_alone_need_one_python_step_less(spark, tmp_path, late):
    frame = Source(tmp_path, events(0, 1).schema).frame(spark)
    result = spark_glue.apply(spec_of(late=late), frame, watermark="1 minute")
    steps = str(result._jdf.queryExecution().analyzed()).count("MapInArrow")
    assert steps == 1 + late  # packing, and turning blobs into rows


@pytest.mark.parametrize("windows", variants(WINDOWS, "sliding", "session"))
@pytest.mark.parametrize("lateness", variants([None, "30 seconds"], "30 seconds"))
def test_late_rows_as_in_process(spark, tmp_path, windows, lateness):
    tables = out_of_order(5, 600, keys="several")
    spec = spec_of(key_names("several"), windows, lateness, late=True)
    batches = run_stream(spark, spec, tables, tmp_path, watermark="5 seconds", key_groups=7)
    assert_replayed(spec, tables, batches)
    assert parts(batches, "late").num_rows > 20, "the test is about late rows"
    if lateness:
        bounds = parts(batches, "main").select([*key_names("several"), "window_start", "window_end"])
        assert len(set(map(str, bounds.to_pylist()))) < bounds.num_rows, "some windows must fire again"


def test_uncoalesced_fires_once_per_late_row(spark, tmp_path):
    tables = out_of_order(4, 300)
    spec = spec_of(lateness="10 minutes", coalesce=False)
    batches = run_stream(spark, spec, tables, tmp_path, watermark="0 seconds")
    fired = sum(batch.counters["fired"] for batch in batches)
    coalesced = sum(result.main.num_rows for result in replay(spec_of(lateness="10 minutes"), tables, batches))
    assert fired == parts(batches, "main").num_rows > coalesced


def test_dropped_rows_are_counted(spark, tmp_path):
    tables = out_of_order(3, 500, null_times=0.02)
    spec = spec_of(bad="drop")
    batches = run_stream(spark, spec, tables, tmp_path, watermark="0 seconds")
    stream = open_plan(fw.plan(spec, tables[0].schema, coalesce=True))
    inputs = iter(tables)
    for batch in batches:
        before = stream.metrics
        stream.advance_watermark(batch.watermark_ms or fw.MIN_TIMESTAMP)
        if batch.inputs:
            stream.process(next(inputs))
        now, found = stream.metrics, batch.counters
        assert found["dropped"] == now.num_late_records_dropped - before.num_late_records_dropped
        assert found["bad"] == now.bad - before.bad
        assert found["events"] + found["bad"] == now.events - before.events
        assert found["fired"] == now.fired - before.fired == batch.rows.num_rows
        assert found["open_windows_change"] == now.open_windows - before.open_windows
    assert sum(batch.counters["dropped"] for batch in batches) > 0


def test_all_batches_of_a_running_query(spark, tmp_path):
    """New data while the query runs, with batches of its own in between when the watermark has moved."""
    tables = out_of_order(6, 200)
    spec = spec_of(windows="session", late=True)
    source, recorder = Source(tmp_path, tables[0].schema), Recorder()
    frame = spark_glue.apply(spec, source.frame(spark), watermark="20 seconds")
    query = start(frame, tmp_path, recorder)
    try:
        for number in range(0, len(tables), 2):
            source.put(*tables[number : number + 2])
            query.processAllAvailable()
        batches = micro_batches(query, recorder)
    finally:
        query.stop()
    assert len(batches) > len(tables), "batches without data belong to the test"
    assert_replayed(spec, tables, batches)


def test_restart_goes_on_where_it_stopped(spark, tmp_path):
    tables = [*out_of_order(5, 500, null_times=0.01)]
    spec = spec_of(windows="session", lateness="20 s", late=True, bad="divert")
    source, recorder = Source(tmp_path, tables[0].schema), Recorder()
    batches = []
    for first, last in ((0, 2), (2, 3), (3, 5)):
        source.put(*tables[first:last])
        frame = spark_glue.apply(spec, source.frame(spark), watermark="20 seconds")
        query = start(frame, tmp_path, recorder, available_now=True)
        query.awaitTermination()
        batches += micro_batches(query, recorder)
    assert sorted(recorder.tables) == [batch.id for batch in batches]
    assert_replayed(spec, tables, batches)
    assert_same_rows(parts(batches, "bad"), spec.run(pa.concat_tables(tables)).bad)


def test_hardly_anything_is_left_when_all_windows_are_gone(spark, tmp_path):
    tables = out_of_order(2, 500)
    batches = run_stream(spark, spec_of(), [*tables, closing(tables[0])], tmp_path, watermark="1 minute", key_groups=4)
    assert sum(batch.counters["open_windows_change"] for batch in batches) == 1  # the closing event's own
    assert sum(batch.counters["state_rows_change"] for batch in batches) == 1
    state = spark.read.format("statestore").option("stateVarName", "head").load(str(tmp_path / "checkpoint"))
    assert state.count() <= 3  # its share, one that remembers what was cleaned, and the query's own record
    assert batches[-1].counters["state_bytes"] < 10_000


def test_session_time_zone_changes_nothing(spark, tmp_path):
    """Naive event times are read in it, as batch frames do."""
    table = out_of_order(1, 500)[0]
    naive = table.set_column(1, "ts", pc.local_timestamp(table["ts"].cast(pa.timestamp("us", tz=TIME_ZONE))))
    batches = run_stream(spark, spec_of(late=True), [naive], tmp_path, watermark="0 s")
    (fired,) = (batch for batch in batches if batch.rows.num_rows)
    expected = list(replay(spec_of(), [table], batches))
    assert_same_rows(part(fired.rows, "main"), expected[-1].main)


def test_event_time_before_1970_is_bad_on_a_stream(spark, tmp_path):
    table = events(1, 20, start_ms=-10_000_000)
    batches = run_stream(spark, spec_of(bad="divert"), [table], tmp_path, watermark="0 s")
    assert parts(batches, "bad")["bad_reason"].unique().to_pylist() == [
        "timestamp before the earliest that the runner takes"
    ]
    assert parts(batches, "bad").num_rows == 20


def test_one_wrong_date_does_not_close_the_windows(spark, tmp_path):
    tables = out_of_order(3, 300)
    wrong = events(50, 1, start_ms=4_000_000_000_000)
    spec = spec_of(late=True, bad="divert")
    inputs = [tables[0], pa.concat_tables([tables[1], wrong]), tables[2]]
    batches = run_stream(spark, spec, inputs, tmp_path, watermark="10 minutes")
    assert parts(batches, "late").num_rows == 0
    bad = parts(batches, "bad")
    assert bad["bad_reason"].to_pylist() == ["timestamp further ahead of the clock than max_future_skew"]


def test_a_frame_with_its_own_watermark(spark, tmp_path):
    tables = out_of_order(4, 400)
    spec = spec_of(late=True)
    with pytest.warns(UserWarning, match=r"has a watermark already.* moves it, whatever max_future_skew= says"):
        batches = run_stream(
            spark, spec, tables, tmp_path, prepare=lambda frame: frame.withWatermark("ts", "5 seconds"), key_groups=3
        )
    assert parts(batches, "late").num_rows > 0
    assert_replayed(spec, tables, batches)


@pytest.mark.filterwarnings("error:the frame has a watermark already")
def test_a_mark_that_the_table_has_stored_is_no_watermark(spark, tmp_path):
    tables = out_of_order(3, 200)

    def read_again(frame):
        schema = frame.schema
        schema["ts"].metadata = {DELAY_KEY: 60_000}
        files = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "input"))
        assert files.schema["ts"].metadata == {DELAY_KEY: 60_000}
        return files

    batches = run_stream(spark, spec_of(), tables, tmp_path, prepare=read_again, watermark="5 s", key_groups=3)
    assert parts(batches, "main").num_rows > 0
    assert_replayed(spec_of(), tables, batches)


@columnar_input
@pytest.mark.parametrize("keys", variants(["bigint", "several"], "several"))
def test_columns_of_a_scan(spark, tmp_path, limited, keys):
    tables = out_of_order(3, 700, keys, null_times=0.01)
    spec = spec_of(key_names(keys), late=True, bad="divert")

    def prepare(frame):
        assert prefers_columns(frame, ["ts", "v"])
        return frame

    batches = run_stream(spark, spec, tables, tmp_path, watermark="5 s", prepare=prepare)
    assert_replayed(spec, tables, batches)


def test_rows_that_come_by_a_filter(spark, tmp_path, limited):
    """No columnar scan."""
    tables = out_of_order(3, 400)
    spec = spec_of(late=True)
    batches = run_stream(
        spark, spec, tables, tmp_path, watermark="5 s", prepare=lambda frame: frame.where("k is null or k < 10")
    )
    kept = [table.filter(pc.fill_null(pc.less(table["k"], 10), True)) for table in tables]
    assert_replayed(spec, kept, batches)


# --- queries that must not go on ---


def test_bad_rows_raise(spark, tmp_path):
    with pytest.raises(StreamingQueryException, match=r"BadRowError.*'ts'.*null timestamp"):
        run_stream(spark, spec_of(), [events(1, 100, null_times=0.1)], tmp_path, watermark="0 s")


def test_a_checkpoint_of_another_query_is_refused(spark, tmp_path):
    def spec(size):
        return (
            fw.key_by("k")
            .event_time("ts")
            .window(fw.TumblingEventTimeWindows.of(size))
            .aggregate(n=fw.Count(), m=fw.Max("v"))
        )

    run_stream(spark, spec("1 min"), [events(1, 100)], tmp_path, watermark="1 day", key_groups=5)
    source = Source.__new__(Source)
    source.folder, source.count = tmp_path / "input", 1
    table = events(2, 1, keys="bigint")  # one row: few of the key groups are visited
    source.schema = table.schema
    source.put(table)
    frame = source.frame(spark)
    doubles = frame.withColumn("v", frame.v.cast("double"))
    for size, given, key_groups, says in (
        ("1 min", frame, 6, "key_groups: the checkpoint was made with key_groups=5, this query has key_groups=6"),
        ("2 min", frame, 5, "state: written by another spec.*size_ms=60000.*, is .*size_ms=120000.*a new checkpoint"),
        ("1 min", doubles, 5, r"state: .* aggregate m was Max\(.*\) of int64, is Max\(.*\) of double"),
    ):
        changed = spark_glue.apply(spec(size), given, watermark="1 day", key_groups=key_groups)
        query = start(changed, tmp_path, Recorder(), available_now=True)
        with pytest.raises(StreamingQueryException, match=f"StateError: {says}"):
            query.awaitTermination()


def _before(main: pa.Table, end_ms: int):
    return pc.less(main["window_end"].cast(pa.timestamp("ms", tz="UTC")).cast(pa.int64()), end_ms)
