"""Calendar windows on Spark: batch and streams as in the process, and as Spark's own date_trunc."""

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import fastwin as fw
import spark_glue
from tests.support.spark_events import START_MS, TIME_ZONE, events
from tests.support.spark_streams import assert_replayed, assert_same_rows, parts, run_stream

Calendar = fw.CalendarEventTimeWindows
YEAR_MS = 365 * 86_400_000


def test_batch_is_as_date_trunc(spark):
    table = events(1, 1_000, keys="bigint", start_ms=START_MS - 15 * YEAR_MS, span_ms=30 * YEAR_MS)
    frame = spark.createDataFrame(table)
    ours, theirs = [], []
    for unit in ("day", "week", "month", "quarter", "year"):
        windows = Calendar.of(f"1 {unit}", time_zone=TIME_ZONE)
        spec = fw.key_by("k").event_time("ts").window(windows).aggregate(n=fw.Count())
        ours.append(spark_glue.apply(spec, frame, key_groups=1).select("k", "window_start", "n"))
        begin = F.date_trunc(unit, "ts").alias("window_start")
        theirs.append(frame.groupBy("k", begin).agg(F.count("*").alias("n")))
    assert_same_rows(*(reduce(DataFrame.union, frames).toArrow() for frames in (ours, theirs)))


def test_partials_of_a_stream_are_as_in_the_process(spark, tmp_path):
    day = 86_400_000
    tables = [events(i, 300, keys="bigint", start_ms=START_MS + i * 40 * day, span_ms=90 * day) for i in range(3)]
    windows = Calendar.cumulative("1 quarter", "1 month", time_zone="Asia/Beirut")
    spec = fw.key_by("k").event_time("ts").window(windows).aggregate(n=fw.Count(), total=fw.Sum("v"))
    batches = run_stream(spark, spec, tables, tmp_path, watermark="5 days")
    assert_replayed(spec, tables, batches)
    assert parts(batches, "main").num_rows > 0


def test_stream_is_as_in_the_process(spark, tmp_path):
    day = 86_400_000
    tables = [events(i, 300, keys="bigint", start_ms=START_MS + i * 40 * day, span_ms=90 * day) for i in range(4)]
    windows = Calendar.sliding("2 weeks", "1 week", time_zone="America/Sao_Paulo")
    spec = fw.key_by("k").event_time("ts").window(windows).allowed_lateness("1 day").side_output_late_data()
    spec = spec.aggregate(n=fw.Count(), total=fw.Sum("v"))
    batches = run_stream(spark, spec, tables, tmp_path, watermark="5 days")
    assert_replayed(spec, tables, batches)
    assert parts(batches, "main").num_rows > 0
    assert parts(batches, "late").num_rows > 0
