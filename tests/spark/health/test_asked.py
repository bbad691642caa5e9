"""What the doctor asks Spark for: the times of tasks, by its store of stages, and its cores. No Spark runs."""

import importlib
from types import SimpleNamespace

import pytest

from spark_glue.health.ailments import diagnose
from spark_glue.health.records import Setup, Tasks, read_records
from spark_glue.plan import asking
from spark_glue.stages.counters import COUNTERS

doctor = importlib.import_module("spark_glue.doctor")  # the package has the function by this name
NAME = "\nid = 1\nrunId = 2\nbatch = 7"


class Seq(list):
    size = list.__len__
    apply = list.__getitem__


def told(value):
    return lambda *_: value


def some(value):
    return SimpleNamespace(isDefined=told(True), isEmpty=told(False), get=told(value))


class Stage:
    def __init__(self, times, *, reads=1_000, inputs=0, writes=0):
        self.times = sorted(times)
        self.data = SimpleNamespace(
            attemptId=told(0), numTasks=told(len(times)), shuffleReadRecords=told(reads), inputRecords=told(inputs),
            shuffleWriteRecords=told(writes),
        )  # fmt: skip

    def summary(self, quantiles):
        count = len(self.times)
        found = Seq(self.times[min(int(quantile * count), count - 1)] for quantile in quantiles)
        return some(SimpleNamespace(executorRunTime=told(found)))


@pytest.fixture
def tasks_of(monkeypatch):
    """What is told of the tasks of a job with these stages. visits: of shares in its micro-batch."""
    gateway = SimpleNamespace(new_array=lambda _, count: [0.0] * count, jvm=SimpleNamespace(double=None))
    monkeypatch.setattr(doctor, "SparkContext", SimpleNamespace(_gateway=gateway))

    def ask(*stages, visits, name=NAME):
        store = SimpleNamespace(
            job=told(SimpleNamespace(stageIds=told(Seq(range(len(stages)))), description=told(some(name)))),
            lastStageAttempt=lambda number: stages[number].data,
            taskSummary=lambda number, _, quantiles: stages[number].summary(quantiles),
        )
        tracker = SimpleNamespace(getJobIdsForGroup=told([3]))
        context = SimpleNamespace(statusTracker=told(tracker), statusStore=told(store))
        session = SimpleNamespace(sparkContext=told(context))
        inner = SimpleNamespace(sparkSession=told(session), runId=told(SimpleNamespace(toString=told("2"))))
        return doctor._tasks(inner, {7: visits})

    return ask


def is_skew(tasks):
    return "skew" in diagnose([], Setup(tasks=tasks))


@pytest.mark.parametrize("each", [1, 2])
def test_tasks_without_a_share_do_not_count(tasks_of, each):
    idle = [5] * 136  # of 200 partitions, where there are 64 key groups
    even = tasks_of(Stage([*idle, *[600] * 64]), visits=64 * each)
    assert even == Tasks(200, 600, 600)
    assert not is_skew(even)
    hot = tasks_of(Stage([*idle, *[600] * 63, 6_000]), visits=64 * each)
    assert hot == Tasks(200, 600, 6_000)
    assert is_skew(hot)
    assert not is_skew(tasks_of(Stage([5] * 199 + [6_000]), visits=each))


@pytest.mark.parametrize("inputs", [0, 1_000])
def test_a_large_part_of_a_source_is_no_skew(tasks_of, inputs):
    reading = Stage([10] * 7 + [9_000], reads=0, inputs=inputs, writes=1_000)
    assert tasks_of(reading, visits=8) is None
    assert tasks_of(reading, Stage([20] * 8), Stage([], reads=0), visits=8) == Tasks(8, 20, 20)


def test_windows_may_fire_without_rows(tasks_of):
    found = tasks_of(Stage([80, 80, 90, 4_000], reads=0), visits=4)
    assert found == Tasks(4, 90, 4_000)
    assert is_skew(found)


def test_a_job_of_a_micro_batch_that_is_not_known_does_not_count(tasks_of):
    assert tasks_of(Stage([1, 1, 1, 9_000]), visits=4, name="a job of a sink") is None
    assert tasks_of(Stage([1, 1, 1, 9_000]), visits=4, name=NAME.replace("7", "8")) is None


def counted(**counters):
    return {"counters": dict.fromkeys(COUNTERS, 0) | counters}


@pytest.mark.parametrize(
    ("other", "least"),
    [({"streams_kept": 1, "events": 9}, 1), ({"events": 9}, 0), ({}, 31)],
    ids=["of one share", "begins", "is quiet"],
)
def test_the_stages_of_several_frames_are_not_held_to_the_visits_of_all(tasks_of, other, least):
    """One share of the other frame has all of its work: its stage is no stage of 32 shares."""
    frames = {"one": counted(streams_caught_up=30, streams_loaded=1), "other": counted(**other)}
    record = {"batchId": 7, "timestamp": "2024-01-01T00:00:00.000Z", "sources": [], "observedMetrics": frames}
    (one,) = read_records([record])
    assert one.least_visits == least
    assert one.visits == 31 + other.get("streams_kept", 0)
    if least < 31:
        apart, united = Stage([5] * 31 + [6_000]), Stage([5] * 32 + [80] * 31 + [6_000])
        for stages in ([Stage([80] * 31 + [5]), apart], [united]):
            assert not is_skew(tasks_of(*stages, visits=one.least_visits))
            assert is_skew(tasks_of(*stages, visits=one.visits))


class Conf(dict):
    def contains(self, key):
        return key in self


@pytest.mark.parametrize(("dynamic", "cores"), [("true", 64), ("false", 4)])
def test_cores_that_spark_may_still_get_count(monkeypatch, dynamic, cores):
    conf = Conf({"spark.executor.cores": "4", "spark.dynamicAllocation.maxExecutors": "16"})
    conf["spark.dynamicAllocation.enabled"] = dynamic
    context = SimpleNamespace(master="yarn", defaultParallelism=4, getConf=lambda: conf)
    monkeypatch.setattr(doctor, "SparkContext", SimpleNamespace(_active_spark_context=context))
    monkeypatch.setattr(asking, "_missed", set())  # the log has each once
    query = SimpleNamespace(isActive=True, _jsq=SimpleNamespace(streamingQuery=lambda: SimpleNamespace()))
    assert doctor._setup(query, {}).cores == cores
