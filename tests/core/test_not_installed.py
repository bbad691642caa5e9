"""Where the compiled modules are missing, the message says what to do: in the folder of the sources, and elsewhere."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = r" is the folder of its sources. To use an installed fastwin, run Python from another folder. "


@pytest.mark.parametrize(("beside", "says", "ends"), [
    (["setup.py"], SOURCES, "To work on the sources, run in it: make compile"),
    ([], "on this machine (No module named 'fastwin.core._cyutility'). ", "--force-reinstall --no-cache-dir fastwin"),
])  # fmt: skip
def test_sources_that_are_not_compiled(tmp_path: Path, beside: list[str], says: str, ends: str) -> None:
    shutil.copytree(ROOT / "fastwin", tmp_path / "fastwin", ignore=shutil.ignore_patterns("*.so", "*.c", "__pycache__"))
    for name in beside:
        (tmp_path / name).touch()
    done = subprocess.run(
        [sys.executable, "-c", "import fastwin"],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    told = done.stderr.splitlines()[-1]
    assert told.startswith("fastwin.errors.NotInstalledError: fastwin: its compiled modules are not there, or not for")
    assert says in told and told.endswith(ends)
    assert (f"{tmp_path.resolve()} is the folder" in told) == bool(beside)
