"""What is none of a store's panes is refused, and the store is as it was."""

import json
from datetime import date, datetime

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import fastwin as fw
from fastwin.errors import SpecError, StoreError
from fastwin.store import Layout, PaneStore
from tests.support.clicks import DAY, FIRST, HOUR, by_module, clicks, counted, spec_of

TABLE = clicks(300)


def counts(store: PaneStore) -> dict[str, int]:
    """Returns the page views of the last window, which are what counting gives."""
    found = {module: row["pv"] for module, row in by_module(store.query()).items()}
    expected = counted(TABLE, store.watermark - DAY, store.watermark)
    assert found == {module: row["pv"] for module, row in expected.items()}
    return found


def test_windows_are_no_panes(url):
    """Each of them is as long as 480 panes, and begins where one does."""
    spec = spec_of(pv=fw.Count(), total=fw.Sum("v"))
    windows = spec.run(TABLE).main
    with PaneStore.open(url, spec) as store:
        for _ in range(2):
            with pytest.raises(SpecError, match="the panes must be 3 min wide, got a window of 1 d from 20"):
                store.put(windows)
        assert store.meta() is None
        store.put(spec.panes().run(TABLE).main)
        assert counts(store)
    with PaneStore.open(url) as store:
        before = store.query()
        with pytest.raises(SpecError, match="3 min wide, got a window of 1 d"):
            store.put(windows)
        assert store.query().equals(before)


def test_panes_of_another_width(url):
    spec = spec_of(pv=fw.Count())
    panes = spec.panes().run(TABLE).main
    with PaneStore.open(url, spec.panes("1 minute")) as store:
        with pytest.raises(SpecError, match="the panes must be 1 min wide, got a window of 3 min"):
            store.put(panes)
        assert store.meta() is None  # so that the store is free for the right spec
    with PaneStore.open(url, spec) as store:
        store.put(panes)
        assert counts(store)
        ends = panes["window_end"]
        last = pc.equal(pa.array(range(len(panes))), len(panes) - 1)
        for odd, says in (
            (pc.if_else(last, pc.add(ends, pa.scalar(1, pa.duration("ms"))), ends), "got a window of 180001 ms"),
            (pc.if_else(last, pa.scalar(None, ends.type), ends), f"window_end is null in 1 of {len(panes)} rows"),
        ):
            with pytest.raises(SpecError, match=says):
                store.put(panes.set_column(panes.column_names.index("window_end"), "window_end", odd))
        store.put(panes.drop_columns(["window_end"]))
        assert counts(store)


def test_counts_are_no_sketches(url):
    spec = spec_of(pv=fw.Count(), uv=fw.HyperLogLog("user"))
    with PaneStore.open(url, spec) as store:
        with pytest.raises(SpecError, match=r"'uv' must be a sketch as spec\.panes\(\) makes it, got int64"):
            store.put(spec.run(TABLE).main)
        assert store.meta() is None
        store.put(spec.panes().run(TABLE).main)
        assert counts(store)


@pytest.mark.parametrize("kind", [pa.uint64(), pa.duration("ms")])
def test_means_of_what_a_mean_does_not_take(url, kind):
    """Panes have sums of it, of which no mean is made."""
    spec = spec_of(mean=fw.Mean("v"))
    table = pa.table({"module": ["home"], "ts": [FIRST], "v": pa.array([2**63 - 1], kind)})
    with PaneStore.open(url, spec) as store:
        with pytest.raises(SpecError, match=f"a Mean takes an int .*, but 'mean__sum' is {kind}".replace("[", r"\[")):
            store.put(spec.panes().run(table).main)
        assert store.meta() is None


AGGREGATES = [
    (fw.Sum("gross"), fw.Sum("net"), r"a=Sum\('gross'\), and not with Sum\('net'\)"),
    (fw.Count(), fw.Count(where="paid"), r"a=Count\(\), and not with Count\(where='paid'\)"),
    (fw.Mean("gross"), fw.Mean("gross", where=pc.field("net") > 9), r"a__sum=Sum\('gross'\), .*where=\(net > 9\)\)"),
    (fw.HyperLogLog("user"), fw.HyperLogLog("session"), r"HyperLogLog\('user'\), .*HyperLogLog\('session'\)"),
    (fw.Median("gross"), fw.Median("net"), r"a=Median\('gross'\), and not with Median\('net'\)"),
    (fw.Collect("gross"), fw.Collect("user"), r"a=Collect\('gross'\), and not with Collect\('user'\)"),
    (fw.Last("gross"), fw.Last("gross", where="paid"), r"and not with Last\('gross', where='paid'\)"),
    (fw.ArgMax("user", "gross"), fw.ArgMax("user", "net"), r"ArgMax\('user', 'gross'\), .*ArgMax\('user', 'net'\)"),
]
SALES = pa.table(
    {
        "module": ["home"] * 3,
        "ts": pa.array([FIRST, FIRST + HOUR, FIRST + 2 * HOUR], pa.timestamp("ms", tz="UTC")),
        "gross": [10, 20, 30],
        "net": [8, 16, 24],
        "paid": [True, False, True],
        "user": ["ann", "bob", "ann"],
        "session": ["x", "y", "z"],
    }
)


