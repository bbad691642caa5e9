"""Unique visitors: equal to a real Redis's PFCOUNT of the same members, and close to the truth."""

import os
import re
from collections import defaultdict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st

import fastwin as fw
from fastwin import hyperloglog
from fastwin.store import PaneStore
from fastwin.store.unions import unions
from tests.support.clicks import DAY, FIRST, HOUR, MINUTE, clicks, spec_of
from tests.support.documents import ROOT

PANE = 3 * MINUTE
AGGREGATES = {"pv": fw.Count(), "uv": fw.HyperLogLog("user")}
FULL = "FASTWIN_STORE_FULL"
"""Set to run the day of clicks at its full size, which takes minutes."""


@pytest.fixture
def client(redis_server):
    opened = redis.Redis.from_url(redis_server.url)
    opened.flushall()
    return opened


def members(table: pa.Table) -> dict[tuple[str, int], set[str]]:
    """Returns the users of each module and pane, by plain sets."""
    found = defaultdict(set)
    times = table["ts"].cast(pa.int64()).to_numpy()
    starts = (times - times % PANE).tolist()
    for module, start, user in zip(table["module"].to_pylist(), starts, table["user"].to_pylist(), strict=True):
        found[module, start].add(user)
    return found


def add_reference(client: redis.Redis, found: dict[tuple[str, int], set[str]]) -> None:
    """Hands the same members to Redis: a key for each module and pane."""
    pipeline = client.pipeline(transaction=False)
    for (module, start), users in found.items():
        pipeline.pfadd(f"ref:{module}:{start}", *users)
    pipeline.execute()


def reference(client: redis.Redis, found: dict, modules: list[str], ends: range, size: int) -> list[int]:
    """Returns what PFCOUNT gives for the members of every window."""
    pipeline = client.pipeline(transaction=False)
    for module in modules:
        for end in ends:
            names = [f"ref:{module}:{at}" for at in range(end - size, end, PANE) if (module, at) in found]
            pipeline.pfcount(*(names or ["ref:none"]))
    return pipeline.execute()


def test_uv_is_what_redis_counts(url, client):
    spec = spec_of("2 hours", "3 minutes", **AGGREGATES)
    table = clicks(6_000, modules=3, hours=5)
    found = members(table)
    add_reference(client, found)
    with PaneStore.open(url, spec) as store:
        store.put(spec.panes().run(table).main)
        end = store.watermark
        series = store.series(start=FIRST, end=end)
        modules = store.keys()["module"].to_pylist()
        ends = range(FIRST + PANE, end + PANE, PANE)
        assert series["uv"].to_pylist() == reference(client, found, modules, ends, 2 * HOUR)
        assert store.query()["uv"].to_pylist() == reference(
            client, found, modules, range(end, end + PANE, PANE), 2 * HOUR
        )
    direct = spec.run(table).main
    direct = direct.filter(pc.less_equal(direct["window_end"].cast(pa.int64()), end))
    order = [("module", "ascending"), ("window_end", "ascending")]
    assert series.filter(pc.greater(series["pv"], 0)).sort_by(order).equals(direct.sort_by(order))


def test_any_client_counts_and_merges_our_keys(client, redis_server):
    spec = spec_of(**AGGREGATES)
    table = clicks(20_000, modules=2, hours=3)  # fine panes are sparse, hours are dense
    with PaneStore.open(redis_server.url, spec) as store:
        store.put(spec.panes().run(table).main)
        names = [f"{{fastwin:module%201}}:1h:2024-01-01T{h:02d}:00Z:uv" for h in range(2)]
        expected = store.query(["module 1"], FIRST, FIRST + 2 * HOUR)["uv"][0].as_py()
        assert client.pfcount(*names) == expected
        client.pfmerge("{fastwin:module%201}:mine", *names)
        assert client.pfcount("{fastwin:module%201}:mine") == expected
        assert hyperloglog.estimate(client.get("{fastwin:module%201}:mine")) == expected
        # Counting has left its marks in the strings (a cached count); they still read and roll up.
        assert store.query(["module 1"], FIRST, FIRST + 2 * HOUR)["uv"][0].as_py() == expected
        store.put(spec.panes().run(table).main)
        assert store.query(["module 1"], FIRST, FIRST + 2 * HOUR)["uv"][0].as_py() == expected


def test_any_client_counts_one_small_pane_as_documented(client, redis_server):
    page = (ROOT / "docs" / "store.md").read_text(encoding="utf-8")
    script, shelf, scratch, place = re.search(r'^EVAL "([^"]+)" 2 (\S+) (\S+) (\d+)$', page, re.MULTILINE).groups()
    spec = spec_of(**AGGREGATES)
    with PaneStore.open(f"{redis_server.url}?namespace=clicks", spec) as store:
        store.put(spec.panes().run(clicks(20_000, modules=2, hours=1)).main)
        start = FIRST + int(place) * PANE
        expected = store.query(["module 1"], start, start + PANE)["uv"][0].as_py()
        name = shelf.replace("home", "module%201")
        assert client.eval(script, 2, name, scratch.replace("home", "module%201"), place) == expected > 50
        hashes = [client.hget(name, place) for place in range(20)]
        assert all(value.startswith(b"HYLL") for value in hashes)


