"""Panes of every aggregate that can be merged, in both stores: random windows equal a naive model, over a restart."""

import math
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import fastwin as fw
from fastwin.errors import AggregateOverflowError, SpecError, StoreError
from fastwin.store import PaneStore
from fastwin.store.layout import Layout
from fastwin.store.spans import Span
from fastwin.store.states import merged_states
from tests.support import naive_bags as naive
from tests.support.clicks import FIRST, HOUR, MINUTE, spec_of

PANE = 3 * MINUTE
Rows = list[tuple[int, int, dict[str, Any]]]
Model = Callable[[Rows], Any]


def of(column: str, model: Callable[[naive.Elements], Any]) -> Model:
    """Makes a model of a column's values of one of rows; nulls are left out."""
    return lambda rows: model([(time, n, row[column]) for time, n, row in rows if row[column] is not None])


def values(column: str, model: Callable[[list], Any]) -> Model:
    return of(column, lambda elements: model([value for _, _, value in elements]) if elements else None)


def at(column: str, by: str, choose: Callable) -> Model:
    def found(rows: Rows) -> Any:
        both = [one for one in rows if one[2][column] is not None and one[2][by] is not None]
        return choose(sorted(both, key=lambda one: one[:2]), key=lambda one: one[2][by])[2][column] if both else None

    return found


def variance(xs: list) -> float | None:
    mean = math.fsum(xs) / len(xs)
    return math.fsum((x - mean) ** 2 for x in xs) / (len(xs) - 1) if len(xs) > 1 else None


def moment(order: int) -> Callable[[list], float | None]:
    def found(xs: list) -> float | None:
        mean = math.fsum(xs) / len(xs)
        second = math.fsum((x - mean) ** 2 for x in xs) / len(xs)
        return math.fsum((x - mean) ** order for x in xs) / len(xs) / second ** (order / 2) if second else None

    return found


def covariance(rows: Rows) -> float | None:
    both = [(row["v"], row["x"]) for _, _, row in rows if row["v"] is not None]
    if len(both) < 2:
        return None
    v, x = (math.fsum(column) / len(both) for column in zip(*both, strict=True))
    return math.fsum((a - v) * (b - x) for a, b in both) / (len(both) - 1)


def histogram(xs: list) -> list[int]:
    return [sum(x < -1 for x in xs), sum(-1 <= x < 1 for x in xs), sum(x >= 1 for x in xs)]


def mean_of_decimals(xs: list) -> Decimal:
    return (sum(xs) / Decimal(len(xs))).quantize(Decimal("0.000001"), "ROUND_HALF_UP")


MODELS: dict[str, tuple[fw.Aggregate, Model]] = {
    "p50": (fw.Median("x"), of("x", naive.quantile(0.5, 0.01))),
    "p99": (fw.Quantile("x", 0.99), of("x", naive.quantile(0.99, 0.01))),
    "fine": (fw.Quantile("v", 0.9, 0.001), of("v", naive.quantile(0.9, 0.001))),
    "top": (fw.TopK("t", 3), of("t", naive.most_frequent(3))),
    "mode": (fw.Mode("t"), of("t", naive.mode)),
    "first": (fw.First("t"), of("t", lambda found: min(found)[2] if found else None)),
    "last": (fw.Last("x"), of("x", lambda found: max(found)[2] if found else None)),
    "whole": (fw.Last("v", ignore_nulls=False), lambda rows: max(rows, key=lambda one: one[:2])[2]["v"]),
    "best": (fw.ArgMax("t", "x"), at("t", "x", max)),
    "worst": (fw.ArgMin("v", "x"), at("v", "x", min)),
    "var": (fw.Variance("x"), values("x", variance)),
    "sd": (fw.StdDev("v"), values("v", lambda xs: None if variance(xs) is None else math.sqrt(variance(xs)))),
    "skew": (fw.Skewness("x"), values("x", moment(3))),
    "kurt": (fw.Kurtosis("x"), values("x", lambda xs: None if moment(4)(xs) is None else moment(4)(xs) - 3)),
    "cov": (fw.Covar("v", "x"), covariance),
    "all_b": (fw.BoolAnd("b"), values("b", all)),
    "any_b": (fw.BoolOr("b"), values("b", any)),
    "xor": (fw.BitXor("v"), values("v", lambda xs: int(np.bitwise_xor.reduce(xs)))),
    "exact": (fw.CountDistinct("t"), of("t", naive.distinct)),
    "once": (fw.Sum("v", distinct=True), of("v", naive.sum_distinct)),
    "large": (fw.Largest("x", 2), of("x", naive.ends(2, True))),
    "set": (fw.CollectSet("t", limit=4), of("t", naive.union(4))),
    "texts": (fw.StringAgg("t", "|", limit=3), of("t", naive.joined("|", 3))),
    "hist": (fw.Histogram("x", [-1, 1]), of("x", lambda found: histogram([x for _, _, x in found]))),
    "low_t": (fw.Min("t"), values("t", lambda xs: min(xs, key=str.encode))),
    "high_d": (fw.Max("d"), values("d", max)),
    "low_b": (fw.Min("b"), values("b", min)),
    "sum_d": (fw.Sum("d"), values("d", sum)),
    "mean_d": (fw.Mean("d"), values("d", mean_of_decimals)),
    "sum_u": (fw.Sum("u"), values("u", sum)),
    "sum_l": (fw.Sum("l"), values("l", lambda xs: sum(xs, timedelta()))),
    "some": (fw.Last("t", where="b"), lambda rows: MODELS["some_model"][1]([one for one in rows if one[2]["b"]])),
}
MODELS["some_model"] = (fw.Last("t"), of("t", lambda found: max(found)[2] if found else None))


