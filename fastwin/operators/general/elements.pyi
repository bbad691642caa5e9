from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastwin.columns.row import Rows
from fastwin.core.windows.timerservice import TimerService
from fastwin.core.windows.windowtable import WindowTable

class Elements:
    """What user code is handed of one general operator, and the errors that blame it."""

    table: WindowTable
    def __init__(self, timers: TimerService, codec: Any) -> None: ...
    def begin(self, rows: Rows | None) -> None: ...
    def known_keys(self, ids: NDArray[np.int32]) -> None: ...
    def key_and_window(self, slot: int) -> tuple[Any, Any]: ...
    def where(self, slot: int) -> str: ...
