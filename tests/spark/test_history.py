"""Queries that start from history: rows of the past, or the state of another query; as one long stream."""

import json
import shutil
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

import fastwin as fw
import spark_glue
from fastwin.errors import SpecError
from spark_glue.stages.history import _differences, begun_from, watermark_after
from spark_glue.state.savepoint import STATE_FOLDER, Savepoint
from tests.support.spark_events import START_MS, events
from tests.support.spark_jobs import frame_plan_for
from tests.support.spark_streams import (
    MicroBatch,
    Recorder,
    Source,
    assert_replayed,
    part,
    parts,
    rows_of,
    run_stream,
    start,
)
from tests.support.variants import variants

BASE = fw.key_by("k").event_time("ts").bad_rows("drop")
SLIDING = (
    BASE.window(fw.SlidingEventTimeWindows.of("2 min", "1 min"))
    .allowed_lateness("30 s")
    .side_output_late_data()
    .aggregate(n=fw.Count(), total=fw.Sum("v"), mean=fw.Mean("v"))
)
MEETING = BASE.window(fw.TumblingEventTimeWindows.of("2 min")).aggregate(n=fw.Count(), total=fw.Sum("v"))
TIMED = (
    BASE.window(fw.TumblingEventTimeWindows.of("2 min"))
    .trigger(fw.after_watermark(early=fw.ContinuousEventTimeTrigger.of("25 s"), late=fw.CountTrigger.of(2)))
    .allowed_lateness("30 s")
    .side_output_late_data()
    .aggregate(n=fw.Count(), mean=fw.Mean("v"))
)
COUNTED = BASE.window(fw.TumblingEventTimeWindows.of("5 min")).trigger(fw.CountTrigger.of(7)).aggregate(n=fw.Count())
PAST = [events(i, 150, start_ms=START_MS + i * 80_000, span_ms=80_000) for i in range(2)]
LIVE = [events(5 + i, 150, start_ms=START_MS + (2 + i) * 60_000, span_ms=90_000) for i in range(2)]
LATE = events(9, 60, start_ms=START_MS, span_ms=150_000)
SAVED = pa.table({"part_of": pa.array([5], pa.int32()), "part": [b"state"]})  # as earlier versions wrote it


def micro_batches_of(spark, folder: Path, spec, tables, **arguments) -> list[MicroBatch]:
    """Runs a query over tables, one in each micro-batch, and returns these."""
    folder.mkdir(exist_ok=True)
    return run_stream(spark, spec, tables, folder, **{"watermark": "20 s", "key_groups": 6} | arguments)


def streamed(spark, folder: Path, spec, tables, **arguments) -> pa.Table:
    """The same, and returns all rows."""
    return pa.concat_tables([batch.rows for batch in micro_batches_of(spark, folder, spec, tables, **arguments)])


def assert_same(found: list[pa.Table], expected: pa.Table) -> None:
    for name in ("main", "late") if "late" in expected.column_names else ("main",):
        tables = [part(table, name) for table in found]
        assert rows_of(pa.concat_tables([table for table in tables if table.num_rows])) == rows_of(part(expected, name))
        assert part(expected, name).num_rows > 0


@pytest.mark.usefixtures("adaptive")
@pytest.mark.parametrize("spec", [SLIDING, MEETING], ids=["rows travel", "partial results travel"])
def test_a_batch_of_the_past_then_a_stream_is_one_long_stream(spark, tmp_path, spec):
    whole = pa.concat_tables(PAST)
    expected = streamed(spark, tmp_path / "long", spec, [whole, *LIVE, LATE])
    past = spark.createDataFrame(whole)
    batch = spark_glue.apply(spec, past, watermark="20 s", goes_on=True).toArrow()
    mixed = past.select(*reversed(past.columns), F.lit(1).alias("more"))  # columns are known by their names
    live = streamed(spark, tmp_path / "live", spec, [*LIVE, LATE], history=mixed)
    assert batch.num_rows > 0
    assert_same([batch, live], expected)
    with pytest.raises(SpecError, match=r"history: its columns have other .*: 'v' is double \(in the stream int64\)$"):
        streamed(spark, tmp_path / "other", SLIDING, LIVE, history=past.withColumn("v", past.v.cast("double")))
    with pytest.raises(SpecError, match=r"history: .*'v'"):
        streamed(spark, tmp_path / "lacking", SLIDING, LIVE, history=past.drop("v"))
    with pytest.raises(SpecError, match=r"history: .*: 'x' is not there \(in the stream "):
        streamed(spark, tmp_path / "late", SLIDING.side_output_late_data(), LIVE, history=past.drop("x"))


