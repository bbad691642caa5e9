"""DeltaTrigger: fires when an element is far from the one before. In Python, because it asks a Python function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from fastwin.functions.delta import check_delta
from fastwin.functions.descriptors import ValueStateDescriptor
from fastwin.triggers.result import TriggerResult
from fastwin.triggers.trigger import Trigger

__all__ = ["DeltaTrigger"]

_LAST = ValueStateDescriptor("last-element")


@dataclass(frozen=True)
class DeltaTrigger(Trigger):
    """Fires when an element is more than ``threshold`` away from the one that fired last (or the first).

    It cannot merge. Source: Flink's DeltaTrigger.
    """

    threshold: float
    delta: Callable[[Any, Any], float]

    def __post_init__(self) -> None:
        check_delta(type(self).__name__, self.threshold, self.delta)

    @classmethod
    def of(cls, threshold: float, delta: Callable[[Any, Any], float]) -> Self:
        """Returns a trigger for ``delta(last, element) > threshold``; delta: a callable of two rows."""
        return cls(threshold, delta)

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
        last = ctx.get_partitioned_state(_LAST)
        if last.value() is None:
            last.update(element)
        elif self.delta(last.value(), element) > self.threshold:
            last.update(element)
            return TriggerResult.FIRE
        return TriggerResult.CONTINUE

    def clear(self, window: Any, ctx: Any) -> None:
        ctx.get_partitioned_state(_LAST).clear()

    def __str__(self) -> str:
        return f"when an element differs by more than {self.threshold}"
