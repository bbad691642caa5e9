"""Queries go on with checkpoints, and from savepoints, that an earlier version has left behind."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import fastwin as fw
from fastwin.run.replica import open_replica
from fastwin.state.chunks import FORMAT_VERSION
from spark_glue.state.log import HEAD_FORMAT
from spark_glue.state.savepoint import STATE_FOLDER, Savepoint
from tests.support.spark_streams import assert_same_rows, rows_of
from tests.support.spark_versions import newest
from tests.support.stored_checkpoints import (
    FORMATS,
    HEADS,
    INPUTS,
    KINDS,
    READ,
    archive_of,
    expected_of,
    go_on,
    savepoint_of,
    unpack,
)
from tests.support.stored_specs import QUERIES
from tests.support.stored_streams import SCHEMA
from tests.support.variants import variants

STORED = [(name, one) for name, formats in FORMATS.items() for one in formats]


def test_the_format_that_is_written_is_stored() -> None:
    assert {HEADS[max(formats)] for formats in FORMATS.values()} == {FORMAT_VERSION}, (
        "store it: python -m tests.support.stored_checkpoints"
    )
    assert max(FORMATS["aligned"]) == max(HEADS) == HEAD_FORMAT


@newest
@pytest.mark.parametrize("stored", variants(STORED, *(one for one in STORED if one[0] != "kinds")), ids=str)
def test_a_query_goes_on(spark: SparkSession, tmp_path: Path, stored: tuple[str, int]) -> None:
    """Each micro-batch gives the rows that it gave there; what had been read before is not read again."""
    name, version = stored
    unpack(archive_of(name, version), tmp_path)
    batches = go_on(spark, name, tmp_path, INPUTS)
    read = len(KINDS) + 1 if name == "kinds" else 1  # so often; a join reads twice
    rows = [pq.read_metadata(path).num_rows for path in INPUTS[READ:]]
    assert [batch.inputs for batch in batches] == [*(read * count for count in rows), 0]
    expected = pa.ipc.open_file(expected_of(name)).read_all()
    assert expected.num_rows > 0
    for number, batch in enumerate(batches):
        assert_same_rows(batch.rows, expected.filter(pc.equal(expected["batch"], number)).drop_columns(["batch"]))
    if name == "kinds":
        assert set(expected["kind"].to_pylist()) == set(KINDS)


@pytest.mark.parametrize("version", [5])
def test_a_stream_goes_on_from_a_savepoint(version: int) -> None:
    """It gives what the query gave that went on with the checkpoint of which it is."""
    folder, plan = savepoint_of(version), fw.plan(QUERIES["own_trigger"], SCHEMA, coalesce=True)
    saved = Savepoint.read(str(folder))
    assert saved.fingerprint == plan.fingerprint.hex()
    saved.check_whole(folder)
    stream = open_replica(plan)
    stream.gather(pq.read_table(folder / STATE_FOLDER)["part"].to_pylist())
    readable = pq.read_table(folder)
    names = [name for name in readable.column_names if name != "watermark"]
    assert_same_rows(readable.select(names), stream.inspect().select(names))
    watermark, found = saved.watermark, []
    for path in [*INPUTS[READ:], None]:
        assert watermark is not None
        found.append(stream.advance_watermark(watermark).main)
        if path is not None:
            rows = pq.read_table(path)
            found.append(stream.process(rows).main)
            watermark = max(watermark, pc.max(rows["ts"]).value // 1_000 - 12_000)
    expected = pa.ipc.open_file(expected_of("own_trigger")).read_all()
    assert rows_of(pa.concat_tables(found)) == rows_of(expected.select(found[0].column_names))
