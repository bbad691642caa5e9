"""Results as rows of Spark: what does not fit into its types is told of."""

import pyarrow as pa
import pytest
from pyspark.sql import types as T

import fastwin as fw
from fastwin.errors import BadRowError
from spark_glue.plan.outputs import output_for
from tests.support.spark_jobs import frame_plan_for

MOST_MS = (2**63 - 1) // 1_000
"""The last one that Spark's timestamps have."""


def counts(*times: int) -> list[int]:
    """Returns what windows of 10 ms count of whole numbers, as Spark gets it."""
    table = pa.table({"k": ["a"] * len(times), "ts": times})
    spec = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of(10)).aggregate(n=fw.Count())
    struct = T.StructType([T.StructField("k", T.StringType()), T.StructField("ts", T.LongType())])
    output = output_for(frame_plan_for(table, spec, streaming=False), struct, False)
    return [count for batch in output.result_rows(spec.run(table)) for count in batch["n"].to_pylist()]


@pytest.mark.parametrize("at", [1_700_000_000_000_000_000, MOST_MS + 1, -MOST_MS - 1])
def test_bounds_that_spark_does_not_have_name_their_column_and_the_likely_cause(at):
    says = rf"event_time: the result has a window_(start|end) of {str(at)[:-2]}\d\d ms, .* \+-{MOST_MS} ms; .* unit="
    with pytest.raises(BadRowError, match=says):
        counts(1_700_000_000_000, at)


def test_the_last_bounds_that_spark_has():
    assert counts(MOST_MS - 10, -MOST_MS + 10) == [1, 1]
