"""Panes in a store: written beside one PFADD for each event; read by many at once, with and without coarse panes."""

import random
import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fastwin as fw
from bench.events import EPOCH_MS
from bench.race import Contender, Entry, Unavailable, Works
from bench.scale import Scale, amount
from bench.visitors import DAY, PANE, SPEC
from fastwin.store import PaneStore

WORKS = Works()
READERS = 50
Reads = list[tuple[int, int, float, pa.Table]]
"""What readers got: a reader's number, that of its question, how long it waited, s, and the window."""

_NO_SERVER = Unavailable("there is no redis-server")


@dataclass
class Places:
    """A folder, and the URL of a Redis server, if there is one."""

    folder: Path
    redis: str | None
    stores: int = 0

    def empty_rocks(self) -> str:
        self.stores += 1
        return f"rocksdb:{self.folder / str(self.stores)}"

    def empty_redis(self) -> str:
        import redis

        assert self.redis is not None
        redis.Redis.from_url(self.redis).flushall()
        return self.redis


@pytest.fixture(scope="session")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    folder = tmp_path_factory.mktemp("stores")
    if shutil.which("redis-server") is None:
        yield Places(folder, None)
        return
    from tests.support.redis_server import RedisServer

    server = RedisServer(folder)
    yield Places(folder, server.url)
    server.stop()


