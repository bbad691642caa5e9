"""Holds CHANGELOG.md to its form and to the version of the package, and prints what it says of a release.

python .ci/changelog.py                 checks the form, and that the version has a section
python .ci/changelog.py --tag v0.2.0    checks that this version can be released, and prints its section
"""

import argparse
import re
import sys
from dataclasses import dataclass
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
NOT_YET = "unreleased"


@dataclass(frozen=True)
class Section:
    """One version: its heading without the brackets, its day (None: not released), and its text."""

    version: str
    day: str | None
    text: str


def sections(text: str) -> list[Section]:
    """Returns the sections of a changelog, as they stand."""
    found = []
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        heading, _, rest = part.partition("\n")
        version, _, day = heading.partition(" - ")
        found.append(Section(version.strip().strip("[]"), day.strip() or None, rest.strip()))
    return found


def complaints(text: str, version: str) -> list[str]:
    """Returns what is wrong with a changelog, for a package of this version."""
    found = sections(text)
    wrong = []
    if not found or found[0].version != "Unreleased":
        wrong.append("the first section must be [Unreleased]")
    numbered = [one for one in found if one.version != "Unreleased"]
    if version not in [one.version for one in numbered]:
        wrong.append(f"there is no section for version {version}, which fastwin/__init__.py says")
    elif numbered[0].version != version:
        wrong.append(f"the newest section is {numbered[0].version}, and fastwin/__init__.py says {version}")
    for one in numbered:
        if not re.fullmatch(r"\d+\.\d+\.\d+", one.version):
            wrong.append(f"{one.version}: a version has three numbers")
        if one.day != NOT_YET and not _is_day(one.day):
            wrong.append(f"{one.version}: behind it stands the day, such as 2026-01-31, or {NOT_YET}, got {one.day!r}")
    for one in found:
        kinds = re.findall(r"^### (.+)$", one.text, re.MULTILINE)
        wrong += [f"{one.version}: there is no kind of change {kind!r}" for kind in kinds if kind not in KINDS]
        wrong += [f"{one.version}: {kind} is there twice" for kind in sorted(set(kinds)) if kinds.count(kind) > 1]
    order = [tuple(map(int, one.version.split("."))) for one in numbered if re.fullmatch(r"[\d.]+", one.version)]
    if order != sorted(order, reverse=True):
        wrong.append("the newest version must come first")
    return wrong


def _is_day(text: str | None) -> bool:
    try:
        return text is not None and len(text) == 10 and bool(date.fromisoformat(text))
    except ValueError:
        return False


def unfit(text: str, version: str, tag: str) -> list[str]:
    """Returns why this version cannot be released under this tag."""
    wrong = complaints(text, version)
    if tag != f"v{version}":
        wrong.append(f"the tag is {tag}, and fastwin/__init__.py says {version}")
    for one in sections(text):
        if one.version == "Unreleased" and one.text:
            wrong.append(f"[Unreleased] still has entries: move them to {version}")
        if one.version == version and one.day == NOT_YET:
            wrong.append(f"{version} is still called {NOT_YET}: give it its day")
    return wrong


def main() -> int:
    """Checks, prints, and returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tag", help="of the release")
    tag = parser.parse_args().tag
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    package = (ROOT / "fastwin" / "__init__.py").read_text(encoding="utf-8")
    version = re.search(r'^__version__ = "([^"]+)"$', package, re.MULTILINE)[1]
    wrong = unfit(text, version, tag) if tag else complaints(text, version)
    for one in wrong:
        print(f"CHANGELOG.md: {one}", file=sys.stderr)
    if tag and not wrong:
        print(next(one.text for one in sections(text) if one.version == version))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
