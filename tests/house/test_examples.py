"""The examples over a whole table, batch by batch, and as scripts."""

import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pyarrow as pa
import pytest

import fastwin as fw
from tests.support.examples import BESIDES, EXPECTED, NAMES, ON_A_STREAM, load, simplified

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


def _streamed(example):
    """Returns the results of an example whose watermark moves after each batch, and ends at the end of time."""
    stream = example.SPEC.open(watermark=example.WATERMARK)
    pairs = isinstance(example.SPEC, fw.JoinSpec)
    results = [stream.process(*batch) if pairs else stream.process(batch) for batch in example.BATCHES]
    return [*results, stream.advance_watermark(fw.MAX_TIMESTAMP)]


@pytest.mark.parametrize("name", NAMES)
def test_example_gives_on_a_stream_what_it_should(name):
    results = _streamed(load(name))
    main = simplified(pa.concat_tables([result.main for result in results]))
    assert main == sorted(ON_A_STREAM.get(name, EXPECTED[name]), key=repr)
    late = [row for result in results for row in result.late.to_pylist()]
    assert len(late) == len(BESIDES.get(name, {}).get("late", []))


def test_early_and_late_comes_in_the_order_that_its_comments_tell():
    results = _streamed(load("early_and_late"))
    panes = [(row["shop"], row["sales"], row["pane_timing"]) for result in results for row in result.main.to_pylist()]
    assert panes == [
        ("north", 2, "EARLY"),
        ("north", 3, "ON_TIME"),
        ("south", 1, "ON_TIME"),
        ("south", 2, "LATE"),
        ("north", 2, "EARLY"),
        ("north", 2, "ON_TIME"),
        ("north", 1, "ON_TIME"),
    ]


def _told(text):
    """Returns what a script has printed: the lines that say when, the rows, and the rows of each other output."""
    heads, main, besides, output = [], [], defaultdict(list), ""
    for line in text.splitlines():
        if line.startswith("    "):
            besides[output].append(line.strip())
        elif line.startswith("  ") and line.endswith(":"):
            output = line.strip(" :")
        elif line.startswith("  "):
            main.append(line)
        else:
            heads.append(line)
    return heads, main, besides


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
        heads, main, besides = _told(run.stdout)
        assert [head.partition(":")[0] for head in heads] == [
            *(f"batch {number}" for number in range(1, len(load(name).BATCHES) + 1)),
            "the end of the input",
        ]
        assert len(main) == len(ON_A_STREAM.get(name, EXPECTED[name]))
        assert besides == BESIDES.get(name, {})
        months = name == "months_in_a_zone"
        assert all(("window_start=2024-0" in row) == months for row in main if "window_start=2" in row)


def test_all_examples_are_listed():
    files = {path.stem for path in (ROOT / "examples").glob("*.py")} - {"showing"}
    assert files == set(NAMES)
    assert set(re.findall(r"\]\((\w+)\.py\)", (ROOT / "examples" / "README.md").read_text())) == files
