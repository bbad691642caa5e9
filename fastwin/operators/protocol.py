"""Operator: what those who run windows may ask of any operator, so that none of them knows which one it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.columns.keys import EncodedKeys
from fastwin.machine.threads import ALONE, Threads
from fastwin.operators.batch import Batch
from fastwin.operators.heldwindows import HeldWindows
from fastwin.state.chain import Chain
from fastwin.state.refresh import Refresh

__all__ = ["Counters", "Fed", "Operator"]


@dataclass
class Counters:
    """What has happened to elements and windows since the operator was made."""

    events: int = 0
    num_late_records_dropped: int = 0
    unassigned: int = 0
    fired: int = 0
    unfired: int = 0


@dataclass
class Fed:
    """What came of one ``process`` call: result rows, and the elements that were late (bool[n]; None: none)."""

    main: list[pa.RecordBatch] = field(default_factory=list)
    late: NDArray[np.bool_] | None = None


class Operator(Protocol):
    """What all operators offer to those who run them."""

    name: ClassVar[str]
    may_fire_ahead: ClassVar[bool]
    """Whether nobody can tell when in a bounded input a window fires, or on which thread: user code, if there is any,
    sees neither watermark nor timers."""
    takes_whole: ClassVar[bool]
    """Whether ``run()`` is quicker than ``process()`` and a last ``advance_watermark()``."""

    counters: Counters
    chain: Chain
    """Where the operator stands in its chain of chunks."""
    watermark: int
    """The watermark, ms; int64 min for none yet."""
    newest: int
    """The newest time of an element, ms, where the runner keeps it; part of the state. Int64 min: not known."""
    timers: int
    """How many timers triggers and windows have registered; those that follow from the watermark do not count."""

    @property
    def cleaned(self) -> int:
        """The last millisecond of the latest window that had been cleaned when the state was restored: a longer allowed
        lateness brings none back. Int64 min: none was."""

    @property
    def processing_time(self) -> int | None:
        """The clock of processing time, ms; None where nothing waits for it."""

    def process(self, batch: Batch) -> Fed:
        """Takes elements in order."""

    def merge(self, chunks: list[bytes]) -> tuple[list[pa.RecordBatch], int]:
        """Takes what feeders have made of elements; see ``operators.partials``.

        Returns the results of windows that have passed and fire again, and how many elements were late. Raises
        SpecError where rows themselves are needed.
        """

    def run(self, batch: Batch, each: Threads = ALONE) -> list[pa.RecordBatch]:
        """Takes all elements that there will ever be, and returns what fires until the end of time.

        For an operator that has taken none before. each: the threads that take part.
        """

    def advance_watermark(self, watermark: int) -> list[pa.RecordBatch]:
        """Fires and cleans what is due; a watermark that does not advance is ignored."""

    def advance_processing_time(self, time: int, final: bool = False, before: bool = False) -> list[pa.RecordBatch]:
        """Sets the clock, and fires and cleans what is due.

        final: timers are run for the last time. before: those at ``time`` itself wait.
        """

    def next_timer(self) -> int | None:
        """Returns a watermark, ms, below which nothing fires and no state goes; None: nothing is waiting."""

    def next_processing_timer(self) -> int | None:
        """Returns the time of the first timer of processing time, ms; None: there is none."""

    def take_side(self) -> dict[str, pa.RecordBatch]:
        """Returns what user code has put into side outputs since the last call, by tag."""

    def snapshot(self) -> bytes:
        """Returns all state as one chunk."""

    def delta(self, refresh: Refresh | None = None) -> bytes:
        """Returns the state changed since the last snapshot() or delta() as one chunk.

        Its meta holds ``rows``, how many there are, and ``last_end``, the last end of a window that they are part of
        (null: there is none; missing: not known). With ``refresh``, unchanged rows are repeated, and ``refreshed`` says
        of how many groups.
        """

    def apply(self, chunks: list[bytes]) -> None:
        """Takes the deltas of an operator that went on from this one's last chunk.

        A fresh operator takes the chunks of a log, of which the first ones may be gone if they are not needed any more.
        ``state.chain`` says when they are not. Raises StateError for all else, and after changes that are not saved.
        """

    def restore(self, chunks: list[bytes], forget_watermark: bool = False) -> None:
        """Puts a fresh operator into the state of one snapshot and the deltas after it.

        forget_watermark: starts without a watermark, as Flink does. Raises SpecError where the state means nothing
        without it.
        """

    def open_windows(self) -> int:
        """Counts (key, window) pairs that have contents."""

    def look(self, key: EncodedKeys | None = None) -> HeldWindows:
        """Returns what is known of windows, of one key or of all. Nothing fires, and no user code runs. O(rows)."""

    @property
    def state_rows(self) -> int:
        """Rows of state held."""

    @property
    def state_bytes(self) -> int:
        """Bytes allocated for state."""

    def place(self, in_file: bool) -> int:
        """Moves what is large of the state to files or back to memory, see ``core.memory.regions``.

        Returns its bytes in files. O(state) where it moves.
        """

    def _check(self) -> None:
        """Raises AssertionError where an invariant does not hold."""
