"""Panes from Spark into both kinds of stores, also through failures, equal to counting."""

import contextlib
import re
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import redis

import fastwin as fw
import spark_glue
from fastwin.errors import FastwinError, SpecError, StoreError
from fastwin.spec.resultcolumns import BOUNDS
from fastwin.store import PaneStore, Written
from tests.support import numbered_clicks
from tests.support.clicks import DAY, FIRST, HOUR, MINUTE, by_module, clicks, counted, spec_of
from tests.support.redis_server import RedisServer
from tests.support.spark_streams import Source, start
from tests.support.spark_versions import SPARK

BATCHES = 3
SPEC = spec_of()


@pytest.fixture
def server(tmp_path_factory) -> Iterator[RedisServer]:
    started = RedisServer(tmp_path_factory.mktemp("redis"), "--appendonly", "yes", "--appendfsync", "always")
    yield started
    started.stop()


@pytest.fixture(params=["rocksdb", "redis"])
def url(request, tmp_path) -> str:
    return f"rocksdb:{tmp_path / 'store'}" if request.param == "rocksdb" else request.getfixturevalue("server").url


def feed(folder: Path, table: pa.Table) -> Source:
    """Clicks up to ten minutes out of order, in some files."""
    late = np.random.default_rng(2).integers(0, 600_000, table.num_rows)
    table = table.take(pa.array(np.argsort(table["ts"].cast(pa.int64()).to_numpy() + late)))
    source = Source(folder, table.schema)
    size = -(-table.num_rows // BATCHES)
    source.put(*(table.slice(i * size, size) for i in range(BATCHES)))
    return source


def run(
    spark, source: Source, sink, folder: Path, checkpoint: str = "checkpoint", spec=SPEC, watermark="10 minutes"
) -> None:
    frame = spark_glue.apply(spec.panes(), source.frame(spark), watermark=watermark, key_groups=4)
    writer = frame.writeStream.option("checkpointLocation", str(folder / checkpoint)).trigger(availableNow=True)
    writer.foreachBatch(sink).start().awaitTermination()


def assert_counted(store: PaneStore, table: pa.Table) -> None:
    end = store.watermark
    assert FIRST + 29 * HOUR < end <= FIRST + 30 * HOUR
    for at in (end, end - 3 * HOUR):
        found, expected = by_module(store.query(end=at)), counted(table, at - DAY, at)
        assert found.keys() == expected.keys()
        for module, row in found.items():
            assert row.pop("mean") == pytest.approx(expected[module].pop("mean"), rel=1e-12)
            assert row == expected[module]


def test_stream_to_store_and_back(spark, tmp_path, url):
    table = clicks(4_000)
    source = feed(tmp_path, table)
    reports = []
    sink = spark_glue.to_store(url, SPEC)
    run(spark, source, lambda frame, batch: reports.append((batch, sink(frame, batch))), tmp_path)
    sink.close()
    with PaneStore.open(url, read_only=True) as store:
        assert_counted(store, table)
        before = store.query()
    assert [batch for batch, _ in reports] == list(range(len(reports))) and len(reports) > BATCHES
    assert sum(written.stored for _, written in reports) > 1_000
    if url.startswith("rocksdb:"):
        return
    # A fresh checkpoint writes the same once more, and wins over the first run.
    again = spark_glue.to_store(url, SPEC)
    run(spark, source, again, tmp_path, "second")
    again.close()
    with PaneStore.open(url) as store:
        assert store.query().equals(before)
        panes = SPEC.panes().run(table).main
        assert store.put(panes.slice(0, 10), (1, 10**6)).outdated == 10


def test_the_last_hours_go_on_in_quiet_times(spark, tmp_path):
    """Up to the stream's watermark, where no pane has fired for hours; and panes of states get into the store."""
    url, spec = f"rocksdb:{tmp_path / 'store'}", spec_of(pv=fw.Count(), p=fw.Median("v"), seen=fw.Last("ts"))
    table = clicks(3, modules=1)
    times = pa.array([FIRST, FIRST + MINUTE, FIRST + 12 * HOUR], pa.timestamp("ms", tz="UTC"))
    table = table.set_column(1, "ts", times).set_column(2, "v", pa.array([1, 3, 5]))
    source = Source(tmp_path, table.schema)
    source.put(table.slice(0, 2), table.slice(2))
    sink = spark_glue.to_store(url, spec)
    run(spark, source, sink, tmp_path, spec=spec, watermark="1 minute")
    sink.close()
    with PaneStore.open(url, read_only=True) as store:
        assert store.watermark == FIRST + 12 * HOUR - 3 * MINUTE
        (row,) = store.query().to_pylist()
        assert (row["pv"], row["p"], row["seen"]) == (2, 1.0, times[1].as_py())


def test_an_idle_input_does_not_hold_the_store(spark, tmp_path):
    """Shares make the watermark themselves then, and the store goes by it up to the newest row, which has not fired."""
    url = f"rocksdb:{tmp_path / 'store'}"
    times = pa.array([FIRST, FIRST + 12 * HOUR], pa.timestamp("ms", tz="UTC"))
    table = clicks(2, modules=1).set_column(1, "ts", times)
    source = Source(tmp_path, table.schema)
    source.put(table.slice(0, 1), table.slice(1))
    sink = spark_glue.to_store(url, SPEC)
    frame = spark_glue.apply(SPEC.panes(), source.frame(spark), watermark="1 hour", key_groups=2, idle="1 second")
    query = start(frame, tmp_path, sink)
    try:
        end, stands = time.monotonic() + 120, FIRST
        while stands < FIRST + 12 * HOUR:
            assert query.exception() is None, query.exception()
            assert time.monotonic() < end, f"the store stands at {stands}"
            time.sleep(0.2)
            with contextlib.suppress(StoreError), PaneStore.open(url, read_only=True) as store:
                stands = store.watermark or FIRST
    finally:
        query.stop()
        sink.close()


def test_a_changelog_corrects_panes(spark, tmp_path):
    table, url = clicks(2_000), f"rocksdb:{tmp_path / 'store'}"
    spec = SPEC.allowed_lateness("30 minutes").with_changelog()
    sink = spark_glue.to_store(url, spec)
    changes = set()

    def told(frame, batch_id):
        changes.update(row.change for row in frame.select("change").distinct().collect())
        sink(frame, batch_id)

    run(spark, feed(tmp_path, table), told, tmp_path, spec=spec, watermark="1 minute")
    sink.close()
    with PaneStore.open(url, read_only=True) as store:
        assert_counted(store, table)
    assert changes == {"insert", "update"}


@pytest.mark.long
def test_redis_stopped_in_the_middle_of_a_batch(spark, tmp_path, server):
    """The query fails with a sentence; started again it ends with the panes that an undisturbed one gives."""
    table = clicks(3_000)
    source = feed(tmp_path, table)
    sink = spark_glue.to_store(server.url, SPEC, patience="1 second")
    seen = []

    def failing(frame, batch_id):
        seen.append(batch_id)
        if batch_id == 2:
            stop = threading.Timer(0.4, server.kill)
            stop.start()
            try:
                for _ in range(50):  # until the server is gone in the middle of one
                    sink(frame, batch_id)
            finally:
                stop.join()
        else:
            sink(frame, batch_id)

    with pytest.raises(Exception, match="is out of reach") as caught:
        run(spark, source, failing, tmp_path)
    assert "redis://127.0.0.1" in str(caught.value)
    server.start()
    with PaneStore.open(server.url, read_only=True) as store:
        assert store.watermark is None or store.watermark < FIRST + 29 * HOUR
    run(spark, source, sink, tmp_path)
    with PaneStore.open(server.url, read_only=True) as store:
        assert_counted(store, table)
    assert seen[-1] == 2


def test_redis_emptied_between_batches(spark, server):
    """What is still written comes back; what was written before does not, and that is said."""
    panes = SPEC.panes().run(clicks(1_000)).main.sort_by("window_start")
    half = panes.num_rows // 2
    sink = spark_glue.to_store(server.url, SPEC)
    sink(spark.createDataFrame(panes.slice(0, half).to_pandas()), 0)
    redis.Redis.from_url(server.url).flushall()
    with pytest.warns(UserWarning, match="has lost all panes since the last batch"):
        sink(spark.createDataFrame(panes.slice(half).to_pandas()), 1)
    with PaneStore.open(server.url, read_only=True) as store:
        meta = store.meta()
        assert meta.since == panes["window_start"][half - 1].value + 180_000  # other keys' panes of then are gone
        found = store.query(start=meta.since, end=meta.watermark)
        there = panes.slice(half).to_pylist()
        assert sum(found["pv"].to_pylist()) == sum(
            row["pv"] for row in there if row["window_start"].timestamp() * 1_000 >= meta.since
        )


def test_panes_that_are_left_out(spark, url):
    """They end no query, in tasks neither: the sink counts them, and warns once."""
    panes = SPEC.panes().run(clicks(100, modules=2)).main
    long = panes.slice(0, 2).set_column(0, "module", pa.array(["x" * 1_100] * 2))
    old = panes.slice(0, 3)
    for place, name in enumerate(BOUNDS, 1):
        old = old.set_column(place, name, pc.subtract(old[name], pa.scalar(30 * DAY, pa.duration("ms"))))
    parts = [panes, long, old]
    frames = [spark.createDataFrame(pa.concat_tables(some).to_pandas()).repartition(3) for some in (parts[:1], parts)]
    sink = spark_glue.to_store(url, SPEC)
    with pytest.warns(UserWarning, match="1024 bytes") as told:
        done = [sink(frames[number > 0], number) for number in range(3)]
    said = [str(one.message) for one in told]
    assert [sum(part in text for text in said) for part in ("1024 bytes", "keeps panes for 8 d")] == [1, 1]
    assert (done[1].stored, done[1].refused, done[1].expired) == (panes.num_rows, 2, 3) and done[1] == done[2]
    assert sink.written == done[0] + done[1] + done[2]
    sink.close()
    with PaneStore.open(url, read_only=True) as store:
        assert store.keys()["module"].to_pylist() == ["module 0", "module 1"]


def test_bytes_of_strangers_end_no_query(spark, tmp_path, url):
    """A key that is no UTF-8 is left out and counted; in a value such bytes are replaced."""
    spec = spec_of("1 hour", "3 minutes", high=fw.Max("city"), last=fw.Last("city"))
    values = f"(X'6f6b', {FIRST}, X'61'), (X'ff', {FIRST}, X'61'), (X'6f6b', {FIRST + 1}, X'fe')"
    rows = spark.sql(
        f"select cast(k as string) module, t ts, cast(c as string) city from values {values} as r(k, t, c)"
    )
    frame = spark_glue.apply(spec.panes(), rows, key_groups=2)
    sink = spark_glue.to_store(url, spec)
    with pytest.warns(UserWarning, match="UTF-8") as told:
        done = [sink(frame, number) for number in range(2)]
    said = sorted(str(one.message).partition("; ")[2] for one in told)
    assert len(said) == 2 and "1 panes of others, longer or not in UTF-8" in said[0] and "in 1 values" in said[1]
    assert done == [Written(stored=1, refused=1, refused_key="\\xff", replaced=1)] * 2
    sink.close()
    with PaneStore.open(url, read_only=True) as store:
        assert store.query().select(["module", "high", "last"]).to_pylist() == [
            {"module": "ok", "high": "\ufffd", "last": "\ufffd"}
        ]


def test_windows_in_place_of_panes(spark, url):
    """As where spec.panes() was forgotten: they begin where panes do."""
    spec = spec_of(pv=fw.Count())
    frame = spark.createDataFrame(spec.run(clicks(3)).main.to_pandas())
    sink = spark_glue.to_store(url, spec)
    with pytest.raises(FastwinError, match="the panes must be 3 min wide, got a window of 1 d"):
        sink(frame, 0)
    sink.close()


def test_a_query_that_lags_behind_another(spark, url):
    """All its panes are left out, and the store does not say that it has them."""
    done = []
    for number in (99, 0):
        sink = spark_glue.to_store(url, numbered_clicks.spec(), retention="1 hour")
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            done.append(sink(spark.createDataFrame(numbered_clicks.batch(number).to_pandas()), 0))
        sink.close()
    assert done == [Written(stored=50), Written(expired=50)]
    with PaneStore.open(url, read_only=True) as store:
        assert (store.meta().since, store.watermark) == (FIRST + 99 * 3 * MINUTE, FIRST + 5 * HOUR)


@pytest.mark.parametrize("partitions", [1, 8])
def test_portions_are_bounded(spark, tmp_path, monkeypatch, partitions):
    """The driver fetches partition after partition where there is much, and puts a part after the other."""
    from spark_glue.sinks import store as module

    monkeypatch.setattr(module, "_ROWS_AT_ONCE", 50)
    table = clicks(1_000, hours=30)
    url = f"rocksdb:{tmp_path / 'store'}"
    sink = spark_glue.to_store(url, SPEC)
    panes = SPEC.panes().run(table).main
    frame = spark.createDataFrame(panes.to_pandas()).repartition(partitions)
    fetched, parts = [], []
    put, inner = PaneStore.put, module._portions
    monkeypatch.setattr(
        PaneStore, "put", lambda self, panes, *a, **k: parts.append(len(panes)) or put(self, panes, *a, **k)
    )
    monkeypatch.setattr(module, "_portions", lambda panes: (fetched.append(1) or one for one in inner(panes)))
    assert sink(frame, 0).stored == panes.num_rows
    assert len(fetched) == (8 if partitions == 8 else 0) and max(parts) == 50 and sum(parts) == panes.num_rows
    store = sink._store
    end = store.watermark
    assert {k: r["pv"] for k, r in by_module(store.query(end=end)).items()} == {
        k: r["pv"] for k, r in counted(table, end - DAY, end).items()
    }
    sink.close()
    with pytest.raises(StoreError, match="was closed"):
        sink(frame, 1)


@pytest.mark.parametrize("shuffled", [False, True])
def test_one_partition_is_fetched_at_once(spark, tmp_path, monkeypatch, shuffled):
    """Nothing is counted or kept before; a plan that Spark arranges while it runs is asked nothing."""
    from spark_glue.sinks import store as module

    portions = []
    inner = module._portions
    monkeypatch.setattr(module, "_portions", lambda panes: portions.append(True) or inner(panes))
    spark.conf.set("spark.sql.adaptive.enabled", str(shuffled).lower())
    try:
        frame = spark.createDataFrame(SPEC.panes().run(clicks(200)).main.to_pandas())
        frame = frame.repartition(1) if shuffled else frame.coalesce(1)
        sink = spark_glue.to_store(f"rocksdb:{tmp_path / 'store'}", SPEC)
        assert sink(frame, 0).stored == frame.count() and bool(portions) == shuffled
        sink.close()
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", "false")


def test_the_advice_names_a_side_output_as_route_takes_it(spark, tmp_path):
    panes = spark.createDataFrame(SPEC.panes().run(clicks(10)).main.to_pandas())
    sink = spark_glue.to_store(f"rocksdb:{tmp_path / 'store'}", SPEC)
    for name, told in (("late", "late=..."), ("bad", "bad=..."), ("side_odd", "side={'odd': ...}")):
        whole = f"to_store: the spec has {name} rows as well; use route(main=to_store(...), {told})"
        with pytest.raises(SpecError, match=f"^{re.escape(whole)}$"):
            sink(panes.selectExpr("*", f"named_struct('x', 1) as {name}"), 0)
    assert sink(panes.selectExpr("*", "1 as side_odd"), 0).stored > 0  # a number is a result
    sink.close()


def test_side_outputs_need_route(spark, tmp_path):
    spec = SPEC.side_output_late_data()
    source = feed(tmp_path, clicks(300))
    url = f"rocksdb:{tmp_path / 'store'}"
    sink = spark_glue.to_store(url, spec)
    with pytest.raises(Exception, match=r"use route\(main=to_store"):
        run(spark, source, sink, tmp_path, spec=spec)
    late = []
    both = spark_glue.route(main=sink, late=lambda frame, batch: late.append(frame.count()))
    run(spark, source, both, tmp_path, "second", spec=spec)
    sink.close()
    assert late
    with PaneStore.open(url, read_only=True) as store:
        assert store.query().num_rows == 5


@pytest.mark.long
@pytest.mark.skipif(SPARK < (4, 3), reason="Spark moves stored state from 4.3 on")
def test_a_query_goes_on_in_more_partitions(spark, tmp_path):
    """The micro-batches that rescale runs have numbers, too, and no sink has seen them."""
    table, url, shuffle = clicks(3_000).sort_by("ts"), f"rocksdb:{tmp_path / 'store'}", "spark.sql.shuffle.partitions"
    source, checkpoints = Source(tmp_path, table.schema), ["checkpoint", "wider"]
    before = spark.conf.get(shuffle)
    spark.conf.set(shuffle, 2)
    try:
        for name, part in zip(checkpoints, (table.slice(0, 2_000), table.slice(2_000)), strict=True):
            source.put(part)
            sink = spark_glue.to_store(url, SPEC)
            run(spark, source, sink, tmp_path, name)
            sink.close()
            if name == "checkpoint":
                spark_glue.rescale(tmp_path / name, SPEC.panes(), tmp_path / "wider", partitions=3)
    finally:
        spark.conf.set(shuffle, before)
    with PaneStore.open(url, read_only=True) as store:
        assert_counted(store, table)


def test_numbers_that_no_sink_has_seen_are_not_missed(tmp_path, monkeypatch):
    from spark_glue.sinks import store as module

    unseen: set[int] = set()
    monkeypatch.setattr(module, "_without_sink", lambda frame, query: unseen)
    sink = spark_glue.to_store(f"rocksdb:{tmp_path / 'store'}", SPEC)
    store = sink._store
    store.advance_watermark(None, mark=("query", 4))
    sink._check_known(store, None, "query", 5)
    for batch, told in ((7, {3, 5}), (7, {6}), (8, {5, 6}), (8, set())):
        unseen.clear()
        unseen.update(told)
        with pytest.raises(StoreError, match=f"the store has of this query is 4, and this is batch {batch}: it went"):
            sink._check_known(store, None, "query", batch)
    for batch, told in ((6, {5}), (7, {5, 6}), (7, {1, 2, 5, 6, 9})):
        unseen.clear()
        unseen.update(told)
        sink._check_known(store, None, "query", batch)
    sink.close()


def test_wrong_arguments(tmp_path):
    with pytest.raises(SpecError, match="spec: must be a WindowSpec"):
        spark_glue.to_store(f"rocksdb:{tmp_path}", "spec")
    sessions = fw.key_by("k").event_time("t").window(fw.EventTimeSessionWindows.with_gap(5)).aggregate(n=fw.Count())
    with pytest.raises(SpecError, match="tumble, slide or cumulate"):
        spark_glue.to_store(f"rocksdb:{tmp_path}", sessions)
