"""Queries go on with checkpoints that an earlier version has left behind."""

import tarfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import spark_glue
from tests.support.spark_streams import MicroBatch, Recorder, Source, assert_same_rows, micro_batches, start
from tests.support.spark_versions import newest
from tests.support.stored_specs import QUERIES, SCHEMA, STORED

FOLDER = STORED / "checkpoint"
INPUTS = sorted(FOLDER.glob("input-*.parquet"))
READ = 4
"""So many of the inputs had been read when the queries were stopped."""
PLACE = b"/stored/query"
"""Stands in the stored checkpoints for the folder of input and checkpoint: Spark keeps some whole paths."""
WITH_PATHS = ("sources/0/*", "state/*/_metadata/v2/*")
"""The files that have some: of the input that has been read, and of the schema of the state."""


PARTITIONS_KEY = "spark.sql.shuffle.partitions"
PARTITIONS = 4
"""The checkpoints' number of them, which is fixed for their life."""


@pytest.fixture
def partitions(spark: SparkSession) -> Iterator[None]:
    """As many partitions as the queries had."""
    before = spark.conf.get(PARTITIONS_KEY)
    spark.conf.set(PARTITIONS_KEY, PARTITIONS)
    yield
    spark.conf.set(PARTITIONS_KEY, before)


def unpack(archive: Path, folder: Path) -> None:
    """Lays out a stored checkpoint below a folder, as if its query had run there."""
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    for pattern in WITH_PATHS:
        for path in (folder / "checkpoint").glob(pattern):
            content = path.read_bytes()
            assert PLACE in content
            path.write_bytes(content.replace(PLACE, str(folder).encode()))


def go_on(spark: SparkSession, name: str, folder: Path, inputs: list[pa.Table]) -> list[MicroBatch]:
    """Runs a query over inputs, with the checkpoint below a folder if there is one, until all is read."""
    source, recorder = Source(folder, SCHEMA), Recorder()
    source.put(*inputs)
    frame = spark_glue.apply(QUERIES[name], source.frame(spark), watermark="12 s", key_groups=8)
    query = start(frame, folder, recorder, available_now=True)
    query.awaitTermination()
    return micro_batches(query, recorder)


@newest
@pytest.mark.usefixtures("partitions")
@pytest.mark.parametrize("name", QUERIES)
def test_a_query_goes_on(spark: SparkSession, tmp_path: Path, name: str) -> None:
    """Each micro-batch gives the rows that it gave there; what had been read before is not read again."""
    inputs = [pq.read_table(path) for path in INPUTS]
    unpack(FOLDER / f"{name}.tar.gz", tmp_path)
    batches = go_on(spark, name, tmp_path, inputs)
    assert [batch.inputs for batch in batches] == [*(table.num_rows for table in inputs[READ:]), 0]
    expected = pa.ipc.open_file(FOLDER / f"{name}.expected.arrow").read_all()
    assert expected.num_rows > 0
    for number, batch in enumerate(batches):
        assert_same_rows(batch.rows, expected.filter(pc.equal(expected["batch"], number)).drop_columns(["batch"]))
