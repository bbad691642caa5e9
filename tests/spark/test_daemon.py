"""Workers of the daemon that has loaded fastwin: they find it there, draw numbers of their own, and begin quickly."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest

from spark_glue import interpreter
from spark_glue.session import _load_workers_at_once

SCHEMA = "worker bigint, loaded boolean, number double, pyspark string"
PACKAGE = Path(pyspark.__file__).parent


def told(_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import numpy as np

    loaded = "spark_glue.stages.operator" in sys.modules
    row = {"worker": os.getpid(), "loaded": loaded, "number": np.random.random(), "pyspark": pyspark.__file__}
    yield pa.RecordBatch.from_pylist([row])


def test_workers_begin_with_it_and_draw_different_numbers(spark):
    rows = spark.range(0, 2, 1, 2).mapInArrow(told, SCHEMA).collect()
    assert [row.loaded for row in rows] == [True, True]
    assert len({row.worker for row in rows}) == len({row.number for row in rows}) == 2
    assert {Path(row.pyspark) for row in rows} == {PACKAGE / "__init__.py"}  # and not out of Spark's archive


def test_a_script_takes_sparks_archives_off_the_path_and_nothing_else():
    context = Context("local[2]")
    interpreter.start_quickly(context)
    archives = [str(PACKAGE / "python/lib" / name) for name in ("pyspark.zip", "py4j-0.10.9.9-src.zip")]
    asks = "import os, pyspark, sys; print(os.environ['PYTHONPATH'], pyspark.__file__, *sys.argv[1:], sep='\\n')"
    for path, kept in [
        ([*archives, "/a b", "/c"], "/a b:/c"),
        (["/a b", archives[0], "/c"], f"/a b:{archives[0]}:/c"),
    ]:
        given = os.environ | context.environment | {"PYTHONPATH": os.pathsep.join(path)}
        command = [context.pythonExec, "-c", asks, "x y"]
        answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, env=given)
        assert answer.stdout.splitlines()[::2] == [kept, "x y"]


def test_there_is_no_script_for_another_spark_or_where_none_may_run(monkeypatch, tmp_path):
    def python() -> str:
        context = Context("local[2]")
        interpreter.start_quickly(context)
        return context.pythonExec

    monkeypatch.setenv("SPARK_HOME", str(PACKAGE))
    assert python().endswith("python.sh")
    monkeypatch.setattr(interpreter.os, "access", lambda *_: False)
    assert python() == "python3"
    monkeypatch.undo()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert python() == "python3"


class Conf(dict):
    def set(self, key: str, value: str) -> None:
        self[key] = value


class Context:
    """What ``session`` asks of a SparkContext."""

    def __init__(self, master: str, **conf: str) -> None:
        self.master, self._conf = master, Conf({key.replace("_", "."): value for key, value in conf.items()})
        self.environment: dict[str, str] = {}
        self.pythonExec = "python3"

    def getConf(self) -> dict[str, str]:  # noqa: N802
        return self._conf


@pytest.mark.parametrize(
    ("context", "python", "expected"),
    [
        (Context("local[2]"), sys.executable, "spark_glue.daemon"),
        (Context("local[2]"), "/usr/bin/other", None),
        (Context("spark://host:7077"), sys.executable, None),
        (Context("local[2]", spark_python_daemon_module="mine"), sys.executable, "mine"),
    ],
    ids=["local", "another Python", "a cluster", "chosen"],
)
def test_where_it_is_the_daemon(monkeypatch, context, python, expected):
    monkeypatch.setenv("PYSPARK_PYTHON", python)
    _load_workers_at_once(context)
    assert context.getConf().get("spark.python.daemon.module") == expected
    assert (context.pythonExec != "python3") == (expected == "spark_glue.daemon")
