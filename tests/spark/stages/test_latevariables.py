"""Variables that Spark hears of at their first use. No Spark runs."""

from types import SimpleNamespace

import pytest
from pyspark import TaskContext
from pyspark.sql.streaming.stateful_processor_api_client import StatefulProcessorHandleState as State

from spark_glue.stages.latevariables import late_variables
from tests.support.spark_fakes import FakeHandle


class Handle(FakeHandle):
    """Notes what it is asked for, and takes variables only until ``init`` is over, as Spark does."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[str] = []
        self._statefulProcessorApiClient = SimpleNamespace(handle_state=State.CREATED, set_handle_state=self.goes_to)

    def goes_to(self, state: State) -> None:
        self._statefulProcessorApiClient.handle_state = state

    def getValueState(self, name, schema):  # noqa: N802
        assert self._statefulProcessorApiClient.handle_state == State.CREATED
        self.made.append(name)
        return super().getValueState(name, schema)

    def getMapState(self, name, key_schema, value_schema):  # noqa: N802
        assert self._statefulProcessorApiClient.handle_state == State.CREATED
        self.made.append(name)
        return super().getMapState(name, key_schema, value_schema)


@pytest.mark.parametrize("state", [State.CREATED, State.INITIALIZED, State.DATA_PROCESSED])
def test_a_variable_is_made_once_when_it_is_used(monkeypatch, state):
    monkeypatch.setattr(TaskContext, "get", lambda: object())
    handle = Handle()
    late = late_variables(handle)
    head, chunks = late.getValueState("head", "h binary"), late.getMapState("chunks", "c long", "d binary")
    handle.goes_to(state)
    assert handle.made == []
    assert head.get() is None
    head.update((b"x",))
    assert head.get() == (b"x",)
    assert handle.made == ["head"]
    assert chunks.getValue((1,)) is None
    late.registerTimer(5)
    assert handle.made == ["head", "chunks"]
    assert handle.timers[0] == {5}
    assert handle._statefulProcessorApiClient.handle_state == state


def test_the_driver_and_an_unknown_handle_are_told_of_all_at_once(monkeypatch):
    handle = Handle()
    assert late_variables(handle) is handle
    monkeypatch.setattr(TaskContext, "get", lambda: object())
    other = FakeHandle()
    assert late_variables(other) is other
