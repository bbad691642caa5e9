"""What the API answers: a store's windows as JSON, the same question answered once per version."""

import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fastwin.errors import FastwinError, StoreError, StoreUnavailableError
from fastwin.serve.kept import Kept
from fastwin.serve.lines import Chart, Lines
from fastwin.serve.metrics import Metrics
from fastwin.serve.params import MAX_ROWS, CurrentRequest, KeysRequest, Query, RequestError, SeriesRequest
from fastwin.serve.plain import plain
from fastwin.serve.turns import Turns
from fastwin.store import Meta, PaneStore, key_from_text, key_to_text, keys_to_text
from fastwin.store.keytext import MAX_KEY_BYTES
from fastwin.store.losses import MovedError, check_unmoved

__all__ = ["Answers", "EmptyStoreError"]

_KEPT_BYTES = 64 * 2**20
_FEW_BYTES = 2**16
_TRIES = 3
_FRESH_SECONDS = 0.1
"""For how long answers go by what the store has said. In the second half of it, it is asked again meanwhile."""

_AT_ONCE = 4
"""How many may ask the store at once. More would take turns on the interpreter, and be no faster."""

_WAITING = 100
"""How many may wait for one of these, or for an answer that another makes. Each has a thread."""


class EmptyStoreError(StoreError):
    """The store can be asked, and holds nothing yet."""


