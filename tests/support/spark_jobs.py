"""Jobs for the stages on Spark, as apply() makes them."""

import pyarrow as pa
from pyspark.sql import SparkSession

import fastwin as fw
from spark_glue.plan.frameplan import FramePlan

__all__ = ["KEY_GROUPS", "SPEC", "frame_plan_for", "jobs_of"]

SPEC = (
    fw.key_by("k")
    .event_time("ts")
    .window(fw.TumblingEventTimeWindows.of("1 min"))
    .aggregate(n=fw.Count(), s=fw.Sum("v"))
)
KEY_GROUPS = 8


def frame_plan_for(table: pa.Table, spec: fw.WindowSpec = SPEC, **changes) -> FramePlan:
    fields = {
        "spec": spec,
        "schema": table.schema,
        "time_column": spec.time_column,
        "time_zone": None,
        "key_groups": KEY_GROUPS,
        "streaming": True,
        "carrier": True,
        "max_future_skew_ms": None,
        "coalesce": True,
    }
    return FramePlan(**(fields | changes))


def jobs_of(spark: SparkSession, group: str | None = None) -> set[int]:
    """Returns the jobs of a group that Spark remembers, or of none. It forgets old ones, a hundred at a time.

    Spark tells of jobs later than it runs them, so what it has to tell is waited for.
    """
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    return set(spark.sparkContext.statusTracker().getJobIdsForGroup(group))
