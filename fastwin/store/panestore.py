"""PaneStore: panes in, windows out. What all kinds of stores share; each kind brings the reading and writing."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa

from fastwin.columns.buffers import from_values
from fastwin.columns.decoding import decoded_type
from fastwin.columns.tables import as_table
from fastwin.errors import SpecError, StoreError
from fastwin.spec.builder import SpecBuilder
from fastwin.store.cells import Cell, from_cells, to_cells
from fastwin.store.checks import check_on_grid, check_size, checked_revision, pane_starts
from fastwin.store.keytext import column_from_text, key_to_text, keys_to_text
from fastwin.store.layout import Layout
from fastwin.store.merging import merge_windows, outputs
from fastwin.store.records import Block, Meta, Revision, Scan, Written
from fastwin.store.spans import FIRST_MS, Span, cover
from fastwin.times import Duration, format_ms, to_ms

__all__ = ["PaneStore"]

_TIME = pa.timestamp("ms", tz="UTC")


class PaneStore(ABC):
    """Panes by key and time in a store of their own. Open one with ``PaneStore.open(url)``.

    A kind of store is a subclass that names the schemes of its URLs: ``class MyStore(PaneStore, schemes=("my",))``.
    Its first argument is the URL.
    """

    _kinds: ClassVar[dict[str, type[PaneStore]]] = {}  # by the scheme of the URL
    _shown = ""  # the store's address, without secrets
    one_writer: ClassVar[bool] = False
    """Whether one process alone may write; on Spark, the driver then does."""

    def __init_subclass__(cls, schemes: Sequence[str] = (), **options: Any) -> None:
        super().__init_subclass__(**options)
        PaneStore._kinds |= dict.fromkeys(schemes, cls)

    def __init__(self, spec: SpecBuilder | None, retention: Duration | None, read_only: bool) -> None:
        self._spec = spec
        self._retention_ms = None if retention is None else to_ms(retention, argument="retention")
        self._read_only = read_only
        self._epoch: int | None = None
        self._batch = 0
        self._seen = False

    @staticmethod
    def open(
        url: str, spec: SpecBuilder | None = None, *, retention: Duration | None = None, read_only: bool = False
    ) -> PaneStore:
        """Opens a pane store.

        url: ``rocksdb:PATH``, a folder that one process writes and any number read; or
            ``redis://[:PASSWORD@]HOST:PORT/DB?namespace=NAME`` (``rediss://`` for TLS); the namespace keeps stores
            in one server apart.
        spec: whose windows the store is for, or its panes' spec; needed by the first writer, checked against what is
            there.
        retention: how long before the watermark panes are kept; None: as the store has it, eight windows at first.
        read_only: for readers: never creates anything, and does not lock.

        Raises SpecError for a URL that is none, StoreError if the store cannot be reached or is locked.
        """
        if not isinstance(url, str):
            raise SpecError(f"store: the URL must be text such as 'rocksdb:PATH' or 'redis://localhost', got {url!r}")
        kind: Any = PaneStore._kinds.get(urlsplit(url).scheme)
        if kind is None:
            raise SpecError(f"store: the URL must begin with rocksdb: or redis://, got {url.split(':')[0]!r}")
        return kind(url, spec, retention, read_only)

    # --- what a kind of store brings ---

    @abstractmethod
    def meta(self) -> Meta | None:
        """Returns what the store knows of itself; None while nothing was ever put."""

    @abstractmethod
    def new_epoch(self) -> int:
        """Returns an epoch above all that this store has given."""

    @abstractmethod
    def close(self) -> None:
        """Lets go of the store."""

    @abstractmethod
    def _create(self, layout: Layout) -> None:
        """Makes the store hold this layout."""

    @abstractmethod
    def _write(self, layout: Layout, blocks: list[Block], revision: Revision, watermark: int) -> Written:
        """Sets the panes of blocks, and their coarse panes, as one atomic step for each block."""

    @abstractmethod
    def _scan(self, layout: Layout, keys: Sequence[str], spans: Sequence[Span]) -> Scan:
        """Reads the panes of keys."""

    @abstractmethod
    def _key_texts(self) -> list[str]:
        """Returns the known keys as text, in order."""

    @abstractmethod
    def _advance(self, layout: Layout, watermark: int, since: int | None, floor: int) -> None:
        """Moves the watermark forward, notes from where on there are panes, and drops those before ``floor``."""

    # --- writing ---

    def check_kept(self) -> None:
        """Warns if panes that this object has seen are gone from the store: it was emptied by somebody else."""
        if self._seen and self.meta() is None:
            self._seen = False
            warnings.warn(
                f"store: {self._shown} has lost all panes since the last batch; those that the stream still writes "
                f"come back, earlier ones do not",
                stacklevel=4,
            )

    def put(
        self, panes: Any, revision: Revision | None = None, *, advance: bool = True, watermark: int | None = None
    ) -> Written:
        """Sets panes: each replaces what its key had at that time, unless that has a higher revision.

        panes: results of ``spec.panes().run`` or of its stream: pyarrow, pandas or polars; needs ``window_start``, the
            key columns and the panes' aggregates.
        revision: ``(epoch, batch)``; None: an epoch of this store object, and its next batch.
        advance: whether the watermark follows to the end of the last pane; False where this is part of a batch, whose
            end ``advance_watermark`` tells. watermark: ms, where to instead.

        Putting the same again changes nothing. Panes older than retention are not written, and counted.
        Raises SpecError if columns do not suit, StoreError if the store cannot take them; then put the batch again.
        """
        if self._read_only:
            raise StoreError("put: this store was opened with read_only=True")
        table = as_table(panes)
        if revision is None:
            if self._epoch is None:
                self._epoch = self.new_epoch()
            revision = self._epoch, self._batch
            self._batch += 1
        revision = checked_revision(revision)
        meta = self._ensure(table.schema)
        layout = meta.layout
        starts = pane_starts(table, layout)
        if not len(starts):
            if watermark is not None and advance:
                self.advance_watermark(watermark)
            return Written()
        newest = int(starts.max()) + layout.pane_ms
        reached = max(meta.watermark or FIRST_MS, newest if watermark is None else watermark)
        floor = layout.block.start_of(reached - layout.retention_ms)
        blocks, expired = self._blocks(table, layout, starts, floor)
        written = self._write(layout, blocks, revision, reached) + Written(expired=expired)
        if advance:
            kept = starts[starts >= floor]
            self._advance(layout, reached, int(kept.min()) if len(kept) else None, floor)
        return written

    def advance_watermark(self, watermark: int, since: int | None = None) -> None:
        """Says that all panes that end by ``watermark``, ms, have been put; drops those older than retention.

        since: the start of the first pane of the batch, ms. A watermark below the current one is ignored.
        """
        meta = self.meta()
        if meta is None:
            raise StoreError("advance_watermark: the store holds no panes yet")
        reached = max(watermark, meta.watermark or FIRST_MS)
        floor = meta.layout.block.start_of(reached - meta.layout.retention_ms)
        self._advance(meta.layout, reached, since, floor)

    def _ensure(self, schema: pa.Schema) -> Meta:
        """Returns the store's meta, with the layout that the spec gives for panes of this schema."""
        meta = self.meta()
        if self._spec is not None:
            wanted = Layout.of(self._spec, schema, self._retention_ms)
            if meta is not None:
                meta.layout.check_same(wanted)
            if meta is None:
                self.check_kept()
            if meta is None or (self._retention_ms is not None and meta.layout != wanted):
                self._create(wanted)
                meta = self.meta()
        if meta is None:
            raise StoreError("put: the store is empty, so open it with the spec: PaneStore.open(url, spec)")
        return meta

    def _blocks(self, table: pa.Table, layout: Layout, starts: np.ndarray, floor: int) -> tuple[list[Block], int]:
        keys = keys_to_text([table[field.name] for field in layout.keys], table.num_rows)
        columns = []
        for field in layout.fields:
            try:
                columns.append(to_cells(table[field.name].cast(field.kind)))
            except (KeyError, pa.ArrowException) as problem:
                raise SpecError(f"put: column {field.name!r} must be {field.kind}: {problem}") from None
        blocks: dict[tuple[str, int], dict[int, list[Cell]]] = {}
        expired = 0
        block = layout.block
        for key, start, *cells in zip(keys, starts.tolist(), *columns, strict=True):
            at = block.start_of(start)
            if at < floor:
                expired += 1
            else:
                blocks.setdefault((key, at), {})[start] = cells  # of a pane fired twice in a batch, the last counts
        return [Block(key, at, list(panes.items())) for (key, at), panes in blocks.items()], expired

    # --- reading ---

    @property
    def layout(self) -> Layout:
        """What the store holds. Raises StoreError while it is empty."""
        return self._known().layout

    @property
    def watermark(self) -> int | None:
        """Up to where panes are complete, ms, exclusive; None: nowhere yet."""
        meta = self.meta()
        return None if meta is None else meta.watermark

    def _known(self) -> Meta:
        meta = self.meta()
        if meta is None:
            raise StoreError("the store holds no panes yet")
        return meta

    def keys(self) -> pa.Table:
        """Returns the keys that have panes: the key columns, in order of the keys' text."""
        layout = self.layout
        return pa.table(
            dict(zip((f.name for f in layout.keys), column_from_text(self._key_texts(), layout.keys), strict=True))
        )

    def query(
        self,
        keys: Sequence[Any] | None = None,
        start: int | None = None,
        end: int | None = None,
        *,
        coarse: bool = True,
    ) -> pa.Table:
        """Returns the aggregates over ``[start, end)`` for each key that has panes there.

        keys: values of the key column, tuples of several; None: all. end: ms, on the panes' grid; None: the watermark.
        start: ms; None: one window before the end. Columns: key columns, window_start, window_end, aggregates.
        coarse: whether a coarse pane is read where one fits: 43 panes for 24 h of 3 min and 1 h, instead of 480.

        Raises SpecError for bounds off the grid, out of order, or too far apart, StoreError for an empty store.
        """
        meta = self._known()
        layout = meta.layout
        end = meta.watermark if end is None else end
        if end is None:
            raise StoreError("query: the store has no watermark yet, so name the end")
        start = end - layout.window_ms if start is None else start
        for name, value in (("start", start), ("end", end)):
            check_on_grid(name, value, layout)
        if end <= start:
            raise SpecError(f"query: end must be after start, got start={start} end={end}")
        texts = self._texts(layout, keys)
        spans = list(cover(start, end, layout.coarse if coarse else None))
        check_size(layout, spans, len(texts))
        scan = self._scan(layout, texts, spans)
        groups, _, columns = _merged(layout, scan, (end - start, end - start, start))
        found = [texts[group] for group in groups.tolist()]
        return _table(layout, found, [start] * len(found), [end] * len(found), columns)

    def series(
        self,
        keys: Sequence[Any] | None = None,
        start: int | None = None,
        end: int | None = None,
        window: Duration | None = None,
        step: Duration | None = None,
    ) -> pa.Table:
        """Returns the aggregates of windows that end every ``step``: a chart.

        keys: as in ``query``. The windows end at ``start + step``, ``start + 2 step`` and so on to ``end``, and are
            ``window`` long. end: ms; None: the watermark. start: ms; None: one window before that. window: None: that
            of the spec. step: None: a pane.
        Each key has all windows: without panes a count is 0, others are null. Columns as of ``query``.

        Raises SpecError for what is off the panes' grid, out of order or too much, StoreError for an empty store.
        """
        meta = self._known()
        layout = meta.layout
        window_ms = layout.window_ms if window is None else to_ms(window, argument="window")
        step_ms = layout.pane_ms if step is None else to_ms(step, argument="step")
        for name, length in (("window", window_ms), ("step", step_ms)):
            if length < 1 or length % layout.pane_ms:
                raise SpecError(
                    f"series: {name} must be a multiple of a pane, {format_ms(layout.pane_ms)}, got {format_ms(length)}"
                )
        end = meta.watermark if end is None else end
        if end is None:
            raise StoreError("series: the store has no watermark yet, so name the end")
        start = end - layout.window_ms if start is None else start
        for name, value in (("start", start), ("end", end)):
            check_on_grid(name, value, layout)
        if end <= start or (end - start) % step_ms:
            raise SpecError(
                f"series: end must be one or more steps of {format_ms(step_ms)} after start, got start={start} "
                f"end={end}"
            )
        texts = self._texts(layout, keys)
        first = start + step_ms - window_ms
        coarse = layout.coarse
        fits = coarse is not None and not any(x % coarse.width_ms for x in (window_ms, step_ms, end - coarse.offset_ms))
        spans = [Span(1 if fits else 0, first, end)]
        check_size(layout, spans, len(texts))
        scan = self._scan(layout, texts, spans)
        groups, starts, columns = _merged(layout, scan, (window_ms, step_ms, first))
        points = (end - start) // step_ms
        at = (starts - first) // step_ms
        inside = (at >= 0) & (at < points)
        where = np.full(len(texts) * points, -1, dtype=np.int64)
        where[groups[inside] * np.int64(points) + at[inside]] = np.flatnonzero(inside)
        ends = np.tile(start + step_ms * np.arange(1, points + 1, dtype=np.int64), len(texts))
        taken = _take(columns, where, where >= 0)
        names = [text for text in texts for _ in range(points)]
        return _table(layout, names, ends - window_ms, ends, _filled(layout, taken))

    def _texts(self, layout: Layout, keys: Sequence[Any] | None) -> list[str]:
        if keys is None:
            return self._key_texts()
        if isinstance(keys, str | bytes):
            raise SpecError(f"keys: must be a list of keys, got {keys!r}")
        width = len(layout.keys)
        texts = []
        for key in keys:
            values = key if isinstance(key, tuple | list) and width != 1 else (key,)
            if isinstance(key, tuple | list) and width == 1 and len(key) == 1:
                values = tuple(key)
            if len(values) != width:
                raise SpecError(f"keys: {key!r} is no key of {', '.join(field.name for field in layout.keys)}")
            texts.append(key_to_text(values))
        return list(dict.fromkeys(texts))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _merged(layout: Layout, scan: Scan, window: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray, list[pa.Array]]:
    columns = [
        from_cells(cells, field.kind, field.name) for cells, field in zip(scan.cells, layout.fields, strict=True)
    ]
    groups = np.array(scan.groups, dtype=np.int32)
    times = np.array(scan.times, dtype=np.int64)
    counted = [output.fields[0] for output in layout.outputs if output.how == "estimate"]
    groups, starts, merged = merge_windows(layout.fields, groups, times, columns, window, counted)
    return groups, starts, outputs(layout, merged)


def _take(columns: Sequence[pa.Array], rows: np.ndarray, valid: np.ndarray) -> list[pa.Array]:
    indices = pa.array(rows, mask=~valid)
    return [column.take(indices) for column in columns]


def _filled(layout: Layout, columns: list[pa.Array]) -> list[pa.Array]:
    return [
        column.fill_null(0) if output.how in ("count", "estimate") else column
        for column, output in zip(columns, layout.outputs, strict=True)
    ]


def _table(layout: Layout, texts: list[str], starts: Any, ends: Any, columns: list[pa.Array]) -> pa.Table:
    bounds = [from_values(np.asarray(values, dtype=np.int64), None, _TIME) for values in (starts, ends)]
    fields = [
        *(pa.field(field.name, decoded_type(field.type)) for field in layout.keys),
        pa.field("window_start", _TIME),
        pa.field("window_end", _TIME),
        *(pa.field(output.name, layout.output_type(output)) for output in layout.outputs),
    ]
    return pa.Table.from_arrays([*column_from_text(texts, layout.keys), *bounds, *columns], schema=pa.schema(fields))