def test_columns_of_another_type_are_named():
    stream = frame_plan_for(PAST[0], MEETING)
    naive = PAST[0].set_column(1, "ts", PAST[0]["ts"].cast(pa.timestamp("us")))
    assert PAST[0].column_names[1] == "ts"
    assert _differences(stream, stream) == ""
    told = "'ts' is timestamp[us] (in the stream timestamp[us, tz=UTC])"
    assert _differences(frame_plan_for(naive, MEETING), stream) == told


def test_a_time_of_another_unit_in_the_past_moves_no_watermark(spark, tmp_path):
    spec = (
        fw.key_by("k")
        .event_time("ts", unit="s")
        .window(fw.TumblingEventTimeWindows.of("1 min"))
        .bad_rows("drop")
        .aggregate(n=fw.Count())
    )
    start = 1_700_000_040
    past, live = (
        pa.table({"k": ["a"] * len(times), "ts": times})
        for times in ([start, start + 10, start + 70, start * 1_000], [start + 75, start + 200])
    )
    history = spark.createDataFrame(past)
    batch = spark_glue.apply(spec, history, watermark="5 s", goes_on=True).toArrow()
    assert part(batch, "main")["n"].to_pylist() == [2]
    rows = streamed(spark, tmp_path, spec, [live], history=history, watermark="5 s")
    assert part(rows, "main")["n"].to_pylist() == [2]


@pytest.mark.parametrize("arguments", variants([{}, {"idle": "1 day"}]), ids=["spark's watermark", "its own"])
def test_history_that_has_grown_or_gone_by_a_later_start_counts_no_more(spark, tmp_path, arguments):
    grown = pa.concat_tables([*PAST, events(7, 50, start_ms=START_MS + 3_600_000, span_ms=60_000)])
    source, recorder = Source(tmp_path, LIVE[0].schema), Recorder()
    for history, tables in ((pa.concat_tables(PAST), [LIVE[0]]), (grown, [LIVE[1]]), (None, [LATE])):
        source.put(*tables)
        past = None if history is None else spark.createDataFrame(history)
        frame = spark_glue.apply(
            SLIDING, source.frame(spark), watermark="20 s", history=past, key_groups=6, **arguments
        )
        query = start(frame, tmp_path, recorder)
        rows, end = sum(table.num_rows for table in tables), time.monotonic() + 240
        try:
            while sum(one.numInputRows for one in query.recentProgress) < rows:  # with idle= it never comes to an end
                assert query.exception() is None, query.exception()
                assert time.monotonic() < end, "it does not come to an end"
                time.sleep(0.1)
        finally:
            query.stop()
    past = spark.createDataFrame(pa.concat_tables(PAST))
    batch = spark_glue.apply(SLIDING, past, watermark="20 s", goes_on=True).toArrow()
    expected = streamed(spark, tmp_path / "long", SLIDING, [pa.concat_tables(PAST), *LIVE, LATE])
    assert_same([batch, *recorder.tables.values()], expected)


def test_a_row_beyond_the_calendar_in_the_past_moves_no_watermark(spark):
    spec = BASE.window(fw.CalendarEventTimeWindows.of("1 day", time_zone="UTC")).aggregate(n=fw.Count())
    past = pa.table({"k": ["a", "a"], "ts": [START_MS, 300_000_000_000_000]})
    frame_plan = frame_plan_for(past, spec, streaming=False)
    assert watermark_after(spark.createDataFrame(past), frame_plan, 5_000) == START_MS - 5_001


def test_a_row_whose_gap_is_none_in_the_past_moves_no_watermark(spark):
    spec = BASE.window(fw.EventTimeSessionWindows.with_dynamic_gap("gap")).aggregate(n=fw.Count())
    times = pa.array([START_MS, START_MS + 86_400_000, START_MS + 86_400_001], pa.timestamp("ms", tz="UTC"))
    past = pa.table({"k": ["a"] * 3, "ts": times.cast(pa.timestamp("us", tz="UTC")), "gap": [5_000, None, 0]})
    frame_plan = frame_plan_for(past, spec, streaming=False)
    assert watermark_after(spark.createDataFrame(past), frame_plan, 5_000) == START_MS - 5_001
    none = past.slice(1)
    assert watermark_after(spark.createDataFrame(none), frame_plan_for(none, spec, streaming=False), 5_000) is None


