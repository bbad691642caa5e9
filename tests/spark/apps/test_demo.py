"""The demo from its command line, over a small file of the user's own."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from fastwin.__main__ import main
from spark_glue.apps.specfile import specs_in
from spark_glue.apps.state.main import load_spec

ROOT = Path(__file__).resolve().parents[3]
HOUR = 3_600_000


def test_each_query_and_the_pace(tmp_path):
    events = pa.table(
        {
            "shop": ["north", "south"] * 200,
            "at": pa.array([n * HOUR // 10 for n in range(400)], pa.timestamp("ms")),
        }
    )
    pyarrow.csv.write_csv(events, tmp_path / "events.csv")
    options = ["--events", "events.csv", "--key", "shop", "--time", "at", "--batches", "2", "--pace", "2000"]
    done = subprocess.run(
        [sys.executable, "-m", "fastwin", "demo", *options],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    batches = re.findall(r"^(\w+) +\d+ +200 ", done.stdout, re.MULTILINE)
    assert batches == [name for name in ("tumbling", "sliding", "sessions", "page") for _ in range(2)]
    counted, results, late, bad, still_open = (
        int(number)
        for number in re.search(
            r"400 rows = (\d+) in (\d+) results \+ (\d+) late \+ (\d+) without a time \+ (\d+) in the", done.stdout
        ).groups()
    )
    assert counted + still_open == 400
    assert (late, bad) == (0, 0)
    assert pq.read_table(tmp_path / "demo-output" / "tumbling").num_rows == results
    assert re.search(r"(\d+\.\d\d) M events/s  fastwin\n +\d+\.\d\d M events/s  Spark's own", done.stdout)
    windows, rows = re.search(r"([\d,]+) windows with ([\d,]+) rows: the same from both", done.stdout).groups()
    assert 0 < int(windows.replace(",", "")) <= int(rows.replace(",", "")) <= 12_000
    assert (tmp_path / "demo-output" / "chart.png").stat().st_size > 10_000
    assert "-m fastwin serve --store rocksdb:demo-output/store" in done.stdout
    assert "\nThe doctor says\n" in done.stdout
    (command,) = re.findall(r"^  (\S+ -m fastwin inspect .*)$", done.stdout, re.MULTILINE)
    words = shlex.split(command)
    assert words[-4:] == ["--spec", "demo-output/specs.py:tumbling", "--key", "north"]
    given = load_spec(f"{tmp_path}/{words[-3]}")
    assert repr(given) == repr(specs_in((tmp_path / "demo-output" / "specs.py").read_text())["tumbling"])


@pytest.mark.parametrize("option", ["--batches", "--pace"])
def test_a_wrong_number_is_refused_before_anything_starts(option, capsys):
    assert main(["demo", option, "-1"]) == 1
    assert f"{option}: must be at least" in capsys.readouterr().err
