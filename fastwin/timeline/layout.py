"""Where things of a timeline lie: rows from top to bottom, and bars side by side where they do not overlap."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from fastwin.timeline.recording import Arrived, Fired, Moved, Recording
from fastwin.times import MAX_TIMESTAMP, MIN_TIMESTAMP

__all__ = ["Panel", "keys_of", "panel", "reach"]

DOT_ROW, BAR_ROW, GAP = 0.62, 1.0, 0.25
"""Heights of a row of elements, of a row of bars, and of what is between one and the other."""

_FAR = 0.2  # of the whole: how far beyond all else a watermark is still shown


@dataclass
class Panel:
    """What is drawn for one key. Heights count from the top downward.

    dots, bars: with the height of their middle. path: the watermark, as corners (time in ms, height).
    """

    key: tuple[Any, ...]
    dots: list[tuple[Arrived, float]] = field(default_factory=list)
    bars: list[tuple[Fired, float]] = field(default_factory=list)
    path: list[tuple[int, float]] = field(default_factory=list)
    height: float = GAP


def keys_of(recording: Recording) -> list[tuple[Any, ...]]:
    """Returns the keys, in the order in which they came."""
    return list({repr(one.key): one.key for one in recording.entries if not isinstance(one, Moved)}.values())


def reach(recording: Recording) -> tuple[int, int]:
    """Returns the first and the last time, ms, that the axis has to show."""
    times: list[int] = []
    for one in recording.entries:
        if isinstance(one, Arrived):
            times.append(one.time_ms)
        elif isinstance(one, Fired):
            times += [bound for bound in (one.start_ms, one.end_ms) if bound is not None]
    low, high = min(times, default=0), max(times, default=1)
    far = round(_FAR * (high - low))
    near = [one.watermark_ms for one in recording.entries if isinstance(one, Moved)]
    near = [time for time in near if low - far <= time <= high + far]
    low, high = min([low, *near]), max([high, *near])
    edge = max(1, round(0.03 * (high - low)))
    return low - edge, high + edge


def panel(recording: Recording, key: tuple[Any, ...], room: Callable[[Fired], tuple[float, float]]) -> Panel:
    """Places what is known of a key.

    room: returns from where to where a bar reaches with its text; bars that overlap are put into rows of their own.
    """
    made = Panel(key)
    waiting: list[Fired] = []
    watermark = MIN_TIMESTAMP
    last: type | None = None
    for one in recording.entries:
        if isinstance(one, Fired):
            if one.key == key:
                waiting.append(one)
            continue
        if isinstance(one, Arrived) and one.key != key:
            continue
        if waiting:
            _place(made, waiting, room)
            waiting, last = [], Fired
        if isinstance(one, Moved):
            _move(made, watermark, one.watermark_ms)
            watermark = one.watermark_ms
            continue
        if recording.ordered or last is not Arrived:
            made.height += DOT_ROW
        made.dots.append((one, made.height - DOT_ROW / 2))
        last = Arrived
    _place(made, waiting, room)
    made.height += GAP
    if watermark > MIN_TIMESTAMP:
        made.path.append((watermark, made.height))
    return made


def _move(made: Panel, before: int, after: int) -> None:
    """Adds a step of the watermark at the height that has been reached."""
    at = made.height + (GAP / 2 if after == MAX_TIMESTAMP else 0)
    made.height = at
    made.path += [(before, at), (after, at)]


def _place(made: Panel, bars: Iterable[Fired], room: Callable[[Fired], tuple[float, float]]) -> None:
    """Adds bars, each in the first row of windows of its name where it overlaps with no other."""
    named: dict[str, list[Fired]] = {}
    for one in bars:
        named.setdefault(one.name, []).append(one)
    for alike in named.values():
        rows: list[list[tuple[float, float]]] = []
        for one in alike:
            begin, end = room(one)
            free = (n for n, row in enumerate(rows) if all(end <= first or last <= begin for first, last in row))
            number = next(free, len(rows))
            if number == len(rows):
                rows.append([])
            rows[number].append((begin, end))
            made.bars.append((one, made.height + BAR_ROW * (number + 0.5)))
        made.height += BAR_ROW * len(rows)
