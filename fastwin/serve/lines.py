"""Lines of charts, which go on from version to version: only windows that a batch may have changed are made again."""

import json
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from fastwin.serve.kept import Kept
from fastwin.serve.params import MAX_KEYS
from fastwin.serve.plain import plain
from fastwin.serve.turns import Turns
from fastwin.store import Meta, PaneStore, keys_to_text
from fastwin.store.merging import outputs_of_nothing
from fastwin.store.spans import cover

__all__ = ["Chart", "Lines"]

_FOLLOWED_SECONDS = 30.0
"""How long a line goes on with the others of its chart when nobody asks for it."""

_CHARTS = 32
_LINES = 200
_QUESTION = 200
"""As many panes of one key are read in the time that a question takes by itself."""

# What a line keeps of a version, about: its stamps.
_META_BYTES = 6_000
_NOTHING = "null"
Key = tuple[Any, ...]
Values = list[list[str]]
"""For each aggregate, and each window in turn, the value as JSON."""


@dataclass(frozen=True)
class Chart:
    """Windows of ``window_ms`` that end at each ``step_ms`` in ``(start, end]``; ms."""

    window_ms: int
    step_ms: int
    start: int
    end: int

    @property
    def group(self) -> tuple[int, int, int]:
        """What charts have in common whose windows are the same where their ranges meet."""
        return self.window_ms, self.step_ms, self.end % self.step_ms

    def ends(self) -> range:
        """Returns the ends of the windows."""
        return range(self.start + self.step_ms, self.end + 1, self.step_ms)


@dataclass(frozen=True)
class _Line:
    """A chart of one key. meta: what the store said before it was made. joined: its values, those of one aggregate on a
    line each, so that few bytes hold many."""

    chart: Chart
    meta: Meta
    joined: tuple[str, ...]

    def still_right(self, meta: Meta) -> range:
        """Returns the ends of its windows that are as the store has them now."""
        chart, then = self.chart, self.meta
        changed = meta.changed_since(then)
        if changed is None or then.watermark is None:
            return range(0)
        first, last = chart.start + chart.step_ms, min(chart.end, changed, then.watermark)
        if meta.since is not None and meta.since != then.since:  # panes were dropped
            first = max(first, meta.since + chart.window_ms)
        first += (chart.end - first) % chart.step_ms
        return range(first, last + 1, chart.step_ms)

    def values(self, ends: range) -> Values:
        """Returns the values of some of its windows."""
        known = self.chart.ends()
        at = known.index(ends[0])
        return [text.split("\n")[at : at + len(ends)] for text in self.joined]


