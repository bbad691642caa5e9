"""fastwin: Flink's windows for Python and Spark, on a core at the speed of C."""

from fastwin import batches, duration
from fastwin.aggregates import Aggregate, Count, Max, Mean, Min, Sum
from fastwin.assigners import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    WindowAssigner,
)
from fastwin.errors import AggregateOverflowError, BadRowError, FastwinError, SpecError, StateError
from fastwin.local import Metrics, Result, Stream
from fastwin.planner import Plan, plan
from fastwin.spec import WindowSpec, key_by
from fastwin.windows import MAX_TIMESTAMP, MIN_TIMESTAMP, GlobalWindow, TimeWindow

__version__ = "0.1.0"

__all__ = [
    "MAX_TIMESTAMP",
    "MIN_TIMESTAMP",
    "Aggregate",
    "AggregateOverflowError",
    "BadRowError",
    "Count",
    "EventTimeSessionWindows",
    "FastwinError",
    "GlobalWindow",
    "Max",
    "Mean",
    "Metrics",
    "Min",
    "Plan",
    "Result",
    "SlidingEventTimeWindows",
    "SpecError",
    "StateError",
    "Stream",
    "Sum",
    "TimeWindow",
    "TumblingEventTimeWindows",
    "WindowAssigner",
    "WindowSpec",
    "batches",
    "duration",
    "key_by",
    "plan",
]
