import gc

import pytest

from spark_glue import worker


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
