"""Bad arguments of apply and session: an error on the driver, naming argument, value and limit, before any job."""

import os
import subprocess
import sys
import threading
import warnings
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import fastwin as fw
import spark_glue
from fastwin.errors import SpecError
from spark_glue.arguments import warn_of_quiet
from spark_glue.plan.settings import BATCH_BYTES_KEY, BATCH_ROWS_KEY, NO_LIMIT, QUIET_KEY
from spark_glue.session import CLUSTER_WORKER_MEMORY, STATE_STORE_KEY, WORKER_MEMORY, _keep_worker_memory, _quiet
from tests.support.spark_jobs import frame_plan_for, jobs_of

SPEC = (
    fw.key_by("k")
    .event_time("ts")
    .window(fw.TumblingEventTimeWindows.of("1 min"))
    .aggregate(n=fw.Count(), s=fw.Sum("v"))
)


class Plain(fw.ProcessWindowFunction):
    def process(self, key, context, elements):
        yield (1,)


class Locked(Plain):
    def __init__(self):
        self.lock = threading.Lock()


class Counting(fw.AggregateFunction):
    """Counts its elements in an accumulator of Spark's as well."""

    def __init__(self, seen):
        self.seen = seen

    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        self.seen.add(1)
        return accumulator + 1

    def get_result(self, accumulator):
        return accumulator

    def merge(self, a, b):
        return a + b


COLUMNS = "id k, timestamp_seconds(id) ts, id v, cast(id as string) text, array(id) list"


@pytest.fixture(scope="module")
def batch(spark):
    return spark.range(3).selectExpr(*_split(COLUMNS))


@pytest.fixture(scope="module")
def stream(spark):
    rate = spark.readStream.format("rate").load().withColumnRenamed("value", "id")
    return rate.selectExpr(*_split(COLUMNS))


def _split(columns: str) -> list[str]:
    return [column.strip() for column in columns.split(", ")]


@pytest.fixture
def no_jobs(spark):
    """Fails the test if a job runs in it."""
    before = jobs_of(spark)
    yield
    assert not jobs_of(spark) - before


ON_ANY_FRAME = {
    "spec is none": ({"spec": "hourly"}, "spec: must be a WindowSpec .* got str"),
    "spec without windows": ({"spec": fw.key_by("k").event_time("ts")}, r"spec: .*\.window\(assigner\) and"),
    "df is none": ({"df": [1, 2]}, "df: must be a Spark DataFrame, got list"),
    "df of pandas": ({"df": pd.DataFrame({"k": [1]})}, "df: must be a Spark DataFrame, got DataFrame of pandas"),
    "unknown key": (
        {"spec": replace(SPEC, keys=("who",))},
        "key_by: there is no column 'who'.* has k, ts",
    ),
    "unknown time": ({"spec": SPEC.event_time("when")}, "event_time: there is no column 'when'"),
    "unknown value": ({"spec": SPEC.aggregate(s=fw.Sum("w"))}, "there is no column 'w'"),
    "time is text": (
        {"spec": SPEC.event_time("text")},
        "event_time: column 'text' must be a timestamp or int64 .* got string",
    ),
    "sum of text": ({"spec": SPEC.aggregate(s=fw.Sum("text"))}, r"Sum\('text'\): takes .* 'text' is string"),
    "key is a list": ({"spec": replace(SPEC, keys=("list",))}, "key_by: column 'list'"),
    "key_groups too few": ({"key_groups": 0}, "key_groups: must be from 1 to 32768, got 0"),
    "key_groups too many": ({"key_groups": 40_000}, "key_groups: must be from 1 to 32768, got 40000"),
    "key_groups is text": ({"key_groups": "64"}, "key_groups: must be an int from 1 to 32768, got '64'"),
    "watermark is no duration": ({"watermark": "soon"}, "watermark: 'soon' is no duration; write for example"),
    "watermark has months": ({"watermark": "1 month"}, "watermark: '1 month' has a unit of no fixed length"),
    "watermark is negative": ({"watermark": "-5 s"}, "watermark: must not be negative, got '-5 s'"),
    "watermark is a float": ({"watermark": 1.5}, "watermark: must be text .* got 1.5"),
    "skew is no duration": ({"max_future_skew": "a while"}, "max_future_skew: .*'a while'"),
    "skew is negative": ({"max_future_skew": timedelta(days=-1)}, "max_future_skew: must not be negative"),
    "coalesce is text": ({"coalesce": "yes"}, "coalesce: must be None, True or False, got 'yes'"),
    "coalesce against the spec": (
        {"spec": SPEC.allowed_lateness("1 s", coalesce=False), "coalesce": True},
        r"coalesce: got True, but the spec says allowed_lateness\(..., coalesce=False\)",
    ),
    "two columns of a name": (
        {"spec": SPEC.aggregate(K=fw.Count())},
        "columns 'k' and 'K', which Spark cannot tell apart",
    ),
    "late is taken": ({"spec": SPEC.side_output_late_data().aggregate(late=fw.Count())}, "columns 'late' and 'late'"),
    "name is none": ({"name": ""}, "name: must be the name of the counters, got ''"),
    "spec that holds a lock": (
        {"spec": SPEC.process(Locked(), output="n int")},
        "spec: it cannot be sent to Spark's workers: TypeError: cannot pickle '_thread.lock' object",
    ),
    "output of a type that Spark lacks": (
        {"spec": SPEC.process(Plain(), output=pa.schema([("n", pa.uint32())]))},
        "output: column 'n' has type uint32, which Spark has not",
    ),
    "side output of a type that Spark lacks": (
        {"spec": SPEC.side_output("odd", pa.schema([("n", pa.month_day_nano_interval())]))},
        "side_output 'odd': column 'n' has type month_day_nano_interval, which Spark has not",
    ),
    "side output is taken": (
        {"spec": SPEC.side_output("n", "n int").aggregate(side_n=fw.Count())},
        "columns 'side_n' and 'side_n', which Spark cannot tell apart",
    ),
}


