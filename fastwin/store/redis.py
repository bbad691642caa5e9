"""Panes in Redis: a string for each field of a pane, so that any client can read them; ranges are keys made of times.

Names, with the hash tag in braces, so that all of a key sits in one slot of a cluster::

    {NAMESPACE:KEY}:3min:2024-01-01T00:03Z:FIELD     a pane's field: a decimal number, or Redis's own HyperLogLog
    {NAMESPACE:KEY}:1h:2024-01-01T00:00Z:FIELD       the same of a coarse pane
    {NAMESPACE:KEY}:revisions:2024-01-01T00:00Z      a hash, pane start to EPOCH.BATCH
    {NAMESPACE}:meta                                 a hash: layout, watermark, since, version, epoch
    {NAMESPACE}:keys                                 a sorted set: KEY by the end of its last pane
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import pyarrow as pa

from fastwin.errors import AggregateOverflowError, SpecError, StoreError
from fastwin.spec.builder import SpecBuilder
from fastwin.store import redisscripts
from fastwin.store.cells import Cell
from fastwin.store.layout import Field, Layout
from fastwin.store.panestore import PaneStore
from fastwin.store.records import Block, Meta, Revision, Scan, Written
from fastwin.store.spans import Level, Span, time_text
from fastwin.times import Duration, format_ms

__all__ = ["RedisStore"]

_NAMESPACE = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_TIMEOUT_SECONDS = 10.0
_CONNECT_SECONDS = 5.0
_PIPELINE = 500
_READ_KEYS = 20_000


class RedisStore(PaneStore, schemes=("redis", "rediss", "unix")):
    """Panes in a Redis server, or another that speaks its protocol and its scripts. Any number of writers and readers.

    A block of panes of one key, with the coarse pane above it, is one atomic step.
    """

    def __init__(self, url: str, spec: SpecBuilder | None, retention: Duration | None, read_only: bool) -> None:
        super().__init__(spec, retention, read_only)
        try:
            import redis
            from redis.backoff import ExponentialBackoff
            from redis.retry import Retry
        except ImportError:
            raise StoreError("redis: needs the package redis: pip install 'fastwin[redis]'") from None
        self._redis: Any = redis
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query))
        self._namespace = options.pop("namespace", "fastwin")
        if not _NAMESPACE.fullmatch(self._namespace):
            raise SpecError(
                f"store: namespace must be 1 to 64 letters, digits, '_', '.' or '-', got {self._namespace!r}"
            )
        self._timeout = float(options.setdefault("socket_timeout", str(_TIMEOUT_SECONDS)))
        options.setdefault("socket_connect_timeout", str(_CONNECT_SECONDS))
        self._shown = f"{parts.scheme}://{parts.hostname or 'localhost'}:{parts.port or 6379}{parts.path}"
        try:
            # A lost connection is tried again, as every step may be repeated; one that does not answer is not.
            retry = Retry(ExponentialBackoff(cap=0.5, base=0.1), 2, supported_errors=(redis.ConnectionError,))
            self._client: Any = redis.Redis.from_url(urlunsplit(parts._replace(query=urlencode(options))), retry=retry)
        except (ValueError, TypeError) as problem:
            raise SpecError(f"store: {self._shown} with its options is no URL for Redis: {problem}") from None
        self._scripts = {
            name: self._client.register_script(getattr(redisscripts, name))
            for name in ("WRITE", "ADVANCE", "NEW_EPOCH")
        }
        with self._calls():
            self._client.ping()

    def close(self) -> None:
        self._client.close()

    @contextmanager
    def _calls(self) -> Iterator[None]:
        """Says what is wrong when Redis does not do as it is told."""
        try:
            yield
        except self._redis.RedisError as problem:
            raise self._explained(problem) from problem

    def _explained(self, problem: Exception) -> Exception:
        errors, text = self._redis.exceptions, str(problem)
        if isinstance(problem, errors.AuthenticationError | errors.NoPermissionError) or text.startswith(
            ("WRONGPASS", "NOAUTH", "NOPERM", "invalid username-password")
        ):
            return StoreError(f"redis: {self._shown} refuses the user or password of the URL: {text}")
        if isinstance(problem, errors.TimeoutError):
            return StoreError(f"redis: {self._shown} did not answer within {self._timeout:g} s")
        if isinstance(problem, errors.BusyLoadingError):
            return StoreError(f"redis: {self._shown} is still loading its data; try again")
        if isinstance(problem, errors.ConnectionError):
            return StoreError(f"redis: {self._shown} is out of reach: {text}")
        if isinstance(problem, errors.OutOfMemoryError) or "OOM" in text.split(":")[0]:
            return StoreError(
                f"redis: {self._shown} is out of memory (maxmemory), so this batch is not stored, or in part; make "
                f"room and put it again"
            )
        if redisscripts.FOREIGN in text or text.startswith("WRONGTYPE"):
            name = text.split(redisscripts.FOREIGN)[-1].strip()
            return StoreError(
                f"redis: {self._shown} has a foreign value under a name of ours, which stays as it is: {name}; delete "
                f"it, or use another namespace"
            )
        if redisscripts.OVERFLOW in text:
            return AggregateOverflowError(f"store: a sum of panes lies outside int64: {text.split()[-1]}")
        return StoreError(f"redis: {self._shown} refuses: {text}")

    def _own(self, what: str) -> str:
        return f"{{{self._namespace}}}:{what}"

    def _of_key(self, key: str) -> str:
        return f"{{{self._namespace}:{key}}}"

    @staticmethod
    def _panes(level: Level, start: int, end: int) -> list[str]:
        """Returns the middle of the names of panes: the width and the start."""
        label = format_ms(level.width_ms).replace(" ", "")
        return [f":{label}:{time_text(at)}:" for at in level.starts(start, end)]

    def meta(self) -> Meta | None:
        with self._calls():
            found = self._client.hgetall(self._own("meta"))
        if b"layout" not in found:
            return None
        self._seen = True
        numbers = {name: int(found[name]) if name in found else None for name in (b"watermark", b"since", b"version")}
        layout = Layout.from_json(found[b"layout"])
        return Meta(layout, numbers[b"watermark"], numbers[b"since"], numbers[b"version"] or 0)

    def new_epoch(self) -> int:
        with self._calls():
            return int(self._scripts["NEW_EPOCH"](keys=[self._own("meta")], args=[time.time_ns() // 1_000_000]))

    def _create(self, layout: Layout) -> None:
        with self._calls():
            self._client.hset(self._own("meta"), "layout", layout.to_json())

    def _write(self, layout: Layout, blocks: list[Block], revision: Revision, watermark: int) -> Written:
        written = Written()
        for first in range(0, len(blocks), _PIPELINE):
            some = blocks[first : first + _PIPELINE]
            with self._calls():
                pipeline = self._client.pipeline(transaction=False)
                for block in some:
                    keys, args = self._call(layout, block, revision, watermark)
                    self._scripts["WRITE"](keys=keys, args=args, client=pipeline)
                ends = {block.key: max(start for start, _ in block.panes) + layout.pane_ms for block in some}
                pipeline.zadd(self._own("keys"), ends, gt=True)
                for answer in pipeline.execute()[:-1]:
                    written += Written(*answer)
        return written

    def _call(self, layout: Layout, block: Block, revision: Revision, watermark: int) -> tuple[list[str], list[Any]]:
        """Returns keys and arguments of the script that writes a block."""
        prefix, names = self._of_key(block.key), [field.name for field in layout.fields]
        end = block.start + layout.block.width_ms
        middles = self._panes(layout.fine, block.start, end)
        keys = [f"{prefix}:revisions:{time_text(block.start)}"]
        keys += [prefix + middle + name for middle in middles for name in names]
        if layout.coarse is not None:
            keys += [
                prefix + middle + name for middle in self._panes(layout.coarse, block.start, end) for name in names
            ]
        # As long as the pane would live if time in the stream went on like the clock.
        age = max(watermark - end, 0)
        ttl = max(layout.retention_ms - age, 0) + 2 * layout.block.width_ms
        args: list[Any] = [len(middles), len(names), int(layout.coarse is not None), ttl, *revision]
        args += [_merge(field) for field in layout.fields]
        for start, cells in block.panes:
            args += [(start - block.start) // layout.pane_ms, time_text(start)]
            args += [b"" if cell is None else cell for cell in cells]
        return keys, args

    def _scan(self, layout: Layout, keys: Sequence[str], spans: Sequence[Span]) -> Scan:
        levels = (layout.fine, layout.coarse or layout.fine)
        fields = [field.name for field in layout.fields]
        starts = [at for span in spans for at in levels[span.level].starts(span.start, span.end)]
        middles = [m for span in spans for m in self._panes(levels[span.level], span.start, span.end)]
        tails = [middle + name for middle in middles for name in fields]
        scan = Scan.empty(len(fields))
        at_once = max(1, _READ_KEYS // max(len(tails), 1))
        for first in range(0, len(keys), at_once):
            with self._calls():
                pipeline = self._client.pipeline(transaction=False)
                for key in keys[first : first + at_once]:
                    prefix = self._of_key(key)
                    pipeline.mget([prefix + tail for tail in tails])
                answers = pipeline.execute()
            for group, values in enumerate(answers, first):
                for i, start in enumerate(starts):
                    cells: list[Cell] = values[i * len(fields) : (i + 1) * len(fields)]
                    if any(cell is not None for cell in cells):
                        scan.add(group, start, cells)
        return scan

    def _key_texts(self) -> list[str]:
        with self._calls():
            return sorted(key.decode() for key in self._client.zrange(self._own("keys"), 0, -1))

    def _advance(self, layout: Layout, watermark: int, since: int | None, floor: int) -> None:
        with self._calls():
            dropped = self._scripts["ADVANCE"](
                keys=[self._own("meta")], args=[watermark, "" if since is None else since, floor]
            )
            if dropped is None:
                return
            block = layout.block
            pipeline = self._client.pipeline(transaction=False)
            for key in self._key_texts():
                for start in block.starts(block.start_of(int(dropped)), floor):
                    pipeline.unlink(*self._call(layout, Block(key, start, []), (0, 0), watermark)[0])
                    if len(pipeline) >= _PIPELINE:
                        pipeline.execute()
            pipeline.zremrangebyscore(self._own("keys"), "-inf", floor)
            pipeline.execute()


def _merge(field: Field) -> str:
    if field.merge == "union":
        return "union"
    return f"{field.merge}_{'float' if pa.types.is_floating(field.kind) else 'int'}"
