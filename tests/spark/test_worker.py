import gc
from collections.abc import Callable

import pytest

from spark_glue import pack, processor, unpack, worker
from spark_glue.job import Job
from tests.spark.fakes import FakeHandle
from tests.spark.test_pack import job_for
from tests.spark.test_processor import SCHEMA, SPEC


@pytest.fixture
def frozen(monkeypatch):
    """How often all was hidden from the garbage collector."""
    calls = []
    monkeypatch.setattr(gc, "freeze", lambda: calls.append(None))
    monkeypatch.setattr(worker, "_settled", False)
    return calls


def test_a_worker_settles_once(frozen, monkeypatch):
    monkeypatch.setattr(worker.TaskContext, "get", staticmethod(object))
    worker.settle()
    worker.settle()
    assert len(frozen) == 1


def test_the_drivers_collector_is_left_alone(frozen):
    worker.settle()
    assert not frozen


@pytest.mark.parametrize(
    ("module", "begin"),
    [
        (pack, lambda job: pack._new_packer(job)),
        (processor, lambda job: processor.WindowProcessor(job).init(FakeHandle())),
        (unpack, lambda job: list(unpack._unpack(unpack.Output(None, {}), iter([])))),
    ],
    ids=["pack", "processor", "unpack"],
)
def test_each_kind_of_task_settles_its_worker(monkeypatch, module: object, begin: Callable[[Job], object]):
    calls = []
    monkeypatch.setattr(module, "settle", lambda: calls.append(None))
    begin(job_for(SCHEMA.empty_table(), SPEC))
    assert len(calls) == 1
