"""apply on batch frames: the same rows as spec.run, whatever the windows, the keys and the way in."""

import datetime as dt

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import fastwin as fw
import spark_glue
from spark_glue.plan import catalyst as frames
from spark_glue.stages import pack
from tests.support.spark_events import KEYS, START_MS, TIME_ZONE, events, key_names
from tests.support.spark_streams import assert_same_rows, part
from tests.support.spark_versions import columnar_input

WINDOWS = {
    "tumbling": fw.TumblingEventTimeWindows.of("1 minute", "7 s"),
    "sliding": fw.SlidingEventTimeWindows.of("2 minutes", "25 s"),
    "gaps": fw.SlidingEventTimeWindows.of("10 s", "1 minute"),
    "session": fw.EventTimeSessionWindows.with_gap("2 s"),
}


def spec_of(keys: list[str], windows: fw.WindowAssigner = WINDOWS["tumbling"]) -> fw.WindowSpec:
    return (
        fw.key_by(*keys)
        .event_time("ts")
        .window(windows)
        .aggregate(n=fw.Count(), total=fw.Sum("v"), low=fw.Min("x"), high=fw.Max("v"), mean=fw.Mean("x"))
    )


@pytest.fixture
def parquet(spark, tmp_path):
    def write(*tables: pa.Table):
        for number, table in enumerate(tables):
            pq.write_table(table, tmp_path / f"{number}.parquet")
        return spark.read.parquet(str(tmp_path))

    return write


@pytest.mark.usefixtures("adaptive")
@pytest.mark.parametrize("windows", WINDOWS)
def test_same_as_run_for_all_windows(parquet, windows):
    tables = [events(seed, 3000) for seed in range(3)]
    spec = spec_of(["k"], WINDOWS[windows])
    assert_same_rows(spark_glue.apply(spec, parquet(*tables)).toArrow(), spec.run(pa.concat_tables(tables)).main)


@pytest.mark.parametrize("keys", KEYS)
def test_same_as_run_for_all_key_types(parquet, keys):
    table = events(1, 1000, keys=keys)
    spec = spec_of(key_names(keys))
    df = parquet(table.slice(0, 400), table.slice(400))
    result = spark_glue.apply(spec, df, key_groups=5)
    assert [result.schema[name].dataType for name in key_names(keys)] == [
        df.schema[name].dataType for name in key_names(keys)
    ]
    assert_same_rows(result.toArrow(), spec.run(table).main)


@pytest.mark.usefixtures("adaptive")
@pytest.mark.parametrize("key_groups", [1, 3, 1000])
def test_number_of_key_groups_changes_nothing(parquet, key_groups):
    table = events(2, 2000)
    spec = spec_of(["k"])
    assert_same_rows(spark_glue.apply(spec, parquet(table), key_groups=key_groups).toArrow(), spec.run(table).main)


@columnar_input
@pytest.mark.parametrize("way", ["scan", "rows", "columns from rows"])
def test_every_way_in_gives_the_same(parquet, monkeypatch, limited, way):
    table = events(3, 5000, keys="several", null_times=0.01)
    spec = spec_of(key_names("several")).bad_rows("divert")
    df = parquet(table.slice(0, 1000), table.slice(1000))
    if way != "scan":
        df = df.where("v is null or v > -2000")  # nothing goes, but it is no plain scan any more
    assert frames.prefers_columns(df, ["a", "ts"]) == (way == "scan")
    if way == "columns from rows":
        monkeypatch.setattr(pack, "prefers_columns", lambda *_: True)
    result = spark_glue.apply(spec, df)
    text = result._jdf.queryExecution().executedPlan().toString()
    assert ("ArrowEvalPython" in text, "MapInArrow" in text) == (way != "rows", way == "rows")
    found, expected = result.toArrow(), spec.run(table)
    assert_same_rows(part(found, "main"), expected.main)
    assert_same_rows(part(found, "bad"), expected.bad)


@columnar_input
def test_columnar_scan_stays_columnar_where_batches_are_limited_in_bytes(parquet, limited):
    result = spark_glue.apply(spec_of(["k"]), parquet(events(4, 10)))
    assert "ColumnarToRow" not in result._jdf.queryExecution().executedPlan().toString()


def test_rows_are_the_way_where_batches_are_limited_in_rows_alone(parquet, compiled):
    df = parquet(events(4, 10))
    assert frames.is_columnar(df, ["k"])
    assert not frames.prefers_columns(df, ["k"])
    assert "MapInArrow" in spark_glue.apply(spec_of(["k"]), df)._jdf.queryExecution().executedPlan().toString()


def test_empty_frame_gives_an_empty_one(parquet):
    result = spark_glue.apply(spec_of(["k"]), parquet(events(5, 0)))
    assert result.count() == 0
    assert result.columns == ["k", "window_start", "window_end", "n", "total", "low", "high", "mean"]


def test_window_bounds_are_timestamps(parquet):
    result = spark_glue.apply(spec_of(["k"]), parquet(events(5, 10)))
    assert {result.schema[name].dataType.simpleString() for name in ("window_start", "window_end")} == {"timestamp"}


def test_event_time_before_1970_is_fine(parquet):
    table = events(6, 500, start_ms=-2_000_000_000_000)
    assert_same_rows(spark_glue.apply(spec_of(["k"]), parquet(table)).toArrow(), spec_of(["k"]).run(table).main)


def test_event_time_as_milliseconds(parquet):
    table = events(7, 500)
    table = table.set_column(
        1, "ts", pc.floor_temporal(table["ts"], unit="millisecond").cast(pa.timestamp("ms")).cast(pa.int64())
    )
    assert_same_rows(spark_glue.apply(spec_of(["k"]), parquet(table)).toArrow(), spec_of(["k"]).run(table).main)