class Lines:
    """The lines of all charts over one store; safe to use from several threads.

    A line that goes on takes with it the others of its chart that were asked for lately. So the first who asks after a
    batch makes the newest windows for all. checked: looks whether the store is the same behind a read from a time on,
    and returns what it says now. turns: of those who ask the store.
    """

    def __init__(
        self,
        store: Callable[[], PaneStore],
        kept: Kept,
        checked: Callable[[Meta, int | None], Meta],
        turns: Turns,
    ) -> None:
        self._store, self._kept, self._checked, self._turns = store, kept, checked, turns
        self._lock = threading.Lock()
        self._asked: OrderedDict[tuple[int, int, int], dict[str, tuple[Key, float]]] = OrderedDict()
        self._locks = [threading.Lock() for _ in range(_CHARTS)]

    def of(self, meta: Meta, chart: Chart, keys: dict[str, Key]) -> dict[str, bytes]:
        """Returns the line of each key as a JSON object: ``key``, and a list for each aggregate.

        keys: the values of the keys by their texts. Raises as ``PaneStore.series``, what ``checked`` raises, and
        BusyError.
        """
        self._note(chart.group, keys)
        with self._turns.behind(self._locks[hash(chart.group) % _CHARTS]):  # who waits finds the chart's lines made
            found = {text: self._line(meta, chart, text) for text in keys}
            if missing := [text for text, line in found.items() if line is None]:
                made = self._go_on(meta, chart, missing) if chart.end == meta.watermark else {}
                new = {text: keys[text] for text in missing if text not in made}
                found |= made | (self._make(meta, chart, new) if new else {})
        names = [output.name for output in meta.layout.outputs]
        return {
            text: _as_json(text, names, line.values(chart.ends())) for text, line in found.items() if line is not None
        }

    def _note(self, group: tuple[int, int, int], keys: dict[str, Key]) -> None:
        """Notes which lines were asked for."""
        now = time.monotonic()
        with self._lock:
            asked = self._asked.setdefault(group, {})
            self._asked.move_to_end(group)
            for text, key in keys.items():
                asked.pop(text, None)
                asked[text] = key, now
            while len(asked) > _LINES:
                del asked[next(iter(asked))]
            while len(self._asked) > _CHARTS:
                self._asked.popitem(last=False)

    def _followed(self, group: tuple[int, int, int]) -> dict[str, Key]:
        """Returns the keys whose lines go on."""
        since = time.monotonic() - _FOLLOWED_SECONDS
        with self._lock:
            return {text: key for text, (key, at) in self._asked.get(group, {}).items() if at >= since}

    def _line(self, meta: Meta, chart: Chart, text: str) -> _Line | None:
        """Returns a kept line that has all of a chart."""
        line = self._kept.part((chart.group, text))
        if line is None:
            return None
        right, ends = line.still_right(meta), chart.ends()
        return line if ends[0] in right and ends[-1] in right else None

    def _go_on(self, meta: Meta, chart: Chart, missing: Sequence[str]) -> dict[str, _Line]:
        """Makes lines longer, up to the chart's end, where they only lack windows there; others of the chart too."""
        keys = self._followed(chart.group)
        ends = chart.ends()
        lasts: dict[int, dict[str, tuple[_Line, range]]] = {}  # by where they are right up to
        for text in keys:
            line = self._kept.part((chart.group, text))
            right = range(0) if line is None else line.still_right(meta)
            if right and right[0] <= (ends[0] if text in missing else right[-1]) <= right[-1] < chart.end:
                lasts.setdefault(right[-1], {})[text] = line, right
        made: dict[str, _Line] = {}
        for last, lines in lasts.items():
            if lines.keys().isdisjoint(missing):
                continue
            tail = Chart(chart.window_ms, chart.step_ms, last, chart.end)
            if len(tail.ends()) * 4 > len(ends):
                lines = {text: line for text, line in lines.items() if text in missing}
            new, steady = self._read(meta, tail, {text: keys[text] for text in lines})
            for text, (line, right) in lines.items():
                room = max(len(line.chart.ends()), len(ends)) - len(tail.ends())
                old = right[-room:] if room > 0 else range(0)
                values = line.values(old) if old else [[] for _ in new[text]]
                whole = Chart(chart.window_ms, chart.step_ms, last - len(old) * chart.step_ms, chart.end)
                joined = tuple("\n".join(a + b) for a, b in zip(values, new[text], strict=True))
                made[text] = _Line(whole, meta, joined)
                if steady:
                    self._keep(text, made[text])
        return {text: made[text] for text in missing if text in made}

    def _make(self, meta: Meta, chart: Chart, keys: dict[str, Key]) -> dict[str, _Line]:
        """Makes whole lines."""
        new, steady = self._read(meta, chart, keys)
        made = {text: _Line(chart, meta, tuple(map("\n".join, values))) for text, values in new.items()}
        for text, line in made.items():
            before = self._kept.part((chart.group, text))
            # A look at the past does not replace a line that goes on.
            if steady and (before is None or before.chart.end <= chart.end or not before.still_right(meta)):
                self._keep(text, line)
        return made

    def _keep(self, text: str, line: _Line) -> None:
        nbytes = sum(map(sys.getsizeof, line.joined)) + _META_BYTES + 400
        self._kept.keep((line.chart.group, text), line, nbytes)

    def _read(self, meta: Meta, chart: Chart, keys: dict[str, Key]) -> tuple[dict[str, Values], bool]:
        """Reads the lines of keys from the store; returns also whether all is of the version of ``meta``."""
        ends, found = chart.ends(), {}
        with self._turns.one():
            if _reads_less_one_by_one(meta, chart):
                found = self._one_by_one(meta, chart, keys)
            else:
                texts = list(keys)
                for first in range(0, len(texts), MAX_KEYS):
                    some = texts[first : first + MAX_KEYS]
                    table = self._store().series(
                        [keys[text] for text in some], chart.start, chart.end, chart.window_ms, chart.step_ms
                    )
                    columns = [_texts_of(table[output.name]) for output in meta.layout.outputs]
                    for at, text in enumerate(some):
                        found[text] = [column[at * len(ends) : (at + 1) * len(ends)] for column in columns]
            steady = self._checked(meta, ends[0] - chart.window_ms).stamp == meta.stamp
        for at, end in enumerate(ends):
            if not _is_known(meta, end):
                for values in found.values():
                    for column in values:
                        column[at] = _NOTHING
        return found, steady

    def _one_by_one(self, meta: Meta, chart: Chart, keys: dict[str, Key]) -> dict[str, Values]:
        """Reads a few long windows, each through coarse panes."""
        outputs = meta.layout.outputs
        empty = [text for one in outputs_of_nothing(meta.layout) for text in _texts_of(one)]
        found: dict[str, Values] = {text: [[] for _ in outputs] for text in keys}
        for end in chart.ends():
            table = self._store().query(list(keys.values()), end - chart.window_ms, end)
            names = keys_to_text([table[field.name] for field in meta.layout.keys], table.num_rows)
            columns = [_texts_of(table[output.name]) for output in outputs]
            rows = dict(zip(names, zip(*columns, strict=True), strict=True)) if names else {}
            for text, values in found.items():
                for column, value in zip(values, rows.get(text, empty), strict=True):
                    column.append(value)
        return found


def _is_known(meta: Meta, end: int) -> bool:
    """Returns whether the store has anything of a window that ends then: it is no zero where it has not."""
    return (meta.since is None or end > meta.since) and (meta.watermark is None or end <= meta.watermark)


def _reads_less_one_by_one(meta: Meta, chart: Chart) -> bool:
    """Returns whether a chart has so few windows, and so long ones, that each is better read through coarse panes."""
    widths = meta.layout.pane_ms, meta.layout.coarse_ms or meta.layout.pane_ms
    spans = cover(chart.end - chart.window_ms, chart.end, meta.layout.coarse)
    panes = sum((span.end - span.start) // widths[span.level] for span in spans)
    at_once = (chart.window_ms + chart.end - chart.start) // meta.layout.pane_ms
    return len(chart.ends()) * (panes + _QUESTION) < at_once + _QUESTION


def _texts_of(column: pa.Array | pa.ChunkedArray) -> list[str]:
    """Returns the values of a column as JSON."""
    values = plain(column)
    if pa.types.is_nested(column.type):
        return [_dumps(value) for value in values]
    # Encoded at once: a line feed is never within the JSON of a text or a number.
    return json.dumps(values, ensure_ascii=False, allow_nan=False, separators=("\n", ":"))[1:-1].split("\n")


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _as_json(text: str, names: Sequence[str], values: Values) -> bytes:
    parts = [f'"key":{_dumps(text)}']
    parts += [f"{_dumps(name)}:[{','.join(column)}]" for name, column in zip(names, values, strict=True)]
    return ("{" + ",".join(parts) + "}").encode()
