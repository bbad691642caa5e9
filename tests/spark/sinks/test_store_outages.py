"""A Redis that goes away, comes back and goes back while Spark writes panes into it."""

import threading
import time
from collections.abc import Iterator

import pytest
import redis

import spark_glue
from fastwin.errors import SpecError, StoreError, StoreUnavailableError
from fastwin.store import PaneStore
from spark_glue.sinks.patience import patiently
from tests.support.clicks import FIRST, HOUR, by_module, clicks, counted, spec_of
from tests.support.numbered_clicks import batch, spec
from tests.support.redis_server import RedisServer
from tests.support.spark_streams import Source

SPEC = spec_of("1 hour", "3 minutes")
OUTAGE_SECONDS = 5.0


@pytest.fixture
def server(tmp_path_factory) -> Iterator[RedisServer]:
    started = RedisServer(tmp_path_factory.mktemp("redis"))
    yield started
    started.stop()


def run(spark, source: Source, sink, folder) -> None:
    frame = spark_glue.apply(SPEC.panes(), source.frame(spark), watermark="1 minute", key_groups=2)
    writer = frame.writeStream.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True)
    writer.foreachBatch(sink).start().awaitTermination()


def parts(tmp_path, hours: int) -> tuple:
    """Clicks of some hours, a file for each, and a source without files."""
    table = clicks(300 * hours, hours=hours)
    source = Source(tmp_path, table.schema)
    return table, source, [table.slice(300 * hour, 300) for hour in range(hours)]


def test_outage_with_what_was_kept(spark, tmp_path, server):
    """The sink waits, in the driver and in the tasks; nothing of it is to be seen afterwards."""
    table, source, files = parts(tmp_path, 3)
    source.put(*files)
    redis.Redis.from_url(server.url).config_set("appendonly", "yes")
    server.options += ("--appendonly", "yes")
    sink = spark_glue.to_store(server.url, SPEC)
    seen = []

    def outage(frame, batch_id):
        seen.append(batch_id)
        if batch_id == 1:
            server.kill()
            threading.Timer(OUTAGE_SECONDS, server.start).start()
        sink(frame, batch_id)

    run(spark, source, outage, tmp_path)
    assert seen == list(range(len(seen)))  # no batch was run again
    with PaneStore.open(server.url, read_only=True) as store:
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


def test_went_back_between_runs(spark, tmp_path, server):
    """A query that goes on from its checkpoint notices that the store has less of it than that; unless told so, it ends."""
    table, source, files = parts(tmp_path, 4)
    source.put(*files[:3])
    client = redis.Redis.from_url(server.url)

    def saving(frame, batch_id):
        sink(frame, batch_id)
        if batch_id == 0:
            client.save()

    sink = spark_glue.to_store(server.url, SPEC)
    run(spark, source, saving, tmp_path)
    server.kill()
    server.start()
    source.put(files[3])
    with pytest.raises(Exception, match="it went back, and panes are missing"):
        run(spark, source, spark_glue.to_store(server.url, SPEC), tmp_path)
    with pytest.warns(UserWarning, match="it went back, and panes are missing"):
        run(spark, source, spark_glue.to_store(server.url, SPEC, accept_loss=True), tmp_path)
    with PaneStore.open(server.url, read_only=True) as store:
        meta = store.meta()
        assert meta.watermark - HOUR < meta.since < meta.watermark
        found, expected = by_module(store.query(start=meta.since)), counted(table, meta.since, meta.watermark)
        assert {key: row["pv"] for key, row in found.items()} == {key: row["pv"] for key, row in expected.items()}
    client.flushall()
    source.put(files[3])
    with pytest.warns(UserWarning, match="has nothing of this query's batches before"):
        run(spark, source, spark_glue.to_store(server.url, SPEC), tmp_path)


def test_went_back_between_batches(spark, server):
    sink = spark_glue.to_store(server.url, spec())
    for number in range(3):
        sink(spark.createDataFrame(batch(number).to_pandas()), number)
        if number == 0:
            redis.Redis.from_url(server.url).save()
    server.kill()
    server.start()
    with pytest.raises(StoreError, match="went back from version 3 to 1"):
        sink(spark.createDataFrame(batch(3).to_pandas()), 3)


def test_task_fails_when_its_patience_ends(spark, server):
    """The error leaves the task as one, for Spark to run it again; it is no row of a task that did well."""
    sink = spark_glue.to_store(server.url, spec(), patience="1 second")
    frame = spark.createDataFrame(batch(0).to_pandas())
    writer = sink._from_executors
    server.kill()
    with pytest.raises(Exception, match=r"StoreUnavailableError.* is out of reach.*tried for 1 s") as caught:
        writer(frame, (1, 0))
    assert type(caught.value).__name__ == "PythonException"


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
