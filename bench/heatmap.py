"""The heat map of the matrix: how many times as fast as the fastest peer fastwin was."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from bench.scale import amount

__all__ = ["draw"]

PAPER, INK, FAINT = "#fbfbf8", "#222222", "#6a6a6a"
"""A card of its own colour, so that the picture reads the same on a light page and on a dark one."""

WIDEST = 8.0
"""From this ratio on, and from its inverse, colours are full."""


def draw(summary: dict[str, Any], path: Path) -> None:
    """Draws the cells of a matrix and saves the picture as PNG."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.colors import LinearSegmentedColormap, LogNorm

    cells = [cell for cell in summary["cells"] if cell["peer"] is not None]
    if not cells:
        return
    rows = list(dict.fromkeys(cell["row"] for cell in cells))
    keys = sorted({cell["keys"] for cell in cells})
    colours = LinearSegmentedColormap.from_list("ratio", ["#b3470b", "#f3b98a", "#f4f4ee", "#9cc6dd", "#14608a"])
    norm = LogNorm(1 / WIDEST, WIDEST)
    panels = (("one", "fastwin on one thread"), ("two", "fastwin on two threads"))
    figure, axes = plt.subplots(
        1, 2, figsize=(9, 1.3 + 0.3 * len(rows)), layout="constrained", sharey=True, facecolor=PAPER
    )
    for axis, (measure, title) in zip(axes, panels, strict=True):
        axis.set_facecolor(PAPER)
        for cell in cells:
            x, y, ratio = keys.index(cell["keys"]), rows.index(cell["row"]), cell[measure]
            shade = norm(min(max(ratio, 1 / WIDEST), WIDEST))
            axis.add_patch(plt.Rectangle((x - 0.48, y - 0.46), 0.96, 0.92, color=colours(shade), linewidth=0))
            ink = "#ffffff" if abs(math.log(ratio)) > 0.72 * math.log(WIDEST) else INK
            weight = "bold" if ratio < 1 else "normal"
            axis.text(x, y, _short(ratio), ha="center", va="center", fontsize=8.5, color=ink, fontweight=weight)
        axis.set_xlim(-0.55, len(keys) - 0.45)
        axis.set_ylim(len(rows) - 0.45, -0.55)
        axis.set_xticks(range(len(keys)), [f"{amount(n)} key{'s' if n > 1 else ''}" for n in keys])
        axis.xaxis.tick_top()
        axis.set_yticks(range(len(rows)), rows)
        axis.tick_params(length=0, labelsize=8.5, labelcolor=INK)
        axis.set_title(title, fontsize=9.5, color=INK, fontweight="bold", pad=10)
        for side in axis.spines.values():
            side.set_visible(False)
    machine, names = summary["machine"], dict.fromkeys(one["name"] for cell in cells for one in cell["contenders"])
    peers = ", ".join(name for name in names if not name.startswith("fastwin"))
    told = (
        f"Rate of fastwin / rate of the fastest of {peers}, each on {machine['peer_threads']} threads.",
        f"Below 1 fastwin is slower. {amount(cells[0]['events'])} events; medians of runs in turns; "
        f"{machine['cpu']}, {machine['cores']} cores.",
    )
    figure.supxlabel("\n".join(told), fontsize=8, color=FAINT)
    figure.savefig(path, dpi=130, facecolor=PAPER)
    plt.close(figure)


def _short(ratio: float) -> str:
    return f"{ratio:.0f}" if ratio >= 9.95 else f"{ratio:.1f}" if ratio >= 1.95 else f"{ratio:.2f}"
