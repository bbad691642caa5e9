"""The README's examples run. Those for Spark have tests of their own below tests/spark."""

import re
from pathlib import Path

import pytest

README = Path(__file__).resolve().parent.parent / "README.md"


def test_examples_run(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    local = [block for block in blocks if "spark" not in block]
    assert len(local) >= 4
    scope: dict[str, object] = {}
    for block in local:
        exec(compile(block, str(README), "exec"), scope)
    printed = capsys.readouterr().out
    assert "'shop': 'north'" in printed
    assert "'sales': 2, 'total': 25, 'dearest': 20" in printed
    assert "3 rows fired" in printed
    assert "SlidingEventTimeWindows: |offset| must be below slide, got offset=600000 slide=180000" in printed
