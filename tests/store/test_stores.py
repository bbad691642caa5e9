"""What both kinds of stores do: panes in, windows out, by counting."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fastwin as fw
from fastwin.errors import AggregateOverflowError, SpecError, StoreError
from fastwin.store import PaneStore, Written
from tests.support.clicks import AGGREGATES, DAY, FIRST, HOUR, MINUTE, by_module, clicks, counted, spec_of


@pytest.fixture
def table():
    return clicks(3_000)


@pytest.fixture
def store(url):
    with PaneStore.open(url, spec_of()) as opened:
        yield opened


def panes_of(table, spec=None):
    return (spec or spec_of()).panes().run(table).main


def test_windows_are_what_counting_gives(store, table):
    store.put(panes_of(table))
    assert store.watermark == FIRST + 30 * HOUR
    for end in (store.watermark, FIRST + 25 * HOUR + 3 * MINUTE, FIRST + 2 * HOUR):
        assert by_module(store.query(end=end)) == counted(table, end - DAY, end)
        assert store.query(end=end, coarse=False).drop_columns("mean").equals(store.query(end=end).drop_columns("mean"))
    assert by_module(store.query(["module 3"], FIRST + 57 * MINUTE, FIRST + 3 * HOUR)).keys() == {"module 3"}
    assert store.query(["nobody"]).num_rows == 0
    assert store.keys()["module"].to_pylist() == [f"module {i}" for i in range(5)]


def test_has_reads_no_other_keys(store, table, monkeypatch):
    with pytest.raises(StoreError, match="holds no panes yet"):
        store.has(["module 1"])
    store.put(panes_of(table))
    monkeypatch.setattr(type(store), "_key_texts", None)
    assert store.has(["module 1", "nobody", ("module 4",), None, "module 1"]) == [True, False, True, False, True]
    assert store.has([]) == []
    with pytest.raises(SpecError, match="must be a list of keys"):
        store.has("module 1")


def test_every_window_equals_the_sliding_spec(store, table):
    store.put(panes_of(table))
    direct = spec_of().run(table).main
    direct = direct.filter(pc.less_equal(direct["window_end"].cast(pa.int64()), store.watermark))
    series = store.series(start=FIRST, end=store.watermark)
    assert series.num_rows == 5 * 600
    found = series.filter(pc.greater(series["pv"], 0))
    order = [("module", "ascending"), ("window_end", "ascending")]
    found, direct = found.sort_by(order), direct.sort_by(order)
    for name in direct.column_names:
        if name != "mean":
            assert found[name].to_pylist() == direct[name].to_pylist(), name
    assert np.allclose(found["mean"].to_numpy(), direct["mean"].to_numpy(), rtol=1e-12)


def test_series_fills_what_is_empty_and_steps_by_coarse_panes(store, table):
    store.put(panes_of(table.slice(0, 10)))
    series = store.series(["module 1", "nobody"], FIRST, FIRST + DAY, "1 hour", "2 hours")
    assert series.num_rows == 24
    for row in series.to_pylist():
        end = int(row["window_end"].timestamp() * 1_000)
        expected = counted(table.slice(0, 10), end - HOUR, end).get(row["module"])
        assert row["pv"] == (expected["pv"] if expected else 0)
        assert row["low"] == (expected["low"] if expected else None)


def test_put_again_changes_nothing(store, table):
    panes = panes_of(table)
    first = store.put(panes, (7, 1))
    before = store.query()
    assert first == Written(stored=panes.num_rows)
    assert store.put(panes, (7, 1)) == first
    assert store.query().equals(before)


def test_late_rewrite_replaces_and_rolls_up_anew(store, table):
    store.put(panes_of(table), (7, 1))
    late = pa.concat_tables([table, table.slice(100, 50)])
    changed = panes_of(late)
    store.put(changed, (7, 2))
    assert (
        by_module(store.query())["module 0"]["pv"]
        == counted(late, FIRST + 6 * HOUR, FIRST + 30 * HOUR)["module 0"]["pv"]
    )
    assert by_module(store.query(end=FIRST + DAY)) == counted(late, FIRST, FIRST + DAY)


@pytest.mark.parametrize("older", [(7, 4), (6, 9)])
def test_older_revision_never_overwrites(store, table, older):
    store.put(panes_of(table), (7, 5))
    before = store.query()
    done = store.put(panes_of(table.slice(0, 1_500)), older)
    assert done.stored == 0 and done.outdated > 0
    assert store.query().equals(before)


def test_fresh_epoch_wins_over_an_old_run(store, table):
    store.put(panes_of(table), (store.new_epoch(), 99))
    half = table.slice(0, 1_500)
    epoch = store.new_epoch()
    assert store.put(panes_of(half), (epoch, 0)).outdated == 0
    end = FIRST + 12 * HOUR
    assert by_module(store.query(end=end)) == counted(half, end - DAY, end)


def test_epochs_grow(store):
    epochs = [store.new_epoch() for _ in range(5)]
    assert sorted(set(epochs)) == epochs


def test_panes_in_any_order_and_split(store, table):
    panes = panes_of(table)
    for part in range(4):
        rows = pa.array(np.arange(part, panes.num_rows, 4)[::-1])
        store.put(panes.take(rows), (1, part), advance=False)
    assert store.watermark is None
    store.advance_watermark(FIRST + 30 * HOUR, since=FIRST)
    assert by_module(store.query()) == counted(table, FIRST + 6 * HOUR, FIRST + 30 * HOUR)


def test_panes_of_a_stream_with_late_firings(url, table):
    spec = spec_of(pv=fw.Count()).allowed_lateness("2 hours")
    random = np.random.default_rng(5)
    arrival = table["ts"].cast(pa.int64()).to_numpy() + random.integers(0, HOUR, table.num_rows)
    shuffled = table.take(pa.array(np.argsort(arrival)))
    stream = spec.panes().open(watermark="1 minute")
    with PaneStore.open(url, spec) as store:
        for first in range(0, shuffled.num_rows, 250):
            store.put(stream.process(shuffled.slice(first, 250)).main)
        end = store.watermark
        store.put(stream.advance_watermark(fw.MAX_TIMESTAMP).main)
        expected = {key: row["pv"] for key, row in counted(table, end - DAY, end).items()}
        assert {key: row["pv"] for key, row in by_module(store.query(end=end)).items()} == expected


def test_retention_drops_panes_and_keys(url):
    spec = spec_of("1 hour", "3 minutes", pv=fw.Count())
    table = clicks(2_000, hours=12)
    early = pa.table({"module": ["gone"], "ts": pa.array([FIRST], pa.timestamp("ms", tz="UTC"))})
    with PaneStore.open(url, spec, retention="3 hours") as store:
        store.put(panes_of(early, spec))
        panes = panes_of(table.select(["module", "ts"]), spec)
        for first in range(0, panes.num_rows, 100):
            store.put(panes.slice(first, 100))
        assert "gone" not in store.keys()["module"].to_pylist()
        meta = store.meta()
        assert meta.watermark - 4 * HOUR <= meta.since <= meta.watermark - 3 * HOUR
        assert store.query(start=FIRST, end=meta.since).num_rows == 0
        end = meta.watermark
        assert {k: r["pv"] for k, r in by_module(store.query(start=meta.since, end=end)).items()} == {
            k: r["pv"] for k, r in counted(table, meta.since, end).items()
        }
        assert store.put(panes_of(early, spec)) == Written(expired=1)


def test_keys_of_several_columns_and_none(url):
    table = pa.table({"a": ["x", None, "x"], "b": [1, 2, None], "ts": pa.array([0, 0, 0], pa.timestamp("s", tz="UTC"))})
    spec = fw.key_by("a", "b").event_time("ts").window(fw.TumblingEventTimeWindows.of("1 hour")).aggregate(n=fw.Count())
    with PaneStore.open(url, spec) as store:
        store.put(panes_of(table, spec))
        assert store.query([("x", 1), (None, 2), ("x", None), ("y", 1)]).drop_columns(
            ["window_start", "window_end"]
        ).to_pylist() == [
            {"a": "x", "b": 1, "n": 1},
            {"a": None, "b": 2, "n": 1},
            {"a": "x", "b": None, "n": 1},
        ]
        assert store.keys().num_rows == 3
        with pytest.raises(SpecError, match="'x' is no key of a, b"):
            store.query(["x"])


def test_one_global_key(url):
    spec = fw.key_by().event_time("ts").window(fw.TumblingEventTimeWindows.of("1 hour")).aggregate(n=fw.Count())
    with PaneStore.open(url, spec) as store:
        store.put(panes_of(clicks(50, hours=1), spec))
        assert store.query()["n"].to_pylist() == [50]


def test_sums_that_overflow_say_so(url):
    spec = spec_of("1 hour", "3 minutes", total=fw.Sum("v"))
    table = pa.table({"module": ["a", "a"], "ts": pa.array([0, 180], pa.timestamp("s", tz="UTC")), "v": [2**62, 2**62]})
    with PaneStore.open(url, spec) as store, pytest.raises(AggregateOverflowError, match=r"panes of total'.*int64"):
        store.put(panes_of(table, spec))


def test_questions_are_bounded_in_bytes(url, table, monkeypatch):
    """Sketches may be long: panes alone do not tell what a question takes."""
    spec = spec_of(pv=fw.Count(), uv=fw.HyperLogLog("user"))
    with PaneStore.open(url, spec) as store:
        store.put(panes_of(table, spec))
        whole = store.query()
        monkeypatch.setattr("fastwin.store.redis._FIRST_CELLS", 20)
        monkeypatch.setattr("fastwin.store.redis._MOST_CELLS", 20)
        monkeypatch.setattr("fastwin.store.records._MOST_BYTES", 5_000)
        with pytest.raises(
            SpecError, match=r"at most 5,000 bytes of panes in one go, got [5-9],\d+ in the first \d+ values"
        ):
            store.query([f"module {i}" for i in range(5)])
        one = store.query(["module 1"])
        assert one.to_pylist() == [row for row in whole.to_pylist() if row["module"] == "module 1"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [({"window": "4 minutes"}, "window must be a multiple of a pane"), ({"step": "1 s"}, "step must be a multiple"),
     ({"start": FIRST, "end": FIRST + HOUR, "step": "42 minutes"}, "one or more steps"),
     ({"start": -62_135_596_800_000, "end": -62_135_510_400_000}, "series: windows must begin in the years 1 to 9999")],
)  # fmt: skip
def test_series_without_sense_are_refused(store, table, arguments, says):
    store.put(panes_of(table.slice(0, 10)))
    with pytest.raises(SpecError, match=says):
        store.series(**arguments)


def test_empty_store_says_so(url, tmp_path):
    with PaneStore.open(url, spec_of()) as store:
        assert store.meta() is None and store.watermark is None
        for ask in (store.query, store.series, store.keys):
            with pytest.raises(StoreError, match="holds no panes yet"):
                ask()


def test_another_spec_is_refused(url, table):
    with PaneStore.open(url, spec_of()) as store:
        store.put(panes_of(table))
    hours = fw.SlidingEventTimeWindows.of("24 hours", "1 hour")
    for other, says in (
        (spec_of(pv=fw.Count()), "aggregates=pv, total, low, high, last, mean, and not with pv"),
        (spec_of(**AGGREGATES | {"last": fw.Min("ts")}), "fields=.* and not with .*last by min"),
        (spec_of(**AGGREGATES | {"total": fw.Sum("x")}), r"total=Sum\('v'\), and not with Sum\('x'\)"),
        (spec_of("24 hours", "4 minutes", **AGGREGATES), "pane_ms=180000, and not with 240000"),
        (fw.key_by("user").event_time("ts").window(hours).aggregate(pv=fw.Count()), "keys=module, and not with user"),
    ):
        for read_only in (False, True):
            with pytest.raises(StoreError, match=rf"store: it holds panes with {says}.*; use another store"):
                PaneStore.open(url, other, read_only=read_only)
    with PaneStore.open(url) as store:  # without a spec, as the store has it
        store.put(panes_of(table))


def test_the_windows_spec_reads_panes_of_a_width_of_their_own(url, table):
    spec = spec_of("24 hours", "6 minutes")
    panes = spec.panes("3 minutes")
    with PaneStore.open(url, panes) as store:
        store.put(panes.run(table).main)
        expected = store.query()
    with PaneStore.open(url, spec, read_only=True) as store:
        assert store.query().equals(expected)
    with pytest.raises(StoreError, match="pane_ms=180000, and not with 240000"):
        PaneStore.open(url, spec_of("24 hours", "4 minutes"), read_only=True)


def test_panes_that_are_none_are_refused(store, table):
    panes = panes_of(table)
    for wrong, says in (
        (panes.drop_columns(["window_start"]), "window_start"),
        (panes.drop_columns(["pv"]), "no column 'pv'"),
        (
            panes.set_column(1, "window_start", pc.add(panes["window_start"], pa.scalar(1, pa.duration("ms")))),
            "starts no pane",
        ),
        (
            panes.slice(0, 2).set_column(1, "window_start", pa.array([-62_135_596_800_001, FIRST])),
            r"years 1 to 9999, got -62135596800001 ms",
        ),
        (panes.set_column(1, "window_start", pa.nulls(panes.num_rows, panes["window_start"].type)), "is null"),
    ):
        with pytest.raises(SpecError, match=says):
            store.put(wrong)
    with pytest.raises(SpecError, match="revision"):
        store.put(panes, (-1, 0))


def test_readers_see_whole_batches_while_a_writer_writes(url, table):
    """Each batch adds the same number of clicks to all modules, so a reader must see equal counts."""
    spec = spec_of("1 hour", "3 minutes", pv=fw.Count())
    modules = [f"m{i}" for i in range(6)]
    done = threading.Event()
    seen: list[set] = []

    def read():
        with PaneStore.open(url, read_only=True) as reader:
            while not done.is_set():
                found = reader.query(start=FIRST, end=reader.watermark)
                seen.append(set(found["pv"].to_pylist()) | {found.num_rows - 6})

    with PaneStore.open(url, spec) as writer, ThreadPoolExecutor(2) as pool:
        readers = []
        try:
            for batch in range(60):
                starts = pa.array([FIRST + batch * 3 * MINUTE] * 6, pa.timestamp("ms", tz="UTC"))
                writer.put(pa.table({"module": modules, "window_start": starts, "pv": [10] * 6}))
                if batch == 0:
                    readers = [pool.submit(read) for _ in range(2)]
        finally:
            done.set()
        for reader in readers:
            reader.result(30)
    assert seen
    assert all(len(counts) == 2 and 0 in counts for counts in seen), [counts for counts in seen if len(counts) != 2][:3]


def test_reader_writes_nothing(store, table, url):
    store.put(panes_of(table.slice(0, 10)))
    with PaneStore.open(url, read_only=True) as reader:
        with pytest.raises(StoreError, match="read_only"):
            reader.put(panes_of(table))
        assert reader.query().equals(store.query())


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("", "must begin with"),
        ("http://x", "must begin with"),
        ("rocksdb:", "needs a path"),
        (7, "must be text"),
        ("redis://[::1", "is no URL for Redis"),
        ("redis://localhost?namespace=a%20b", "namespace"),
    ],
)
def test_urls_that_are_none(wrong, says):
    with pytest.raises(SpecError, match=says):
        PaneStore.open(wrong)


VALUES = st.one_of(st.none(), st.integers(-(2**57), 2**57))
FLOATS = st.one_of(st.none(), st.floats(width=64))
ROWS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 59), VALUES, FLOATS), min_size=1, max_size=7)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=20)
@given(batches=st.lists(ROWS, min_size=1, max_size=3))
def test_coarse_panes_equal_fine_ones(url, redis_server, batches):
    """Whatever is written in whatever order, an hour read as one pane equals the same hour read as twenty."""
    spec = spec_of(
        "1 day",
        "3 minutes",
        n=fw.Count("v"),
        s=fw.Sum("v"),
        lo=fw.Min("v"),
        hi=fw.Max("v"),
        flo=fw.Min("x"),
        fhi=fw.Max("x"),
    )
    address = (
        f"{url}/{np.random.default_rng().integers(2**60)}"
        if url.startswith("rocksdb")
        else f"{url}?namespace=n{np.random.default_rng().integers(2**60)}"
    )
    with PaneStore.open(address, spec) as store:
        for rows in batches:
            table = pa.table(
                {
                    "module": [f"m{module}" for module, *_ in rows],
                    "ts": pa.array([FIRST + minute * MINUTE for _, minute, *_ in rows], pa.timestamp("ms", tz="UTC")),
                    "v": pa.array([v for *_, v, _ in rows], pa.int64()),
                    "x": pa.array([x for *_, x in rows], pa.float64()),
                }
            )
            store.put(panes_of(table, spec))
        whole = store.query(start=FIRST, end=FIRST + HOUR)
        parts = [store.query(start=FIRST + m * MINUTE, end=FIRST + (m + 3) * MINUTE) for m in range(0, 60, 3)]
        fine = pa.concat_tables(parts)
        for row in whole.to_pylist():
            mine = [part for part in fine.to_pylist() if part["module"] == row["module"]]
            assert row["n"] == sum(part["n"] for part in mine)
            sums = [part["s"] for part in mine if part["s"] is not None]
            assert row["s"] == (sum(sums) if sums else None)
            for name, choose in (("lo", min), ("hi", max), ("flo", min), ("fhi", max)):
                values = [part[name] for part in mine if part[name] is not None]
                assert repr(row[name]) == repr(_extreme(values, choose)), name


def _extreme(values, choose):
    """NaN is above all other values; the sign of zero stays open, so take the one that the store may give."""
    numbers = [value for value in values if value == value]
    if len(numbers) < len(values) and (choose is max or not numbers):
        return float("nan")
    return choose(numbers, default=None)
