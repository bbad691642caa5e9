"""What the service keeps: never an answer of another store, or of one that went back."""

import json
import shutil
import time
from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa
import pytest
import redis

import fastwin as fw
from fastwin.errors import StoreUnavailableError
from fastwin.serve.answers import Answers
from fastwin.serve.app import Settings
from fastwin.serve.params import RequestError
from fastwin.store import PaneStore
from tests.support.clicks import DAY, FIRST, HOUR, clicks, spec_of
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
        with serving(store, server.url, table, Settings()) as service:
            yield service


def look_anew() -> None:
    """Waits for as long as the service goes by what the store has just said."""
    time.sleep(0.15)


def views(service) -> dict[str, int]:
    return {row["key"]: row["pv"] for row in service.json("/api/current")["rows"]}


def test_emptied_and_filled_anew_to_the_same_version(service, server):
    before = service.json("/api/store")
    old = views(service)
    keys = service.json("/api/keys")
    redis.Redis.from_url(server.url).flushall()
    look_anew()
    status, _, body = service.get("/api/current")
    assert status == 503 and b"holds no panes yet" in body
    with PaneStore.open(server.url, SPEC) as store:
        panes = SPEC.panes().run(clicks(300, modules=3, seed=5)).main
        for part in range(3):
            store.put(panes.slice(part * 100, 100), (1, part))
        look_anew()
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
    look_anew()
    old, version = views(service), service.json("/api/store")["version"]
    server.kill()
    server.start()
    with PaneStore.open(server.url, SPEC) as store:
        put_clicks(store, clicks(2_500, seed=4))
        look_anew()
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
        assert 5_000 < answers._kept.size <= 50_000 and len(answers._kept) > 1
        assert [answers.series(query) for query in asked] == found
        small = Answers(lambda: store, kept_bytes=4_000)
        small.current({})
        assert small.series(asked[0]) == found[0]  # too long to be kept, and pushes nothing out
        assert len(small._kept) == 1


class Changing:
    """A store that others change between its meta and its panes."""

    def __init__(self, store: PaneStore, change: Callable[["Changing"], None]) -> None:
        self.store, self.change = store, change

    def __getattr__(self, name):
        return getattr(self.store, name)

    def query(self, *args):
        self.change(self)
        return self.store.query(*args)

    def series(self, *args):
        self.change(self)
        return self.store.series(*args)


@pytest.fixture
def filled(tmp_path):
    """Returns a function that makes a store of clicks."""
    made = []

    def fill(seed: int) -> PaneStore:
        made.append(PaneStore.open(f"rocksdb:{tmp_path / str(len(made))}", SPEC, retention="1 day"))
        put_clicks(made[-1], clicks(500, seed=seed))
        return made[-1]

    yield fill
    for store in made:
        store.close()


@pytest.mark.parametrize(("name", "query"), [("current", {}), ("series", {"key": ["module 1"]})])
def test_rows_of_another_store(filled, name, query):
    one, other = filled(1), filled(2)

    def change(changing):
        changing.store = other

    found = json.loads(getattr(Answers(lambda: Changing(one, change)), name)(query))
    expected = json.loads(getattr(Answers(lambda: other), name)(query))
    before = json.loads(getattr(Answers(lambda: one), name)(query))
    assert found == expected != before


def test_rows_of_a_store_with_other_columns(filled, tmp_path):
    one, spec = filled(1), spec_of(views=fw.Count())
    with PaneStore.open(f"rocksdb:{tmp_path / 'other'}", spec) as other:
        other.put(spec.panes().run(clicks(500)).main)

        def change(changing):
            changing.store = other

        answers = Answers(lambda: Changing(one, change))
        with pytest.raises(StoreUnavailableError, match="ask again"):
            answers.current({})
        assert "views" in json.loads(answers.current({}))["rows"][0]


@pytest.mark.parametrize("name", ["current", "series"])
def test_panes_that_are_dropped_while_they_are_read(filled, name):
    """They are missing, and the answer tells so."""
    store = filled(1)
    query = {"end": [str(END)], "key": ["module 1"]}
    whole = json.loads(getattr(Answers(lambda: store), name)(query))
    assert whole["since"] <= whole["start"]

    def change(changing):
        store.put(SPEC.panes().run(clicks(10, hours=35, seed=3)).main, watermark=END + 10 * HOUR)

    found = json.loads(getattr(Answers(lambda: Changing(store, change)), name)(query))
    assert found["since"] == store.meta().since > found["start"] == END - DAY


def test_store_that_changes_with_every_look(filled):
    stores = [filled(1), filled(2)]

    def change(changing):
        changing.store = stores[changing.store is stores[0]]

    with pytest.raises(StoreUnavailableError, match=r"emptied, or went back, or dropped .* ask again"):
        Answers(lambda: Changing(stores[0], change)).current({})


