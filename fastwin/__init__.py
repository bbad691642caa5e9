"""fastwin: Flink's windows for Python and Spark, on a core at the speed of C."""

from fastwin import batches, duration, hyperloglog
from fastwin.aggregates import (
    Aggregate,
    ArgMax,
    ArgMin,
    Count,
    First,
    HyperLogLog,
    Last,
    Max,
    Mean,
    Min,
    StdDev,
    Sum,
    Variance,
)
from fastwin.assigners import (
    CumulativeEventTimeWindows,
    CumulativeProcessingTimeWindows,
    GlobalWindows,
    MergingWindowAssigner,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WindowAssigner,
)
from fastwin.combinators import ProcessingTimeoutTrigger, PurgingTrigger, after_watermark, all_of, any_of
from fastwin.errors import (
    AggregateOverflowError,
    BadRowError,
    FastwinError,
    SketchError,
    SpecError,
    StateError,
    StoreError,
    UserFunctionError,
)
from fastwin.evictors import CountEvictor, DeltaEvictor, Evictor, TimeEvictor
from fastwin.functions import AggregateFunction, ProcessWindowFunction, ReduceFunction
from fastwin.local import Stream
from fastwin.numpyaggregates import NumpyAggregate
from fastwin.planner import Plan, plan
from fastwin.results import Metrics, Result
from fastwin.rowview import Row
from fastwin.sessionwindows import (
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
)
from fastwin.spec import WindowSpec, key_by
from fastwin.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from fastwin.triggers import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountTrigger,
    DeltaTrigger,
    EventTimeTrigger,
    NeverTrigger,
    ProcessingTimeTrigger,
    Trigger,
    TriggerResult,
)
from fastwin.windows import MAX_TIMESTAMP, MIN_TIMESTAMP, GlobalWindow, TimeWindow

__version__ = "0.1.0"

__all__ = [
    "MAX_TIMESTAMP",
    "MIN_TIMESTAMP",
    "Aggregate",
    "AggregateFunction",
    "AggregateOverflowError",
    "AggregatingStateDescriptor",
    "ArgMax",
    "ArgMin",
    "BadRowError",
    "ContinuousEventTimeTrigger",
    "ContinuousProcessingTimeTrigger",
    "Count",
    "CountEvictor",
    "CountTrigger",
    "CumulativeEventTimeWindows",
    "CumulativeProcessingTimeWindows",
    "DeltaEvictor",
    "DeltaTrigger",
    "DynamicEventTimeSessionWindows",
    "DynamicProcessingTimeSessionWindows",
    "EventTimeSessionWindows",
    "EventTimeTrigger",
    "Evictor",
    "FastwinError",
    "First",
    "GlobalWindow",
    "GlobalWindows",
    "HyperLogLog",
    "Last",
    "ListStateDescriptor",
    "MapStateDescriptor",
    "Max",
    "Mean",
    "MergingWindowAssigner",
    "Metrics",
    "Min",
    "NeverTrigger",
    "NumpyAggregate",
    "Plan",
    "ProcessWindowFunction",
    "ProcessingTimeSessionWindows",
    "ProcessingTimeTrigger",
    "ProcessingTimeoutTrigger",
    "PurgingTrigger",
    "ReduceFunction",
    "ReducingStateDescriptor",
    "Result",
    "Row",
    "SketchError",
    "SlidingEventTimeWindows",
    "SlidingProcessingTimeWindows",
    "SpecError",
    "StateError",
    "StdDev",
    "StoreError",
    "Stream",
    "Sum",
    "TimeEvictor",
    "TimeWindow",
    "Trigger",
    "TriggerResult",
    "TumblingEventTimeWindows",
    "TumblingProcessingTimeWindows",
    "UserFunctionError",
    "ValueStateDescriptor",
    "Variance",
    "WindowAssigner",
    "WindowSpec",
    "after_watermark",
    "all_of",
    "any_of",
    "batches",
    "duration",
    "hyperloglog",
    "key_by",
    "plan",
]
