"""What is older than retention goes, and only what goes is looked at."""

import re

import pyarrow as pa
import pyarrow.compute as pc
import pytest
import redis

import fastwin as fw
from fastwin.errors import SpecError, StoreUnavailableError
from fastwin.store import PaneStore
from tests.support.clicks import DAY, FIRST, HOUR, MINUTE, clicks, spec_of
from tests.support.numbered_clicks import MODULES, batch, spec


def test_expiry_reads_no_list_of_all_keys(url, redis_server, monkeypatch):
    with PaneStore.open(url, spec(), retention="2 hours") as store:
        monkeypatch.setattr(type(store), "_key_texts", None)
        for number in range(0, 100, 5):
            store.put(batch(number), (1, number))
        assert store.meta().since >= store.watermark - 3 * HOUR
    monkeypatch.undo()
    with PaneStore.open(url, read_only=True) as reader:
        since = reader.meta().since
        assert reader.query(start=FIRST, end=since).num_rows == 0
        assert set(reader.query(start=since)["pv"].to_pylist()) == {
            sum(n + 1 for n in range(0, 100, 5) if FIRST + n * 3 * MINUTE >= since)
        }


def test_nothing_stays_of_what_expired(url, redis_server):
    """Neither panes nor the notes about them, also of keys that have gone and of hours that were empty."""
    windows = spec_of("1 hour", "3 minutes", pv=fw.Count(), uv=fw.HyperLogLog("user"))
    with PaneStore.open(url, windows, retention="1 hour") as store:
        early = windows.panes().run(clicks(500, modules=7, hours=3)).main
        store.put(early)
        late = clicks(200, modules=2, hours=2)
        times = pc.add(late["ts"], pa.scalar(3 * DAY, pa.duration("ms")))
        store.put(windows.panes().run(late.set_column(1, "ts", times)).main)
        assert store.meta().since >= FIRST + 72 * HOUR
        assert store.keys()["module"].to_pylist() == ["module 0", "module 1"]
        old = [name for name in names(store) if b"2024-01-01" in name or name_time(name) < FIRST + 24 * HOUR]
        assert old == []


def names(store) -> list[bytes]:
    """Returns the names of all records."""
    if hasattr(store, "_client"):
        return list(store._client.scan_iter("*"))
    return [name for name, _ in store._records(b"", b"\xff")]


def name_time(name: bytes) -> int:
    """Returns the time that a record of RocksDB has in its name, ms; a late one where it has none."""
    if name[:1] == b"p":
        return int.from_bytes(name[-8:], "big") - 2**63
    return int.from_bytes(name[1:9], "big") - 2**63 if name[:1] == b"t" else FIRST + 100 * HOUR


@pytest.fixture
def looked_at(redis_server, monkeypatch):
    """An empty Redis, and the blocks whose keys a writer has looked for."""
    redis.Redis.from_url(redis_server.url).flushall()
    looked: list[str] = []
    scan = redis.Redis.sscan_iter

    def look(self, name, **options):
        looked.append(name)
        assert len(looked) < 1_000
        return scan(self, name, **options)

    monkeypatch.setattr(redis.Redis, "sscan_iter", look)
    return looked


def test_a_pane_of_long_ago_goes_at_once(redis_server, looked_at):
    """As of a clock that was not set: the times between are not looked at, one by one."""
    with PaneStore.open(redis_server.url, spec()) as store:
        start = pa.array([0], pa.timestamp("ms", tz="UTC"))
        store.put(pa.table({"module": ["old"], "window_start": start, "pv": [1]}))
        assert [name for name in names(store) if b"1970" in name]
        store.put(batch(0))
        assert [name for name in names(store) if b"1970" in name] == []
        assert store.meta().since == FIRST - 8 * HOUR
        assert store.has(["old", "m1"]) == [False, True]
        assert "{fastwin}:block:1970-01-01T00:00Z" in looked_at and len(looked_at) < 200
        looked_at.clear()
        for number in range(100):
            store.put(batch(number), (1, number))
        assert store._client.zcard("{fastwin}:blocks") == 20
        store.put(batch(99), watermark=FIRST + 12 * HOUR)
        assert store._client.zcard("{fastwin}:blocks") == 4 and len(looked_at) < 60


def test_store_of_before_blocks_were_listed(redis_server, looked_at):
    with PaneStore.open(redis_server.url, spec(), retention="1 hour") as store:
        for number in range(20):
            store.put(batch(number), (1, number))
        first = re.compile(rb":(3min|block):2024-01-01T00:")
        assert any(map(first.search, names(store)))
        store._client.delete("{fastwin}:blocks")
        assert store.query(start=FIRST, end=FIRST + HOUR)["module"].to_pylist() == sorted(MODULES)
        store.put(batch(60), (1, 60))
        assert not any(map(first.search, names(store)))


def test_store_of_before_blocks_were_noted(tmp_path):
    """Brought up when it is opened for writing: its panes expire as those that come."""
    url = f"rocksdb:{tmp_path / 'store'}"
    with PaneStore.open(url, spec(), retention="2 hours") as store:
        store.put(batch(0), (1, 0))
        store._db.delete_range(b"t", b"u")
        store._db[b"m"] = store._db[b"m"].replace(store.meta().identity.encode(), b"")
    (tmp_path / "store" / "FASTWIN").unlink()
    with PaneStore.open(url, read_only=True) as reader:  # goes by the list of all keys until then
        assert reader.query(start=FIRST, end=FIRST + HOUR)["module"].to_pylist() == sorted(MODULES)
    with PaneStore.open(url, spec(), retention="2 hours") as store:
        assert store.meta().identity == ""
        for number in range(50, 100, 5):
            store.put(batch(number), (1, number))
        assert store.meta().identity
        assert [name for name in names(store) if name_time(name) < FIRST + HOUR] == []
        assert len(names(store)) > len(MODULES)