def elements(n: int, seed: int) -> pa.Table:
    """Rows of a few hours in order of time, with nulls and an empty text among them."""
    dice = np.random.default_rng(seed)
    times = np.sort(dice.integers(FIRST, FIRST + 6 * HOUR, n))
    texts = ["", "a", "bb", "\u00e9t\u00e9", "zz top", "0"]
    return pa.table(
        {
            "module": pa.array([f"m{i}" for i in dice.integers(0, 2, n)]),
            "ts": pa.array(times, pa.timestamp("ms", tz="UTC")),
            "v": pa.array(dice.integers(-50, 50, n), mask=dice.random(n) < 0.2),
            "x": dice.normal(size=n),
            "t": pa.array([texts[i] for i in dice.integers(0, 6, n)], mask=dice.random(n) < 0.2),
            "d": pa.array([Decimal(int(i)).scaleb(-2) for i in dice.integers(-(10**6), 10**6, n)], pa.decimal128(9, 2)),
            "b": pa.array(dice.random(n) < 0.9, mask=dice.random(n) < 0.2),
            "u": pa.array(dice.integers(0, 2**55, n).astype(np.uint64)),
            "l": pa.array(dice.integers(-1000, 1000, n), pa.duration("ms")),
        }
    )


def same(found: Any, expected: Any) -> bool:
    if isinstance(expected, float) and isinstance(found, float):
        return found == pytest.approx(expected, rel=1e-9, abs=1e-12)
    return found == expected and type(found) is type(expected)


