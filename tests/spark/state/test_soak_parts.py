"""Inputs that fall quiet, and savepoints, with drivers that are killed.

The short version of ``make soak``. Without kills, the ordinary tests have both: ``tests/spark/test_idle.py`` and
``test_history.py``.
"""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.long
@pytest.mark.parametrize("part", ["quiet", "saved"])
def test_a_part_of_the_soak(part):
    command = [sys.executable, "-m", "tests.soak", part, "--kills", "1", "--kinds", "sliding"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "all the same" in done.stdout