@pytest.mark.parametrize("parts", [1, 4])
def test_rocksdb_forces_its_log_to_the_disk_once_for_each_batch(tmp_path, monkeypatch, parts):
    url = f"rocksdb:{tmp_path / 'store'}"
    forced = []
    with PaneStore.open(url, spec()) as store:
        commit = type(store)._commit
        monkeypatch.setattr(
            type(store), "_commit", lambda self, what, sync=False: forced.append(sync) or commit(self, what, sync)
        )
        for number in range(3):
            forced.clear()
            panes = batch(number)
            for part in range(parts - 1):
                store.put(panes.slice(part, 1), (1, number), advance=False)
            store.put(panes.slice(parts - 1), (1, number))
            assert forced.count(True) == 1 and forced[-1]


@pytest.mark.parametrize("retention", [0, "1 s", "-1 day"])
def test_a_retention_below_a_window_is_refused_at_once(tmp_path, retention):
    with pytest.raises(SpecError, match=r"^retention: must be at least a window, 1 h, got"):
        PaneStore.open(f"rocksdb:{tmp_path / 'store'}", spec(), retention=retention)
    assert not (tmp_path / "store").exists()


def test_a_join_has_no_panes(tmp_path):
    side = fw.key_by("k").event_time("ts")
    join = fw.window_join(side, side, fw.TumblingEventTimeWindows.of("1 hour"))
    with pytest.raises(SpecError, match=r"^spec: must be a WindowSpec .*, got JoinSpec$"):
        PaneStore.open(f"rocksdb:{tmp_path / 'store'}", join)


@pytest.mark.parametrize("accepted", [False, True])
def test_a_longer_retention_brings_nothing_back(url, accepted):
    """A late pane from before what a shorter one has dropped is kept; those between them are gone for good."""
    with PaneStore.open(url, spec(), retention="1 hour") as store:
        for number in range(0, 100, 5):
            store.put(batch(number), (1, number))
        if accepted:  # the end of a loss, later than what was dropped
            store.accept_loss()
            store.put(batch(99), (1, 99))
        since = store.meta().since
        assert since > FIRST + 3 * HOUR
    for retention in ("8 hours", "9 hours"):
        with PaneStore.open(url, spec(), retention=retention) as store:
            assert store.put(batch(2), (2, 0)).stored == len(MODULES)
            assert store.query(start=FIRST, end=FIRST + HOUR).num_rows == len(MODULES)
            assert store.meta().since == since and store.layout.retention_ms > 7 * HOUR
    with PaneStore.open(url, spec(), retention="2 hours") as store:  # nothing is dropped that the longer one has not
        store.put(batch(99), (3, 0))
        assert store.meta().since == since


def test_another_writer_moves_the_watermark_within_a_batch(redis_server, monkeypatch):
    """What that one drops stays dropped: the batch with the earlier panes does not say that they are complete."""
    redis.Redis.from_url(redis_server.url).flushall()
    with (
        PaneStore.open(redis_server.url, spec(), retention="1 hour") as slow,
        PaneStore.open(redis_server.url, spec()) as fast,
    ):
        slow.put(batch(0))
        advance = slow._advance

        def overtaken(layout, step):
            fast.put(batch(99))
            return advance(layout, step)

        monkeypatch.setattr(slow, "_advance", overtaken)
        slow.put(batch(1))
        end = FIRST + 100 * 3 * MINUTE
        assert (slow.watermark, slow.meta().since) == (end, end - HOUR)
        assert slow.query(start=FIRST, end=FIRST + HOUR).num_rows == 0


@pytest.mark.parametrize("keys", [None, ["module 1"]])
@pytest.mark.parametrize("ask", ["query", "series"])
def test_panes_that_go_while_they_are_read_are_not_counted_as_none(url, monkeypatch, ask, keys):
    """A writer goes on between the look at the store and the read: an error, and the next question is right."""
    windows = spec_of("1 hour", "3 minutes", pv=fw.Count())
    panes = windows.panes().run(clicks(3_000, modules=3, hours=4)).main.sort_by("window_start")
    first = pc.less_equal(panes["window_end"], pa.scalar(FIRST + HOUR, pa.int64()).cast(panes["window_end"].type))
    with PaneStore.open(url, windows, retention="1 hour") as store:
        store.put(panes.filter(first))
        scan, calls = type(store)._scan, []

        def delayed(self, *arguments):
            if not calls:
                calls.append(self.watermark)
                store.put(panes.filter(pc.invert(first)))
            return scan(self, *arguments)

        monkeypatch.setattr(type(store), "_scan", delayed)
        with pytest.raises(StoreUnavailableError, match="dropped old panes, while it was read; ask again"):
            getattr(store, ask)(keys)
        assert calls == [FIRST + HOUR]
        found = getattr(store, ask)(keys)
        assert sum(found.filter(pc.equal(found["window_end"], found["window_end"][-1]))["pv"].to_pylist()) > 0


@pytest.mark.parametrize("end", [0, 3 * MINUTE, -3 * MINUTE])
def test_a_watermark_of_zero_is_one(url, end):
    windows = spec_of("1 hour", "3 minutes", pv=fw.Count())
    starts = [end - 3 * HOUR, end - 3 * MINUTE]
    table = pa.table({"module": ["a", "a"], "ts": pa.array(starts, pa.timestamp("ms"))})
    panes = windows.panes().run(table)
    with PaneStore.open(url, windows, retention="1 hour") as store:
        with pytest.warns(UserWarning, match="1 older ones were left out"):
            assert store.put(panes.main).expired == 1
        assert store.watermark == end
        assert store.put(panes.main.slice(0, 1)).expired == 1
