"""TriggerResult: what a trigger answers."""

from enum import Enum

__all__ = ["TriggerResult"]


class TriggerResult(Enum):
    """What a trigger answers. PURGE clears the contents of the window, and nothing else of it."""

    CONTINUE = 0
    FIRE = 1
    PURGE = 2
    FIRE_AND_PURGE = 3

    @property
    def is_fire(self) -> bool:
        """Whether the window's function runs."""
        return self in (TriggerResult.FIRE, TriggerResult.FIRE_AND_PURGE)

    @property
    def is_purge(self) -> bool:
        """Whether the contents of the window are cleared (after it has fired)."""
        return self in (TriggerResult.PURGE, TriggerResult.FIRE_AND_PURGE)
