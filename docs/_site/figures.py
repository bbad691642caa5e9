"""The figures of "Windows in pictures": what fastwin itself gives for a few elements, drawn as SVG."""

import io
from typing import Any

import matplotlib as mpl
import pyarrow as pa
from matplotlib.figure import Figure

import fastwin as fw
from fastwin.testing import WindowHarness

__all__ = ["figures"]

SECONDS = [3, 8, 14, 27, 31, 33, 58]
DOT, BAR, FIRED, LATE, QUIET = "#1a237e", "#9fa8da", "#00796b", "#c62828", "#cfd8dc"


def figures() -> dict[str, bytes]:
    """Returns each figure as SVG, by its name."""
    assigners = {
        "tumbling": fw.TumblingEventTimeWindows.of("20 s"),
        "sliding": fw.SlidingEventTimeWindows.of("40 s", "20 s"),
        "cumulative": fw.CumulativeEventTimeWindows.of("60 s", "20 s"),
        "session": fw.EventTimeSessionWindows.with_gap("10 s"),
    }
    made = {name: _bars(_windows(assigner)) for name, assigner in assigners.items()}
    clicks = fw.key_by().event_time("ts")
    counted = clicks.count_window(3)
    whole = clicks.window(fw.GlobalWindows.create()).trigger(fw.CountTrigger.of(3))
    made |= {
        "count": _bars(_members(counted)),
        "global": _bars(_members(whole)),
        "triggers": _triggers(),
        "watermark": _watermark(),
        "lateness": _lateness(),
        "merging": _merging(),
        "panes": _panes(),
    }
    with mpl.rc_context({"svg.hashsalt": "fastwin", "svg.fonttype": "none", "font.size": 9}):
        return {name: _svg(figure) for name, figure in made.items()}


def _svg(figure: Figure) -> bytes:
    out = io.BytesIO()
    figure.savefig(out, format="svg", metadata={"Date": None}, bbox_inches="tight")
    return out.getvalue()


def _table(seconds: list[int]) -> pa.Table:
    return pa.table({"ts": [1000 * second for second in seconds], "second": seconds})


def _windows(assigner: fw.WindowAssigner, seconds: list[int] = SECONDS) -> list[tuple[float, float, str]]:
    """Returns start, end and count of the windows, seconds."""
    spec = fw.key_by().event_time("ts").window(assigner).aggregate(n=fw.Count())
    rows = spec.run(_table(seconds)).main.to_pylist()
    return [(row["window_start"].timestamp(), row["window_end"].timestamp(), str(row["n"])) for row in rows]


def _members(spec: fw.WindowSpec) -> list[tuple[float, float, str]]:
    """Returns from where to where the elements of each firing reach, and how many they are."""
    rows = spec.aggregate(seconds=fw.Collect("second")).run(_table(SECONDS)).main["seconds"].to_pylist()
    return [(min(row) - 0.5, max(row) + 0.5, str(len(row))) for row in rows]


def _axes(height: float, low: float = 0, high: float = 80) -> tuple[Figure, Any]:
    figure = Figure(figsize=(4.8, height))
    axes = figure.subplots()
    axes.set_xlim(low, high)
    axes.set_yticks([])
    axes.set_xlabel("event time, seconds")
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)
    return figure, axes


def _bar(axes: Any, start: float, end: float, y: float, text: str, color: str = BAR) -> None:
    axes.barh(y, end - start, left=start, height=0.7, color=color, edgecolor="white")
    axes.text((start + end) / 2, y, text, ha="center", va="center")


def _bars(windows: list[tuple[float, float, str]]) -> Figure:
    """Draws elements as dots, and below them each window with its count, in rows where none overlap."""
    rows: list[float] = []
    placed = []
    for start, end, text in sorted(windows):
        row = next((row for row, taken in enumerate(rows) if taken <= start), len(rows))
        rows[row : row + 1] = [end]
        placed.append((start, end, text, row))
    figure, axes = _axes(1.0 + 0.3 * len(rows), min(0.0, *(start for start, *_ in placed)))
    axes.plot(SECONDS, [0] * len(SECONDS), "o", color=DOT)
    for start, end, text, row in placed:
        _bar(axes, start, end, -1 - row, text)
    axes.set_ylim(-0.6 - len(rows), 0.6)
    return figure


def _triggers() -> Figure:
    """Draws when five triggers fire a window of a minute, with what it holds then, while the watermark follows."""
    minute = fw.key_by().event_time("ts").window(fw.TumblingEventTimeWindows.of("60 s"))
    chosen: list[tuple[str, fw.Trigger]] = [
        ("EventTimeTrigger()\nthe default", fw.EventTimeTrigger()),
        ("CountTrigger.of(2)", fw.CountTrigger.of(2)),
        ("PurgingTrigger.of(\nCountTrigger.of(2))", fw.PurgingTrigger.of(fw.CountTrigger.of(2))),
        ('ContinuousEventTimeTrigger\n.of("20 s")', fw.ContinuousEventTimeTrigger.of("20 s")),
        ("after_watermark(\nearly=CountTrigger.of(3))", fw.after_watermark(early=fw.CountTrigger.of(3))),
    ]
    figure, axes = _axes(3.4, 0, 66)
    axes.plot(SECONDS, [0.2] * len(SECONDS), "o", color=DOT)
    for row, (_, trigger) in enumerate(chosen):
        harness = WindowHarness(minute.trigger(trigger).aggregate(n=fw.Count()))
        _bar(axes, 0, 60, -1 - row, "", QUIET)
        for second in range(61):
            fired = [one for at in SECONDS if at == second for one in harness.push({"ts": 1000 * at})]
            fired += harness.advance_watermark(1000 * second)
            for emission in fired:
                axes.plot([second], [-1 - row], "v", color=FIRED, markersize=11)
                axes.annotate(str(emission.value["n"]), (second, -1.38 - row), ha="center", va="top", fontsize=8)
    axes.set_yticks([0.2, *(-1 - row for row in range(len(chosen)))], ["elements", *(name for name, _ in chosen)])
    axes.set_ylim(-0.8 - len(chosen), 0.7)
    return figure


