"""The matrix: one thing changed at a time, each for 1 to 5 M keys: ``python -m bench.matrix``.

Every cell asks fastwin, on one thread and on two, and polars, DuckDB, DataFusion and chDB on two. They take turns after
their answers were compared, and medians count. Prints a table, writes results/matrix.json, and draws the heat map
results/matrix.png. ``--quick`` takes small sizes, ``--only TEXT`` chooses cells; both write matrix-partial instead.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench import heatmap, host, peers, scale
from bench.events import EPOCH_MS, SPAN_MS, events, text_keys
from bench.questions import Dialect, Question, Window, fingerprint
from bench.race import OURS, TWO, Contender, Entry, Unavailable, compete

__all__ = ["ROWS", "Cell", "cells", "main", "measure"]

RESULTS = Path(__file__).parent / "results"
SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
BASE = Window(MINUTE)
FOUR = (("n", "count", None), ("s", "sum", "value"), ("lo", "min", "value"), ("hi", "max", "value"))
BOTH = (("n", "count", None), ("s", "sum", "value"), ("lo", "min", "other"), ("hi", "max", "other"))
OTHERS = (("s2", "sum", "other"), ("lo2", "min", "other"), ("hi2", "max", "other"))
EIGHT = (*FOUR, ("m", "mean", "value"), *OTHERS)
DIALECTS = {
    "DuckDB": (peers.on_duckdb, Dialect("({} // {})", "sum({})::BIGINT", "range({}) AS numbers(o)")),
    "DataFusion": (peers.on_datafusion, Dialect()),
    "chDB": (
        peers.on_chdb,
        Dialect("intDiv({}, {})", numbers="(SELECT toInt64(number) AS o FROM numbers({})) AS numbers"),
    ),
}


@dataclass(frozen=True)
class Row:
    """A row of the matrix: what differs from the base, which is all the defaults.

    columns: the places in ``keys()`` that are measured; others say nothing new or do not fit into memory.
    """

    label: str
    window: Window = BASE
    aggregates: tuple = FOUR
    key: str = "int"
    values: str = "int"
    order: str = "sorted"
    span_ms: int = SPAN_MS
    columns: tuple[int, ...] = (0, 1, 2, 3)


ROWS = (
    Row("the base: int key, int64, 4 aggregates, 1 min"),
    Row("string key", key="string"),
    Row("two key columns", key="two"),
    Row("float64 with nulls", values="nulls"),
    Row("two value columns, int64 and float64", aggregates=BOTH, values="both"),
    Row("one aggregate", aggregates=FOUR[1:2]),
    Row("eight aggregates over two columns", aggregates=EIGHT, values="both"),
    Row("2 minutes of disorder", order="disorder"),
    Row("random over a day", order="random", span_ms=DAY),
    Row("newest first", order="newest first"),
    Row("one window", Window(DAY)),
    Row("500 windows", Window(SECOND)),
    Row("50,000 windows", Window(10), columns=(0, 1)),
    Row("sliding, 20 windows an event", Window(HOUR, 3 * MINUTE), span_ms=HOUR, columns=(0, 1, 2)),
    Row("sliding, 480 windows an event", Window(DAY, 3 * MINUTE), span_ms=HOUR, columns=(0, 1)),
    Row("sessions", Window(10 * SECOND, gap=True)),
    Row("sessions, 2 minutes of disorder", Window(10 * SECOND, gap=True), order="disorder", columns=(1, 2, 3)),
    Row("sessions, string key", Window(10 * SECOND, gap=True), key="string", columns=(1, 2)),
    Row("sessions, float64 with nulls", Window(10 * SECOND, gap=True), values="nulls", columns=(1, 2)),
    Row("nulls and disorder", values="nulls", order="disorder", columns=(1, 2, 3)),
    Row("string key, random over a day", key="string", order="random", span_ms=DAY, columns=(1, 2)),
)  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """A row of the matrix for so many keys."""

    row: Row
    keys: int

    @property
    def label(self) -> str:
        return f"{self.row.label}, {scale.amount(self.keys)} key{'s' if self.keys > 1 else ''}"

    def question(self) -> Question:
        keys = ("key", "colour") if self.row.key == "two" else ("key",)
        floats = {"int": (), "nulls": ("value",), "both": ("other",)}[self.row.values]
        return Question(keys, self.row.aggregates, self.row.window, floats)

    def table(self, n: int) -> pa.Table:
        """Returns n events: ``key``, for two keys ``colour`` as well, ``ts``, ``value``, for two values ``other``."""
        row, random = self.row, np.random.default_rng(7)
        table = events(n, self.keys, row.span_ms, 2 * MINUTE if row.order == "disorder" else 0)
        if row.order == "random":
            times = pa.array(random.integers(EPOCH_MS, EPOCH_MS + row.span_ms, n), table.schema.field("ts").type)
            table = table.set_column(1, "ts", times)
        # Quarters: sums of them are exact, so answers do not depend on the order of adding.
        floats = random.integers(-4_000, 4_000, n) / 4
        if row.values == "nulls":
            table = table.set_column(2, "value", pa.array(floats, mask=random.random(n) < 0.1))
        elif row.values == "both":
            table = table.append_column("other", pa.array(floats))
        if row.key == "string":
            table = text_keys(table)
        elif row.key == "two":
            number = (table["key"].to_numpy() - 1_000_003) // 7_919
            colours = pc.binary_join_element_wise("colour", pa.array(number % 10).cast(pa.string()), "-")
            table = table.set_column(0, "key", pa.array(number // 10)).append_column("colour", colours)
        return table.take(np.arange(n - 1, -1, -1)) if row.order == "newest first" else table

    def entry(self, n: int) -> Entry:
        question, table = self.question(), self.table(n)

        def answer(result: pa.Table) -> tuple[int, ...]:
            return fingerprint(result, question.columns)

        spec = question.spec()

        def ours(threads: int) -> Contender:
            return Contender(lambda: spec.run(table, threads=threads).main, answer=answer, threads=threads)

        found: dict[str, Contender | Unavailable] = {OURS: ours(1), TWO: ours(2)}
        found["polars"] = peers.on_polars(table, question.by_polars(table), answer)
        for name, (on, dialect) in DIALECTS.items():
            found[name] = on(table, question.sql(dialect), answer)
        return Entry(self.label, n, found)


def keys(size: scale.Scale) -> tuple[int, ...]:
    """How many keys the columns of the matrix have."""
    return 1, 1_000, size.keys, 50 * size.keys


def cells(size: scale.Scale, only: str = "") -> Iterator[Cell]:
    """Yields the cells whose label has a text in it."""
    for row in ROWS:
        for place in row.columns:
            cell = Cell(row, keys(size)[place])
            if only in cell.label:
                yield cell


def measure(cell: Cell, size: scale.Scale) -> dict[str, Any]:
    """Lets the contenders race; returns what is kept of a cell. A peer without the answer is left out, and said."""
    entry = cell.entry(size.events)
    contenders, missing = [], {}
    for name, one in entry.contenders.items():
        if isinstance(one, Unavailable):
            missing[name] = one.reason
    for name, lane in compete(entry, list(entry.contenders), size).items():
        if lane.problem is not None and name in (OURS, TWO):
            raise lane.problem
        if lane.problem is not None:
            missing[name] = f"{type(lane.problem).__name__}: {lane.problem}"[:300]
            continue
        median = statistics.median(lane.seconds)
        contenders.append(
            {
                "name": name,
                "threads": lane.contender.threads,
                "attempts": len(lane.seconds),
                "best_s": min(lane.seconds),
                "median_s": median,
                "rate": entry.units / median,
            }
        )
    return {
        "row": cell.row.label,
        "keys": cell.keys,
        "events": entry.units,
        **ratios(contenders),
        "contenders": contenders,
        "missing": missing,
    }


def ratios(contenders: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns how many times as fast as the fastest peer fastwin was, on one thread and on two."""
    seconds = {one["name"]: one["median_s"] for one in contenders}
    others = {name: value for name, value in seconds.items() if name not in (OURS, TWO)}
    if not others:
        return {"peer": None, "one": None, "two": None}
    peer = min(others, key=others.__getitem__)
    return {"peer": peer, "one": others[peer] / seconds[OURS], "two": others[peer] / seconds[TWO]}


