"""Queries whose windows go by the clock go on with checkpoints that an earlier version has left behind."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_glue.state.log import HEAD_FORMAT
from tests.support.spark_streams import assert_same_rows
from tests.support.spark_versions import newest
from tests.support.stored_checkpoints import INPUTS, READ, archive_of, unpack
from tests.support.stored_clocks import FORMATS, QUERIES, Query, Step
from tests.support.variants import variants


def test_the_format_that_is_written_is_stored() -> None:
    assert max(FORMATS) == HEAD_FORMAT, "store it: python -m tests.support.stored_clocks"


@newest
@pytest.mark.parametrize("version", FORMATS)
@pytest.mark.parametrize("name", variants(QUERIES, "idle"))
def test_a_query_goes_on(spark: SparkSession, tmp_path: Path, name: str, version: int) -> None:
    """Each micro-batch gives what this process gives, which knows the times of all micro-batches, those before too."""
    unpack(archive_of(name, version), tmp_path)
    query = Query(name, tmp_path)

    def done(steps: list[Step]) -> bool:
        fired = any(step.main.num_rows for step in steps if step.read > READ)
        return steps[-1].read == len(INPUTS) and fired and (name == "idle" or not steps[-1].open)

    query.go_on(spark, INPUTS, done)
    steps = list(query.replayed(max(query.tables)))
    first = min(query.tables)
    assert sorted(query.tables) == list(range(first, len(steps)))
    assert steps[first - 1].read == READ and steps[first - 1].open > 0
    for batch, rows in query.tables.items():
        assert_same_rows(rows, steps[batch].main)
    assert sum(rows.num_rows for rows in query.tables.values()) > 0
