"""Rows further ahead of the micro-batch's time than max_future_skew: judged by the time that the checkpoint has."""

import json
import shutil
from datetime import datetime
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

import fastwin as fw
import spark_glue
from tests.support.spark_streams import Recorder, Source, micro_batches, part, start
from tests.support.variants import variants

BERLIN, ANGELES = ZoneInfo("Europe/Berlin"), ZoneInfo("America/Los_Angeles")
DAY_MS, HOUR_MS = 86_400_000, 3_600_000
US = pa.timestamp("us", tz="UTC")


def spec_of(unit: str | None, policy: str) -> fw.WindowSpec:
    minutes = fw.key_by("k").event_time("ts", unit=unit).window(fw.TumblingEventTimeWindows.of("1 min"))
    return minutes.bad_rows(policy).aggregate(n=fw.Count())


def run_again(spark, folder, times: pa.Array, at_ms: int, unit: str | None = None, **arguments) -> tuple[int, list]:
    """Runs a micro-batch twice, the second time as if it had begun at another moment, and nothing had been committed.

    Returns how many rows were bad at first, and the times of those that were in the end.
    """
    table = pa.table({"k": pa.array([1] * len(times), pa.int64()), "ts": times})
    source = Source(folder, table.schema)
    source.put(table)

    def run():
        recorder = Recorder()
        frame = spark_glue.apply(spec_of(unit, "divert"), source.frame(spark), watermark="0 s", **arguments)
        query = start(frame, folder, recorder, available_now=True)
        query.awaitTermination()
        return micro_batches(query, recorder)[0]

    first = run()
    checkpoint = (folder / "checkpoint").rename(folder / "first")
    for kept in ("metadata", "offsets/0", *(f"sources/0/{path.name}" for path in (checkpoint / "sources/0").iterdir())):
        (folder / "checkpoint" / kept).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(checkpoint / kept, folder / "checkpoint" / kept)
    version, told, *offsets = (checkpoint / "offsets/0").read_text().splitlines()
    told = json.dumps(json.loads(told) | {"batchTimestampMs": at_ms}, separators=(",", ":"))
    (folder / "checkpoint/offsets/0").write_text("\n".join([version, told, *offsets]))
    return first.counters["bad"], part(run().rows, "bad")["ts"].cast(times.type).to_pylist()


MOMENTS = [
    (datetime(2023, 7, 5, tzinfo=BERLIN), "Europe/Berlin", DAY_MS),
    (datetime(2023, 7, 4, 23, 59, 59, 999_000, tzinfo=BERLIN), "Europe/Berlin", DAY_MS),
    (datetime(2023, 12, 5, tzinfo=BERLIN), "Europe/Berlin", 36 * HOUR_MS),
    (datetime(2023, 7, 5, tzinfo=ANGELES), "America/Los_Angeles", DAY_MS),
    (datetime(2023, 7, 5, 11, tzinfo=BERLIN), "Europe/Berlin", HOUR_MS),
]
UNITS = [(None, 1_000), ("s", 1), ("us", 1_000_000), ("ns", 1_000_000_000)]


@pytest.mark.parametrize("moment", variants(MOMENTS, MOMENTS[1], MOMENTS[3]))
def test_a_row_is_judged_by_the_time_of_its_micro_batch(spark, tmp_path, moment):
    """To the millisecond, at the ends of a day too. No row further ahead brings the time for this one."""
    at, zone, skew_ms = moment
    at_ms = round(at.timestamp() * 1_000)
    last_us = (at_ms + skew_ms) * 1_000 + 999
    times = pa.array([None, last_us - DAY_MS * 1_000, last_us, last_us + 1], pa.int64())
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        bad, found = run_again(spark, tmp_path, times.cast(US), at_ms, max_future_skew=skew_ms)
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    assert bad == 1
    assert found == times.take(pa.array([0, 3])).cast(US).to_pylist()


@pytest.mark.parametrize("unit", variants(UNITS, UNITS[3]))
def test_whole_numbers_are_judged_in_their_unit(spark, tmp_path, unit):
    name, per_second = unit
    at_s = round(datetime(2023, 7, 5, tzinfo=BERLIN).timestamp())
    first = (at_s + 86_400) * per_second + max(1, per_second // 1_000)  # that is too far ahead
    times = pa.array([at_s * per_second, first - 1, first, None], pa.int64())
    bad, found = run_again(spark, tmp_path, times, at_s * 1_000, name)
    assert bad == 1
    assert found == times.take(pa.array([2, 3])).to_pylist()


def test_local_times_are_judged_as_instants(spark, tmp_path):
    at_s = round(datetime(2023, 7, 5, tzinfo=BERLIN).timestamp())
    local_us = (at_s + 2 * 3_600 + 86_400) * 1_000_000  # the session's clocks are two hours ahead
    times = pa.array([local_us, local_us + 999, local_us + 1_000], pa.timestamp("us"))
    bad, found = run_again(spark, tmp_path, times, at_s * 1_000)
    assert (bad, found) == (0, times[2:].to_pylist())


@pytest.mark.usefixtures("compiled")
def test_spark_compiles_nothing_anew_in_a_micro_batch(spark, tmp_path):
    """The time of a micro-batch is another one each time; in the code that Spark makes of the plan it would be too."""
    times = pa.array([1_700_000_000_000_000], US)
    source = Source(tmp_path, pa.table({"k": [1], "ts": times}).schema)
    source.put(*[pa.table({"k": [1], "ts": times})] * 8)
    compiled = spark._jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME()
    counts = []

    def sink(frame, batch_id):
        frame.write.format("noop").mode("append").save()
        counts.append(compiled.getCount())

    frame = spark_glue.apply(spec_of(None, "drop"), source.frame(spark), watermark="0 s")
    start(frame, tmp_path, sink, available_now=True).awaitTermination()
    assert len(counts) >= 8
    assert counts[0] > 0, "nothing is compiled at all"
    assert counts[-1] - counts[1] < len(counts) - 2  # at midnight the day is another one
