"""Queries go on with checkpoints that an earlier version has left behind."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from fastwin.state.chunks import FORMAT_VERSION
from tests.support.spark_streams import assert_same_rows
from tests.support.spark_versions import newest
from tests.support.stored_checkpoints import (
    EXPECTED,
    INPUTS,
    PARTITIONS,
    PARTITIONS_KEY,
    READ,
    archive_of,
    go_on,
    unpack,
)
from tests.support.stored_specs import QUERIES

FORMATS = (4, 5)
"""Of the state in stored checkpoints; Spark's own format of checkpoints is its first and its second one."""


@pytest.fixture
def partitions(spark: SparkSession) -> Iterator[None]:
    """As many partitions as the queries had."""
    before = spark.conf.get(PARTITIONS_KEY)
    spark.conf.set(PARTITIONS_KEY, PARTITIONS)
    yield
    spark.conf.set(PARTITIONS_KEY, before)


def test_the_format_that_is_written_is_stored() -> None:
    assert max(FORMATS) == FORMAT_VERSION, "store it: python -m tests.support.stored_checkpoints"


@newest
@pytest.mark.usefixtures("partitions")
@pytest.mark.parametrize("version", FORMATS)
@pytest.mark.parametrize("name", QUERIES)
def test_a_query_goes_on(spark: SparkSession, tmp_path: Path, name: str, version: int) -> None:
    """Each micro-batch gives the rows that it gave there; what had been read before is not read again."""
    unpack(archive_of(name, version), tmp_path)
    batches = go_on(spark, name, tmp_path, INPUTS)
    assert [batch.inputs for batch in batches] == [*(pq.read_metadata(path).num_rows for path in INPUTS[READ:]), 0]
    expected = pa.ipc.open_file(EXPECTED / f"{name}.expected.arrow").read_all()
    assert expected.num_rows > 0
    for number, batch in enumerate(batches):
        assert_same_rows(batch.rows, expected.filter(pc.equal(expected["batch"], number)).drop_columns(["batch"]))