@pytest.mark.parametrize("slide", ["3 minutes", "1 hour"])  # with coarse panes, and windows that are panes
def test_random_windows_equal_a_naive_model(url, slide):
    size = "6 hours" if slide == "3 minutes" else slide
    spec = spec_of(size, slide, **{name: aggregate for name, (aggregate, _) in MODELS.items()})
    table = elements(400, seed=len(slide))
    panes = spec.panes().run(table).main
    dice = np.random.default_rng(3)
    order = pa.array(dice.permutation(panes.num_rows))
    parts = [panes.take(order).slice(i * 60, 60) for i in range(-(-panes.num_rows // 60))]
    for number, part in enumerate(parts):  # opened anew for each
        with PaneStore.open(url, spec) as store:
            store.put(part, (1, number))
            store.put(part, (1, number))
    rows = list(zip(table["ts"].cast(pa.int64()).to_pylist(), range(table.num_rows), table.to_pylist(), strict=True))
    width = PANE if slide == "3 minutes" else HOUR
    with PaneStore.open(url, read_only=True) as store:
        for _ in range(12):
            first, last = sorted(dice.choice(6 * HOUR // width + 1, 2, replace=False))
            start, end = FIRST + int(first) * width, FIRST + int(last) * width
            found = store.query(start=start, end=end).to_pylist()
            inside: dict[str, Rows] = {}
            for one in rows:
                if start <= one[0] < end:
                    inside.setdefault(one[2]["module"], []).append(one)
            assert [row["module"] for row in found] == sorted(inside)
            for row in found:
                for name, (_, model) in MODELS.items():
                    expected = model(inside[row["module"]])
                    assert same(row[name], expected), (name, row[name], expected)


def test_series_equals_the_sliding_spec(url):
    names = ["p50", "p99", "top", "var", "texts", "sum_d", "mean_d"]
    spec = spec_of("1 hour", "3 minutes", **{name: MODELS[name][0] for name in names})
    table = elements(300, seed=5)
    with PaneStore.open(url, spec) as store:
        store.put(spec.panes().run(table).main)
        found = store.series(start=FIRST, end=store.watermark)
        apart = store.series(start=FIRST, end=FIRST + 6 * HOUR - HOUR, window="30 minutes", step="1 hour")
    direct = spec.run(table).main
    direct = direct.filter(pc.less_equal(direct["window_end"].cast(pa.int64()), FIRST + 6 * HOUR))
    order = [("module", "ascending"), ("window_end", "ascending")]
    there = found.filter(pc.is_valid(found["p50"]))
    assert there.num_rows > 100 and apart.num_rows == 10
    assert there.schema.types == direct.schema.types
    for mine, other in zip(there.sort_by(order).to_pylist(), direct.sort_by(order).to_pylist(), strict=True):
        assert all(same(mine[name], other[name]) for name in (*names, "window_end")), (mine, other)


def test_a_window_without_panes_has_what_aggregates_are_over_no_value(url):
    """As a window without elements has with fill="empty": 0, an empty list and an empty sketch, or null."""
    table = elements(60, seed=11)
    hours = table["ts"].cast(pa.int64()).to_numpy() // HOUR % 3
    table = table.filter(pa.array(hours != FIRST // HOUR % 3))
    models = {name: aggregate for name, (aggregate, _) in MODELS.items() if name != "some_model"}
    some = {**models, "n": fw.Count("v"), "mean": fw.Mean("v"), "uv": fw.HyperLogLog("t")}
    some["sketch"] = fw.HyperLogLog("t", output="sketch")
    hour = fw.TumblingEventTimeWindows.of("1 hour")
    spec = fw.key_by("module").event_time("ts").window(hour).aggregate(**some)
    filled = fw.key_by("module").event_time("ts").window(hour, fill="empty").aggregate(**some).run(table).main
    with PaneStore.open(url, spec) as store:
        store.put(spec.panes().run(table).main)
        found = store.series(start=FIRST, end=store.watermark)
    wanted = {(row["module"], row["window_end"]): row for row in filled.to_pylist()}
    pairs = [(row, wanted[key]) for row in found.to_pylist() if (key := (row["module"], row["window_end"])) in wanted]
    assert sum(row["n"] == 0 for row, _ in pairs) >= 2
    for mine, other in pairs:
        assert all(same(mine[name], other[name]) for name in some), (mine, other)


STATEFUL = {
    "n": fw.Count(),
    "exact": fw.CountDistinct("t"),
    "p50": fw.Median("x"),
    "uv": fw.HyperLogLog("t"),
    "sketch": fw.HyperLogLog("v", output="sketch"),
}


def nbytes_read(store: PaneStore) -> int:
    """Returns how many bytes a series over all of a store reads."""
    span = Span(0, FIRST + PANE - store.layout.window_ms, store.watermark)
    return store._scan(store.layout, store._key_texts(), [span]).nbytes


@pytest.mark.parametrize("window", ["1 hour", "3 minutes"])
def test_states_are_merged_some_windows_at_a_time(url, monkeypatch, window):
    """So few that they are no more bytes than a question may read; and none of windows that were not asked for."""
    spec = spec_of("1 hour", "3 minutes", **STATEFUL)
    made = []

    def noted(*arguments):
        made.append(merged_states(*arguments))
        return made[-1]

    monkeypatch.setattr("fastwin.store.merging.merged_states", noted)
    with PaneStore.open(url, spec) as store:
        store.put(spec.panes().run(elements(2_000, seed=5)).main)
        ask = {"start": FIRST, "end": store.watermark, "window": window}
        made.clear()
        whole = store.series(**ask)
        assert whole.num_rows > 200 and [len(one) for one in made] == [len(whole) - whole["p50"].null_count]
        monkeypatch.setattr("fastwin.store.records._MOST_BYTES", 8 * nbytes_read(store))
        made.clear()
        assert store.series(**ask).equals(whole)
        assert len(made) > 12 and max(len(one) for one in made) <= 20


def test_results_are_bounded_in_bytes(url, monkeypatch):
    """Lists of long windows that overlap are many times as long as what is read."""
    spec = spec_of("1 hour", "3 minutes", all=fw.Collect("x"))
    with PaneStore.open(url, spec) as store:
        store.put(spec.panes().run(elements(2_000, seed=5)).main)
        most = 2 * nbytes_read(store)
        monkeypatch.setattr("fastwin.store.records._MOST_BYTES", most)
        says = rf"at most {most:,} bytes of results in one go, got [\d,]+ in the first [\d,]+ windows; ask for fewer"
        with pytest.raises(SpecError, match=says):
            store.series(start=FIRST, end=store.watermark)
        assert store.query().num_rows == 2


def test_quantiles_of_a_column_share_their_sketch():
    spec = spec_of("1 hour", "3 minutes", a=fw.Quantile("x", 0.5), b=fw.Median("x"), c=fw.Quantile("x", 0.5, 0.1))
    panes = spec.panes()
    assert panes.ending.names == ("a", "c")
    layout = Layout.of(spec, panes.run(elements(10, 1)).main.schema)
    assert [output.fields for output in layout.outputs] == [("a",), ("a",), ("c",)]
    assert Layout.from_json(layout.to_json()) == layout


def test_sessions_are_refused_before_a_store_is_made(tmp_path):
    sessions = fw.key_by("k").event_time("ts").window(fw.EventTimeSessionWindows.with_gap("5 s"))
    with pytest.raises(SpecError, match="panes: only windows of event time"):
        PaneStore.open(f"rocksdb:{tmp_path / 'store'}", sessions.aggregate(n=fw.Count()))
    assert not (tmp_path / "store").exists()


def test_another_aggregate_of_the_same_column_is_refused(url):
    table = elements(50, 2)
    spec = spec_of("1 hour", "3 minutes", a=fw.Quantile("x", 0.9))
    with PaneStore.open(url, spec) as store:
        store.put(spec.panes().run(table).main)
    other = spec_of("1 hour", "3 minutes", a=fw.Quantile("x", 0.9, 0.1))
    with pytest.raises(StoreError, match=r"relative_error.*use another store"):
        PaneStore.open(url, other)
    with PaneStore.open(url) as store, pytest.raises(SpecError, match="'a' must be"):
        store.put(spec_of("1 hour", "3 minutes", a=fw.Max("x")).panes().run(table).main)


def test_a_damaged_state_is_told(redis_server):
    import redis

    client = redis.Redis.from_url(redis_server.url)
    client.flushall()
    spec = spec_of("1 hour", "3 minutes", p=fw.Median("x"))
    with PaneStore.open(redis_server.url, spec) as store:
        store.put(spec.panes().run(elements(50, 2)).main)
        name = next(client.scan_iter("{fastwin:*}:3min:*:p"))
        place = client.hkeys(name)[0]
        for damaged in (b"", b"hello", client.hget(name, place)[:-1]):
            client.hset(name, place, damaged)
            with pytest.raises(StoreError, match="is no state of its aggregate"):
                store.query(start=FIRST, end=FIRST + 6 * HOUR, coarse=False)


def test_decimal_sums_that_do_not_fit_say_so(url):
    spec = spec_of("1 hour", "3 minutes", s=fw.Sum("d"))
    most = Decimal("9" * 38)
    table = pa.table({"module": ["a", "a"], "ts": pa.array([0, 180], pa.timestamp("s")), "d": [most, most]})
    with PaneStore.open(url, spec) as store, pytest.raises(AggregateOverflowError):
        store.put(spec.panes().run(table).main)


@pytest.mark.parametrize("kind", [pa.decimal128(9, 2), pa.decimal256(40, 2), pa.decimal256(76, 2)])
def test_means_of_decimals_are_those_of_the_windows(url, kind):
    spec = spec_of("1 hour", "3 minutes", m=fw.Mean("d"))
    most = Decimal("9" * (kind.precision - 12) if kind.precision > 20 else "99999")
    times = pa.array([FIRST, FIRST + 180_000, FIRST + 180_001], pa.timestamp("ms", tz="UTC"))
    table = pa.table({"module": ["a"] * 3, "ts": times, "d": pa.array([most, most, Decimal("0.01")], kind)})
    whole = fw.key_by("module").event_time("ts").window(fw.TumblingEventTimeWindows.of("1 hour"))
    with PaneStore.open(url, spec) as store:
        store.put(spec.panes().run(table).main)
        found = store.query(start=FIRST, end=FIRST + HOUR)["m"]
    assert found.equals(whole.aggregate(m=fw.Mean("d")).run(table).main["m"])


DECIMALS = fw.key_by("module").event_time("ts")
HOURS = DECIMALS.window(fw.TumblingEventTimeWindows.of("1 hour"))


@pytest.mark.parametrize("values", [["9e37", "9e37"], ["9e37", "-9e37"], ["1", "2"]], ids=str)
@pytest.mark.parametrize("minutes", [0, 3], ids=["of one pane", "of two"])
def test_means_of_decimals_that_may_be_null_are_those_of_the_windows(url, values, minutes):
    mean = fw.Mean("d", on_overflow="null")
    spec = spec_of("1 hour", "3 minutes", m=mean)
    times = pa.array([FIRST, FIRST + minutes * MINUTE], pa.timestamp("ms", tz="UTC"))
    table = pa.table({"module": ["a"] * 2, "ts": times, "d": pa.array(map(Decimal, values), pa.decimal128(38, 0))})
    with PaneStore.open(url, spec) as store:
        store.put(spec.panes().run(table).main)
        found = store.query(start=FIRST, end=FIRST + HOUR)["m"]
    assert found.equals(HOURS.aggregate(m=mean).run(table).main["m"])


def test_means_of_decimals_that_do_not_fit_say_so(url):
    spec = spec_of("1 hour", "3 minutes", m=fw.Mean("d"))
    times, most = pa.array([FIRST], pa.timestamp("ms", tz="UTC")), Decimal(10) ** 37
    table = pa.table({"module": ["a"], "ts": times, "d": pa.array([most], pa.decimal128(38, 0))})
    with pytest.raises(AggregateOverflowError):
        HOURS.aggregate(m=fw.Mean("d")).run(table)
    with PaneStore.open(url, spec) as store:
        store.put(spec.panes().run(table).main)
        with pytest.raises(AggregateOverflowError, match=r"the mean 'm' of panes does not fit decimal128\(38, 4\)"):
            store.query(start=FIRST, end=FIRST + HOUR)


def test_distinct_sums_that_fit_over_panes_though_not_in_one(url):
    spec = spec_of("1 hour", "3 minutes", s=fw.Sum("v", distinct=True))
    times = pa.array([FIRST, FIRST + 1, FIRST + 40 * MINUTE], pa.timestamp("ms", tz="UTC"))
    table = pa.table({"module": ["a"] * 3, "ts": times, "v": [2**63 - 1, 5, -10]})
    with PaneStore.open(url, spec) as store:
        store.put(spec.panes().run(table).main)
        assert store.query(start=FIRST, end=FIRST + HOUR)["s"].to_pylist() == [2**63 - 6]
        with pytest.raises(AggregateOverflowError):
            store.query(start=FIRST, end=FIRST + 3 * MINUTE)


def test_decimals_with_more_digits_before_the_point_than_text_can_say_are_refused(url):
    kind = pa.decimal128(10, -35)
    column = pa.Array.from_buffers(kind, 1, [None, pa.py_buffer((100_000).to_bytes(16, "little"))])
    table = pa.table({"module": ["a"], "ts": pa.array([FIRST], pa.timestamp("ms", tz="UTC")), "d": column})
    spec = spec_of("1 hour", "3 minutes", m=fw.Max("d"))
    with PaneStore.open(url, spec) as store:
        with pytest.raises(
            SpecError, match=r"put: a store keeps up to 38 digits before the point, but 'm' is decimal128"
        ):
            store.put(spec.panes().run(table).main)
        assert store.meta() is None
