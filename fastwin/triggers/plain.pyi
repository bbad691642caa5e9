from typing import Self

from fastwin.times import Duration
from fastwin.triggers.builtin import BuiltInTrigger

__all__ = [
    "ContinuousEventTimeTrigger",
    "ContinuousProcessingTimeTrigger",
    "CountTrigger",
    "EventTimeTrigger",
    "EveryElementTrigger",
    "NeverTrigger",
    "ProcessingTimeTrigger",
]

class _Fieldless(BuiltInTrigger):
    def __init__(self) -> None: ...
    @classmethod
    def create(cls) -> Self: ...

class EventTimeTrigger(_Fieldless):
    """Fires when the watermark passes the window's end, then for every late element."""

class ProcessingTimeTrigger(_Fieldless):
    """Fires when the processing time passes the window's end."""

class NeverTrigger(_Fieldless):
    """Never fires."""

class EveryElementTrigger(_Fieldless):
    """Fires for every element."""

class CountTrigger(BuiltInTrigger):
    """Fires when ``n`` elements have come since it fired last."""

    n: int
    def __init__(self, n: int) -> None: ...
    @classmethod
    def of(cls, n: int) -> Self: ...

class _Continuous(BuiltInTrigger):
    interval_ms: int
    def __init__(self, interval_ms: int) -> None: ...
    @classmethod
    def of(cls, interval: Duration) -> Self: ...

class ContinuousEventTimeTrigger(_Continuous):
    """Fires whenever the watermark passes a multiple of ``interval``, at the window's end, and for late elements."""

class ContinuousProcessingTimeTrigger(_Continuous):
    """Fires whenever the processing time passes a multiple of ``interval``, up to the window's end."""
