"""Draws a Recording with matplotlib."""

from __future__ import annotations

import io
from dataclasses import dataclass
from datetime import UTC
from typing import Any

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from fastwin.timeline.layout import Panel, keys_of, panel, reach
from fastwin.timeline.recording import Fired, Recording
from fastwin.timeline.theme import COLOURS, with_dark_screens
from fastwin.times import FIRST_DATE_MS, LAST_DATE_MS
from fastwin.windows.localclock import known_zone

__all__ = ["rendered"]

_WIDTH, _UNIT, _TALLEST = 7.2, 0.27, 24.0  # inches: of the figure, of a unit of height, of the whole
_LEFT, _RIGHT, _TOP, _BOTTOM, _BETWEEN = 0.35, 0.12, 0.42, 0.52, 0.34
_SIZE = 9  # points
_LETTER = 0.078  # inches, of a letter of that size
_MARK = 0.12  # inches, that the mark of a firing takes
_DAY = 86_400_000
_UNITS = ((5_000, 1, "milliseconds"), (600_000, 1_000, "seconds"), (36_000_000, 60_000, "minutes"))
_STYLE = {
    "text.parse_math": False,
    "svg.hashsalt": "fastwin",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": _SIZE,
    "text.color": COLOURS["ink"],
    "axes.edgecolor": COLOURS["ink"],
    "axes.labelcolor": COLOURS["ink"],
    "axes.facecolor": COLOURS["ground"],
    "xtick.color": COLOURS["ink"],
    "ytick.color": COLOURS["ink"],
}


def rendered(recording: Recording, form: str) -> bytes:
    """Returns the picture. form: ``"svg"``, ``"png"`` or ``"pdf"``."""
    with mpl.rc_context(_STYLE):
        figure = _figure(recording)
        out = io.BytesIO()
        about: dict[str, Any] = {"Date": None} if form == "svg" else {}
        figure.savefig(out, format=form, facecolor=COLOURS["ground"], dpi=144, metadata=about)
    return with_dark_screens(out.getvalue().decode()).encode() if form == "svg" else out.getvalue()


@dataclass(frozen=True)
class _Axis:
    """The horizontal axis. low, high: ms. scale: ms in a unit of it. name: of the unit; None: dates."""

    low: int
    high: int
    scale: float
    name: str | None

    def at(self, ms: float) -> float:
        """Returns the place of a time, at most just outside of the axis."""
        beyond = self.high - self.low
        return min(max(ms, self.low - beyond), self.high + beyond) / self.scale

    def inches(self, length: float) -> float:
        """Returns how many ms an inch takes, times ``length``."""
        return length * (self.high - self.low) / (_WIDTH - _LEFT - _RIGHT)


def _axis(recording: Recording) -> _Axis:
    low, high = reach(recording)
    if max(abs(low), abs(high)) > 10 * _DAY:
        return _Axis(low, high, _DAY, None if low >= FIRST_DATE_MS and high <= LAST_DATE_MS else "days")
    scale, name = next((one[1:] for one in _UNITS if high - low <= one[0]), (3_600_000, "hours"))
    return _Axis(low, high, scale, name)


def _figure(recording: Recording) -> Figure:
    axis = _axis(recording)
    panels = [panel(recording, key, lambda bar: _room(bar, axis)) for key in keys_of(recording)]
    heights = [one.height * _UNIT for one in panels]
    shrunk = min(1.0, _TALLEST / max(sum(heights), 1))
    heights = [height * shrunk for height in heights]
    whole = _TOP + sum(heights) + _BETWEEN * (len(panels) - 1) + _BOTTOM
    figure = Figure(figsize=(_WIDTH, whole))
    FigureCanvasAgg(figure)
    top = whole - _TOP
    for number, (one, height) in enumerate(zip(panels, heights, strict=True)):
        place = (_LEFT / _WIDTH, (top - height) / whole, 1 - (_LEFT + _RIGHT) / _WIDTH, height / whole)
        axes = figure.add_axes(place)
        _draw(axes, one, axis, recording.ordered)
        _name(axes, one, recording, axis, last=number == len(panels) - 1)
        top -= height + _BETWEEN
    _legend(figure, panels, 1 - 0.04 / whole)
    return figure


def _room(bar: Fired, axis: _Axis) -> tuple[float, float]:
    """Returns from where to where, ms, a bar reaches with its text, which stands beside the bar if it is too long."""
    begin, end = _ends(bar, axis)
    middle, text = _text_place(bar, axis), axis.inches(len(_label(bar)) * _LETTER + 0.25)
    return min(begin, middle - text / 2), max(end, middle + text / 2)


def _ends(bar: Fired, axis: _Axis) -> tuple[int, int]:
    return (axis.low if bar.start_ms is None else bar.start_ms), (axis.high if bar.end_ms is None else bar.end_ms)


def _text_place(bar: Fired, axis: _Axis) -> float:
    """Returns where the middle of a bar's text lies, ms: in the bar, or beside it where the mark would hide it."""
    begin, end = _ends(bar, axis)
    text, mark = axis.inches(len(_label(bar)) * _LETTER), axis.inches(_MARK)
    begin, end = max(begin, axis.low), min(end, axis.high)
    if text + mark <= end - begin or bar.end_ms is None:
        return min(max((begin + end) / 2, axis.low + text / 2), axis.high - text / 2)
    if end + mark + text <= axis.high:
        return end + mark + text / 2
    return max(begin - mark / 2 - text / 2, axis.low + text / 2)


