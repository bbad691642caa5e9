"""What the operators of event time windows have in common whose user code, if any, sees neither watermark nor timers:
how they run, save, and restore."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.core.accumulators.accumulator_set import AccumulatorSet
from fastwin.core.keys.keytable import KeyTable
from fastwin.core.panes.panetable import PaneTable
from fastwin.core.rows.rowstore import HEAD_CELLS, RowStore
from fastwin.errors import SpecError, StateError
from fastwin.machine.threads import ALONE, Threads
from fastwin.operators.batch import Batch
from fastwin.operators.config import Config
from fastwin.operators.lateness import Lateness
from fastwin.operators.protocol import Operator
from fastwin.state.chunks import Chunk
from fastwin.state.order import START_CELL, row_order
from fastwin.state.reading import newest_of, read_chunks
from fastwin.state.refresh import Refresh, Repeated, RepeatedRows, Round, in_round
from fastwin.state.rows import fed_meta, feed_behind, save_rows
from fastwin.times import MAX_TIMESTAMP, MIN_TIMESTAMP

__all__ = ["Beside", "EventTimeOperator", "PanesOperator", "WatermarkOperator"]


@dataclass(frozen=True)
class Beside:
    """What a chunk holds beside the rows of windows: tables, of how many rows, and the last end that they matter to."""

    tables: dict[str, pa.Table] = field(default_factory=dict)
    rows: int = 0
    last_end: int | None = None


class WatermarkOperator(Operator, Protocol):
    """What the operators of event time windows have in common that may fire ahead: nobody sees watermark or timers."""

    _config: Config
    _keys: KeyTable

    may_fire_ahead: ClassVar[bool] = True
    takes_whole: ClassVar[bool] = False
    absorbs: ClassVar[bool] = False
    """Whether there is ``absorb()``."""
    ends_touch: ClassVar[bool] = True
    """Whether an element at the end of a window may still belong to it, as in sessions."""

    watermark: int = MIN_TIMESTAMP
    newest: int = MIN_TIMESTAMP
    processing_time: int | None = None
    timers: int = 0

    @property
    def cleaned(self) -> int:
        """Int64 min: an operator of this kind restores no state, unless it says otherwise."""
        return MIN_TIMESTAMP

    def run(self, batch: Batch, each: Threads = ALONE) -> list[pa.RecordBatch]:
        """Takes all elements that there will ever be, and returns what fires until the end of time."""
        return [*self.process(batch).main, *self.advance_watermark(MAX_TIMESTAMP)]

    def absorb(self, other: WatermarkOperator) -> list[pa.RecordBatch]:
        """Takes the elements of another operator of the same spec, which came after its own; for neither a window that
        they are in has passed. Returns what ``fire_alone`` has let the other one fire, behind what was waiting here for
        windows before. Raises SpecError where ``absorbs`` says no."""
        raise SpecError(f"absorb: the {self.name} operator takes elements alone")

    def fire_alone(self, last: int, first: int) -> None:
        """Is told, before it is absorbed, of when others have elements: until ``last`` those that came before its own,
        from ``first`` on those that came after, ms. It may fire windows in between. The default fires none."""
        return

    def order_of(self, times: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Returns an order in which elements that come together are quicker to take, with the same results: int64[n],
        the place of each. None: there is none that pays. times: int64[n], ms."""
        return None

    def passes_windows(self, times: NDArray[np.int64]) -> bool:
        """Whether neighbours are of so many windows that to fire early and often pays. times: int64[n], ms."""
        return False

    def cuts(self, times: NDArray[np.int64], most: int) -> list[int]:
        """Returns where to cut elements so that at most ``most`` come together: the end of each piece but the last.

        times: int64[n], ms."""
        return list(range(most, len(times), most))

    def advance_processing_time(self, time: int, final: bool = False, before: bool = False) -> list[pa.RecordBatch]:
        """Returns nothing: no window waits for the clock."""
        return []

    def next_processing_timer(self) -> int | None:
        """Returns None: no window waits for the clock."""
        return None

    def take_side(self) -> dict[str, pa.RecordBatch]:
        """Returns nothing: only user code puts rows into side outputs."""
        return {}

    def place(self, in_file: bool) -> int:
        """Moves keys and rows to files or back to memory; returns their bytes in files."""
        return self._keys.place(in_file) + self.place_rows(in_file)

    def place_rows(self, in_file: bool) -> int:
        """Moves all but the keys; returns the bytes that are in files. Nothing else is known to move."""
        return 0

    def check_fresh(self, forget_watermark: bool) -> None:
        """Raises unless the operator may be restored so: SpecError if the watermark is to be forgotten, which tells
        which windows have fired, StateError if it has run already."""
        if forget_watermark:
            raise SpecError(f"restore: the {self.name} operator cannot forget the watermark")
        if self.counters.events or self.state_rows or self.watermark != MIN_TIMESTAMP:
            raise StateError("restore: the operator has run already")

    def changed(self) -> bool:
        """Whether there are changes that are not saved."""

    def take_chunks(self, chunks: list[Chunk]) -> None:
        """Takes chunks that go on from here."""

    def restore(self, chunks: list[bytes], forget_watermark: bool = False) -> None:
        """Takes the state of one snapshot and the deltas after it; raises StateError unless the operator is fresh."""
        self.check_fresh(forget_watermark)
        self._take(read_chunks(chunks, self._config, self.chain))

    def apply(self, chunks: list[bytes]) -> None:
        """Takes deltas of an operator that went on from this one's last chunk."""
        self.chain.check_saved(self.watermark, self.changed())
        self._take(read_chunks(chunks, self._config, self.chain, deltas=True))

    def _take(self, chunks: list[Chunk]) -> None:
        self.take_chunks(chunks)

    def _check_keys(self, kinds: Iterable[RepeatedRows]) -> None:
        """Raises AssertionError where a key has no row. kinds: all that the state is made of."""
        held = np.concatenate([rows.keys(rows.slots()) for rows in kinds])
        assert len(np.unique(held)) == len(self._keys), "a key has no row"