def table(summary: dict[str, Any]) -> str:
    """Returns the matrix as lines of text."""
    told = ", ".join(f"{name} {text}" for name, text in summary["versions"].items())
    machine = summary["machine"]
    names = [OURS, TWO, "polars", *DIALECTS]
    lines = [
        f"{summary['scale']} sizes, medians, M events/s; {machine['cpu']}, {machine['cores']} cores.",
        told,
        "",
        f"{'work':60s}" + "".join(f"{name:>20s}" for name in names) + f"{'best of ours':>14s}",
    ]
    for cell in summary["cells"]:
        rates = {one["name"]: f"{one['rate'] / 1e6:.1f}" for one in cell["contenders"]}
        best = "-" if cell["peer"] is None else f"{max(cell['one'], cell['two']):.2f}x"
        label = f"{cell['row']}, {scale.amount(cell['keys'])} keys"
        lines.append(f"{label:60s}" + "".join(f"{rates.get(name, '-'):>20s}" for name in names) + f"{best:>14s}")
    found = sorted(max(cell["one"], cell["two"]) for cell in summary["cells"] if cell["peer"] is not None)
    if found:
        ahead = sum(ratio >= 1 for ratio in found)
        lines += ["", f"{ahead} of {len(found)} cells at 1.0x or more; the worst {found[0]:.2f}x, the middle "
                  f"{statistics.median(found):.2f}x."]  # fmt: skip
    return "\n".join(lines)


