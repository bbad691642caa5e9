"""Spark's first format of checkpoints: attempts overwrite each other's files, and a query goes on all the same."""

import shutil
from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa
import pytest

import fastwin as fw
import spark_glue
from spark_glue.plan.settings import FORMAT_KEY
from tests.support.spark_events import START_MS, events
from tests.support.spark_streams import Recorder, Source, rows_of, start
from tests.support.spark_versions import SPARK

SPEC = (
    fw.key_by("k")
    .event_time("ts")
    .window(fw.SlidingEventTimeWindows.of("2 min", "1 min"))
    .bad_rows("drop")
    .aggregate(n=fw.Count(), first=fw.First("v"))
)
TABLES = [events(i, 100, start_ms=START_MS + i * 40_000, span_ms=40_000) for i in range(6)]
END = events(9, 1, start_ms=START_MS + 3_600_000)


def last_of(folder: Path) -> int:
    """The last batch that a log in a checkpoint tells of."""
    return max(int(path.name) for path in folder.iterdir() if path.name.isdecimal())


def cut(folder: Path, last: int) -> None:
    """Removes what a log in a checkpoint tells of batches after this one."""
    for path in folder.iterdir():
        if int(path.name.strip(".").split(".")[0]) > last:
            path.unlink()


@pytest.fixture
def first_format(spark):
    before = spark.conf.get(FORMAT_KEY)
    spark.conf.set(FORMAT_KEY, "1")
    yield
    spark.conf.set(FORMAT_KEY, before)


@pytest.mark.long
@pytest.mark.usefixtures("first_format")
@pytest.mark.filterwarnings("ignore:.*checkpointFormatVersion is 1")
def test_changelogs_of_two_attempts(spark, tmp_path):
    """A batch is repeated from stored state, and its files are laid over those of the first attempt; then a restart."""
    source, recorder = Source(tmp_path, TABLES[0].schema), Recorder()
    checkpoint, first = tmp_path / "checkpoint", tmp_path / "first"

    def go_on(*tables: pa.Table) -> None:
        source.put(*tables)
        frame = spark_glue.apply(SPEC, source.frame(spark), watermark="10 s", key_groups=2)
        start(frame, tmp_path, recorder, available_now=True).awaitTermination()

    go_on(*TABLES[:5])
    shutil.copytree(checkpoint, first)
    repeated = last_of(first / "commits") - 2
    cut(checkpoint / "commits", repeated - 1)
    cut(checkpoint / "offsets", repeated)
    go_on()
    found = [path.relative_to(checkpoint) for path in checkpoint.glob(f"state/0/*/{repeated + 1}.changelog")]
    assert found
    laid_over = [(checkpoint / path).read_bytes() for path in found]
    shutil.rmtree(checkpoint)
    shutil.copytree(first, checkpoint)
    for path, content in zip(found, laid_over, strict=True):
        (checkpoint / path).write_bytes(content)
        (checkpoint / path.parent / f".{path.name}.crc").unlink(missing_ok=True)
    told = pytest.warns(UserWarning, match=f"checkpoint: it was begun with {FORMAT_KEY}=1.* start the query anew")
    with told if SPARK >= (4, 1) else nullcontext():  # in 4.0 there is no better one
        go_on(TABLES[5], END)
    expected = SPEC.run(pa.concat_tables(TABLES)).main
    assert rows_of(pa.concat_tables(recorder.tables.values())) == rows_of(expected)