class EventTimeOperator(WatermarkOperator, Protocol):
    """What those of them have in common that keep their state in the rows of one store: how it is saved and taken."""

    _accumulators: AccumulatorSet
    _lateness: Lateness
    _round: Round | None = None  # of repeating, while one is on

    @property
    def cleaned(self) -> int:
        """What was cleaned when the state was restored; see ``Operator``."""
        return self._lateness.cleaned

    def _take(self, chunks: list[Chunk]) -> None:
        self._round = None
        self.take_chunks(chunks)
        feed_behind(self._accumulators, chunks)

    def _take_progress(self, chunks: list[Chunk]) -> bool:
        """Takes the last watermark of chunks, the newest time, and what was cleaned.

        This goes before their rows: what is gone by the last watermark need not come first. Returns whether the
        operator was fresh, so that what chunks repeat is not here yet.
        """
        fresh = not self.state_rows and self.watermark == MIN_TIMESTAMP
        self.watermark = max([self.watermark, *(chunk.meta["watermark"] for chunk in chunks)])
        self.newest = newest_of(chunks, self.newest)
        self._lateness.take(chunks)
        return fresh

    def _matters(self, chunk: Chunk) -> bool:
        """Whether rows of a chunk are part of a window that is not cleaned."""
        last: int | None = chunk.meta["last_end"]
        return last is not None and last - 1 > self._lateness.cleaned_at(self.watermark)

    @staticmethod
    def _unmark_repeated(live: NDArray[np.bool_], chunk: Chunk, fresh: bool) -> None:
        """Takes the mark from the rows that a chunk repeats, unless the operator was fresh: they are here already.

        live: bool[n], the marks of the chunk's rows; changed in place.
        """
        if not fresh:
            live[chunk.meta.get("changed", len(live)) :] = False

    @property
    def _rows(self) -> RowStore:
        """The rows of state."""

    def _tables(self, kind: Literal["snapshot", "delta"], slots: NDArray[np.int32]) -> dict[str, pa.Table]:
        """Returns what a chunk says of rows."""

    def _last_end(self, rows: pa.Table) -> int:
        """Returns the last end of a window that rows of a chunk, at least one, are part of."""

    def saved(self, slots: NDArray[np.int32]) -> None:
        """Takes rows as saved."""

    def kinds(self) -> list[RepeatedRows]:
        """Returns the rows of each kind, those of windows first."""
        return [self._rows]

    def _beside(self, kind: Literal["snapshot", "delta"], unchanged: list[NDArray[np.int32]]) -> Beside:
        """Returns what a chunk says of rows of other kinds. unchanged: slots of those that it repeats, of each kind."""
        return Beside()

    def snapshot(self) -> bytes:
        """Returns all rows and the watermark."""
        self._round = None
        return self._save("snapshot", self.saved_order(self._rows.slots()))

    def delta(self, refresh: Refresh | None = None) -> bytes:
        """Returns the rows changed since the last call and the watermark, which tells the rows that are gone."""
        if refresh is None:
            self._round = None
            return self._save("delta", self.saved_order(self._rows.dirty_slots()))
        found = self._repeated(refresh)
        changed, unchanged = self.saved_order(found.changed[0]), self.saved_order(found.unchanged[0])
        told = {"refreshed": found.groups, "changed": len(changed)}
        return self._save("delta", np.concatenate([changed, unchanged]), refresh, found.unchanged[1:], **told)

    def _repeated(self, refresh: Refresh) -> Repeated:
        """Returns which rows a delta writes."""
        self._round = in_round(self._round, refresh, self._keys, self.kinds())
        return self._round.take()

    def saved_order(self, slots: NDArray[np.int32]) -> NDArray[np.int32]:
        """Returns slots in the order in which their rows are saved."""
        return row_order(self._keys, self._rows, slots)

    def _fed(self) -> dict[str, int]:
        """Returns what a chunk says of the elements that have been fed."""
        return fed_meta(self._accumulators)

    def _save(
        self,
        kind: Literal["snapshot", "delta"],
        slots: NDArray[np.int32],
        refresh: Refresh | None = None,
        unchanged: list[NDArray[np.int32]] | None = None,
        **more: Any,
    ) -> bytes:
        beside = self._beside(kind, unchanged or [])
        tables = self._tables(kind, slots) | beside.tables
        ends = [self._last_end(tables["rows"])] if len(slots) else []
        more["last_end"] = max([*ends, *([] if beside.last_end is None else [beside.last_end])], default=None)
        more |= {"rows": len(slots) + beside.rows, "cleaned": self._lateness.cleaned_at(self.watermark)}
        more |= self._fed() | {"held": len(self._keys)}
        blob = self._config.encode_state(
            kind,
            self.watermark,
            tables,
            newest=self.newest,
            chain=self.chain,
            complete=not self.state_rows,
            refresh=refresh,
            **more,
        )
        self.saved(slots)
        return blob


class PanesOperator(EventTimeOperator, Protocol):
    """What those of them have in common whose rows are panes: a key and a time each."""

    _panes: PaneTable

    @property
    def state_rows(self) -> int:
        """Rows of state: one for each pane."""
        return len(self._panes)

    @property
    def _rows(self) -> RowStore:
        return self._panes.rows

    def place_rows(self, in_file: bool) -> int:
        return self._panes.place(in_file)

    def _tables(self, kind: Literal["snapshot", "delta"], slots: NDArray[np.int32]) -> dict[str, pa.Table]:
        rows, cells = self._panes.rows, {"start": START_CELL}
        return save_rows(self._config.codec, self._keys, self._accumulators, rows, slots, cells, HEAD_CELLS)

    def changed(self) -> bool:
        return len(self._panes.rows.dirty_slots()) > 0

    def saved(self, slots: NDArray[np.int32]) -> None:
        self._panes.rows.clear_dirty()
