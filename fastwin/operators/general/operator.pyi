from typing import Any, ClassVar

import pyarrow as pa

from fastwin.columns.keys import EncodedKeys
from fastwin.core.windows.timerservice import TimerService
from fastwin.core.windows.windowtable import WindowTable
from fastwin.machine.threads import Threads
from fastwin.operators.batch import Batch
from fastwin.operators.config import Config
from fastwin.operators.general.assigners import AssignerNode
from fastwin.operators.general.config import Program
from fastwin.operators.general.contents import Contents
from fastwin.operators.general.elements import Elements
from fastwin.operators.general.repeating import GeneralRound
from fastwin.operators.general.userstate import UserState
from fastwin.operators.general.windows import OpenWindows
from fastwin.operators.heldwindows import HeldWindows
from fastwin.operators.protocol import Counters, Fed
from fastwin.state.chain import Chain
from fastwin.state.refresh import Refresh
from fastwin.triggers.trigger import Trigger

class GeneralOperator:
    """Runs any window. Implements the Operator protocol."""

    name: ClassVar[str]
    may_fire_ahead: ClassVar[bool]
    takes_whole: ClassVar[bool]
    config: Config
    program: Program
    counters: Counters
    chain: Chain
    round: GeneralRound | None
    timer_service: TimerService
    elements: Elements
    state: UserState
    windows: OpenWindows
    table: WindowTable
    assigner: AssignerNode
    trigger: Trigger
    contents: Contents
    firing: Any
    watermark: int
    cleaned: int
    newest: int
    processing_time: int
    timers: int
    def __init__(self, config: Config, program: Program) -> None: ...
    def process(self, batch: Batch) -> Fed: ...
    def merge(self, chunks: list[bytes]) -> tuple[list[pa.RecordBatch], int]: ...
    def run(self, batch: Batch, each: Threads = ...) -> list[pa.RecordBatch]: ...
    def advance_watermark(self, watermark: int) -> list[pa.RecordBatch]: ...
    def advance_processing_time(self, time: int, final: bool = False, before: bool = False) -> list[pa.RecordBatch]: ...
    def next_timer(self) -> int | None: ...
    def next_processing_timer(self) -> int | None: ...
    def open_windows(self) -> int: ...
    def look(self, key: EncodedKeys | None = None) -> HeldWindows: ...
    @property
    def state_rows(self) -> int: ...
    @property
    def state_bytes(self) -> int: ...
    def place(self, in_file: bool) -> int: ...
    def take_side(self) -> dict[str, pa.RecordBatch]: ...
    def snapshot(self) -> bytes: ...
    def delta(self, refresh: Refresh | None = None) -> bytes: ...
    def apply(self, chunks: list[bytes]) -> None: ...
    def restore(self, chunks: list[bytes], forget_watermark: bool = False) -> None: ...
    def _check(self) -> None: ...
