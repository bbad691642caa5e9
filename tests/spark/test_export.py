"""The open windows of a stopped query, written as files."""

import re
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

import fastwin as fw
import spark_glue
from fastwin.errors import SpecError, StateError
from fastwin.run.replica import open_replica
from spark_glue import export
from spark_glue.export import replica_of
from spark_glue.state.savepoint import STATE_FOLDER, Savepoint, local_folder
from spark_glue.state.stored import Checkpoint
from tests.support.spark_events import START_MS, TIME_ZONE, events
from tests.support.spark_streams import Recorder, Source, rows_of, start

SPEC = (
    fw.key_by("k")
    .event_time("ts")
    .window(fw.SlidingEventTimeWindows.of("2 min", "1 min"))
    .bad_rows("drop")
    .aggregate(n=fw.Count(), total=fw.Sum("v"), first=fw.First("x"))
)
TABLES = [events(i, 200, start_ms=START_MS + i * 80_000, span_ms=80_000) for i in range(2)]


def test_what_has_fired_and_what_is_open_is_all(spark, tmp_path):
    source, recorder = Source(tmp_path, TABLES[0].schema), Recorder()
    source.put(*TABLES)
    naive = source.frame(spark).withColumn("ts", F.col("ts").cast("timestamp_ntz"))
    frame = spark_glue.apply(SPEC, naive, watermark="10 s", key_groups=4)
    start(frame, tmp_path, recorder, available_now=True).awaitTermination()
    checkpoint, folder = tmp_path / "checkpoint", tmp_path / "windows"
    written = spark_glue.export_state(checkpoint, SPEC, folder)
    found = pq.read_table(folder)
    assert found.num_rows == written > 10
    commits = {int(path.name): path for path in (checkpoint / "commits").iterdir() if path.name.isdecimal()}
    saved = Savepoint.read(str(folder))
    assert saved.batch == max(commits) == max(recorder.tables)
    assert saved.time_zone == TIME_ZONE
    assert saved.files == {path.name: path.stat().st_size for path in (folder / STATE_FOLDER).iterdir()}
    saved.check_whole(folder)
    last_ms = max(table["ts"].cast(pa.int64()).to_numpy().max() for table in TABLES) // 1_000
    watermarks = found["watermark"].cast(pa.int64()).to_numpy()
    assert START_MS < watermarks.min() <= watermarks.max() < last_ms - 10_000
    assert {path.name for path in tmp_path.iterdir()} == {"input", "checkpoint", "windows"}
    fired = pa.concat_tables(recorder.tables.values())
    expected = SPEC.run(pa.concat_tables(TABLES)).main
    assert rows_of(fired) + rows_of(found.drop_columns(["watermark"])) == rows_of(expected)
    with pytest.raises(SpecError, match=r"path: .* is there already"):
        spark_glue.export_state(str(checkpoint), SPEC, str(folder))
    with pytest.raises(StateError, match=r"export_state: .*written by another spec"):
        spark_glue.export_state(checkpoint, SPEC.allowed_lateness("1 s"), str(tmp_path / "other"))
    last = commits[max(commits)]
    assert_running_is_told(checkpoint, saved.batch, tmp_path / "other")
    last.rename(checkpoint / "aside")  # as when a query is stopped in the middle of a micro-batch
    with pytest.raises(SpecError, match=rf"micro-batch {last.name} was begun and not finished.*availableNow=True"):
        spark_glue.export_state(checkpoint, SPEC, str(tmp_path / "other"))
    assert {path.name for path in tmp_path.iterdir()} == {"input", "checkpoint", "windows"}