@pytest.mark.parametrize("kind", ["batch", "stream"])
@pytest.mark.parametrize("case", ON_ANY_FRAME)
def test_argument_is_named(request, no_jobs, kind, case):
    arguments, says = ON_ANY_FRAME[case]
    df = request.getfixturevalue(kind)
    with pytest.raises(SpecError, match=says):
        spark_glue.apply(**({"spec": SPEC, "df": df, "watermark": "1 s"} | arguments))


ON_STREAMS = {
    "no watermark": (lambda df: df, {}, "watermark: a streaming frame needs one"),
    "another watermark": (
        lambda df: df.withWatermark("ts", "5 seconds"),
        {"watermark": "6 seconds"},
        "watermark: got 6 s, but the frame has one of 5 s already",
    ),
    "watermark on another column": (
        lambda df: df.selectExpr("*", "ts as seen").withWatermark("seen", "5 seconds"),
        {},
        "event_time: the spec has 'ts', but the frame has its watermark on 'seen'",
    ),
    "watermark without event time": (
        lambda df: df,
        {"spec": fw.key_by("k").count_window(3).aggregate(n=fw.Count()), "watermark": "5 s"},
        r"watermark: the spec has no event_time\(column\) to take one from, got 5 s",
    ),
    "Spark's own windows before it": (
        lambda df: (
            df.withWatermark("ts", "5 seconds")
            .groupBy(F.window("ts", "1 minute"), "k")
            .count()
            .selectExpr("k", "window_time(window) AS ts")
        ),
        {},
        "df: it comes out of Spark's own streaming aggregation, the last of whose results would be late here",
    ),
    "watermark's column is gone": (
        lambda df: df.selectExpr("*", "ts as seen").withWatermark("seen", "5 seconds").drop("seen"),
        {"watermark": "5 s"},
        "it has a watermark on 'seen', but not that column any more",
    ),
}


@pytest.mark.parametrize("case", ON_STREAMS)
@pytest.mark.filterwarnings("ignore:the frame has a watermark already")
def test_streaming_frame_does_not_suit(stream, no_jobs, case):
    prepare, arguments, says = ON_STREAMS[case]
    with pytest.raises(SpecError, match=says):
        spark_glue.apply(**({"spec": SPEC, "df": prepare(stream)} | arguments))


def test_an_accumulator_counts_in_a_batch_and_is_refused_in_a_stream(spark, batch, stream):
    seen = spark.sparkContext.accumulator(0)
    spec = SPEC.aggregate(Counting(seen), output="n int")
    assert spark_glue.apply(spec, batch).count() == seen.value == 3
    for arguments in ({}, {"small_state": True}):
        with pytest.raises(SpecError, match=r"spec: it holds an accumulator of Spark's, and what .* is lost"):
            spark_glue.apply(spec, stream, watermark="1 s", **arguments)
    keyed = fw.key_by("k").event_time("ts")
    pairs = fw.co_group(
        keyed, keyed, fw.TumblingEventTimeWindows.of("1 min"), lambda *_: iter([seen.add(1)]), output="n int"
    )
    with pytest.raises(SpecError, match="spec: it holds an accumulator"):
        spark_glue.apply(pairs, (stream, stream), watermark=("1 s", "1 s"))


