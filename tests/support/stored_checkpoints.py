"""Checkpoints of queries on Spark that an earlier version has stored, a folder for each format of state.

``python -m tests.support.stored_checkpoints`` stores those of the format that is written now: once, with the release
that brings it, and never again. What all queries read, and what they gave then, lies with the first of them.
"""

import io
import tarfile
import tempfile
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import spark_glue
from tests.support.spark_streams import MicroBatch, Recorder, Source, micro_batches, start
from tests.support.stored_specs import QUERIES, SCHEMA, STORED

__all__ = ["EXPECTED", "INPUTS", "PARTITIONS", "PARTITIONS_KEY", "READ", "archive_of", "go_on", "unpack"]

EXPECTED = STORED / "checkpoint"
INPUTS = sorted(EXPECTED.glob("input-*.parquet"))
READ = 4
"""So many of the inputs had been read when the queries were stopped."""
PARTITIONS_KEY = "spark.sql.shuffle.partitions"
PARTITIONS = 4
"""The checkpoints' number of them, which is fixed for their life."""

_PLACE = b"/stored/query"  # stands there for the folder of input and checkpoint: Spark keeps some whole paths
_WITH_PATHS = ("sources/0/*", "state/*/_metadata/v2/*")  # of the input that has been read; of the schema of the state


def archive_of(name: str, version: int) -> Path:
    """Returns where the checkpoint of a query lies. version: the format of its state."""
    return STORED / ("checkpoint" if version == 4 else f"checkpoint-{version}") / f"{name}.tar.gz"


def unpack(archive: Path, folder: Path) -> None:
    """Lays out a stored checkpoint below a folder, as if its query had run there."""
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    for path in _with_paths(folder):
        content = path.read_bytes()
        assert _PLACE in content
        path.write_bytes(content.replace(_PLACE, str(folder).encode()))


def _with_paths(folder: Path) -> list[Path]:
    return [path for pattern in _WITH_PATHS for path in (folder / "checkpoint").glob(pattern)]


def go_on(spark: SparkSession, name: str, folder: Path, inputs: list[Path]) -> list[MicroBatch]:
    """Runs a query over inputs, with the checkpoint below a folder if there is one, until all is read."""
    source, recorder = Source(folder, SCHEMA), Recorder()
    source.put(*map(pq.read_table, inputs))
    frame = spark_glue.apply(QUERIES[name], source.frame(spark), watermark="12 s", key_groups=8)
    query = start(frame, folder, recorder, available_now=True)
    query.awaitTermination()
    return micro_batches(query, recorder)


def _pack(folder: Path, archive: Path) -> None:
    """Stores the checkpoint below a folder, without what Spark writes for checksums of its own, and without times."""
    here = str(folder).encode()
    holders = set(_with_paths(folder))
    with tarfile.open(archive, "w:gz", compresslevel=9) as packed:
        for path in sorted((folder / "checkpoint").rglob("*")):
            if not path.is_file() or path.name.startswith("."):
                continue
            content = path.read_bytes()
            assert path in holders or here not in content, path
            content = content.replace(here, _PLACE)
            about = tarfile.TarInfo(str(path.relative_to(folder)))
            about.size = len(content)
            packed.addfile(about, io.BytesIO(content))


def _store(version: int) -> None:
    config = {PARTITIONS_KEY: PARTITIONS, "spark.ui.enabled": False, "spark.sql.session.timeZone": "UTC"}
    spark = spark_glue.session(app_name="stored checkpoints", master="local[2]", config=config)
    try:
        for name in QUERIES:
            archive = archive_of(name, version)
            archive.parent.mkdir(exist_ok=True)
            with tempfile.TemporaryDirectory() as folder:
                go_on(spark, name, Path(folder), INPUTS[:READ])
                _pack(Path(folder), archive)
    finally:
        spark.stop()


if __name__ == "__main__":
    from fastwin.state.chunks import FORMAT_VERSION

    _store(FORMAT_VERSION)
