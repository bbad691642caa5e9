from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastwin.core.timerqueue import TimerQueue
from fastwin.core.windowtable import WindowTable
from fastwin.rowview import Rows

class Keeper:
    """Windows, timers, clocks and state of one general operator."""

    table: WindowTable
    event_timers: TimerQueue
    processing_timers: TimerQueue
    watermark: int
    clock: int
    lateness: int
    event_time: bool
    contents: list[Any]
    states: list[Any]
    key_states: dict[int, dict[str, Any]]
    dirty_keys: set[int]
    journal: list[tuple[int, int, int]] | None
    def __init__(self, table: WindowTable, codec: Any, lateness: int, event_time: bool) -> None: ...
    def begin(self, rows: Rows | None) -> None: ...
    def known_keys(self, ids: NDArray[np.int32]) -> None: ...

class WindowStates:
    """The user state of one window at a time."""

    def __init__(self, keeper: Keeper) -> None: ...

class KeyStates:
    """The user state of one key at a time."""

    def __init__(self, keeper: Keeper) -> None: ...
