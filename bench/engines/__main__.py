"""``python -m bench.engines``: the same windows by fastwin, Spark and Flink on this machine's cores.

Each engine is a process of its own for each query. It runs the query once for its answer, and some times to get warm;
then all take turns, and medians count. An engine whose answer differs from that of fastwin is not ranked. Prints a
table, and writes results/engines.json; ``--quick`` and ``--only`` write results/engines-partial.json instead.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import host
from bench.engines import flink
from bench.engines.bids import Bids, make
from bench.engines.crew import Engine
from bench.engines.embedded import SAID
from bench.engines.onspark import ON_FILES
from bench.engines.queries import QUERIES, Query, answer
from bench.race import OURS, Contender, Entry, Unavailable, compete, need
from bench.scale import SCALES, amount

__all__ = ["main", "measure", "table"]

RESULTS = Path(__file__).resolve().parents[1] / "results"
PYTHON = {
    OURS: "stream",
    f"{OURS}, table": "table",
    f"{OURS}, Parquet": "stream-parquet",
    f"{OURS}, table, Parquet": "table-parquet",
}
SPARK = {
    f"{OURS} on Spark": "spark",
    f"{OURS} on Spark, files": "spark-files",
    "Spark, RocksDB": "rocksdb",
    "Spark, HDFS-backed": "hdfs",
}
FLINK = {
    "Flink, heap": ("hashmap", "copy"),
    "Flink, heap, reuse": ("hashmap", "reuse"),
    "Flink, RocksDB": ("rocksdb", "copy"),
}
EMBEDDED = {"chDB": "chdb", "Bytewax": "bytewax", "Pathway": "pathway"}
ENGINES = (*PYTHON, *SPARK, *FLINK, *EMBEDDED)
UNSAID = "nobody has put this question into its words"

SLOW_S = 30.0
"""An engine whose first run takes longer runs once more, and that counts."""
PATIENCE_S = 4 * SLOW_S
"""An engine that has run for so long in all does not run again; those that are not slow get all their attempts."""
MEMORY = "FASTWIN_BENCH_DRIVER_MEMORY"
"""The variable of the environment that says how large the heap of each JVM is."""
HEAP_GB = 4
"""The heap of a JVM where the machine has the memory for all of them, which live side by side."""


@dataclass(frozen=True)
class Size:
    """How much is done. batches: of Spark. warm: runs of each engine before anything counts, beside that for the
    answer. attempts: runs that count."""

    name: str
    events: int
    keys: int
    batches: int
    warm: int
    attempts: int


SIZES = {
    size.name: size for size in (Size("full", 8_000_000, 100_000, 4, 2, 3), Size("quick", 400_000, 10_000, 4, 1, 3))
}


def _heap(names: Iterable[str]) -> str:
    """Returns a heap for each JVM: about half of the machine's memory is for all of their heaps together."""
    machines = sum(name in SPARK or name in FLINK for name in names)
    total_mb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    return f"{max(1_024, min(HEAP_GB << 10, total_mb * 55 // 100 // max(machines, 1)))}m"


def _command(name: str, bids: Bids, query: Query, folder: Path) -> list[str] | Unavailable:
    if name in FLINK:
        return flink.command(bids, query, folder, *FLINK[name])
    if name in SPARK:
        missing = need("pyspark")
        if isinstance(missing, Unavailable):
            return missing
        if SPARK[name] == "spark-files" and query.name not in ON_FILES:
            return Unavailable(UNSAID)
    if name in EMBEDDED:
        if query.name not in SAID[EMBEDDED[name]]:
            return Unavailable(UNSAID)
        missing = need(EMBEDDED[name])
        if isinstance(missing, Unavailable):
            return missing
    kind = (PYTHON | SPARK | EMBEDDED)[name]
    return [sys.executable, "-m", "bench.engines.worker", kind, query.name, str(bids.parquet)]


def measure(query: Query, bids: Bids, size: Size, names: tuple[str, ...], folder: Path) -> dict[str, Any]:
    """Lets the engines race; returns what is kept of a query. What is missing or answers otherwise is told apart."""
    engines: dict[str, Engine] = {}
    contenders: dict[str, Contender | Unavailable] = {}
    missing: dict[str, str] = {}
    answers: dict[str, tuple[int, ...]] = {}
    try:
        for name in names:
            command = _command(name, bids, query, folder)
            if isinstance(command, Unavailable):
                missing[name] = command.reason
                continue
            engines[name] = Engine(name, command, folder)
            target = folder / "answer.bin"
            try:
                took = engines[name].run(str(target))
                answers[name] = answer(query, target, bids.closed_ms)
                if answers[name] != next(iter(answers.values())):
                    raise AssertionError(f"its answer has {answers[name][0]} rows and another fingerprint")
                slow = took > SLOW_S
                for _ in range(0 if slow else size.warm):
                    engines[name].run()
            except (RuntimeError, AssertionError) as problem:
                missing[name] = str(problem)
                engines.pop(name).close()  # its memory is for the others
                continue
            print(f"  {name} is warm", file=sys.stderr, flush=True)
            contenders[name] = Contender(
                lambda engine=engines[name]: (engine.run(), None),
                clocked=True,
                attempts=1 if slow else size.attempts,
                twice=not slow and name not in SPARK and name not in FLINK,  # a JVM keeps its memory
            )
        entry = Entry(query.label, bids.events, contenders)
        lanes = compete(entry, list(contenders), replace(SCALES["quick"], spark_enough_s=PATIENCE_S))
    finally:
        for engine in engines.values():
            engine.close()
    missing |= {name: str(lane.problem) for name, lane in lanes.items() if lane.problem is not None}
    found = [
        {
            "name": name,
            "attempts_s": lane.seconds,
            "median_s": statistics.median(lane.seconds),
            "rate": bids.events / statistics.median(lane.seconds),
            "peak_rss": engines[name].peak_bytes,
        }
        for name, lane in lanes.items()
        if lane.problem is None
    ]
    rows = next(iter(answers.values()), (0,))[0]
    return {
        "query": query.name, "label": query.label, "events": bids.events, "result_rows": rows,
        "engines": found, "missing": missing,
    }  # fmt: skip


