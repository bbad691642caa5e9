"""The chart: how many times as fast as each peer fastwin was, a line for each work."""

from pathlib import Path
from typing import Any

from bench.report import speedups

__all__ = ["draw", "kind_of"]

# Peers of a kind have one colour: what a colour means shall be the same on every line.
_KINDS = {
    "naive Python, heapq, dict": ("#8a9a5b", ("Python", "heapq", "dict", "pickled", "sortedcontainers")),
    "numpy, pandas": ("#c98b2b", ("numpy", "pandas")),
    "polars": ("#1f6f8b", ("polars",)),
    "DuckDB": ("#d1495b", ("DuckDB",)),
    "Spark without fastwin": ("#6c4f8b", ("native", "applyInPandas")),
    "bare C loop": ("#222222", ("C loop",)),
    "bare calls of Python": ("#b06fa8", ("bare calls",)),
    "pyarrow": ("#5b8a86", ("pyarrow", "Arrow")),
    "Redis without fastwin": ("#7a4a32", ("a PFADD",)),
    "fastwin, other parameters": (
        "#9a9a9a",
        (
            *("fastwin", "RocksDB", "one thread", "spec.run", "process", "four specs", "even keys"),
            *("minute alone", "fixed days", "without them", "20 slices", "tumbling 3 min"),
        ),
    ),
}


def kind_of(peer: str) -> str:
    """Returns the kind of a peer. Raises ValueError for one that has none."""
    for kind, (_, beginnings) in _KINDS.items():
        if peer.startswith(beginnings):
            return kind
    raise ValueError(f"chart: {peer!r} is of no kind; say in _KINDS which colour it has")


def draw(summary: dict[str, Any], path: Path) -> None:
    """Draws the works of a summary and saves the chart as PNG."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import FuncFormatter

    works = [(work, list(speedups(work))) for work in summary["works"]]
    works = [(work, found) for work, found in works if found]
    if not works:
        return
    figure, axes = plt.subplots(figsize=(11, 1.8 + 0.27 * len(works)), layout="constrained")
    shown: dict[str, Any] = {}
    for line, (work, found) in enumerate(works):
        for peer, speedup in found:
            kind = kind_of(peer["name"])
            shown[kind] = axes.scatter(speedup, line, s=34, color=_KINDS[kind][0], zorder=3)
        bar = work["bar"]
        if bar is not None:
            at = bar["factor"] if bar["kind"] == "at least" else 1 / bar["factor"]
            shown["bar to reach"] = axes.scatter(at, line, s=170, marker="|", color="#000000", linewidths=2, zorder=2)
    axes.axvline(1, color="#000000", linewidth=0.8)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}x"))
    axes.set_yticks(range(len(works)), [work["label"] for work, _ in works], fontsize=8)
    axes.set_ylim(len(works) - 0.4, -0.6)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.grid(axis="y", color="#f0f0f0", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.set_xlabel("times as fast as the peer (right of 1x: fastwin is faster)")
    threads = summary["machine"]["peer_threads"]
    title = (
        f"fastwin on one thread unless told otherwise, polars and DuckDB on {threads}, Spark on local[{threads}]; "
        f"{summary['scale']} sizes"
    )
    axes.set_title(title, fontsize=9, loc="left")
    order = [kind for kind in (*_KINDS, "bar to reach") if kind in shown]
    figure.legend(
        [shown[kind] for kind in order], order, loc="outside lower center", ncols=5, fontsize=8, frameon=False
    )
    figure.savefig(path, dpi=110)
    plt.close(figure)
