"""PaneStore: panes in, windows out. What all kinds of stores share; each kind brings the reading and writing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import pyarrow as pa

from fastwin.columns.tables import as_table
from fastwin.errors import SpecError, StoreError, StoreUnavailableError
from fastwin.spec.builder import SpecBuilder
from fastwin.store.blocks import blocks_of
from fastwin.store.checks import (
    check_size,
    checked_bounds,
    checked_revision,
    checked_watermark,
    checked_widths,
    keys_at_once,
    pane_starts,
    with_checked_spec,
)
from fastwin.store.keytext import column_from_text, text_of, texts_of
from fastwin.store.layout import Layout
from fastwin.store.losses import Losses, check_unmoved, interrupted
from fastwin.store.notices import Notices
from fastwin.store.records import Block, Meta, Revision, Scan, Step, Written
from fastwin.store.spans import FIRST_MS, Span, cover, earliest, latest, span_of_windows
from fastwin.store.tables import in_portions, merged_scan, series_table, whole_window
from fastwin.times import Duration, Moment, to_ms

__all__ = ["PaneStore"]


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
        self._retention_ms = None if retention is None else to_ms(retention, argument="retention")
        self._spec = Layout.checked(spec, self._retention_ms)
        self._read_only = read_only
        self._epoch: int | None = None
        self._batch = 0
        self._last: Meta | None = None  # what the store said behind the last batch of this object
        self.server: str | None = None  # which process of the store's had the begin of this batch, where that is told
        self._begun = False
        self._changed: int | None = None  # the start of the first pane that was put since the last end of a batch
        self._reached: int | None = None  # and where the last one of them ends
        self._losses = Losses()
        self._notices = Notices()

    @staticmethod
    def open(
        url: str, spec: SpecBuilder | None = None, *, retention: Duration | None = None, read_only: bool = False
    ) -> PaneStore:
        """Opens a pane store.

        url: ``rocksdb:PATH``, a folder that one process writes and any number read; or
            ``redis://[:PASSWORD@]HOST:PORT/DB?namespace=NAME`` (``rediss://`` for TLS); the namespace keeps stores
            apart. ``redis+sentinel://HOST:PORT,HOST:PORT/SERVICE/DB``, ``redis+cluster://HOST:PORT,HOST:PORT``.
        spec: whose windows the store is for, or its panes' spec; needed by the first writer, checked against what is
            there.
        retention: how long before the watermark panes are kept; None: as the store has it, eight windows at first.
        read_only: for readers: never creates anything, and does not lock.

        Raises SpecError for a wrong URL or spec, NotInstalledError, StoreError for other panes or none in reach.
        """
        if not isinstance(url, str):
            raise SpecError(f"store: the URL must be text such as 'rocksdb:PATH' or 'redis://localhost', got {url!r}")
        kind: Any = PaneStore._kinds.get(url.partition(":")[0].lower())
        if kind is None:
            known = ", ".join(sorted(PaneStore._kinds))
            raise SpecError(f"store: the URL must begin with one of {known} and a colon, got {url.split(':')[0]!r}")
        return with_checked_spec(kind(url, spec, retention, read_only), spec)

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

    def _texts_within(self, meta: Meta, start: int, end: int) -> list[str]:
        """Returns the keys that have panes in ``[start, end)``, ms, as text, in order; maybe others that are known."""
        return self._key_texts()

    @abstractmethod
    def _known_texts(self, texts: Sequence[str]) -> set[str]:
        """Returns which of these keys, one or more, are known; reads no others."""

    @abstractmethod
    def _advance(self, layout: Layout | None, step: Step) -> bool:
        """Moves the meta at the end of a batch, and drops the panes before the step's floor. The same step may come
        twice. layout: None while the store has none; then the step has no times. Returns False, and moves nothing, if
        the store is no more the one, or the process, that the step names."""

    @abstractmethod
    def batch_of(self, query: str) -> int | None:
        """Returns the last batch that a query has put whole, by its name; None if the store knows of none."""

    def _process(self) -> str | None:
        """Returns what changes when the store starts again, and may have lost what it had not saved; None: never."""
        return None

    # --- writing ---

    def begin_batch(self) -> None:
        """Looks whether the store still has what this object has put into it. ``put`` does so by itself.

        Warns if all panes are gone: it was emptied by somebody else. Raises StoreError if it went back to an earlier
        version, as a server does that starts from an old dump; ``accept_loss`` goes on without what is missing.
        """
        self._begun, self._reached = False, None  # what an interrupted batch had put may be gone
        self.server = self._process()
        meta = self.meta()
        self._check_kept(meta)
        self._last = self._last or meta
        self._begun = True

    def _kept(self, meta: Meta | None) -> bool:
        """Returns whether a store that says ``meta`` has all that this object knows of."""
        return self._last is None or (meta is not None and meta.follows(self._last))

    def _check_kept(self, meta: Meta | None) -> None:
        last = self._last
        if last is None or self._kept(meta):
            return
        if meta is None or meta.identity != last.identity:
            self._last = None
            self._losses.emptied(last)
            self._notices.emptied(self._shown)
            return
        raise StoreError(
            f"store: {self._shown} went back from version {last.version} to {meta.version}, so panes are missing; put "
            f"the batches since then again into an empty store, or go on without them: accept_loss()"
        )

    def accept_loss(self) -> None:
        """Goes on with a store that has lost panes. ``since`` moves behind the next batch that moves the watermark."""
        self._losses.accept(self._last)
        self._last = None

    def put(
        self, panes: Any, revision: Revision | None = None, *, advance: bool = True, watermark: int | None = None
    ) -> Written:
        """Sets panes: each replaces what its key had at that time, unless that has a higher revision.

        panes: results of ``spec.panes().run`` or of its stream, in pyarrow, polars or pandas; needs ``window_start``,
            keys and aggregates. A ``window_end`` must be that of the pane.
        revision: ``(epoch, batch)``; None: an epoch of this store object, and its next batch.
        advance: whether the watermark follows to the end of the last pane, if there is one; False where this is part of
            a batch, whose end ``advance_watermark`` tells. watermark: ms, where to instead, such as the stream's;
            rounded down to a pane.

        Putting the same again changes nothing. Panes that are older than retention, or whose key is longer than 1,024
        bytes as text or not in UTF-8, are not written, and counted; a warning says so once, and of mended values.
        Raises SpecError if columns do not suit, StoreError if the store cannot take them, or has lost what this object
        had put; StoreUnavailableError if it cannot now: put the batch again.
        """
        if self._read_only:
            raise StoreError("put: this store was opened with read_only=True")
        table = as_table(panes)
        alone = not self._begun
        if alone:
            self.begin_batch()
        try:
            return self._put(table, revision, watermark, advance)
        except BaseException:
            self._begun = self._begun and not alone  # tried again, it is a batch of its own
            raise

    def _put(self, table: pa.Table, revision: Revision | None, watermark: int | None, advance: bool) -> Written:
        if revision is None:
            if self._epoch is None:
                self._epoch = self.new_epoch()
            revision = self._epoch, self._batch
            self._batch += 1
        revision = checked_revision(revision)
        meta = self._ensure(table)
        self._last, layout = self._last or meta, meta.layout
        starts = pane_starts(table, layout)
        end = latest(self._reached, starts.max() + layout.pane_ms if len(starts) else None)
        goal = checked_watermark(watermark, layout, end)
        reached = max(at for at in (meta.watermark, goal, FIRST_MS) if at is not None)
        floor = layout.block.start_of(reached - layout.retention_ms)
        blocks, told = blocks_of(table, layout, starts, floor)
        self._changed = earliest(self._changed, told.first)
        written = self._write(layout, blocks, revision, reached) + told
        self._reached = end
        if advance and (len(starts) or (watermark is not None and goal is not None)):
            self._end_batch(self.meta(), goal, written.first)
        elif advance and self._changed is None:  # there was nothing to put, so nothing of it can be lost
            self._begun = False
        self.warn_of(written)
        return written

    def warn_of(self, written: Written) -> None:
        """Warns of panes that were left out, once for each reason; ``put`` does so by itself."""
        self._notices.tell(self._shown, written, self.meta)

    def advance_watermark(
        self, watermark: int | None, since: int | None = None, *, mark: tuple[str, int] | None = None
    ) -> None:
        """Ends a batch: all panes that end by ``watermark``, ms, have been put. Drops those older than retention.

        since: the start of the first pane of the batch, ms; None: no other object has put any. A watermark below the
        current one is ignored, one within a pane is rounded down; one behind the year 9999, as at a stream's end, is
        the end of the last pane that this object has put. mark: the name of a query, and the number of its batch, for
        ``batch_of``; with it the watermark may be None. Raises as ``put``.
        """
        meta = self.meta()
        if meta is None and self._begun and self._last is not None:
            raise self._interrupted()
        if meta is None and (watermark is not None or mark is None):
            raise StoreError("advance_watermark: the store holds no panes yet")
        goal = None if meta is None or watermark is None else checked_watermark(watermark, meta.layout, self._reached)
        self._end_batch(meta, goal, since, mark)

    def _end_batch(
        self, meta: Meta | None, goal: int | None, first: int | None, mark: tuple[str, int] | None = None
    ) -> None:
        """Moves the meta, if all of the batch went to one store, and to one process of it."""
        if not (begun := self._begun):
            self._check_kept(meta)
        elif not self._kept(meta) or self._process() != self.server:
            raise self._interrupted()
        lateness = 0 if self._spec is None else self._spec.lateness_ms
        first_changed = earliest(first, self._changed)
        step = Step(goal, first, mark=mark, process=self.server if begun else None, changed=first_changed)
        step = self._losses.step(meta, step, lateness)
        moved = self._advance(None if meta is None else meta.layout, step)
        if not moved or (begun and self._process() != self.server):
            raise self._interrupted()
        self._begun, self._changed, self._reached = False, None, None
        now = self.meta()
        if now is not None and step.stamp in now.history:
            self._last = now
        self._losses.told()

    def _interrupted(self) -> StoreUnavailableError:
        """Returns what to raise for a batch of which a part may be gone. The next begin tells what else is."""
        self._begun = False
        return interrupted(self._shown)

    def _ensure(self, panes: pa.Table) -> Meta:
        """Returns the store's meta, with the layout that the spec gives for panes of this schema."""
        meta = self.meta()
        if self._spec is not None:
            held = None if meta is None else meta.layout
            wanted = Layout.of(self._spec, panes.schema, self._retention_ms, held)
            if meta is not None:
                meta.layout.check_same(wanted)
            if meta is None or (self._retention_ms is not None and meta.layout != wanted):
                pane_starts(panes, wanted)  # of panes that are refused, nothing stays
                self._create(wanted)
                meta = self.meta()
        if meta is None:
            raise StoreError("put: the store is empty, so open it with the spec: PaneStore.open(url, spec)")
        return meta

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
        fields = self.layout.keys
        return pa.table(dict(zip((f.name for f in fields), column_from_text(self._key_texts(), fields), strict=True)))

    def has(self, keys: Sequence[Any]) -> list[bool]:
        """Returns for each key, given as in ``query``, whether it has panes. Reads no others. Raises as ``query``."""
        fields = self.layout.keys
        texts = texts_of(keys, fields)
        known = self._known_texts(texts) if texts else set()
        return [text_of(key, fields) in known for key in keys]

    def query(
        self,
        keys: Sequence[Any] | None = None,
        start: Moment | None = None,
        end: Moment | None = None,
        *,
        coarse: bool = True,
    ) -> pa.Table:
        """Returns the aggregates over ``[start, end)`` for each key that has panes there.

        keys: values of the key column, tuples of several; None: all, in portions where they are many. end: on the
        panes' grid; None: the watermark. start: None: one window before the end. Both are ms, a datetime or such a
        text, in UTC where they name no zone. Columns: key columns, window_start, window_end, aggregates. coarse:
        whether a coarse pane is read where one fits: 43 panes for 24 h of 3 min and 1 h, instead of 480.

        Raises SpecError for bounds off the grid, out of order, or too far apart, and for too many keys that are named;
        StoreError for an empty store, StoreUnavailableError for one that drops what is asked for meanwhile.
        """
        meta = self._known()
        layout = meta.layout
        start, end = checked_bounds("query", meta, start, end)
        spans = list(cover(start, end, layout.coarse if coarse else None))

        def answer(texts: Sequence[str]) -> pa.Table:
            return whole_window(layout, texts, self._read(meta, texts, spans), start, end)

        if keys is not None:
            return answer(texts_of(keys, layout.keys))
        return in_portions(answer, self._texts_within(meta, start, end), keys_at_once(layout, spans))

    def series(
        self,
        keys: Sequence[Any] | None = None,
        start: Moment | None = None,
        end: Moment | None = None,
        window: Duration | None = None,
        step: Duration | None = None,
    ) -> pa.Table:
        """Returns the aggregates of windows that end every ``step``: a chart.

        keys: as in ``query``. The windows end at ``start + step``, ``start + 2 step`` and so on to ``end``, and are
            ``window`` long. start, end: as in ``query``. window: None: that of the spec. step: None: a pane.
        Each key has all windows, a key without panes too: without them, an aggregate is what it is over no value, such
        as 0, null or an empty list. Columns as of ``query``.

        Raises SpecError for what is off the panes' grid, out of order or too much; else as ``query``.
        """
        meta = self._known()
        layout = meta.layout
        window_ms, step_ms = checked_widths(layout, window, step)
        start, end = checked_bounds("series", meta, start, end, step_ms, window_ms)
        texts = self._key_texts() if keys is None else texts_of(keys, layout.keys)
        first = start + step_ms - window_ms
        scan = self._read(meta, texts, [span_of_windows(layout.coarse, window_ms, step_ms, first, end)])
        found = merged_scan(layout, scan, (window_ms, step_ms, first), (first, end - window_ms))
        return series_table(layout, texts, found, range(start + step_ms, end + 1, step_ms), window_ms)

    def _read(self, meta: Meta, texts: Sequence[str], spans: Sequence[Span]) -> Scan:
        """Reads panes of a store that said ``meta``. Raises MovedError if they do not belong to that any more."""
        check_size(meta.layout, spans, len(texts))
        scan = self._scan(meta.layout, texts, spans)
        check_unmoved(meta, self.meta(), spans[0].start, self._shown)
        return scan

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
