"""Recording: what happened to some elements, in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

__all__ = ["Arrived", "Fired", "Kind", "Moved", "Recording", "Timing"]

Kind = Literal["in time", "late", "in no window"]
Timing = Literal["on time", "early", "late", "deleted"]


class Arrived(NamedTuple):
    """An element. key: a tuple of the key columns. time_ms: its time. kind: what became of it."""

    key: tuple[Any, ...]
    time_ms: int
    kind: Kind = "in time"


class Moved(NamedTuple):
    """The watermark moved to ``watermark_ms``."""

    watermark_ms: int


class Fired(NamedTuple):
    """A result. start_ms, end_ms: of its window; None: it has no bounds. text: the values. timing: of the firing.

    name: of the window, where a spec has several.
    """

    key: tuple[Any, ...]
    start_ms: int | None
    end_ms: int | None
    text: str
    timing: Timing = "on time"
    name: str = ""


@dataclass(frozen=True, repr=False)
class Recording:
    """What happened to some elements.

    entries: in order. ordered: whether the order of the elements is known. Otherwise they are in one line.
    key_names: of the key columns. axis: what the horizontal axis is. zone: of its times.
    """

    entries: tuple[Arrived | Moved | Fired, ...]
    ordered: bool = True
    key_names: tuple[str, ...] = ()
    axis: str = "event time"
    zone: str = "UTC"
