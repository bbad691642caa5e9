"""Results as rows of Spark: what does not fit into its types is told of."""

import pyarrow as pa
import pytest
from pyspark.sql import types as T

import fastwin as fw
from fastwin.errors import BadRowError, SpecError
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


@pytest.mark.parametrize("name", ["late", "bad", "side_tag"])
def test_main_columns_that_sinks_would_take_for_another_output_are_refused(name):
    table = pa.table({"k": ["a"], "ts": [1], "v": [{"x": 1}]})
    struct = T.StructType(
        [
            T.StructField("k", T.StringType()),
            T.StructField("ts", T.LongType()),
            T.StructField("v", T.StructType([T.StructField("x", T.LongType())])),
        ]
    )
    windows = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of(10))

    def columns(**aggregates: fw.Aggregate) -> list[str]:
        frame_plan = frame_plan_for(table, windows.aggregate(**aggregates), streaming=False)
        return output_for(frame_plan, struct, False).struct.names

    with pytest.raises(SpecError, match=f"main column '{name}' that is a struct, .* give it a name other than late"):
        columns(**{name: fw.First("v")})
    assert columns(**{name: fw.Count()})[-1] == name
    assert columns(**{f"the_{name}": fw.First("v")})[-1] == f"the_{name}"
