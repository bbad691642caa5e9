"""What a query leaves on the driver's machine goes when it ends, however it does; what others have there stays."""

import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from spark_glue.plan import asking, queries
from spark_glue.state import cleanup
from spark_glue.state.cleanup import _Listener, _listeners, forget_when_ended
from spark_glue.state.folders import ROOT_VARIABLE, cache_root
from spark_glue.state.live import Live, LiveStreams
from tests.support.spark_counting import started
from tests.support.spark_streams import await_batches

ROOT = Path(__file__).resolve().parents[3]


def files(query) -> list[str]:
    return [path.name for path in (cache_root() / str(query.id)).glob("*")]


def await_gone(query) -> None:
    end = time.monotonic() + 120
    while (cache_root() / str(query.id)).exists():
        assert time.monotonic() < end, "its copies of state are still there"
        time.sleep(0.05)


def test_a_stopped_query_leaves_nothing_and_others_keep_theirs(spark, tmp_path):
    one, recorder = started(spark, tmp_path / "one")
    other, others = started(spark, tmp_path / "other")
    try:
        await_batches(recorder, one, 1)
        await_batches(others, other, 1)
        # A batch without data may still be to come; and a task that is stopped takes its worker with it, who may be the
        # only one to hold what the other query has there.
        one.processAllAvailable()
        other.processAllAvailable()
        assert files(one)
        kept = files(other)
        assert kept
        # The end of an earlier run is told when the next one has begun.
        _listeners[spark].onQueryTerminated(SimpleNamespace(id=other.id, runId=one.runId))
        assert files(other) == kept
        one.stop()
        await_gone(one)
        assert files(other) == kept
    finally:
        one.stop()
        other.stop()
    await_gone(other)


def test_a_failed_query_leaves_nothing(spark, tmp_path):
    def sink(frame, batch_id):
        frame.collect()
        raise ValueError("the sink")

    query, _ = started(spark, tmp_path / "one", sink)
    with pytest.raises(Exception, match="the sink"):
        query.awaitTermination()
    await_gone(query)


def test_a_session_is_listened_to_once(spark):
    forget_when_ended(spark)
    before = _listeners[spark]
    forget_when_ended(spark)
    assert _listeners[spark] is before


@pytest.fixture
def cleaned(monkeypatch) -> list[tuple[str, str]]:
    """Whose copies have been removed, and where."""
    found = []
    monkeypatch.setattr(cleanup, "forget_run", lambda query: found.append(("driver", query)))
    monkeypatch.setattr(cleanup, "_forget_on_executors", lambda _, query, run: found.append(("executors", query)))
    return found


def test_at_the_end_of_a_query_without_apply_no_job_runs(spark, cleaned):
    forget_when_ended(spark)
    query = spark.readStream.format("rate").load().writeStream.format("noop").start()
    query.stop()
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    assert cleaned == []


@pytest.mark.parametrize("told", [True, False], ids=["it has ended already", "Spark tells nothing"])
def test_a_query_that_may_have_an_apply_is_cleaned_up_after(spark, cleaned, monkeypatch, told):
    def nothing(*_):
        raise AttributeError("sharedState")

    monkeypatch.setattr(asking, "_missed", set())
    if not told:
        monkeypatch.setattr(queries, "_active", nothing)
    listener = _Listener(spark)
    event = SimpleNamespace(id=f"nobody knows {told}", runId="run")
    listener.onQueryTerminated(event)
    assert cleaned == []
    listener.onQueryStarted(event)
    listener.onQueryTerminated(event)
    end = time.monotonic() + 60
    while len(cleaned) < 2:  # that of the executors has a thread of its own
        assert time.monotonic() < end, cleaned
        time.sleep(0.01)
    assert sorted(cleaned) == [("driver", event.id), ("executors", event.id)]


APP = """
import sys
from pathlib import Path
import spark_glue
from spark_glue.state.folders import cache_root
from tests.support.spark_counting import started

def sink(frame, batch_id):
    frame.collect()
    print("FILES", len(list(cache_root().glob("*/*"))), flush=True)

spark = spark_glue.session(master="local[1]", config={"spark.ui.enabled": False})
spark.sparkContext.setLogLevel("ERROR")
spark.streams.addListener(spark_glue.progress_listener())
query, _ = started(spark, Path(sys.argv[1]), sink)
query.processAllAvailable()
"""


@pytest.mark.long
def test_a_driver_that_ends_leaves_nothing(tmp_path):
    """Its query still runs, and nobody stops it. Spark's listeners are told of its end by nobody: they are gone."""
    done = subprocess.run(
        [sys.executable, "-c", APP, str(tmp_path / "query")],
        env=os.environ | {ROOT_VARIABLE: str(tmp_path / "cache"), "PYSPARK_PYTHON": sys.executable},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = [int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("FILES")]
    assert told[0] > 0, done.stdout
    assert not list((tmp_path / "cache").glob("*/*"))
    assert "py4j" not in done.stderr.lower(), done.stderr[-3000:]


class Context:
    """A cluster's context that runs its tasks at once, and counts them."""

    def __init__(self) -> None:
        self.tasks = 0
        self.defaultParallelism = 3_000
        self._jsc = SimpleNamespace(sc=lambda: SimpleNamespace(isLocal=lambda: False))

    def setJobDescription(self, _):  # noqa: N802
        pass

    def parallelize(self, rows, tasks):
        def run(function):
            self.tasks += tasks
            function(iter(rows))

        return SimpleNamespace(foreachPartition=run)


@pytest.mark.parametrize("again", [False, True], ids=["ended", "runs again"])
def test_executors_forget_a_query_unless_it_runs_again(monkeypatch, again):
    context, forgotten, live = Context(), [], LiveStreams()
    for query in ("ended", "other"):
        live._held[query, 1] = Live("token", query, None, 10)
    monkeypatch.setattr(cleanup, "has_started_again", lambda *_: again)
    monkeypatch.setattr(cleanup, "forget_run", forgotten.append)
    monkeypatch.setattr(cleanup, "LIVE", live)
    cleanup._forget_on_executors(SimpleNamespace(sparkContext=context), "ended", "run")
    assert context.tasks == (0 if again else cleanup._MOST_TASKS)
    assert forgotten == ([] if again else ["ended"])
    assert len(live) == (2 if again else 1)