def test_windows_behind_windows_are_refused(stream, no_jobs):
    first = spark_glue.apply(SPEC, stream, watermark="1 s")
    second = (
        fw.key_by("k").event_time("window_end").window(fw.TumblingEventTimeWindows.of("1 h")).aggregate(n=fw.Sum("n"))
    )
    with pytest.raises(SpecError, match="df: it comes out of another stateful operator"):
        spark_glue.apply(second, first, watermark="1 s")  # test_chain has what is possible


def test_time_zone_that_arrow_does_not_know(spark, batch, no_jobs):
    naive = batch.withColumn("ts", batch.ts.cast("timestamp_ntz"))
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "GMT+2")
    try:
        with pytest.raises(SpecError, match=r"spark.sql.session.timeZone='GMT.2' is none that Arrow knows"):
            spark_glue.apply(SPEC, naive)
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_state_store_that_does_not_suit(spark, stream, batch, no_jobs):
    before = spark.conf.get(STATE_STORE_KEY)
    spark.conf.set(STATE_STORE_KEY, "org.example.HDFSBackedStateStoreProvider")
    try:
        with pytest.raises(SpecError, match=f"{STATE_STORE_KEY}='org.example.HDFS.*needed is 'org.apache.*RocksDB"):
            spark_glue.apply(SPEC, stream, watermark="1 s")
        with pytest.raises(SpecError, match=f"{STATE_STORE_KEY}='org.example.HDFS"):
            spark_glue.session()
        spark_glue.apply(SPEC, batch)  # has no state
    finally:
        spark.conf.set(STATE_STORE_KEY, before)


@pytest.mark.parametrize("watermark", ["10 seconds", "1 h 30 min", "250 ms", 0, timedelta(minutes=2), "1 day"])
def test_good_watermarks(stream, no_jobs, watermark):
    assert spark_glue.apply(SPEC, stream, watermark=watermark).isStreaming


def test_batches_to_python_that_arrow_cannot_hold_are_warned_of(spark, batch, stream):
    """At 10,000 rows a batch, each of which may be a blob of 128 kB, it can."""
    before = spark.conf.get(BATCH_BYTES_KEY)
    try:
        for rows, limit, is_warned in ((None, NO_LIMIT, 0), (0, "64m", 0), (0, NO_LIMIT, 1), (20_000, NO_LIMIT, 1)):
            if rows is not None:
                spark.conf.set(BATCH_ROWS_KEY, rows)
            spark.conf.set(BATCH_BYTES_KEY, limit)
            for frame in (batch, stream):
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    spark_glue.apply(SPEC.bad_rows("drop"), frame, watermark="1 s")
                told = [str(one.message) for one in caught if str(one.message).startswith(BATCH_ROWS_KEY)]
                assert len(told) == is_warned
                assert all(f" is {rows}, and {BATCH_BYTES_KEY} says no limit" in text for text in told)
    finally:
        spark.conf.unset(BATCH_ROWS_KEY)
        spark.conf.set(BATCH_BYTES_KEY, before)


def test_watermark_has_no_effect_on_batch(batch):
    assert spark_glue.apply(SPEC, batch, watermark="1 s").count() == 3


# --- session ---


def test_a_running_session_that_suits_is_returned(spark):
    assert spark_glue.session() is spark
    assert spark_glue.session(master="local[2]", config={"spark.ui.enabled": False}) is spark


@pytest.mark.parametrize("url", ["host:443/;user_id=ann;token=dapi7", "ann:dapi7@host:443/", "host:443/?token=dapi7"])
def test_the_token_of_a_server_is_not_shown(monkeypatch, url):
    monkeypatch.setenv("SPARK_REMOTE", f"sc://{url}")
    with pytest.raises(SpecError, match="a server at 'sc://host:443/' with a master") as caught:
        spark_glue.session(master="local[7]")
    assert "dapi7" not in str(caught.value)


def test_no_progress_bar_writes_over_other_lines(spark):
    assert spark.sparkContext.getConf().get("spark.ui.showConsoleProgress") == "false"