class Answers:
    """Answers requests over one store, as JSON in UTF-8; safe to use from several threads.

    kept_bytes: how much of the answers is kept, at most; the ones asked for longest ago go first. What is asked of
    ``keys``, ``current`` and ``series`` may have to wait; where too many do already, they raise BusyError.
    """

    def __init__(
        self, open_store: Callable[[], PaneStore], metrics: Metrics | None = None, kept_bytes: int = _KEPT_BYTES
    ) -> None:
        self._open = open_store
        self._opened: PaneStore | None = None
        self._turns = Turns(_AT_ONCE, _WAITING)
        self._kept = Kept(kept_bytes, metrics or Metrics(), self._turns)
        self._lines = Lines(self._store, self._kept, self._checked, self._turns)
        self._seen: tuple[Meta, float] | None = None  # what the store said, and when
        self._lock = threading.Lock()
        self._looks = ThreadPoolExecutor(1, "fastwin-look")
        self._looking = False

    def close(self) -> None:
        """Lets go of the store."""
        self._looks.shutdown()
        with self._lock:
            if self._opened is not None:
                self._opened.close()
                self._opened = None

    def _store(self) -> PaneStore:
        with self._lock:
            if self._opened is None:
                self._opened = self._open()
            return self._opened

    def _meta(self) -> Meta:
        now = time.monotonic()
        try:
            meta = self._store().meta()
            if meta is None or meta.watermark is None:
                raise EmptyStoreError(
                    "the store holds no panes yet; they come when the stream has closed its first pane"
                )
        except BaseException:
            self._seen = None
            raise
        seen = self._seen  # others may change it at any time
        if seen is not None and seen[0] == meta:
            meta = seen[0]  # all that is kept of a version shares it
        if seen is None or seen[1] <= now:
            self._seen = meta, now
        return meta

    def _look(self) -> None:
        try:
            self.meta()
        finally:
            self._looking = False

    def meta(self) -> Meta | None:
        """Returns what the store says of itself; None if it does not answer, or holds nothing."""
        try:
            return self._meta()
        except FastwinError:
            return None

    def at_once(self, name: str, query: Query) -> bytes | None:
        """Returns the answer to /api/NAME if it is kept, of a store that was looked at just now; never waits."""
        seen = self._seen
        age = _FRESH_SECONDS if seen is None else time.monotonic() - seen[1]
        if seen is None or age >= _FRESH_SECONDS:
            return None
        if age > _FRESH_SECONDS / 2 and not self._looking:
            self._looking = True
            try:
                self._looks.submit(self._look)
            except RuntimeError:  # no thread is to be had; the next who asks tries again
                self._looking = False
        meta = seen[0]
        if name == "store" and not query:
            return _json(_described(meta))
        if name == "keys":
            found = self._kept.get(("keys", meta.stamp))
            if found is None or len(found) > _FEW_BYTES:  # to list so many would keep others waiting
                return None
            return _listed(found, KeysRequest.of(query), meta)
        if name == "current":
            asked = CurrentRequest.of(query, meta.layout)
            found = self._kept.get((asked, meta.stamp))
            return None if found is None else _cut(found, asked.limit)
        if name == "series":
            return self._kept.get((SeriesRequest.of(query, meta.layout), meta.stamp))
        return None

    def ready(self, query: Query) -> bytes:
        """Answers /readyz: up to when the store can be asked. Raises StoreError if it cannot."""
        meta = self._meta()
        return _json({"ready": True, "watermark": meta.watermark, "version": meta.version})

    def store(self, query: Query) -> bytes:
        """Answers /api/store: what the store holds, up to when, and since when."""
        if query:
            raise RequestError(400, "store: takes no parameters.")
        return _json(_described(self._meta()))

    def keys(self, query: Query) -> bytes:
        """Answers /api/keys: the keys that have panes, so many at a time."""
        return self._steadily(self._keys_of, query)

    def _keys_of(self, query: Query, meta: Meta) -> bytes:
        asked = KeysRequest.of(query)

        def answer() -> bytes:
            with self._turns.one():
                return "".join(f"{text}\n" for text in _texts(self._store().keys(), meta)).encode()

        return _listed(self._once("keys", meta, None, answer), asked, meta)

    def current(self, query: Query) -> bytes:
        """Answers /api/current: one window of many keys, the highest first aggregate first."""
        return self._steadily(self._current, query)

    def _current(self, query: Query, meta: Meta) -> bytes:
        asked = CurrentRequest.of(query, meta.layout)
        keys = None if asked.keys is None else self._known(asked.keys, meta)
        end = meta.watermark if asked.end_ms is None else asked.end_ms
        assert end is not None
        start = end - asked.window_ms

        def answer() -> bytes:
            with self._turns.one():
                table = self._store().query(keys, start, end)
                if asked.sort is not None:
                    table = table.take(_highest_first(table[asked.sort]))
            total, table = table.num_rows, table.slice(0, MAX_ROWS)
            rows = _columns(table, meta)
            head = {
                "start": start,
                "end": end,
                "window_ms": asked.window_ms,
                "since": meta.since,
                "version": meta.version,
                "stamp": _stamp(meta),
                "total": total,
            }
            each = [dict(zip(rows, values, strict=True)) for values in zip(*rows.values(), strict=True)]
            return b"\n".join(map(_json, [head, *each]))

        return _cut(self._once(asked, meta, start, answer), asked.limit)

    def series(self, query: Query) -> bytes:
        """Answers /api/series: windows of a few keys, over time."""
        return self._steadily(self._series, query)

    def _series(self, query: Query, meta: Meta) -> bytes:
        asked = SeriesRequest.of(query, meta.layout)
        keys = self._known(asked.keys, meta)
        end = meta.watermark if asked.end_ms is None else asked.end_ms
        assert end is not None
        chart = Chart(asked.window_ms, asked.step_ms, end - asked.range_ms, end)
        texts = [key_to_text(key) for key in keys]

        def answer() -> bytes:
            lines = self._lines.of(meta, chart, dict(zip(texts, keys, strict=True)))
            head = {
                "start": chart.start,
                "end": end,
                "window_ms": asked.window_ms,
                "step_ms": asked.step_ms,
                "since": meta.since,
                "version": meta.version,
                "stamp": _stamp(meta),
                "times": list(chart.ends()),
            }
            return _json(head)[:-1] + b',"series":[' + b",".join(lines[text] for text in texts) + b"]}"

        return self._once(asked, meta, chart.ends()[0] - chart.window_ms, answer)

    def _known(self, texts: tuple[str, ...], meta: Meta) -> list[tuple]:
        """Returns the values of keys given as text. Raises RequestError for one that the store does not know."""
        keys = {text: key for text in texts if (key := _key(text, meta)) is not None}
        known = dict(zip(keys, self._store().has(list(keys.values())), strict=True))
        for text in texts:
            if not known.get(text):
                self._checked(meta, None)  # another store may know it
                shown = text if len(text) <= 60 else text[:60] + "..."
                raise RequestError(404, f"key: the store knows no {shown!r}; /api/keys lists those that it knows.")
        return list(keys.values())

    def _steadily(self, answer: Callable[[Query, Meta], bytes], query: Query) -> bytes:
        """Returns an answer that is of one store, and has all from ``since`` on that it speaks of."""
        for left in reversed(range(_TRIES)):
            meta = self._meta()
            try:
                return answer(query, meta)
            except MovedError:
                if not left:
                    raise
            except (RequestError, StoreUnavailableError):
                raise
            except Exception:
                self._checked(meta, None)  # another store may have other columns, which is no fault of who asks
                raise
        raise AssertionError

    def _checked(self, meta: Meta, start: int | None) -> Meta:
        """Returns the store's meta behind a read from ``start`` on, ms; None: of no panes. Raises MovedError if what
        was read does not belong to ``meta``."""
        return check_unmoved(meta, self._store().meta(), start, "it")

    def _once(self, asked: Any, meta: Meta, start: int | None, answer: Callable[[], bytes]) -> bytes:
        """Returns a kept answer, or makes it. start: of the first pane that is read, ms; None: none is."""

        def make() -> tuple[bytes, bool]:
            found = answer()
            return found, self._checked(meta, start).stamp == meta.stamp  # else it may have parts of another version

        return self._kept.once((asked, meta.stamp), make)


