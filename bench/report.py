"""From pytest-benchmark's JSON to what one reads: a summary to keep, and a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from bench.race import OURS
from bench.scale import amount

__all__ = ["joined", "lost", "speedups", "summarise", "table", "versions"]

_SAME = ("cpu", "cpu_kind", "cores", "peer_threads")  # of machines whose works stand in one table
_CPU_KIND = ("family", "model", "stepping", "l2_cache_size")  # a virtual machine's processor may have a brand alone
_MACHINE = ("system", "machine", "cores", "peer_threads", "load_at_start", "python_version")


def summarise(raw: dict[str, Any]) -> dict[str, Any]:
    """Returns what is worth keeping of pytest-benchmark's JSON: works with their contenders, machine and versions.

    Each work says by itself when it was measured, of which commit, with which versions and at which load, and which
    contenders were left out although they could run.
    """
    machine, commit = raw["machine_info"], raw.get("commit_info", {})
    run = {
        "made": raw["datetime"],
        "commit": {key: commit.get(key) for key in ("id", "dirty")},
        "versions": {"Python": machine["python_version"], **machine.get("versions", {})},
    }
    works: dict[str, dict[str, Any]] = {}
    scales = set()
    for one in raw["benchmarks"]:
        info, stats = one["extra_info"], one["stats"]
        if "work" not in info:
            continue
        scales.add(info["scale"])
        work = works.setdefault(
            info["work"],
            {key: info[key] for key in ("work", "label", "unit", "bar")}
            | run
            | {"load_at_start": machine.get("load_at_start"), "contenders": []},
        )
        work["contenders"].append(
            {
                "name": info["contender"],
                "threads": info["threads"],
                "units": info["units"],
                "attempts": stats["rounds"],
                "best_s": stats["min"],
                "median_s": stats["median"],
                "rate": info["units"] / stats["median"],
                "notes": info["notes"],
            }
        )
        measured = {found["name"] for found in work["contenders"]}
        work["left_out"] = [name for name in info.get("available", ()) if name not in measured]
    cpu = machine.get("cpu", {})
    return run | {
        "scale": " and ".join(sorted(scales)),
        "machine": {key: machine.get(key) for key in _MACHINE}
        | {"cpu": cpu.get("brand_raw"), "cpu_kind": [cpu.get(key) for key in _CPU_KIND]},
        "works": _ordered(works.values()),
    }


def joined(kept: dict[str, Any], summary: dict[str, Any]) -> dict[str, Any]:
    """Returns a summary with the works beside its own that were measured before, on such a machine and of such a size.

    The contenders of a work are always of one run. Works of another machine are left out. Raises ValueError where a
    work would lose contenders that were kept, and that could have run.
    """
    works: dict[str, dict[str, Any]] = {}
    if kept["scale"] == summary["scale"] and all(
        kept["machine"].get(key) == summary["machine"].get(key) for key in _SAME
    ):
        works = {work["work"]: _run_of(work, kept) | work for work in kept["works"]}
    for work in summary["works"]:
        before = {one["name"] for one in works.get(work["work"], {}).get("contenders", ())}
        lost = before.intersection(work.get("left_out", ()))
        if lost:
            raise ValueError(f"{work['work']}: was measured without {', '.join(sorted(lost))}, which are kept of it")
        works[work["work"]] = work
    return summary | {"works": _ordered(works.values())}


def lost(kept: dict[str, Any], summary: dict[str, Any]) -> list[str]:
    """Returns the works and contenders of a kept summary that another one is without, also those that could not run."""
    here = {work["work"]: {one["name"] for one in work["contenders"]} for work in summary["works"]}
    return [
        f"{work['work']}: {one['name']}"
        for work in kept["works"]
        for one in work["contenders"]
        if one["name"] not in here.get(work["work"], ())
    ]


def _run_of(work: dict[str, Any], kept: dict[str, Any]) -> dict[str, Any]:
    """Returns what is known of the run of a work that does not say it by itself: the last run of its summary."""
    run = {"made": kept["made"], "commit": kept.get("commit"), "versions": kept.get("versions", {})}
    run["load_at_start"] = kept["machine"].get("load_at_start")
    return run if work.get("made", kept["made"]) == kept["made"] else {}


def versions(summary: dict[str, Any]) -> dict[str, str]:
    """Returns the versions of Python and of libraries that the works were measured with, mostly one of each."""
    found = {"Python": {summary["machine"]["python_version"]: None}}
    for told in (summary["versions"], *(work.get("versions", {}) for work in summary["works"])):
        for name, text in told.items():
            found.setdefault(name, {})[text] = None
    return {name: " and ".join(texts) for name, texts in found.items()}


def _ordered(works: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(works, key=lambda work: work["bar"] is None)  # what is held to a bar comes first


def speedups(work: dict[str, Any]) -> Iterator[tuple[dict[str, Any], float]]:
    """Yields each peer of a work that was measured, and how many times as fast as it fastwin was."""
    ours = _ours(work)
    if ours is not None:
        for peer in work["contenders"]:
            if peer is not ours:
                yield peer, ours["rate"] / peer["rate"]


def _ours(work: dict[str, Any]) -> dict[str, Any] | None:
    return next((one for one in work["contenders"] if one["name"] == OURS), None)


def table(summary: dict[str, Any]) -> str:
    """Returns the summary as lines of text."""
    machine = summary["machine"]
    threads = machine["peer_threads"]
    days = sorted({work.get("made", summary["made"])[:10] for work in summary["works"]})
    head = [
        f"{summary['scale']} sizes, medians; contenders took turns.",
        f"{machine['cpu'] or machine['machine']}, {machine['cores']} cores; load at the start of the last run: "
        f"{machine['load_at_start'] or 0:.1f}; measured {' to '.join(dict.fromkeys((days[0], days[-1])))}.",
        f"Threads: fastwin 1 unless told otherwise, polars and DuckDB {threads}, Spark local[{threads}] for all.",
        ", ".join(f"{name} {text}" for name, text in versions(summary).items()),
        "",
    ]
    rows = [("work", "per second", "fastwin", "peer", "its rate", "ratio", "bar")]
    for work in summary["works"]:
        rows += _rows(work, judged=summary["scale"] == "full")
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    aligned = [str.rjust if title in ("fastwin", "its rate", "ratio") else str.ljust for title in rows[0]]
    lines = [
        " | ".join(align(text, width) for align, text, width in zip(aligned, row, widths, strict=True)).rstrip()
        for row in rows
    ]
    lines.insert(1, "-+-".join("-" * width for width in widths))
    return "\n".join(head + lines)


def _rows(work: dict[str, Any], judged: bool) -> Iterator[tuple[str, ...]]:
    ours = _ours(work)
    label, unit, rate = work["label"], f"{work['unit']}s", amount(ours["rate"]) if ours else "-"
    peers = [peer for peer in work["contenders"] if peer is not ours]
    ratios = {peer["name"]: ratio for peer, ratio in speedups(work)}
    if not peers:
        yield label, unit, rate, "", "", "", ""
    for peer in peers:
        ratio, verdict = _judge(work["bar"], peer["name"], ratios.get(peer["name"]), judged)
        yield label, unit, rate, peer["name"], amount(peer["rate"]), ratio, verdict
        label = unit = rate = ""


def _judge(bar: dict[str, Any] | None, peer: str, speedup: float | None, judged: bool) -> tuple[str, str]:
    """Returns the ratio as it is shown, and the bar; judged: with whether it is reached."""
    if speedup is None:
        return "-", ""
    ratio = f"{speedup:.2f}x"
    if bar is None or peer not in bar["peers"]:
        return ratio, ""
    factor = bar["factor"]
    if bar["kind"] == "at least":
        text, reached = f">= {factor:g}x", speedup >= factor
    else:  # said of the time for a unit, as the bar is
        text, reached = f"time <= {factor:g}x", speedup * factor >= 1
        ratio = f"time {1 / speedup:.2f}x"
    return ratio, f"{text}: {'reached' if reached else 'missed'}" if judged else text
