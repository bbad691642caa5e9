"""Triggers: when a window fires, and when its contents are purged. Flink's names."""

from fastwin.triggers.combined import AfterWatermark, AllOf, AnyOf, after_watermark, all_of, any_of
from fastwin.triggers.delta import DeltaTrigger
from fastwin.triggers.nesting import ProcessingTimeoutTrigger, PurgingTrigger
from fastwin.triggers.plain import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountTrigger,
    EventTimeTrigger,
    NeverTrigger,
    ProcessingTimeTrigger,
)
from fastwin.triggers.result import TriggerResult
from fastwin.triggers.trigger import Trigger

__all__ = [
    "AfterWatermark",
    "AllOf",
    "AnyOf",
    "ContinuousEventTimeTrigger",
    "ContinuousProcessingTimeTrigger",
    "CountTrigger",
    "DeltaTrigger",
    "EventTimeTrigger",
    "NeverTrigger",
    "ProcessingTimeTrigger",
    "ProcessingTimeoutTrigger",
    "PurgingTrigger",
    "Trigger",
    "TriggerResult",
    "after_watermark",
    "all_of",
    "any_of",
]
