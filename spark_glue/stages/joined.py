"""Two frames joined window by window: put together, packed each with its own watermark, and run as one stream."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from fastwin.errors import SpecError
from fastwin.spec.joinending import LATE_SIDES, SIDE, SIDES, TIME
from fastwin.state.identity import Migrate
from spark_glue.plan.catalyst import prefers_columns, quoted, watermark_of
from spark_glue.plan.eventtimes import milliseconds
from spark_glue.plan.frameplan import JoinInput, plan_frame
from spark_glue.plan.outputs import SIDE_PREFIX, output_for
from spark_glue.plan.settings import is_case_sensitive
from spark_glue.plan.types import arrow_schema, check_columns, check_keys
from spark_glue.stages.batchframe import run_batch
from spark_glue.stages.operator import run_stream
from spark_glue.stages.pack import pack_frame
from spark_glue.stages.warming import warm_up
from spark_glue.state.cleanup import forget_when_ended

if TYPE_CHECKING:
    from pyspark.sql import Observation

    import fastwin as fw
    from fastwin.run.joinbound import Bound

__all__ = ["run_joined"]

_POLICY_KEY = "spark.sql.streaming.multipleWatermarkPolicy"


def run_joined(
    join: fw.JoinSpec,
    frames: tuple[DataFrame, DataFrame],
    delays: tuple[int, int] | None,
    *,
    key_groups: int,
    skew_ms: int | None,
    coalesce: bool,
    name: str | Observation,
    migrate: Migrate,
    idle_ms: int | None = None,
    small_state: bool = False,
) -> DataFrame:
    """Returns the result frame of a join. delays: of the watermarks, ms; None: the frames are no streams.

    idle_ms: after how long without rows an input is not waited for; None: it is.
    """
    bound = join.bind(arrow_schema(frames[0].schema), arrow_schema(frames[1].schema))
    for frame, own in zip(frames, bound.sides, strict=True):
        check_columns(frame.schema, frame.schema.names)
        check_keys(frame.schema, own.keys)
        if frame.isStreaming and watermark_of(frame) is not None:
            raise SpecError(f"{join.method}: a frame has a watermark already; leave withWatermark out, give watermark=")
    both = [_united(bound, side, frames) for side in (0, 1)]
    plans = [
        replace(
            plan_frame(
                bound.spec_of(number),
                frame,
                key_groups=key_groups,
                skew_ms=skew_ms,
                coalesce=coalesce,
                migrate=migrate,
                own_watermark=False,
                chained=False,
                idle_ms=idle_ms,
                delays=delays or (),
                input_number=number,
            ),
            join_input=JoinInput(SIDES[number], _time_column(bound, number), bound.guesses_unit(number)),
        )
        for number, frame in enumerate(both)
    ]
    late_inputs = tuple(number for number, own in enumerate(bound.sides) if own.late_output)
    frame_plan = replace(
        plans[0],
        spec=bound.spec,
        time_zone=_time_zone(bound, frames),
        join_input=None,
        late_inputs=late_inputs if bound.spec.late_output else None,
    )
    session = frames[0].sparkSession
    output = output_for(frame_plan, both[0].schema, is_case_sensitive(session))
    packed = [
        pack_frame(one, plan, prefers_columns(one, frame_plan.packed_schema.names))
        for one, plan in zip(both, plans, strict=True)
    ]
    if delays is None:
        result = run_batch(packed[0].unionAll(packed[1]), frame_plan, output, name)
    else:
        policy = session.conf.get(_POLICY_KEY)
        if policy != "min" and idle_ms is None:
            raise SpecError(
                f"{join.method}: time is the lesser of both watermarks, so {_POLICY_KEY} must be min, got {policy}"
            )
        carried = packed
        if idle_ms is None:
            carried = [
                one.withWatermark("carrier", f"{delay} milliseconds").where(F.col("carrier").isNull())
                for one, delay in zip(packed, delays, strict=True)
            ]
        forget_when_ended(session)
        warm_up(session)
        assert isinstance(name, str)
        frame_plan = replace(frame_plan, small_state=small_state)
        result = run_stream(carried[0].unionAll(carried[1]), frame_plan, output, name)
    return _with_late_sides(bound, result)


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


def _with_late_sides(bound: Bound, result: DataFrame) -> DataFrame:
    """Returns results with late rows in a struct for each input that asks for them."""
    if not bound.spec.late_output:
        return result
    wanted = [side for side, spec in enumerate(bound.sides) if spec.late_output]
    late = F.col("late")  # of these alone
    columns = [F.col(quoted(name)) for name in result.columns if name != "late"]
    for side in wanted:
        names = dict(zip(bound.sides[side].keys, bound.spec.keys, strict=True))
        names |= {own: name for name, own in bound.columns[side]}
        row = F.struct(*(late[names[own]].alias(own) for own in bound.schemas[side].names))
        columns.append(F.when(late[SIDE] == side, row).alias(SIDE_PREFIX + LATE_SIDES[side]))
    return result.select(*columns)
