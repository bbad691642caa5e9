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
from fastwin.errors import SpecError
from spark_glue.apps.demo.source import own_file
from spark_glue.apps.specfile import specs_in
from spark_glue.apps.state.main import load_spec

ROOT = Path(__file__).resolve().parents[3]
HOUR = 3_600_000


def test_each_query_and_the_pace(tmp_path):
    """In a folder whose name Spark would read as a pattern, with a key that is named as the demo's own folders."""
    tmp_path /= "a[1]{b}"
    tmp_path.mkdir()
    events = pa.table(
        {
            "batch": ["north", "south"] * 200,
            "at": pa.array([n * HOUR // 10 for n in range(400)], pa.timestamp("ms")),
        }
    )
    pyarrow.csv.write_csv(events, tmp_path / "events.csv")
    options = ["--events", "events.csv", "--key", "batch", "--time", "at", "--batches", "2", "--pace", "2000"]
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
    assert pq.read_table(tmp_path / "demo-output" / "tumbling", partitioning=None).num_rows == results
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


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint32(), pa.timestamp("ms")])
def test_times_of_a_file_of_your_own(tmp_path, kind):
    events = pa.table({"shop": ["north", "south"], "at": pa.array([HOUR, 2 * HOUR]).cast(kind)})
    pq.write_table(events, tmp_path / "events.parquet")
    source = own_file(tmp_path / "events.parquet", "shop", "at")
    assert source.table["at"].type == pa.timestamp("ms")  # what is printed of results takes no integers
    assert source.table["at"].cast(pa.int64()).to_pylist() == [HOUR, 2 * HOUR]


def test_a_file_with_tabs(tmp_path):
    (tmp_path / "events.tsv").write_text("shop\tat\nnorth, east\t2024-01-01 10:00:00\n")
    assert own_file(tmp_path / "events.tsv", "shop", "at").table["shop"].to_pylist() == ["north, east"]


def test_numbers_that_are_no_times(tmp_path):
    pq.write_table(pa.table({"k": [1], "at": pa.array([2**64 - 1], pa.uint64())}), tmp_path / "events.parquet")
    with pytest.raises(SpecError, match=r"^--time: 'at' of .*events.parquet has values that are no times"):
        own_file(tmp_path / "events.parquet", "k", "at")


def test_a_negative_watermark_is_refused_before_a_folder_is_emptied(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("demo-output").mkdir()
    for name in (".fastwin-demo", "earlier"):
        (Path("demo-output") / name).touch()
    assert main(["demo", "--watermark=-1h"]) == 1
    assert "--watermark: must not be negative, got '-1h'" in capsys.readouterr().err
    assert Path("demo-output/earlier").exists()


def test_events_in_the_folder_that_is_emptied_are_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("demo-output").mkdir()
    (Path("demo-output") / ".fastwin-demo").touch()
    pq.write_table(pa.table({"k": [1], "at": [HOUR]}), "demo-output/events.parquet")
    assert main(["demo", "--events", "demo-output/events.parquet", "--key", "k", "--time", "at"]) == 1
    assert "--out: demo-output/events.parquet lies in demo-output, which is emptied" in capsys.readouterr().err
    assert Path("demo-output/events.parquet").exists()


@pytest.mark.parametrize("option", ["--batches", "--pace"])
def test_a_wrong_number_is_refused_before_anything_starts(option, capsys):
    assert main(["demo", option, "-1"]) == 1
    assert f"{option}: must be at least" in capsys.readouterr().err
