"""The pages with Spark run from an empty folder, each as a program of its own, and print what they say."""

import os
import subprocess
import sys

import pytest

from tests.support.documents import ROOT
from tests.support.notebooks import run_notebook
from tests.support.variants import variants

ON_SPARK = "docs/spark.md", "docs/settings.md", "docs/state.md", "docs/changing.md", "docs/store.md"
PAGES = "README.md", "docs/tutorial.md", *ON_SPARK
pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.parametrize("page", variants([*PAGES], *PAGES[:2]))
def test_a_page_runs(page, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.documents", str(ROOT / page)],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]


@pytest.mark.long
def test_the_notebook_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("TZ", "Europe/Berlin")  # it shows times of its session, whatever the zone of the machine is
    run_notebook("spark", tmp_path)
