"""The plan of an ``apply``, as it travels to the workers."""

import pickle
from dataclasses import fields

import pytest

import fastwin as fw
from fastwin.errors import SpecError
from tests.support.spark_events import events
from tests.support.spark_jobs import frame_plan_for


def test_a_worker_with_another_version_is_told_of(monkeypatch):
    plan = frame_plan_for(events(0, 10))
    shipped = pickle.dumps(plan)
    assert pickle.loads(shipped) == plan
    monkeypatch.setattr(fw, "__version__", "9.9.9")
    with pytest.raises(SpecError, match=r"the driver has version \d.*, and this worker has 9\.9\.9; install the same"):
        pickle.loads(shipped)
    state = plan.__getstate__()
    del state["fastwin"]
    with pytest.raises(SpecError, match=r"the driver has version of long ago, and this worker has 9\.9\.9"):
        plan.__setstate__(state)


def test_what_follows_from_the_rest_does_not_travel():
    plan = frame_plan_for(events(0, 10))
    names = {field.name for field in fields(plan)}
    assert (plan.plan, plan.packed_schema, plan.time_mode) and plan.__dict__.keys() > names
    assert plan.__getstate__().keys() == names | {"fastwin"}
    assert pickle.loads(pickle.dumps(plan)).__dict__.keys() == names
