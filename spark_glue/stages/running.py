"""The last step of each ``apply``: packed rows run, as a stream behind the watermark that they carry, or as a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_glue.plan.compat import is_connect
from spark_glue.plan.connect import guard_clock
from spark_glue.plan.frameplan import FramePlan
from spark_glue.plan.outputs import Output
from spark_glue.stages.batchframe import run_batch
from spark_glue.stages.operator import run_stream
from spark_glue.stages.warming import warm_up
from spark_glue.state.cleanup import forget_when_ended

if TYPE_CHECKING:
    from pyspark.sql import Observation

__all__ = ["Prepared", "run"]


@dataclass(frozen=True)
class Prepared:
    """What is ready to run.

    packed: the packed rows of each input. frame_plan, output: of what runs them all. initial: rows of history.INITIAL;
    None: the state begins empty. finish: makes the columns that the user gets of those of the output; None: they are
    the same.
    """

    packed: tuple[DataFrame, ...]
    frame_plan: FramePlan
    output: Output
    initial: DataFrame | None = None
    finish: Callable[[DataFrame], DataFrame] | None = None


def run(prepared: Prepared, name: str | Observation) -> DataFrame:
    """Returns the result frame. name: of the counters; an Observation takes those of a batch frame."""
    frame_plan, output = prepared.frame_plan, prepared.output
    if frame_plan.streaming:
        carried = _carried(prepared.packed, frame_plan)
        spark = carried.sparkSession
        forget_when_ended(spark)
        warm_up(spark)
        result = run_stream(carried, frame_plan, output, name, prepared.initial)
    else:
        result = run_batch(_united(prepared.packed), frame_plan, output, name)
    if prepared.finish is not None:
        result = prepared.finish(result)
    clocked = frame_plan.streaming and frame_plan.time_mode == "ProcessingTime"
    return guard_clock(result) if clocked and is_connect(result) else result


def _carried(packed: Iterable[DataFrame], frame_plan: FramePlan) -> DataFrame:
    """Returns the packed rows of all inputs behind the watermark that each of them carries, if they carry one."""
    delays = frame_plan.carried_delays
    if delays:
        # The carrier rows have done their work in the watermark; this filter, on the watermark's own column, stays
        # behind it.
        packed = [
            one.withWatermark("carrier", f"{delay} milliseconds").where(F.col("carrier").isNull())
            for one, delay in zip(packed, delays, strict=True)
        ]
    return _united(packed)


def _united(frames: Iterable[DataFrame]) -> DataFrame:
    return reduce(lambda one, other: one.unionAll(other), frames)