SEEN = fw.ValueStateDescriptor("seen", False, ttl="7 days", ttl_time="processing")


class SeenBefore(fw.ProcessWindowFunction):
    def process(self, key, context, elements):
        seen = context.global_state().get_state(SEEN)
        yield seen.value(), context.current_processing_time() > 0
        seen.update(True)


def test_state_of_functions_that_ages_by_the_clock_is_as_old_as_the_query(spark, tmp_path):
    minutes = BASE.window(fw.TumblingEventTimeWindows.of("1 min"))
    spec = minutes.process(SeenBefore(), output="seen boolean, timed boolean")
    past = spark.createDataFrame(pa.concat_tables(PAST))
    batch = spark_glue.apply(spec, past, watermark="20 s", goes_on=True).toArrow()
    expected = streamed(spark, tmp_path / "long", spec, [pa.concat_tables(PAST), *LIVE, LATE])
    assert_same([batch, streamed(spark, tmp_path / "live", spec, [*LIVE, LATE], history=past)], expected)
    assert set(expected["timed"].to_pylist()) == {True} and True in expected["seen"].to_pylist()


def test_the_past_in_two_partitions_is_one_micro_batch(spark, tmp_path):
    spec = fw.key_by("k").event_time("ts").bad_rows("drop").deduplicate(within="60 s")
    past, live = (
        pa.table(
            {"k": ["a"] * len(seconds), "ts": pa.array(seconds, pa.timestamp("s")).cast(pa.timestamp("us", "UTC"))}
        )
        for seconds in ([100, 50], [105, 115])
    )
    one, other = (spark.createDataFrame(past.slice(at, 1)) for at in (0, 1))
    history = one.unionAll(other)
    batch = spark_glue.apply(spec, history, watermark="20 s", goes_on=True).toArrow()
    rows = streamed(spark, tmp_path / "live", spec, [live], history=history)
    assert_same([batch, rows], streamed(spark, tmp_path / "long", spec, [past, live]))
    assert [part(found, "main").num_rows for found in (batch, rows)] == [1, 1]


def rows_at(*rows: tuple[int, int]) -> pa.Table:
    """Rows as (key, second)."""
    times = [START_MS * 1_000 + second * 1_000_000 for _, second in rows]
    return pa.table({"k": [key for key, _ in rows], "ts": pa.array(times, pa.timestamp("us", "UTC"))})


@pytest.mark.parametrize("saved", variants([False, True], False), ids=["rows", "state"])
def test_windows_of_the_past_stay_fired_where_the_first_micro_batch_is_empty(spark, tmp_path, saved):
    """Spark's own watermark knows nothing of the past then, and is behind until live rows get as far."""
    spec = BASE.window(fw.TumblingEventTimeWindows.of("1 min")).aggregate(n=fw.Count())
    past = rows_at(*((key, 310) for key in range(10)), (99, 1_000))
    history = spark.createDataFrame(past)
    if saved:
        streamed(spark, tmp_path / "past", spec, [past])
        history = tmp_path / "saved"
        assert spark_glue.export_state(tmp_path / "past" / "checkpoint", spec, history) == 1  # that of key 99
    else:
        batch = spark_glue.apply(spec, history, watermark="20 s", goes_on=True).toArrow()
        assert batch["n"].to_pylist() == [1] * 10
    live = [past.schema.empty_table(), rows_at((99, 300)), rows_at(*((key, 315) for key in range(10)))]
    live.append(rows_at((99, 5_000)))
    batches = micro_batches_of(spark, tmp_path / "live", spec, live, history=history)
    main = pa.concat_tables([batch.rows for batch in batches])
    assert main.select(["k", "n"]).to_pylist() == [{"k": 99, "n": 1}]  # the window of its row at 1,000 s
    assert sum(batch.counters["dropped"] for batch in batches) == 11


