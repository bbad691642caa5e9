"""Spark Connect, with a real server on this machine: one for all cases, and one client."""

import ast
import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import fastwin as fw
from spark_glue.session import STATE_STORE_PROVIDER
from tests.support.connect_server import ROOT, environment, serving
from tests.support.spark_events import events
from tests.support.spark_streams import Source, rows_of
from tests.support.spark_versions import SPARK

pytest.importorskip("grpc", reason="needs pip install 'fastwin[connect]'")

CLIENT = ROOT / "tests" / "support" / "connect_client.py"
CASES = {
    node.name: node
    for node in ast.parse(CLIENT.read_text()).body
    if isinstance(node, ast.FunctionDef) and any(getattr(one, "id", "") == "case" for one in node.decorator_list)
}
STREAMS = [name for name, node in CASES.items() if "stream_of" in ast.unparse(node)]

FLOW = """
import fastwin as fw
import spark_glue
from pyspark import pipelines
from pyspark.sql import SparkSession

FOLDER = {folder!r}
SPEC = (
    fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of("1 min")).bad_rows("drop")
    .aggregate(n=fw.Count())
)


stream = SparkSession.active().readStream.schema("k long, ts timestamp, v long, x double").parquet(FOLDER)
frame = spark_glue.apply(SPEC, stream, watermark="0 s", key_groups=4)


@pipelines.table
def minutes():
    try:
        spark_glue.apply(SPEC, stream, watermark="0 s")
    except fw.SpecError as problem:
        print("REFUSED", problem)
    return frame
"""

PIPELINE = """
name: windows
storage: {storage}
libraries:
  - glob:
      include: flow.py
configuration:
  spark.sql.streaming.stateStore.providerClass: {provider}
  spark.sql.shuffle.partitions: "2"
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A folder, and the URL of a server whose warehouse is in it."""
    folder = tmp_path_factory.mktemp("connect")
    with serving(folder) as url:
        yield folder, url


@pytest.fixture(scope="module")
def cases(server: tuple[Path, str]) -> dict[str, str | None]:
    """What came of each case."""
    folder, url = server
    client = done([sys.executable, "-m", "tests.support.connect_client", str(folder)], ROOT, url)
    assert (folder / "cases.json").exists(), client
    return json.loads((folder / "cases.json").read_text())


def done(command: list[str], folder: Path, url: str) -> str:
    """Runs a client of the server in a folder to its end; returns what it has written."""
    ended = subprocess.run(
        command,
        env=environment(SPARK_REMOTE=url),
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=400,
    )
    print(ended.stdout)
    assert ended.returncode == 0, ended.stdout[-4000:]
    return ended.stdout


@pytest.mark.parametrize("case", CASES)
def test_with_a_server(cases: dict[str, str | None], case: str) -> None:
    if SPARK < (4, 1) and case in STREAMS:
        assert "streams over Spark Connect need Spark 4.1 or newer on both sides" in (cases[case] or "")
    else:
        assert cases[case] is None, cases[case]


@pytest.mark.long
@pytest.mark.skipif(importlib.util.find_spec("pyspark.pipelines") is None, reason="pipelines came with Spark 4.1")
def test_a_flow_of_a_declarative_pipeline(server: tuple[Path, str], tmp_path: Path) -> None:
    folder, url = server
    table = events(7, 300, span_ms=300_000)
    source = Source(tmp_path, table.schema)
    source.put(table)
    (tmp_path / "flow.py").write_text(FLOW.format(folder=str(source.folder)))
    pipeline = PIPELINE.format(storage=(tmp_path / "storage").as_uri(), provider=STATE_STORE_PROVIDER)
    (tmp_path / "spark-pipeline.yml").write_text(pipeline)
    said = done([sys.executable, "-m", "pyspark.pipelines.cli", "run"], tmp_path, url)
    assert "REFUSED df: in the function of a flow Spark lets nobody look at a frame" in said
    found = pq.read_table(folder / "warehouse" / "minutes")
    spec = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of("1 min")).aggregate(n=fw.Count())
    expected = spec.run(table).main
    assert 0 < found.num_rows < expected.num_rows, "the last windows are open still"
    assert rows_of(found.select(expected.column_names)) <= rows_of(expected)