def _draw(axes: Any, one: Panel, axis: _Axis, ordered: bool) -> None:
    axes.set_xlim(axis.low / axis.scale, axis.high / axis.scale)
    axes.set_ylim(one.height, 0)
    axes.set_yticks([])
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)
    bounds = {bound for bar, _ in one.bars for bound in (bar.start_ms, bar.end_ms) if bound is not None}
    if len(bounds) <= 24:
        for bound in bounds:
            axes.axvline(axis.at(bound), color=COLOURS["guide"], linewidth=0.8, zorder=1)
    if one.path:
        times, heights = [axis.at(time) for time, _ in one.path], [height for _, height in one.path]
        axes.fill_betweenx(heights, axis.at(axis.low), times, color=COLOURS["past"], linewidth=0, zorder=0)
        axes.plot(times, heights, color=COLOURS["watermark"], linewidth=1.6, zorder=2)
    for bar, height in one.bars:
        _bar(axes, bar, height, axis)
    kinds = {
        "in time": ("o", "dot", "dot"),
        "late": ("X", "late dot", "late dot"),
        "in no window": ("o", "ground", "dot"),
    }
    for dot, height in one.dots:
        marker, inside, edge = kinds[dot.kind]
        axes.plot(
            [axis.at(dot.time_ms)],
            [height],
            marker,
            markersize=7.5 if marker == "X" else 6.5,
            markerfacecolor=COLOURS[inside],
            markeredgecolor=COLOURS[edge],
            markeredgewidth=0.8,
            zorder=5,
            clip_on=False,
        )


def _bar(axes: Any, bar: Fired, height: float, axis: _Axis) -> None:
    begin, end = _ends(bar, axis)
    left, right = axis.at(begin), axis.at(end)
    look = {"color": COLOURS[bar.timing], "edgecolor": COLOURS["ground"], "linewidth": 1.0}
    axes.barh(height, right - left, left=left, height=0.76, zorder=3, **look)
    if bar.end_ms is not None:
        axes.plot([right], [height], "<", color=COLOURS[f"{bar.timing} mark"], markersize=6, zorder=4, clip_on=False)
    middle = axis.at(_text_place(bar, axis))
    axes.text(middle, height, _label(bar), ha="center", va="center_baseline", zorder=6)


def _label(bar: Fired) -> str:
    return f"{bar.name} {bar.text}" if bar.name else bar.text


def _name(axes: Any, one: Panel, recording: Recording, axis: _Axis, *, last: bool) -> None:
    """Writes what the axes are, and whose panel it is."""
    if recording.key_names:
        told = ", ".join(f"{name} {value}" for name, value in zip(recording.key_names, one.key, strict=True))
        axes.set_title(told, loc="left", fontsize=_SIZE, fontweight="bold", pad=4)
    if recording.ordered:
        axes.set_ylabel("order of arrival →", rotation=270, labelpad=12)
    if axis.name is None:
        known = known_zone(recording.zone)
        zone = known or UTC
        locator = AutoDateLocator(tz=zone, minticks=3, maxticks=8)
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=zone))
        axes.xaxis.get_offset_text().set_visible(last)
        label = f"{recording.axis}, {'UTC' if known is None else recording.zone}"
    else:
        axes.xaxis.set_major_locator(MaxNLocator(9, steps=[1, 2, 5, 10], integer=True))
        label = f"{recording.axis}, {axis.name}"
    axes.tick_params(labelbottom=last)
    if last:
        axes.set_xlabel(label)


def _legend(figure: Figure, panels: list[Panel], top: float) -> None:
    """Says what the marks are that are there."""
    seen = {dot.kind for one in panels for dot, _ in one.dots}
    timings = {bar.timing for one in panels for bar, _ in one.bars}
    handles: list[Any] = []
    for kind, marker, inside, edge, text in (
        ("in time", "o", "dot", "dot", "element"),
        ("late", "X", "late dot", "late dot", "late element"),
        ("in no window", "o", "ground", "dot", "element in no window"),
    ):
        if kind in seen:
            look: dict[str, Any] = {"color": COLOURS[edge], "markerfacecolor": COLOURS[inside], "linestyle": ""}
            handles.append(Line2D([], [], marker=marker, label=text, **look))
    if any(one.path for one in panels):
        handles.append(Line2D([], [], color=COLOURS["watermark"], label="watermark"))
    texts = {
        "on time": "window fires" if timings == {"on time"} else "fires on time",
        "early": "fires early",
        "late": "fires again, late",
        "deleted": "is deleted",
    }
    handles += [Patch(color=COLOURS[timing], label=text) for timing, text in texts.items() if timing in timings]
    if handles:
        spaces = {"borderaxespad": 0.2, "handletextpad": 0.5, "columnspacing": 1.4}
        place = {"loc": "upper center", "bbox_to_anchor": (0.5, top), "ncols": len(handles)}
        figure.legend(handles=handles, frameon=False, **place, **spaces)
