"""Calls to a store that is away for a while, made again until a deadline."""

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from fastwin.errors import StoreUnavailableError

__all__ = ["patiently"]

_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 2.0

_Result = TypeVar("_Result")
_log = logging.getLogger("spark_glue.sinks")


def patiently(call: Callable[[], _Result], seconds: float) -> _Result:
    """Returns what ``call`` returns; makes it again, for so long, while it raises StoreUnavailableError.

    The time is counted from the first failure: what went well before may have taken long. Raises that error
    when the time is over, and any other one at once.
    """
    end: float | None = None
    pause = _FIRST_PAUSE_SECONDS
    while True:
        try:
            return call()
        except StoreUnavailableError as problem:
            now = time.monotonic()
            end = now + seconds if end is None else end
            if now + pause > end:
                raise StoreUnavailableError(f"{problem}; it was tried for {seconds:g} s") from problem
            _log.warning("%s; trying again", problem)
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
