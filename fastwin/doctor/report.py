"""Looks at everything, and prints it as text or as JSON."""

import dataclasses
import json
from collections.abc import Sequence

import fastwin
from fastwin.doctor import itself, spark, surroundings
from fastwin.doctor.finding import Finding
from fastwin.errors import SpecError, did_you_mean

__all__ = ["examine", "faults", "run", "text"]

_WIDTH = 16


def examine() -> list[Finding]:
    """Returns all findings, in the order in which they are shown."""
    return [
        itself.python(),
        itself.kernels(),
        itself.core_packages(),
        surroundings.memory(),
        *(surroundings.extra(name) for name in surroundings.EXTRAS),
        spark.java(),
        *spark.variables(),
        surroundings.redis_server(),
        surroundings.copies(),
    ]


def faults(findings: Sequence[Finding], needed: Sequence[str] = ()) -> list[Finding]:
    """Returns the findings that make the exit status 1. needed: extras that must be there.

    Raises SpecError for an extra that there is not.
    """
    for name in needed:
        if name not in surroundings.EXTRAS:
            known = ", ".join(surroundings.EXTRAS)
            raise SpecError(f"--need: must be one of {known}, got {name!r}{did_you_mean(name, surroundings.EXTRAS)}")
    # The demo runs on Spark, and so needs what Spark needs.
    wanted = {*needed, *([spark.SPARK] if "demo" in needed else [])}
    return [one for one in findings if one.status == "wrong" or (one.status == "missing" and one.extra in wanted)]


def text(findings: Sequence[Finding]) -> str:
    """Returns the findings as lines: what there is, what it is for, and below it what mends it."""
    lines = [f"fastwin {fastwin.__version__}", ""]
    for one in findings:
        lines.append(f"  {one.status:<8} {one.name:<{_WIDTH}}  {one.found}")
        lines.append(f"{'':{_WIDTH + 13}}for: {one.purpose}")
        if one.status != "ok" and one.mend:
            lines.append(f"{'':{_WIDTH + 13}}mend: {one.mend}")
    return "\n".join(lines)


def run(needed: Sequence[str], as_json: bool) -> int:
    """Prints the report; returns the exit status."""
    findings = examine()
    bad = faults(findings, needed)
    if as_json:
        told = {
            "fastwin": fastwin.__version__,
            "ok": not bad,
            "faults": [one.name for one in bad],
            "findings": [dataclasses.asdict(one) for one in findings],
        }
        print(json.dumps(told, indent=2))
        return 1 if bad else 0
    print(text(findings))
    print()
    print(f"Not in order: {', '.join(one.name for one in bad)}" if bad else "All that is there is in order.")
    return 1 if bad else 0
