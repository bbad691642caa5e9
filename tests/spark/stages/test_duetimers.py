"""Timers for which Spark is asked only where there may be some, in event time. No Spark runs."""

from types import SimpleNamespace

import pytest
from pyspark import TaskContext
from pyspark.sql.streaming import stateful_processor_api_client as pysparks

import fastwin as fw
from spark_glue.plan.keygroups import ids
from spark_glue.stages.duetimers import ask_unless
from tests.support.spark_fakes import FakeHandle
from tests.support.spark_harness import Harness, counts, packet
from tests.support.spark_jobs import KEY_GROUPS

GROUP = int(ids(KEY_GROUPS)[3])
"""Of share 3, alone on its partition."""


class Handle(FakeHandle):
    """Is asked for expired timers as Spark is: by its client, of which each task has one."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def new_task(self) -> None:
        self._statefulProcessorApiClient = SimpleNamespace(get_expiry_timers_iterator=self._answer, handle_state=None)

    def _answer(self, iterator_id: str, limit: int) -> list[tuple[int, object]]:
        self.asked += 1
        return super().expired(limit)

    def expired(self, limit: int) -> list[tuple[int, object]]:
        try:
            return self._statefulProcessorApiClient.get_expiry_timers_iterator("one", limit)
        except StopIteration:
            return []


class Tasks(Harness):
    """The tasks of one partition, as Spark runs them. told: the number of partitions, as tasks know it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, told: str | None = "8") -> None:
        super().__init__()
        self.handle = Handle()
        self._monkeypatch, self._context = monkeypatch, SimpleNamespace(getLocalProperty=lambda key: told)

    def batch(self, *arguments, **named) -> dict[str, list[tuple]]:
        self.handle.new_task()
        with self._monkeypatch.context() as patch:
            patch.setattr(TaskContext, "get", lambda: self._context)
            patch.setattr("spark_glue.stages.operator.settle", lambda: None)
            return super().batch(*arguments, **named)

    @property
    def timers(self) -> set[int]:
        return self.handle.timers[GROUP]


def test_a_share_with_input_leaves_its_timer_and_is_not_asked_for(monkeypatch):
    tasks = Tasks(monkeypatch)
    tasks.batch(0, {GROUP: [packet((1, 1))]})
    assert tasks.timers == {9}
    assert counts(tasks.batch(9, {GROUP: [packet((1, 12))]})["MAIN"]) == [(1, 0, 1)]
    assert counts(tasks.batch(19, {GROUP: [packet((1, 22))]})["MAIN"]) == [(1, 10, 1)]
    assert tasks.timers == {9}
    assert tasks.handle.asked == 0


def test_a_share_without_input_is_visited_once_for_nothing_and_then_when_it_is_due(monkeypatch):
    tasks = Tasks(monkeypatch)
    tasks.batch(0, {GROUP: [packet((1, 1))]})
    tasks.batch(15, {GROUP: [packet((1, 22))]})
    assert tasks.timers == {9}
    assert tasks.batch(20, {})["MAIN"] == []
    assert tasks.timers == {29}
    visits = tasks.handle.written
    assert tasks.batch(28, {})["MAIN"] == []
    assert tasks.handle.written == visits
    assert counts(tasks.batch(29, {})["MAIN"]) == [(1, 20, 1)]
    assert tasks.timers == set()
    assert tasks.handle.asked == 3


def test_a_window_that_is_due_sooner_moves_the_timer(monkeypatch):
    tasks = Tasks(monkeypatch)
    tasks.batch(0, {GROUP: [packet((1, 31))]})
    tasks.batch(0, {GROUP: [packet((1, 11))]})
    assert tasks.timers == {19}
    assert counts(tasks.batch(19, {})["MAIN"]) == [(1, 10, 1)]
    assert tasks.timers == {39}


def test_a_share_without_windows_has_no_timer(monkeypatch):
    tasks = Tasks(monkeypatch)
    tasks.batch(0, {GROUP: [packet((1, 1))]})
    tasks.batch(100, {GROUP: [packet((1, 2))]})  # late
    assert tasks.timers == set()


def test_where_shares_may_have_company_spark_is_asked(monkeypatch):
    tasks = Tasks(monkeypatch, told=None)
    tasks.batch(0, {GROUP: [packet((1, 1))]})
    tasks.batch(9, {GROUP: [packet((1, 12))]})
    assert tasks.timers == {19}
    assert tasks.handle.asked == 2


def test_a_client_that_makes_the_iterator_itself_is_left_alone(monkeypatch):
    """Spark 4.0 asks in this way."""

    def ask(limit: int):
        yield [(7,)]

    monkeypatch.setattr(TaskContext, "get", object)
    handle = SimpleNamespace(_statefulProcessorApiClient=SimpleNamespace(get_expiry_timers_iterator=ask))
    assert not ask_unless(handle, lambda: True)
    assert handle._statefulProcessorApiClient.get_expiry_timers_iterator is ask


def test_bad_rows_alone_are_no_visit(monkeypatch):
    spec = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of(10)).bad_rows("drop")
    tasks = Tasks(monkeypatch)
    tasks.frame_plan = Harness(spec.aggregate(n=fw.Count())).frame_plan
    tasks.batch(0, {GROUP: [packet((1, 1))]})
    out = tasks.batch(9, {GROUP: [packet() | {"kind": 1, "rows": 1, "blob": None}]})
    assert counts(out["MAIN"]) == [(1, 0, 1)]


def test_pyspark_asks_its_client():
    assert hasattr(pysparks.StatefulProcessorApiClient, "get_expiry_timers_iterator")
    if not hasattr(pysparks, "ExpiredTimerIterator"):
        pytest.skip("here PySpark asks in another way, and is left alone")

    def none_due(*_):
        raise StopIteration

    client = SimpleNamespace(get_expiry_timers_iterator=none_due)
    assert list(pysparks.ExpiredTimerIterator(client, 5)) == []
    client.get_expiry_timers_iterator = lambda *_: ((7,), 3, True)
    assert list(pysparks.ExpiredTimerIterator(client, 5)) == [((7,), 3)]
