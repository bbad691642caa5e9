"""A folder of Parquet files in place of a frame: the results of the plain path, also over restarts; what is refused."""

import os
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import Observation

import fastwin as fw
import spark_glue
from fastwin.errors import SpecError
from tests.support.spark_events import START_MS, events
from tests.support.spark_streams import (
    FIRST_FILE_TIME,
    Recorder,
    Source,
    assert_replayed,
    assert_same_rows,
    micro_batches,
    part,
    parts,
    start,
)
from tests.support.spark_versions import SPARK
from tests.support.variants import variants

newer = pytest.mark.skipif(
    SPARK < (4, 2), reason="Spark tells a source in Python where a micro-batch begins from 4.2 on"
)
SPEC = (
    fw.key_by("k")
    .event_time("ts")
    .window(fw.TumblingEventTimeWindows.of("1 min"))
    .bad_rows("divert")
    .aggregate(n=fw.Count(), s=fw.Sum("v"))
)


def tables(count: int) -> list[pa.Table]:
    """Tables that overlap in time, so that some rows are late, with some bad rows."""
    return [events(i, 400, start_ms=START_MS + i * 60_000, span_ms=200_000, null_times=0.02) for i in range(count)]


def run(frame, folder, recorder) -> list:
    query = start(frame, folder, recorder, available_now=True)
    query.awaitTermination()
    return micro_batches(query, recorder)


def begin_again(folder) -> None:
    """Makes Spark run the last micro-batch with rows again, as if the driver had died before it was committed."""
    for log, kept in (("commits", 3), ("offsets", 4)):
        for path in (folder / "checkpoint" / log).iterdir():
            if path.name.endswith(".crc") or (path.name.isdecimal() and int(path.name) >= kept):
                path.unlink()


@newer
@pytest.mark.parametrize("late", variants([False, True], False))  # partial results travel, or rows
def test_results_are_those_of_the_plain_path_and_of_the_process(spark, tmp_path, late):
    spec = SPEC.side_output_late_data() if late else SPEC
    some = tables(4)
    found = {}
    for name in ("plain", "files"):
        (tmp_path / name).mkdir()
        source = Source(tmp_path / name, some[0].schema)
        found[name] = []
        for now in (some[:2], some[2:]):  # the query starts again in the middle
            source.put(*now)
            files = spark_glue.ParquetFiles(str(source.folder), max_files=1)
            frame = files if name == "files" else source.frame(spark)
            frame = spark_glue.apply(spec, frame, watermark="10 s", key_groups=4)
            found[name] += run(frame, tmp_path / name, Recorder())
    good = [table.filter(table["ts"].is_valid()) for table in some]
    assert_replayed(spec.bad_rows("raise"), good, found["files"])
    for output in ("main", "bad") + (("late",) if late else ()):
        assert_same_rows(parts(found["files"], output), parts(found["plain"], output))
    assert parts(found["files"], "bad").num_rows > 0
    counted = sum(batch.counters["late" if late else "dropped"] for batch in found["files"])
    assert counted == sum(batch.counters["late" if late else "dropped"] for batch in found["plain"]) > 0


@pytest.mark.long
@newer
def test_a_micro_batch_that_runs_again_reads_the_same_files_or_ends_the_query(spark, tmp_path):
    some = tables(4)
    source = Source(tmp_path, some[0].schema)
    source.put(*some)
    recorder = Recorder()

    def frame():
        return spark_glue.apply(
            SPEC, spark_glue.ParquetFiles(str(source.folder), max_files=1), watermark="10 s", key_groups=4
        )

    run(frame(), tmp_path, recorder)
    before = dict(recorder.tables)
    begin_again(tmp_path)
    source.put(tables(5)[4])  # comes in a micro-batch of its own, behind the one that runs again
    again = Recorder()
    run(frame(), tmp_path, again)
    assert min(again.tables) == 3
    for output in ("main", "bad"):
        assert_same_rows(part(again.tables[3], output), part(before[3], output))
    begin_again(tmp_path)
    (source.folder / "000003.parquet").unlink()
    with pytest.raises(
        StreamingQueryException, match=r"000003.parquet: the file is gone since a micro-batch was begun"
    ):
        run(frame(), tmp_path, Recorder())


@newer
def test_a_file_that_is_half_written_over_a_restart_is_read_once(spark, tmp_path):
    some = [*tables(3), events(9, 1, start_ms=START_MS + 86_400_000)]  # the last one closes all windows before it
    source = Source(tmp_path, some[0].schema)
    source.put(*some[:3])
    path = source.folder / "000001.parquet"
    whole, found = path.read_bytes(), []
    for content in (whole[:1_000], whole):
        path.write_bytes(content)
        os.utime(path, (FIRST_FILE_TIME + 1,) * 2)
        files = spark_glue.ParquetFiles(str(source.folder), late_files="0 s")
        found += run(spark_glue.apply(SPEC, files, watermark="1 hour", key_groups=4), tmp_path, Recorder())
        source.put(some[3])
    assert [batch.counters["events"] + batch.counters["bad"] for batch in found if batch.inputs] == [800, 401]
    good = pa.concat_tables(some[:3])
    assert_same_rows(parts(found, "main"), SPEC.bad_rows("drop").run(good).main)


