"""Panes in RocksDB, an embedded LSM store: a record for each pane, ordered by key and time, read by range scans."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fastwin.errors import FastwinError, SpecError, StoreError
from fastwin.machine.packages import explained
from fastwin.spec.builder import SpecBuilder
from fastwin.store.cells import Cell, pack, unpack
from fastwin.store.layout import Layout
from fastwin.store.panestore import PaneStore
from fastwin.store.records import HISTORY, Block, Meta, Revision, Scan, Step, Written, new_identity
from fastwin.store.rocksfiles import (
    NOTHING,
    Held,
    Mark,
    Reader,
    keep_if_forked,
    let_go,
    mark_is_empty,
    open_writer,
    read_mark,
    write_mark,
)
from fastwin.store.rocksnames import BIAS, BLOCK, KEY, META, PANE, QUERY, START, block_key, pane_key, pane_prefix
from fastwin.store.rollup import rolled_up
from fastwin.store.spans import Span, earliest, latest
from fastwin.times import Duration

__all__ = ["RocksStore"]

_LOG = logging.getLogger(__name__)
_BLOCKS_AT_ONCE, _MERGED_BYTES, _CELLS_AT_ONCE = 1_000, 2**26, 100
_CATCH_UP_SECONDS = 0.2


class RocksStore(PaneStore, schemes=("rocksdb",)):
    """Panes in a folder. One process writes; any number read at the same time.

    Each ``put`` is one atomic write; the watermark moves in another. A reader follows the writer as a *secondary
    instance*, by its log.
    """

    one_writer = True

    def __init__(self, url: str, spec: SpecBuilder | None, retention: Duration | None, read_only: bool) -> None:
        super().__init__(spec, retention, read_only)
        try:
            import rocksdict
        except ImportError as problem:
            raise explained("rocksdb", "store", problem) from None
        path = url.partition(":")[2].removeprefix("//")
        if not path:
            raise SpecError("store: rocksdb:PATH needs a path")
        self._rocks: Any = rocksdict
        self._path = Path(path)
        self._shown = f"rocksdb:{path}"
        self._lock = threading.RLock()
        self._closed = False
        self._db: Any = None
        self._reader: Reader | None = None
        self._mark: Mark | None = None
        self._looked = 0.0
        if read_only:
            self._follow()
        else:
            self._open_writer()

    def _open_writer(self) -> None:
        self._db = open_writer(self._rocks, self._path)
        self._held = Held(self._path)
        try:
            stored = self._stored()
            if mark_is_empty(self._path) and stored["identity"]:
                write_mark(self._path, Mark(stored["identity"], stored["version"]))
                _LOG.warning("rocksdb: the mark of %s was empty, and is written anew", self._path)
            mark = read_mark(self._path)
            if mark is not None and mark.missing_from(stored):
                raise StoreError(self._behind(mark, stored))
            if "layout" in stored and not stored["identity"]:
                self._note_all_blocks(Layout.from_json(stored["layout"]))
        except BaseException:
            let_go(self._db, self._held)
            self._db = None
            raise

    def _behind(self, mark: Mark, stored: dict[str, Any]) -> str:
        return (
            f"rocksdb: {self._path} is damaged: its files go up to version {stored['version']}, and {mark.version} was "
            f"written; fill it anew, or put a copy in its place"
        )

    def close(self) -> None:
        with self._lock:
            self._closed = True
            if self._reader is not None:
                self._reader.drop()
                self._reader = None
            elif self._db is not None:
                let_go(self._db, self._held)
            self._db = None

    def __del__(self) -> None:
        if getattr(self, "_db", None) is not None and not self._read_only:  # a reader has nothing to wait for
            keep_if_forked(self._db, self._held)

    def _database(self) -> Any:
        """Returns the database; a reader's as it is now. Call with the lock."""
        if self._closed:
            raise StoreError(f"rocksdb: {self._path} was closed")
        if self._read_only:
            looked = self._reader is not None and self._reader.held.is_ours()
            if not looked or time.monotonic() - self._looked > _CATCH_UP_SECONDS:
                self._follow()
        elif not self._held.is_ours():
            raise StoreError(
                f"rocksdb: {self._path} was opened for writing in another process; write there, or read here with "
                f"read_only=True"
            )
        if self._db is None:
            self._open_writer()
        return self._db

    def _follow(self) -> None:
        """Brings a reader to what the writer's mark says; opens the folder anew where following does not."""
        mark, reader = read_mark(self._path), self._reader
        back = self._mark is not None and (mark is None or mark.version < self._mark.version)
        there = reader is not None and reader.held.is_ours() and reader.held.is_there() and not back
        if there and ((mark is not None and mark == self._mark) or self._caught_up(mark)):
            self._mark, self._looked = mark, time.monotonic()
            return
        if reader is not None:
            _LOG.info("rocksdb: %s was replaced, or went back, or cannot be followed, so it is opened anew", self._path)
            reader.drop()
            self._reader = self._db = None
        self._reader = Reader(self._rocks, self._path)
        self._db = self._reader.database
        self._looked = time.monotonic()
        stored = self._stored()
        if mark is not None and mark.missing_from(stored):
            self._looked = 0.0
            raise StoreError(self._behind(mark, stored))
        self._mark = mark

    def _caught_up(self, mark: Mark | None) -> bool:
        """Follows the writer's log; returns whether the reader has what the mark says then."""
        try:
            with self._reading():
                self._db.try_catch_up_with_primary()
            return mark is None or not mark.missing_from(self._stored())
        except StoreError as problem:
            _LOG.warning("rocksdb: a reader cannot follow its writer: %s", problem)
            return False

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Says what is wrong when RocksDB cannot read."""
        try:
            yield
        except FastwinError:
            raise
        except Exception as problem:
            raise StoreError(f"rocksdb: {self._path} cannot be read: {problem}") from problem

    def meta(self) -> Meta | None:
        with self._lock:
            self._database()
            found = self._stored()
        if "layout" not in found:
            return None
        layout = Layout.from_json(found["layout"])
        return Meta.of(
            layout,
            *(
                found[name]
                for name in ("watermark", "since", "complete_from", "version", "identity", "history", "lost")
            ),
        )

    def _get(self, name: Any) -> Any:
        with self._reading():
            return self._db.get(name)

    def _stored(self) -> dict[str, Any]:
        record = self._get(META)
        try:
            return NOTHING | ({} if record is None else json.loads(record))
        except (ValueError, TypeError) as problem:
            raise StoreError(f"rocksdb: {self._path} is damaged: its meta cannot be read: {problem}") from None

    def _store(self, batch: Any, **changes: Any) -> None:
        batch.put(META, json.dumps(self._stored() | changes).encode())

    def _commit(self, batch: Any, sync: bool = False) -> None:
        if not self._held.is_there():
            self.close()
            raise StoreError(
                f"rocksdb: {self._path} was deleted or replaced while it was open for writing; open it anew, and if it "
                f"was replaced, in another process"
            )
        options = self._rocks.WriteOptions()
        options.sync = sync
        try:
            self._db.write(batch, options)
        except Exception as problem:
            # Behind a failed write, as on a full disk, RocksDB takes no more; the next one opens it anew.
            database, self._db = self._db, None
            let_go(database, self._held)
            raise StoreError(f"rocksdb: {self._path} cannot be written: {problem}") from problem

    def new_epoch(self) -> int:
        with self._lock:
            self._database()
            batch = self._rocks.WriteBatch(raw_mode=True)
            epoch = max(time.time_ns() // 1_000_000, self._stored()["epoch"] + 1)
            self._store(batch, epoch=epoch)
            self._commit(batch)
            return epoch

    def batch_of(self, query: str) -> int | None:
        with self._lock:
            self._database()
            found = self._get(QUERY + query.encode())
        return None if found is None else int(found)

    def _create(self, layout: Layout) -> None:
        with self._lock:
            self._database()
            batch = self._rocks.WriteBatch(raw_mode=True)
            stored = self._stored()
            changes: dict[str, Any] = {"layout": layout.to_json()}
            if "layout" in stored and Layout.from_json(stored["layout"]).retention_ms < layout.retention_ms:
                # What the shorter retention has dropped does not come back.
                changes["complete_from"] = latest(stored["complete_from"], stored["since"])
            self._store(batch, **changes)
            self._commit(batch)

    def _write(self, layout: Layout, blocks: list[Block], revision: Revision, watermark: int) -> Written:
        with self._lock:
            batch = self._rocks.WriteBatch(raw_mode=True)
            names = [pane_key(block.key, 0, start) for block in blocks for start, _ in block.panes]
            self._database()
            known = iter(self._get(names))
            stored = outdated = 0
            changed: list[Block] = []
            ends: dict[str, int] = {}
            for block in blocks:
                taken: dict[int, list[Cell]] = {}
                for start, cells in block.panes:
                    record = next(known)
                    if record is not None and unpack(record)[0] > revision:
                        outdated += 1
                        continue
                    taken[start] = cells
                    batch.put(pane_key(block.key, 0, start), pack(revision, cells))
                    ends[block.key] = max(ends.get(block.key, start), start + layout.pane_ms)
                stored += len(taken)
                if taken:
                    changed.append(Block(block.key, block.start, list(taken.items())))
                    batch.put(block_key(block.start, block.key), b"")
            if layout.coarse_ms is not None:
                for block, cells in self._coarse(layout, changed, layout.coarse_ms):
                    batch.put(pane_key(block.key, 1, block.start), pack(revision, cells))
            for key, end in ends.items():
                last = self._get(KEY + key.encode())
                batch.put(KEY + key.encode(), START.pack(max(end + BIAS, 0 if last is None else START.unpack(last)[0])))
            self._commit(batch)
            return Written(stored, outdated)

    def _coarse(self, layout: Layout, blocks: list[Block], width: int) -> Iterator[tuple[Block, list[Cell]]]:
        """Yields blocks with the cells of their coarse panes, made of about 64 MB of fine ones at a time."""
        panes: list[dict[int, list[Cell]]] = []
        nbytes = 0
        for count, one in enumerate(blocks, 1):
            held = dict(self._range(one.key, Span(0, one.start, one.start + width))) | dict(one.panes)
            panes.append(held)
            nbytes += sum(len(cell) for cells in held.values() for cell in cells if cell)
            if nbytes >= _MERGED_BYTES or len(panes) == _BLOCKS_AT_ONCE or count == len(blocks):
                yield from zip(blocks[count - len(panes) : count], rolled_up(layout.fields, panes), strict=True)
                panes, nbytes = [], 0

    def _range(self, key: str, span: Span, iterator: Any = None) -> Iterator[tuple[int, list[Cell]]]:
        prefix = pane_prefix(key, span.level)
        last = prefix + START.pack(span.end + BIAS)
        for name, value in self._records(prefix + START.pack(span.start + BIAS), last, iterator):
            yield START.unpack_from(name, len(name) - 8)[0] - BIAS, unpack(value)[1]

    def _records(self, first: bytes, last: bytes, iterator: Any = None) -> Iterator[tuple[bytes, bytes]]:
        """Yields names and values in ``[first, last)``. Raises StoreError where RocksDB finds that one is damaged."""
        with self._reading():
            iterator = self._db.iter() if iterator is None else iterator
            iterator.seek(first)
            while iterator.valid() and (name := iterator.key()) < last:
                yield name, iterator.value()
                iterator.next()
            iterator.status()

    def _scan(self, layout: Layout, keys: Sequence[str], spans: Sequence[Span]) -> Scan:
        scan = Scan.empty(len(layout.fields))
        with self._lock:
            iterator = self._database().iter()  # one iterator, so one moment
        uncounted: list[Cell] = []
        for group, key in enumerate(keys):
            for span in spans:
                for start, cells in self._range(key, span, iterator):
                    scan.add(group, start, cells)
                    uncounted += cells
                    if len(uncounted) >= _CELLS_AT_ONCE:
                        scan.count(uncounted)
                        uncounted.clear()
        scan.count(uncounted)
        return scan

    def _key_texts(self) -> list[str]:
        with self._lock:
            iterator = self._database().iter()
        return [name[1:].decode() for name, _ in self._records(KEY, KEY + b"\xff", iterator)]

    def _texts_within(self, meta: Meta, start: int, end: int) -> list[str]:
        if not meta.identity:  # of before blocks were noted
            return self._key_texts()
        with self._lock:
            iterator = self._database().iter()
        first, last = (block_key(at, "") for at in (meta.layout.block.start_of(start), end))
        return sorted({name[len(first) :].decode() for name, _ in self._records(first, last, iterator)})

    def _known_texts(self, texts: Sequence[str]) -> set[str]:
        with self._lock:
            self._database()
            ends = self._get([KEY + text.encode() for text in texts])
        return {text for text, end in zip(texts, ends, strict=True) if end is not None}

    def _advance(self, layout: Layout | None, step: Step) -> bool:
        with self._lock:
            self._database()
            stored = self._stored()
            if stored["history"].endswith(step.stamp):
                return True  # this step once more
            oldest = earliest(stored["since"], step.first)
            batch = self._rocks.WriteBatch(raw_mode=True)
            if oldest is not None and step.floor is not None and oldest < step.floor:
                self._drop(batch, step.floor)
                oldest = step.floor
            if step.mark is not None:
                query, number = step.mark
                batch.put(QUERY + query.encode(), str(number).encode())
            mark = Mark(stored["identity"] or new_identity(), stored["version"] + 1)
            self._store(
                batch,
                watermark=latest(stored["watermark"], step.watermark),
                since=oldest,
                complete_from=latest(stored["complete_from"], step.complete_from),
                lost=stored["lost"] if step.lost is None else step.lost,
                identity=mark.identity,
                version=mark.version,
                history=" ".join([*stored["history"].split(), step.stamp][-HISTORY:]),
            )
            self._commit(batch, sync=True)
            try:
                write_mark(self._path, mark)
            except OSError as problem:
                raise StoreError(f"rocksdb: {self._path} cannot be written: {problem}") from problem
            return True

    def _drop(self, batch: Any, floor: int) -> None:
        """Removes the panes before ``floor``, of the keys that have any there."""
        end = BLOCK + START.pack(floor + BIAS)
        for key in dict.fromkeys(name[9:] for name, _ in self._records(BLOCK, end)):
            for level in (0, 1):
                prefix = pane_prefix(key.decode(), level)
                batch.delete_range(prefix + bytes(8), prefix + START.pack(floor + BIAS))
            last = self._get(KEY + key)
            if last is not None and START.unpack(last)[0] - BIAS <= floor:
                batch.delete(KEY + key)
        batch.delete_range(BLOCK, end)

    def _note_all_blocks(self, layout: Layout) -> None:
        """Notes which keys have panes in which block, for a store of before such notes were made."""
        batch = self._rocks.WriteBatch(raw_mode=True)
        for name, _ in self._records(PANE, PANE + b"\xff"):
            if name[-9] == 0:
                start = START.unpack_from(name, len(name) - 8)[0] - BIAS
                batch.put(block_key(layout.block.start_of(start), name[1:-10].decode()), b"")
        self._commit(batch)
