"""How cost grows with events, keys, slices and changed rows, one at a time: ``python -m bench.growth``.

Prints a table, and writes results/growth.json and results/growth.png. Times are those that the processor spent on it.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastwin as fw
from bench.events import EPOCH_MS, SPAN_MS, events
from fastwin.run.stream import open_plan

__all__ = ["main"]

RESULTS = Path(__file__).parent / "results"
MINUTE, SLIDE = 60_000, 180_000
MILLION = 1_000_000
# Stretches of the sliding stream: at least so many windows fire before anything counts.
FIRED_FIRST = 40
Point = dict[str, Any]


def _spec(assigner: fw.WindowAssigner) -> fw.WindowSpec:
    spec = fw.key_by("key").event_time("ts").window(assigner)
    return spec.aggregate(n=fw.Count(), s=fw.Sum("value"), lo=fw.Min("value"), hi=fw.Max("value"))


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    # Time of this process: a curve takes minutes, in which others may come and go on the machine.
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def by_events(count: int, keys: int = 100_000) -> Point:
    """Tumbling minutes over a stream of batches of 1 M, the watermark following: ns an event."""
    stream, seconds, step = (
        _spec(fw.TumblingEventTimeWindows.of(MINUTE)).open(watermark="1 second"),
        0.0,
        min(count, MILLION),
    )
    span = SPAN_MS * step // (4 * MILLION)
    for at in range(count // step):
        table = events(step, keys, span_ms=span, seed=at, first_ms=EPOCH_MS + at * span)
        seconds += _timed(lambda table=table: stream.process(table))[0]
    seconds += _timed(lambda: stream.advance_watermark(fw.MAX_TIMESTAMP))[0]
    return {"x": count, "ns an event": seconds / count * 1e9}


def by_keys(keys: int) -> Point:
    """Tumbling minutes over one table of 4 M events: ns an event."""
    table, spec = events(4 * MILLION, keys), _spec(fw.TumblingEventTimeWindows.of(MINUTE))
    seconds = min(_timed(lambda: spec.run(table))[0] for _ in range(3))
    return {"x": keys, "ns an event": seconds / len(table) * 1e9}


def by_slices(slices: int, slide: int = SLIDE, keys: int = 1_000, fired_steps: int = 480) -> Point:
    """Windows sliding by 3 minutes, 2 events a key and slide: ns an event in process, ns a fired row in advance."""
    stream = _spec(fw.SlidingEventTimeWindows.of(slices * slide, slide)).open()
    first = EPOCH_MS - EPOCH_MS % slide
    warm = max(slices, FIRED_FIRST)
    processing = advancing = worst = 0.0
    fed = fired = 0
    for step in range(warm + max(fired_steps, slices + slices // 2)):
        table = events(2 * keys, keys, span_ms=slide, seed=step, first_ms=first + step * slide)
        spent, _ = _timed(lambda table=table: stream.process(table))
        waited, result = _timed(lambda step=step: stream.advance_watermark(first + (step + 1) * slide - 1))
        if step >= warm:
            processing, fed = processing + spent, fed + len(table)
            advancing, fired, worst = advancing + waited, fired + result.main.num_rows, max(worst, waited)
    metrics = stream.metrics
    return {
        "x": slices,
        "ns an event": processing / fed * 1e9,
        "ns a fired row": advancing / fired * 1e9,
        "worst step ms": worst * 1e3,
        "state rows": metrics.state_rows,
        "state bytes": metrics.state_bytes,
        "snapshot bytes": len(stream.snapshot()),
    }


def a_day_by_the_second(keys: int = 10) -> Point:
    """86,400 slices: one event a key and second for a day and a half, the watermark moving by the minute."""
    stream = _spec(fw.SlidingEventTimeWindows.of("1 day", "1 second")).open()
    first, minutes, seconds, fired = EPOCH_MS, 36 * 60, 0.0, 0
    for minute in range(minutes):
        begin = first + minute * MINUTE
        table = events(60 * keys, keys, span_ms=MINUTE, seed=minute, first_ms=begin)
        seconds += _timed(lambda table=table: stream.process(table))[0]
        spent, result = _timed(lambda begin=begin: stream.advance_watermark(begin + MINUTE - 1))
        seconds, fired = seconds + spent, fired + result.main.num_rows
    metrics = stream.metrics
    return {
        "x": 86_400,
        "events": 60 * keys * minutes,
        "fired": fired,
        "seconds": seconds,
        "ns a fired row": seconds / fired * 1e9,
        "state rows": metrics.state_rows,
        "state bytes": metrics.state_bytes,
    }


def by_changes(changed: int, rows: int = MILLION) -> Point:
    """A delta of some changed rows of 1 M: ns a changed row, and bytes."""
    stream = _spec(fw.TumblingEventTimeWindows.of(MINUTE)).open()
    table = events(4 * rows, rows, span_ms=MINUTE // 2)
    stream.process(table)
    stream.snapshot()
    best, size = float("inf"), 0
    for _ in range(3):
        stream.process(table.slice(0, changed))
        spent, delta = _timed(stream.delta)
        best, size = min(best, spent), len(delta)
    return {"x": changed, "ns a changed row": best / changed * 1e9, "delta bytes": size}


def beside_general(keys: int = 20, hours: int = 2) -> list[Point]:
    """What both operators hold after the same events: windows of 480 slices."""
    table = events(keys * hours * 40, keys, span_ms=hours * 20 * SLIDE)
    spec, found = _spec(fw.SlidingEventTimeWindows.of(480 * SLIDE, SLIDE)), []
    for name in ("aligned", "general"):
        stream = open_plan(fw.plan(spec, table.schema, general=name == "general"))
        seconds, _ = _timed(lambda stream=stream: stream.process(table))
        metrics = stream.metrics
        found.append(
            {
                "x": name,
                "ns an event": seconds / len(table) * 1e9,
                "state rows": metrics.state_rows,
                "timers": metrics.timers,
                "snapshot bytes": len(stream.snapshot()),
            }
        )
    return found


def _draw(found: dict[str, list[Point]], target: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    shown = {name: points for name, points in found.items() if len(points) > 2}
    figure, axes = plt.subplots(1, len(shown), figsize=(3.6 * len(shown), 3.2), layout="constrained")
    for axis, (name, points) in zip(axes, shown.items(), strict=True):
        for measure in [key for key in points[0] if key.startswith("ns ")]:
            axis.plot([point["x"] for point in points], [point[measure] for point in points], "o-", label=measure)
        axis.set_xscale("log")
        axis.set_ylim(bottom=0)
        axis.set_title(name, fontsize=9, loc="left")
        axis.legend(fontsize=8, frameon=False)
        axis.grid(color="#dddddd", linewidth=0.6)
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
    figure.savefig(target, dpi=110)


def main() -> None:
    """Measures, prints and keeps everything."""
    parser = argparse.ArgumentParser(prog="python -m bench.growth", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes: only shows that everything runs")
    quick = parser.parse_args().quick
    many = 1 if quick else 4
    plans: dict[str, list[Callable[[], Point]]] = {
        "events": [lambda n=n: by_events(n * MILLION) for n in (1, 2, 4, 8, 16, 32, 64)[: 2 * many - 1]],
        "keys": [lambda n=n: by_keys(n) for n in (1_000, 10_000, 100_000, MILLION, 5 * MILLION)[: many + 1]],
        "slices in a window": [lambda n=n: by_slices(n) for n in (2, 20, 120, 480, 1_440)[: many + 1]],
        "changed rows, of 1 M": [lambda n=n: by_changes(n) for n in (1_000, 10_000, 100_000, MILLION)[:many]],
        "a day by the second": [a_day_by_the_second][: many // 4],
    }
    found: dict[str, list[Point]] = {}
    for name, works in plans.items():
        found[name] = []
        for work in works:
            found[name].append(work())
            print(f"{name}: {_line(found[name][-1])}", flush=True)
    found["480 slices, after the same events"] = beside_general()
    for point in found["480 slices, after the same events"]:
        print(f"480 slices: {_line(point)}")
    if not quick:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "growth.json").write_text(json.dumps(found, indent=1) + "\n")
        _draw(found, RESULTS / "growth.png")


def _line(point: Point) -> str:
    return ", ".join(
        f"{name} {value}" if isinstance(value, str) else f"{name} {value:,.1f}" for name, value in point.items()
    ).removeprefix("x ")


if __name__ == "__main__":
    main()