def clicks(n: int, modules: int, span_ms: int) -> pa.Table:
    """Returns n clicks: module, ts, user; the busiest module has some hundred times those of the quietest."""
    dice = np.random.default_rng(12)
    module = (dice.random(n) ** 3 * modules).astype(np.int64)
    user = (dice.random(n) ** 2 * max(n // 20, 1)).astype(np.int64)
    return pa.table(
        {
            "module": pa.array([f"module-{i:03d}" for i in range(modules)]).take(pa.array(module)),
            "ts": pa.array(EPOCH_MS + np.sort(dice.integers(0, span_ms, n)), pa.timestamp("ms", tz="UTC")),
            "user": pa.array([f"user-{i}" for i in range(n // 20 + 1)]).take(pa.array(user)),
        }
    )


def _bytes_of(store: PaneStore, url: str, panes: int) -> dict[str, Any]:
    """Returns what panes take, coarse ones and all names included."""
    if url.startswith("rocksdb:"):
        store.close()
        size = sum(path.stat().st_size for path in Path(url.removeprefix("rocksdb:")).iterdir())
    else:
        import redis

        size = redis.Redis.from_url(url).info("memory")["used_memory_dataset"]
    return {"panes": panes, "bytes per pane": round(size / panes)}


@WORKS.add("store-write", "event", ("fastwin, RocksDB", "a PFADD per event"))
def write(scale: Scale, places: Places) -> Entry:
    """Clicks of a day to panes, and these into the store, in 24 batches; or each click to Redis by itself."""
    table = clicks(scale.items, 200, DAY)
    size = -(-len(table) // 24)
    batches = [table.slice(first, size) for first in range(0, len(table), size)]
    modules = [f"module-{i:03d}" for i in range(0, 200, 20)]

    def ours(url: str) -> tuple[PaneStore, str, int]:
        store = PaneStore.open(url, SPEC)
        stream = SPEC.panes().open(watermark="1 second", schema=table.schema)
        panes = sum(store.put(stream.process(batch).main).stored for batch in batches)
        panes += store.put(stream.advance_watermark(fw.MAX_TIMESTAMP).main).stored
        return store, url, panes

    def answer(result: tuple[PaneStore, str, int]) -> list[int]:
        return result[0].query(modules, EPOCH_MS, EPOCH_MS + DAY)["uv"].to_pylist()

    def notes(result: tuple[PaneStore, str, int]) -> dict[str, Any]:
        return _bytes_of(*result)

    def each(url: str) -> Any:
        import redis

        client = redis.Redis.from_url(url)
        pipeline = client.pipeline(transaction=False)
        for batch in batches:
            times = batch["ts"].cast(pa.int64()).to_numpy()
            starts = (times - times % PANE).tolist()
            rows = zip(batch["module"].to_pylist(), starts, batch["user"].to_pylist(), strict=True)
            for module, start, user in rows:
                pipeline.pfadd(f"{module}:{start}", user)
                if len(pipeline) >= 10_000:
                    pipeline.execute()
        pipeline.execute()
        return client

    def counted(client: Any) -> list[int]:
        panes = range(EPOCH_MS, EPOCH_MS + DAY, PANE)
        return [client.pfcount(*(f"{module}:{start}" for start in panes)) for module in modules]

    none = places.redis is None
    contenders: dict[str, Any] = {
        "fastwin": _NO_SERVER if none else Contender(ours, lambda: (places.empty_redis(),), answer, notes),
        "fastwin, RocksDB": Contender(ours, lambda: (places.empty_rocks(),), answer, notes),
        "a PFADD per event": _NO_SERVER
        if none
        else Contender(each, lambda: (places.empty_redis(),), counted, attempts=2),
    }
    return Entry(f"{amount(len(table))} clicks of 200 modules into Redis, panes of 3 min", len(table), contenders)


@WORKS.add("store-read", "window", ("fastwin, 480 panes", "RocksDB", "RocksDB, 480 panes"))
def read(scale: Scale, places: Places) -> Entry:
    """Threads of one process ask for windows of 24 h at once, each of one module and at any end. All contenders are
    asked the same, and answer it alike."""
    table = clicks(scale.items, 200, 2 * DAY)
    panes = SPEC.panes().run(table).main
    asks = 40 if scale.name == "full" else 4

    def contender(url: str, coarse: bool) -> Contender:
        store = PaneStore.open(url, read_only=True)

        def run() -> tuple[float, Reads]:
            found: Reads = []

            def reader(number: int) -> None:
                dice = random.Random(number)
                for ask in range(asks):
                    end = EPOCH_MS + DAY + dice.randrange(DAY // PANE) * PANE
                    before = time.perf_counter()
                    window = store.query([f"module-{dice.randrange(200):03d}"], end - DAY, end, coarse=coarse)
                    found.append((number, ask, time.perf_counter() - before, window))
                    assert window.num_rows == 1

            threads = [threading.Thread(target=reader, args=(number,)) for number in range(READERS)]
            start = time.perf_counter()
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            seconds = time.perf_counter() - start
            assert len(found) == READERS * asks
            return seconds, found

        return Contender(run, answer=_counted, notes=_quantiles, clocked=True, attempts=3)

    urls = {"RocksDB": places.empty_rocks()} | ({"fastwin": places.empty_redis()} if places.redis else {})
    for url in urls.values():
        with PaneStore.open(url, SPEC) as store:
            store.put(panes)
    readers: dict[str, Any] = {}
    for name in ("fastwin", "RocksDB"):
        for what, coarse in ((name, True), (f"{name}, 480 panes", False)):
            readers[what] = contender(urls[name], coarse) if name in urls else _NO_SERVER
    return Entry(f"windows of 24 h from Redis, {READERS} readers at once", READERS * asks, readers)


def _counted(found: Reads) -> list[dict[str, Any]]:
    """Returns the windows in the order in which each reader asked for them."""
    return [row for *_, window in sorted(found, key=lambda one: one[:2]) for row in window.to_pylist()]


def _quantiles(found: Reads) -> dict[str, Any]:
    ms = np.array([seconds for _, _, seconds, _ in found]) * 1_000
    return {"p50 ms": round(float(np.percentile(ms, 50)), 1), "p99 ms": round(float(np.percentile(ms, 99)), 1)}


@WORKS.parametrize
def test_store(race: Any, work: Any, contender: str, places: Places) -> None:
    race(work, contender, places)