@newer
def test_the_case_of_letters_counts_as_spark_is_set(spark, tmp_path):
    (one,) = tables(1)
    pq.write_table(one.rename_columns(["K", "Ts", "v", "X"]), tmp_path / "a.parquet")
    files = spark_glue.ParquetFiles(str(tmp_path), "k long, ts timestamp, V long", streaming=False)
    spec = SPEC.aggregate(n=fw.Count(), s=fw.Sum("V"))
    plain = spark_glue.apply(spec, spark.read.schema("k long, ts timestamp, V long").parquet(str(tmp_path)))
    assert_same_rows(spark_glue.apply(spec, files).toArrow(), plain.toArrow())
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        strict = spark_glue.apply(spec, files)
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    with pytest.raises(PySparkException, match=r"a.parquet: there is no column 'k'; did you mean K\?; it has K, Ts, v"):
        strict.toArrow()


@newer
def test_a_file_with_other_columns_ends_the_query(spark, tmp_path):
    (one,) = tables(1)
    pq.write_table(one.drop_columns("v"), tmp_path / "a.parquet")
    files = spark_glue.ParquetFiles(str(tmp_path), "k long, ts timestamp, v long")
    with pytest.raises(StreamingQueryException, match=r"a.parquet: there is no column 'v'; it has k, ts, x"):
        run(spark_glue.apply(SPEC, files, watermark="10 s"), tmp_path, Recorder())


@newer
@pytest.mark.parametrize(
    "assigner",
    [
        fw.TumblingEventTimeWindows.of("1 min"),
        fw.SlidingEventTimeWindows.of("10 s", "1 min"),
        fw.EventTimeSessionWindows.with_gap("2 s"),
    ],
)
def test_all_files_at_once_give_what_the_plain_path_gives(spark, tmp_path, assigner):
    spec = SPEC.window(assigner)
    some = tables(3)
    for i, table in enumerate(some):
        pq.write_table(table, tmp_path / f"{i}.parquet", row_group_size=150)
    found, told = [], []
    for frame in (spark_glue.ParquetFiles(str(tmp_path), streaming=False), spark.read.parquet(str(tmp_path))):
        counted = Observation()
        found.append(spark_glue.apply(spec, frame, name=counted).toArrow())
        told.append({name: counted.get[name] for name in ("events", "bad", "fired", "unassigned", "late")})
    assert told[0] == told[1]
    assert told[0]["bad"] > 0
    for output in ("main", "bad"):
        assert_same_rows(*(part(table, output) for table in found))
    assert_same_rows(part(found[0], "main"), spec.run(pa.concat_tables(some)).main)


@newer
def test_all_files_at_once_have_to_be_whole_and_may_be_none(spark, tmp_path):
    files = spark_glue.ParquetFiles(str(tmp_path), "k long, ts timestamp, v long", streaming=False)
    assert spark_glue.apply(SPEC, files).count() == 0
    pq.write_table(tables(1)[0], tmp_path / "a.parquet")
    assert spark_glue.apply(SPEC, files).count() > 0
    whole = (tmp_path / "a.parquet").read_bytes()
    footer = int.from_bytes(whole[-8:-4], "little")
    for damaged, says in (
        (whole[:1_000], "it is no whole Parquet file"),
        (whole[: -8 - footer] + b"\xff" * footer + whole[-8:], "it is no whole Parquet file"),
        (whole[:4] + b"\xff" * 200 + whole[204:], "it cannot be read"),
    ):
        (tmp_path / "b.parquet").write_bytes(damaged)
        with pytest.raises(PySparkException, match=rf"b.parquet: {says}: .*; put it whole, or remove it"):
            spark_glue.apply(SPEC, files).count()
    (tmp_path / "b.parquet").unlink()
    with pytest.raises(SpecError, match="goes_on: ParquetFiles do not tell how far the history goes"):
        spark_glue.apply(SPEC, files, watermark="10 s", goes_on=True)


@newer
def test_jobs_of_one_frame_read_the_files_of_the_first(spark, tmp_path):
    one, other = tables(2)
    pq.write_table(one, tmp_path / "a.parquet")
    files = spark_glue.ParquetFiles(str(tmp_path), streaming=False)
    frame = spark_glue.apply(SPEC, files)
    before = frame.count()
    pq.write_table(other, tmp_path / "b.parquet")
    assert frame.count() == before < spark_glue.apply(SPEC, files).count()
    pq.write_table(other, tmp_path / "a.parquet")
    says = r"a.parquet: the file has changed since the first job of this frame listed it; .* or call apply again"
    with pytest.raises(PySparkException, match=says):
        frame.count()


