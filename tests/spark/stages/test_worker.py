import gc
from collections.abc import Callable

import pytest

from spark_glue.plan.frameplan import FramePlan
from spark_glue.plan.outputs import Output
from spark_glue.stages import operator as processor
from spark_glue.stages import pack, unpack, worker
from tests.support.spark_fakes import FakeHandle
from tests.support.spark_harness import SCHEMA, SPEC
from tests.support.spark_jobs import frame_plan_for


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
        (pack, lambda frame_plan: pack._new_packer(frame_plan)),
        (processor, lambda frame_plan: processor.WindowProcessor(frame_plan).init(FakeHandle())),
        (unpack, lambda frame_plan: list(unpack._unpack(Output(None, {}), iter([])))),
    ],
    ids=["pack", "processor", "unpack"],
)
def test_each_kind_of_task_settles_its_worker(monkeypatch, module: object, begin: Callable[[FramePlan], object]):
    calls = []
    monkeypatch.setattr(module, "settle", lambda: calls.append(None))
    begin(frame_plan_for(SCHEMA.empty_table(), SPEC))
    assert len(calls) == 1