@pytest.mark.parametrize(
    "environment",
    [{"PYSPARK_SUBMIT_ARGS": "--conf spark.ui.showConsoleProgress=true pyspark-shell"}, {"PYSPARK_GATEWAY_PORT": "1"}],
    ids=["said", "spark-submit"],
)
def test_who_asks_for_progress_bars_gets_them(environment):
    assert _quiet(environment) == {}


def test_state_is_written_as_changes_with_a_snapshot_now_and_then(spark):
    prefix = "spark.sql.streaming.stateStore."
    assert spark.conf.get(f"{prefix}rocksdb.changelogCheckpointing.enabled") == "true"
    assert spark.conf.get(f"{prefix}minDeltasForSnapshot") == "100"


def test_workers_keep_their_memory(spark):
    names = ["MALLOC_MMAP_MAX_", "MALLOC_TRIM_THRESHOLD_", "MIMALLOC_PURGE_DELAY"]
    seen = spark.sparkContext.parallelize(names, 1).map(os.getenv).collect()
    assert seen == ["0", str(2**34), "-1"]


@pytest.mark.parametrize(
    ("master", "most", "kept"), [("local[2]", 2**34, {}), ("yarn", 2**28, {"MALLOC_MMAP_MAX_": "0"})]
)
def test_workers_in_local_mode_inherit_what_the_environment_says(master, most, kept, monkeypatch):
    monkeypatch.setenv("MALLOC_MMAP_MAX_", "5")
    context = SimpleNamespace(master=master, environment={"MIMALLOC_PURGE_DELAY": "7"})
    _keep_worker_memory(context)
    assert context.environment == {"MIMALLOC_PURGE_DELAY": "7", "MALLOC_TRIM_THRESHOLD_": str(most), **kept}


SPIKE = """
import pyarrow as pa, numpy as np, time
from pathlib import Path

def own():
    return int(next(line for line in Path("/proc/self/status").read_text().splitlines() if "RssAnon" in line).split()[1])

ones = pa.array(np.ones(1 << 17, np.int64))

def batch(size):
    [np.ones(1 << 17) for _ in range(size)]  # a MB each, of glibc's
    [ones.cast(pa.float64()) for _ in range(size)]  # of Arrow's

batch(1)
before = own()
batch(300)
for _ in range(2):
    time.sleep(DELAY)
    batch(1)
print((own() - before) >> 10)
"""


@pytest.mark.parametrize(("memory", "kept_mb"), [(WORKER_MEMORY, (500, 2_000)), (CLUSTER_WORKER_MEMORY, (0, 280))])
def test_on_a_cluster_workers_give_back_what_a_large_micro_batch_took(memory, kept_mb):
    given = memory if memory["MIMALLOC_PURGE_DELAY"] == "-1" else memory | {"MIMALLOC_PURGE_DELAY": "100"}
    done = subprocess.run(
        [sys.executable, "-c", SPIKE.replace("DELAY", "0.15")],
        env=os.environ | given,
        capture_output=True,
        check=True,
        timeout=300,
    )
    assert kept_mb[0] <= int(done.stdout) <= kept_mb[1]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"master": "local[7]"}, r"spark.master='local\[2\]', needed is 'local\[7\]'"),
        ({"config": {"spark.ui.enabled": True}}, "spark.ui.enabled='false', needed is 'true'"),
        ({"config": {"spark.made.up": 5}}, "spark.made.up=None, needed is '5'"),
    ],
)
def test_a_running_session_is_not_rebuilt(spark, arguments, says):
    with pytest.raises(SpecError, match=says):
        spark_glue.session(**arguments)


@pytest.mark.parametrize(
    ("changes", "told", "warns"),
    [
        ({"idle_ms": 60_000}, "false", True),
        ({"idle_ms": 60_000}, "true", False),
        ({}, "false", False),
        ({"idle_ms": 60_000, "streaming": False}, "false", False),
    ],
)
def test_a_setting_that_keeps_micro_batches_from_the_clock_is_warned_of(changes, told, warns):
    spark = SimpleNamespace(conf=SimpleNamespace(get=lambda key, _: {QUIET_KEY: told}[key]))
    frame_plan = frame_plan_for(pa.table({"k": [1], "ts": [1], "v": [1]}), SPEC, **changes)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_quiet(frame_plan, spark)
    assert [f"{QUIET_KEY} is false, so no micro-batch runs" in str(one.message) for one in caught] == [True] * warns
