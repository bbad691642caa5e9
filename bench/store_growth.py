"""How a pane store grows with its keys: ``python -m bench.store_growth``.

For each number of keys, in each kind of store: bytes a pane, what a batch of a pane for every key costs, how long
readers wait, and what it costs to drop the oldest hour. Prints a table, and writes results/store_growth.json and
results/store_growth.png. Each point runs in a process of its own, so that its memory is its own.
"""

import argparse
import json
import random
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bench.events import EPOCH_MS
from bench.visitors import DAY, PANE, SPEC
from fastwin import hyperloglog
from fastwin.store import PaneStore

__all__ = ["main"]

RESULTS = Path(__file__).parent / "results"
FIRST = EPOCH_MS - EPOCH_MS % DAY
AT_ONCE = 100_000
READS = 300
Point = dict[str, Any]


def _panes(keys: range, starts: range) -> pa.Table:
    """Returns a pane of each key at each start, with a sketch of two visitors."""
    names = pa.array(np.char.add("module-", np.array(keys).astype(str)))
    sketches = pa.array([hyperloglog.sketch(pa.array([i, i + 1])) for i in range(100)], pa.binary())
    n = len(keys) * len(starts)
    times = np.tile(np.array(starts, dtype=np.int64), len(keys))
    return pa.table(
        {
            "module": names.take(pa.array(np.repeat(np.arange(len(keys)), len(starts)))),
            "window_start": pa.array(times, pa.timestamp("ms", tz="UTC")),
            "pv": pa.array(np.arange(n) % 50 + 2),
            "uv": sketches.take(pa.array(np.arange(n) % 100)),
        }
    )


