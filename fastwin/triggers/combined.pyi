from collections.abc import Iterable

from fastwin.triggers.nesting import NestingTrigger
from fastwin.triggers.trigger import Trigger

__all__ = ["AfterWatermark", "AllOf", "AnyOf", "after_watermark", "all_of", "any_of"]

class _Parted(NestingTrigger): ...

class _Several(_Parted):
    triggers: tuple[Trigger, ...]
    def __init__(self, triggers: Iterable[Trigger]) -> None: ...

class AnyOf(_Several):
    """Fires when any of its triggers does; each keeps its own count and timers."""

class AllOf(_Several):
    """Fires when each of its triggers has fired since it fired last."""

class AfterWatermark(_Parted):
    """Fires at the window's end, with triggers of their own before and after it."""

    early: Trigger | None
    late: Trigger | None
    def __init__(self, early: Trigger | None = None, late: Trigger | None = None) -> None: ...

def any_of(*triggers: Trigger) -> AnyOf: ...
def all_of(*triggers: Trigger) -> AllOf: ...
def after_watermark(*, early: Trigger | None = None, late: Trigger | None = None) -> AfterWatermark: ...
