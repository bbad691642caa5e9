"""Panes in Redis: a string for each field of a pane, so that any client can read them; ranges are keys made of times.

Names, with the hash tag in braces, so that all of a key sits in one slot of a cluster::

    {NAMESPACE:KEY}:3min:2024-01-01T00:03Z:FIELD     a pane's field: a decimal number, or Redis's own HyperLogLog
    {NAMESPACE:KEY}:1h:2024-01-01T00:00Z:FIELD       the same of a coarse pane
    {NAMESPACE:KEY}:revisions:2024-01-01T00:00Z      a hash, pane start to EPOCH.BATCH
    {NAMESPACE}:meta                                 a hash: layout, watermark, since, version, identity, history ...
    {NAMESPACE}:keys                                 a sorted set: KEY by the end of its last pane
    {NAMESPACE}:block:2024-01-01T00:00Z              a set: the keys that have panes there
    {NAMESPACE}:queries                              a hash: the last whole batch of each query of Spark
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit, urlunsplit

import pyarrow as pa

from fastwin.errors import SpecError, StoreError
from fastwin.spec.builder import SpecBuilder
from fastwin.store import redisscripts
from fastwin.store.cells import Cell
from fastwin.store.layout import Field, Layout
from fastwin.store.panestore import PaneStore
from fastwin.store.records import HISTORY, Block, Meta, Revision, Scan, Step, Written, new_identity
from fastwin.store.redisclock import ENTRIES, entry_of, first_kept, life_of
from fastwin.store.redisfaults import check_server, explained, process_of
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
        parts, options = _parts_of(url)
        self._namespace = options.pop("namespace", "fastwin")
        if not _NAMESPACE.fullmatch(self._namespace):
            raise SpecError(
                f"store: namespace must be 1 to 64 letters, digits, '_', '.' or '-', got {self._namespace!r}"
            )
        options.setdefault("socket_connect_timeout", str(_CONNECT_SECONDS))
        self._shown = f"{parts.scheme}://{parts.hostname or 'localhost'}:{parts.port or 6379}{parts.path}"
        secret = _password_of(options, parts.password)
        try:
            self._timeout = float(options.setdefault("socket_timeout", str(_TIMEOUT_SECONDS)))
            # A lost connection is tried again, as every step may be repeated; one that does not answer is not.
            retry = Retry(ExponentialBackoff(cap=0.5, base=0.1), 2, supported_errors=(redis.ConnectionError,))
            address = urlunsplit(parts._replace(query=urlencode(options)))
            self._client: Any = redis.Redis.from_url(address, retry=retry, **secret)
            self._scripts = {
                name: self._client.register_script(getattr(redisscripts, name))
                for name in ("WRITE", "ADVANCE", "NEW_EPOCH")
            }
            with self._calls():
                check_server(self._client, self._shown, read_only)
        except (ValueError, TypeError, AttributeError) as problem:
            raise SpecError(f"store: {self._shown} with its options is no URL for Redis: {problem}") from None

    def close(self) -> None:
        self._client.close()

    @contextmanager
    def _calls(self) -> Iterator[None]:
        """Says what is wrong when Redis does not do as it is told."""
        try:
            yield
        except self._redis.RedisError as problem:
            raise explained(problem, self._shown, self._timeout) from problem

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
        names = (b"watermark", b"since", b"complete_from", b"version")
        now = time.time_ns() // 1_000_000
        try:
            watermark, since, complete, version = (int(found[name]) if name in found else None for name in names)
            identity, history, clock = (found.get(name, b"").decode() for name in (b"identity", b"history", b"clock"))
            kept = first_kept(clock, watermark, now)
        except ValueError as problem:
            raise StoreError(f"redis: {self._shown} has a damaged {self._own('meta')}: {problem}") from None
        layout, lost = Layout.from_json(found[b"layout"]), bool(found.get(b"lost"))
        complete = max((at for at in (complete, kept) if at is not None), default=None)
        return Meta.of(layout, watermark, since, complete, version or 0, identity, history, lost)

    def batch_of(self, query: str) -> int | None:
        with self._calls():
            found = self._client.hget(self._own("queries"), query)
        return None if found is None else int(found)

    def _process(self) -> str | None:
        with self._calls():
            return process_of(self._client)

    def new_epoch(self) -> int:
        with self._calls():
            return int(self._scripts["NEW_EPOCH"](keys=[self._own("meta")], args=[time.time_ns() // 1_000_000]))

    def _create(self, layout: Layout) -> None:
        with self._calls():
            self._client.hsetnx(self._own("meta"), "identity", new_identity())
            self._client.hset(self._own("meta"), "layout", layout.to_json())

    def _write(self, layout: Layout, blocks: list[Block], revision: Revision, watermark: int) -> Written:
        written = Written()
        for first in range(0, len(blocks), _PIPELINE):
            some = blocks[first : first + _PIPELINE]
            with self._calls():
                pipeline = self._client.pipeline(transaction=False)
                for block in some:
                    keys, args = self._call(layout, block, revision)
                    self._scripts["WRITE"](keys=keys, args=args, client=pipeline)
                ends = {block.key: max(start for start, _ in block.panes) + layout.pane_ms for block in some}
                pipeline.zadd(self._own("keys"), ends, gt=True)
                self._note_blocks(pipeline, layout, some)
                for answer in pipeline.execute()[: len(some)]:
                    written += Written(*answer)
        return written

    def _note_blocks(self, pipeline: Any, layout: Layout, blocks: Sequence[Block]) -> None:
        """Notes which keys have panes in which block, so that what is too old is found without looking at all keys."""
        keys: dict[int, list[str]] = {}
        for block in blocks:
            keys.setdefault(block.start, []).append(block.key)
        for start, some in keys.items():
            name = self._own(f"block:{time_text(start)}")
            pipeline.sadd(name, *some)
            pipeline.pexpire(name, life_of(layout))

    def _call(self, layout: Layout, block: Block, revision: Revision) -> tuple[list[str], list[Any]]:
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
        args: list[Any] = [len(middles), len(names), int(layout.coarse is not None), life_of(layout), *revision]
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

    def _advance(self, layout: Layout | None, step: Step) -> bool:
        times = (step.watermark, step.first, step.floor, step.complete_from)
        args = ["" if time is None else time for time in times]
        args += [step.stamp, new_identity(), HISTORY, *(step.mark or ("", ""))]
        args += ["1" if step.lost else "", step.identity, step.process or "", ENTRIES]
        args += ("", "") if layout is None else entry_of(layout, time.time_ns() // 1_000_000)
        with self._calls():
            dropped = self._scripts["ADVANCE"](keys=[self._own("meta"), self._own("queries")], args=args)
            if dropped == b"other":
                return False
            if dropped is not None:
                assert layout is not None
                assert step.floor is not None
                self._drop(layout, int(dropped), step.floor)
        return True

    def _drop(self, layout: Layout, start: int, floor: int) -> None:
        """Removes the panes from the block of ``start`` to ``floor``, of the keys that have any there."""
        block = layout.block
        for at in block.starts(block.start_of(start), floor):
            members = self._own(f"block:{time_text(at)}")
            pipeline = self._client.pipeline(transaction=False)
            for key in self._client.sscan_iter(members, count=_PIPELINE):
                pipeline.unlink(*self._call(layout, Block(key.decode(), at, []), (0, 0))[0])
                if len(pipeline) >= _PIPELINE:
                    pipeline.execute()
            pipeline.unlink(members)
            pipeline.execute()
        self._client.zremrangebyscore(self._own("keys"), "-inf", floor)


def _parts_of(url: str) -> tuple[SplitResult, dict[str, str]]:
    """Returns a URL's parts, and its options. Raises SpecError, which shows no part: each may be of a password."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # looked at now: one that is no number raises
        options = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
        behind = parts.path if parts.netloc or parts.scheme != "unix" else ""
        if parts.netloc and "@" not in parts.netloc:
            behind += parts.query
        if not parts.fragment and "@" not in behind:  # else a password ended too soon
            return parts, options
    except ValueError:
        pass
    raise SpecError(
        f"store: {url.partition(':')[0]}:... is no URL for Redis: it must be redis://[USER:PASSWORD@]HOST:PORT/DB, "
        f"options behind it as ?NAME=VALUE&NAME=VALUE; in a password write %2F for /, %3F for ?, %23 for #, %40 for @"
    )


def _password_of(options: dict[str, str], given: str | None) -> dict[str, str]:
    """Returns the password that the URL's options name without telling it, as an argument for the client."""
    name, path = options.pop("password_env", None), options.pop("password_file", None)
    if (given is not None) + (name is not None) + (path is not None) > 1:
        raise SpecError("store: give one of a password in the URL, password_env= and password_file=")
    if name is not None:
        if name not in os.environ:
            raise SpecError(f"store: password_env names the variable {name!r}, which is not set")
        return {"password": os.environ[name]}
    if path is not None:
        try:
            return {"password": Path(path).read_text(encoding="utf-8").strip()}
        except (OSError, UnicodeDecodeError) as problem:
            raise SpecError(f"store: password_file {path!r} cannot be read: {problem}") from None
    return {}


def _merge(field: Field) -> str:
    if field.merge == "union":
        return "union"
    return f"{field.merge}_{'float' if pa.types.is_floating(field.kind) else 'int'}"