def table(summary: dict[str, Any]) -> str:
    """Returns the summary as lines of text; a ratio is fastwin's rate (a stream, in process) beside an engine's."""
    machine = summary["machine"]
    lines = [
        f"{summary['scale']} sizes, medians; {machine['cpu']}, {machine['cores']} cores; "
        f"heaps of {summary['heap']}; load at the start {machine['load_at_start']:.1f}, at the end "
        f"{summary['load_at_end']:.1f}.",
        ", ".join(f"{name} {text}" for name, text in summary["versions"].items()),
    ]
    for query in summary["queries"]:
        lines += ["", f"{query['label']}: {amount(query['events'])} events, {query['result_rows']:,} rows"]
        rates = {one["name"]: one["rate"] for one in query["engines"]}
        for one in query["engines"]:
            ratio = f"{rates[OURS] / one['rate']:8.2f}x" if OURS in rates else " " * 9
            lines.append(
                f"  {one['name']:24s}{amount(one['rate']):>9s} events/s {ratio}"
                f"{one['peak_rss'] / 1e9:8.2f} GB at most, median of {len(one['attempts_s'])}"
            )
        lines += [f"  {name:24s}not ranked: {reason.strip()}" for name, reason in query["missing"].items()]
    return "\n".join(lines)


def main() -> int:
    """Measures, prints and keeps everything."""
    parser = argparse.ArgumentParser(prog="python -m bench.engines", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that everything runs")
    parser.add_argument("--only", default="", metavar="NAME", help=f"one query: {', '.join(QUERIES)}")
    parser.add_argument(
        "--engines", default="", metavar="TEXT", help="engines with one of some texts in their name: 'fastwin|flink'"
    )
    parser.add_argument("--events", type=int, help="how many, instead of those of the size")
    parser.add_argument("--install-flink", action="store_true", help=f"put {flink.PACKAGE} into build/flink")
    given = parser.parse_args()
    if given.install_flink:
        return flink.install()
    chosen = [query for query in QUERIES.values() if given.only in ("", query.name)]
    texts = given.engines.lower().split("|")
    names = tuple(name for name in ENGINES if any(text in name.lower() for text in texts))
    if not chosen or not names:
        parser.error(f"--only: one of {', '.join(QUERIES)}; --engines: a part of {'; '.join(ENGINES)}")
    os.environ.setdefault(MEMORY, _heap(names))
    size = SIZES["quick" if given.quick else "full"]
    whole = not (given.quick or given.only or given.engines or given.events)
    target = RESULTS / ("engines.json" if whole else "engines-partial.json")
    unfinished = target.with_suffix(".tmp")
    RESULTS.mkdir(exist_ok=True)
    summary: dict[str, Any] = {
        "made": datetime.now(UTC).isoformat(timespec="seconds"), "commit": host.commit(),
        "scale": size.name if given.events is None else "own",
        "attempts": size.attempts, "warm_runs": size.warm + 1, "machine": host.about(), "heap": os.environ[MEMORY],
        "versions": _versions(), "queries": [],
    }  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="fastwin-engines-") as made:
        folder = Path(made)
        bids = make(folder, given.events or size.events, size.keys, size.batches)
        for query in chosen:
            print(query.label, file=sys.stderr, flush=True)
            summary["queries"].append(measure(query, bids, size, names, folder))
            summary["load_at_end"] = os.getloadavg()[0]
            unfinished.write_text(json.dumps(summary, indent=1) + "\n")
    unfinished.replace(target)
    print(table(summary))
    print(f"\nSummary: {target}")
    return 0


def _versions() -> dict[str, str]:
    embedded = EMBEDDED.values()
    known = {"fastwin", "pyarrow", "pyspark", *embedded}
    found = {name: text for name, text in host.versions(*embedded).items() if name in known}
    jars = flink.find()
    if not isinstance(jars, Unavailable):
        found["Flink"] = next(jars.glob("flink-dist-*.jar")).stem.removeprefix("flink-dist-")
    return found


if __name__ == "__main__":
    sys.exit(main())