@pytest.mark.parametrize("saved", variants([False, True], True), ids=["rows", "state"])
def test_state_that_is_cut_on_its_way(spark, tmp_path, saved):
    """There is a part of state for each key group, and here these are longer than a row that travels."""
    spec = BASE.window(fw.TumblingEventTimeWindows.of("1 min")).aggregate(n=fw.Count())
    keys = np.random.default_rng(0).integers(0, 2**62, 40_000).tolist()
    past = rows_at(*((key, 310) for key in keys))
    history = spark.createDataFrame(past)
    if saved:
        streamed(spark, tmp_path / "past", spec, [past], watermark="1 hour", key_groups=2)
        history = tmp_path / "saved"
        assert spark_glue.export_state(tmp_path / "past" / "checkpoint", spec, history) == 40_000
        assert pq.read_table(history / STATE_FOLDER)["pieces"][0].as_py() > 3
    live = [rows_at(*((key, 315) for key in keys[::2])), rows_at((1, 9_000))]
    rows = streamed(spark, tmp_path / "live", spec, live, history=history, watermark="1 hour", key_groups=3)
    found = dict(zip(rows["k"].to_pylist(), rows["n"].to_pylist(), strict=True))
    assert rows.num_rows == len(keys)
    assert found == {key: 2 - at % 2 for at, key in enumerate(keys)}


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(TIMED, id="timed", marks=pytest.mark.long),
        pytest.param(SLIDING, id="sliding"),
        pytest.param(COUNTED, id="counted", marks=pytest.mark.long),
    ],
)
def test_saved_state_goes_on_in_other_parts(spark, tmp_path, spec):
    """As one stream in this process, which nothing stops: with its windows, its timers, and what is late."""
    before = micro_batches_of(spark, tmp_path / "before", spec, PAST)
    path = tmp_path / "saved"
    written = spark_glue.export_state(str(tmp_path / "before" / "checkpoint"), spec, str(path))
    readable = pq.read_table(path)
    assert readable.num_rows == written > 0
    assert ("timers" in readable.column_names) == (spec is not SLIDING)
    shuffle = "spark.sql.shuffle.partitions"
    partitions = spark.conf.get(shuffle)
    spark.conf.set(shuffle, 3)
    try:
        after = micro_batches_of(spark, tmp_path / "after", spec, [*LIVE, LATE], history=path, key_groups=5)
    finally:
        spark.conf.set(shuffle, partitions)
    assert_replayed(spec, [*PAST, *LIVE, LATE], [*before, *after])
    for name in ("main", "late") if spec.late_output else ("main",):
        assert parts(after, name).num_rows > 10


def save(folder: Path, frame_plan, **about) -> Path:
    """Writes what export_state would, with one file of state; returns that."""
    path = folder / STATE_FOLDER / "share-00000.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(SAVED, path)
    told = {"key_groups": frame_plan.key_groups, "watermark": None, "fingerprint": frame_plan.plan.fingerprint.hex()}
    Savepoint(**told | about).write(folder)
    return path


