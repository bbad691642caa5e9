"""Waiting for what other processes do."""

import time
from collections.abc import Callable
from typing import Any

__all__ = ["until"]


def until(condition: Callable[[], Any], what: str = "it does not come", seconds: float = 40) -> Any:
    """Waits until a condition holds, and returns what it gives; raises AssertionError with ``what`` if it does not."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, what
        time.sleep(0.05)
    return found
