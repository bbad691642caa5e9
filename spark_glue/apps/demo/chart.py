"""The demo's chart: the sliding windows over time, and what the tumbling ones say about the hours of a day."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["draw"]

_COLOURS = ("#1f6f8b", "#d1495b", "#8a9a5b", "#6c4f8b", "#c98b2b")


def draw(
    sliding: pa.Table, tumbling: pa.Table, key: str, noun: str, has_delay: bool, labels: tuple[str, str], path: Path
) -> None:
    """Draws the chart and saves it as PNG.

    sliding: columns key, window_end, n. tumbling: columns key, window_start, n and, if has_delay, mean_delay.
    labels: how the windows are called. At most the five keys with most events are drawn.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    totals = tumbling.group_by(key).aggregate([("n", "sum")]).sort_by([("n_sum", "descending")])
    keys = totals[key].to_pylist()[: len(_COLOURS)]
    figure, (top, bottom) = plt.subplots(2, 1, figsize=(11, 7.5), layout="constrained")
    for colour, value in zip(_COLOURS, keys, strict=False):
        rows = _rows_of(sliding, key, value).sort_by("window_end")
        top.plot(_times(rows["window_end"]), rows["n"].to_numpy(), color=colour, linewidth=1.1, label=_label(value))
        hours, heights = _by_hour(_rows_of(tumbling, key, value), has_delay)
        bottom.plot(hours, heights, color=colour, marker="o", markersize=3.5, linewidth=1.6, label=_label(value))
    more = "" if len(totals) <= len(keys) else f" (the {len(keys)} busiest of {len(totals):,})"
    top.set_title(f"{noun.capitalize()} per {key}, {labels[0]}{more}", loc="left", fontweight="bold")
    top.set_ylabel(noun)
    top.set_ylim(bottom=0)
    what = "Mean delay" if has_delay else f"Mean {noun} per window"
    bottom.set_title(f"{what} by hour of day (UTC), from {labels[1]}", loc="left", fontweight="bold")
    bottom.set_ylabel("minutes" if has_delay else noun)
    bottom.set_xlabel("hour of day (UTC)")
    bottom.set_xticks(range(0, 24, 3))
    bottom.axhline(0, color="#999999", linewidth=0.8)
    for axis in (top, bottom):
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
    top.legend(frameon=False, loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0, ncols=len(keys))
    _mark_lowest(top, sliding, key, keys)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _mark_lowest(axis: Any, sliding: pa.Table, key: str, keys: list) -> None:
    """Names the day of the deepest dip, past the first tenth of the time in which windows fill up."""
    if not keys:
        return
    rows = _rows_of(sliding, key, keys[0]).sort_by("window_end")
    first = rows.num_rows // 10
    rows = rows.slice(first, rows.num_rows - 2 * first)
    if rows.num_rows:
        low = rows.sort_by("n").slice(0, 1).to_pylist()[0]
        axis.annotate(
            f"{low['n']:,} until {low['window_end']:%d %b %H:%M}",
            (low["window_end"].replace(tzinfo=None), low["n"]),
            xytext=(10, 4),
            textcoords="offset points",
            fontsize=9,
        )


def _rows_of(table: pa.Table, key: str, value: object) -> pa.Table:
    column = table[key]
    return table.filter(pc.is_null(column) if value is None else pc.equal(column, pa.scalar(value, column.type)))


def _label(value: object) -> str:
    return "(none)" if value is None else str(value)


def _times(column: pa.ChunkedArray) -> np.ndarray:
    return column.cast(pa.timestamp("ms")).to_numpy()


def _by_hour(rows: pa.Table, has_delay: bool) -> tuple[np.ndarray, np.ndarray]:
    hour = pc.hour(rows["window_start"]).to_numpy()
    counts = rows["n"].to_numpy().astype(float)
    if has_delay:
        values = rows["mean_delay"].to_numpy(zero_copy_only=False) * counts
        heights = np.bincount(hour, values, 24) / np.maximum(np.bincount(hour, counts, 24), 1)
        few = np.bincount(hour, counts, 24) < 100  # a handful of events says nothing
    else:
        seen = np.bincount(hour, minlength=24)
        heights = np.bincount(hour, counts, 24) / np.maximum(seen, 1)
        few = seen == 0
    heights[few] = np.nan  # which leaves a gap in the line
    return np.arange(24), heights
