"""Windows over a frame of stored rows on Spark: ``python -m bench.spark_frames``.

``apply`` over 16 M rows of Parquet beside Spark's own windows, adaptive execution on, in turns after practice. Before
that, the answers over some rows are compared by their number and the sums of their columns. Medians count.
"""

import argparse
import time
from pathlib import Path
from typing import Any

from bench.lab import STORES, Input, Lab, Query, open_lab
from bench.race import OURS
from bench.streams import ON_FILES, WINDOWS, both, tell

__all__ = ["main"]

NATIVE = "native"
FILES = 8


def _queries(windows: str) -> dict[str, Query]:
    known = both(windows)
    return {OURS: known[OURS], ON_FILES: known[ON_FILES], NATIVE: known[next(iter(STORES))]}


def _asked(lab: Lab, query: Query, files: Path) -> Any:
    return query(Input(lab.spark.read.parquet(str(files)), files))


def _seconds(lab: Lab, query: Query, files: Path) -> float:
    lab.spark._jvm.System.gc()
    start = time.monotonic()
    _asked(lab, query, files).write.format("noop").mode("overwrite").save()
    return time.monotonic() - start


def _answer(lab: Lab, query: Query, files: Path) -> Any:
    return _asked(lab, query, files).selectExpr("count(*)", "sum(n)", "sum(s)", "sum(hi)").collect()


def _measure(lab: Lab, windows: str, rows: int, keys: int, turns: int) -> None:
    queries = _queries(windows)
    few = lab.files(2, 20_000, 500)
    small = {name: _answer(lab, query, few) for name, query in queries.items()}
    assert small[OURS] == small[ON_FILES] == small[NATIVE], f"the answers differ: {small}"
    files = lab.files(FILES, rows // FILES, keys)
    taken: dict[str, list[float]] = {name: [] for name in queries}
    for turn in range(turns + 1):  # the first one is practice
        for name, query in queries.items():
            seconds = _seconds(lab, query, files)
            if turn:
                taken[name].append(seconds)
    tell(windows, taken, rows, f"Spark's own over {rows:,} rows")


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(prog="python -m bench.spark_frames", description=__doc__)
    parser.add_argument("--windows", choices=WINDOWS, help="all")
    parser.add_argument("--rows", type=int, default=16_000_000, help="16,000,000")
    parser.add_argument("--keys", type=int, default=100_000, help="100,000")
    parser.add_argument("--turns", type=int, default=3, help="that count: 3")
    given = parser.parse_args()
    with open_lab() as lab:
        lab.spark.conf.set("spark.sql.adaptive.enabled", "true")
        for windows in [given.windows] if given.windows else WINDOWS:
            _measure(lab, windows, given.rows, given.keys, given.turns)


if __name__ == "__main__":
    main()
