"""What the service says of itself: /metrics for Prometheus, and an access log without secrets."""

import logging
import shutil
import threading
import time

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fastwin.serve.answers import Answers
from fastwin.serve.app import Settings
from fastwin.serve.watching import ACCESS_LOG
from tests.support.clicks import FIRST, HOUR, clicks
from tests.support.service import put_clicks
from tests.support.until import until

END = FIRST + 30 * HOUR


def scraped(service, **headers) -> dict[tuple, float]:
    """Returns the samples by their name and labels."""
    status, answered, body = service.get("/metrics", headers)
    assert status == 200 and answered["content-type"].startswith("text/plain; version=0.0.4")
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
    }


def test_what_is_counted(make_service):
    service = make_service()
    for path in (
        "/api/current",
        "/api/current",
        "/api/series?key=nobody",
        "/nothing",
        "/else",
        "/static/page.css",
        "/",
    ):
        service.get(path)
    found = scraped(service)
    requests = {key[1:]: value for key, value in found.items() if key[0] == "fastwin_requests_total"}
    assert requests == {
        ("/api/current", "200"): 2,
        ("/api/series", "404"): 1,
        ("404", "other"): 2,
        ("/static", "200"): 1,
        ("/", "200"): 1,
    }
    assert found["fastwin_request_seconds_count", "/api/current"] == 2
    assert 0 < found["fastwin_request_seconds_sum", "/api/current"] < 60
    assert (found[("fastwin_cache_hits_total",)], found[("fastwin_cache_misses_total",)]) == (1, 1)
    assert 200 < found[("fastwin_cache_bytes",)] < 10_000
    assert found[("fastwin_connections",)] == 1  # this one
    assert (found[("fastwin_store_up",)], found[("fastwin_store_version",)]) == (1, 1)
    assert found[("fastwin_store_watermark_seconds",)] == END / 1_000
    assert found[("fastwin_store_watermark_age_seconds",)] == pytest.approx(time.time() - END / 1_000, abs=60)


def test_store_that_comes_and_goes(make_service, tmp_path):
    service = make_service(table=clicks(0))
    found = scraped(service)
    assert found[("fastwin_store_up",)] == 0 and ("fastwin_store_version",) not in found
    put_clicks(service.store, clicks(50))
    end = time.monotonic() + 20
    while scraped(service)[("fastwin_store_up",)] != 1:
        assert time.monotonic() < end
    service.store.close()
    shutil.rmtree(tmp_path / "store0")
    while scraped(service)[("fastwin_store_up",)] != 0:
        assert time.monotonic() < end


def test_a_token_is_asked_for(make_service):
    service = make_service(Settings(token="very secret"))
    assert service.get("/metrics")[0] == 401
    assert scraped(service, Authorization="Bearer very secret")


def test_access_log(make_service, caplog):
    caplog.set_level(logging.INFO, logger=ACCESS_LOG)
    service = make_service(Settings(token="very secret"))
    service.get("/api/current?window=6h&key=module%201", {"Authorization": "Bearer very secret"})
    service.get("/api/current?token=very%20secret&secret", {"Authorization": "Bearer wrong secret"})
    service.get("/a%0Ab%22?window=%0A", {})
    end = time.monotonic() + 20
    while len(caplog.messages) < 3:  # a line is written when its answer is gone
        assert time.monotonic() < end
        time.sleep(0.01)
    lines = [record.getMessage() for record in caplog.records if record.name == ACCESS_LOG]
    assert "secret" not in "".join(lines) and "\n" not in "".join(lines)
    assert lines[0].startswith('127.0.0.1 "GET /api/current?window=6h&key=module%201" 200 ')
    assert lines[1].startswith('127.0.0.1 "GET /api/current?...&..." 401 ')
    assert lines[2].startswith('127.0.0.1 "GET /a%0Ab%22?window=%0A" 404 ')
    assert all(line.endswith(" ms") for line in lines)


def test_a_request_does_not_say_whose_it_is(make_service, caplog):
    caplog.set_level(logging.INFO, logger=ACCESS_LOG)
    service = make_service()
    service.get("/healthz", {"X-Forwarded-For": '9.9.9.9" \x1b[31m', "X-Forwarded-Proto": "https"})
    until(lambda: caplog.messages, seconds=20)
    (line,) = [record.getMessage() for record in caplog.records if record.name == ACCESS_LOG]
    assert line.startswith('127.0.0.1 "GET /healthz" 200 ')


def test_no_access_log_unless_it_is_asked_for(make_service, caplog):
    service = make_service()
    service.get("/api/current")
    assert [record for record in caplog.records if record.name == ACCESS_LOG] == []


def test_store_that_hangs(make_service, monkeypatch):
    """Prometheus has its answer before it gives up, and the store is down."""
    monkeypatch.setattr("fastwin.serve.app._META_SECONDS", 0.2)
    released = threading.Event()
    service, meta = make_service(), Answers.meta
    monkeypatch.setattr(Answers, "meta", lambda self: meta(self) if released.wait(30) else None)
    try:
        begin = time.monotonic()
        found = scraped(service)
        assert time.monotonic() - begin < 10
        assert found[("fastwin_store_up",)] == 0 and ("fastwin_store_version",) not in found
    finally:
        released.set()
    assert scraped(service)[("fastwin_store_up",)] == 1
