"""Machines that share nothing are lost in mid-batch, and nothing else is. The short version of ``make soak``."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
COMMAND = [sys.executable, "-m", "tests.soak.cluster"]


@pytest.mark.spark
@pytest.mark.long
def test_two_machines_are_lost_in_mid_batch(tmp_path):
    sizes = ["--kind", "sliding", "--kills", "2", "--batches", "8", "--shares", "4"]
    done = subprocess.run(
        [*COMMAND, str(tmp_path), *sizes], cwd=ROOT, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["kills"] == 2
    assert report["rows"] > 500
    assert report["visits"]["loaded_cold"] > 0  # what the machine had was gone