def _json(found: dict[str, Any]) -> bytes:
    return json.dumps(found, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _cut(lines: bytes, limit: int) -> bytes:
    """Returns an answer with its first rows. lines: of JSON, what is beside the rows, then all rows."""
    head, *rows = lines.split(b"\n", limit + 1)[: limit + 1]
    return head[:-1] + b',"rows":[' + b",".join(rows) + b"]}"


def _listed(lines: bytes, asked: KeysRequest, meta: Meta) -> bytes:
    """Returns some keys as JSON. lines: all of them in order, with a line feed behind each."""
    first = 0
    if asked.after is not None:
        key = _key(asked.after, meta)
        first = _behind(lines, (asked.after if key is None else key_to_text(key)).encode())
    some = lines[first : first + asked.limit * (MAX_KEY_BYTES + 1)].split(b"\n", asked.limit)[:-1]
    more = first + sum(map(len, some)) + len(some) < len(lines)
    return _json({"keys": [text.decode() for text in some], "more": more})


def _behind(lines: bytes, text: bytes) -> int:
    """Returns where the first line begins that comes behind a text: UTF-8 sorts as what it is of."""
    low, high = 0, len(lines)
    while low < high:
        start = max(low, lines.rfind(b"\n", low, (low + high) // 2) + 1)
        end = lines.index(b"\n", start)
        if lines[start:end] > text:
            high = start
        else:
            low = end + 1
    return low


def _described(meta: Meta) -> dict[str, Any]:
    layout = meta.layout
    return {
        "keys": [field.name for field in layout.keys],
        "aggregates": [
            {"name": output.name, "how": output.how, "type": str(layout.output_type(output))}
            for output in layout.outputs
        ],
        "pane_ms": layout.pane_ms,
        "coarse_ms": layout.coarse_ms,
        "window_ms": layout.window_ms,
        "retention_ms": layout.retention_ms,
        "watermark": meta.watermark,
        "since": meta.since,
        "version": meta.version,
        "identity": meta.identity,
        "stamp": _stamp(meta),
    }


def _stamp(meta: Meta) -> str:
    return "-".join(map(str, meta.stamp))


def _key(text: str, meta: Meta) -> tuple | None:
    """Returns the values of a key; None for a text that no store has one of."""
    try:
        key = key_from_text(text, meta.layout.keys)
        key_to_text(key)
    except StoreError:
        return None
    return key


def _texts(table: pa.Table, meta: Meta) -> list[str]:
    return keys_to_text([table[field.name] for field in meta.layout.keys], table.num_rows)


def _highest_first(column: pa.ChunkedArray) -> pa.Array:
    """Returns the order of values from the highest down, null and not-a-number last."""
    if pa.types.is_float16(column.type):  # which Arrow does not sort
        column = column.cast(pa.float32())
    return pc.array_sort_indices(column, order="descending")


def _columns(table: pa.Table, meta: Meta) -> dict[str, list]:
    """Returns the key as text and the aggregates as columns of plain values."""
    found: dict[str, list] = {"key": _texts(table, meta)}
    for output in meta.layout.outputs:
        found[output.name] = plain(table[output.name])
    return found
