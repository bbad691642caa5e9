"""Panes in RocksDB, an embedded LSM store: a record for each pane, ordered by key and time, read by range scans.

Records: ``m`` the meta as JSON; ``k`` + key: the end of the key's last pane; ``p`` + key + NUL + level + start: a pane.
"""

from __future__ import annotations

import json
import shutil
import struct
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fastwin.errors import SpecError, StoreError
from fastwin.spec.builder import SpecBuilder
from fastwin.store.cells import Cell, from_cells, pack, to_cells, unpack
from fastwin.store.layout import Layout
from fastwin.store.merging import merge_windows
from fastwin.store.panestore import PaneStore
from fastwin.store.records import Block, Meta, Revision, Scan, Written
from fastwin.store.spans import Span
from fastwin.times import Duration

__all__ = ["RocksStore"]

_META, _KEY, _PANE = b"m", b"k", b"p"
_START = struct.Struct(">Q")
_BIAS = 1 << 63
_CATCH_UP_SECONDS = 0.2


def _pane_prefix(key: str, level: int) -> bytes:
    return _PANE + key.encode() + b"\0" + bytes([level])


def _pane_key(key: str, level: int, start: int) -> bytes:
    return _pane_prefix(key, level) + _START.pack(start + _BIAS)


class RocksStore(PaneStore, schemes=("rocksdb",)):
    """Panes in a folder. One process writes; any number read at the same time.

    A batch is one atomic write. A reader follows the writer as a *secondary instance*, by its log.
    """

    one_writer = True

    def __init__(self, url: str, spec: SpecBuilder | None, retention: Duration | None, read_only: bool) -> None:
        super().__init__(spec, retention, read_only)
        try:
            import rocksdict
        except ImportError:
            raise StoreError("rocksdb: needs the package rocksdict: pip install 'fastwin[store]'") from None
        path = url.removeprefix("rocksdb:").removeprefix("//")
        if not path:
            raise SpecError("store: rocksdb:PATH needs a path")
        self._rocks: Any = rocksdict
        self._path = Path(path)
        self._lock = threading.RLock()
        self._scratch: str | None = None
        self._caught_up = time.monotonic()
        self._db: Any = self._open_reader() if read_only else self._open_writer()

    def _open_writer(self) -> Any:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            options = self._rocks.Options(raw_mode=True)
            options.set_compression_type(self._rocks.DBCompressionType.lz4())
            options.set_keep_log_file_num(2)
            return self._rocks.Rdict(str(self._path), options)
        except Exception as problem:
            text = str(problem)
            if "lock" in text.lower():
                raise StoreError(
                    f"rocksdb: {self._path} is open for writing already, in this process or another; one writes at a "
                    f"time, and others open it with read_only=True"
                ) from problem
            raise StoreError(f"rocksdb: {self._path} cannot be opened: {text}") from problem

    def _open_reader(self) -> Any:
        if not (self._path / "CURRENT").exists():
            raise StoreError(f"rocksdb: there is no store at {self._path}")
        self._scratch = tempfile.mkdtemp(prefix="fastwin-reader-")
        try:
            access = self._rocks.AccessType.secondary(self._scratch)
            return self._rocks.Rdict(str(self._path), self._rocks.Options(raw_mode=True), access_type=access)
        except Exception as problem:
            shutil.rmtree(self._scratch, ignore_errors=True)
            raise StoreError(f"rocksdb: {self._path} cannot be read: {problem}") from problem

    def close(self) -> None:
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None
            if self._scratch is not None:
                shutil.rmtree(self._scratch, ignore_errors=True)

    def _database(self) -> Any:
        """Returns the database; a reader's as it is now. Call with the lock."""
        if self._db is None:
            raise StoreError(f"rocksdb: {self._path} was closed")
        if self._read_only and time.monotonic() - self._caught_up > _CATCH_UP_SECONDS:
            try:
                self._db.try_catch_up_with_primary()
            except Exception as problem:
                raise StoreError(f"rocksdb: {self._path} cannot be followed: {problem}") from problem
            self._caught_up = time.monotonic()
        return self._db

    def meta(self) -> Meta | None:
        with self._lock:
            found = self._stored()
        if "layout" not in found:
            return None
        return Meta(Layout.from_json(found["layout"]), found["watermark"], found["since"], found["version"])

    def _stored(self) -> dict[str, Any]:
        record = self._database().get(_META)
        return {"epoch": 0, "watermark": None, "since": None, "version": 0} if record is None else json.loads(record)

    def _store(self, batch: Any, **changes: Any) -> None:
        batch.put(_META, json.dumps(self._stored() | changes).encode())

    def _commit(self, batch: Any) -> None:
        try:
            self._db.write(batch)
        except Exception as problem:
            raise StoreError(f"rocksdb: {self._path} cannot be written: {problem}") from problem

    def new_epoch(self) -> int:
        with self._lock:
            batch = self._rocks.WriteBatch(raw_mode=True)
            epoch = max(time.time_ns() // 1_000_000, self._stored()["epoch"] + 1)
            self._store(batch, epoch=epoch)
            self._commit(batch)
            return epoch

    def _create(self, layout: Layout) -> None:
        with self._lock:
            batch = self._rocks.WriteBatch(raw_mode=True)
            self._store(batch, layout=layout.to_json())
            self._commit(batch)

    def _write(self, layout: Layout, blocks: list[Block], revision: Revision, watermark: int) -> Written:
        with self._lock:
            batch = self._rocks.WriteBatch(raw_mode=True)
            names = [_pane_key(block.key, 0, start) for block in blocks for start, _ in block.panes]
            known = iter(self._database().get(names))
            stored = outdated = 0
            changed: list[tuple[str, int, dict[int, list[Cell]]]] = []
            ends: dict[str, int] = {}
            for block in blocks:
                taken: dict[int, list[Cell]] = {}
                for start, cells in block.panes:
                    record = next(known)
                    if record is not None and unpack(record)[0] > revision:
                        outdated += 1
                        continue
                    taken[start] = cells
                    batch.put(_pane_key(block.key, 0, start), pack(revision, cells))
                    ends[block.key] = max(ends.get(block.key, start), start + layout.pane_ms)
                stored += len(taken)
                if taken:
                    changed.append((block.key, block.start, taken))
            if layout.coarse_ms is not None:
                for (key, start, _), cells in zip(changed, self._rolled_up(layout, changed), strict=True):
                    batch.put(_pane_key(key, 1, start), pack(revision, cells))
            for key, end in ends.items():
                last = self._db.get(_KEY + key.encode())
                batch.put(
                    _KEY + key.encode(), _START.pack(max(end + _BIAS, 0 if last is None else _START.unpack(last)[0]))
                )
            self._store(batch, version=self._stored()["version"] + 1)
            self._commit(batch)
            return Written(stored, outdated)

    def _rolled_up(
        self, layout: Layout, changed: Sequence[tuple[str, int, dict[int, list[Cell]]]]
    ) -> Iterator[list[Cell]]:
        """Yields the coarse pane of each block, made of the panes that are written now and those that are there."""
        assert layout.coarse_ms is not None
        scan = Scan.empty(len(layout.fields))
        for group, (key, start, taken) in enumerate(changed):
            found = dict(self._range(key, Span(0, start, start + layout.coarse_ms))) | taken
            for cells in found.values():
                scan.add(group, 0, cells)
        columns = [from_cells(cells, f.kind, f.name) for cells, f in zip(scan.cells, layout.fields, strict=True)]
        groups = np.array(scan.groups, dtype=np.int32)
        _, _, columns = merge_windows(layout.fields, groups, np.zeros(len(groups), np.int64), columns, (1, 1, 0))
        made = [to_cells(column) for column in columns]
        for row in range(len(changed)):
            yield [column[row] for column in made]

    def _range(self, key: str, span: Span, iterator: Any = None) -> Iterator[tuple[int, list[Cell]]]:
        prefix = _pane_prefix(key, span.level)
        last = prefix + _START.pack(span.end + _BIAS)
        iterator = self._database().iter() if iterator is None else iterator
        iterator.seek(prefix + _START.pack(span.start + _BIAS))
        while iterator.valid():
            name = iterator.key()
            if name >= last:
                break
            yield _START.unpack_from(name, len(name) - 8)[0] - _BIAS, unpack(iterator.value())[1]
            iterator.next()
        iterator.status()

    def _scan(self, layout: Layout, keys: Sequence[str], spans: Sequence[Span]) -> Scan:
        scan = Scan.empty(len(layout.fields))
        with self._lock:
            iterator = self._database().iter()  # one iterator, so one moment
        for group, key in enumerate(keys):
            for span in spans:
                for start, cells in self._range(key, span, iterator):
                    scan.add(group, start, cells)
        return scan

    def _key_texts(self) -> list[str]:
        texts = []
        with self._lock:
            iterator = self._database().iter()
        iterator.seek(_KEY)
        while iterator.valid() and iterator.key().startswith(_KEY):
            texts.append(iterator.key()[1:].decode())
            iterator.next()
        return texts

    def _advance(self, layout: Layout, watermark: int, since: int | None, floor: int) -> None:
        with self._lock:
            stored = self._stored()
            known = [at for at in (stored["since"], since) if at is not None]
            oldest = min(known) if known else None
            batch = self._rocks.WriteBatch(raw_mode=True)
            if oldest is not None and oldest < floor:
                for key in self._key_texts():
                    for level in (0, 1):
                        batch.delete_range(_pane_prefix(key, level) + bytes(8), _pane_key(key, level, floor))
                    (last,) = _START.unpack(self._db.get(_KEY + key.encode()))
                    if last - _BIAS <= floor:
                        batch.delete(_KEY + key.encode())
                oldest = floor
            reached = watermark if stored["watermark"] is None else max(watermark, stored["watermark"])
            self._store(batch, watermark=reached, since=oldest, version=stored["version"] + 1)
            self._commit(batch)
