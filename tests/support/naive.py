"""A naive model of Flink's window operator in event time with the default trigger, one element at a time.

Slow and plain on purpose, and without a line of fastwin: every window keeps the list of its values, every
timer is an entry of a set.

    model = Model(Sliding(size=20, slide=10), [("count", None), ("sum", 0)], lateness=5)
    fed = model.batch([Row(0, "a", 3, (1.5,)), Row(1, "a", None, (None,))])
    fed = model.advance(100)
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from itertools import groupby
from operator import and_, xor
from typing import Any, NamedTuple

MIN = -(2**63)
PICKS = ("first", "last", "argmin", "argmax")
PICKS += ("first with nulls", "first arrived", "last arrived", "last arrived with nulls")


class Row(NamedTuple):
    """An element. time: ms, None: unusable. values: what the aggregates read, None for null."""

    id: int
    key: Any
    time: int | None
    values: tuple = ()


class Window(NamedTuple):
    start: int
    end: int


class Emission(NamedTuple):
    """A result row. timer: the time of the timer that fired; None: an element fired."""

    key: Any
    start: int
    end: int
    values: tuple
    timer: int | None


@dataclass
class Fed:
    """What came of one step. late, bad: ids of rows."""

    emissions: list[Emission] = field(default_factory=list)
    late: list[int] = field(default_factory=list)
    bad: list[int] = field(default_factory=list)
    coalesced: bool = False

    def groups(self) -> list[list[Emission]]:
        """The emissions, split where order counts: within a group Flink does not define it."""
        if self.coalesced:
            return [list(group) for _, group in groupby(self.emissions, key=lambda emission: emission.end)]
        by_timer = groupby(
            enumerate(self.emissions), key=lambda pair: pair[0] if pair[1].timer is None else pair[1][4:]
        )
        return [[emission for _, emission in group] for _, group in by_timer]


@dataclass(frozen=True)
class Sliding:
    size: int
    slide: int
    offset: int = 0

    def assign(self, time: int) -> Iterator[Window]:
        start = time - (time - self.offset) % self.slide
        while start > time - self.size:
            yield Window(start, start + self.size)
            start -= self.slide


@dataclass(frozen=True)
class Cumulative:
    size: int
    step: int
    offset: int = 0

    def assign(self, time: int) -> Iterator[Window]:
        start = time - (time - self.offset) % self.size
        for end in range(start + self.size, time, -self.step):
            yield Window(start, end)


def Tumbling(size: int, offset: int = 0) -> Sliding:  # noqa: N802 (named like the others)
    return Sliding(size, size, offset)


@dataclass(frozen=True)
class Sessions:
    gap: int

    def assign(self, time: int) -> Iterator[Window]:
        yield Window(time, time + self.gap)


def touch(a: Window, b: Window) -> bool:
    return a.start <= b.end and a.end >= b.start


def order(value: Any) -> tuple:
    """What values are compared by: NaN is above all other numbers."""
    return (True, 0) if value != value else (False, value)


def pick(kind: str, rows: list[Row], index: Any) -> Any:
    """The value of one row: the first or last in time, or where another column is smallest or largest."""
    column, by = index if isinstance(index, tuple) else (index, None)
    if "with nulls" not in kind:
        rows = [row for row in rows if row.values[column] is not None and (by is None or row.values[by] is not None)]
    if not rows:
        return None
    rows = sorted(rows, key=lambda row: (0 if "arrived" in kind else row.time, row.id))
    if by is not None:
        most = (min if kind == "argmin" else max)(order(row.values[by]) for row in rows)
        rows = [row for row in rows if order(row.values[by]) == most]
    return rows[-1 if kind.startswith("last") else 0].values[column]


def aggregate(kind: str, values: list) -> Any:
    """One aggregate as SQL has it: nulls are skipped, NaN is above all other numbers."""
    values = [value for value in values if value is not None]
    if kind == "count":
        return len(values)
    if kind in ("variance", "stddev"):
        if len(values) < 2:
            return None
        if not all(map(math.isfinite, values)):
            return math.nan
        mean = Fraction(sum(map(Fraction, values)), len(values))
        squares = sum((Fraction(value) - mean) ** 2 for value in values) / (len(values) - 1)
        return math.sqrt(squares) if kind == "stddev" else float(squares)
    if not values:
        return None
    if kind in ("min", "max"):
        return (min if kind == "min" else max)(values, key=order)
    if kind in ("every", "xor", "and"):
        return reduce({"every": and_, "and": and_, "xor": xor}[kind], values)
    if isinstance(values[0], int):
        total = sum(values)
        return total if kind == "sum" else float(Fraction(total, len(values)))
    total = math.fsum(values) if all(map(math.isfinite, values)) else sum(values)
    return total if kind == "sum" else total / len(values)


class Model:
    """windows: Tumbling, Sliding, Cumulative or Sessions. aggregates: ``(kind, index into the values)``, the kind by
    name or a function of ``(time, id, value)``s; index None: no column; for argmin and argmax the indices of the value and of what decides.

    coalesce: the rows of a batch have no order: sessions are joined before lateness is decided, and a batch
        fires each passed window once, at its end, in order of window ends.
    """

    def __init__(
        self,
        windows: Sliding | Cumulative | Sessions,
        aggregates: list,
        lateness: int = 0,
        late_output: bool = False,
        coalesce: bool = False,
    ) -> None:
        self.windows, self.aggregates, self.lateness = windows, aggregates, lateness
        self.late_output, self.coalesce = late_output, coalesce
        self.watermark = MIN
        self.contents: dict[tuple[Any, Window], list[Row]] = {}
        self.sessions: dict[Any, list[Window]] = {}
        self.timers: set[tuple[int, Any, Window]] = set()
        self.events = self.bad = self.late = self.dropped = self.unassigned = self.fired = 0

    def step(self, kind: str, argument: Any) -> Fed:
        """("batch", rows) or ("watermark", ms)."""
        return self.batch(argument) if kind == "batch" else self.advance(argument)

    def batch(self, rows: Iterable[Row]) -> Fed:
        fed = Fed(coalesced=self.coalesce)
        good = []
        for row in rows:
            self.events += 1
            if row.time is None:
                self.bad += 1
                fed.bad.append(row.id)
            else:
                good.append(row)
        if not self.coalesce:
            for row in good:
                for window in self._take(row, fed):
                    if window.end - 1 <= self.watermark:
                        self._fire(row.key, window, None, fed)
            return fed
        passed = set()
        take = self._take_joined if isinstance(self.windows, Sessions) else self._take_each
        for key, window in take(good, fed):
            if window.end - 1 <= self.watermark:
                passed.add((key, window))
        for key, window in sorted(passed, key=lambda pair: pair[1].end):
            self._fire(key, window, None, fed)
        fed.late.sort()
        return fed

    def advance(self, watermark: int) -> Fed:
        fed = Fed()
        if watermark <= self.watermark:
            return fed
        self.watermark = watermark
        due = sorted((timer for timer in self.timers if timer[0] <= watermark), key=lambda timer: timer[0])
        for timer in due:
            time, key, window = timer
            self.timers.remove(timer)
            if time == window.end - 1:
                self._fire(key, window, time, fed)
            if time == window.end - 1 + self.lateness:
                del self.contents[key, window]
                if isinstance(self.windows, Sessions):
                    self.sessions[key].remove(window)
        return fed

    def _is_late(self, window: Window) -> bool:
        return window.end - 1 + self.lateness <= self.watermark

    def _take(self, row: Row, fed: Fed) -> list[Window]:
        """Adds an element to its windows; returns those that took it."""
        taken = []
        for window in self.windows.assign(row.time):
            if isinstance(self.windows, Sessions):
                touched = [other for other in self.sessions.get(row.key, []) if touch(window, other)]
                if touched:
                    window = self._cover([window, *touched])
                if not self._is_late(window):
                    self._join(row.key, touched, window)
            if not self._is_late(window):
                self._add(row, window)
                taken.append(window)
        if not taken:
            self._refuse(row, fed)
        return taken

    def _take_each(self, rows: list[Row], fed: Fed) -> list[tuple[Any, Window]]:
        return [(row.key, window) for row in rows for window in self._take(row, fed)]

    def _take_joined(self, rows: list[Row], fed: Fed) -> list[tuple[Any, Window]]:
        """Adds the elements of a batch to sessions joined from all of them and the open ones."""
        taken = []
        by_key: dict[Any, list[Row]] = {}
        for row in rows:
            by_key.setdefault(row.key, []).append(row)
        for key, own in by_key.items():
            joined: list[Window] = []
            for window in sorted(
                [*(Window(row.time, row.time + self.windows.gap) for row in own), *self.sessions.get(key, [])]
            ):
                if joined and touch(joined[-1], window):
                    joined[-1] = self._cover([joined[-1], window])
                else:
                    joined.append(window)
            for window in joined:
                inside = [row for row in own if window.start <= row.time < window.end]
                if self._is_late(window):
                    for row in inside:
                        self._refuse(row, fed)
                elif inside:
                    self._join(key, [other for other in self.sessions.get(key, []) if touch(window, other)], window)
                    for row in inside:
                        self._add(row, window)
                    taken.append((key, window))
        return taken

    @staticmethod
    def _cover(windows: list[Window]) -> Window:
        return Window(min(window.start for window in windows), max(window.end for window in windows))

    def _join(self, key: Any, olds: list[Window], new: Window) -> None:
        """Moves what is in old sessions to the new one."""
        if olds == [new]:
            return
        moved = []
        for old in olds:
            moved += self.contents.pop((key, old))
            self.sessions[key].remove(old)
            self.timers -= {(old.end - 1, key, old), (old.end - 1 + self.lateness, key, old)}
        if moved:
            self._open(key, new)
            self.contents[key, new] += moved

    def _open(self, key: Any, window: Window) -> None:
        self.contents[key, window] = []
        self.timers.add((window.end - 1 + self.lateness, key, window))
        if window.end - 1 > self.watermark:
            self.timers.add((window.end - 1, key, window))
        if isinstance(self.windows, Sessions):
            self.sessions.setdefault(key, []).append(window)

    def _add(self, row: Row, window: Window) -> None:
        if (row.key, window) not in self.contents:
            self._open(row.key, window)
        self.contents[row.key, window].append(row)

    def _refuse(self, row: Row, fed: Fed) -> None:
        """No window took the element."""
        if row.time + self.lateness > self.watermark:
            self.unassigned += 1
        elif self.late_output:
            self.late += 1
            fed.late.append(row.id)
        else:
            self.dropped += 1

    def _fire(self, key: Any, window: Window, timer: int | None, fed: Fed) -> None:
        rows = self.contents[key, window]
        values = tuple(self._result(kind, rows, index) for kind, index in self.aggregates)
        fed.emissions.append(Emission(key, *window, values, timer))
        self.fired += 1

    @staticmethod
    def _result(kind: Any, rows: list[Row], index: Any) -> Any:
        if callable(kind):
            return kind([(row.time, row.id, row.values[index]) for row in rows if row.values[index] is not None])
        if kind in PICKS:
            return pick(kind, rows, index)
        return aggregate(kind, [True if index is None else row.values[index] for row in rows])
