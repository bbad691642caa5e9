"""Workers of the daemon that has loaded fastwin: they find it there, and draw numbers of their own."""

import os
import sys
from collections.abc import Iterator

import pyarrow as pa
import pytest

from spark_glue.session import _load_workers_at_once

SCHEMA = "worker bigint, loaded boolean, number double"


def told(_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import numpy as np

    loaded = "spark_glue.stages.operator" in sys.modules
    yield pa.RecordBatch.from_pydict({"worker": [os.getpid()], "loaded": [loaded], "number": [np.random.random()]})


def test_workers_begin_with_it_and_draw_different_numbers(spark):
    rows = spark.range(0, 2, 1, 2).mapInArrow(told, SCHEMA).collect()
    assert [row.loaded for row in rows] == [True, True]
    assert len({row.worker for row in rows}) == len({row.number for row in rows}) == 2


class Conf(dict):
    def set(self, key: str, value: str) -> None:
        self[key] = value


class Context:
    """What ``session`` asks of a SparkContext."""

    def __init__(self, master: str, **conf: str) -> None:
        self.master, self._conf = master, Conf({key.replace("_", "."): value for key, value in conf.items()})

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
