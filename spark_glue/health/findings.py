"""Finding and Findings: what is wrong with a query, in a sentence, with figures and the mend."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fastwin.times import moment_text

__all__ = ["Finding", "Findings", "duration", "moment", "share"]


@dataclass(frozen=True)
class Finding:
    """One thing that keeps a query from emitting, or makes it slow.

    name: always the same for the same ailment. what: a sentence with the figures. mend: what to do.
    evidence: the figures, by name; times in ms since 1970, durations in ms.
    """

    name: str
    what: str
    mend: str
    evidence: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.name}: {self.what}\n  Mend: {self.mend}"


@dataclass(frozen=True)
class Findings:
    """What ``doctor`` has found: empty where nothing is wrong. Iterates over ``Finding``, the gravest first.

    summary: what was looked at.
    """

    findings: tuple[Finding, ...]
    summary: str

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def __getitem__(self, name: str) -> Finding:
        """Returns the finding of that name; raises KeyError where there is none."""
        for finding in self.findings:
            if finding.name == name:
                return finding
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return any(finding.name == name for finding in self.findings)

    def __str__(self) -> str:
        return "\n".join([self.summary, *(f"- {finding}" for finding in self.findings or ("Nothing is wrong.",))])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{html.escape(one.name)}</th><td>{html.escape(one.what)}</td><td>{html.escape(one.mend)}</td></tr>"
            for one in self.findings
        )
        head = "<tr><th>finding</th><th>what</th><th>mend</th></tr>"
        table = f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>" if rows else "<p>Nothing is wrong.</p>"
        return f"<div><p>{html.escape(self.summary)}</p>{table}</div>"


def moment(ms: int) -> str:
    """Returns a time in words, UTC, as short as it is exact."""
    return moment_text(ms).removesuffix(".000")


def duration(ms: float) -> str:
    """Returns a duration in words, rounded."""
    for unit, size in (("days", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000)):
        if abs(ms) >= (2 * size if unit == "days" else size):
            return f"{ms / size:.3g} {unit}"
    return f"{ms:.0f} ms"


def share(part: float, whole: float) -> str:
    """Returns a part of a whole, in percent."""
    return f"{100 * part / whole:.0f}%" if whole else "0%"
