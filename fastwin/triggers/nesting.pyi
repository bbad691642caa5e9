from typing import Self

from fastwin.times import Duration
from fastwin.triggers.builtin import BuiltInTrigger
from fastwin.triggers.trigger import Trigger

__all__ = ["NestingTrigger", "ProcessingTimeoutTrigger", "PurgingTrigger"]

class NestingTrigger(BuiltInTrigger):
    """A trigger that asks others."""

class PurgingTrigger(NestingTrigger):
    """Purges the window whenever another trigger fires it."""

    trigger: Trigger
    def __init__(self, trigger: Trigger) -> None: ...
    @classmethod
    def of(cls, trigger: Trigger) -> Self: ...

class ProcessingTimeoutTrigger(NestingTrigger):
    """Fires as another trigger does, and when processing time has moved on by ``timeout`` since the first element."""

    trigger: Trigger
    timeout_ms: int
    reset_timer_on_new_record: bool
    should_clear_on_timeout: bool
    def __init__(
        self,
        trigger: Trigger,
        timeout_ms: int,
        reset_timer_on_new_record: bool = False,
        should_clear_on_timeout: bool = True,
    ) -> None: ...
    @classmethod
    def of(
        cls,
        trigger: Trigger,
        timeout: Duration,
        reset_timer_on_new_record: bool = False,
        should_clear_on_timeout: bool = True,
    ) -> Self: ...
