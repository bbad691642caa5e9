"""Naive models of windows whose results are rows: of deduplicate, top and joins. Without a line of fastwin.

model = RowsModel(Sliding(20, 10), last_row, lateness=5)
model.batch([Row(0, "a", 3, (1,))]).emissions
"""

from collections.abc import Callable, Iterable
from typing import Any

from tests.support.naive import MIN, Cumulative, Emission, Fed, Model, Row, Sliding, Window, order

__all__ = ["ApartModel", "FirstsModel", "JoinModel", "RowsModel", "last_row", "top_rows"]


def last_row(rows: list[Row]) -> list[tuple]:
    """The last in time, of several the last that arrived."""
    return [max(enumerate(rows), key=lambda pair: (pair[1].time, pair[0]))[1].values]


def top_rows(n: int, ascending: bool = False) -> Callable[[list[Row]], list[tuple]]:
    """The n largest by the first value, each behind its rank."""

    def pick(rows: list[Row]) -> list[tuple]:
        left, found = list(rows), []
        while left and len(found) < n:
            there = [row for row in left if row.values[0] is not None]
            best = left[0]
            if there:
                most = (min if ascending else max)(order(row.values[0]) for row in there)
                best = next(row for row in there if order(row.values[0]) == most)
            left.remove(best)
            found.append((len(found) + 1, *best.values))
        return found

    return pick


class RowsModel(Model):
    """Windows that fire what ``pick`` makes of their rows: a list of tuples."""

    def __init__(
        self, windows: Sliding | Cumulative, pick: Callable[[list[Row]], list[tuple]], lateness: int, coalesce: bool
    ) -> None:
        super().__init__(windows, [], lateness, late_output=True, coalesce=coalesce)
        self.pick = pick

    def _fire(self, key: Any, window: Window, timer: int | None, fed: Fed) -> None:
        found = self.pick(self.contents[key, window])
        fed.emissions += [Emission(key, *window, values, timer) for values in found]
        self.fired += len(found)


class FirstsModel(Model):
    """Hands out each row that is the first of one of its windows, once for each of these."""

    def __init__(self, windows: Sliding | Cumulative, lateness: int, coalesce: bool) -> None:
        super().__init__(windows, [], lateness, late_output=True)
        self.by_time = coalesce
        self.seen: set[tuple[Any, Window]] = set()

    def batch(self, rows: Iterable[Row]) -> Fed:
        fed = Fed()
        for row in sorted(rows, key=lambda row: row.time) if self.by_time else rows:
            windows = [window for window in self.windows.assign(row.time) if not self._is_late(window)]
            for window in windows:
                if (row.key, window) not in self.seen:
                    self.seen.add((row.key, window))
                    fed.emissions.append(Emission(row.key, *window, row.values, None))
            if not windows:
                self._refuse(row, fed)
        return fed

    def advance(self, watermark: int) -> Fed:
        self.watermark = max(self.watermark, watermark)
        return Fed()


class ApartModel:
    """Hands out each row unless one of its key was handed out less than ``within`` away. It never forgets."""

    def __init__(self, within: int, lateness: int, coalesce: bool) -> None:
        self.within, self.lateness, self.by_time = within, lateness, coalesce
        self.watermark = MIN
        self.handed: dict[Any, list[int]] = {}

    def batch(self, rows: Iterable[Row]) -> Fed:
        fed = Fed()
        for row in sorted(rows, key=lambda row: row.time) if self.by_time else rows:
            handed = self.handed.setdefault(row.key, [])
            if row.time + self.lateness <= self.watermark:
                fed.late.append(row.id)
            elif all(abs(row.time - time) >= self.within for time in handed):
                handed.append(row.time)
                fed.emissions.append(Emission(row.key, row.time, row.time + self.within, row.values, None))
        return fed

    def advance(self, watermark: int) -> Fed:
        self.watermark = max(self.watermark, watermark)
        return Fed()


class JoinModel:
    """Pairs of rows of two inputs by key and window. A row's values are its side, 0 or 1, and its id.

    lateness: of each side. Rows that no window takes are late; those in gaps of windows are late by their own time.
    """

    def __init__(self, windows: Sliding | Cumulative, how: str, lateness: tuple[int, int], coalesce: bool) -> None:
        self.windows, self.how, self.lateness, self.coalesce = windows, how, lateness, coalesce
        self.watermark = MIN
        self.contents: dict[tuple[Any, Window], tuple[list[int], list[int]]] = {}

    def batch(self, rows: Iterable[Row]) -> tuple[list[tuple], list[int]]:
        fired: list[tuple] = []
        late: list[int] = []
        touched: dict[tuple[Any, Window], None] = {}
        for row in rows:
            side, taken = row.values[0], False
            for window in self.windows.assign(row.time):
                if window.end - 1 + self.lateness[side] <= self.watermark:
                    continue
                taken = True
                self.contents.setdefault((row.key, window), ([], []))[side].append(row.id)
                if window.end - 1 <= self.watermark:
                    touched[row.key, window] = None
                    if not self.coalesce:
                        fired += self._fire(row.key, window)
            if not taken and row.time + self.lateness[side] <= self.watermark:
                late.append(row.id)
        if self.coalesce:
            fired = [one for place in touched for one in self._fire(*place)]
        return fired, late

    def advance(self, watermark: int) -> list[tuple]:
        due = [place for place in self.contents if self.watermark < place[1].end - 1 <= watermark]
        self.watermark = max(self.watermark, watermark)
        return [one for place in sorted(due, key=lambda place: place[1].end) for one in self._fire(*place)]

    def _fire(self, key: Any, window: Window) -> list[tuple]:
        left, right = self.contents[key, window]
        pairs = [(one, other) for one in left for other in right]
        if not right and self.how in ("left", "full"):
            pairs = [(one, None) for one in left]
        if not left and self.how in ("right", "full"):
            pairs = [(None, other) for other in right]
        return [(key, *window, *pair) for pair in pairs]
