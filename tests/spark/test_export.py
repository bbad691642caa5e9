"""The open windows of a stopped query, written as files."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastwin as fw
import spark_glue
from fastwin.errors import SpecError, StateError
from tests.support.spark_events import START_MS, events
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
    frame = spark_glue.apply(SPEC, source.frame(spark), watermark="10 s", key_groups=4)
    start(frame, tmp_path, recorder, available_now=True).awaitTermination()
    checkpoint, folder = tmp_path / "checkpoint", tmp_path / "windows"
    written = spark_glue.export_state(checkpoint, SPEC, folder)
    found = pq.read_table(folder)
    assert found.num_rows == written > 10
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
    assert {path.name for path in tmp_path.iterdir()} == {"input", "checkpoint", "windows"}


def test_arguments(tmp_path):
    with pytest.raises(SpecError, match="spec: must be a WindowSpec"):
        spark_glue.export_state(str(tmp_path), None, str(tmp_path / "other"))
