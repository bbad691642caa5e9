"""The examples in the README and in docs/ run, and print what they say. Those for Spark are tested below tests/spark."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def run_blocks(page: Path, least: int) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    local = [block for block in blocks if "spark" not in block]
    assert len(local) >= least
    scope: dict[str, object] = {}
    for block in local:
        exec(compile(block, str(page), "exec"), scope)


def test_the_readme_runs(capsys: pytest.CaptureFixture[str]) -> None:
    run_blocks(ROOT / "README.md", 4)
    printed = capsys.readouterr().out
    assert "'shop': 'north'" in printed
    assert "'sales': 2, 'total': 25, 'dearest': 20" in printed
    assert "3 rows fired" in printed
    assert "SlidingEventTimeWindows: |offset| must be below slide, got offset=600000 slide=180000" in printed


def test_the_page_on_windows_runs(capsys: pytest.CaptureFixture[str]) -> None:
    page = ROOT / "docs" / "windows.md"
    run_blocks(page, 8)
    printed = capsys.readouterr().out
    said = re.findall(r"print\(.*\)  # (.*)|^# (\{.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(said) >= 7
    for comments in said:
        assert "".join(comments) in printed