@pytest.mark.parametrize(("before", "after", "says"), AGGREGATES, ids=[str(one) for one, *_ in AGGREGATES])
def test_other_columns_and_conditions_under_the_same_name(url, before, after, says):
    """Of the same type, and merged in the same way: together they would be no measure at all."""
    first, second = spec_of(a=before), spec_of(a=after)
    with PaneStore.open(url, first) as store:
        store.put(first.panes().run(SALES).main)
        expected = store.query()
    with pytest.raises(StoreError, match=f"store: it holds panes with .*{says}; use another store"):
        PaneStore.open(url, second)
    with PaneStore.open(url, spec_of(a=before)) as store:
        assert store.query().equals(expected)
        store.put(first.panes().run(SALES).main)
        assert store.query().equals(expected)


def test_a_layout_of_before_columns_were_kept_takes_any():
    first, second = spec_of(a=fw.Sum("gross")), spec_of(a=fw.Sum("net"))
    new, other = (Layout.of(spec, spec.panes().run(SALES).main.schema) for spec in (first, second))
    told = json.loads(new.to_json())
    assert told.pop("reads") == {"a": "Sum('gross')"} and Layout.from_json(new.to_json()).fields[0].reads
    old = Layout.from_json(json.dumps(told))
    assert old == new and old.fields[0].reads == ""
    for one, another in ((old, new), (old, other), (other, old)):
        one.check_same(another)
    with pytest.raises(StoreError, match=r"a=Sum\('gross'\)"):
        new.check_same(other)


def _panes_by(shops):
    spec = fw.key_by("shop").event_time("ts").window(fw.SlidingEventTimeWindows.of("24 hours", "3 minutes"))
    spec = spec.aggregate(n=fw.Count(), who=fw.HyperLogLog("user"), high=fw.Max("user"), last=fw.Last("user"))
    times = pa.array([FIRST] * len(shops), pa.timestamp("ms", tz="UTC"))
    table = pa.table({"shop": shops, "ts": times, "user": [f"user {i}" for i in range(len(shops))]})
    return spec, spec.panes().run(table).main


@pytest.mark.parametrize(
    ("first", "later", "wrong"),
    [
        ([7, None, 8], [[7.0, None, 8.0], pa.array([7, None, 8], pa.int16()), ["7", None, "8"]], [["07"], [7.5]]),
        ([True, False], [[1, 0], ["true", "false"]], [[5, 0], ["1"], ["yes"]]),
        (["7", "8"], [[7, 8], pa.array(["7", "8"], pa.large_string())], []),
        ([date(2024, 1, 1)], [["2024-01-01"], [datetime(2024, 1, 1)]], [[datetime(2024, 1, 1, 9)], [1.5]]),
    ],
)
@pytest.mark.parametrize("opened_with_spec", [True, False])
def test_keys_are_cast_where_they_stay_what_they_are(url, opened_with_spec, first, later, wrong):
    """Keys 1 and 5 are no one key, as booleans would make them, nor are two times of a day."""
    spec, panes = _panes_by(pa.array(first))
    with PaneStore.open(url, spec) as store:
        store.put(panes)
        expected = store.query()
    with PaneStore.open(url, spec if opened_with_spec else None, retention="20 days") as store:
        for some in later:
            store.put(panes.set_column(0, "shop", some if isinstance(some, pa.Array) else pa.array(some)))
            assert store.query().equals(expected)
        for odd in wrong:
            with pytest.raises(SpecError, match="put: column 'shop' must be "):
                store.put(panes.slice(0, len(odd)).set_column(0, "shop", pa.array(odd)))
        assert store.query().equals(expected) and store.keys().num_rows == len(first)


def test_panes_of_polars(url):
    """It has text and bytes as views, or with offsets of 64 bits."""
    polars = pytest.importorskip("polars")
    spec, panes = _panes_by(["north", "south"])
    wide = pa.schema([f.with_type(pa.large_string()) if f.type == pa.string() else f for f in panes.schema])
    with PaneStore.open(url, spec) as store:
        store.put(polars.from_arrow(panes))
        expected = store.query()
        assert expected["who"].to_pylist() == [1, 1] and expected["last"].to_pylist() == ["user 0", "user 1"]
        for same in (panes, panes.cast(wide), polars.from_arrow(panes)):
            store.put(same)
            assert store.query().equals(expected)


def test_keys_of_another_type(url):
    """Into a store that was opened without its spec. One text that is no key would spoil each question about all."""
    day = fw.key_by("shop").event_time("ts").window(fw.SlidingEventTimeWindows.of("24 hours", "3 minutes"))
    spec = day.aggregate(n=fw.Count())
    times = pa.array([FIRST] * 3, pa.timestamp("ms", tz="UTC"))
    panes = spec.panes().run(pa.table({"shop": pa.array([7, None, 8]), "ts": times})).main
    with PaneStore.open(url, spec) as store:
        store.put(panes)
        expected = store.query()
    with PaneStore.open(url) as store:
        store.put(panes.set_column(0, "shop", panes["shop"].cast(pa.float64())))  # as pandas has it, with a null
        assert store.keys()["shop"].to_pylist() == [7, 8, None]
        for odd in (pa.array(["7", "north", "8"]), pa.array([7, 7.5, 8])):
            with pytest.raises(SpecError, match="put: column 'shop' must be int64: "):
                store.put(panes.set_column(0, "shop", odd))
        for name in ("shop", "n"):
            with pytest.raises(SpecError, match=f"column '{name}' is missing; the input has .*window_start"):
                store.put(panes.drop_columns([name]))
        assert store.query().equals(expected)
