"""The examples over a whole table, as functions and as scripts."""

import os
import re
import subprocess
import sys
from itertools import takewhile
from pathlib import Path

import pyarrow as pa
import pytest

import fastwin as fw
from tests.support.examples import EXPECTED, NAMES, load, simplified

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", NAMES)
def test_example_gives_what_it_should(name):
    example = load(name)
    inputs = zip(*example.BATCHES, strict=True) if isinstance(example.SPEC, fw.JoinSpec) else [example.BATCHES]
    result = example.SPEC.run(*map(pa.concat_tables, inputs))
    assert simplified(result.main) == sorted(EXPECTED[name], key=repr)
    if name == "corrected_results":
        assert sorted(example.newest(result.main).values()) == [(1, 1), (1, 4), (3, 60)]
    if name == "average_with_window":
        assert result.side["jumps"].to_pylist() == [{"sensor": "a", "was": 21.0, "now": 40.0}]


def test_early_and_late_on_a_stream():
    """The panes that a whole table does not have: one for a late element, and one that nothing can follow."""
    example = load("early_and_late")
    stream = example.SPEC.open(watermark=example.WATERMARK)
    results = [stream.process(batch) for batch in example.BATCHES]
    panes = [(row["shop"], row["sales"], row["pane_timing"]) for result in results for row in result.main.to_pylist()]
    assert panes == [
        ("north", 2, "EARLY"),
        ("north", 3, "ON_TIME"),
        ("south", 1, "ON_TIME"),
        ("south", 2, "LATE"),
        ("north", 2, "EARLY"),
        ("north", 2, "ON_TIME"),
    ]
    assert [row["price"] for result in results for row in result.late.to_pylist()] == [4]


def test_scripts_print_their_results():
    done = [
        subprocess.run(
            [sys.executable, str(ROOT / "examples" / f"{name}.py")],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=100,
        )
        for name in NAMES
    ]
    for name, run in zip(NAMES, done, strict=True):
        assert run.returncode == 0, run.stderr
        first, *rows = run.stdout.splitlines()
        assert first == "over the whole table:"
        main = list(takewhile(lambda row: not row.startswith("side output "), rows))
        assert len(main) == len(EXPECTED[name])
        assert rows[len(main) :][:1] == (["side output jumps:"] if name == "average_with_window" else [])
        months = name == "months_in_a_zone"
        assert all(("window_start=2024-0" in row) == months for row in main if "window_start=2" in row)


def test_all_examples_are_listed():
    files = {path.stem for path in (ROOT / "examples").glob("*.py")} - {"showing"}
    assert files == set(NAMES)
    assert set(re.findall(r"\]\((\w+)\.py\)", (ROOT / "examples" / "README.md").read_text())) == files
