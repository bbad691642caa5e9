"""fastwin: Flink's windows for Python and Spark, on a core at the speed of C."""

from typing import Any

from fastwin import hyperloglog
from fastwin.aggregates.aggregate import Aggregate
from fastwin.aggregates.bits import BitAnd, BitOr, BitXor, BoolAnd, BoolOr
from fastwin.aggregates.distinct import CountDistinct, HyperLogLog
from fastwin.aggregates.extremes import Max, Min
from fastwin.aggregates.frequent import Mode, TopK
from fastwin.aggregates.histogram import Histogram
from fastwin.aggregates.lists import Collect, CollectSet, Largest, Smallest, StringAgg
from fastwin.aggregates.numbers import Count, Mean, Sum
from fastwin.aggregates.numpyaggregate import NumpyAggregate
from fastwin.aggregates.picks import ArgMax, ArgMin, First, FirstArrived, Last, LastArrived
from fastwin.aggregates.quantiles import Median, Quantile
from fastwin.aggregates.statistics import Corr, Covar, Kurtosis, Skewness, StdDev, Variance
from fastwin.columns.row import Row
from fastwin.errors import (
    AggregateOverflowError,
    BadRowError,
    FastwinError,
    NotInstalledError,
    SketchError,
    SourceError,
    SpecError,
    StateError,
    StoreError,
    StoreUnavailableError,
    UserFunctionError,
    did_you_mean,
)
from fastwin.functions.aggregate import AggregateFunction
from fastwin.functions.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from fastwin.functions.evictors import CountEvictor, DeltaEvictor, Evictor, TimeEvictor
from fastwin.functions.named import named
from fastwin.functions.process import ProcessWindowFunction
from fastwin.functions.reduce import ReduceFunction
from fastwin.run.join import JoinSpec, co_group, window_join
from fastwin.run.joinstream import JoinStream
from fastwin.run.planner import Plan, plan
from fastwin.run.results import Metrics, Result
from fastwin.run.stream import Stream
from fastwin.run.why.report import WhyReport, WhyWindow
from fastwin.run.windowspec import WindowSpec, key_by
from fastwin.timeline.timeline import Timeline
from fastwin.times import MAX_TIMESTAMP, MIN_TIMESTAMP
from fastwin.triggers import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountTrigger,
    DeltaTrigger,
    EventTimeTrigger,
    NeverTrigger,
    ProcessingTimeoutTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
    Trigger,
    TriggerResult,
    after_watermark,
    all_of,
    any_of,
)
from fastwin.windows.assigner import MergingWindowAssigner, WindowAssigner
from fastwin.windows.calendar import CalendarEventTimeWindows
from fastwin.windows.cumulative import CumulativeEventTimeWindows, CumulativeProcessingTimeWindows
from fastwin.windows.global_windows import GlobalWindows
from fastwin.windows.session import (
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
)
from fastwin.windows.sliding import SlidingEventTimeWindows, SlidingProcessingTimeWindows
from fastwin.windows.timewindow import GlobalWindow, TimeWindow
from fastwin.windows.tumbling import TumblingEventTimeWindows, TumblingProcessingTimeWindows

__version__ = "0.1.0"

# What others call it, for those who guess.
_ELSEWHERE = {
    "ApproxCountDistinct": "HyperLogLog",
    "ApproxQuantile": "Quantile",
    "ArrayAgg": "Collect",
    "Average": "Mean",
    "Avg": "Mean",
    "CollectList": "Collect",
    "Correlation": "Corr",
    "Covariance": "Covar",
    "CumulateWindows": "CumulativeEventTimeWindows",
    "Every": "BoolAnd",
    "FirstValue": "FirstArrived",
    "GroupConcat": "StringAgg",
    "HopWindows": "SlidingEventTimeWindows",
    "LastValue": "LastArrived",
    "ListAgg": "StringAgg",
    "Percentile": "Quantile",
    "SessionWindows": "EventTimeSessionWindows",
    "SlidingWindows": "SlidingEventTimeWindows",
    "Std": "StdDev",
    "TumblingWindows": "TumblingEventTimeWindows",
    "Var": "Variance",
    "keyBy": "key_by",
}


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module 'fastwin' has no attribute {name!r}")
    told = f"; did you mean {_ELSEWHERE[name]}?" if name in _ELSEWHERE else did_you_mean(name, __all__)
    raise AttributeError(f"module 'fastwin' has no attribute {name!r}{told}")


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
    "BitAnd",
    "BitOr",
    "BitXor",
    "BoolAnd",
    "BoolOr",
    "CalendarEventTimeWindows",
    "Collect",
    "CollectSet",
    "ContinuousEventTimeTrigger",
    "ContinuousProcessingTimeTrigger",
    "Corr",
    "Count",
    "CountDistinct",
    "CountEvictor",
    "CountTrigger",
    "Covar",
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
    "FirstArrived",
    "GlobalWindow",
    "GlobalWindows",
    "Histogram",
    "HyperLogLog",
    "JoinSpec",
    "JoinStream",
    "Kurtosis",
    "Largest",
    "Last",
    "LastArrived",
    "ListStateDescriptor",
    "MapStateDescriptor",
    "Max",
    "Mean",
    "Median",
    "MergingWindowAssigner",
    "Metrics",
    "Min",
    "Mode",
    "NeverTrigger",
    "NotInstalledError",
    "NumpyAggregate",
    "Plan",
    "ProcessWindowFunction",
    "ProcessingTimeSessionWindows",
    "ProcessingTimeTrigger",
    "ProcessingTimeoutTrigger",
    "PurgingTrigger",
    "Quantile",
    "ReduceFunction",
    "ReducingStateDescriptor",
    "Result",
    "Row",
    "SketchError",
    "Skewness",
    "SlidingEventTimeWindows",
    "SlidingProcessingTimeWindows",
    "Smallest",
    "SourceError",
    "SpecError",
    "StateError",
    "StdDev",
    "StoreError",
    "StoreUnavailableError",
    "Stream",
    "StringAgg",
    "Sum",
    "TimeEvictor",
    "TimeWindow",
    "Timeline",
    "TopK",
    "Trigger",
    "TriggerResult",
    "TumblingEventTimeWindows",
    "TumblingProcessingTimeWindows",
    "UserFunctionError",
    "ValueStateDescriptor",
    "Variance",
    "WhyReport",
    "WhyWindow",
    "WindowAssigner",
    "WindowSpec",
    "after_watermark",
    "all_of",
    "any_of",
    "co_group",
    "hyperloglog",
    "key_by",
    "named",
    "plan",
    "window_join",
]