def _run(size: scale.Scale, only: str, keep: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    chosen = list(cells(size, only))
    summary: dict[str, Any] = {
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": host.commit(),
        "scale": size.name,
        "machine": host.about(),
        "versions": host.versions(),
        "cells": [],
    }
    said = set()
    for place, cell in enumerate(chosen, 1):
        found = measure(cell, size)
        summary["cells"].append(found)
        gc.collect()
        ratio = "no peer" if found["peer"] is None else (
            f"{found['one']:.2f}x of {found['peer']} on one thread, {found['two']:.2f}x on two"
        )  # fmt: skip
        print(f"{place}/{len(chosen)} {cell.label}: {ratio}", file=sys.stderr, flush=True)
        for name, reason in found["missing"].items():
            if (name, reason) not in said:
                print(f"  without {name}: {reason}", file=sys.stderr, flush=True)
                said.add((name, reason))
        keep(summary)
    return summary


def main() -> int:
    """Measures, prints and keeps everything."""
    parser = argparse.ArgumentParser(prog="python -m bench.matrix", description=__doc__.splitlines()[0])
    parser.add_argument("json", nargs="?", type=Path, help="a result of an earlier run: only print it and draw it")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that everything runs")
    parser.add_argument("--only", default="", metavar="TEXT", help="cells with a text in their label")
    given = parser.parse_args()
    if given.json is not None:
        summary = json.loads(given.json.read_text())
        print(table(summary))
        heatmap.draw(summary, given.json.with_suffix(".png"))
        return 0
    size = replace(scale.SCALES["quick" if given.quick else os.environ.get(scale.VARIABLE, "full")], patience_s=2.0)
    whole = size.name == "full" and not given.only
    target = RESULTS / ("matrix.json" if whole else "matrix-partial.json")
    RESULTS.mkdir(exist_ok=True)
    unfinished = target.with_suffix(".tmp")
    summary = _run(size, given.only, lambda found: unfinished.write_text(json.dumps(found, indent=1) + "\n") and None)
    if not summary["cells"]:
        print(f"no cell has {given.only!r} in its label", file=sys.stderr)
        return 1
    unfinished.replace(target)
    print(table(summary))
    heatmap.draw(summary, target.with_suffix(".png"))
    print(f"\nSummary: {target}\nHeat map: {target.with_suffix('.png')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
