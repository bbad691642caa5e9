"""Metrics of micro-batches as Prometheus reads them, without Spark."""

import dataclasses
import errno
import socket
import sys
import urllib.request
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

import spark_glue
from fastwin.errors import NotInstalledError, SpecError
from fastwin.times import LAST_DATE_MS
from spark_glue.stages.counters import COUNTERS

TEXT = ("query_id", "run_id", "query_name", "frame", "time", "held_by_frame")


def told(batch: int, event_time: dict[str, str] | None = None, **counters: int) -> SimpleNamespace:
    values = dict.fromkeys(COUNTERS, 0) | counters
    progress = SimpleNamespace(
        id="q", runId="r", name="clicks", batchId=batch, timestamp="2024-01-01T09:00:00.000Z", batchDuration=250,
        eventTime=event_time or {}, observedMetrics={"fastwin": SimpleNamespace(asDict=lambda: values)},
    )  # fmt: skip
    return SimpleNamespace(progress=progress)


def value(registry: CollectorRegistry, name: str) -> float | None:
    return registry.get_sample_value(f"fastwin_query_{name}", {"query": "clicks", "frame": "fastwin"})


@pytest.fixture
def names(monkeypatch):
    monkeypatch.setattr("spark_glue.progress.named_values", lambda row: row.asDict())


def test_sums_and_levels(names):
    registry = CollectorRegistry()
    listener = spark_glue.prometheus_listener(port=None, registry=registry)
    nine = round(datetime(2024, 1, 1, 9, tzinfo=UTC).timestamp() * 1_000)
    listener.onQueryProgress(told(0, events=5, open_windows_change=3, load_ms=1_500, watermark_ms=nine - 60_000))
    listener.onQueryProgress(
        told(1, events=2, open_windows_change=-1, live_bytes=7, held_by=2, frame_newest_ms=nine - 4_000)
    )
    assert value(registry, "events_total") == 7
    assert value(registry, "open_windows") == 2
    assert value(registry, "load_seconds_total") == 1.5
    assert value(registry, "live_bytes") == 7
    assert value(registry, "lag_seconds") == 4
    assert value(registry, "held_by") == 1
    assert value(registry, "duration_seconds") == 0.25
    assert value(registry, "batch_id") == 1


def test_a_date_beyond_the_year_9999_does_not_end_the_metrics(names):
    registry, beyond = CollectorRegistry(), "55970-01-01T00:00:00.000Z"
    listener = spark_glue.prometheus_listener(port=None, registry=registry)
    listener.onQueryProgress(told(0, {"watermark": "2024-01-01T08:00:00.000Z", "max": beyond}, events=5))
    assert value(registry, "newest_seconds") == LAST_DATE_MS / 1_000
    listener.onQueryProgress(told(1, {"watermark": beyond}, events=2))
    assert value(registry, "events_total") == 7


def test_a_query_that_has_ended_leaves_nothing(names):
    registry, query = CollectorRegistry(), {"query": "clicks"}
    listener = spark_glue.prometheus_listener(port=None, registry=registry)

    def begun(run: str, at: str = "2024-01-01T08:59:00.000Z") -> SimpleNamespace:
        return SimpleNamespace(id="q", runId=run, name="clicks", timestamp=at)

    def of_query(name: str) -> float | None:
        return registry.get_sample_value(f"fastwin_query_{name}", query)

    nine = datetime(2024, 1, 1, 9, tzinfo=UTC).timestamp()
    listener.onQueryStarted(begun("r"))
    assert of_query("running") == 1
    assert of_query("last_batch_time_seconds") == nine - 60  # a first micro-batch that hangs is told of as well
    listener.onQueryProgress(told(0, events=5))
    assert of_query("last_batch_time_seconds") == nine + 0.25
    idle = SimpleNamespace(runId="r", timestamp="2024-01-01T09:00:10.000Z")
    listener.onQueryIdle(idle)
    assert of_query("last_batch_time_seconds") == nine + 10
    # Spark tells of it before it tells that the other has ended.
    listener.onQueryStarted(begun("again", "2024-01-01T09:01:00.000Z"))
    assert of_query("last_batch_time_seconds") == nine + 60
    listener.onQueryTerminated(begun("r"))
    assert of_query("running") == 1
    assert value(registry, "events_total") == 5
    listener.onQueryTerminated(begun("again"))
    listener.onQueryTerminated(begun("never seen"))
    listener.onQueryIdle(idle)
    assert [sample for metric in registry.collect() for sample in metric.samples] == []
    listener.onQueryProgress(told(1))  # of a query that ran before the listener came
    assert of_query("running") == 1


def test_every_metric_is_there(names):
    registry = CollectorRegistry()
    spark_glue.prometheus_listener(port=None, registry=registry).onQueryProgress(told(0))
    kept = {metric.name.removeprefix("fastwin_query_") for metric in registry.collect()}
    for field in dataclasses.fields(spark_glue.BatchMetrics):
        name = field.name.removesuffix("_change")
        assert field.name in TEXT or name in kept or name.removesuffix("_ms") + "_seconds" in kept, field.name


def served() -> tuple[Any, int]:
    """Returns a listener that serves, and its port."""
    while True:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        try:
            return spark_glue.prometheus_listener(port), port
        except OSError as problem:  # somebody else was quicker
            if problem.errno != errno.EADDRINUSE:
                raise


def test_it_is_served_until_it_is_closed(names):
    listener, port = served()
    try:
        listener.onQueryProgress(told(0, fired=3))
        text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30).read().decode()
        assert 'fastwin_query_fired_total{frame="fastwin",query="clicks"} 3.0' in text
        with pytest.raises(OSError, match="in use"):
            spark_glue.prometheus_listener(port)
    finally:
        listener.close()
    listener.close()
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30)


def test_what_cannot_be_served_is_refused(names, monkeypatch):
    with pytest.raises(SpecError, match="port must be None or from 1 to 65535, got 0"):
        spark_glue.prometheus_listener(0)
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(NotInstalledError, match=r"fastwin\[.*serve"):
        spark_glue.prometheus_listener(None)