def _put(store: PaneStore, keys: int, starts: range, revision: tuple[int, int]) -> None:
    """Puts a batch in portions, as the Spark sink does."""
    at_once = max(1, AT_ONCE // len(starts))
    for first in range(0, keys, at_once):
        store.put(_panes(range(first, min(first + at_once, keys)), starts), revision, advance=False)


def _timed(work: Callable[[], Any]) -> tuple[float, float]:
    """Returns what some work took: s by the clock, and of this process."""
    clock, spent = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - clock, time.process_time() - spent


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def point(url: str, keys: int, panes: int) -> Point:
    """Fills an empty store with panes in a row for each key, and looks what it is like."""
    before = _used(url)
    first = range(FIRST, FIRST + panes * PANE, PANE)
    with PaneStore.open(url, SPEC, retention="24 hours") as store:
        filled, filled_cpu = _timed(lambda: _put(store, keys, first, (1, 0)))
        store.advance_watermark(first.stop, FIRST)
        used, memory = _used(url) - before, _peak_mb()
        whole, whole_cpu = _timed(lambda: _put(store, keys, range(first.stop, first.stop + PANE, PANE), (1, 1)))
        store.advance_watermark(first.stop + PANE, first.stop)
        with PaneStore.open(url, read_only=True) as reader:
            waits = _waits(reader, keys)
        gone, gone_cpu = _timed(lambda: store.advance_watermark(first.stop + 2 * DAY))
        assert store.meta().since > first.stop  # type: ignore[union-attr]
    return {
        "x": keys,
        "panes": keys * panes,
        "bytes a pane": used / (keys * panes),
        "us a pane written": filled_cpu / (keys * panes) * 1e6,
        "batch s": whole,
        "batch cpu s": whole_cpu,
        "fill s": filled,
        "read p50 ms": float(np.percentile(waits, 50)),
        "read p99 ms": float(np.percentile(waits, 99)),
        "drop s": gone,
        "drop cpu s": gone_cpu,
        "peak MB": memory,
        "peak MB at the end": _peak_mb(),
    }


def _waits(reader: PaneStore, keys: int) -> list[float]:
    """Returns how long windows of 24 hours of single keys take, ms."""
    dice, waits = random.Random(1), []
    end = reader.watermark
    for _ in range(READS):
        key = f"module-{dice.randrange(keys)}"
        before = time.perf_counter()
        found = reader.query([key], end=end)
        waits.append((time.perf_counter() - before) * 1e3)
        assert found.num_rows == 1
    return waits


def _used(url: str) -> int:
    if url.startswith("rocksdb:"):
        folder = Path(url.removeprefix("rocksdb:"))
        return sum(path.stat().st_size for path in folder.iterdir()) if folder.exists() else 0
    import redis

    told = redis.Redis.from_url(url).info("memory")
    # Without the buffers of clients, and without what compiled scripts take: they do not grow with panes.
    apart = ("mem_clients_normal", "used_memory_vm_total", "used_memory_scripts")
    return int(told["used_memory"]) - sum(int(told.get(name, 0)) for name in apart)


def _points(kind: str, sizes: list[tuple[int, int]]) -> Iterator[Point]:
    """Yields what stores of so many keys, and panes of each, are like."""
    for keys, panes in sizes:
        folder = Path(tempfile.mkdtemp(prefix="store-growth-"))
        server: Any = None
        try:
            if kind == "Redis":
                from tests.support.redis_server import RedisServer

                server = RedisServer(folder)
            url = f"rocksdb:{folder / 'store'}" if server is None else f"{server.url}?socket_timeout=120"
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                one = pool.submit(point, url, keys, panes).result()
        finally:
            if server is not None:
                server.stop()
            shutil.rmtree(folder, ignore_errors=True)
        told = ", ".join(f"{name} {value:,.2f}" for name, value in one.items() if name not in ("x", "panes"))
        print(f"{kind}, {keys:,} keys, {one['panes']:,} panes: {told}", flush=True)
        yield one


def draw(curves: dict[str, list[Point]], target: Path) -> None:
    """Draws the curves, one picture for each figure."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    shown = ("bytes a pane", "us a pane written", "drop cpu s", "peak MB at the end")
    figure, axes = plt.subplots(1, len(shown), figsize=(4 * len(shown), 3.2), layout="constrained")
    for axis, name in zip(axes, shown, strict=True):
        for kind, points in curves.items():
            panes = points[0]["panes"] // points[0]["x"]  # one size of keys; a run that was ended has not all
            told = [one for one in points if name in one and one["panes"] == panes * one["x"]]
            axis.plot([one["x"] for one in told], [one[name] for one in told], marker="o", label=kind)
        axis.set(xscale="log", xlabel="keys", title=name)
        axis.set_ylim(bottom=0)
    axes[0].legend(loc="lower left")
    figure.savefig(target, dpi=120)


def main() -> None:
    """Prints the table, and keeps it and its chart."""
    parser = argparse.ArgumentParser(prog="python -m bench.store_growth", description=__doc__)
    parser.add_argument("--keys", type=int, nargs="+", default=[1_000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--panes", type=int, default=10, help="of each key (%(default)s)")
    parser.add_argument(
        "--most", type=int, default=0, metavar="PANES", help="at last, the most keys with so many panes each"
    )
    parser.add_argument("--only", choices=("RocksDB", "Redis"))
    arguments = parser.parse_args()
    target = RESULTS / "store_growth.json"
    sizes = [(keys, arguments.panes) for keys in arguments.keys]
    sizes += [(max(arguments.keys), arguments.most)] if arguments.most else []
    RESULTS.mkdir(exist_ok=True)
    curves = json.loads(target.read_text()) if target.exists() else {}
    for kind in ("RocksDB", "Redis"):
        if arguments.only in (None, kind):
            if kind == "Redis" and shutil.which("redis-server") is None:
                print("Redis is left out: there is no redis-server")
                continue
            for one in _points(kind, sizes):  # each is kept as soon as it is there: a large one takes hours
                size = one["x"], one["panes"]
                others = [other for other in curves.get(kind, ()) if (other["x"], other["panes"]) != size]
                curves[kind] = sorted([*others, one], key=lambda point: (point["panes"], point["x"]))
                target.write_text(json.dumps(curves, indent=1) + "\n")
    draw(curves, RESULTS / "store_growth.png")


if __name__ == "__main__":
    main()
