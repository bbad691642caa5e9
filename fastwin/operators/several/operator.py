"""The operator of several windows: one stream, one state, and for each window its own results."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.columns.keys import EncodedKeys
from fastwin.core.rows.rowstore import HEAD_CELLS
from fastwin.errors import StateError
from fastwin.operators.aligned.looking import Slices
from fastwin.operators.batch import Batch
from fastwin.operators.config import Config
from fastwin.operators.eventtime import WatermarkOperator
from fastwin.operators.heldwindows import HeldWindows, put_together
from fastwin.operators.partialrows import add_partial, partial_columns
from fastwin.operators.protocol import Counters, Fed
from fastwin.operators.several.feeding import fed_from, feeders, slicing_of
from fastwin.operators.several.level import FillingLevel, Level
from fastwin.state.chain import Chain
from fastwin.state.chunks import Chunk
from fastwin.state.narrow import column_of
from fastwin.state.reading import newest_of
from fastwin.state.refresh import Refresh, Round, in_round, round_bytes
from fastwin.state.rows import fed_meta, feed_behind
from fastwin.times import MIN_TIMESTAMP
from fastwin.windows.assigner import WindowAssigner

__all__ = ["SeveralOperator"]

_MARKS = ("mark_keys", "marks")
"""Tables that a chunk has where windows without elements are to be there; see FillingOperator."""


class SeveralOperator(WatermarkOperator):
    """Runs aligned windows of several kinds with the default trigger.

    config: of the whole. windows: by their names, which the results bear. longest_gaps_ms: of each, if its windows
    without elements are to be there. Elements go to the finest windows; what they have aggregated goes on to the
    coarser ones, see Level.
    """

    name: ClassVar[str] = "several"

    def __init__(
        self,
        config: Config,
        windows: tuple[tuple[str, WindowAssigner], ...],
        longest_gaps_ms: tuple[int, ...] | None = None,
    ) -> None:
        self._config = config
        self._keys = config.codec.new_table()
        accumulators = config.new_accumulators(HEAD_CELLS)
        self._accumulators = accumulators
        self._levels: list[Level] = []
        for i, (name, assigner) in enumerate(windows):
            slicing = slicing_of(assigner)
            assert slicing is not None
            own = replace(config, window=name)
            if longest_gaps_ms is None:
                level = Level(own, slicing, self._keys, accumulators)
            else:
                level = FillingLevel(own, slicing, longest_gaps_ms[i], self._keys, accumulators)
            self._levels.append(level)
        self._feeders = feeders(windows)
        for level, feeder, first in zip(self._levels, self._feeders, fed_from(windows, self._feeders), strict=True):
            level.fed_from = first
            if feeder is not None:
                self._levels[feeder].fed.append(level)
        self._roots = [self._levels[i] for i, feeder in enumerate(self._feeders) if feeder is None]
        self._order = _downward(self._roots)
        self._round: Round | None = None  # of repeating, while one is on
        self.chain = Chain()
        self.watermark = MIN_TIMESTAMP
        self.counters = Counters()

    def process(self, batch: Batch) -> Fed:
        """Adds elements to the slices of the finest windows, and where these are closed, to all."""
        self.counters.events += len(batch)
        batch = batch.numbered(self._accumulators.arrived)
        late = np.ones(len(batch), np.bool_)
        main = []
        for root in self._roots:
            fired, late_there = root.feed(batch)
            main += fired
            late &= late_there
        self._count()
        return Fed(main, late if late.any() else None)

    def merge(self, chunks: list[bytes]) -> tuple[list[pa.RecordBatch], int]:
        """Takes what a feeder has made of elements; see ``operators.partials``. There is one for one root alone."""
        (root,) = self._roots
        dropped = 0
        for columns in partial_columns(chunks, self._config, self._keys, self._accumulators, "start"):
            others = self._accumulators.new_rows()
            slots = add_partial(self._accumulators, others, columns)
            late = root.take(others, slots, columns["key"], columns["start"])
            self.counters.events += int(columns["elements"].sum())
            dropped += int(columns["elements"][late].sum())
        main = [rows for level in self._order for rows in level.fire_touched()]
        self._keys.sweep()
        self._count()
        return main, dropped

    @property
    def cleaned(self) -> int:
        """What was cleaned when the state was restored; see ``Operator``."""
        return self._levels[0].cleaned

    def advance_watermark(self, watermark: int) -> list[pa.RecordBatch]:
        """Fires the windows of each level, the finest first, in order of their ends."""
        main = []
        if watermark > self.watermark:
            for level in self._order:
                level.close(watermark)
                main += level.advance_watermark(watermark)
            self.watermark = watermark
            self._count()
        return main

    def _count(self) -> None:
        self.counters.fired = sum(level.counters.fired for level in self._levels)

    def next_timer(self) -> int | None:
        """Returns the next watermark at which a window fires or a slice goes or closes."""
        found = [timer for level in self._levels if (timer := level.next_timer()) is not None]
        return min(found, default=None)

    def open_windows(self) -> int:
        """Counts the (key, window) pairs of all levels; what has not come to a level yet is not in its count."""
        return sum(level.open_windows() for level in self._levels)

    def look(self, key: EncodedKeys | None = None) -> HeldWindows:
        """Returns the windows of all levels, with what is still in the finer ones."""
        found: list[HeldWindows] = []
        not_come: dict[int, list[Slices]] = {}
        for level in self._order:
            windows, held = level.look_with(key, not_come.get(id(level), []))
            found.append(windows)
            not_come |= {id(fed): held for fed in level.fed}
        self._keys.sweep()
        return put_together(found, [str(level.window) for level in self._order])

    @property
    def state_rows(self) -> int:
        """Rows of state: one for each (window's name, key, slice)."""
        return sum(level.state_rows for level in self._levels)

    @property
    def state_bytes(self) -> int:
        """Bytes allocated, for a round of repeating as well."""
        held = sum(level.state_bytes for level in self._levels) - (len(self._levels) - 1) * self._keys.nbytes
        return held + round_bytes(self._round)

    def place_rows(self, in_file: bool) -> int:
        return sum(level.place_rows(in_file) for level in self._levels)

    def changed(self) -> bool:
        return any(level.changed() for level in self._levels)

    def snapshot(self) -> bytes:
        """Returns all rows and the watermark."""
        self._round = None
        return self._write("snapshot", [level.saved_order(level.kinds()[0].slots()) for level in self._levels])

    def delta(self, refresh: Refresh | None = None) -> bytes:
        """Returns the rows changed since the last call and the watermark, which tells the rows that are gone."""
        if refresh is None:
            self._round = None
            return self._write("delta", [level.saved_order(level.kinds()[0].dirty_slots()) for level in self._levels])
        kinds = [level.kinds() for level in self._levels]
        self._round = in_round(self._round, refresh, self._keys, [rows for some in kinds for rows in some])
        found = self._round.take()
        slots, counts, beside, at = [], [], [], 0
        for level, some in zip(self._levels, kinds, strict=True):
            both = found.changed[at], found.unchanged[at]
            slots.append(np.concatenate([level.saved_order(held) for held in both]))
            counts.append(len(both[0]))
            beside.append(found.unchanged[at + 1 : at + len(some)])
            at += len(some)
        return self._write("delta", slots, refresh, counts, beside, refreshed=found.groups)

    def _write(
        self,
        kind: Literal["snapshot", "delta"],
        slots: list[NDArray[np.int32]],
        refresh: Refresh | None = None,
        changed: list[int] | None = None,
        unchanged: list[list[NDArray[np.int32]]] | None = None,
        **more: Any,
    ) -> bytes:
        keys, rows, parts, marks = [], [], [], []
        for i, (level, held) in enumerate(zip(self._levels, slots, strict=True)):
            tables, last = level.part(kind, held, unchanged[i] if unchanged else [])
            parts.append([tables["keys"].num_rows, len(held), last, len(held) if changed is None else changed[i]])
            if _MARKS[0] in tables:
                marks.append(tables)
                parts[-1] += [tables[name].num_rows for name in _MARKS]
            keys.append(tables["keys"])
            rows.append(tables["rows"])
        lasts = [part[2] for part in parts if part[2] is not None]
        saved = sum(len(held) for held in slots) + sum(tables["marks"].num_rows for tables in marks)
        more |= {"last_end": max(lasts, default=None), "rows": saved, "levels": parts}
        more |= fed_meta(self._accumulators)
        more |= {"cleaned": self._levels[0].cleaned_at, "feeders": self._feeders}
        more["fed_from"] = [level.fed_from for level in self._levels]
        blob = self._config.encode_state(
            kind,
            self.watermark,
            {"keys": pa.concat_tables(keys, promote_options="permissive"), "rows": pa.concat_tables(rows)}
            | {name: pa.concat_tables(tables[name] for tables in marks) for name in _MARKS if marks},
            newest=self.newest,
            chain=self.chain,
            complete=not self.state_rows,
            refresh=refresh,
            **more,
        )
        for level, held in zip(self._levels, slots, strict=True):
            level.saved(held)
        return blob

    def take_chunks(self, chunks: list[Chunk]) -> None:
        self._round = None
        self.newest = newest_of(chunks, self.newest)
        for chunk in chunks:
            self._check_feeders(chunk.meta["feeders"])
        of_levels = [self._split(chunk) for chunk in chunks]
        for level, parts in zip(self._levels, zip(*of_levels, strict=True), strict=True):
            _check_kept_back(level, parts)
            level.take_chunks(list(parts))
        self.watermark = max([self.watermark, *(level.watermark for level in self._levels)])
        feed_behind(self._accumulators, chunks)

    def _check_feeders(self, saved: list[int | None]) -> None:
        """Raises StateError where other windows fed each other: what they have handed on is told by that alone."""
        for level, before, now in zip(self._levels, saved, self._feeders, strict=True):
            if before != now:
                fed, feeds = ("elements" if i is None else repr(self._levels[i].window) for i in (before, now))
                raise StateError(f"state: its windows {level.window!r} were fed by {fed}, now by {feeds}")

    def _split(self, chunk: Chunk) -> list[Chunk]:
        """Returns what a chunk has of each level."""
        found = []
        at = dict.fromkeys(("keys", "rows", *_MARKS), 0)
        whole = dict(chunk.tables)
        for keys, rows, last, changed, *marks in chunk.meta["levels"]:
            tables = {}
            for name, n in zip(at, [keys, rows, *marks], strict=False):
                tables[name] = whole[name].slice(at[name], n)
                at[name] += n
            found.append(replace(chunk, meta={**chunk.meta, "last_end": last, "changed": changed}, tables=tables))
        return found

    def _check(self) -> None:
        for level in self._levels:
            level._check()
            assert level.watermark == self.watermark, "a level has another watermark"
        self._check_keys(rows for level in self._levels for rows in level.kinds())


def _downward(roots: list[Level]) -> list[Level]:
    """Returns all levels, each behind the one that feeds it."""
    order = list(roots)
    for level in order:
        order += level.fed
    return order


def _check_kept_back(level: Level, parts: Iterable[Chunk]) -> None:
    """Raises StateError for rows that an earlier version kept back until their slices close, and this one hands on."""
    for chunk in parts:
        starts = column_of(chunk.tables, "rows", "start")
        waits = (starts >= level.first_open(chunk.meta["watermark"])) & (starts < level.fed_from)
        if level.fed and "fed_from" not in chunk.meta and waits.any():
            raise StateError(
                f"state: an earlier version has kept rows of {level.window!r} back from before 1970, at "
                f"{starts[waits][0]} ms; go on with that version until their windows have fired"
            )