@pytest.mark.parametrize("name", ["saved", "saved [1] {a,b} 50% *?"])
def test_saved_state_is_read_from_this_machine_by_its_very_name(spark, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    frame_plan = frame_plan_for(PAST[0])
    save(tmp_path / name, frame_plan, watermark=START_MS)
    spark.conf.set("fs.defaultFS", "hdfs://nowhere:1")
    try:
        _, state = begun_from(spark, name, frame_plan, lambda _: frame_plan, 0)
        found = state.where("part is not null").select(*SAVED.column_names)
        assert found.toArrow().to_pylist() == SAVED.to_pylist()
    finally:
        spark.conf.unset("fs.defaultFS")


@pytest.mark.parametrize(
    ("setting", "spoil"),
    [
        ("spark.sql.files.ignoreCorruptFiles", lambda path: path.write_bytes(bytes(path.stat().st_size))),
        ("spark.sql.files.ignoreMissingFiles", Path.unlink),
    ],
)
def test_saved_state_is_whole_also_in_a_session_that_passes_over_files(spark, tmp_path, setting, spoil):
    frame_plan = frame_plan_for(PAST[0])
    path = save(tmp_path, frame_plan)
    spark.conf.set(setting, "true")
    try:
        _, state = begun_from(spark, tmp_path, frame_plan, lambda _: frame_plan, 0)
        spoil(path)
        with pytest.raises(Exception, match=path.name):
            state.collect()
    finally:
        spark.conf.unset(setting)


def test_saved_state_that_is_not_whole_is_refused(tmp_path):
    frame_plan = frame_plan_for(PAST[0])
    path = save(tmp_path, frame_plan)
    content, size = path.read_bytes(), path.stat().st_size

    def assert_refused(says: str) -> None:
        with pytest.raises(SpecError, match=rf"history: .*/{STATE_FOLDER}{says}.*; copy the whole folder again"):
            begun_from(None, tmp_path, frame_plan, lambda _: frame_plan, 0)

    save(tmp_path, frame_plan, files={path.name: size, "share-00001.parquet": 700})
    assert_refused("/share-00001.parquet has 0 bytes, and export_state has written 700")
    save(tmp_path, frame_plan, files={path.name: size})
    path.write_bytes(content[:-1])
    assert_refused(f"/{path.name} has {size - 1} bytes, and export_state has written {size}")
    path.write_bytes(content)
    path.with_name(f".{path.name}.crc").write_bytes(b"crc")  # of a copy by Hadoop; Spark does not read it
    Savepoint.read(str(tmp_path)).check_whole(tmp_path)
    path.with_name("share-00009.parquet").write_bytes(content)  # of another savepoint: state would be there twice
    assert_refused(f"/share-00009.parquet has {size} bytes, and export_state has written 0")
    for files in ({path.name: size}, None):  # None: by an earlier version
        save(tmp_path, frame_plan, files=files)
        shutil.rmtree(path.parent)
        assert_refused(" has no files")


def test_saved_state_tells_its_format_before_what_it_has(tmp_path):
    frame_plan = frame_plan_for(PAST[0])
    save(tmp_path, frame_plan)
    about = tmp_path / "_savepoint.json"
    fields = json.loads(about.read_text())
    about.write_text(json.dumps(fields | {"format": fields["format"] + 1, "of_a_newer_version": 1}))
    with pytest.raises(SpecError, match=r"history: .* has format 4, this version of fastwin reads 1 to 3$"):
        Savepoint.read(str(tmp_path))
    del fields["types"]
    about.write_text(json.dumps(fields | {"format": 2}))
    assert Savepoint.read(str(tmp_path)).types is None


@pytest.mark.parametrize("history", ["s3://bucket/saved", "file://machine/saved", Path("hdfs://machine/saved")])
def test_saved_state_of_another_store_is_refused(history):
    frame_plan = frame_plan_for(PAST[0])
    with pytest.raises(SpecError, match=rf"history: must be a folder that .*, got '{history}'$"):
        begun_from(None, history, frame_plan, lambda _: frame_plan, 0)


def test_saved_state_is_held_to_the_zone_in_which_times_are_read(spark, tmp_path):
    frame_plan = frame_plan_for(PAST[0], time_zone="Europe/Berlin")
    for saved in ("Europe/Berlin", None):  # None: by an earlier version
        save(tmp_path, frame_plan, time_zone=saved)
        assert begun_from(spark, tmp_path, frame_plan, lambda _: frame_plan, 0)[0] == frame_plan
    save(tmp_path, frame_plan, time_zone="UTC")
    with pytest.raises(SpecError, match=r"read in 'UTC', and .*timeZone is 'Europe/Berlin' now; set it to 'UTC'"):
        begun_from(None, tmp_path, frame_plan, lambda _: frame_plan, 0)


def test_arguments(spark, tmp_path):
    frame = Source(tmp_path, LIVE[0].schema).frame(spark)
    past = spark.createDataFrame(PAST[0])
    for history in (3, frame, str(tmp_path)):
        with pytest.raises(SpecError, match="history: "):
            spark_glue.apply(SLIDING, frame, watermark="1 s", history=history)
    with pytest.raises(SpecError, match="history: is for a streaming frame"):
        spark_glue.apply(SLIDING, past, watermark="1 s", history=past)
    with pytest.raises(SpecError, match="chain: windows behind others need all of their results"):
        spark_glue.apply(SLIDING, frame, watermark="1 s", history=past, chain=True)
    with pytest.raises(SpecError, match="goes_on: is for a batch frame"):
        spark_glue.apply(SLIDING, frame, watermark="1 s", goes_on=True)
    with pytest.raises(SpecError, match="goes_on: needs a watermark="):
        spark_glue.apply(SLIDING, past, goes_on=True)