def test_sketches_leave_as_sketches(url):
    spec = spec_of("2 hours", "3 minutes", uv=fw.HyperLogLog("user", output="sketch"))
    table = clicks(500, modules=2, hours=2)
    with PaneStore.open(url, spec) as store:
        store.put(spec.panes().run(table).main)
        for row in store.query().to_pylist():
            mine = table.filter(pc.equal(table["module"], row["module"]))
            assert hyperloglog.estimate(row["uv"]) == hyperloglog.estimate(hyperloglog.sketch(mine["user"]))


PANES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 12), st.none() | st.integers(0, 40)), max_size=30)


@given(PANES, st.integers(1, 5), st.integers(1, 4))
def test_unions_of_windows_equal_sets(panes, size, slide):
    groups = np.array([group for group, *_ in panes], np.int32)
    times = np.array([time for _, time, _ in panes], np.int64)
    cells = [None if value is None else hyperloglog.sketch(pa.array([value])) for *_, value in panes]
    windows = [(group, start) for group in range(3) for start in range(-4, 14, slide)]
    where = np.array([group for group, _ in windows], np.int32)
    starts = np.array([start for _, start in windows], np.int64)
    column = pa.array(cells, pa.binary())
    counts = unions(groups, times, column, where, starts, size, True).to_pylist()
    sketches = unions(groups, times, column, where, starts, size, False).to_pylist()
    for (group, start), count, sketch in zip(windows, counts, sketches, strict=True):
        values = {value for g, time, value in panes if g == group and start <= time < start + size} - {None}
        assert (count or 0) == len(values)  # so few are counted exactly
        assert (count is None) == (sketch is None) == (not values)
        assert sketch is None or sketch == hyperloglog.sketch(pa.array(sorted(values)))


def test_day_of_clicks(url, client):
    """Every window of a day: PV equals counting, UV equals Redis, and errs as little as it must."""
    full = bool(os.environ.get(FULL))
    events, modules = (2_000_000, 200) if full else (60_000, 6)
    random = np.random.default_rng(11)
    times = np.sort(FIRST + random.integers(0, DAY, events))
    module = random.integers(0, modules, events)
    user = random.integers(0, 8_000, events)
    table = pa.table(
        {
            "module": pa.array([f"m{i:03d}" for i in range(modules)]).take(pa.array(module)),
            "ts": pa.array(times, pa.timestamp("ms", tz="UTC")),
            "user": pa.array([f"user-{i}" for i in range(8_000)]).take(pa.array(user)),
        }
    )
    spec = spec_of(**AGGREGATES)
    with PaneStore.open(url, spec) as store:
        store.put(spec.panes().run(table).main)
        series = store.series(start=FIRST, end=FIRST + 2 * DAY)  # every window that has a click
    points = 2 * DAY // PANE
    assert series.num_rows == modules * points
    pv = series["pv"].to_numpy().reshape(modules, points)
    per_pane = np.zeros((modules, points + 1), np.int64)
    np.add.at(per_pane, (module, (times - FIRST) // PANE + 1), 1)
    totals = per_pane.cumsum(axis=1)
    day = DAY // PANE
    expected = totals[:, 1:].copy()
    expected[:, day:] -= totals[:, 1:-day]
    assert (pv == expected).all()

    direct = spec.run(table).main
    ends = direct["window_end"].cast(pa.int64()).to_numpy()
    at = (ends - FIRST) // PANE - 1
    who = np.array([int(name[1:]) for name in direct["module"].to_pylist()])
    inside = at < points
    uv = series["uv"].to_numpy().reshape(modules, points)
    assert (pv[who[inside], at[inside]] == direct["pv"].to_numpy()[inside]).all()
    assert (uv[who[inside], at[inside]] == direct["uv"].to_numpy()[inside]).all()

    found = members(table)
    add_reference(client, found)
    sample = range(0, points, 60 if full else 30)
    names = [f"m{i:03d}" for i in range(modules)]
    window_ends = range(FIRST + PANE, FIRST + 2 * DAY + PANE, PANE * sample.step)
    assert uv[:, :: sample.step].ravel().tolist() == reference(client, found, names, window_ends, DAY)

    errors = []
    for one in range(modules):
        mine, users = times[module == one], user[module == one]
        for point in sample:
            end = FIRST + (point + 1) * PANE
            true = len(np.unique(users[(mine >= end - DAY) & (mine < end)]))
            if true:
                errors.append(uv[one, point] / true - 1)
    rms, p99 = np.sqrt(np.mean(np.square(errors))), np.percentile(np.abs(errors), 99)
    print(f"{url.split(':')[0]}: {len(errors)} windows, rms {rms:.4%}, 99th percentile {p99:.4%}")
    assert rms < 0.0081
    assert p99 < 0.025