def test_lists_decimals_and_others_are_plain_json(tmp_path):
    """And none of them makes the order of rows that cannot be compared."""
    url = f"rocksdb:{tmp_path / 'store'}"
    spec = spec_of(top=fw.TopK("user", 2), pv=fw.Count(), d=fw.Sum("d"), any=fw.BoolOr("b"), long=fw.Max("long"))
    table = clicks(50, modules=1, hours=1)
    more = {"d": [Decimal(1)] * 50, "b": [True] * 50, "long": [5] * 50}
    kinds = {"d": pa.decimal128(5, 2), "b": pa.bool_(), "long": pa.duration("ms")}
    for name, values in more.items():
        table = table.append_column(name, pa.array(values).cast(kinds[name]))
    with PaneStore.open(url, spec) as store:
        store.put(spec.panes().run(table).main)
    answers = Answers(lambda: PaneStore.open(url, read_only=True))
    (row,) = json.loads(answers.current({}))["rows"]
    assert [sorted(one) for one in row["top"]] == [["count", "value"]] * 2
    assert (row["pv"], row["d"], row["any"]) == (50, "50.00", "true") and "5" in row["long"]
    with pytest.raises(RequestError, match="sort: must be one of pv, d, any, long, got 'top'"):
        answers.current({"sort": ["top"]})
    answers.close()


def test_named_keys_are_asked_for_alone(filled, monkeypatch):
    """However many keys there are, and after each batch."""
    store = filled(1)
    monkeypatch.setattr(type(store), "_key_texts", lambda self: pytest.fail("all keys were read"))
    answers = Answers(lambda: store)
    for seed in (2, 3):
        (row,) = json.loads(answers.current({"key": ["module 1"]}))["rows"]
        assert row["key"] == "module%201"
        assert len(json.loads(answers.series({"key": ["module 1", "module 2"]}))["series"]) == 2
        with pytest.raises(RequestError, match="knows no 'nobody'"):
            answers.series({"key": ["module 1", "nobody"]})
        put_clicks(store, clicks(500, seed=seed))


def test_keys_some_at_a_time(tmp_path):
    """In order, each once, also behind a key that is gone."""
    rows = clicks(60, modules=1).slice(0, 25)
    names = ["", "Я", *(f"k{at}" for at in range(23))]
    with PaneStore.open(f"rocksdb:{tmp_path / 'store'}", SPEC) as store:
        put_clicks(store, rows.set_column(0, "module", pa.array(names)))
        answers = Answers(lambda: store)
        whole = json.loads(answers.keys({}))
        assert whole == {"keys": sorted(names), "more": False}
        for limit in (1, 7, 24, 25):
            found, asked = [], {"limit": [str(limit)]}
            while True:
                part = json.loads(answers.keys(asked))
                found += part["keys"]
                if not part["more"]:
                    break
                assert len(part["keys"]) == limit
                asked["after"] = part["keys"][-1:]
            assert found == sorted(names)
        assert json.loads(answers.keys({"after": ["k3 and more"], "limit": ["2"]}))["keys"] == ["k4", "k5"]
        assert json.loads(answers.keys({"after": ["Я"]})) == {"keys": [], "more": False}
        for wrong in ({"limit": ["10001"]}, {"before": ["k3"]}):
            with pytest.raises(RequestError):
                answers.keys(wrong)


def test_key_of_another_store(filled):
    """It is no 404 that the store knew no such key before."""
    one, other = filled(1), filled(2)
    put_clicks(other, pa.concat_tables([clicks(500, seed=2), clicks(50, modules=9, seed=3)]))

    class Replaced(Changing):
        def has(self, keys):
            found = self.store.has(keys)
            self.store = other
            return found

    answers = Answers(lambda: Replaced(one, lambda _: None))
    assert json.loads(answers.current({"key": ["module 8"]}))["rows"]


def test_series_of_a_key_is_made_once(filled):
    """Whatever keys it is asked for with, in whatever order; and anew when there is news."""
    store, asked = filled(1), []

    class Watched(Changing):
        def series(self, keys, *args):
            asked.extend(key for (key,) in keys)
            return self.store.series(keys, *args)

    answers = Answers(lambda: Watched(store, lambda _: None))
    whole = json.loads(answers.series({"key": ["module 1", "module 2"]}))
    other = json.loads(answers.series({"key": ["module 3", "module 2", "module 1"]}))
    assert asked == ["module 1", "module 2", "module 3"]
    assert other["series"][:0:-1] == whole["series"] and whole["series"][0]["key"] == "module%201"
    assert whole | {"series": None} == other | {"series": None}
    put_clicks(store, clicks(600, seed=9))
    json.loads(answers.series({"key": ["module 2"]}))
    assert asked[3:] == ["module 2"]
