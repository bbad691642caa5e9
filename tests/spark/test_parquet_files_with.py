"""Parquet files without the JVM together with all else that ``apply`` offers: the rows of the plain path, or a sentence."""

import time
from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import fastwin as fw
import spark_glue
from fastwin.errors import SpecError
from tests.support.spark_events import START_MS, events
from tests.support.spark_streams import Recorder, Source, assert_same_rows, part, start
from tests.support.spark_versions import SPARK

newer = pytest.mark.skipif(
    SPARK < (4, 2), reason="Spark tells a source in Python where a micro-batch begins from 4.2 on"
)
KEYED = fw.key_by("k").event_time("ts").bad_rows("drop")
COUNTS = {"n": fw.Count(), "s": fw.Sum("v")}
SECONDS = KEYED.window(fw.TumblingEventTimeWindows.of("2 s")).aggregate(**COUNTS)
MINUTES = KEYED.window(fw.TumblingEventTimeWindows.of("1 min")).aggregate(**COUNTS)
BUSY = (
    fw.key_by()
    .event_time("window_time")
    .window(fw.TumblingEventTimeWindows.of("5 min"))
    .aggregate(keys=fw.Count(), most=fw.Max("n"))
)
ARRIVAL = fw.key_by("k").processing_time().window(fw.TumblingProcessingTimeWindows.of("300 ms")).aggregate(**COUNTS)
CLOCKED = (
    KEYED.window(fw.TumblingEventTimeWindows.of("1 min"))
    .trigger(fw.after_watermark(early=fw.ContinuousProcessingTimeTrigger.of("1 s")))
    .with_pane_info()
    .aggregate(**COUNTS)
)


def tables(count: int, span_ms: int) -> list[pa.Table]:
    """Tables one behind the other in time."""
    return [events(i, 200, start_ms=START_MS + i * span_ms, span_ms=span_ms) for i in range(count)]


def both(spark, folder, given: list[pa.Table]) -> list[tuple]:
    """Returns the inputs of the two ways, with a folder for each."""
    found = []
    for name in ("plain", "files"):
        (folder / name).mkdir()
        source = Source(folder / name, given[0].schema)
        source.put(*given)
        files = spark_glue.ParquetFiles(str(source.folder), max_files=1)
        found.append((files if name == "files" else source.frame(spark), folder / name))
    return found


def now(frame, folder) -> pa.Table:
    """Runs a query to the end of its input; returns its rows."""
    recorder = Recorder()
    start(frame, folder, recorder, available_now=True).awaitTermination()
    return pa.concat_tables(recorder.tables.values())


def until(frame, folder, done) -> pa.Table:
    """Runs a query that has no end until ``done`` holds of its rows; returns these."""
    recorder = Recorder()
    query = start(frame, folder, recorder)
    try:
        end = time.monotonic() + 120
        while not (recorder.tables and done(rows := pa.concat_tables(list(recorder.tables.values())))):
            assert query.exception() is None, query.exception()
            assert time.monotonic() < end, "it does not come to an end"
            time.sleep(0.05)
    finally:
        query.stop()
    return rows


@newer
@pytest.mark.long
def test_a_window_behind_a_window(spark, tmp_path):
    given = [*tables(3, 100_000), events(9, 1, start_ms=START_MS + 86_400_000)]
    found = []
    for source, folder in both(spark, tmp_path, given):
        inner = spark_glue.apply(MINUTES, source, watermark="10 s", key_groups=2, name="inner", chain=True)
        found.append(now(spark_glue.apply(BUSY, inner, key_groups=2), folder))
    plain, files = found
    assert plain.num_rows > 0
    assert_same_rows(files, plain)


@newer
@pytest.mark.long
def test_history(spark, tmp_path):
    past, *given = [*tables(3, 100_000), events(9, 1, start_ms=START_MS + 86_400_000)]
    plain, files = (
        now(
            spark_glue.apply(MINUTES, source, watermark="10 s", key_groups=4, history=spark.createDataFrame(past)),
            folder,
        )
        for source, folder in both(spark, tmp_path, given)
    )
    assert plain.num_rows > 0
    assert_same_rows(files, plain)
    without = MINUTES.run(pa.concat_tables(given[:-1])).main
    assert sum(files["n"].to_pylist()) > sum(without["n"].to_pylist())


@newer
@pytest.mark.long
def test_quiet_inputs(spark, tmp_path):
    given = tables(3, 5_000)
    expected = SECONDS.run(pa.concat_tables(given)).main
    for source, folder in both(spark, tmp_path, given):
        frame = spark_glue.apply(SECONDS, source, watermark="500 ms", key_groups=4, idle="1 s")
        rows = until(frame, folder, lambda rows: rows.num_rows >= expected.num_rows)
        assert_same_rows(part(rows, "main"), expected)


@newer
@pytest.mark.long
def test_windows_of_arrival(spark, tmp_path):
    given = tables(3, 5_000)
    whole = pa.concat_tables(given)
    for source, folder in both(spark, tmp_path, given):
        frame = spark_glue.apply(ARRIVAL, source, key_groups=4)
        rows = until(frame, folder, lambda rows: sum(rows["n"].to_pylist()) >= whole.num_rows)
        counted = Counter()
        for key, n in zip(rows["k"].to_pylist(), rows["n"].to_pylist(), strict=True):
            counted[key] += n
        assert counted == Counter(whole["k"].to_pylist())


@newer
@pytest.mark.long
def test_event_time_and_the_clock(spark, tmp_path):
    given = [*tables(3, 100_000), events(9, 1, start_ms=START_MS + 86_400_000)]
    expected = MINUTES.run(pa.concat_tables(given[:-1])).main

    def on_time(rows: pa.Table) -> pa.Table:
        return rows.filter(pc.equal(rows["pane_timing"], "ON_TIME"))

    for source, folder in both(spark, tmp_path, given):
        frame = spark_glue.apply(CLOCKED, source, watermark="10 s", key_groups=4)
        rows = until(frame, folder, lambda rows: on_time(rows).num_rows >= expected.num_rows)
        assert_same_rows(on_time(rows).select(expected.column_names), expected)


@newer
@pytest.mark.parametrize("other", ["files", "frame"])
def test_a_join_is_refused(spark, tmp_path, other):
    inputs = [source for source, _ in both(spark, tmp_path, tables(1, 1_000))]
    inputs = inputs if other == "frame" else [inputs[1], inputs[1]]
    join = fw.window_join(KEYED, KEYED, fw.TumblingEventTimeWindows.of("10 s"))
    with pytest.raises(SpecError, match=r"df: a join takes no ParquetFiles; read the folder with spark\.readStream"):
        spark_glue.apply(join, tuple(inputs), watermark=("1 s", "1 s"))
