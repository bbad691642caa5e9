"""A cluster larger than the machine, without Spark: ``python -m bench.simulation``.

The code that keeps state on Spark (log, copies, budget, refresh) over shares that wander between simulated executors,
hot keys, keys that come and go, and executors that are lost with all that they have. Prints memory per executor, bytes
per commit, how state was had, and what a lost executor costs; writes results/simulation.json and simulation.png.

The state store, Spark's scheduler and the network are not in it: a read of the store is a look into a dict.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any
from unittest import mock

from bench.simulated import WINDOWS, Cluster, Loss, Point, Scale

__all__ = ["QUICK", "losses_text", "main", "run"]

RESULTS = Path(__file__).parent / "results"
QUICK = Scale(
    shares=64, executors=8, workers=2, batches=60, step_ms=10_000, active=64, keys=40, rows=20, wander=0.05, lose=15
)


def run(scale: Scale, points: int = 50, tell: Callable[[str], object] = print) -> tuple[list[Point], list[Loss]]:
    """Runs a simulation; returns what was seen, and what lost executors have cost.

    Raises AssertionError unless each event was counted once in each of its windows.
    """
    every = max(scale.batches // points, 1)
    found = []
    with tempfile.TemporaryDirectory(dir=_memory()) as name, _simulated():
        cluster = Cluster(scale, Path(name))
        for number in range(scale.batches):
            cluster.batch(number)
            if (number + 1) % every == 0:
                found.append(cluster.point(number + 1, every))
                tell(_line(found[-1]))
        cluster.end(scale.batches)
    assert cluster.counted == WINDOWS * cluster.events, f"{cluster.counted} counted, {cluster.events} x {WINDOWS} came"
    return found, cluster.losses


def _memory() -> str | None:
    from fastwin.machine.memory import SHARED

    return str(SHARED) if SHARED.is_dir() else None


def _simulated() -> Any:
    """All workers are in this process, so none of them has died."""
    return mock.patch("spark_glue.state.ledger._lives", return_value=True)


def _line(one: Point) -> str:
    had = ", ".join(f"{name} {count:,}" for name, count in one.had.items())
    return (
        f"{one.batch:6,}: executor {one.live[0] / 2**20:.2f} MB of streams (most {one.live[1] / 2**20:.2f}), "
        f"{one.shelf[0] / 2**20:.2f} MB of copies (most {one.shelf[1] / 2**20:.2f}); commit {one.commit[0]:,.0f} bytes "
        f"(95 %: {one.commit[1]:,.0f}); {had}; {one.read / 2**10:,.0f} KB read a micro-batch; "
        f"{one.us:,.0f} us a visit; {one.rows:,} rows in {one.log:.1f} deltas a share"
    )


def losses_text(losses: list[Loss]) -> Iterator[str]:
    real = [loss for loss in losses if loss.shares]
    if real:
        shares = sum(loss.shares for loss in real) / len(real)
        longest = max(one.longest_ms for one in real)
        yield (
            f"{len(real)} executors lost with {shares:.1f} shares each: {_mean(real, 'read') / 2**10:,.0f} KB read, "
            f"{_mean(real, 'ms'):.1f} ms of work to load them, {longest:.1f} ms the longest share"
        )


def _mean(losses: list[Loss], name: str) -> float:
    return sum(getattr(loss, name) for loss in losses) / len(losses)


def _draw(found: list[Point], losses: list[Loss], target: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 4, figsize=(14, 3), layout="constrained")
    at = [one.batch for one in found]
    axes[0].plot(at, [one.live[1] / 2**20 for one in found], label="streams, most")
    axes[0].plot(at, [one.shelf[1] / 2**20 for one in found], label="copies, most")
    axes[0].set_title("MB of an executor", fontsize=9, loc="left")
    axes[1].plot(at, [one.commit[0] / 2**10 for one in found], label="mean")
    axes[1].plot(at, [one.commit[1] / 2**10 for one in found], label="95th percentile")
    axes[1].set_title("KB of a commit of a share", fontsize=9, loc="left")
    loads = [
        100 * sum(n for how, n in one.had.items() if how.startswith("loaded")) / sum(one.had.values()) for one in found
    ]
    caught = [100 * one.had.get("caught_up", 0) / sum(one.had.values()) for one in found]
    axes[2].plot(at, loads, label="loaded whole")
    axes[2].plot(at, caught, label="caught up")
    axes[2].set_title("visits whose state was not there, %", fontsize=9, loc="left")
    axes[3].plot([one.batch for one in losses], [one.ms for one in losses], ".", label="all shares")
    axes[3].plot([one.batch for one in losses], [one.longest_ms for one in losses], ".", label="longest")
    axes[3].set_title("ms to load what a lost executor had", fontsize=9, loc="left")
    for axis in axes:
        axis.set_xlabel("micro-batches")
        axis.set_ylim(bottom=0)
        axis.legend(fontsize=8, frameon=False)
        axis.grid(color="#dddddd", linewidth=0.6)
    figure.savefig(target, dpi=110)
    plt.close(figure)


def main() -> None:
    """Simulates and prints; keeps what was seen of the scale that stands where nothing is chosen."""
    parser = argparse.ArgumentParser(prog="python -m bench.simulation", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small one, which keeps nothing")
    for name, value in asdict(Scale()).items():
        parser.add_argument(f"--{name}", type=type(value), help=f"({value})")
    arguments = vars(parser.parse_args())
    quick = arguments.pop("quick")
    chosen = asdict(QUICK if quick else Scale()) | {
        name: value for name, value in arguments.items() if value is not None
    }
    scale = Scale(**chosen)
    print(scale)
    begun = time.perf_counter()
    found, losses = run(scale)
    for line in losses_text(losses):
        print(line)
    seconds = time.perf_counter() - begun
    print(f"{seconds:,.0f} s")
    if scale == Scale():
        RESULTS.mkdir(exist_ok=True)
        kept = {
            "scale": asdict(scale),
            "points": [asdict(one) for one in found],
            "losses": [asdict(one) for one in losses],
        }
        (RESULTS / "simulation.json").write_text(json.dumps(kept | {"seconds": seconds}) + "\n")
        _draw(found, losses, RESULTS / "simulation.png")


if __name__ == "__main__":
    main()
