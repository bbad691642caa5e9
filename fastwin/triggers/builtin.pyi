from typing import Any

from fastwin.triggers.trigger import Trigger, TriggerHost

__all__ = ["BuiltInTrigger", "has_fields", "reads_rows", "waits_for_clock"]

def has_fields(**docs: Any) -> tuple[type, list[Any]]: ...

class BuiltInTrigger(Trigger):
    """A trigger of this package."""

    __dataclass_fields__: dict[str, Any]
    __match_args__: tuple[str, ...]
    def __post_init__(self) -> None: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

class ContextHost(TriggerHost):
    """One window, known by its ctx."""

    def __init__(self, trigger: BuiltInTrigger) -> None: ...

def reads_rows(trigger: Trigger) -> bool: ...
def waits_for_clock(trigger: Trigger) -> bool: ...
