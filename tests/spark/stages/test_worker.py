import gc
import logging
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
        (pack, lambda frame_plan: pack.new_packer(frame_plan)),
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


class Context:
    """A task's."""

    def __init__(self, **told: str) -> None:
        self._told = told

    def getLocalProperty(self, key: str) -> str | None:  # noqa: N802
        return self._told.get(key.rsplit(".", maxsplit=1)[-1])


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        (Context(queryId="a1-b2"), "a1-b2"),
        (Context(), "unnamed-operator"),
        (Context(queryId="../other"), "unnamed-operator"),
        (None, "unnamed-operator"),
    ],
)
def test_queries_that_spark_does_not_name_are_told_apart(monkeypatch, context, expected):
    monkeypatch.setattr(worker.TaskContext, "get", staticmethod(lambda: context))
    assert worker.run_of("operator") == expected
    assert worker.run_of("") == expected.removesuffix("-operator")


@pytest.fixture
def loggers():
    """The loggers of fastwin, which are put back afterwards."""
    found = [logging.getLogger(name) for name in ("fastwin", "spark_glue")]
    before = [(one.level, list(one.handlers)) for one in found]
    yield found
    for one, (level, handlers) in zip(found, before, strict=True):
        one.setLevel(level)
        one.handlers[:] = handlers


def test_a_worker_writes_its_log_to_stderr_where_it_is_told_to(loggers, capsys):
    worker.log_to_stderr("info")
    logging.getLogger("spark_glue.state.shares").info("share 3: loaded")
    logging.getLogger("spark_glue.state.shares").debug("share 3: forgot")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("spark_glue.state.shares: share 3: loaded")


def test_a_level_that_is_none_changes_nothing(loggers, caplog):
    before = [list(one.handlers) for one in loggers]
    worker.log_to_stderr("loud")
    assert "FASTWIN_LOG: must be a level such as INFO, got 'loud'" in caplog.text
    worker.log_to_stderr("")
    assert [list(one.handlers) for one in loggers] == before
