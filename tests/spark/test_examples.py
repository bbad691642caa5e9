"""The examples as Spark streams: the same rows as in this process, micro-batch by micro-batch."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.examples import EXPECTED, ON_SPARK, load, simplified
from tests.support.spark_streams import assert_replayed, parts, run_stream
from tests.support.variants import variants

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "name", variants(ON_SPARK, "bounds_from_data", "average_with_window", "early_and_late", "last_three")
)
def test_example_on_a_stream(spark, tmp_path, name):
    example = load(name)
    batches = run_stream(spark, example.SPEC, example.BATCHES, tmp_path, watermark=example.WATERMARK, key_groups=2)
    assert_replayed(example.SPEC, example.BATCHES, batches)
    main = simplified(parts(batches, "main"))
    assert main
    if example.WATERMARK is None:
        assert main == sorted(EXPECTED[name], key=repr)
    elif name not in ("bounds_from_data", "early_and_late", "one_second_trigger"):  # the order of arrival matters there
        assert set(map(repr, main)) <= set(map(repr, EXPECTED[name]))
    if name == "bounds_from_data":
        assert parts(batches, "late")["price"].to_pylist() == [90]
    if name == "average_with_window":
        assert parts(batches, "side_jumps").to_pylist() == [{"sensor": "a", "was": 21.0, "now": 40.0}]
    if name == "early_and_late":
        assert set(parts(batches, "main")["pane_timing"].to_pylist()) == {"EARLY", "ON_TIME", "LATE"}


@pytest.mark.long
def test_a_script_on_spark():
    """Its classes are those of a script, and instances of them are in the state."""
    command = [sys.executable, str(ROOT / "examples" / "session_totals.py"), "--spark"]
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    row = "  user=ann, window_start=12:00:00, window_end=12:00:32, pages=['home', 'news', 'shop'], clicks=4"
    assert row in done.stdout.splitlines()
