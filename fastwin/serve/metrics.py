"""What the service counts, as Prometheus reads it from /metrics."""

import os
import time
from collections.abc import Iterator

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
    multiprocess,
)
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from fastwin.store import Meta

__all__ = ["CONTENT_TYPE", "SHARED_FOLDER", "Metrics"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""The environment variable with the folder by which several workers count as one; to be set before this is imported."""

disable_created_metrics()  # a second sample of each, that nobody asks for

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """Counters of one service; of all its workers, if there are several."""

    def __init__(self) -> None:
        own = self._own = CollectorRegistry()
        routes = ("route",)
        self.requests = Counter("fastwin_requests", "Requests that were answered.", (*routes, "status"), registry=own)
        self.seconds = Histogram(
            "fastwin_request_seconds", "From a request to its answer's end.", routes, buckets=_SECONDS, registry=own
        )
        self.hits = Counter("fastwin_cache_hits", "Questions whose answer was kept.", registry=own)
        self.misses = Counter("fastwin_cache_misses", "Questions that the store was asked.", registry=own)
        self.kept_bytes = Gauge(
            "fastwin_cache_bytes", "Bytes of the answers that are kept.", multiprocess_mode="livesum", registry=own
        )
        self.connections = Gauge(
            "fastwin_connections", "Connections of clients.", multiprocess_mode="livesum", registry=own
        )
        self.refused = Counter("fastwin_connections_refused", "Connections beyond one client's limit.", registry=own)

    def text(self, meta: Meta | None) -> bytes:
        """Returns all as text. meta: what the store says now; None if it does not answer, or holds nothing."""
        registry = self._own
        if os.environ.get(SHARED_FOLDER):
            registry = CollectorRegistry()
            multiprocess.MultiProcessCollector(registry)
        of_store = CollectorRegistry()
        of_store.register(_OfStore(meta))
        return generate_latest(registry) + generate_latest(of_store)


class _OfStore(Collector):
    """What is read from the store when it is asked for."""

    def __init__(self, meta: Meta | None) -> None:
        self._meta = meta

    def collect(self) -> Iterator[Metric]:
        meta = self._meta
        yield GaugeMetricFamily("fastwin_store_up", "Whether the store answers and holds panes.", meta is not None)
        if meta is None or meta.watermark is None:
            return
        yield GaugeMetricFamily("fastwin_store_version", "Batches that were put whole.", meta.version)
        watermark = meta.watermark / 1_000
        yield GaugeMetricFamily("fastwin_store_watermark_seconds", "Where the data ends, since 1970.", watermark)
        age = time.time() - watermark
        yield GaugeMetricFamily("fastwin_store_watermark_age_seconds", "How long ago the data ends.", age)
