"""A Redis that goes away, comes back and goes back while Spark writes panes into it."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from pyspark.errors import StreamingQueryException

import spark_glue
from fastwin.errors import SpecError, StoreError, StoreUnavailableError
from fastwin.store import PaneStore
from spark_glue.sinks.patience import patiently
from tests.support.clicks import FIRST, HOUR, MINUTE, by_module, clicks, counted, spec_of
from tests.support.cut_network import Network
from tests.support.numbered_clicks import batch, spec
from tests.support.redis_server import RedisServer
from tests.support.spark_streams import Source

ROOT = Path(__file__).resolve().parents[3]
SPEC = spec_of("1 hour", "3 minutes")
OUTAGE_SECONDS = 1.0


@pytest.fixture
def server(tmp_path_factory) -> Iterator[RedisServer]:
    started = RedisServer(tmp_path_factory.mktemp("redis"))
    yield started
    started.stop()


@pytest.fixture
def keeping_server(tmp_path_factory) -> Iterator[RedisServer]:
    """It writes everything down from the start: told so later, it takes a while to begin with it."""
    started = RedisServer(tmp_path_factory.mktemp("redis"), "--appendonly", "yes", "--appendfsync", "always")
    yield started
    started.stop()


def test_outage_with_what_was_kept(spark, tmp_path, keeping_server):
    """The sink waits, in the driver and in the tasks; nothing of it is to be seen afterwards."""
    table = clicks(900, hours=3)
    panes = SPEC.panes().run(table).main.sort_by("window_start")
    source = Source(tmp_path, panes.schema)
    third = panes.num_rows // 3 + 1
    source.put(*(panes.slice(first, third) for first in range(0, panes.num_rows, third)))
    sink = spark_glue.to_store(keeping_server.url, SPEC)
    seen, timer = [], threading.Timer(OUTAGE_SECONDS, keeping_server.start)

    def outage(frame, batch_id):
        seen.append(batch_id)
        if batch_id == 1:
            keeping_server.kill()
            timer.start()
        sink(frame, batch_id)

    writer = source.frame(spark).writeStream.foreachBatch(outage).trigger(availableNow=True)
    try:
        writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
    finally:
        if timer.ident is not None:
            timer.join(60)
    assert seen == [0, 1, 2]  # no batch was run again
    (marked,) = redis.Redis.from_url(keeping_server.url).hvals("{fastwin}:queries")
    assert int(marked) == seen[-1]
    with PaneStore.open(keeping_server.url, read_only=True) as store:
        end = store.watermark
        found, expected = by_module(store.query(end=end)), counted(table, end - HOUR, end)
        assert {key: row["pv"] for key, row in found.items()} == {key: row["pv"] for key, row in expected.items()}


def test_restarted_within_a_batch(spark, server):
    """What a batch had put before is gone with the server, so all of it is put once more."""
    sink = spark_glue.to_store(server.url, spec())
    panes = [batch(number).to_pandas() for number in range(3)]
    sink(spark.createDataFrame(panes[0]), 0)
    redis.Redis.from_url(server.url).save()
    advance = PaneStore.advance_watermark

    def restarting(self, *arguments, **options):
        if not restarted:
            restarted.append(True)
            server.kill()
            server.start()
        return advance(self, *arguments, **options)

    restarted: list[bool] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PaneStore, "advance_watermark", restarting)
        sink(spark.createDataFrame(panes[1]), 1)
    with PaneStore.open(server.url, read_only=True) as store:
        found = store.query(start=FIRST, end=store.watermark)
        assert set(found["pv"].to_pylist()) == {1 + 2} and found.num_rows == 50


def test_went_back_between_runs(spark, server, monkeypatch):
    """A query that goes on from its checkpoint notices that the store has less than that; unless told so, it ends."""
    monkeypatch.setattr("spark_glue.sinks.store.query_id_of", lambda frame: "one query")
    frames = [spark.createDataFrame(batch(number).to_pandas()) for number in range(5)]
    client = redis.Redis.from_url(server.url)
    sink = spark_glue.to_store(server.url, spec())
    for number in range(3):
        sink(frames[number], number)
        if number == 0:
            client.save()
    server.kill()
    server.start()
    for _ in range(2):
        with pytest.raises(StoreError, match="has of this query is 0, and this is batch 3: it went back"):
            spark_glue.to_store(server.url, spec())(frames[3], 3)
    accepting = spark_glue.to_store(server.url, spec(), accept_loss=True)
    with pytest.warns(UserWarning, match="it went back, and panes are missing") as told:
        accepting(frames[3].limit(0), 3)  # most batches bring no panes
    assert {one.filename for one in told if "went back" in str(one.message)} == {__file__}
    accepting(frames[4], 4)
    with PaneStore.open(server.url, read_only=True) as store:
        assert store.meta().since == FIRST + 5 * 3 * MINUTE  # no window from before is complete
    client.flushall()
    with pytest.warns(UserWarning, match="has nothing of this query's batches before 4"):
        spark_glue.to_store(server.url, spec())(frames[4].limit(0), 4)
    accepting = spark_glue.to_store(server.url, spec())
    accepting(frames[3], 5)
    with PaneStore.open(server.url, read_only=True) as store:
        assert store.meta().since == FIRST + 4 * 3 * MINUTE


def test_failover(spark, server):
    """A master that became a replica takes no panes: tasks wait for it, or for the one that gets its address."""
    sink = spark_glue.to_store(server.url, spec(), patience="1 minute")
    client = redis.Redis.from_url(server.url)
    client.config_set("replica-serve-stale-data", "yes")
    epoch = sink._store.new_epoch()
    client.replicaof("127.0.0.1", 1)
    timer = threading.Timer(OUTAGE_SECONDS, client.replicaof, ["NO", "ONE"])
    timer.start()
    try:
        written = sink._from_executors(spark.createDataFrame(batch(0).to_pandas()), (epoch, 0))
    finally:
        timer.join(60)
    assert written.stored == 50


def test_tasks_on_another_server_than_the_driver(spark, server, tmp_path):
    """As where Sentinels do not agree yet on the master: what went to the other one does not count."""
    frame = spark.createDataFrame(batch(0).to_pandas())
    sink = spark_glue.to_store(server.url, spec(), patience="1 ms")
    other = RedisServer(tmp_path)
    try:
        sink._url = other.url
        with pytest.raises(StoreUnavailableError, match="into another server than the one where the batch began"):
            sink(frame, 0)
    finally:
        other.stop()
    with PaneStore.open(server.url, read_only=True) as store:
        assert store.meta() is None
        sink._url = server.url
        assert sink(frame, 0).stored == 50 and store.query()["pv"].to_pylist() == [1] * 50


def test_batches_that_the_sink_was_not_handed(spark, server, monkeypatch):
    """Left out by the caller, they are missed only by a sink that cannot know it."""
    monkeypatch.setattr("spark_glue.sinks.store.query_id_of", lambda frame: "one query")
    frame = spark.createDataFrame(batch(0).to_pandas())
    sink = spark_glue.to_store(server.url, spec())
    for number in (0, 3, 9):
        assert sink(frame, number).stored == 50
    with pytest.raises(StoreError, match="or the sink was not called for each batch"):
        spark_glue.to_store(server.url, spec())(frame, 12)


def test_went_back_between_batches(spark, server):
    sink = spark_glue.to_store(server.url, spec())
    for number in range(2):
        sink(spark.createDataFrame(batch(number).to_pandas()), number)
        if number == 0:
            redis.Redis.from_url(server.url).save()
    server.kill()
    server.start()
    with pytest.raises(StoreError, match="went back from version 2 to 1"):
        sink(spark.createDataFrame(batch(2).to_pandas()), 2)


def test_task_fails_when_its_patience_ends(spark, server):
    """The error leaves the task as one, for Spark to run it again; it is no row of a task that did well."""
    sink = spark_glue.to_store(server.url, spec(), patience="1 second")
    frame = spark.createDataFrame(batch(0).to_pandas())
    writer = sink._from_executors
    server.kill()
    with pytest.raises(Exception, match=r"StoreUnavailableError.* is out of reach.*tried for 1 s") as caught:
        writer(frame, (1, 0))
    assert type(caught.value).__name__ == "PythonException"


@pytest.fixture
def network(server) -> Iterator[Network]:
    made = Network(server.port)
    yield made
    made.stop()


def url_over(network: Network) -> str:
    return f"redis://127.0.0.1:{network.port}/0?socket_timeout=0.5"


def panes_of(store: PaneStore, batches: int) -> set[int]:
    return set(store.query(start=FIRST, end=FIRST + batches * 3 * MINUTE)["pv"].to_pylist())


@pytest.mark.parametrize("lost", [{}, {"asks": False}], ids=["all", "answers"])
def test_cut_network_that_is_mended(spark, server, network, lost):
    """Nobody is told that nothing comes through: driver and tasks ask again, and each pane is counted once."""
    sink = spark_glue.to_store(url_over(network), spec(), patience="1 minute")
    sink(spark.createDataFrame(batch(0).to_pandas()), 0)
    network.cut(**lost)
    timer = threading.Timer(OUTAGE_SECONDS, network.mend)
    timer.start()
    try:
        assert sink(spark.createDataFrame(batch(1).to_pandas()), 1).stored == 50
    finally:
        timer.join(60)
    with PaneStore.open(server.url, read_only=True) as store:
        assert panes_of(store, 2) == {1 + 2} and store.meta().version == 2


@pytest.mark.long
def test_tasks_that_fail_are_run_again(server, tmp_path):
    """With a master that allows for it: what the failed attempt wrote is written once more, and counted once."""
    command = [sys.executable, "-m", "tests.support.retried_tasks", server.url, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["batches"] == [0, 1, 2]  # the query went on; none was handed to the sink again
    assert {"1.0.1", "1.1.1"} & set(told["attempts"])
    assert not {name for name in told["attempts"] if name.endswith(".1") and not name.startswith("1.")}
    with PaneStore.open(server.url, read_only=True) as store:
        assert panes_of(store, 3) == {1 + 2 + 3} and store.meta().version == 3


def test_cut_network_beyond_patience(spark, server, network, tmp_path):
    """The task fails, and with it the query; started again from its checkpoint, it has lost nothing."""
    schema = batch(0).schema
    source = Source(tmp_path, schema)
    source.put(*(batch(number) for number in range(3)))
    seen = []

    def run(patience: str, cut_at: int | None = None) -> None:
        sink = spark_glue.to_store(url_over(network), spec(), patience=patience)
        write = sink._from_executors

        def cutting(panes, revision):
            if revision[1] == cut_at:
                network.cut(asks=False)  # within the batch: what tasks write arrives, and they do not hear of it
            return write(panes, revision)

        sink._from_executors = cutting

        def put(frame, batch_id):
            seen.append(batch_id)
            sink(frame, batch_id)

        writer = source.frame(spark).writeStream.foreachBatch(put).trigger(availableNow=True)
        writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()

    with pytest.raises(StreamingQueryException, match="StoreUnavailableError"):
        run("1 second", cut_at=1)
    with PaneStore.open(server.url, read_only=True) as store:
        assert store.meta().version == 1 and store.watermark == FIRST + 3 * MINUTE  # that of the batch before
    network.mend()
    run("1 minute")
    assert seen == [0, 1, 1, 2]
    with PaneStore.open(server.url, read_only=True) as store:
        assert panes_of(store, 3) == {1 + 2 + 3} and store.meta().version == 3


@pytest.mark.parametrize("fault", ["full", "denied", "foreign"])
def test_what_time_does_not_mend(spark, server, fault):
    """A sentence at once, from a task or the driver, in spite of all patience."""
    client = redis.Redis.from_url(server.url)
    client.execute_command("ACL", "SETUSER", "sink", "on", ">secret", "~*", "+@all")
    sink = spark_glue.to_store(server.url.replace("://", "://sink:secret@"), spec(), patience="10 minutes")
    sink(spark.createDataFrame(batch(0).to_pandas()), 0)
    says = {"full": r"out of memory \(maxmemory\)", "denied": "does not let it", "foreign": "foreign value"}[fault]
    if fault == "full":
        client.config_set("maxmemory", 1)
    elif fault == "denied":
        client.execute_command("ACL", "SETUSER", "sink", "-evalsha", "-eval")
    else:
        (name,) = client.keys("{fastwin:m7}:3min:*Z")
        client.delete(name)
        client.set(name, "hello")
    with pytest.raises(StoreError, match=says) as caught:
        sink(spark.createDataFrame(batch(1).to_pandas()), 1)
    assert type(caught.value) is StoreError and "secret" not in str(caught.value)


def test_patience_begins_with_the_first_failure(monkeypatch):
    """A batch that was long at work before has not waited yet."""
    clock = [0.0]
    monkeypatch.setattr("spark_glue.sinks.patience.time.monotonic", lambda: clock[0])
    monkeypatch.setattr("spark_glue.sinks.patience.time.sleep", lambda seconds: None)

    def second():
        clock[0] += 600
        if clock[0] < 1_000:
            raise StoreUnavailableError("away")
        return "there"

    assert patiently(second, 60) == "there"


def test_patience():
    calls = []

    def third():
        calls.append(time.monotonic())
        if len(calls) < 3:
            raise StoreUnavailableError("away")
        return "there"

    assert patiently(third, 60) == "there"
    with pytest.raises(StoreUnavailableError, match=r"away; it was tried for 0\.2 s"):
        patiently(lambda: (_ for _ in ()).throw(StoreUnavailableError("away")), 0.2)
    with pytest.raises(StoreError, match="for good"):
        patiently(lambda: (_ for _ in ()).throw(StoreError("for good")), 60)
    with pytest.raises(SpecError, match="patience"):
        spark_glue.to_store("redis://127.0.0.1:1", spec(), patience="soon")
