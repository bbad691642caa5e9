from typing import final

import numpy as np
from numpy.typing import NDArray

from fastwin.core.timers.timerqueue import TimerQueue
from fastwin.core.windows.windowtable import WindowTable

@final
class TimerService:
    """Watermark, processing time and timers of one general operator."""

    table: WindowTable
    event_timers: TimerQueue
    processing_timers: TimerQueue
    forsaken: TimerQueue
    watermark: int
    clock: int
    lateness: int
    cleaned: int
    event_time: bool
    journal: list[tuple[int, int, int]] | None
    def __init__(self, table: WindowTable, lateness: int, event_time: bool) -> None: ...
    def next_time(self, event: bool) -> int | None: ...
    def has_timer(self, slot: int, time: int, kind: int) -> bool: ...
    def listed(self, event: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...
    def marks(self, slot: int) -> tuple[list[tuple[int, int]], int]: ...
    def unmarked(self) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int8]]: ...
    def restore_timer(self, slot: int, time: int, kind: int, alive: bool) -> None: ...
    def drop_marked(self, slots: NDArray[np.int32]) -> None: ...
    def restore_marked(self, slots: NDArray[np.int32], flags: NDArray[np.int64], at_end: bool = False) -> None: ...
