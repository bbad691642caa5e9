"""A checkpoint on a store that lists late and replaces no file, as some stores of objects do."""

import shutil
import time
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException

import fastwin as fw
import spark_glue
from spark_glue.plan.settings import FORMAT_KEY
from tests.support import late_files
from tests.support.spark_events import START_MS, events
from tests.support.spark_streams import Recorder, Source, assert_replayed, micro_batches, start
from tests.support.variants import variants

SPEC = (
    fw.key_by("k")
    .event_time("ts")
    .window(fw.SlidingEventTimeWindows.of("2 min", "1 min"))
    .bad_rows("drop")
    .aggregate(n=fw.Count(), first=fw.First("v"))
)
TABLES = [events(i, 100, start_ms=START_MS + i * 40_000, span_ms=40_000) for i in range(4)]
LATE_MS = 1_500
BROKEN = 2
"""The micro-batch whose sink fails when all of its state is stored."""


@pytest.fixture(scope="module")
def late_store(spark, tmp_path_factory):
    """The class of the file system reaches driver and tasks as a jar does."""
    folder = tmp_path_factory.mktemp("late")
    (folder / "classes").mkdir()
    late_files.compiled(spark, folder / "classes")
    jar = Path(shutil.make_archive(str(folder / "late"), "zip", folder / "classes")).rename(folder / "late.jar")
    spark.sql(f"ADD JAR '{jar}'")
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    before = conf.getClassLoader()
    conf.setClassLoader(spark._jsparkSession.sharedState().jarClassLoader())
    conf.set("fs.late.impl", late_files.CLASS)
    yield
    conf.unset("fs.late.impl")
    conf.setClassLoader(before)


class Run:
    """A query whose checkpoint lies there. In one micro-batch its sink fails, once."""

    def __init__(self, spark, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        self.recorder, self.found, self.failures = Recorder(), {}, 1
        self.source = Source(folder, TABLES[0].schema)
        self.source.put(*TABLES)

    def sink(self, frame, batch_id: int) -> None:
        self.recorder(frame, batch_id)
        if batch_id == BROKEN and self.failures:
            self.failures -= 1
            raise RuntimeError("the sink is away")

    def go_on(self) -> None:
        frame = spark_glue.apply(SPEC, self.source.frame(self.spark), watermark="10 s", key_groups=2)
        query = start(frame, self.folder, self.sink, available_now=True, scheme=late_files.SCHEME)
        try:
            query.awaitTermination()
        finally:
            self.found |= {batch.id: batch for batch in micro_batches(query, self.recorder)}


def listed(spark, path: Path) -> list[str]:
    """What the store says lies in a folder."""
    folder = spark._jvm.org.apache.hadoop.fs.Path(f"{late_files.SCHEME}{path}")
    files = folder.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration()).listStatus(folder)
    return [file.getPath().getName() for file in files]


@pytest.fixture(params=variants(["1", "2"], "2"))
def checkpoint_format(spark, request):
    before = spark.conf.get(FORMAT_KEY)
    spark.conf.set(FORMAT_KEY, request.param)
    yield request.param
    spark.conf.set(FORMAT_KEY, before)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*checkpointFormatVersion")
@pytest.mark.usefixtures("late_store")
def test_a_repeated_micro_batch_and_a_hasty_restart(spark, checkpoint_format, tmp_path):
    run, offsets = Run(spark, tmp_path), tmp_path / "checkpoint" / "offsets"
    # Not late yet: Spark lists what the first micro-batch has written before the second one, however soon that comes.
    with (
        late_files.manners(spark, 0, refuse=True),
        pytest.raises(StreamingQueryException, match="the sink is away"),
    ):
        run.go_on()
    stored = {path: path.read_bytes() for path in (tmp_path / "checkpoint").rglob("*.changelog")}
    with late_files.manners(spark, 3_600_000, refuse=True):  # no listing shows what the run before has written
        assert (offsets / "0").exists()
        assert not listed(spark, offsets)
        with pytest.raises(StreamingQueryException, match=r"NOT_EMPTY|Concurrent|Multiple streaming"):
            run.go_on()
    time.sleep(LATE_MS / 1_000)
    with late_files.manners(spark, LATE_MS, refuse=True):
        run.go_on()
    assert_replayed(SPEC, TABLES, [run.found[number] for number in sorted(run.found)], folder=tmp_path)
    # What the broken micro-batch has stored was written again: in format 2 beside it, in format 1 what was there stayed.
    assert all(path.read_bytes() == written for path, written in stored.items() if path.exists())
    again = list((tmp_path / "checkpoint").glob(f"state/0/*/{BROKEN + 1}*.changelog"))
    firsts = [path for path in stored if path.name.startswith(f"{BROKEN + 1}")]
    assert firsts
    assert len(again) == len(firsts) * int(checkpoint_format)
