"""The check of threshold and delta, which the delta trigger and the delta evictor have in common."""

from __future__ import annotations

from typing import Any

from fastwin.errors import SpecError

__all__ = ["check_delta"]


def check_delta(owner: str, threshold: Any, delta: Any) -> None:
    """Raises SpecError unless a threshold is a number, and a delta a callable."""
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or threshold != threshold:
        raise SpecError(f"{owner}: threshold must be a number, got {threshold!r}")
    if not callable(delta):
        raise SpecError(f"{owner}: delta must be a callable of two rows, got {delta!r}")
