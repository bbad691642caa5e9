"""Two frames joined window by window: both become rows of one kind, packed each by itself, and run as one input."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from fastwin.errors import SpecError
from fastwin.spec.joinending import LATE_SIDES, SIDE, SIDES, TIME
from spark_glue.plan.catalyst import quoted, watermark_of
from spark_glue.plan.eventtimes import milliseconds
from spark_glue.plan.frameplan import Asked, FramePlan, JoinInput, plan_frame
from spark_glue.plan.outputs import SIDE_PREFIX, output_for
from spark_glue.plan.settings import is_case_sensitive
from spark_glue.plan.types import arrow_schema, check_columns, check_keys
from spark_glue.stages.pack import pack_frame
from spark_glue.stages.running import Prepared

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    import fastwin as fw
    from fastwin.run.joinbound import Bound

__all__ = ["prepare_join"]

_POLICY_KEY = "spark.sql.streaming.multipleWatermarkPolicy"


def prepare_join(join: fw.JoinSpec, frames: tuple[DataFrame, DataFrame], asked: Asked) -> Prepared:
    """Returns a join of two frames, ready to run. Raises SpecError for frames and settings that do not fit."""
    bound = join.bind(arrow_schema(frames[0].schema), arrow_schema(frames[1].schema))
    spark = frames[0].sparkSession
    _check_frames(bound, frames, join.method)
    if not is_case_sensitive(spark):
        _check_names(bound, join.method)
    both = [_united(bound, side, frames) for side in (0, 1)]
    plans = [_input_plan(bound, side, frame, asked) for side, frame in enumerate(both)]
    frame_plan = _plan_of_both(bound, plans[0], frames)
    output = output_for(frame_plan, both[0].schema, is_case_sensitive(spark))
    if frame_plan.carried_delays:
        _check_policy(spark, join.method)
    packed = tuple(pack_frame(frame, plan) for frame, plan in zip(both, plans, strict=True))
    return Prepared(packed, frame_plan, output, finish=partial(_with_late_sides, bound, frames))


def _check_frames(bound: Bound, frames: tuple[DataFrame, DataFrame], method: str) -> None:
    """Raises SpecError for a type that fastwin cannot take, and for a watermark of a frame's own."""
    for frame, own in zip(frames, bound.sides, strict=True):
        check_columns(frame.schema, frame.schema.names)
        check_keys(frame.schema, own.keys)
        if frame.isStreaming and watermark_of(frame) is not None:
            raise SpecError(f"{method}: a frame has a watermark already; leave withWatermark out, give watermark=")


def _check_names(bound: Bound, method: str) -> None:
    """Raises SpecError for columns of both inputs that differ in the case of letters alone."""
    seen: dict[str, str] = {}
    for name in bound.schema.names:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            raise SpecError(
                f"{method}: the inputs have the columns {other!r} and {name!r}, which Spark cannot tell apart; rename "
                f"one of them"
            )


def _check_policy(spark: SparkSession, method: str) -> None:
    """Raises SpecError unless Spark makes the lesser of two watermarks that of the query."""
    policy = spark.conf.get(_POLICY_KEY)
    if policy != "min":
        raise SpecError(f"{method}: time is the lesser of both watermarks, so {_POLICY_KEY} must be min, got {policy}")


def _input_plan(bound: Bound, side: int, frame: DataFrame, asked: Asked) -> FramePlan:
    """Returns the plan by which the rows of one input are packed. frame: of these, as rows of both."""
    planned = plan_frame(bound.spec_of(side), frame, asked, input_number=side)
    return replace(planned, join_input=JoinInput(SIDES[side], _time_column(bound, side), bound.guesses_unit(side)))


def _plan_of_both(bound: Bound, of_input: FramePlan, frames: tuple[DataFrame, DataFrame]) -> FramePlan:
    """Returns the plan by which the rows of both inputs run. of_input: that of one of them."""
    late_inputs = tuple(side for side, own in enumerate(bound.sides) if own.late_output)
    return replace(
        of_input,
        spec=bound.spec,
        time_zone=_time_zone(bound, frames),
        join_input=None,
        late_inputs=late_inputs if bound.spec.late_output else None,
    )


def _united(bound: Bound, side: int, frames: tuple[DataFrame, DataFrame]) -> DataFrame:
    """Returns the rows of one frame as rows of both."""
    frame, own = frames[side], bound.sides[side]
    columns = [
        F.col(quoted(name)).cast(_key_type(frames, bound, at)).alias(key)
        for at, (name, key) in enumerate(zip(own.keys, bound.spec.keys, strict=True))
    ]
    times = milliseconds(frame, _time_column(bound, side), own.time_unit)
    columns += [F.lit(side).cast("tinyint").alias(SIDE), times.alias(TIME)]
    for which, named in enumerate(bound.columns):
        for name, column in named:
            kind = frames[which].schema[column].dataType
            found = F.col(quoted(column)) if which == side else F.lit(None).cast(kind)
            columns.append(found.alias(name))
    return frame.select(*columns)


def _time_column(bound: Bound, side: int) -> str:
    name = bound.sides[side].time_column
    assert name is not None
    return name


def _time_zone(bound: Bound, frames: tuple[DataFrame, DataFrame]) -> str | None:
    """Returns the session's time zone, if an event time is read in it; None: both have a zone."""
    kinds = (frame.schema[_time_column(bound, side)].dataType for side, frame in enumerate(frames))
    naive = any(isinstance(kind, T.TimestampNTZType) for kind in kinds)
    return frames[0].sparkSession.conf.get("spark.sql.session.timeZone") if naive else None


def _key_type(frames: tuple[DataFrame, DataFrame], bound: Bound, at: int) -> T.DataType:
    """Returns the type of a key of both inputs. Raises SpecError for types that Spark alone tells apart."""
    names = [own.keys[at] for own in bound.sides]
    left, right = (frame.schema[name].dataType for frame, name in zip(frames, names, strict=True))
    if left == right:
        return left
    if isinstance(left, T.IntegralType) and isinstance(right, T.IntegralType):
        return T.LongType()
    assert bound.spec.ending is not None
    raise SpecError(
        f"{bound.spec.ending.method}: the keys {names[0]!r} and {names[1]!r} are {left.simpleString()} and "
        f"{right.simpleString()}; cast one of them"
    )


def _with_late_sides(bound: Bound, frames: tuple[DataFrame, DataFrame], result: DataFrame) -> DataFrame:
    """Returns results with late rows in a struct for each input that asks for them, with the columns of its frame."""
    if not bound.spec.late_output:
        return result
    wanted = [side for side, spec in enumerate(bound.sides) if spec.late_output]
    late = F.col("late")  # of these alone
    columns = [F.col(quoted(name)) for name in result.columns if name != "late"]
    for side in wanted:
        names = dict(zip(bound.sides[side].keys, bound.spec.keys, strict=True))
        names |= {own: name for name, own in bound.columns[side]}
        found = {own: late[name] for own, name in names.items()}
        # Keys are of a type that those of both inputs fit in.
        found |= {own: found[own].cast(frames[side].schema[own].dataType) for own in bound.sides[side].keys}
        row = F.struct(*(found[own].alias(own) for own in bound.schemas[side].names))
        columns.append(F.when(late[SIDE] == side, row).alias(SIDE_PREFIX + LATE_SIDES[side]))
    return result.select(*columns)