ARRIVALS = [2, 6, 4, 12, 9, 15, 3, 21, 18, 26]


def _watermark() -> Figure:
    """Draws event times in order of arrival, the watermark behind them, and the element that is late."""
    windows = fw.key_by().event_time("ts").window(fw.TumblingEventTimeWindows.of("5 s"))
    stream = windows.side_output_late_data().aggregate(n=fw.Count()).open(watermark="5 seconds")
    figure = Figure(figsize=(4.8, 3.2))
    axes = figure.subplots()
    marks = []
    for place, second in enumerate(ARRIVALS, 1):
        late = stream.process(pa.table({"ts": [1000 * second]})).late.num_rows
        axes.plot([place], [second], "X" if late else "o", color=LATE if late else DOT, markersize=8)
        marks.append(stream.watermark / 1000)
    axes.step(range(1, len(marks) + 1), marks, where="post", color=FIRED, label="watermark: newest less 5 s")
    axes.plot([], [], "o", color=DOT, label="in time")
    axes.plot([], [], "X", color=LATE, label="late: its window has gone")
    axes.set_xlabel("order of arrival")
    axes.set_ylabel("event time, seconds")
    axes.legend(frameon=False)
    return figure


def _lateness() -> Figure:
    """Draws the life of a window of 20 seconds with an allowed lateness of 20 seconds, over the watermark."""
    spec = fw.key_by().event_time("ts").window(fw.TumblingEventTimeWindows.of("20 s")).allowed_lateness("20 s")
    harness = WindowHarness(spec.side_output_late_data().aggregate(n=fw.Count()))
    figure, axes = _axes(1.7, 0, 60)
    for start, end, text, color in (
        (0, 20, "open", BAR),
        (20, 40, "kept for late rows", "#b2dfdb"),
        (40, 60, "gone", QUIET),
    ):
        _bar(axes, start, end, 0, text, color)
    for watermark, second in ((4, 5), (12, 15), (20, None), (28, 7), (50, 9)):
        fired = harness.advance_watermark(1000 * watermark - 1)
        if second is not None:
            fired += harness.push({"ts": 1000 * second})
            late = bool(harness.late)
            axes.plot([watermark], [0.9], "X" if late else "o", color=LATE if late else DOT)
            axes.annotate("late" if late else f"{second} s", (watermark, 1.15), ha="center", fontsize=8)
        for emission in fired:
            axes.plot([watermark], [-0.8], "^", color=FIRED, markersize=9)
            axes.annotate(f"fires: {emission.value['n']}", (watermark, -1.5), ha="center", fontsize=8)
    axes.set_xlabel("watermark, seconds")
    axes.set_ylim(-1.7, 1.6)
    return figure


def _merging() -> Figure:
    """Draws two sessions, and what they are when an element has come between them."""
    gap = fw.EventTimeSessionWindows.with_gap("15 s")
    figure, axes = _axes(2.0, 0, 50)
    for y, seconds in ((0, [3, 23]), (-2.2, [3, 23, 12])):
        axes.plot(seconds, [y + 0.75] * len(seconds), "o", color=DOT)
        for start, end, text in _windows(gap, seconds):
            _bar(axes, start, end, y, text)
    axes.plot([12], [-1.45], "o", color=LATE)
    axes.set_yticks([0, -2.2], ["3 s and 23 s have come", "then 12 s comes"])
    axes.set_ylim(-2.8, 1.2)
    return figure


def _panes() -> Figure:
    """Draws the slices of sliding windows, and the windows as sums of them."""
    figure, axes = _axes(3.0)
    axes.plot(SECONDS, [0.2] * len(SECONDS), "o", color=DOT)
    for start, end, text in _windows(fw.TumblingEventTimeWindows.of("10 s")):
        _bar(axes, start, end, -1, text, "#b2dfdb")
    windows = [one for one in _windows(fw.SlidingEventTimeWindows.of("40 s", "10 s")) if one[0] >= 0]
    for row, (start, end, text) in enumerate(sorted(windows)):
        _bar(axes, start, end, -2 - row, text)
    axes.set_yticks([0.2, -1, -2 - len(windows) / 2], ["elements", "slices\n(the state)", "windows\n(sums of slices)"])
    axes.set_xlim(0, 100)
    axes.set_ylim(-2 - len(windows), 0.8)
    return figure
