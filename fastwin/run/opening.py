"""Opens streams: as ``WindowSpec.open`` is asked to, and as parts of other objects."""

from __future__ import annotations

from typing import Literal

import pyarrow as pa

from fastwin.errors import SpecError
from fastwin.run import planner
from fastwin.run.datawatermark import data_watermark
from fastwin.run.ownedstream import OwnedStream
from fastwin.run.planner import Plan
from fastwin.run.stream import Stream
from fastwin.run.tracing import TracedStream, check_trace
from fastwin.spec.builder import SpecBuilder
from fastwin.spec.checks import warn_if_never_fires
from fastwin.times import Duration

__all__ = ["open_owned", "open_stream"]


def open_stream(
    spec: SpecBuilder,
    watermark: Duration | Literal["monotonous"] | None = None,
    *,
    schema: pa.Schema | None = None,
    max_future_skew: Duration | None = None,
    idle: Duration | None = None,
    trace: int | None = None,
) -> Stream:
    """Opens a stream; see ``WindowSpec.open``."""
    if spec.time_column is None:
        by_event_time = {"watermark": watermark, "idle": idle, "max_future_skew": max_future_skew}
        told = [name for name, value in by_event_time.items() if value is not None]
        if told:
            raise SpecError(f"open: {told[0]}= is about event times, and the spec has no .event_time(column)")
    warn_if_never_fires(spec)
    follows = data_watermark(watermark, idle)
    plan = None if schema is None else planner.plan(spec, schema)
    if trace is None:
        return Stream(spec, plan=plan, follows=follows, max_future_skew=max_future_skew, schema=schema)
    most = check_trace(trace)
    return TracedStream(spec, plan=plan, follows=follows, max_future_skew=max_future_skew, schema=schema, trace=most)


def open_owned(plan: Plan, *, any_time: bool = False, trace: int | None = None) -> OwnedStream:
    """Opens a stream for an object that it is a part of.

    any_time: takes event times of all int64, as Flink does, and not only those within ±2⁶¹ ms; for the general operator
    alone. trace: how many decisions are kept, see ``check_trace``; None: none.
    """
    if trace is None:
        return OwnedStream(plan.spec, plan=plan, any_time=any_time)
    return TracedStream(plan.spec, plan=plan, any_time=any_time, trace=trace)
