"""Checkpoints of queries on Spark that an earlier version has stored, a folder for each format of state.

``python -m tests.support.stored_checkpoints`` stores what is missing of the format that is written now: once, with the
release that brings it, and never again. What a query gave then lies with the first of its checkpoints.
"""

import io
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import fastwin as fw
import spark_glue
from tests.support import newer_specs
from tests.support.spark_streams import MicroBatch, Recorder, Source, assert_same_rows, micro_batches, start
from tests.support.stored_specs import QUERIES, SPECS
from tests.support.stored_streams import SCHEMA, STORED

__all__ = [
    "FORMATS",
    "HEADS",
    "INPUTS",
    "KINDS",
    "READ",
    "archive_of",
    "expected_of",
    "go_on",
    "pack",
    "partitions",
    "savepoint_of",
    "unpack",
]

KINDS: dict[str, fw.WindowSpec | fw.JoinSpec] = {
    **{name: SPECS[name] for name in ("sessions", "sliding", "combined", "ledger")},
    **{name: newer_specs.SPECS[name] for name in ("top", "bags", "several", "filled")},
    "join": newer_specs.JOINED,
}
"""Kinds of state that one query has together, an operator each."""
FORMATS = {**dict.fromkeys(QUERIES, (4, 5, 6)), "kinds": (5,)}
"""Of the heads in stored checkpoints, for each query; Spark's own format of checkpoints is its first and second one."""
HEADS = {4: 4, 5: 5, 6: 5}
"""The format of the state, by that of the heads which tell of it."""
INPUTS = sorted((STORED / "checkpoint").glob("input-*.parquet"))
READ = 4
"""So many of the inputs had been read when the queries were stopped."""

_PARTITIONS_KEY = "spark.sql.shuffle.partitions"
_PLACE = b"/stored/query"  # stands there for the folder of input and checkpoint: Spark keeps some whole paths
_WITH_PATHS = ("sources/0/*", "state/*/_metadata/v2/*")  # of the input that has been read; of the schema of the state


def _folder_of(version: int) -> Path:
    return STORED / ("checkpoint" if version == 4 else f"checkpoint-{version}")


def archive_of(name: str, version: int) -> Path:
    """Returns where the checkpoint of a query lies. version: the format of its heads."""
    return _folder_of(version) / f"{name}.tar.gz"


def expected_of(name: str) -> Path:
    """Returns where the rows lie that a query gave when it went on, with the number of the micro-batch from 0 on."""
    return _folder_of(FORMATS[name][0]) / f"{name}.expected.arrow"


def savepoint_of(version: int) -> Path:
    """Returns where what ``export_state`` has written of the query ``own_trigger`` lies."""
    return STORED / f"savepoint-{version}"


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
    with partitions(spark, 1 if name == "kinds" else 4):  # which is fixed for the life of a checkpoint
        query = start(_frame_of(name, source.frame(spark)), folder, recorder, available_now=True)
        query.awaitTermination()
    return micro_batches(query, recorder)


def _frame_of(name: str, events: DataFrame) -> DataFrame:
    """Returns what a query gives; of one with several operators as text, with the operator's name."""
    if name != "kinds":
        return spark_glue.apply(QUERIES[name], events, watermark="12 s", key_groups=8)
    frames = []
    for kind, spec in KINDS.items():
        is_join = isinstance(spec, fw.JoinSpec)
        inputs, watermark = ((events, events), ("12 s", "12 s")) if is_join else (events, "12 s")
        frame = spark_glue.apply(spec, inputs, watermark=watermark, key_groups=3, name=kind)
        columns = ("k", "window_start", "v", "v_right") if is_join else ("*",)  # a join has many rows
        text = F.to_json(F.struct(*columns), {"timeZone": "UTC", "ignoreNullFields": "false"})
        frames.append(frame.select(F.lit(kind).alias("kind"), text.alias("row")))
    return reduce(DataFrame.unionAll, frames)


@contextmanager
def partitions(spark: SparkSession, number: int) -> Iterator[None]:
    """Has queries that begin here so many shares."""
    before = spark.conf.get(_PARTITIONS_KEY)
    spark.conf.set(_PARTITIONS_KEY, number)
    try:
        yield
    finally:
        spark.conf.set(_PARTITIONS_KEY, before)


def pack(folder: Path, archive: Path) -> None:
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
    config = {"spark.ui.enabled": False, "spark.sql.session.timeZone": "UTC"}
    spark = spark_glue.session(app_name="stored checkpoints", master="local[2]", config=config)
    try:
        for name, formats in FORMATS.items():
            archive = archive_of(name, version)
            if archive.exists() or version not in formats:
                continue
            archive.parent.mkdir(exist_ok=True)
            with tempfile.TemporaryDirectory() as folder:
                before = go_on(spark, name, Path(folder), INPUTS[:READ])
                pack(Path(folder), archive)
            if not expected_of(name).exists():
                _store_expected(spark, name, before, archive)
        saved = savepoint_of(HEADS[version])
        if not saved.exists():
            with tempfile.TemporaryDirectory() as folder:
                unpack(archive_of("own_trigger", version), Path(folder))
                spark_glue.export_state(f"{folder}/checkpoint", QUERIES["own_trigger"], str(saved))
    finally:
        spark.stop()


def _store_expected(spark: SparkSession, name: str, before: list[MicroBatch], archive: Path) -> None:
    """Stores what a query gives that goes on, if all it has given is what one gives that was never stopped."""
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        unpack(archive, Path(one))
        after, whole = (go_on(spark, name, Path(folder), INPUTS) for folder in (one, other))
    given, expected = (pa.concat_tables([batch.rows for batch in batches]) for batches in ([*before, *after], whole))
    assert_same_rows(given, expected)
    numbered = [
        batch.rows.append_column("batch", pa.array([number] * batch.rows.num_rows, pa.int8()))
        for number, batch in enumerate(after)
    ]
    table = pa.concat_tables(numbered).combine_chunks()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(expected_of(name), table.schema, options=options) as file:
        file.write_table(table)


if __name__ == "__main__":
    from spark_glue.state.log import HEAD_FORMAT

    _store(HEAD_FORMAT)
