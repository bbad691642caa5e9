"""Memory for each live (key, slice), as the system counts it: ``python -m bench.memory``.

An int64 key and four aggregates; the state is filled through the public API, in batches, and then let go.
"""

import argparse
import ctypes
import json
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pyarrow as pa

import fastwin as fw
from bench.processes import figure

__all__ = ["main", "measure"]

MINUTE = 60_000
BAR = 80
ROWS = 10_000_000


def _forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def measure(keys: int, slices: int, sliding: bool) -> dict[str, float]:
    """Fills keys * slices rows and returns bytes a row: at rest, at the peak while growing, and once windows closed.

    sliding: windows of all slices, sliding by one, fire all the while; else they tumble, and the watermark waits.
    """
    assigner = fw.TumblingEventTimeWindows.of(MINUTE)
    if sliding:
        assigner = fw.SlidingEventTimeWindows.of(slices * MINUTE, MINUTE)
    spec = fw.key_by("key").event_time("ts").window(assigner)
    spec = spec.aggregate(n=fw.Count(), s=fw.Sum("value"), lo=fw.Min("value"), hi=fw.Max("value"))
    names = np.random.default_rng(1).permutation(keys).astype(np.int64) * 7_919
    stream = spec.open()

    def feed(minute: int) -> None:
        times = np.full(keys, minute * MINUTE, dtype=np.int64)
        stream.process(pa.table({"key": names, "ts": times, "value": names}))
        if sliding:
            stream.advance_watermark((minute + 1) * MINUTE - 1)

    feed(0)
    before = figure("VmRSS")
    _forget_peak()
    turns = slices * 5 // 2 if sliding else slices
    for minute in range(1, turns + 1):
        feed(minute)
    rows = stream.metrics.state_rows
    full, peak = figure("VmRSS"), figure("VmHWM")
    stream.advance_watermark(fw.MAX_TIMESTAMP)
    # What the allocators keep of the results' memory, for the next ones, is not the state's.
    pa.default_memory_pool().release_unused()
    ctypes.CDLL(None).malloc_trim(0)
    after = figure("VmRSS")
    return {
        "rows": rows,
        "bytes a row": (full - before) / rows,
        "peak bytes a row": (peak - before) / rows,
        "kept bytes a row": max(after - before, 0) / rows,
    }


def main() -> None:
    """Prints the table and, of the whole size, keeps it as JSON."""
    parser = argparse.ArgumentParser(prog="python -m bench.memory", description=__doc__)
    parser.add_argument(
        "--rows", type=int, default=ROWS, help="live (key, slice) pairs (%(default)s); others are not kept"
    )
    rows = parser.parse_args().rows
    found = {}
    for label, slices, sliding in (
        ("tumbling", 100, False),
        ("sliding, 480 slices", 480, True),
        ("sliding, 100 slices", 100, True),
        ("sliding, 20 slices", 20, True),
    ):
        # In a process of its own: what an allocator has kept of the one before would count.
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            found[label] = one = pool.submit(measure, rows // slices, slices, sliding).result()
        figures = ", ".join(f"{name} {value:,.1f}" for name, value in one.items() if name != "rows")
        print(f"{label}: {one['rows']:,.0f} live (key, slice) pairs, {figures} (bar: {BAR})", flush=True)
    if rows == ROWS:
        target = Path(__file__).parent / "results" / "memory.json"
        target.parent.mkdir(exist_ok=True)
        target.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