def assert_running_is_told(checkpoint: Path, last: int, other: Path) -> None:
    """A query that finishes one more micro-batch while its state is read."""
    later = [checkpoint / log / str(last + 1) for log in ("offsets", "commits")]

    def read_meanwhile(*given):
        for path in later:
            shutil.copy(path.with_name(str(last)), path)
        return replica_of(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(export, "replica_of", read_meanwhile)
        with pytest.raises(
            SpecError, match=f"the query runs: its last micro-batch was {last}, and .* to {last + 1} wh"
        ):
            spark_glue.export_state(checkpoint, SPEC, other)
    for path in later:
        path.unlink()


def test_a_query_without_good_rows_has_nothing_to_save(spark, tmp_path):
    bad = TABLES[0].slice(0, 3)
    bad = bad.set_column(bad.column_names.index("ts"), "ts", pa.nulls(3, bad.schema.field("ts").type))
    source = Source(tmp_path, bad.schema)
    source.put(bad)
    frame = spark_glue.apply(SPEC, source.frame(spark), watermark="10 s", key_groups=4)
    start(frame, tmp_path, Recorder(), available_now=True).awaitTermination()
    with pytest.raises(SpecError, match=r"export_state: the checkpoint has no state: .* without history="):
        spark_glue.export_state(tmp_path / "checkpoint", SPEC, tmp_path / "saved")
    assert {path.name for path in tmp_path.iterdir()} == {"input", "checkpoint"}


@pytest.mark.parametrize(
    ("mode", "trigger"), [("EventTime", "availableNow"), ("ProcessingTime", "once"), ("None", "once"), (None, "once")]
)
def test_the_trigger_that_finishes_a_micro_batch(monkeypatch, mode, trigger):
    stored = object.__new__(Checkpoint)
    stored._call = "export_state"
    batches = {"offsets": 8, "commits": 7}
    monkeypatch.setattr(Checkpoint, "_properties", {} if mode is None else {"timeMode": mode})
    monkeypatch.setattr(Checkpoint, "_last_in", lambda self, log: batches[log])
    monkeypatch.setattr(Checkpoint, "_batch", 8)
    elsewhere = "if the query runs in another application, stop it there and call again; if no driver of it runs any"
    with pytest.raises(SpecError, match=rf"8 was begun .* one is 7; {elsewhere} .* with \.trigger\({trigger}=True\)"):
        stored.last_batch()
    batches["commits"] = 8
    assert stored.last_batch() == 8


@pytest.mark.parametrize("now", [9, 10])
def test_state_and_log_are_of_one_micro_batch(monkeypatch, now):
    """A driver may finish its last micro-batch when the state of the one before has been read."""
    stored = object.__new__(Checkpoint)
    stored._call = "rescale"
    monkeypatch.setattr(Checkpoint, "_batch", 8)
    monkeypatch.setattr(Checkpoint, "_last_in", lambda self, log: now)
    with pytest.raises(SpecError, match=f"the query runs: its last micro-batch was 8, and it has got to {now} while"):
        stored.last_batch()


@pytest.mark.parametrize("name", ["watermark", "Watermark"])
def test_a_result_may_have_a_column_called_watermark(name):
    """Spark reads no file with two columns of a name, and takes these for one."""
    spec = (
        fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of("1 day")).aggregate(**{name: fw.Count()})
    )
    rows = TABLES[0]
    stream = open_replica(fw.plan(spec, rows.schema))
    stream.process(rows)
    stream.advance_watermark(START_MS)
    found = export._windows(spec, stream)
    assert found.column_names == ["k", "window_start", "window_end", name, "watermark_"]
    assert sum(found[name].to_pylist()) == rows.num_rows
    assert set(found["watermark_"].cast(pa.int64()).to_pylist()) == {START_MS}


def test_arguments(tmp_path):
    with pytest.raises(SpecError, match="spec: must be a WindowSpec"):
        spark_glue.export_state(str(tmp_path), None, str(tmp_path / "other"))


@pytest.mark.parametrize("path", ["s3://bucket/saved", "dbfs:/mnt/saved", Path("s3a://bucket/saved"), "", None])
def test_a_path_that_is_no_folder_of_this_machine(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SpecError, match=rf"export_state: path must be a folder that .*, got {re.escape(repr(path))}$"):
        spark_glue.export_state(str(tmp_path), SPEC, path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("path", "folder"),
    [
        ("saved", "saved"),
        ("/mnt/saved", "/mnt/saved"),
        (Path("/mnt/saved"), "/mnt/saved"),
        ("minutes: 2024/saved", "minutes: 2024/saved"),
        ("./s3:/saved", "s3:/saved"),
        ("saved/s3://bucket", "saved/s3:/bucket"),
        ("file:/mnt/saved 100%25", "/mnt/saved 100%25"),
        ("FILE:///mnt/saved", "/mnt/saved"),
        (Path("file:///mnt/saved"), "/mnt/saved"),
        ("file://machine/mnt/saved", None),
        ("hdfs://machine:9000/saved", None),
        ("abfss://box@account.dfs.core.windows.net/saved", None),
        ("s3://bucket", None),
    ],
)
def test_folders_of_this_machine(path, folder):
    assert local_folder(path) == (None if folder is None else Path(folder))
