"""What it costs to leave a copy of a delta on an executor, over the number of copies there: ``python -m bench.copies``.

The copies are those of a query with many shares, each with a log of deltas, in the folder in memory that workers share.
Beside a put of a new copy stand that of one that is there already, a get, and a removal. Medians of processor time.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from fastwin.machine.memory import SHARED, shared_memory
from spark_glue.state.copies import Shelf

__all__ = ["main"]


def _token(number: int) -> str:
    return f"{number:032x}"


def _median_us(work: Callable[[int], object], numbers: range) -> float:
    taken = []
    for number in numbers:
        begun = time.process_time_ns()
        work(number)
        taken.append(time.process_time_ns() - begun)
    return statistics.median(taken) / 1_000


def measure(root: Path, shares: int, deltas: int, size: int, at_once: int) -> list[dict[str, float]]:
    """Fills a folder and returns, for each number of copies on the way, what the next operations cost, us."""
    shelf, data = Shelf("run", root, 1 << 40), os.urandom(size)
    found, there = [], 0
    for wanted in (0, shares * deltas // 16, shares * deltas // 4, shares * deltas):
        for number in range(there, wanted):
            shelf.put(_token(number), data)
        new = range(wanted, wanted + at_once)
        found.append(
            {
                "copies": wanted,
                "put": _median_us(lambda n: shelf.put(_token(n), data), new),
                "put again": _median_us(lambda n: shelf.put(_token(n), data), new),
                "get": _median_us(lambda n: shelf.get(_token(n), size), new),
                "remove": _median_us(lambda n: shelf.remove(_token(n)), new),
            }
        )
        there = wanted
    return found


def main(arguments: list[str] | None = None) -> None:
    """Measures and prints a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.copies", description=__doc__)
    parser.add_argument("--shares", type=int, default=64)
    parser.add_argument("--deltas", type=int, default=300, help="of each share")
    parser.add_argument("--size", type=int, default=4_096, help="of a delta, bytes")
    parser.add_argument("--puts", type=int, default=500, help="that each median is of")
    chosen = parser.parse_args(arguments)
    folder = SHARED if shared_memory().serves else None
    with tempfile.TemporaryDirectory(dir=folder) as name:
        rows = measure(Path(name), chosen.shares, chosen.deltas, chosen.size, chosen.puts)
    print(f"copies of {chosen.size:,} bytes in {folder or 'the temporary folder'}, us each:")
    print(*(f"{heading:>10}" for heading in rows[0]))
    for row in rows:
        print(f"{row.pop('copies'):>10,}", *(f"{us:10.1f}" for us in row.values()))


if __name__ == "__main__":
    main()