@newer
def test_columns_are_those_of_the_newest_whole_file(spark, tmp_path):
    one, other = tables(2)
    pq.write_table(one, tmp_path / "a.parquet")
    os.utime(tmp_path / "a.parquet", (FIRST_FILE_TIME,) * 2)
    pq.write_table(other, tmp_path / "b.parquet")
    whole = (tmp_path / "b.parquet").read_bytes()
    (tmp_path / "b.parquet").write_bytes(whole[:1_000])
    stream = spark_glue.ParquetFiles(str(tmp_path))
    found = run(spark_glue.apply(SPEC, stream, watermark="10 s"), tmp_path, Recorder())
    assert sum(batch.counters["events"] + batch.counters["bad"] for batch in found if batch.inputs) == one.num_rows
    with pytest.raises(fw.SourceError, match=r"b.parquet: it is no whole Parquet file: .*; put it whole, or remove it"):
        spark_glue.apply(SPEC, spark_glue.ParquetFiles(str(tmp_path), streaming=False))
    (tmp_path / "a.parquet").unlink()
    with pytest.raises(SpecError, match=r"schema: must be given, because .* has no whole file that ends in .parquet"):
        spark_glue.apply(SPEC, stream, watermark="10 s")


@newer
@pytest.mark.parametrize("streaming", variants([False, True], True))
@pytest.mark.parametrize(
    ("unit", "times", "good"),
    [
        ("ms", [START_MS, 18_446_744_073_709_552, -1, None, -(2**63), START_MS + 86_400_000], [0]),
        ("ns", [START_MS * 1_000_000, -100, -1_000_001, None, 0, (START_MS + 86_400_000) * 1_000_000], [0, 4]),
    ],
)
def test_times_of_any_unit_are_those_of_the_process(spark, tmp_path, streaming, unit, times, good):
    table = pa.table({"k": [1] * 6, "ts": pa.array(times, pa.timestamp(unit, tz="UTC")), "v": range(6)})
    pq.write_table(table, tmp_path / "a.parquet")
    files = spark_glue.ParquetFiles(str(tmp_path), streaming=streaming)
    if not streaming:
        assert_same_rows(part(spark_glue.apply(SPEC, files).toArrow(), "main"), SPEC.run(table).main)
        return
    found = run(spark_glue.apply(SPEC, files, watermark="10 s"), tmp_path, Recorder())
    # A stream takes nothing before 1970, and its last window is still open.
    assert_same_rows(parts(found, "main"), SPEC.run(table.take(good)).main)
    assert parts(found, "bad").num_rows == 5 - len(good)


@newer
def test_apply_may_be_called_on_a_thread_of_its_own(spark, tmp_path):
    pq.write_table(tables(1)[0], tmp_path / "a.parquet")
    files = spark_glue.ParquetFiles(str(tmp_path), streaming=False)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: spark_glue.apply(SPEC, files).count()).result() > 0


@newer
@pytest.mark.parametrize("schema", ["int", "array<int>"])
def test_a_schema_is_one_of_columns(spark, tmp_path, schema):
    files = spark_glue.ParquetFiles(str(tmp_path), schema)
    with pytest.raises(SpecError, match=rf"schema: must name columns, as 'k long, ts timestamp' does, got '{schema}'"):
        spark_glue.apply(SPEC, files, watermark="10 s")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"path": "/nowhere/at all", "max_files": 0}, "max_files: must be an int of at least 1, or None, got 0"),
        ({"path": "/nowhere", "max_rows": True}, "max_rows: must be an int of at least 1, or None, got True"),
        ({"path": "/nowhere", "late_files": "-1 s"}, "late_files: "),
        ({"path": "/nowhere", "unreadable_after": "-1 s"}, "unreadable_after: "),
        ({"path": "nothing://here"}, "path: must be a folder or a URI that Arrow knows, got 'nothing://here'"),
        ({"path": "/nowhere", "streaming": 0}, "streaming: must be True or False, got 0"),
        ({"path": "/nowhere", "streaming": False, "max_files": 3}, "max_files: is for streams, .* got 3"),
        ({"path": "/nowhere", "streaming": False, "late_files": "2 hours"}, "late_files: is for streams, .*'2 hours'"),
        ({"path": "/nowhere", "schema": 3}, "schema: must be a Spark schema, DDL text or an Arrow schema, got 3"),
    ],
)
def test_bad_arguments(arguments, says):
    with pytest.raises(SpecError, match=says):
        spark_glue.ParquetFiles(**arguments)


def test_what_cannot_be_read_is_refused_when_apply_is_called(spark, tmp_path):
    if SPARK >= (4, 2):
        with pytest.raises(fw.SourceError, match=r"path: there is no folder .*none; make it, or name another"):
            spark_glue.apply(SPEC, spark_glue.ParquetFiles(str(tmp_path / "none")), watermark="10 s")
    files = spark_glue.ParquetFiles(str(tmp_path))
    says = "schema: must be given" if SPARK >= (4, 2) else r"df: ParquetFiles needs Spark 4.2 or newer"
    with pytest.raises(SpecError, match=says):
        spark_glue.apply(SPEC, files, watermark="10 s")
