"""State on the disk, quiet inputs, state divided anew and savepoints, with faults and kills.

The short version of ``make soak``. Without faults, the ordinary tests have them all: ``tests/spark/test_spilled_state.py``,
``test_idle.py``, ``test_rescale.py`` and ``test_history.py``.
"""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.long
@pytest.mark.parametrize("part", ["spilled", "quiet", "rescaled", "saved"])
def test_a_part_of_the_soak(part):
    command = [sys.executable, "-m", "tests.soak", part, "--kills", "1", "--kinds", "sliding"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "all the same" in done.stdout