def test_naive_event_time_is_of_the_session_time_zone(parquet):
    table = events(8, 2000, start_ms=1_698_540_000_000, span_ms=7_200_000, null_times=0.01)  # the clocks go back
    local = pc.local_timestamp(table["ts"].cast(pa.timestamp("us", tz=TIME_ZONE)))
    naive = table.set_column(1, "ts", local)
    spec = spec_of(["k"]).bad_rows("divert")
    df = parquet(naive)
    as_spark_reads_it = df.selectExpr("k", "cast(ts as timestamp) ts", "v", "x").toArrow()
    found = spark_glue.apply(spec, df).toArrow()
    assert_same_rows(part(found, "main"), spec.run(as_spark_reads_it).main)
    bad = part(found, "bad")
    assert bad.column_names == ["k", "ts", "v", "x", "bad_reason"]
    assert bad.num_rows == naive["ts"].null_count
    assert bad.schema.field("ts").type == pa.timestamp("us")


def test_naive_event_time_may_be_a_key_too(parquet):
    table = pa.table({"ts": pa.array([dt.datetime(2024, 7, 1, 12), dt.datetime(2024, 7, 1, 12)], pa.timestamp("us"))})
    spec = fw.key_by("ts").event_time("ts").window(WINDOWS["tumbling"]).aggregate(n=fw.Count(), last=fw.Max("ts"))
    rows = spark_glue.apply(spec, parquet(table)).collect()
    assert [(row.ts, row.n, row["last"]) for row in rows] == [
        (dt.datetime(2024, 7, 1, 12), 2, dt.datetime(2024, 7, 1, 12))
    ]


@pytest.mark.parametrize("way", ["columns", "rows"])
def test_columns_with_odd_names(parquet, request, way):
    if way == "columns":
        request.getfixturevalue("limited")
    table = events(9, 200).rename_columns(["a.b", "t`s", "v v", "x"])
    spec = fw.key_by("a.b").event_time("t`s").window(WINDOWS["tumbling"]).aggregate(s=fw.Sum("v v"))
    assert_same_rows(spark_glue.apply(spec, parquet(table)).toArrow(), spec.run(table).main)


def test_columns_that_arrow_cannot_hold_do_no_harm_if_not_needed(spark):
    df = spark.sql("select 1L k, timestamp'2024-01-01' ts, interval '1' month as gap")
    spec = fw.key_by("k").event_time("ts").window(WINDOWS["tumbling"]).aggregate(n=fw.Count())
    assert spark_glue.apply(spec, df).collect()[0].n == 1
    with pytest.raises(fw.SpecError, match="'gap'"):
        spark_glue.apply(spec.bad_rows("divert"), df)


# --- bad rows ---


def test_bad_rows_raise(parquet):
    result = spark_glue.apply(spec_of(["k"]), parquet(events(10, 100, null_times=0.1)))
    with pytest.raises(Exception, match=r"BadRowError.*'ts'.*null timestamp"):
        result.collect()


def test_bad_rows_drop(parquet):
    table = events(11, 1000, null_times=0.1)
    spec = spec_of(["k"]).bad_rows("drop")
    result = spark_glue.apply(spec, parquet(table))
    assert "bad" not in result.columns
    assert_same_rows(result.toArrow(), spec.run(table).main)


def test_bad_rows_divert_with_nested_columns(spark):
    df = spark.sql(
        "select id k, if(id % 2 = 0, timestamp_seconds(id), null) ts, array(id, null) a, named_struct('x', id) s, "
        "map('k', id) m, cast(id as decimal(20, 3)) d from range(10)"
    )
    spec = fw.key_by("k").event_time("ts").window(WINDOWS["tumbling"]).bad_rows("divert").aggregate(n=fw.Count())
    result = spark_glue.apply(spec, df)
    bad = result.where("bad is not null").select("bad.*").drop("bad_reason")
    assert {(f.name, f.dataType) for f in bad.schema} == {(f.name, f.dataType) for f in df.schema}
    assert sorted(bad.collect()) == sorted(df.where("ts is null").collect())
    assert result.where("bad is null").count() == 5


def test_all_rows_bad(parquet):
    table = events(12, 50, null_times=1.0)
    result = spark_glue.apply(spec_of(["k"]).bad_rows("divert"), parquet(table)).toArrow()
    assert part(result, "main").num_rows == 0
    assert part(result, "bad").num_rows == 50


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz"])
def test_years_beyond_9999_are_bad_rows(spark, kind):
    """The last good time is the last millisecond of 9999 in UTC, whatever the session's zone is."""
    assert spark.conf.get("spark.sql.session.timeZone") == TIME_ZONE
    micros = [9 * 10**18, 253_402_300_800_000_000, 253_402_300_799_999_999, START_MS * 1_000]
    told = ", ".join(f"({one})" for one in micros)
    df = spark.sql(f"select 1L k, cast(timestamp_micros(id) as {kind}) ts, 1L v, 1d x from values {told} t(id)")
    result = spark_glue.apply(spec_of(["k"]).bad_rows("divert"), df)
    reasons = result.where("bad is not null").selectExpr("bad.bad_reason").toArrow()["bad_reason"].to_pylist()
    assert reasons == ["timestamp outside years 1 to 9999"] * 2
    assert result.where("bad is null").count() == 2


def test_overflow_ends_the_query(spark):
    df = spark.sql(f"select 1L k, timestamp_millis({START_MS}) ts, 9223372036854775807L v, 1d x from range(2)")
    with pytest.raises(Exception, match="AggregateOverflowError"):
        spark_glue.apply(spec_of(["k"]), df).collect()
