"""CHANGELOG.md has the form that a release needs, and fits the version of the package."""

import importlib.util
from pathlib import Path

import pytest

import fastwin

ROOT = Path(__file__).resolve().parents[2]
GOOD = """# Changelog
## [Unreleased]
## 0.2.0 - 2026-01-31
### Added
- One.
### Fixed
- Two.
## 0.1.0 - 2025-12-01
### Added
- Three.
"""


def _script():
    found = importlib.util.spec_from_file_location("fastwin_changelog", ROOT / ".ci" / "changelog.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


CHANGELOG = _script()


def test_the_changelog_is_in_order():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert CHANGELOG.complaints(text, fastwin.__version__) == []


def test_a_good_one_can_be_released():
    assert CHANGELOG.unfit(GOOD, "0.2.0", "v0.2.0") == []
    assert [one.version for one in CHANGELOG.sections(GOOD)] == ["Unreleased", "0.2.0", "0.1.0"]


@pytest.mark.parametrize(("old", "new", "says"), [
    ("## [Unreleased]\n", "", "first section must be [Unreleased]"),
    ("## 0.2.0 - 2026-01-31", "## 0.3.0 - 2026-01-31", "no section for version 0.2.0"),
    ("## 0.1.0 - ", "## 0.4.0 - ", "newest version must come first"),
    ("2026-01-31", "2026-02-31", "behind it stands the day"),
    ("### Fixed", "### Mended", "no kind of change 'Mended'"),
    ("### Fixed", "### Added", "Added is there twice"),
    ("## [Unreleased]\n", "## [Unreleased]\n### Added\n- Four.\n", "still has entries"),
    ("2026-01-31", "unreleased", "still called unreleased"),
])  # fmt: skip
def test_what_is_wrong_is_told(old, new, says):
    wrong = CHANGELOG.unfit(GOOD.replace(old, new, 1), "0.2.0", "v0.2.0")
    assert any(says in one for one in wrong), wrong


def test_the_tag_is_that_of_the_version():
    assert CHANGELOG.unfit(GOOD, "0.2.0", "v0.1.9") == ["the tag is v0.1.9, and fastwin/__init__.py says 0.2.0"]
