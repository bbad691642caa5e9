"""Tables of what was measured, from the results that are kept in bench/results."""

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bench.report import speedups, versions  # noqa: E402
from bench.scale import amount  # noqa: E402

__all__ = ["filled"]

_MARK = "<!-- measured: {} -->"
# What a line says of the sources is not true of the site.
_OF_SOURCES = re.compile(r"^.*<!-- not on the site -->\n", re.MULTILINE)
_TABLES = {
    "process": ("tumbling", "sessions", "sliding", "threads", "stream", "small", "push", "general", "process"),
    "spark": ("spark",),
}


def filled(page: str) -> str:
    """Returns a page with a table where it says ``<!-- measured: process -->``, or another name, and without lines that
    end with ``<!-- not on the site -->``.
    """
    return _OF_SOURCES.sub("", _measured(page) if "<!-- measured:" in page else page)


def _measured(page: str) -> str:
    summary = json.loads((ROOT / "bench" / "results" / "latest.json").read_text(encoding="utf-8"))
    told = {name for names in _TABLES.values() for name in names}
    tables = {name: _table(summary, names) for name, names in _TABLES.items()}
    others = dict.fromkeys(work["work"] for work in summary["works"] if not work["work"].startswith(tuple(told)))
    tables["parts"] = _table(summary, tuple(others))
    tables["machine"] = _machine(summary)
    for name, text in tables.items():
        page = page.replace(_MARK.format(name), text)
    return page


def _table(summary: dict[str, Any], names: tuple[str, ...]) -> str:
    """Returns a table of the works whose names begin so, in that order."""
    lines = ["| work | fastwin | beside |", "| --- | --- | --- |"]
    chosen = {work["work"]: work for name in names for work in summary["works"] if work["work"].startswith(name)}
    for work in chosen.values():
        ours = next((one for one in work["contenders"] if one["name"] == "fastwin"), None)
        if ours is None:
            continue
        beside = ", ".join(f"{factor:.2g}x {peer['name']}" for peer, factor in speedups(work))
        label = work["label"].replace("|", "/")
        lines.append(f"| {label} | {amount(ours['rate'])} {work['unit']}s/s | {beside} |")
    return "\n".join(lines)


def _machine(summary: dict[str, Any]) -> str:
    machine = summary["machine"]
    told = ", ".join(f"{name} {text}" for name, text in versions(summary).items())
    return f"{machine['cpu'] or machine['machine']}, {machine['cores']} cores; {told}."
