"""Panes in Redis: hashes for some panes of a key in a row, so that any client can read them.

Names, with the hash tag in braces (in a store made by redis+cluster:// {NAMESPACE} for all); see ``redisnames``::

    {NAMESPACE:KEY}:3min:2024-01-01T00:00Z           a hash, the shelf of the panes from then on: N to the revision of
                                                     the N-th, a batch of the epoch @ or EPOCH.BATCH; N:FIELD to
                                                     a number in decimal text
    {NAMESPACE:KEY}:3min:2024-01-01T00:00Z:FIELD     a hash: N to a value that is longer than a number
    {NAMESPACE:KEY}:1h:2024-01-01T00:00Z             the same of coarse panes, without revisions
    {NAMESPACE:KEY}:1h:2024-01-01T00:00Z:FIELD       a string: Redis's own HyperLogLog of one of the widest panes
    {NAMESPACE}:meta                                 a hash: layout, names, watermark, since, version, identity ...
    {NAMESPACE}:keys                                 a sorted set: KEY by the end of its last pane
    {NAMESPACE}:block:2024-01-01T00:00Z              a set: the keys that have panes there
    {NAMESPACE}:blocks                               a sorted set: the starts of these blocks
    {NAMESPACE}:queries                              a hash: the last whole batch of each query of Spark
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import chain, product
from typing import Any

from fastwin.errors import StoreError, StoreUnavailableError
from fastwin.machine.packages import explained
from fastwin.spec.builder import SpecBuilder
from fastwin.store.cells import Cell
from fastwin.store.layout import Layout
from fastwin.store.panestore import PaneStore
from fastwin.store.records import HISTORY, Block, Meta, Revision, Scan, Step, Written, new_identity
from fastwin.store.redisblocks import Change, Found, coarse_cells, grouped
from fastwin.store.redisclock import ENTRIES, entry_of, first_kept, life_of
from fastwin.store.redisnames import Names, Places, Read, places_of
from fastwin.store.redisurl import SCHEMES, RedisUrl
from fastwin.store.spans import Span, latest
from fastwin.times import Duration

__all__ = ["RedisStore"]

_FIRST_BLOCKS, _PIPELINE = 50, 500
_ATTEMPTS = 100
_OLDEST_LAYOUT = 2
_ONE_SLOT, _BY_KEY = "one slot", "by key"
_FIRST_CELLS, _MOST_CELLS = 500, 20_000
_PORTION_BYTES, _GROWTH = 2**26, 8  # a state may be long, and nothing tells before it is here
_SETS_AT_ONCE, _MEMBERS_AT_ONCE = 20, 1_000
_MOST_BLOCKS = 10_000


class RedisStore(PaneStore, schemes=SCHEMES):
    """Panes in a Redis server, or another that speaks its protocol and its scripts. Any number of writers and readers.

    A block of panes of one key, with the coarse pane above it, is one atomic step. All writers have one watermark.
    """

    def __init__(self, url: str, spec: SpecBuilder | None, retention: Duration | None, read_only: bool) -> None:
        super().__init__(spec, retention, read_only)
        try:
            from fastwin.store.redisservers import connected
        except ImportError as problem:
            raise explained("redis", "redis", problem) from None
        where = RedisUrl.of(url)
        self._shown = where.shown
        self._servers = connected(where, read_only)
        self._client: Any = self._servers.client
        self._scripts, self._calls = self._servers.scripts, self._servers.told
        self._namespace = where.namespace
        self._names = Names(self._namespace, self._servers.one_slot)
        self.meta()

    def close(self) -> None:
        self._servers.close()

    def meta(self) -> Meta | None:
        with self._calls():
            found = self._client.hgetall(self._names.meta)
        if b"layout" not in found:
            return None
        names = (b"watermark", b"since", b"complete_from", b"version")
        now = time.time_ns() // 1_000_000
        try:
            watermark, since, complete, version = (int(found[name]) if name in found else None for name in names)
            identity, history, clock = (found.get(name, b"").decode() for name in (b"identity", b"history", b"clock"))
            kept = first_kept(clock, watermark, now)
        except ValueError as problem:
            raise StoreError(f"redis: {self._shown} has a damaged {self._names.meta}: {problem}") from None
        layout, lost = Layout.from_json(found[b"layout"]), bool(found.get(b"lost"))
        if layout.version < _OLDEST_LAYOUT:
            raise StoreError(
                f"redis: {self._shown} has panes of an earlier fastwin in this namespace, with a name for each field; "
                f"use another namespace and put the panes again, on Spark from a fresh checkpoint, and delete "
                f"{self._names.all}"
            )
        self._take_names(found.get(b"names"))
        complete = latest(complete, kept)
        return Meta.of(layout, watermark, since, complete, version or 0, identity, history, lost)

    def _take_names(self, told: bytes | None) -> None:
        """Goes by the names that the store was made with. Raises StoreError where they cannot be had here.

        told: which ones these are; None: the store does not tell, so that they are those of here.
        """
        one_slot = self._servers.one_slot if told is None else told == _ONE_SLOT.encode()
        if self._servers.one_slot and not one_slot:
            raise StoreError(
                f"redis: {self._shown} has a store in this namespace that redis:// has made, with names in several "
                f"slots; open it as redis://, or use another namespace and put the panes again"
            )
        if self._names.one_slot != one_slot:
            self._names = Names(self._namespace, one_slot)

    def batch_of(self, query: str) -> int | None:
        with self._calls():
            found = self._client.hget(self._names.queries, query)
        return None if found is None else int(found)

    def _process(self) -> str | None:
        with self._calls():
            return self._servers.process(self._names.meta)

    def new_epoch(self) -> int:
        with self._calls():
            return int(self._scripts["NEW_EPOCH"](keys=[self._names.meta], args=[time.time_ns() // 1_000_000]))

    def _create(self, layout: Layout) -> None:
        with self._calls():
            self._client.hsetnx(self._names.meta, "identity", new_identity())
            self._client.hsetnx(self._names.meta, "names", _ONE_SLOT if self._names.one_slot else _BY_KEY)
            self._take_names(self._client.hget(self._names.meta, "names"))
            if self._client.hsetnx(self._names.meta, "layout", layout.to_json()):
                return
            text = self._client.hget(self._names.meta, "layout")  # with another retention, or of another writer
            held = layout if text is None else Layout.from_json(text)
            held.check_same(layout)
            longer = "1" if held.retention_ms < layout.retention_ms else ""
            self._scripts["LAYOUT"](keys=[self._names.meta], args=[layout.to_json(), longer])

    def _write(self, layout: Layout, blocks: list[Block], revision: Revision, watermark: int) -> Written:
        written, places = Written(), places_of(layout)
        units = grouped(places, blocks)
        first, at_once = 0, min(_FIRST_BLOCKS, _PIPELINE)
        while first < len(units):
            some = units[first : first + at_once]
            first += len(some)
            with self._calls():
                for _ in range(_ATTEMPTS):
                    done, some, nbytes = self._write_some(places, some, revision)
                    written += done
                    if not some:
                        break
                else:
                    raise StoreUnavailableError(f"redis: {self._shown} has many writers of the same panes; try again")
            at_once = _next_portion(at_once, nbytes, _PIPELINE)
        return written

    def _write_some(self, places: Places, blocks: list[Block], revision: Revision) -> tuple[Written, list[Block], int]:
        """Writes blocks; returns what was done, those that others have changed meanwhile, and how many bytes were read.

        These are the long values that coarse panes are made of.
        """
        pipeline = self._servers.pipeline()
        asked = [Found.ask(pipeline, places, self._names.of_key(block.key), block) for block in blocks]
        answers, changes = iter(pipeline.execute()), []
        for block, wanted in zip(blocks, asked, strict=True):
            found = Found(places, self._names.of_key(block.key), self._shown)
            for one in wanted:
                found.add(one, next(answers))
            changes.append(Change(places, block, found, revision))
        nbytes = sum(change.found.nbytes for change in changes)
        outdated = sum(change.outdated for change in changes)
        changes = [change for change in changes if change.panes]
        ttl = life_of(places.layout)
        pipeline = self._servers.pipeline()
        for change, coarse in zip(changes, coarse_cells(places, changes, self._names, self._shown), strict=True):
            keys, args = change.call(self._names.of_key(change.block.key), coarse, ttl)
            self._scripts["WRITE"](keys=keys, args=args, client=pipeline)
        self._note_blocks(pipeline, places, changes, ttl)
        done = pipeline.execute()[: len(changes)] if changes else []
        stored = sum(len(change.panes) for change, whole in zip(changes, done, strict=True) if whole)
        again = [change for change, whole in zip(changes, done, strict=True) if not whole]
        return (
            Written(stored, outdated - sum(change.outdated for change in again)),
            [change.block for change in again],
            nbytes,
        )

    def _note_blocks(self, pipeline: Any, places: Places, changes: Sequence[Change], ttl: int) -> None:
        """Notes which blocks there are, and which keys have panes there: so what is too old is found without looking at
        all keys, or at all times."""
        keys: dict[int, list[str]] = {}
        ends: dict[str, int] = {}
        for change in changes:
            key = change.block.key
            keys.setdefault(change.block.start, []).append(key)
            end = max(start for start, _ in change.panes) + places.layout.pane_ms
            ends[key] = max(end, ends.get(key, end))
        if ends:
            pipeline.zadd(self._names.keys, ends, gt=True)
            pipeline.zadd(self._names.blocks, {str(start): start for start in keys})
            pipeline.pexpire(self._names.blocks, ttl)
        for start, some in keys.items():
            name = self._names.members(start)
            pipeline.sadd(name, *some)
            pipeline.pexpire(name, ttl)

    def _scan(self, layout: Layout, keys: Sequence[str], spans: Sequence[Span]) -> Scan:
        starts, reads = places_of(layout).reads(spans)
        width = len(layout.fields)
        scan = Scan.empty(width)
        cells = self._cells(keys, reads, scan)
        for group in range(len(keys)):
            for start, pane in zip(starts, _panes(reads, cells, len(starts), width), strict=True):
                if pane is not None:
                    scan.add(group, start, pane)
        return scan

    def _cells(self, keys: Sequence[str], reads: Sequence[Read], scan: Scan) -> Iterator[Cell]:
        """Yields what each read gives for each key, one cell after the other; asks for about 64 MB at a time.

        Raises TooManyBytesError where all of it is too many for the scan.
        """
        pipeline, waiting, most = self._servers.pipeline(), 0, _FIRST_CELLS
        for prefix, read in product(map(self._names.of_key, keys), reads):
            first = 0
            while first < len(read.asked):
                some = read.asked[first : first + most - waiting]
                if read.name is None:
                    pipeline.mget([prefix + name for name in some])
                else:
                    pipeline.hmget(prefix + read.name, some)
                first, waiting = first + len(some), waiting + len(some)
                if waiting == most:
                    before = scan.nbytes
                    yield from self._answers(pipeline, scan)
                    waiting, most = 0, _next_portion(most, scan.nbytes - before, _MOST_CELLS)
        if waiting:
            yield from self._answers(pipeline, scan)

    def _answers(self, pipeline: Any, scan: Scan) -> list[Cell]:
        """Returns the cells that a pipeline has asked for, counted."""
        with self._calls():
            cells = list(chain.from_iterable(pipeline.execute()))
        scan.count(cells)
        return cells

    def _key_texts(self) -> list[str]:
        with self._calls():
            return sorted(key.decode() for key in self._client.zrange(self._names.keys, 0, -1))

    def _texts_within(self, meta: Meta, start: int, end: int) -> list[str]:
        unit = places_of(meta.layout).unit
        blocks = unit.starts(unit.start_of(start), end)
        if len(blocks) > _MOST_BLOCKS:
            return self._key_texts()
        found: set[bytes] = set()
        waiting = [(self._names.members(at), 0) for at in blocks]
        with self._calls():
            while waiting:
                some, waiting = waiting[:_SETS_AT_ONCE], waiting[_SETS_AT_ONCE:]
                pipeline = self._servers.pipeline()
                for name, cursor in some:
                    pipeline.sscan(name, cursor, count=_MEMBERS_AT_ONCE)
                for (name, _), (cursor, members) in zip(some, pipeline.execute(), strict=True):
                    found.update(members)
                    waiting += [(name, cursor)] if cursor else []
        return sorted(key.decode() for key in found)

    def _known_texts(self, texts: Sequence[str]) -> set[str]:
        with self._calls():
            ends = self._client.zmscore(self._names.keys, list(texts))
        return {text for text, end in zip(texts, ends, strict=True) if end is not None}

    def _advance(self, layout: Layout | None, step: Step) -> bool:
        retention = None if layout is None else layout.retention_ms
        times = (step.watermark, step.first, retention, step.complete_from)
        args = ["" if time is None else time for time in times]
        args += [step.stamp, new_identity(), HISTORY, *(step.mark or ("", ""))]
        args += ["" if step.lost is None else str(int(step.lost)), step.identity, step.process or "", ENTRIES]
        args += ("", "") if layout is None else entry_of(layout, time.time_ns() // 1_000_000)
        args += ("", "") if layout is None else (layout.block.width_ms, layout.block.offset_ms)
        with self._calls():
            dropped = self._scripts["ADVANCE"](keys=[self._names.meta, self._names.queries], args=args)
            if dropped == b"other":
                return False
            if dropped is not None:
                assert layout is not None
                self._drop(layout, *map(int, dropped))
        return True

    def _drop(self, layout: Layout, start: int, floor: int) -> None:
        """Removes the panes before ``floor``, of the keys that have any there; ``start``: of the first one."""
        places = places_of(layout)
        unit, end = places.unit, places.unit.start_of(floor)
        blocks = {int(at) for at in self._client.zrange(self._names.blocks, "-inf", f"({end}", byscore=True)}
        # Of before blocks were noted: no more of them than live in the time that names do, which run out by themselves.
        blocks.update(unit.starts(unit.start_of(max(start, end - life_of(layout))), end))
        for at in sorted(blocks):
            members = self._names.members(at)
            names, parts = places.drops(at)
            pipeline = self._servers.pipeline()
            for key in self._client.sscan_iter(members, count=_PIPELINE):
                prefix = self._names.of_key(key.decode())
                pipeline.unlink(*(prefix + name for name in names))
                for name, fields in parts:
                    pipeline.hdel(prefix + name, *fields)
                if len(pipeline) >= _PIPELINE:
                    pipeline.execute()
            pipeline.unlink(members)
            pipeline.execute()
        self._client.zremrangebyscore(self._names.blocks, "-inf", f"({end}")
        self._client.zremrangebyscore(self._names.keys, "-inf", floor)


def _next_portion(count: int, nbytes: int, most: int) -> int:
    """Returns how many to ask for behind ``count`` that took ``nbytes``: of about 64 MB, and at most ``most``."""
    return max(1, min(_GROWTH * count, most, count * _PORTION_BYTES // max(nbytes, 1)))


def _panes(reads: Sequence[Read], cells: Iterator[Cell], panes: int, width: int) -> list[list[Cell] | None]:
    """Returns the panes of one key, of ``width`` cells each, from the next of ``cells``; None: a pane is not there."""
    found: list[list[Cell] | None] = [None] * panes
    for (number, field), cell in zip(chain.from_iterable(read.cells for read in reads), cells, strict=False):
        if cell is not None:
            pane = found[number]
            if pane is None:
                pane = found[number] = [None] * width
            pane[field] = cell
    return found
