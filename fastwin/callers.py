"""The line that a warning is of: the nearest one that is neither fastwin's nor spark_glue's."""

from __future__ import annotations

import sys
from types import FrameType

__all__ = ["callers_level"]

_OWN = ("fastwin", "spark_glue")


def callers_level() -> int:
    """Returns the stacklevel, for who calls this, of the nearest line outside of fastwin and spark_glue.

    Takes one step for each frame until there.
    """
    frame: FrameType | None = sys._getframe(1)
    level = 1
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _OWN:
        frame, level = frame.f_back, level + 1
    return level
