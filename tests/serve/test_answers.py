"""What the service keeps: never an answer of another store, or of one that went back."""

import json
import shutil
import time

import pytest
import redis

from fastwin.serve.answers import Answers
from fastwin.serve.app import Settings
from fastwin.store import PaneStore
from tests.support.clicks import FIRST, HOUR, clicks
from tests.support.redis_server import RedisServer
from tests.support.service import SPEC, put_clicks, serving

END = FIRST + 30 * HOUR


@pytest.fixture
def server(tmp_path):
    started = RedisServer(tmp_path)
    yield started
    started.stop()


@pytest.fixture
def service(server):
    """A service over Redis, with some batches in it."""
    with PaneStore.open(server.url, SPEC) as store:
        table = clicks(1_000)
        panes = SPEC.panes().run(table).main
        for part in range(3):
            store.put(panes.slice(part * 300, 300), (1, part))
        run = serving(store, server.url, table, Settings())
        yield next(run)
        next(run, None)


def views(service) -> dict[str, int]:
    return {row["key"]: row["pv"] for row in service.json("/api/current")["rows"]}


def test_emptied_and_filled_anew_to_the_same_version(service, server):
    before = service.json("/api/store")
    old = views(service)
    keys = service.json("/api/keys")
    redis.Redis.from_url(server.url).flushall()
    status, _, body = service.get("/api/current")
    assert status == 503 and b"holds no panes yet" in body
    with PaneStore.open(server.url, SPEC) as store:
        panes = SPEC.panes().run(clicks(300, modules=3, seed=5)).main
        for part in range(3):
            store.put(panes.slice(part * 100, 100), (1, part))
        after = service.json("/api/store")
        assert after["version"] == before["version"] == 3 and after["identity"] != before["identity"]
        fresh = {row["module"].replace(" ", "%20"): row["pv"] for row in store.query().to_pylist()}
    assert views(service) == fresh != old
    assert service.json("/api/keys") != keys


def test_went_back_and_on_to_the_same_version(service, server):
    client = redis.Redis.from_url(server.url)
    client.save()
    with PaneStore.open(server.url, SPEC) as store:
        put_clicks(store, clicks(2_000, seed=3))
    old, version = views(service), service.json("/api/store")["version"]
    server.kill()
    server.start()
    with PaneStore.open(server.url, SPEC) as store:
        put_clicks(store, clicks(2_500, seed=4))
        fresh = {row["module"].replace(" ", "%20"): row["pv"] for row in store.query().to_pylist()}
    assert service.json("/api/store")["version"] == version
    assert views(service) == fresh != old


def test_folder_deleted_and_built_anew(make_service, tmp_path):
    """A run that starts over, under a service that goes on."""
    service = make_service()
    old = views(service)
    service.store.close()
    shutil.rmtree(tmp_path / "store0")
    time.sleep(0.25)
    status, _, body = service.get("/api/current")
    assert status == 503 and "there is no store at" in json.loads(body)["error"]
    with PaneStore.open(f"rocksdb:{tmp_path / 'store0'}", SPEC) as store:
        put_clicks(store, clicks(700, seed=8))
        fresh = {row["module"].replace(" ", "%20"): row["pv"] for row in store.query().to_pylist()}
    end = time.monotonic() + 20
    while service.get("/api/current")[0] != 200 or views(service) == old:
        assert time.monotonic() < end, "the service keeps what was deleted"
        time.sleep(0.05)
    assert views(service) == fresh


def test_kept_answers_are_bounded_in_bytes(tmp_path):
    url = f"rocksdb:{tmp_path / 'store'}"
    with PaneStore.open(url, SPEC) as store:
        put_clicks(store, clicks(2_000))
        answers = Answers(lambda: store, kept_bytes=50_000)
        asked = [{"key": [f"module%20{i % 5}"], "end": [str(END - i * 180_000)]} for i in range(100)]
        found = [answers.series(query) for query in asked]
        assert max(map(len, found)) > 5_000
        assert 0 < sum(map(len, answers._kept.values())) <= 50_000
        assert answers._size <= 50_000
        assert [answers.series(query) for query in asked] == found
        small = Answers(lambda: store, kept_bytes=4_000)
        small.current({})
        assert small.series(asked[0]) == found[0]  # too long to be kept, and pushes nothing out
        assert len(small._kept) == 1
