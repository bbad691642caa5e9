"""Charts that go on from version to version are what a service gives that has just been started."""

import json
import random

import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.serve.answers import Answers
from fastwin.store import PaneStore
from fastwin.store.records import Meta
from fastwin.store.spans import LAST_MS
from tests.support.clicks import FIRST, HOUR, MINUTE, clicks, spec_of
from tests.support.redis_server import RedisServer

SPEC = spec_of("6 hours", "3 minutes", pv=fw.Count(), uv=fw.HyperLogLog("user"), low=fw.Min("v"), top=fw.TopK("v", 2))
PANE = 3 * MINUTE


@pytest.fixture(params=["rocksdb", "redis"])
def url(request, tmp_path):
    """The URL of an empty store of each kind."""
    if request.param == "rocksdb":
        yield f"rocksdb:{tmp_path / 'store'}"
        return
    server = RedisServer(tmp_path)
    yield server.url
    server.stop()


class Counted:
    """A store that notes how many windows it is asked for."""

    def __init__(self, store: PaneStore) -> None:
        self.store, self.windows = store, 0

    def __getattr__(self, name):
        return getattr(self.store, name)

    def query(self, keys, start, end):
        self.windows += len(keys or ())
        return self.store.query(keys, start, end)

    def series(self, keys, start, end, window, step):
        self.windows += len(keys) * (end - start) // step
        return self.store.series(keys, start, end, window, step)


def panes_of(start: int, count: int, seed: int) -> pa.Table:
    """Returns panes in a row, some of them empty."""
    table = clicks(count * 4, modules=3, hours=1, seed=seed)
    dice = random.Random(seed)
    times = [start + dice.randrange(count * PANE) for _ in range(table.num_rows)]
    return SPEC.panes().run(table.set_column(1, "ts", pa.array(times, pa.timestamp("ms", tz="UTC")))).main


def asked(dice: random.Random) -> dict[str, list[str]]:
    keys = dice.sample([f"module%20{i}" for i in range(3)], dice.randint(1, 3))
    query = {"key": keys, "window": [dice.choice(("3m", "1h", "6h"))], "range": [dice.choice(("3m", "2h", "6h"))]}
    if dice.random() < 0.3:
        query["step"] = [dice.choice(("3m", "1h"))]
        query["range"] = ["6h"]
    if dice.random() < 0.2:
        query["end"] = [str(FIRST + dice.randrange(0, 200) * PANE)]
    return query


@pytest.mark.parametrize("seed", range(2))
def test_goes_on_as_a_fresh_service_begins(url, seed):
    """Batches in order, late ones, empty ones, parts of a batch that is not told yet, and panes that are dropped."""
    dice = random.Random(seed)
    with PaneStore.open(url, SPEC, retention="8 hours") as store:
        store.put(panes_of(FIRST, 140, seed))
        lasting = Answers(lambda: store)
        end = FIRST + 140 * PANE
        for step in range(16):
            kind = dice.random()
            if kind < 0.5:
                count = dice.choice((1, 1, 2, 30))
                store.put(panes_of(end, count, 100 * seed + step), watermark=end + count * PANE)
                end += count * PANE
            elif kind < 0.7:
                store.put(panes_of(end - dice.randint(1, 100) * PANE, 2, 100 * seed + step))
            elif kind < 0.8:
                end += PANE
                store.advance_watermark(end)
            elif kind < 0.9:
                late = end - dice.randint(1, 100) * PANE
                store.put(panes_of(late, 1, 100 * seed + step), advance=False)
                for query in (asked(dice), asked(dice)):
                    lasting.series(query)  # may have a part of the batch, or not
                store.advance_watermark(end)
            for _ in range(3):
                query = asked(dice)
                fresh = Answers(lambda: store)
                assert json.loads(lasting.series(query)) == json.loads(fresh.series(query)), (step, query)


def test_only_new_windows_are_asked_for(url):
    """Of all lines that were looked at, by the first who asks."""
    with PaneStore.open(url, SPEC) as store:
        store.put(panes_of(FIRST, 300, 1))
        counted = Counted(store)
        answers = Answers(lambda: counted)
        keys = [f"module%20{i}" for i in range(3)]
        for key in keys:
            answers.series({"key": [key], "window": ["6h"], "range": ["6h"]})
        assert counted.windows == 3 * 120
        for at in range(300, 303):
            store.put(panes_of(FIRST + at * PANE, 1, at), watermark=FIRST + (at + 1) * PANE)
            counted.windows = 0
            for key in keys:
                answers.series({"key": [key], "window": ["6h"], "range": ["6h"]})
                answers.series({"key": [key], "window": ["6h"], "range": ["2h"]})
            assert counted.windows == 3
        store.put(panes_of(FIRST + 250 * PANE, 1, 5))
        counted.windows = 0
        answers.series({"key": keys, "window": ["6h"], "range": ["6h"]})
        assert counted.windows >= 3 * 53  # the windows that may hold the pane that was put once more


def test_what_batches_changed():
    def meta(version, *history, identity="a"):
        return Meta(None, 0, 0, version, identity, history)

    one, two, three = meta(1, "x@100"), meta(2, "x@100", "y@50"), meta(3, "x@100", "y@50", "z@")
    assert three.changed_since(three) == three.changed_since(two) == LAST_MS
    assert three.changed_since(one) == two.changed_since(one) == 50
    assert one.changed_since(two) is None
    assert meta(2, "x@100", "y").changed_since(one) is None  # an earlier fastwin does not tell
    assert meta(2, "w@100", "y@50").changed_since(one) is None
    assert meta(9, "y@50", "z@").changed_since(one) is None
    assert meta(2, "x@100", "y@50", identity="b").changed_since(one) is None


def test_history_of_a_store_is_bounded(url):
    with PaneStore.open(url, SPEC) as store:
        store.put(panes_of(FIRST, 5, 1))
        before = store.meta()
        for at in range(70):
            store.advance_watermark(FIRST + HOUR + at * PANE)
        meta = store.meta()
        assert len(meta.history) == 64 and meta.version == 71
        assert meta.follows(before) and meta.changed_since(before) is None
        assert all(stamp.endswith("@") and len(stamp) == 13 for stamp in meta.history)
